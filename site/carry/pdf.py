"""The whole book as one tagged PDF, printed by Chromium from the pages of the built site.

    PYTHONPATH=site python -m carry.pdf          _build/html -> _build/dpnotes.pdf
    PYTHONPATH=site python -m carry.pdf --pages gaussian --out one.pdf

Proofs and solutions are opened; code that only draws a figure is left out. It is printed twice: the
first time tells on which page each chapter begins, for the table of contents.
"""

import sys
import time
from pathlib import Path

import pikepdf
import pypdf
from lxml.builder import E

from carry import volume
from carry.volume import SHEETS
from surroundings import build_time, found_chromium

HERE = Path(__file__).resolve().parent
MARGINS = {"top": "22mm", "bottom": "20mm", "left": "22mm", "right": "22mm"}
TEXT_WIDTH = round((210 - 2 * 22) / 25.4 * 96)
FOOTER = (
    '<div style="font: 8pt sans-serif; color: #5b6570; width: 100%; text-align: center">'
    '<span class="pageNumber"></span></div>'
)
PAGE = {
    "format": "A4", "margin": MARGINS, "print_background": True, "display_header_footer": True,
    "header_template": "<i></i>", "footer_template": FOOTER,
}  # fmt: skip
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
ABOUT = """Built on {} from the pages of the book. Proofs and solutions are open. The code that only
draws figures is left out; it stands on the pages. Text: CC BY-SA 4.0. Code: MIT."""
LARGEST = 15_000_000  # bytes
PATIENCE = 900_000  # ms: a machine that does other things besides


def cover(title):
    """The first page."""
    built = time.strftime("%-d %B %Y", build_time())
    return E.section(
        {"class": "cover"},
        E.h1({"class": "book-title"}, title),
        E.p("Lecture notes whose every claim is proved, computed and tested"),
        E.p({"class": "author"}, volume.AUTHOR),
        E.p({"class": "about"}, ABOUT.format(built)),
    )  # fmt: skip


def table_of_contents(chapters):
    """Parts and chapters with links and room for page numbers."""
    box, part = E.nav({"class": "contents", "aria-label": "Contents"}, E.h1("Contents")), ""
    for page in chapters:
        if page.part != part:
            part = page.part
            box.append(E.p({"class": "part"}, part))
        number = E.span({"id": f"page-of-{page.key}"})
        box.append(
            E.p({"class": "line"}, E.a({"href": f"#{page.key}"}, E.span(page.title), number))
        )
    return box


def lower_headings(article, depth):
    """Chapters stand below their part in the bookmarks."""
    for heading in article.xpath(".//h1|.//h2|.//h3|.//h4|.//h5"):
        heading.set("class", f"was-{heading.tag}")
        heading.tag = f"h{min(int(heading.tag[1]) + depth, 6)}"


def name_formulas(article):
    """A drawn formula is a figure whose description is its TeX: so it gets into the PDF's tags."""
    for formula in article.xpath(f".//span[{volume.has_class('katex')}]"):
        formula.set("role", "img")
        tex = formula.findtext(".//annotation") or "formula"
        formula.set("aria-label", " ".join(tex.split()))
        formula.find("span[@class='katex-mathml']").drop_tree()
        del formula.find("span[@class='katex-html']").attrib["aria-hidden"]


def assemble(site, chapters):
    """The book as one HTML document, without page numbers yet."""
    title = volume.book_title(site)
    body = E.body(E.main({"class": "bd-article"}, cover(title)))
    main, part = body[0], ""
    main.append(table_of_contents(chapters))
    for page in chapters:
        volume.open_everything(page.article)
        name_formulas(page.article)
        if page.part:
            lower_headings(page.article, 1)
        if page.part != part:
            part = page.part
            page.article.insert(0, E.h1({"class": "part"}, part))
        page.article.tag = "section"
        page.article.set("class", "chapter")
        main.append(page.article)
    sheets = [E.link(rel="stylesheet", href=(site / "_static" / name).as_uri()) for name in SHEETS]
    sheets.append(E.link(rel="stylesheet", href=(HERE / "print.css").as_uri()))
    head = E.head(
        E.meta(charset="utf-8"),
        E.title(title),
        E.meta(name="author", content=volume.AUTHOR),
        *sheets,
    )
    return E.html({"lang": "en", "data-theme": "light"}, head, body)


def chromium():
    """The system's browser; without it nothing can be printed."""
    return found_chromium() or sys.exit("no Chromium on this machine: it prints the PDF")


def first_pages(path, chapters):
    """Key of each chapter -> number of the page on which it begins."""
    reader = pypdf.PdfReader(path)
    places = reader.named_destinations
    destinations = {key.lstrip("/"): place for key, place in places.items()}
    keys = [page.key for page in chapters if page.key in destinations]
    return {key: reader.get_destination_page_number(destinations[key]) + 1 for key in keys}


def lay_out(browser, source):
    """A tab with the file `source`, as wide as the text on paper."""
    tab = browser.new_page(viewport={"width": TEXT_WIDTH, "height": 1000})
    tab.set_default_timeout(PATIENCE)
    tab.emulate_media(media="print")
    tab.goto(source.as_uri(), wait_until="load")
    tab.evaluate("document.fonts.ready.then(() => 0)")
    tab.add_script_tag(path=HERE / "print.js")
    return tab


def print_twice(browser, source, target, chapters):
    """Let Chromium print the file `source` to `target`, the second time with page numbers."""
    tab = lay_out(browser, source)
    tab.evaluate("fit()")
    tab.pdf(path=target, **PAGE)
    tab.evaluate("number", first_pages(target, chapters))
    tab.pdf(path=target, tagged=True, outline=True, **PAGE)
    tab.close()


def finish(target, document):
    """Write into the printed file whose it is and when it was made, mend its bookmarks, pack it.

    Chromium leaves out the space of a heading where its line breaks. Three fifths of what it prints
    is the tree of tags for screen readers, as tens of thousands of small objects in plain text.
    """
    titles = {}
    for heading in document.iter("h1", "h2", "h3", "h4", "h5", "h6"):
        text = volume.text_of(heading)
        titles["".join(text.split())] = text
    made = time.strftime("D:%Y%m%d%H%M%SZ", build_time())
    with pikepdf.open(target, allow_overwriting_input=True) as printed:
        queue = [printed.Root.Outlines] if "/Outlines" in printed.Root else []
        while queue:
            item = queue.pop()
            title = "".join(str(item.get("/Title", "")).split())
            if title in titles:
                item.Title = pikepdf.String(titles[title])
            queue += [item[name] for name in ("/First", "/Next") if name in item]
        for name, value in (("Author", volume.AUTHOR), ("CreationDate", made), ("ModDate", made)):
            printed.docinfo[f"/{name}"] = value
        packed = pikepdf.ObjectStreamMode.generate
        printed.save(target, object_stream_mode=packed, deterministic_id=True)


def write(site, target, names=(), *, browser):
    """Print the site in the folder `site` to `target`; returns the chapters that it holds."""
    chapters = volume.read(site, names)
    document = assemble(site, chapters)
    source = target.with_suffix(".print.html")
    volume.save(document, source)
    try:
        print_twice(browser, source, target, chapters)
    finally:
        source.unlink()
    finish(target, document)
    return chapters


def main():
    """Command line."""
    from playwright.sync_api import sync_playwright

    options = volume.options("Print the built site as one PDF.", "dpnotes.pdf")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        write(options.site, options.out, options.pages, browser=browser)
        browser.close()
    size = options.out.stat().st_size
    print(f"Open {options.out} ({size / 1e6:.1f} MB)")
    if size > LARGEST:
        sys.exit(f"it is larger than {LARGEST / 1e6:.0f} MB, which mail does not carry")


if __name__ == "__main__":
    main()
