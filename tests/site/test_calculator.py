"""The calculator's page: it shows what dpnotes.calculator answers, of usual runs without Python.

This process's Python stands in for that of the page, which takes long to start, but once a week;
that it gives the same answers is checked in test_run.py, where it has started. All needs Chromium.
"""

import json
import sys
from urllib.parse import parse_qs, urlsplit

import pytest
from test_homework import STAND_IN
from test_site import SOME_LOOKS, Watched, lighten, look, sticking_out, violations

from calculator import USUAL, query_of
from dpnotes import calculator
from machine import FOR_PYTHON, ROOT, module_at, need_python_in_pages

with pytest.MonkeyPatch.context() as patch:  # its `myst_nb` is for the page only
    patch.setitem(sys.modules, "myst_nb", None)
    shell = module_at("site/run/shell.py")

PAGE = "chapters/calculator.html"


# ------------------------------------------------------------------------------- the form


def with_python(tab, script):
    """Another program in the place of the page's own Python."""
    body = {"body": script, "content_type": "text/javascript"}
    tab.context.route("**/_run/python.js", lambda route: route.fulfill(**body))


@pytest.fixture(scope="module")
def form(browser, address):
    """A tab with the calculator and a clipboard, of a site that was built without Python."""
    with Watched(browser, address) as form:
        form.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        with_python(form, "export const available = Promise.resolve(false);")
        yield form


def number(tab):
    return tab.locator(".calculator-number").inner_text()


def words(tab):
    """The parameters in the address."""
    return {name: value[0] for name, value in parse_qs(urlsplit(tab.url).query).items()}


def go(tab, asked):
    """To another address of the same page, without loading it again."""
    tab.evaluate(
        """(asked) => {
        history.pushState(null, "", asked);
        dispatchEvent(new PopStateEvent("popstate"));
        }""",
        asked,
    )


@pytest.mark.parametrize("asked", USUAL)
def test_usual_runs_are_answered_without_python(form, asked):
    """What stands in the page is what the package answers now."""
    tab = form.tab if PAGE in form.tab.url else form.open(PAGE)
    go(tab, asked)
    check_answer(tab, asked)
    check_details(tab, asked)
    assert "when this site was built" in tab.locator(".calculator-origin").inner_text()
    listed = tab.locator(f'.calculator-usual li:has(a[href="{asked}"])').inner_text()
    assert listed.endswith(f" = {calculator.answer(query_of(asked))['shown']}")
    assert form.faults == []


def test_what_cannot_be_is_named_in_the_form(form):
    tab = form.open(PAGE)
    field = tab.get_by_label("rate of Poisson")
    for wrong in ("0", "2", "-1", "x", "1/0", "", "1e400"):
        field.fill(wrong)
        said = tab.locator('label[data-field="rate"] .calculator-wrong')
        assert said.inner_text() == "needs a number above 0 and at most 1"
        assert field.get_attribute("aria-invalid") == "true"
        assert field.get_attribute("aria-describedby") == said.get_attribute("id")
        assert number(tab) == "–" and tab.locator(".calculator-more").is_hidden()
    tops = [tab.get_by_label(name).bounding_box()["y"] for name in ("rate of", "σ, in units")]
    assert abs(tops[0] - tops[1]) < 3, "the field does not move"
    field.fill("256/60000")
    assert tab.locator(".calculator-wrong").count() == 0 and number(tab).startswith("ε = ")
    assert field.get_attribute("aria-invalid") == "false"


def test_the_address_is_the_state(form):
    tab = form.open(PAGE)
    first = number(tab)
    tab.get_by_label("I want to know").select_option("noise")
    tab.get_by_label("target ε").fill("3")
    tab.get_by_label("target ε").press("Tab")
    assert words(tab)["question"] == "noise" and words(tab)["epsilon"] == "3"
    assert "noise" not in words(tab) and words(tab)["rate"] == "256/60000"
    where = tab.url
    tab.get_by_label("Mechanism").select_option("laplace")
    assert tab.get_by_label("target δ").input_value() == "0", "the usual one of pure mechanisms"
    tab.go_back()
    assert tab.get_by_label("Mechanism").input_value() == "gaussian" and tab.url == where
    tab.go_back()
    tab.go_back()
    assert number(tab) == first
    tab.goto(where)
    assert tab.get_by_label("target ε").input_value() == "3"
    tab.get_by_role("button", name="Copy the address").click()
    assert tab.evaluate("navigator.clipboard.readText()") == where
    assert form.faults == []


ASKED = [
    "?question=epsilon&mechanism=gaussian&noise=1.1&rate=0.00427&steps=14100&delta=1e-5",
    "?question=epsilon&mechanism=laplace&noise=10&rate=1&steps=20&delta=1e-6",
    "?question=delta&mechanism=pure&noise=0.1&rate=0.5&steps=100&epsilon=1",
    "?question=noise&mechanism=gaussian&rate=0.01&steps=1000&epsilon=2&delta=1e-5",
    "?question=steps&mechanism=response&noise=0.1&rate=1&epsilon=2&delta=1e-5",
    "?question=rate&mechanism=gaussian&noise=1.1&steps=500&epsilon=2&delta=1e-5",
    "?question=epsilon&mechanism=gaussian&noise=1.1&delta=1e-3&rows=50000&batch=512&epochs=20",
]


def in_this_process(name, arguments):
    """The value of a call, as the page's own Python hands it over."""
    done = json.loads(shell.call(name, arguments))
    assert done["ok"], done
    return json.dumps(done["value"])


@pytest.fixture(
    scope="module", params=["stand-in", pytest.param("own", marks=pytest.mark.thorough)]
)
def python(request, browser, address):
    """A tab once one of the two Pythons has given an exact answer."""
    with Watched(browser, address) as form:
        if request.param == "own":
            need_python_in_pages()
        else:
            form.context.expose_function("thisPython", in_this_process)
            with_python(form, STAND_IN)
        form.open(PAGE + ASKED[0])
        settled(form.tab)
        yield form


def settled(tab):
    """Wait until the answer, its table and its curve are there."""
    tab.wait_for_function(
        """() => !document.querySelector(".calculator").hasAttribute("aria-busy")
        && !document.querySelector(".calculator-details").hidden
        && !document.querySelector(".calculator-more").hidden""",
        timeout=FOR_PYTHON,
    )


def check_answer(tab, asked):
    """The page shows what the command line prints, to the printed digits."""
    found = calculator.answer(query_of(asked))
    assert number(tab).split(" = ")[1] == found["shown"]
    origin = tab.locator(".calculator-origin").inner_text()
    shown = [float(word.strip(".")) for word in origin.split() if word[0].isdigit()]
    assert shown == pytest.approx([found["low"], found["high"]], rel=1e-11)
    assert tab.locator(".calculator-call pre").inner_text() == found["call"]
    assert tab.locator(".calculator-remarks li").all_inner_texts() == found["warnings"]


def check_details(tab, asked):
    """The table of theorems, and the curve."""
    cells = tab.locator(".calculator-theorems tbody tr").all_inner_texts()
    rows = calculator.answers(query_of(asked))["rows"]
    said = {row["name"]: row["shown"] for row in rows if row["epsilon"] is not None}
    seen = {line.split("\t")[0].splitlines()[0].strip(): line.split("\t")[1] for line in cells}
    assert {name: text.strip() for name, text in seen.items()} == said
    label = tab.locator(".calculator-curve > svg").get_attribute("aria-label")
    assert label.startswith("ε against δ. the whole law: from ")


def test_a_wrong_field_withdraws_the_answer_until_it_is_right(python):
    tab = python.tab
    check_answer(tab, ASKED[0])
    tab.get_by_label("rate of Poisson").fill("2")
    assert number(tab) == "–" and tab.locator(".calculator-theorems").is_hidden()
    tab.get_by_label("rate of Poisson").fill("0.00427")
    settled(tab)
    check_details(tab, ASKED[0])
    assert python.faults == []


@pytest.mark.parametrize("asked", ASKED[1:])
def test_every_question_is_answered_while_one_types(python, asked):
    tab = python.tab
    go(tab, asked)
    settled(tab)
    check_answer(tab, asked)
    check_details(tab, asked)


@pytest.mark.parametrize("asked", ASKED)
def test_the_call_to_copy_gives_the_answer(python, asked):
    tab = python.tab
    go(tab, asked)
    settled(tab)
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.locator("[name=copy]").click()
    *lines, last = tab.evaluate("navigator.clipboard.readText()").splitlines()
    names = {}
    exec("\n".join(lines), names)
    assert eval(last, names) == calculator.answer(query_of(asked))["answer"]


def test_stop_ends_what_does_not_come(browser, address):
    with Watched(browser, address) as other:
        never = "export const start = () => new Promise(() => {}), stop = async () => {};"
        with_python(other, f"export const available = Promise.resolve(true); {never}")
        tab = other.open(PAGE + ASKED[0])
        assert "Python is starting" in tab.locator(".calculator-origin").inner_text()
        tab.locator("[name=stop]").click()
        assert tab.locator(".calculator-progress").inner_text() == "stopped"
        assert tab.locator("[name=stop]").is_hidden() and other.faults == []


REFUSES = """
export const available = Promise.resolve(true);
export const start = async () => {};
export async function call() {
  throw Object.assign(new Error("x"), { python: { message: "sigma must be in [1, 2]" } });
}
"""


def test_what_python_refuses_is_said(browser, address):
    with Watched(browser, address) as other:
        with_python(other, REFUSES)
        tab = other.open(PAGE + ASKED[0])
        tab.wait_for_function("document.querySelector('.calculator-fault').textContent !== ''")
        assert tab.locator(".calculator-fault").inner_text() == "sigma must be in [1, 2]"
        assert number(tab) == "–" and other.faults == []


@pytest.mark.parametrize("looks", SOME_LOOKS)
def test_results_are_accessible_in_both_modes_and_fit_a_phone(python, looks):
    """On a phone in light colours and on a screen in dark ones; the other ways once a week."""
    tab = python.tab
    go(tab, ASKED[0])
    settled(tab)
    tab.locator(".calculator-theorems details").evaluate("(folded) => (folded.open = true)")
    links = tab.locator(".calculator-theorems a").evaluate_all("(all) => all.map((a) => a.href)")
    assert len(links) == len(calculator.answers(query_of(ASKED[0]))["rows"])
    lighten(tab)
    for size, mode in looks:
        where = look(tab, size, mode)
        assert sticking_out(tab) == [], where
        assert violations(tab) == [], where


def test_each_row_links_to_a_block_of_the_book():
    for found in calculator.answers(query_of(ASKED[0]))["rows"]:
        page = (ROOT / "chapters" / f"{found['page']}.md").read_text(encoding="utf8")
        assert f"{{source}}`{found['claim']}" in page, found


def test_without_python_the_page_says_where_to_ask(form):
    tab = form.open(PAGE + ASKED[0])
    assert number(tab) == "–" and tab.locator("[name=compute]").is_hidden()
    assert "Only Python can tell" in tab.locator(".calculator-origin").inner_text()
    assert "python -m dpnotes" in tab.locator(".calculator-off").inner_text()


def test_without_javascript_the_page_says_what_to_do(browser, address):
    with Watched(browser, address, java_script_enabled=False) as plain:
        tab = plain.open(PAGE)
        assert "python -m dpnotes" in tab.locator(".calculator-off").inner_text()
        assert "ε = 2.38512" in tab.locator(".calculator-usual").inner_text()
        assert tab.locator(".calculator form").is_hidden()
