"""The built site in a real browser: every page, wide and narrow, light and dark, without script.

Needs the site (`make book`) and Chromium. Without Chromium the tests are skipped, except where CI
is set, where a missing browser is a failure.
"""

import io
import json
import re

import pypdf
import pytest

from machine import PATIENCE, ROOT, SITE, need_python_in_pages
from pages.moved import moved
from run import runtime

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 360, "height": 780}
FIRST = "chapters/intro.html"
NAMES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if "_static" not in path.parts and path.name not in {"index.html", *moved()}  # no pages
)
THOROUGH = pytest.mark.thorough
# one page of each kind; what all have in common is in their template
KINDS = {
    "search.html",
    "chapters/jumps.html",
    "chapters/api.html",
    "chapters/calculator.html",
    "chapters/claims.html",
    "chapters/intro.html",
    "chapters/assignments/laplace.html",
}


class Watched:
    """A browser tab that remembers what went wrong since it opened a page. After a `with` it is
    closed, and nothing may have gone wrong.

    Without the service worker, which fetches pages of its own meanwhile: visits.py has it.
    """

    ALONE = "delete Navigator.prototype.serviceWorker"

    def __init__(self, browser, address, **options):
        options = {"viewport": WIDE, "reduced_motion": "reduce", **options}
        self.address, self.faults, self.size = address, [], options["viewport"]
        self.context = browser.new_context(**options)
        if self.ALONE:
            self.context.add_init_script(self.ALONE)
        self.context.set_default_timeout(PATIENCE)  # of other tabs, too
        self.tab = self.context.new_page()
        self.tab.on("console", self.note_console)
        self.tab.on("pageerror", lambda error: self.faults.append(f"script error: {error.stack}"))
        self.tab.on("requestfailed", self.note_failure)
        self.tab.on("response", self.note_response)
        self.tab.on("request", self.note_request)

    def __enter__(self):
        return self

    def __exit__(self, failed, *more):
        self.context.close()
        assert failed or self.faults == []

    def note_console(self, message):
        late = "preloaded using link preload but not used within"  # on a busy machine
        if message.type in ("error", "warning") and late not in message.text:
            self.faults.append(f"console {message.type}: {message.text}")

    def note_failure(self, request):
        """But of a request that the browser gave up because its page was left, nothing is known."""
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"failed: {request.url}: {request.failure}")

    def note_response(self, response):
        if response.status >= 400:
            self.faults.append(f"status {response.status}: {response.url}")

    def note_request(self, request):
        if not request.url.startswith((self.address, "data:", "about:")):
            self.faults.append(f"request to another host: {request.url}")

    def open(self, name, size=None):
        """Load a page, in this size or that of the start, and return the tab."""
        self.faults.clear()
        self.tab.set_viewport_size(size or self.size)
        self.tab.goto(f"{self.address}/{name}", wait_until="load")
        return self.tab


UNUSED_FONTS = """async () => {
  await document.fonts.ready;
  const style = ({ weight, style }) =>
    (/bold|700/.test(weight) ? "Bold" : "") + (style === "italic" ? "Italic" : "") || "Regular";
  const used = [...document.fonts].filter((face) => face.status === "loaded");
  const names = new Set(used.map((face) => `${face.family.replaceAll('"', "")}-${style(face)}`));
  const early = [...document.querySelectorAll("link[rel=preload]")];
  return early.map((link) => /([^/]+)\\.woff2$/.exec(link.href)?.[1] ?? link.href)
    .filter((one) => !names.has(one));
}"""
MOVED = """globalThis.moved = [];
new PerformanceObserver((list) => moved.push(...list.getEntries().map((one) =>
  [one.value, ...one.sources.map(({node}) => node?.className ?? "")])))
  .observe({type: "layout-shift", buffered: true});"""


def what_moved(watched):
    """Layout shifts since the page was opened: how much, and the classes of what moved."""
    watched.tab.wait_for_timeout(500)
    return watched.tab.evaluate("moved")


OPEN_ALL = "document.querySelectorAll('details').forEach((block) => (block.open = true))"


@pytest.fixture(scope="module")
def watched(browser, address):
    """A tab with JavaScript."""
    with Watched(browser, address) as watched:
        yield watched


@pytest.fixture(scope="module")
def opened(browser, address):
    """A tab with JavaScript, in which every folded block is open before the page is laid out."""
    with Watched(browser, address) as opened:
        opened.context.add_init_script(f"addEventListener('DOMContentLoaded', () => {OPEN_ALL})")
        yield opened


@pytest.fixture(scope="module")
def plain(browser, address):
    """A tab without JavaScript, on a phone, of a reader who prefers dark."""
    options = {"viewport": NARROW, "color_scheme": "dark", "java_script_enabled": False}
    with Watched(browser, address, **options) as plain:
        yield plain


def lighten(tab):
    """Empty what screen readers skip (drawn formulas, insides of figures), in its place and size.

    It is most of a page's elements; axe takes four times as long with it and finds the same.
    """
    lighten_formulas(tab)
    tab.evaluate(
        "document.querySelectorAll('svg[role=img]').forEach((one) => one.replaceChildren())"
    )


def lighten_formulas(tab):
    """Only these: the page is then laid out again in half of the time."""
    tab.evaluate(
        """() => {
        const drawn = [...document.querySelectorAll(".katex-html")];
        const boxes = drawn.map((formula) => formula.getBoundingClientRect());
        drawn.forEach((formula, i) => {
          formula.replaceChildren();
          if (!formula.closest(".math-scroll")) return;
          const {width, height} = boxes[i];
          formula.style.cssText = `display: inline-block; width: ${width}px; height: ${height}px`;
        });
        document.querySelectorAll("math").forEach((formula) => (formula.textContent = "x"));
        }"""
    )


def thin(tab):
    """Of words of code, formulas in lines, paragraphs, links and buttons keep one of each kind;
    others become text. Of rows, claims and descriptions keep those that show something new.

    They are most of what `lighten` leaves, and what axe does takes its time for each element. A
    kind is a look (colours, weight, size) in a place (the elements around), with its attributes.
    """
    tab.evaluate(
        """() => {
        const seen = new Set();
        const again = (element, block) => {
          const {color, backgroundColor, opacity, fontWeight, fontSize} = getComputedStyle(element);
          const around = element.parentElement;
          const kind = [element.tagName, element.className, color, backgroundColor, opacity,
            fontWeight, fontSize, around.tagName, around.className,
            ...element.getAttributeNames(), block && block.tagName + block.className,
            !!element.closest("details, .admonition")].join();
          return seen.size === seen.add(kind).size;
        };
        const all = (what) => [...document.querySelectorAll(what)];
        const drop = (words) => words.forEach((word) => word.replaceWith(word.textContent));
        const known = new Set();
        all("dl.py, .claim, tbody tr").forEach((block) => {
          const before = known.size;
          [block, ...block.querySelectorAll("*")].forEach((one) => known.add([one.tagName,
            one.className, one.style.cssText, one.parentElement.className,
            !one.textContent.trim(), ...one.getAttributeNames()].join()));
          if (known.size === before) block.remove();
        });
        all(".copybtn, .run-bar").filter((one) => again(one, one.parentElement.parentElement))
          .forEach((one) => one.matches(".run-bar") ? one.replaceChildren() : one.remove());
        drop(all("pre span").filter((word) =>
          !word.children.length && again(word, word.closest("pre").parentElement)));
        all(".katex").filter((formula) => !formula.closest(".math-scroll")
          && again(formula, formula.closest("p, li, table, figure, .cell")))
          .forEach((formula) => formula.replaceWith("x"));
        // from the inside out
        for (const what of ["span.math", "span.dpn-word", "span.pre, span.doc, span.std", "code",
          "em, strong", "a.reference[href]", "article p"])
          drop(all(what).filter((word) => !word.children.length && !word.id
            && word.textContent.trim()
            && again(word, word.parentElement.closest("p, li, table, figure, .cell"))));
        }"""
    )


CONTRAST = {"runOnly": ["color-contrast"]}
AXE_RUN = """([within, options]) => {
  const headers = "th:not([role]):not(:has(math)), [role='columnheader']:not(:has(math))";
  axe.configure({rules: [{id: "empty-table-header", selector: headers}]});
  return axe.run(within, {resultTypes: ["violations"], ...options})
    .then((found) => found.violations);
}"""


def violations(tab, within="html", **options):
    """What axe finds, one line each. It takes MathML for an image: such headers are not empty."""
    if not tab.evaluate("'axe' in window"):
        tab.add_script_tag(path=AXE)
    found = tab.evaluate(AXE_RUN, [within, options])
    return [f"{rule['id']}: {node['html'][:200]}" for rule in found for node in rule["nodes"]]


def sticking_out(tab):
    """Elements that make the page wider than the screen."""
    return tab.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.querySelectorAll('body *')]
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
        .slice(0, 5).map((e) => e.outerHTML.slice(0, 120))"""
    )


def cut(tab):
    """Figures that are not whole on the screen, once, or whose type is smaller than 9 pixels.

    Of a drawn letter the scale is a hundredth of its size.
    """
    return tab.evaluate(
        """() => [...document.querySelectorAll("figure.dpn-figure")].flatMap((box) => {
        if (!box.getClientRects().length) return [];
        const [figure, ...more] = [...box.querySelectorAll(":scope > svg")]
          .filter((one) => one.getBoundingClientRect().width);
        if (!figure || more.length) return [`${figure ? "twice" : "nothing"}: ${box.className}`];
        const frame = figure.getBoundingClientRect(), units = figure.viewBox.baseVal.width;
        const words = [...figure.querySelectorAll("text, g[id*='text_']")];
        const outside = words.map((one) => one.getBoundingClientRect()).filter((box) => box.width
          && (box.left < frame.left - 1 || box.right > frame.right + 1
            || box.top < frame.top - 1 || box.bottom > frame.bottom + 1));
        const whole = frame.left >= 0 && frame.right <= innerWidth + 0.5 && !outside.length;
        const sizes = words.map((one) => one.tagName === "text"
          ? parseFloat(getComputedStyle(one).fontSize)
          : 100 * (one.innerHTML.match(/scale\\((0\\.\\d+)/)?.[1] ?? 1));
        const type = Math.min(...sizes) * frame.width / units;
        return whole && words.length && type > 8.9 ? [] : [`${type}: ${figure.ariaLabel}`];
        })"""
    )


def lonely(tab):
    """Punctuation that begins a line, after a formula."""
    return tab.evaluate(
        """() => [...document.querySelectorAll("article span.math")].flatMap((formula) => {
        const text = formula.nextSibling, last = [...formula.querySelectorAll(".katex-base")].pop();
        const sign = text?.nodeType === 3 ? text.data.search(/[.,;:!?)]/) : -1;
        if (!last || sign < 0 || /[^\u2060]/.test(text.data.slice(0, sign))) return [];
        const range = document.createRange();
        range.setStart(text, sign);
        range.setEnd(text, sign + 1);
        const [mark, end] = [range, last].map((one) => one.getBoundingClientRect());
        return mark.width && mark.left < end.right - 10 ? [text.data.slice(0, 20)] : [];
        })"""
    )


SOME_LOOKS = [  # for a test's `looks`
    pytest.param([(NARROW, "light"), (WIDE, "dark")], id="some"),
    pytest.param([(NARROW, "dark"), (WIDE, "light")], id="others", marks=THOROUGH),
]


def look(tab, size, mode):
    """Show the page in a size and a mode, and let its scripts see that; returns their names."""
    tab.set_viewport_size(size)
    tab.evaluate("(mode) => (document.documentElement.dataset.theme = mode)", mode)
    tab.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))")
    return f"{size['width']} px, {mode}"


@pytest.mark.parametrize("name", NAMES or [FIRST])
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=THOROUGH)])
def test_page_opens_and_is_accessible(opened, name, whole):
    """It fits a phone and a screen, and breaks no rule of axe. Of contrast, which is in what pages
    have in common, one of each kind is asked, in light and in dark. Once a week whole pages, in
    all looks."""
    tab = opened.open(name, NARROW)
    assert tab.evaluate(UNUSED_FONTS) == [], f"{name} asks early for fonts that it does not use"
    assert lonely(tab) == [], f"{name}: punctuation begins a line"
    for size in (NARROW, WIDE):
        tab.set_viewport_size(size)
        where = f"{name} at {size['width']} px"
        assert sticking_out(tab) == [], f"{where} scrolls sideways"
        assert cut(tab) == [], f"{where}: figures are cut or small"
        if not whole:  # what is too wide in a line is so on a phone
            lighten_formulas(tab)
            thin(tab)
    assert lonely(tab) == [], f"{name}: punctuation begins a line"
    lighten(tab)
    looks = [(NARROW, "light"), (WIDE, "dark"), (NARROW, "dark"), (WIDE, "light")]
    kind = whole or name in KINDS
    for size, mode in looks if whole else looks[: 1 + kind]:
        where = look(tab, size, mode)
        assert violations(tab, rules={"color-contrast": {"enabled": kind}}) == [], where
    assert opened.faults == []


PALE = (
    "<p style='color: {}'>pale</p>",
    "<p style='opacity: 0.3'>pale</p>",
    "<pre><span class='n'>dark</span> <span class='n' style='color: {}'>pale</span></pre>",
    "<p><span class='katex'>x</span> <span class='katex' style='color: {}'>pale</span></p>",
)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_a_pale_look_is_found_on_a_thinned_page(watched, mode):
    tab = watched.open("chapters/notation.html")
    look(tab, WIDE, mode)
    lighten(tab)
    thin(tab)
    assert violations(tab, **CONTRAST) == []
    for html in PALE:
        html = html.replace("{}", {"light": "#aaa", "dark": "#555"}[mode])
        add = "(html) => document.querySelector('article').insertAdjacentHTML('beforeend', html)"
        tab.evaluate(add, f"<div class='pale'>{html}</div>")
        thin(tab)
        assert any("pale" in one for one in violations(tab, **CONTRAST)), html
        tab.evaluate("document.querySelector('.pale').remove()")


@pytest.mark.parametrize(("reason", "faults"), [("connectionrefused", 1), ("aborted", 0)])
def test_a_failed_request_is_noted_and_a_given_up_one_is_not(browser, address, reason, faults):
    watched = Watched(browser, address)
    watched.context.route("**/_static/icon.svg", lambda route: route.abort(reason))
    tab = watched.open("search.html")
    done = "fetch('_static/icon.svg').then(() => 'came', () => 'failed')"
    assert tab.evaluate(done) == "failed"
    failed = [fault for fault in watched.faults if fault.startswith("failed: ")]
    assert len(failed) >= faults and bool(failed) == bool(faults)
    watched.context.close()


OTHERS = [pytest.param(name, marks=THOROUGH) for name in NAMES if name not in KINDS]


@pytest.mark.parametrize("name", [*sorted(KINDS), *OTHERS])
def test_page_is_complete_without_javascript(plain, name):
    tab = plain.open(name)
    assert tab.locator("h1").first.is_visible()
    assert sticking_out(tab) == []
    for formula in tab.locator(".katex-html:visible").all()[:1]:
        assert formula.bounding_box()["width"] > 0
    for figure in tab.locator("figure svg:visible").all()[:1]:
        assert figure.bounding_box()["width"] > 200
    # not those in forms, which are hidden where no script can answer
    for block in tab.locator("article details:not(form details)").all()[:2]:
        block.locator("summary").first.click()
        assert block.locator(":scope > :not(summary)").first.is_visible()
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(20, 24, 29)", "the dark colours need no script"
    assert plain.faults == []


def test_the_first_page_says_its_name_once_and_the_start_has_an_icon():
    title = re.search("<title>(.*?)</title>", (SITE / FIRST).read_text(encoding="utf-8"))[1]
    assert title == "Differential privacy, executed"
    icon = re.search('rel="icon" href="([^"]+)"', (SITE / "index.html").read_text(encoding="utf-8"))
    assert (SITE / icon[1]).exists()


def test_mode_button_switches_and_is_remembered(watched):
    tab = watched.open(FIRST)
    seen = set()
    for _ in range(3):
        tab.locator(".theme-switch-button:visible").first.click()
        seen.add(tab.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(seen) == 2
    kept = tab.evaluate("document.documentElement.dataset.mode")
    tab.reload()
    assert tab.evaluate("document.documentElement.dataset.mode") == kept


def test_sidebar_opens_on_a_phone(watched):
    tab = watched.open(FIRST)
    tab.set_viewport_size(NARROW)
    tab.locator(".primary-toggle").first.click()
    assert tab.locator("#pst-primary-sidebar-modal a:visible").count() > 2
    names = [
        tab.locator(f".btn-{kind}").first.evaluate(
            "(one) => getComputedStyle(one, '::after').content"
        )
        for kind in ("code", "print")
    ]
    assert names == ['"source"', '"print"'], "a phone shows no titles of icons"
    lighten(tab)
    assert violations(tab) == []
    tab.keyboard.press("Escape")
    tab.set_viewport_size(WIDE)


def test_link_into_a_folded_block_opens_it(watched):
    block = "#sol-jumps-angle"
    tab = watched.open("chapters/jumps.html" + block)
    assert tab.locator(block).evaluate("(block) => block.open")


COUNT_FOLDED = """
const own = Object.getOwnPropertyDescriptor(Element.prototype, "scrollWidth").get;
window.folded = window.measured = 0;
Object.defineProperty(Element.prototype, "scrollWidth", {get() {
  window.measured++;
  if (this.closest("details:not([open])")) window.folded++;
  return own.call(this);
}});"""


def test_nothing_that_is_folded_is_measured_until_it_opens(browser, address):
    """The browser would lay it out first: a second or two on a phone."""
    with Watched(browser, address, viewport=NARROW) as watched:
        watched.context.add_init_script(COUNT_FOLDED)
        tab = watched.open("chapters/jumps.html")
        tab.wait_for_function("window.measured > 50")
        assert tab.evaluate("window.folded") == 0
        wide = "details .math-scroll[tabindex]"
        assert tab.locator(wide).count() == 0
        tab.evaluate(OPEN_ALL)
        tab.wait_for_selector(wide)


@pytest.mark.parametrize("name", ["assignments/laplace", "jumps", "risk"])
def test_nothing_moves_while_a_page_loads(browser, address, name):
    """What a script adds has its place from the start: a sheet moved by .19."""
    with Watched(browser, address, viewport=NARROW) as watched:
        watched.context.add_init_script(MOVED)
        watched.open(f"chapters/{name}.html")
        assert sum(value for value, *_ in what_moved(watched)) < 0.02


LONG_CODE = """() => [...document.querySelectorAll(".cell_input pre")]
  .filter((code) => code.scrollWidth > code.clientWidth + 1).length"""


@pytest.mark.parametrize("size", [NARROW, WIDE])
def test_code_is_whole(watched, size):
    tab = watched.open("chapters/composition.html", size)
    tab.evaluate(OPEN_ALL)
    assert tab.evaluate(LONG_CODE) == 0


@pytest.mark.parametrize("part", [".bd-header-article", ".hw-bar"])
def test_no_bar_covers_a_page_at_400_percent(watched, part):
    tab = watched.open("chapters/assignments/laplace.html", {"width": 320, "height": 200})
    tab.locator(part).wait_for()
    assert tab.locator(part).evaluate("(bar) => getComputedStyle(bar).position") == "static"


OUTLINES = """() =>
  [...document.querySelectorAll(".bd-header-article :is(a, button), .run-bar button")]
  .filter((one) => one.checkVisibility({visibilityProperty: true}))
  .map((one) => { one.focus(); return [one.outerHTML, getComputedStyle(one).outline]; })"""


def test_focus_is_seen_on_every_control_and_cells_are_near(watched):
    need_python_in_pages()
    tab = watched.open("chapters/pure-dp.html")
    for _ in range(2):
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the first cell"
    tab.keyboard.press("Enter")
    for _ in range(3):  # past the button that copies the code
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.dataset.do") == "run":
            break
    assert tab.evaluate("document.activeElement.dataset.do") == "run"
    # after a key was pressed, focus that a script gives is shown too
    outlines = tab.evaluate(OUTLINES)
    assert len(outlines) > 9
    assert [control for control, outline in outlines if "solid 2px" not in outline] == []


LOOK = """(what) => {
  const one = document.querySelector(what);
  const {display, color, fill, whiteSpace} = getComputedStyle(one);
  return {display, color, fill, whiteSpace};
}"""


def test_paper_has_the_title_dark_ink_and_whole_lines(browser, address):
    """Printed by a reader whose screen is dark; on a phone, too, the wide figures."""
    with Watched(browser, address, color_scheme="dark") as watched:
        tab = watched.open("chapters/pure-dp.html")
        background = "getComputedStyle(document.body).backgroundColor"
        assert tab.evaluate(background) == "rgb(20, 24, 29)"
        pages = pypdf.PdfReader(io.BytesIO(tab.pdf(format="A4"))).pages
        assert "Pure differential privacy" in pages[0].extract_text()
        assert "Proof" in "".join(page.extract_text() for page in pages)
        assert tab.evaluate(background) == "rgb(20, 24, 29)", "afterwards it is dark again"
        tab.emulate_media(media="print")
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        ink = "rgb(27, 31, 36)"
        assert tab.evaluate(LOOK, "article h1")["display"] == "block"
        assert tab.evaluate(LOOK, "article p")["color"] == ink
        assert tab.evaluate(LOOK, "figure.dpn-figure [style*='--dpn-ink']")["fill"] == ink
        assert tab.evaluate(LOOK, "article pre")["whiteSpace"] == "pre-wrap"


BEYOND = """() => [...document.querySelectorAll("article :is(.math-scroll, p, textarea)")]
  .filter((box) => box.scrollWidth > box.clientWidth + 1
    || box.matches("textarea") && box.scrollHeight > box.clientHeight + 1)
  .map((box) => box.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("name", ["accounting", "assignments/laplace"])
def test_formulas_and_answers_are_whole_on_paper(browser, address, name):
    with Watched(browser, address) as watched:
        tab = watched.open(f"chapters/{name}.html")
        tab.wait_for_function("globalThis.fit")
        if "assignments" in name:  # only with Python there are fields to answer in
            need_python_in_pages()
            tab.wait_for_selector("textarea.hw-words")
            for area in tab.locator("textarea").all()[:3]:
                area.fill("word " * 300)
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        tab.emulate_media(media="print")
        tab.set_viewport_size({"width": 670, "height": 900})  # A4 without margins of 16 mm
        assert tab.evaluate(BEYOND) == []
        tab.evaluate("dispatchEvent(new Event('afterprint'))")
        assert tab.evaluate(f"({BEYOND})()") or "assignments" in name, "on screen it scrolls"


def test_sizes_that_are_printed_are_those_of_the_build():
    """About: to 10 %."""
    need_python_in_pages()
    facts = json.loads((SITE / "_run" / "runtime.json").read_text(encoding="utf-8"))
    wanted, found = ["dpnotes", "matplotlib"], set()
    while wanted:
        name = wanted.pop()
        found.add(name)
        wanted += [one for one in facts["depends"][name] if one not in found]
    files = [*runtime.CORE, *(facts["files"][name] for name in found)]
    first = sum(facts["bytes"][file] for file in files) / 1e6
    known = (SITE / "sw.js").read_text(encoding="utf-8")
    listed = [path for path in SITE.rglob("*") if f'"{path.relative_to(SITE)}"' in known]
    text = (SITE / FIRST).read_text(encoding="utf-8")
    for said, real in (
        (r"first run fetches about (\d+) MB", first),
        (r"on this device, about (\d+) MB", sum(path.stat().st_size for path in listed) / 1e6),
    ):
        assert float(re.search(said, text)[1]) == pytest.approx(real, rel=0.1)


def test_claims_can_be_filtered(watched):
    tab = watched.open("chapters/claims.html")
    form, visible = tab.locator(".claims-filter"), tab.locator(".claim:visible")
    everything = visible.count()
    form.get_by_label("slips of the sources only").check()
    slips = visible.count()
    assert 0 < slips < everything and slips == tab.locator(".claim.slip:visible").count()
    form.get_by_label("Chapter").select_option("composition")
    assert 0 < visible.count() < slips
    form.get_by_label("Find").fill("nothing has such a name")
    assert visible.count() == 0 and form.locator("output").inner_text() == "0 claims"


def test_the_top_bar_offers_notebook_source_and_print(watched):
    tab = watched.open("chapters/pure-dp.html")
    for label, suffix in (("download", ".ipynb"), ("code", ".md")):
        with tab.expect_download() as found:
            tab.locator(f".article-header-buttons .btn-{label}").click()
        assert found.value.suggested_filename == "pure-dp" + suffix
    assert tab.locator(".article-header-buttons .btn-print").get_attribute("title")
