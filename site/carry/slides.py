"""A lecture deck for each chapter, cut by rule from the pages of the built site.

    PYTHONPATH=site python -m carry.slides      _build/html -> _build/slides

And one for each date of the plan (`plan.yml`): the sections that it shows, its exercises.

A deck has, in the page's order: the title with the question it begins with (or, if an earlier date
began the chapter, with the sections to come); each statement, its proof one key away if it follows
at once; each figure and each cell with its output, and the sentence that reads it; each table but
long ones; each exercise, its hint one key away. Other prose stays on the page, for the lecturer.
"""

import copy
import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from lxml import html
from lxml.html.builder import E

import course
from carry import volume
from carry.volume import SHEETS, has_class, text_of

HERE = Path(__file__).resolve().parent
LINES = 20  # estimated lines of the page's text that one slide holds, made smaller if need be
CODE_LINES = 24
TABLE_WORDS = 150
LONG_SENTENCE = 45  # words
SETTING_UP = re.compile(r"\s*$|import |from |rng = ")
SENTENCE_END = re.compile(r"[.?!](?=\s|$)")


@dataclass
class Slide:
    """What is shown at one time, under which heading, and the proof behind it."""

    heading: str
    parts: list
    kind: str
    proof: list = field(default_factory=list)


def blocks(section, heading):
    """(heading, block) for everything on the page in order; sections are entered."""
    for child in section:
        if child.tag == "section":
            title = child.find("./*[1]")
            yield from blocks(child, text_of(title) if title.tag in ("h2", "h3") else heading)
        elif child.tag not in ("h1", "h2", "h3", "span"):
            yield heading, child


def slides_of(page, opening=None):
    """All slides of a page; the title slide has the page's question if it is not told otherwise."""
    flow = list(blocks(page.article, ""))
    if opening is None:
        opening = next((block for _, block in flow if block.tag == "p"), None)
    parts = [E.p({"class": "part"}, page.part), E.h1(page.title)]
    parts += [copy.deepcopy(opening)] if opening is not None else []
    slides = [Slide("", parts, "title")]
    for place, (heading, block) in enumerate(flow):
        if "proof" in block.classes:
            slides += statement(heading, block, following_proof(flow, place))
        elif "exercise" in block.classes:
            slides += statement(heading, block, following_proof(flow, place), "exercise")
        elif "cell" in block.classes:
            slides += cell(heading, block, sentence_beside(flow, place))
        elif "dpn-slider" in block.classes:
            slides.append(Slide(heading, [copy.deepcopy(block)], "figure"))
        elif "pst-scrollable-table-container" in block.classes and fits(block):
            slides.append(Slide(heading, [copy.deepcopy(block)], "table"))
    return slides


def of_date(date, pages, begun=frozenset()):
    """The slides of one date of the plan; a page that is not there is left out.

    The pages that are `begun` have shown their question at an earlier date.
    """
    slides = []
    for name in [name for name in date["show"] if name in pages]:
        page = replace(pages[name], article=copy.deepcopy(pages[name].article))
        for section in page.article.xpath(".//section[h2]"):
            if title_of(section) == "Exercises":
                for asked in section.xpath(f"./div[{has_class('exercise')}]"):
                    if not any(name in text_of(asked[0]) for name in date["class"]):
                        asked.drop_tree()
            elif title_of(section) not in date["show"][name]:
                section.drop_tree()
        for section in page.article.xpath(f".//section[{has_class('second-reading')}][h3]"):
            section.drop_tree()
        now = E.ul(*(E.li(title) for title in date["show"][name]))
        slides += slides_of(page, now if name in begun else None)
    return slides


def title_of(section):
    """As the plan writes it."""
    return text_of(section[0]).removesuffix(course.STAR).replace("’", "'")


def fits(table):
    """Can it be read on a slide? A table of sentences stays on the page."""
    return len(text_of(table).split()) <= TABLE_WORDS


def following_proof(flow, place):
    """The folded blocks right after a statement: its proofs, or the hint of an exercise."""
    proofs = []
    for _, block in flow[place + 1 :]:
        if block.tag != "details" or "solution" in block.classes or "question" in block.classes:
            break
        proofs.append(copy.deepcopy(block))
    return proofs


def statement(heading, block, proof, kind="statement"):
    """A definition, claim, remark or exercise; one too long for a slide goes on on the next."""
    block = copy.deepcopy(block)
    body = block.find("./section")
    body = block if body is None else body
    rest, pages = [child for child in body if "admonition-title" not in child.classes], [[]]
    for child in rest:
        if pages[-1] and sum(map(lines, pages[-1])) + lines(child) > LINES:
            pages.append([])
        pages[-1].append(child)
    title = block.find("./p")
    slides = []
    for number, content in enumerate(pages):
        shell = html.Element("div", {"class": block.get("class")})
        if not number and block.get("id"):
            shell.set("id", block.get("id"))
        head = copy.deepcopy(title)
        head.tail = None
        shell.append(head)
        if number:
            head.append(E.span(" continued"))
        shell.extend(content)
        slides.append(Slide(heading, [shell], kind, proof))
    return slides


def lines(element):
    """About how many lines an element takes."""
    if "math-block" in element.classes:
        return 1 + 2 * max(1, len(element.xpath(".//mtable/mtr")))
    if element.tag in ("ul", "ol", "dl", "div", "section"):
        return sum(map(lines, element))
    words = "".join(element.xpath(".//text()[not(ancestor::annotation) and not(ancestor::math)]"))
    return 0.4 + -(-len(words) // 68)


def cell(heading, block, sentence):
    """A figure, or code with what it printed, under the sentence that reads it."""
    code = block.xpath(f"./div[{has_class('cell_input')}]")
    output = block.xpath(f"./div[{has_class('cell_output')}]")
    shown = [line for part in code for line in part.xpath("string()").splitlines()]
    if not output and all(map(SETTING_UP.match, shown)):
        return []
    code, output = copy.deepcopy(code), copy.deepcopy(output)
    if not code:
        return [Slide(heading, [*output, *sentence], "figure")]
    height = [part.xpath("string()").count("\n") for part in code + output]
    if len(height) > 1 and sum(height) > CODE_LINES:
        return [Slide(heading, code, "cell"), Slide(heading, [*output, *sentence], "cell")]
    return [Slide(heading, [*code, *output, *sentence], "cell")]


def sentence_beside(flow, place):
    """The beginning of the paragraph after a cell, or else of the one before it, in its section."""
    near = [flow[n] for n in (place + 1, place - 1) if 0 <= n < len(flow)]
    for heading, block in near:
        reads = len(text_of(block).split()) > 5 and text_of(block).rstrip(")”").endswith(".")
        if heading == flow[place][0] and block.tag == "p" and reads:  # not what leads further
            sentence = copy.deepcopy(block)
            shorten(sentence)
            sentence.set("class", "sentence")
            return [sentence]
    return []


def shorten(paragraph):
    """Cut a long paragraph after the first sentence that ends it well."""
    if len(text_of(paragraph).split()) <= LONG_SENTENCE:
        return
    places = [(paragraph, "text"), *((child, "tail") for child in paragraph)]
    for number, (element, where) in enumerate(places):
        text = getattr(element, where) or ""
        end = SENTENCE_END.search(text)
        if end:
            setattr(element, where, text[: end.end()])
            for child in list(paragraph)[number:]:
                paragraph.remove(child)
            return


def deck(slides, page, title):
    """One deck as an HTML document."""
    main = E.main({"class": "bd-article"})
    for number, slide in enumerate(slides, 1):
        box = E.section(
            {"class": f"slide {slide.kind}", "id": f"{number}", "aria-label": f"{number}"}
        )
        if slide.heading:
            box.append(E.h2(slide.heading))
        box.append(E.div({"class": "content"}, *slide.parts))
        if slide.proof:
            box.append(E.div({"class": "behind", "hidden": "hidden"}, *slide.proof))
        note = ("P: hint" if slide.kind == "exercise" else "P: proof") if slide.proof else ""
        box.append(E.footer(E.span(page.title), E.span(note), E.span(f"{number} / {len(slides)}")))
        main.append(box)
    for fold in main.xpath(f".//div[{has_class('behind')}]//details"):
        fold.set("open", "open")
    return document(
        f"{page.title} — {title}", main, E.script(src="assets/slides.js", defer="defer")
    )


def document(title, main, *scripts):
    """Head and body around `main`."""
    names = [Path(sheet).name for sheet in (*SHEETS, "slides.css")]
    sheets = [E.link(rel="stylesheet", href=f"assets/{name}") for name in names]
    view = E.meta(name="viewport", content="width=device-width, initial-scale=1")
    head = E.head(E.meta(charset="utf-8"), view, E.title(title), *sheets, *scripts)
    return E.html({"lang": "en", "data-theme": "light"}, head, E.body(main))


def mend_links(decks):
    """A link to something that is on a slide leads there; others become plain text."""
    homes = {}  # the deck of a chapter, if there is one
    for key in sorted(decks, key=lambda key: not key.startswith("date-")):
        homes |= dict.fromkeys(decks[key].xpath("//@id"), key)
    for key, tree in decks.items():
        own = set(tree.xpath("//@id"))
        for link in tree.xpath("//a[starts-with(@href, '#')]"):
            name = link.get("href")[1:]
            home = key if name in own else homes.get(name)
            if home is None:
                volume.unlink(link)
            elif home != key:
                link.set("href", f"{home}.html{link.get('href')}")


def once(tree):
    """A proof that stands behind two slides of one statement keeps its ids on the first only."""
    seen = set()
    for element in tree.xpath("//*[@id]"):
        if element.get("id") in seen:
            del element.attrib["id"]
        else:
            seen.add(element.get("id"))


def copy_assets(site, target):
    """Style sheets, fonts and the script, all beside the decks."""
    target.mkdir(parents=True)
    for sheet in SHEETS:
        shutil.copy(site / "_static" / sheet, target)
    shutil.copytree(site / "_static" / "katex" / "fonts", target / "fonts")
    for name in ("slides.css", "slides.js"):
        shutil.copy(HERE / name, target)


def write(site, target, pages):
    """Write the decks of those `pages` that are lectures into the folder `target`."""
    shutil.rmtree(target, ignore_errors=True)
    copy_assets(site, target / "assets")
    pages = [page for page in pages if is_lecture(page)]
    title = volume.book_title(site)
    decks = {page.key: deck(slides_of(page), page, title) for page in pages}
    known, titles = {page.name: page for page in pages}, {page.key: page.title for page in pages}
    begun = set()
    for number, date in enumerate(course.plan(), 1):
        slides = of_date(date, known, begun)
        begun |= set(date["show"])
        if slides:
            shown = "; ".join(known[name].title for name in date["show"] if name in known)
            page = replace(pages[0], title=f"Date {number}: {shown}")
            titles[f"date-{number:02}"] = page.title
            decks[f"date-{number:02}"] = deck(slides, page, title)
    for tree in decks.values():
        once(tree)
    mend_links(decks)
    items = [E.li(E.a({"href": f"{key}.html"}, text)) for key, text in titles.items()]
    keys = E.p("Arrow keys turn the slides, P shows the proof or hint, printing gives a PDF.")
    start = E.main({"class": "bd-article index"}, E.h1(title), keys, E.ul(*items))
    for name, tree in {**decks, "index": document(title, start)}.items():
        volume.save(tree, target / f"{name}.html")
    return decks


def is_lecture(page):
    """A page with statements and with cells that ran."""
    return all(
        page.article.xpath(f".//div[{has_class(name)}]") for name in ("proof", "cell_output")
    )


def main():
    """Command line."""
    options = volume.options("Cut lecture decks from the built site.", "slides")
    decks = write(options.site, options.out, volume.read(options.site, options.pages))
    print(f"{len(decks)} decks. Open {options.out / 'index.html'}")


if __name__ == "__main__":
    main()
