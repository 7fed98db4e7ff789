"""The whole book as an EPUB with its formulas in MathML, from the pages of the built site.

    python site/epub.py                         _build/html -> _build/dpnotes.epub

One file a page, proofs and solutions opened, figures inline. Readers bring their own fonts and
colours, so the style sheet says little.
"""

import contextlib
import re
import time
import unicodedata
import uuid
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

import volume
from volume import has_class

HERE = Path(__file__).resolve().parent
NAMES = """viewBox preserveAspectRatio clipPath clipPathUnits linearGradient gradientUnits
    gradientTransform patternUnits textPath""".split()
LOWERED = re.compile(rf"\b({'|'.join(NAMES)})\b", re.I)
SVG = re.compile(r"<svg\b.*?</svg>", re.S)
VARIABLE = re.compile(r"var\(--[\w-]+,\s*([^()]+)\)")
OBSOLETE = ("border", "align", "valign", "bgcolor", "cellpadding", "cellspacing")
CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles>
<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/>
</rootfiles>
</container>
"""
PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"
  lang="en" xml:lang="en">
<head><title>{title}</title><link rel="stylesheet" href="epub.css"/></head>
<body>{body}</body></html>
"""
PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">urn:uuid:{identifier}</dc:identifier>
<dc:title>{title}</dc:title><dc:creator>{author}</dc:creator><dc:language>en</dc:language>
<dc:rights>CC BY 4.0; code: MIT</dc:rights>
<meta property="dcterms:modified">{modified}</meta>
<meta property="schema:accessMode">textual</meta><meta property="schema:accessMode">visual</meta>
<meta property="schema:accessModeSufficient">textual</meta>
<meta property="schema:accessibilityFeature">MathML</meta>
<meta property="schema:accessibilityFeature">alternativeText</meta>
<meta property="schema:accessibilityFeature">tableOfContents</meta>
<meta property="schema:accessibilityHazard">none</meta>
<meta property="schema:accessibilitySummary">Formulas are MathML, figures are described.</meta>
</metadata>
<manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="css" href="epub.css" media-type="text/css"/>
{items}
</manifest>
<spine><itemref idref="nav"/>
{spine}
</spine>
</package>
"""


def in_its_alphabet(sign, style):
    """A letter as the one of Unicode's mathematical alphabets: few readers know `mathvariant`."""
    name = re.sub("LATIN |GREEK |LETTER ", "", unicodedata.name(sign, ""))
    for whole in (f"MATHEMATICAL {style} {name}", f"{style} {name}"):
        with contextlib.suppress(KeyError):
            return unicodedata.lookup(whole)
    return sign


def plain_formulas(article):
    """Of each formula keep the MathML, which says its TeX to those who can't see it."""
    for drawn in article.xpath(f".//span[{has_class('katex')}]"):
        formula = drawn.find("span[@class='katex-mathml']/math")
        for sign in formula.xpath(".//mo[*]"):
            sign.tag = "mrow"  # KaTeX puts signs into signs, which MathML does not allow
        for sign in formula.xpath(".//*[@mathvariant and not(@mathvariant='normal') and text()]"):
            style = sign.attrib.pop("mathvariant").replace("-", " ").upper()
            style = style.replace("DOUBLE STRUCK", "DOUBLE-STRUCK")
            sign.text = "".join(in_its_alphabet(one, style) for one in sign.text)
        formula.set("alttext", formula.findtext(".//annotation") or "formula")
        formula.tail = drawn.tail
        drawn.getparent().replace(drawn, formula)
    for box in article.xpath(f".//span[{has_class('katex-display')}]"):
        box.drop_tag()


def spread_links(article):
    """`#page--place` becomes `page.xhtml#page--place`."""
    for link in article.xpath(".//a[starts-with(@href, '#')]"):
        place = link.get("href")[1:]
        link.set("href", f"{place.partition('--')[0]}.xhtml#{place}")


def as_svg(match):
    """An HTML parser lowers the names of SVG; and few readers know CSS variables."""
    known = {name.lower(): name for name in NAMES}
    text = LOWERED.sub(lambda name: known[name[1].lower()], match[0])
    return VARIABLE.sub(r"\1", text)


def xhtml(page):
    """The page as a well-formed file."""
    volume.open_everything(page.article)
    plain_formulas(page.article)
    for table in page.article.iter("table"):
        etree.strip_attributes(table, *OBSOLETE)  # which HTML no longer has
    spread_links(page.article)
    page.article.tag, page.article.tail = "section", None
    body = SVG.sub(as_svg, etree.tostring(page.article, encoding="unicode", method="xml"))
    text = PAGE.format(title=escape(page.title), body=body)
    etree.fromstring(text.encode())
    return text


def navigation(pages, title):
    """The table of contents: parts with their pages."""
    lines, part = [], ""
    for page in pages:
        if page.part != part:
            lines.append("</ol></li>" if part else "")
            lines.append(f"<li><span>{escape(page.part)}</span><ol>")
            part = page.part
        lines.append(f'<li><a href="{page.key}.xhtml">{escape(page.title)}</a></li>')
    lines.append("</ol></li>" if part else "")
    contents = f'<nav epub:type="toc"><h1>{escape(title)}</h1><ol>{"".join(lines)}</ol></nav>'
    return PAGE.format(title=escape(title), body=contents)


def item(page, text):
    """The page's line in the manifest."""
    kinds = [kind for kind, tag in (("mathml", "<math"), ("svg", "<svg")) if tag in text]
    properties = f" properties={quoteattr(' '.join(kinds))}" if kinds else ""
    kind = f'media-type="application/xhtml+xml"{properties}'
    return f'<item id="{page.key}" href="{page.key}.xhtml" {kind}/>'


def write(site, target, names=()):
    """Write the site in the folder `site` to the file `target`; returns its chapters."""
    pages, title = volume.read(site, names), volume.book_title(site)
    texts = {page.key: xhtml(page) for page in pages}
    made = volume.build_time()
    package = PACKAGE.format(
        identifier=uuid.uuid5(uuid.NAMESPACE_URL, title), title=escape(title), author=volume.AUTHOR,
        modified=time.strftime("%Y-%m-%dT%H:%M:%SZ", made),
        items="\n".join(item(page, texts[page.key]) for page in pages),
        spine="\n".join(f'<itemref idref="{page.key}"/>' for page in pages),
    )  # fmt: skip
    files = {
        "META-INF/container.xml": CONTAINER,
        "book/package.opf": package,
        "book/nav.xhtml": navigation(pages, title),
        "book/epub.css": (HERE / "carry" / "epub.css").read_text(encoding="utf-8"),
        **{f"book/{key}.xhtml": text for key, text in texts.items()},
    }
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip")  # first, as it is
        for name, text in files.items():
            info = zipfile.ZipInfo(name, made[:6])
            archive.writestr(info, text, compress_type=zipfile.ZIP_DEFLATED)
    return pages


def main():
    """Command line."""
    options = volume.options("Make an EPUB of the built site.", "dpnotes.epub")
    write(options.site, options.out, options.pages)
    print(f"Open {options.out}")


if __name__ == "__main__":
    main()
