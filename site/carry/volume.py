"""The pages of the built site as one text: what the PDF and the slides are made from.

Nothing is executed again. Each page's article is taken from the finished HTML, without what only a
screen can use. Ids and links get the page's name in front, so that all pages fit into one file.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from lxml import html
from lxml.html import HtmlElement

from surroundings import ROOT

AUTHOR = "The dpnotes authors"
SHEETS = ("katex/katex.css", "pygments.css", "dpnotes.css")
SCREEN_ONLY = """
    .//script | .//style | .//link | .//noscript
    | .//button | .//form | .//input | .//select | .//textarea | .//iframe
    | .//template | .//comment() | .//*[@hidden]
    | .//*[contains(@class, "run-bar") or contains(@class, "run-cannot")]
    | .//*[contains(@class, "dpn-slider-controls")] | .//svg[@data-size="narrow"]
    | .//*[contains(@class, "screen-only") or contains(@class, "d-print-none")]
    | .//a[contains(@class, "headerlink")] | .//*[contains(@class, "toctree-wrapper")]
"""
LOCAL = re.compile(r"url\(['\"]?#([^'\")]+)['\"]?\)")
REFERRING = ("aria-labelledby", "aria-describedby", "aria-controls", "for", "headers")


@dataclass
class Chapter:
    """One page: its name in the site, its place in the book, its text."""

    name: str  # "pure-dp", "assignments/laplace"
    part: str  # caption of its part; empty for the first page
    title: str  # with its number
    path: Path
    article: HtmlElement

    @property
    def key(self):
        """The name as the beginning of an id."""
        return self.name.replace("/", "-")

    @property
    def number(self):
        """The chapter's number as text; empty if it has none."""
        match = re.match(r"(\d+)\. ", self.title)
        return match[1] if match else ""


def text_of(element):
    """Its words in one line."""
    return " ".join(element.xpath("string()").split())


def has_class(name):
    """An XPath condition: the element has this class."""
    return f'contains(concat(" ", normalize-space(@class), " "), " {name} ")'


def contents(site):
    """(part, path) of the pages, in the order of the site's own table of contents."""
    start = (site / "index.html").read_text(encoding="utf-8")
    moved = re.search(r'url=([^"]+)"', start)
    first = site / (moved[1] if moved else "index.html")
    pages, part = [("", first)], ""
    for item in (
        html.parse(str(first))
        .getroot()
        .xpath(f"//nav[{has_class('bd-links')}]//*[{has_class('caption-text')} or self::a]")
    ):
        if item.tag != "a":
            part = text_of(item)
        elif not urlsplit(item.get("href")).scheme and item.get("href") != "#":
            pages.append((part, (first.parent / item.get("href")).resolve()))
    return pages


def book_title(site):
    """The title of the book, as the site's pages have it."""
    root = html.parse(str(contents(site)[0][1])).getroot()
    return root.findtext(".//title").rpartition(" — ")[2]


def read(site, names=()):
    """The pages of the site in the folder `site` (all, or those in `names`), links rewritten."""
    listed = contents(site)
    home = listed[0][1].parent
    names_of = {path: path.relative_to(home).with_suffix("").as_posix() for _, path in listed}
    keys = {path: name for path, name in names_of.items() if not names or name in names}
    return [chapter(part, path, keys) for part, path in listed if path in keys]


def chapter(part, path, keys):
    """Read one page. `keys` maps the files of the book to their names."""
    root = html.parse(str(path), html.HTMLParser(encoding="utf-8")).getroot()
    article = root.find(".//article")
    for useless in article.xpath(SCREEN_ONLY):
        useless.drop_tree()
    heading = article.find(".//h1")
    page = Chapter(keys[path], part, text_of(heading), path, article)
    rename(article, page.key)
    for link in article.iter("a"):
        retarget(link, path, page.key, keys)
    heading.set("id", page.key)
    return page


def rename(article, key):
    """Put the page's name before every id, and before every reference to one inside the page."""
    for element in article.iter():
        if not isinstance(element.tag, str):
            continue
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, f"{key}--{value}")
            elif name in REFERRING:
                element.set(name, " ".join(f"{key}--{one}" for one in value.split()))
            elif name == "xlink:href" and value.startswith("#"):
                element.set(name, f"#{key}--{value[1:]}")
            elif "url(" in value:
                element.set(name, LOCAL.sub(rf"url(#{key}--\1)", value))


def retarget(link, path, key, keys):
    """A link into the book leads to its place in it; one to another file of the site goes away."""
    address = link.get("href")
    if address is None or urlsplit(address).scheme:
        return
    file, place = urldefrag(address)
    target = (path.parent / unquote(file)).resolve() if file else path
    if target in keys:
        name = keys[target].replace("/", "-")
        link.set("href", f"#{name}--{place}" if place else f"#{name}")
    else:
        unlink(link)


def unlink(link):
    """Leave the words of a link that leads nowhere any more."""
    link.tag = "span"
    for name in ("href", "download", "target", "rel"):
        link.attrib.pop(name, None)


def open_everything(article):
    """Folded blocks become plain ones; code that only draws a figure is left out."""
    for fold in list(article.iter("details")):
        if "hide" in fold.get("class", "").split():
            fold.drop_tree()
            continue
        fold.tag = "div"
        fold.set("class", f"{fold.get('class', '')} unfolded".strip())
        for line in fold.findall("summary"):
            line.tag = "p"


def missing_targets(chapters):
    """Links of the assembled book that lead nowhere; there must be none in a whole one."""
    ids = {i for page in chapters for i in page.article.xpath(".//@id")}
    links = [(page.name, a) for page in chapters for a in page.article.xpath(".//a/@href")]
    return [(name, a) for name, a in links if a.startswith("#") and a[1:] not in ids]


def save(tree, path):
    """Write a document as a file of HTML."""
    text = html.tostring(tree, doctype="<!DOCTYPE html>", encoding="unicode")
    path.write_text(text, encoding="utf-8")


def _path(text):
    return Path(text).resolve()


def options(description, result):
    """The command line of what is made from the site: where it is, where the result goes, pages."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--site", type=_path, default=ROOT / "_build" / "html")
    parser.add_argument("--out", type=_path, default=ROOT / "_build" / result)
    parser.add_argument("--pages", nargs="+", default=[], help="names of pages (default: all)")
    return parser.parse_args()
