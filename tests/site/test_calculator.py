"""The calculator's page: it shows what dpnotes.calculator answers, of usual runs without Python.

This process's Python stands in for that of the page, which takes long to start, but once a week;
that it gives the same answers is checked in test_run_printed.py, where it has started. All needs
Chromium.
"""

import json
import re
import sys
from urllib.parse import parse_qs, urlsplit

import pytest
from test_homework import STAND_IN
from test_site import (
    MOVED,
    SOME_LOOKS,
    Watched,
    lighten,
    look,
    sticking_out,
    violations,
    what_moved,
)

from calculator import USUAL, known_answer, query_of
from dpnotes import calculator
from dpnotes.calculator import command_line
from machine import FOR_PYTHON, ROOT, need_python_in_pages, page_shell
from typed_numbers import COMMAS, NO_NUMBERS, TYPED

with pytest.MonkeyPatch.context() as patch:  # its `myst_nb` is for the page only
    patch.setitem(sys.modules, "myst_nb", None)
    shell = page_shell()

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
        assert said.inner_text().startswith("needs a number above 0 and at most 1.")
        assert ("1e-5" in said.inner_text()) == (wrong in ("x", "1/0", "", "1e400")), "how to write"
        assert field.get_attribute("aria-invalid") == "true"
        assert field.get_attribute("aria-describedby") == said.get_attribute("id")
        assert number(tab) == "–" and tab.locator(".calculator-more").is_hidden()
    row = ("rate", "steps", "rows")  # one with a complaint, one with a name of two lines
    tops = [tab.locator(f"[name={name}]").bounding_box()["y"] for name in row]
    assert max(tops) - min(tops) < 3, "the fields of a row stand in line"
    field.fill("256/60000")
    assert tab.locator(".calculator-wrong").count() == 0 and number(tab).startswith("ε = ")
    assert field.get_attribute("aria-invalid") == "false"


def test_numbers_are_read_as_the_package_reads_them(form):
    tab = form.open(PAGE)
    read = "(text) => [dpnNumbers.value(text), dpnNumbers.tidied(text), dpnNumbers.meanings(text)]"
    for text, (value, code) in TYPED.items():
        assert tab.evaluate(read, text) == [value, code, []], text
    for text in NO_NUMBERS:
        assert tab.evaluate(f"Number.isNaN(({read})({json.dumps(text)})[0])"), text
    for text, meant in COMMAS.items():
        assert tab.evaluate(read, text)[2] == meant, text


def test_a_comma_is_asked_about(form):
    tab = form.open(PAGE)
    field, said = tab.get_by_label("rate of Poisson"), tab.locator(".calculator-wrong")
    field.fill("0,001")
    assert said.inner_text() == "Is this 0.001?" and number(tab) == "–"
    said.get_by_role("button", name="0.001").click()
    assert field.input_value() == words(tab)["rate"] == "0.001" and said.count() == 0
    tab.locator("[name=steps]").fill("1,000")
    assert said.inner_text() == "Is this 1000 or 1.000?"
    field.fill("1,000")
    assert said.first.inner_text() == "Is this 1.000?", "1000 is no rate"
    field.fill("12,000")
    assert said.first.inner_text() == "needs a number above 0 and at most 1."
    field.fill("0.001")
    for many in ("9" * 40, "1e13", "60k"):
        tab.locator("[name=steps]").fill(many)
        assert said.inner_text().startswith("needs a whole number from 1 to 10^12.")
        assert ("6e4" in said.inner_text()) == (many == "60k")
    tab.locator("[name=steps]").fill("1.000,5")
    assert said.inner_text() == "needs no comma."
    assert form.faults == []


def test_batch_and_epochs_stand_for_rate_and_steps(form):
    """They are other fields, not more of them; an address that mixes the two means what it did."""
    tab = form.open(PAGE)

    def shown():
        fields = tab.locator("[data-field] input:visible")
        return fields.evaluate_all("(all) => all.map((field) => field.name)")

    assert shown() == ["delta", "noise", "rate", "steps", "rows"]
    tab.get_by_label("batch and epochs").check()
    assert shown() == ["delta", "noise", "batch", "epochs", "rows"]
    assert tab.locator(".calculator-wrong").count() == 3, "each is needed now"
    go(tab, "?question=epsilon&mechanism=gaussian&noise=1&rate=0.01&delta=1e-6&rows=100&epochs=3")
    assert shown() == ["delta", "noise", "rate", "epochs", "rows"]
    assert not any(way.is_checked() for way in tab.locator("[name=ways]").all())
    tab.get_by_label("I want to know").select_option("rate")
    assert shown() == ["epsilon", "delta", "noise", "steps", "rows"]
    assert tab.locator(".calculator-ways").is_hidden()
    assert form.faults == []


def test_nothing_moves_while_the_page_loads(browser, address):
    """What the script makes of the page is what stands in it, to the pixel: the shift was .20."""
    with Watched(browser, address) as moved:
        with_python(moved, "export const available = Promise.resolve(false);")
        moved.context.add_init_script(MOVED)
        moved.open(PAGE)
        shifts = what_moved(moved)
        of_form = [one for one in shifts if "calculator" in " ".join(one[1:])]
        assert of_form == [] and sum(one[0] for one in shifts) < 0.02


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
    go(tab, next(iter(USUAL)))
    tab.locator("[name=copy]").click()
    call = tab.locator(".calculator-call pre").inner_text()
    assert tab.evaluate("navigator.clipboard.readText()").strip() == call
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
        && document.querySelector(".calculator").dataset.state === "all" """,
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
    remarks = tab.locator(".calculator-remarks li").all_inner_texts()
    assert remarks == calculator.answers(query_of(asked))["warnings"]


def check_details(tab, asked):
    """The table of theorems, and the two charts."""
    assert tab.locator(".calculator-theorems").get_attribute("open") is None, "they are folded"
    row_of = "(all) => all.map((row) => [...row.cells].map((cell) => cell.textContent).join('\\t'))"
    cells = tab.locator(".calculator-theorems tbody tr").evaluate_all(row_of)
    found = calculator.answers(query_of(asked))
    assert tab.locator(".calculator-at").text_content() == f"δ = {found['shown_delta']}"
    rows = found["rows"]
    said = {row["name"]: row["shown"] for row in rows if row["epsilon"] is not None}
    kind = "an approximation, no bound"
    seen = {line.split("\t")[0].removesuffix(kind): line.split("\t")[1] for line in cells}
    assert {name: text.strip() for name, text in seen.items()} == said
    assert tab.locator(".calculator-attack").inner_text() == found["attack"]
    label = tab.locator(".calculator-curve > svg").get_attribute("aria-label")
    assert label.startswith("ε against δ. exact: from ")
    label = tab.locator(".calculator-roc > svg").get_attribute("aria-label")
    (percent,) = re.findall(r"about ([\d.]+) % at 1 %$", label)
    at = calculator.risk({"parts": found["parts"]})["tpr"]
    assert abs(float(percent) - 100 * at) <= 5.1e-3 * 100 * at


def test_a_wrong_field_withdraws_the_answer_until_it_is_right(python):
    tab = python.open(PAGE + ASKED[0])
    settled(tab)
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


def test_stop_ends_what_does_not_come(browser, address):
    with Watched(browser, address) as other:
        never = "export const start = () => new Promise(() => {}), stop = async () => {};"
        with_python(other, f"export const available = Promise.resolve(true); {never}")
        tab = other.open(PAGE + ASKED[0])
        tab.locator(".calculator-origin", has_text="Python is starting").wait_for()
        tab.locator("[name=stop]").click()
        assert tab.locator(".calculator-progress").inner_text() == "stopped"
        assert tab.locator("[name=stop]").is_hidden() and other.faults == []


REFUSES = """
export const available = Promise.resolve(true);
export const start = async () => {};
export async function call() {
  throw Object.assign(new Error("x"), { python: { message: globalThis.refusal } });
}
"""


REFUSED = [  # what Python says, the field where it stands (or none), and how
    ("sigma must be in [1, 2]", "noise", "must be in [1, 2]"),
    ("sigma of loss must be in [1, 2]", "noise", "must be in [1, 2]"),
    ("rows must be a whole number", "rows", "must be a whole number"),
    ("epsilon must be at least 3", None, "epsilon must be at least 3"),
    ("the answer did not come", None, "the answer did not come"),
]


@pytest.mark.parametrize("message, name, shown", REFUSED)
def test_what_python_refuses_is_said_beside_its_field(browser, address, message, name, shown):
    with Watched(browser, address) as other:
        with_python(other, f"globalThis.refusal = {json.dumps(message)};{REFUSES}")
        tab = other.open(PAGE + ASKED[0])
        where = f'[data-field="{name}"] .calculator-wrong' if name else ".calculator-fault"
        tab.locator(where, has_text=shown).wait_for()
        assert tab.locator(where).inner_text() == shown
        assert number(tab) == "–" and other.faults == []


@pytest.mark.parametrize("looks", SOME_LOOKS)
def test_results_are_accessible_in_both_modes_and_fit_a_phone(python, looks):
    """On a phone in light colours and on a screen in dark ones; the other ways once a week."""
    tab = python.tab
    go(tab, ASKED[0])
    settled(tab)
    tab.locator(".calculator-theorems").evaluate("(folded) => (folded.open = true)")
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


def test_first_page_calculator_command_and_package_say_one_number(capsys, monkeypatch):
    """What the best attack on the first page's run finds at 1 % false alarms."""

    def said(line):
        command_line.main(line.split())
        return capsys.readouterr().out

    glued, page = {}, (ROOT / "chapters" / "intro.md").read_text(encoding="utf8")
    monkeypatch.setattr("dpnotes.plotting.glue", glued.__setitem__)
    for cell in re.findall(r"^```\{code-cell\}.*?\n(.*?)^```$", page, re.M | re.S):
        exec(cell, glued)
    run = glued["training"]
    assert "{glue:text}`intro-found` % of those" in page
    line = "--sigma 1.1 --rate 256/60000 --steps 14100"
    told = json.loads(said(f"risk {line} --json"))
    assert told["tpr"] == run.tpr(0.01) == pytest.approx(0.040271, abs=1e-6)
    percent = f"more than {glued['intro-found']} %"
    assert percent in told["shown"] and percent in said(f"epsilon {line} --delta 1e-5")
    first_on_the_form = next(iter(USUAL))
    assert percent in known_answer(first_on_the_form)["attack"]
