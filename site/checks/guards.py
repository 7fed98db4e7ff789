"""What a built site must not contain. Each guard looks at the finished HTML and returns faults.

A guard gets the pages of the site as `Page` objects and yields sentences that name the page and
the thing; no sentence, no fault. `check_site` runs them all.
"""

import functools
import re
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import html

LOADING = """
    //audio/@src | //embed/@src | //form/@action | //iframe/@src | //img/@src | //img/@srcset
    | //input/@src | //object/@data | //script/@src | //source/@src | //source/@srcset
    | //track/@src | //video/@src | //video/@poster | //image/@href | //use/@href
    | //*[local-name()="image" or local-name()="use"]/@*[name()="xlink:href"]
"""
LOADING_RELS = set(
    "stylesheet preload prefetch modulepreload icon preconnect dns-prefetch manifest".split()
)
CODE = "pre code script style textarea title annotation".split()
READ = f"//text()[normalize-space() and not({' or '.join(f'ancestor::{tag}' for tag in CODE)})]"
UNDESCRIBED = """
    //img[not(normalize-space(@alt))]
    | //svg[not(normalize-space(@aria-label)) and not(@aria-hidden="true")
            and not(ancestor::*[@aria-hidden="true" or @role="img"])]
"""
# Formulas that a screen reader reads wrong: `\min` as an index makes two parts of it.
MISCOUNTED = """
    //*[self::mfrac or self::msub or self::msup or self::munder or self::mover or self::mroot]
        [count(*) != 2]
    | //*[self::msubsup or self::munderover][count(*) != 3]
"""
ERRORS = ("katex-error", "tex-error", "problematic", "system-message")
FOREIGN = re.compile(r"^(?:https?:)?//", re.I)
RAW_TEX = re.compile(
    r"\$|\\\(|\\\[|\\begin\{|\\[a-zA-Z]{2,}\b|\{(?:prf:ref|eq|ref|cite:?[a-z]*|numref|term|doc)\}"
)
SECRETS = re.compile(r"(?:BEGIN|END) (?:HIDDEN TESTS|SOLUTION)")


class Page:
    """The facts of one page that guards ask for."""

    def __init__(self, path, site):
        self.name, self.path = path.relative_to(site).as_posix(), path
        self.source = path.read_text(encoding="utf-8")
        root = html.document_fromstring(self.source)
        texts = functools.partial(
            root.xpath, smart_strings=False
        )  # that do not hold the whole tree
        self.ids = Counter(texts("//@id"))
        self.links = texts("//a/@href")
        self.text = texts(READ)
        self.loads = texts(LOADING)
        for link in root.xpath("//link[@rel]"):
            if LOADING_RELS & set(link.get("rel").lower().split()):
                self.loads.append(link.get("href", ""))
        for style in texts("//@style[contains(., 'url')]"):
            self.loads += re.findall(r"url\(['\"]?([^'\")]+)", style)
        self.undescribed = [
            f"<{image.tag} src={image.get('src', '')[:60]!r}>" if image.tag == "img" else "<svg>"
            for image in root.xpath(UNDESCRIBED)
        ]
        self.errors = [
            f"<{tag.tag} class={tag.get('class')!r}>"
            for name in ERRORS
            for tag in root.find_class(name)
        ]
        self.errors += [
            f"the parts of {''.join(part.xpath('ancestor::semantics/annotation/text()'))!r}"
            for part in root.xpath(MISCOUNTED)
        ]


def foreign_loads(pages):
    """No page may make a request to another host: readers are not reported to anyone."""
    for page in pages:
        for url in page.loads:
            if FOREIGN.match(url):
                yield f"{page.name}: loads {url}"


def foreign_loads_of_assets(pages, site):
    """Nor may a style sheet (url, import) or an inline or shipped script (import, src, fetch)."""
    css = re.compile(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")\s]+)", re.I)
    script = re.compile(
        r"(?:import\s*\(?|from\s|fetch\(|importScripts\(|Worker\(|register\(|src\s*=|\.open\([^)]*,)"
        r"\s*['\"`]((?:https?:)?//[^'\"`]+)",
        re.I,
    )
    for path in sorted(path for path in site.rglob("*") if path.suffix in {".css", ".js", ".mjs"}):
        known = css if path.suffix == ".css" else script
        for url in known.findall(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: loads {url}"
    for page in pages:
        for known, tag in ((script, "script"), (css, "style")):
            inline = "\n".join(re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", page.source, re.S))
            yield from (f"{page.name}: loads {url}" for url in known.findall(inline))


def addresses_in_runner(site):
    """What runs cells, and what answers without network, name no other host at all."""
    own = [path for path in (site / "_run").rglob("*") if path.suffix in {".js", ".py", ".css"}]
    for path in sorted([*own, *site.glob("sw.js")]):
        for url in re.findall(r"(?:https?|wss?)://[^\s'\"`)]+", path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(site)}: names {url}"


def undescribed_images(pages):
    """Whoever cannot see a figure is told what it shows."""
    for page in pages:
        yield from (f"{page.name}: no description: {image}" for image in page.undescribed)


def cells_not_shipped(pages, site):
    """A page with buttons for its cells needs the file of its cells."""
    for page in pages:
        file = Path("_run/cells", page.name).with_suffix(".json")
        if 'class="run-bar"' in page.source and not (site / file).exists():
            yield f"{page.name}: has cells to run, and {file.as_posix()} is missing"


def raw_tex(pages):
    """TeX or a role that reached the reader as text: `$$` glued to a word, a misspelt fence."""
    for page in pages:
        for text in page.text:
            match = RAW_TEX.search(text)
            if match:
                around = text[max(0, match.start() - 30) : match.end() + 30]
                yield f"{page.name}: unrendered {match[0]!r} in {' '.join(around.split())!r}"
        yield from (f"{page.name}: an error shows in the page: {error}" for error in page.errors)


def places_in_memory(pages):
    """`<function f at 0x7f...>` tells a reader nothing, and is another one in each build."""
    for page in pages:
        for place in re.findall(r"\b0x[0-9a-f]{8,}", page.source):
            yield f"{page.name}: shows {place!r}"


def duplicate_ids(pages):
    """A link to an id must have one place to go to."""
    for page in pages:
        yield from (
            f"{page.name}: id {name!r} occurs {n} times" for name, n in page.ids.items() if n > 1
        )


def broken_links(pages):
    """Links and files inside the site exist, anchors too."""
    ids = {page.path.resolve(): page.ids for page in pages}
    for page in pages:
        for link in dict.fromkeys(page.links + page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or (link.startswith("#") and len(link) < 2):
                continue
            path = page.path.parent / unquote(parts.path) if parts.path else page.path
            target = path.resolve()
            if not target.exists():
                yield f"{page.name}: {link} leads nowhere"
            elif parts.fragment and target in ids and unquote(parts.fragment) not in ids[target]:
                yield f"{page.name}: {link} names a place that does not exist"


def leaked_sources(site):
    """Solutions and hidden tests of assignments never reach the site, nor do `_sources`."""
    if (site / "_sources").exists():
        yield "_sources/: the site publishes raw sources"
    for path in sorted(site.rglob("*")):
        if path.parent.name == "_search":  # the pages again, without their code
            continue
        published = path.suffix in {".html", ".md", ".ipynb", ".json", ".js", ".txt"}
        if published and "_static" not in path.parts:
            match = SECRETS.search(path.read_text(encoding="utf-8", errors="replace"))
            if match:
                yield f"{path.relative_to(site)}: contains {match[0]!r}"


def check_site(site, partial=False):
    """All faults of a built site; a partial one may have links to pages that were not built."""
    paths = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    with ProcessPoolExecutor() as pool:
        pages = list(pool.map(functools.partial(Page, site=site), paths))
    return [
        *([] if pages else [f"no pages in {site}"]),
        *foreign_loads(pages),
        *foreign_loads_of_assets(pages, site),
        *addresses_in_runner(site),
        *cells_not_shipped(pages, site),
        *undescribed_images(pages),
        *raw_tex(pages),
        *places_in_memory(pages),
        *duplicate_ids(pages),
        *leaked_sources(site),
        *([] if partial else broken_links(pages)),
    ]
