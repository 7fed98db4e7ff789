"""How the pages look, where a fault was seen once: text of another size, code, tables, header."""

import re

import pytest
from test_site import NARROW, WIDE, Watched

from carry.pdf import found_chromium
from machine import FLAGS, PATIENCE, SITE

LARGE = 32  # pixels of a reader's text, in place of 16
SOME = ["chapters/intro.html", "chapters/claims.html", "chapters/for-instructors.html"]


@pytest.fixture(scope="module")
def tab(browser, address):
    with Watched(browser, address) as watched:
        yield watched


@pytest.fixture(scope="module")
def large(browser, address):
    """A tab of a reader whose browser has text of twice the size."""
    flags = [*FLAGS, f"--blink-settings=defaultFontSize={LARGE}"]
    path = found_chromium()
    other = browser.browser_type.launch(executable_path=path, args=flags, timeout=PATIENCE)
    with Watched(other, address) as watched:
        yield watched
    other.close()


SIZES = """() => ["html", ".bd-article p"].map((part) =>
  parseFloat(getComputedStyle(document.querySelector(part)).fontSize))"""


def test_the_readers_text_size_counts(tab, large):
    usual, twice = (one.open(SOME[0]).evaluate(SIZES) for one in (tab, large))
    assert twice == [2 * size for size in usual] and usual[0] == 17


def test_a_figure_grows_with_the_readers_text(tab, large):
    """Else the letters in it are a third of those beside it."""
    width = "document.querySelector('.dpn-slider figure svg').getBoundingClientRect().width"
    usual, twice = (one.open(SOME[0]).evaluate(width) for one in (tab, large))
    assert twice > 1.6 * usual > 0


@pytest.mark.parametrize("page", SOME)
def test_text_of_twice_the_size_lies_under_nothing(large, page):
    """The columns beside it leave, as on a small screen."""
    spaces = large.open(page).evaluate(
        """() => [".bd-article", ".bd-sidebar-secondary", ".bd-sidebar-primary"].map((part) => {
          const place = document.querySelector(part), box = place?.getBoundingClientRect();
          return place && getComputedStyle(place).visibility !== "hidden"
            ? [box.left, box.right, box.width] : null;
        })"""
    )
    text, *beside = spaces
    assert text[2] > 900, "a line holds words, not one word"
    for left, right, _ in filter(None, beside):
        assert left >= text[1] or right <= text[0]


@pytest.mark.parametrize("page", [*SOME, "chapters/calculator.html"])
def test_text_of_twice_the_size_fits_a_phone(large, page):
    """Nothing scrolls sideways, and no button of the header is beyond the edge."""
    assert large.open(page, NARROW).evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_bars_of_a_sheet_cover_the_code_that_they_lie_on(tab):
    page = tab.open("chapters/assignments/laplace.html", WIDE)
    ends = """(all) => Math.max(...all.map((one) => one.getBoundingClientRect().right))"""
    page.locator(".hw-bar").wait_for()
    parts = (".hw-bar", ".bd-header-article", ".cell_input")
    bar, header, code = (page.eval_on_selector_all(each, ends) for each in parts)
    assert code > 1000 and min(bar, header) >= code


def test_no_line_of_an_example_ends_with_its_prompt(tab):
    page = tab.open("chapters/api.html", NARROW)
    tops = """(all) => all.map((one) => [one, one.nextSibling].map((part) => {
      const range = document.createRange();
      range.selectNode(part);
      return range.getClientRects()[0].top;
    })).filter(([prompt, code]) => code > prompt + 5).length"""
    assert page.eval_on_selector_all(".gp", tops) == 0


def test_a_link_in_code_is_seen_to_be_one(tab):
    link = tab.open(SOME[0]).locator(".bd-article .highlight pre a").first
    assert link.evaluate("(one) => getComputedStyle(one).textDecorationLine") == "underline"


def test_breakpoints_count_in_the_readers_text_size():
    sheets = [path for path in SITE.rglob("*.css") if "_downloads" not in path.parts]
    assert len(sheets) > 5
    for sheet in sheets:
        for query in re.findall(r"@media[^{]*", sheet.read_text(encoding="utf-8")):
            assert not re.search(r"width:\s*[\d.]+px", query), (sheet.name, query)


def test_code_of_a_hundred_characters_is_not_broken(tab):
    page = tab.open("chapters/erm.html" if (SITE / "chapters/erm.html").exists() else SOME[0])
    heights = page.evaluate(
        """() => {
        const code = document.querySelector("details.hide .cell_input pre, .cell_input pre");
        for (let fold = code.closest("details"); fold; fold = fold.parentElement.closest("details"))
          fold.open = true;
        return [1, 100, 140].map((length) => {
          code.textContent = "x".repeat(length);
          return code.clientHeight;
        });
        }"""
    )
    assert heights[0] == heights[1] < heights[2]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_fonts_of_formulas_are_asked_for_before_any_style_has_come(browser, address):
    """Where they came after the text its lines broke anew: on a slow line half a page moved."""
    with Watched(browser, address) as slow:
        slow.context.route("**/*.css*", lambda route: None)  # never answered
        fonts = [f"**/KaTeX_{name}.woff2" for name in ("Main-Regular", "Math-Italic")]
        with slow.tab.expect_request(fonts[0]), slow.tab.expect_request(fonts[1]):
            slow.tab.goto(f"{address}/chapters/stopping.html", wait_until="commit")


def test_no_part_of_a_page_is_laid_out_as_a_whole_with_each_change(tab):
    """A container that is asked for its width is: a third of what a second press of Run took."""
    asked = "(all) => all.filter((one) => getComputedStyle(one).containerType !== 'normal').length"
    assert tab.open(SOME[0]).eval_on_selector_all("*", asked) == 0


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_icons_of_the_header_are_of_one_size(tab, size):
    page = tab.open(SOME[0], size)
    icons = page.locator(".article-header-buttons .btn:visible :is(i, svg):visible")
    sizes = icons.evaluate_all("(all) => all.map((icon) => getComputedStyle(icon).fontSize)")
    assert len(sizes) >= 3 and len(set(sizes)) == 1
    named = page.locator(".header-article-items .btn:visible").evaluate_all(
        "(all) => all.map((one) => getComputedStyle(one, '::after').content !== 'none')"
    )
    assert set(named) == {size == NARROW}, "all have a caption on a phone, or none"


def test_tables_have_numbers_to_the_right_and_links_as_elsewhere(tab):
    page = tab.open("chapters/claims.html")
    of = "(cell) => [getComputedStyle(cell).textAlign, getComputedStyle(cell).color]"
    assert page.locator("td.text-right").first.evaluate(of)[0] == "right"
    frame = page.locator(".bd-article table").first.evaluate("(it) => getComputedStyle(it).border")
    assert frame.startswith("0px")
    inside = page.locator(".bd-article table td a").first.evaluate(of)[1]
    assert inside == page.locator(".bd-article p a").first.evaluate(of)[1]


def test_nothing_of_the_skip_link_is_seen_until_it_has_the_focus(tab):
    page = tab.open(SOME[0])
    look = "(link) => getComputedStyle(link).clipPath"
    link = page.locator(".skip-link").first
    assert link.evaluate(look) == "inset(100%)"
    link.locator("a").focus()
    assert link.evaluate(look) == "none"


def test_a_question_is_no_louder_than_a_theorem(tab):
    page = tab.open("chapters/calculator.html")
    title = page.locator("details.question > summary").first
    assert int(title.evaluate("(title) => getComputedStyle(title).fontWeight")) <= 400


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_title_of_a_tip_is_no_louder_than_that_of_a_theorem(tab, mode):
    page = tab.open("chapters/for-instructors.html")
    page.evaluate("(mode) => (document.documentElement.dataset.theme = mode)", mode)
    title = page.locator(".admonition.tip > .admonition-title")
    behind = title.evaluate("(title) => getComputedStyle(title).backgroundColor")
    assert behind == "rgba(0, 0, 0, 0)"


@pytest.mark.parametrize("page", ["chapters/calculator.html", "chapters/claims.html"])
def test_a_field_on_a_phone_is_large_enough_to_stay_in_place(tab, page):
    """Below sixteen pixels a phone zooms in when a field is touched."""
    fields = tab.open(page, NARROW).locator(
        ".bd-article :is(input:not([type=checkbox]):not([type=radio]), select)"
    )
    sizes = fields.evaluate_all(
        "(all) => all.map((one) => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert len(sizes) > 1 and min(sizes) >= 16


def test_in_the_dark_nothing_glows_over_what_scrolls(browser, address):
    with Watched(browser, address, color_scheme="dark") as dark:
        shade = dark.open(SOME[0]).evaluate(
            """() => {
            const probe = document.body.appendChild(document.createElement("i"));
            probe.style.color = "var(--dpn-shade)";
            return getComputedStyle(probe).color;
            }"""
        )
    assert max(map(float, re.findall(r"[\d.]+", shade)[:3])) <= 20


def test_bars_have_the_books_colours_and_what_is_beside_covers_no_code(tab):
    """Firefox drew white bars in the dark; a bar of the window moves the contents of a page."""
    looks = tab.open(SOME[0]).evaluate(
        """() => [getComputedStyle(document.documentElement).scrollbarColor,
        getComputedStyle(document.querySelector(".bd-sidebar-secondary")).backgroundColor]"""
    )
    assert looks[0] != "auto" and looks[1] == "rgba(0, 0, 0, 0)"


def test_the_plan_of_a_course_is_no_longer_on_a_phone(tab):
    """Its columns were one word wide, and it was twice as high; now it scrolls to the side."""
    height = "document.querySelector('.course-plan').getBoundingClientRect().height"
    page = "chapters/for-instructors.html"
    narrow, wide = (tab.open(page, size).evaluate(height) for size in (NARROW, WIDE))
    assert 0 < narrow < 1.3 * wide
