"""What is made from the built site: PDF, slides, status; what speaks of the repository.

A few small pages are printed and checked, the whole book is only assembled. Needs the site (`make
book`); what needs Chromium is skipped where it is missing.
"""

import io
import re
from importlib import metadata

import pypdf
import pytest
from docutils import nodes
from lxml import html
from sphinx.application import Sphinx
from sphinx.util import docutils

from carry import pdf, slides, volume
from machine import SITE, new_tab
from pages import ledger, status

PRINTED = ("intro", "jumps")
SCREEN = {"width": 1280, "height": 720}
SMALLEST_TYPE = 15  # px on 1280 x 720, in the text of a slide


@pytest.fixture(scope="module")
def book():
    """Every page of the site."""
    return volume.read(SITE)


# ---- one text from all pages ----


def test_the_volume_has_every_page_in_order(book):
    assert [page.name for page in book] == ledger.chapters()
    assert book[0].part == "" and all(page.part for page in book[1:])
    assert [page.number for page in book if page.number] == [
        str(n) for n in range(1, 1 + sum(bool(page.number) for page in book))
    ]


def test_links_of_the_volume_lead_to_one_place(book):
    assert volume.missing_targets(book) == []
    ids = [name for page in book for name in page.article.xpath(".//@id")]
    assert len(ids) == len(set(ids))


def test_only_text_is_left(book):
    for page in book:
        tags = {element.tag for element in page.article.iter()}
        assert not tags & {"script", "button", "input", "form", "link", "style"}, page.name
        for address in page.article.xpath(".//a/@href"):
            assert address.startswith(("#", "http")), f"{page.name}: {address}"


def test_a_missing_target_is_found(book):
    page = volume.Chapter(
        "planted", "", "Planted", SITE, html.fromstring("<p><a href='#no'>x</a></p>")
    )
    assert volume.missing_targets([*book, page]) == [("planted", "#no")]


# ---- PDF ----


@pytest.fixture(scope="module")
def printed(browser, tmp_path_factory):
    """Three pages as PDF, made at a given time: what pypdf reads, and the chapters."""
    target = tmp_path_factory.mktemp("pdf") / "book.pdf"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        chapters = pdf.write(SITE, target, PRINTED, browser=browser)
    return pypdf.PdfReader(target), chapters


def tags(reader):
    """(kind, description) of every element of the document's structure."""
    stack = [reader.trailer["/Root"]["/StructTreeRoot"]["/K"]]
    while stack:
        node = stack.pop().get_object()
        if isinstance(node, list):
            stack += node
        elif isinstance(node, dict):
            yield str(node.get("/S", "")), str(node.get("/Alt", ""))
            stack += [node["/K"]] if "/K" in node else []


def test_the_pdf_is_tagged_and_says_what_it_is(printed):
    reader, chapters = printed
    root = reader.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"] == "en"
    assert reader.metadata.title == volume.book_title(SITE)
    assert reader.metadata.author == volume.AUTHOR
    assert reader.metadata.creation_date_raw == "D:20231114221320Z"
    found = list(tags(reader))
    kinds, described = {kind for kind, _ in found}, {text for _, text in found if text}
    assert {"/H1", "/H2", "/P", "/Link", "/Figure"} <= kinds
    figures = {svg.get("aria-label") for page in chapters for svg in page.article.iter("svg")}
    formulas = {
        span.get("aria-label")
        for page in chapters
        for span in page.article.xpath(f".//span[{volume.has_class('katex')}]")
    }
    assert formulas <= described and figures - {None} <= described


def test_the_pdf_is_packed_and_nothing_is_lost(browser, tmp_path):
    """The tags for screen readers are most of what Chromium prints, one by one as text."""
    tab = browser.new_page()
    text = "<h1>Title</h1>" + "<p>A <em>word</em> and <a href='#x'>a link</a>.</p>" * 999
    tab.set_content(text)
    plain, target = tab.pdf(tagged=True, outline=True), tmp_path / "packed.pdf"
    tab.close()
    target.write_bytes(plain)
    pdf.finish(target, html.fromstring(text))
    small = target.read_bytes()
    assert len(small) < len(plain) / 3
    before, after = (pypdf.PdfReader(io.BytesIO(one), strict=True) for one in (plain, small))
    assert [p.extract_text() for p in before.pages] == [p.extract_text() for p in after.pages]
    for reader in (before, after):
        assert reader.root_object["/StructTreeRoot"] and reader.outline[0].title == "Title"


def test_the_pdf_has_bookmarks_and_links_that_lead_somewhere(printed):
    reader, chapters = printed
    places, links, titles = reader.named_destinations, 0, []
    for page in reader.pages:
        for note in (one.get_object() for one in page.get("/Annots") or ()):
            if "/Dest" in note:
                assert str(note["/Dest"]) in places
                links += 1
            else:
                assert str(note["/A"]["/URI"]).startswith("http")
    assert links > 5

    def walk(items):
        for item in items:
            walk(item) if isinstance(item, list) else titles.append(item.title)

    walk(reader.outline)
    headings = [volume.text_of(one) for page in chapters for one in page.article.xpath(".//h2")]
    assert headings and set(headings) <= set(titles)


def test_the_contents_name_the_page_on_which_a_chapter_begins(printed):
    reader, chapters = printed
    contents = reader.pages[1].extract_text()
    for page in chapters:
        number = int(re.search(rf"{re.escape(page.title)} ?(\d+)\n", contents + "\n")[1])
        assert page.title.split()[-1] in reader.pages[number - 1].extract_text()
    assert len(reader.pages) < 40


def test_the_pdf_has_statements_proofs_solutions_and_no_controls(printed):
    text = " ".join(" ".join(page.extract_text() for page in printed[0].pages).split())
    words = re.sub(r"\s", "", text)
    for expected in ("Theorem", "Proof", "Solution", "Exercise"):
        assert expected in text
    for control in ("Show code", "Hide code", "Run all above", "Skip to main", "On this page"):
        assert control.replace(" ", "") not in words


# ---- slides ----


@pytest.fixture(scope="module")
def decks(book, tmp_path_factory):
    """All decks, and the folder that they are in."""
    folder = tmp_path_factory.mktemp("slides") / "decks"
    return slides.write(SITE, folder, book), folder


def test_every_chapter_has_a_deck_with_its_statements(book, decks):
    made, folder = decks
    chapters = {page.key for page in book if page.number}
    assert chapters - set(made) == {"calculator", "practice"}, "they state nothing"
    for page in book:
        if page.key not in made:
            continue
        name = volume.has_class("proof")
        stated = page.article.xpath(f".//div[{name}]/@id")
        shown = made[page.key].xpath(f"//div[{name}]/@id")
        assert stated and shown == stated, page.name
    index = html.parse(str(folder / "index.html")).getroot()
    assert [f"{key}.html" for key in made] == index.xpath("//li/a/@href")


def test_links_of_the_decks_lead_somewhere(decks):
    made, _ = decks
    ids = {key: set(tree.xpath("//@id")) for key, tree in made.items()}
    for key, tree in made.items():
        for link in tree.xpath("//a/@href"):
            file, _, place = link.partition("#")
            if not file.startswith("http"):
                assert place in ids[file.removesuffix(".html") or key], f"{key}: {link}"


MEASURE = """() => slides.map((slide) => {
  slide.classList.add("measured");
  const content = slide.querySelector(".content");
  const edge = slide.getBoundingClientRect();
  const blocks = "p, li, pre, table, figure, .math-block, .math-block .katex, .admonition";
  const out = [...content.querySelectorAll(blocks)].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.bottom > edge.bottom || box.right > edge.right + 1;
  }).map((e) => e.className || e.tagName);
  const type = parseFloat(getComputedStyle(content).fontSize);
  const found = {id: slide.id, out, type, scrolls: slide.classList.contains("scrolls")};
  slide.classList.remove("measured");
  return found;
})"""


@pytest.mark.parametrize("fullest", [1, pytest.param(3, marks=pytest.mark.thorough)])
def test_no_slide_overflows_and_its_type_is_readable(browser, decks, fullest):
    """Of the fullest deck; of three once a week."""
    made, folder = decks
    heights = {
        key: max(sum(map(slides.lines, box)) for box in tree.xpath("//div[@class='content']/div"))
        for key, tree in made.items()
    }
    tab = new_tab(browser, viewport=SCREEN)
    faults = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("request", lambda r: r.url.startswith("file:") or faults.append(r.url))
    tab.on("requestfailed", lambda r: faults.append(f"failed: {r.url}"))
    for key in sorted(heights, key=heights.get)[-fullest:]:
        tab.goto((folder / f"{key}.html").as_uri())
        tab.wait_for_selector(".now")
        tab.wait_for_function("document.fonts.status === 'loaded'")
        for slide in tab.evaluate(MEASURE):
            assert not slide["out"] and not slide["scrolls"], f"{key} {slide}"
            assert slide["type"] >= SMALLEST_TYPE, f"{key} {slide}"
    assert faults == []
    tab.context.close()


@pytest.fixture
def deck(request, browser, decks):
    """A tab with the deck of a short chapter."""
    tab = new_tab(browser, viewport=SCREEN, **getattr(request, "param", {}))
    tab.goto((decks[1] / "jumps.html").as_uri())
    yield tab
    tab.context.close()


def test_a_deck_prints_one_slide_a_page(deck, tmp_path):
    deck.wait_for_selector(".now")
    deck.pdf(path=tmp_path / "deck.pdf", prefer_css_page_size=True)
    pages = pypdf.PdfReader(tmp_path / "deck.pdf").pages
    assert len(pages) == deck.locator(".slide").count()
    assert pages[0].mediabox.width / pages[0].mediabox.height == pytest.approx(16 / 9, rel=0.01)


def test_keys_turn_the_slides_and_show_a_proof(deck):
    deck.wait_for_selector(".now")
    last = deck.locator(".slide").count()
    for key, number in (("ArrowRight", 2), (" ", 3), ("ArrowLeft", 2), ("End", last), ("Home", 1)):
        deck.keyboard.press(key)
        assert deck.locator(".now").get_attribute("id") == str(number)
        assert deck.locator(".now > footer").inner_text().endswith(f"{number} / {last}")
    target = deck.locator(".slide:has(.behind)").first.get_attribute("id")
    deck.evaluate("(place) => { location.hash = place; }", target)
    deck.wait_for_selector(f".slide.now[id='{target}']")
    proof, statement = deck.locator(".now .behind"), deck.locator(".now .content")
    assert statement.is_visible() and not proof.is_visible()
    deck.keyboard.press("p")
    assert proof.is_visible() and not statement.is_visible()
    deck.keyboard.press("p")
    assert statement.is_visible() and not proof.is_visible()


@pytest.mark.parametrize("deck", [{"java_script_enabled": False}], indirect=True)
def test_slides_are_all_there_without_javascript(deck):
    assert all(one.is_visible() for one in deck.locator(".slide").all())


def test_a_long_statement_goes_on_and_a_long_paragraph_is_cut():
    block = html.fromstring(
        '<div class="proof theorem admonition" id="t"><p class="admonition-title">Theorem</p>'
        f"<section>{'<p>' + 'word ' * 60 + '</p>'}{'<p>' + 'word ' * 200 + '</p>'}</section></div>"
    )
    made = slides.statement("Section", block, [])
    assert len(made) > 1 and made[0].parts[0].get("id") == "t"
    assert volume.text_of(made[1].parts[0]).startswith("Theorem continued")
    text = html.fromstring(f"<p>One <b>two</b>. {'three ' * 60}</p>")
    slides.shorten(text)
    assert volume.text_of(text) == "One two."


# ---- status ----


def status_tables():
    """The cells of the two tables of the built page, and of the first of the page of claims, whose
    second one lists proofs."""
    roots = (html.parse(str(SITE / "chapters" / f"{name}.html")) for name in ("status", "claims"))
    tables = [table for root in roots for table in root.xpath("//article//table")]
    assert len(tables) == 4
    return [
        [[volume.text_of(cell) for cell in row] for row in table.xpath("./tbody/tr")]
        for table in tables[:3]
    ]


def test_status_counts_what_was_checked(book):
    rows, facts, claims_rows = status_tables()
    assert len(rows) == len(book) + 1
    for page, row in zip(book, rows, strict=False):
        if page.name not in ("claims", "errata"):
            assert int(row[3].replace(",", "")) > 10
        claims = [claim for claim in ledger.finished_claims() if claim["page"] == page.name]
        assert row[-2] == str(len(claims) or "") and bool(row[-1]) == bool(claims), page.name
    ran = [row for row in rows[:-1] if row[1]]
    assert len(ran) > 1 and all(float(row[1]) > 0 and int(row[2]) > 0 for row in ran)
    assert rows[-1][0] == "all"
    assert int(rows[-1][-2].replace(",", "")) == len(ledger.finished_claims())
    assert rows[-1][-2:] == [claims_rows[-1][1], claims_rows[-1][3]]  # claims, tests
    versions = dict(facts)
    assert versions["numpy"] == metadata.version("numpy")
    assert {"built", "Python", "scipy", "jupyter-book", "katex (npm)"} <= set(versions)


def test_words_in_view_and_folded_are_told_apart():
    fold = nodes.admonition("", nodes.paragraph(text="three hidden words"), classes=["dropdown"])
    cell = nodes.container("", nodes.paragraph(text="output"), nb_element="cell_code")
    tree = nodes.section(
        "", nodes.paragraph(text="two words"), nodes.math(text="x y z"), fold, cell
    )
    assert status.words_of(tree) == (2, 3)


# ---- where to turn ----


@pytest.mark.parametrize("page", ["api", "calculator"])
def test_how_to_get_the_package_is_said_where_it_is_called(page):
    text = html.parse(str(SITE / f"chapters/{page}.html")).getroot().text_content()
    assert "pip install" in text


def built_with(folder, text, **options):
    """A page of this text, in a site with these settings."""
    (folder / "index.md").write_text(text)
    options |= {"extensions": ["myst_parser", "pages.turn"]}
    options["myst_enable_extensions"] = ["colon_fence"]
    with docutils.docutils_namespace():
        app = Sphinx(folder, None, folder / "out", folder / "trees", "html", options,
                     status=None, warningiserror=True)  # fmt: skip
        app.build()
    return (folder / "out" / "index.html").read_text()


@pytest.mark.parametrize("address", ["", "https://github.com/some-one/dpnotes"])
def test_the_repository_is_spoken_of_where_there_is_one(tmp_path, address):
    text = "# A\n\n:::{repository}\n[Tell us](repository:/issues).\n:::\n\n```{get-package}\n```\n"
    page = built_with(tmp_path, text, repository=address)
    for link in ('/issues"', "/issues/new?title=On%20the%20page%20index"):
        assert (f'href="{address}{link}' in page) == bool(address)
    assert ("Tell us" in page) == bool(address)
    command = f"git+{address}" if address else "."
    assert f"pip install {command}" in re.sub("<[^>]*>", "", page)


@pytest.mark.parametrize("name", ["", "Ada"])
@pytest.mark.parametrize("address", ["", "https://example.org/mistakes"])
def test_who_answers_for_a_copy_is_said_where_it_is_filled_in(tmp_path, name, address):
    page = built_with(tmp_path, "# A\n\n```{kept-by}\n```\n", kept_by=name, report_to=address)
    assert ("Ada answers for this copy" in page) == bool(name)
    assert (page.count(f'href="{address}"') == 2) == bool(address)  # here, and below each page
