"""The calculator's page: its table is on the safe side, its form answers, Python in it is exact.

The table is checked as it is read: table.js runs under Node with the site's grid.js. This process's
Python stands in for that of the page, which takes long to start, but once a week; that it gives the
same answers is checked in test_run.py, where it has started. The form needs
Chromium; the exact answer needs the site's Python too.
"""

import gzip
import json
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from test_homework import STAND_IN
from test_site import (
    AXE,
    NARROW,
    SOME_LOOKS,
    Watched,
    lighten,
    look,
    sticking_out,
    violations,
)

import dpnotes as dp
from dpnotes import calculator
from katex_math import node_executable
from machine import ROOT, SITE, light_address, module_at, unable

address = light_address  # test_site.py looks at the page with its formulas

with pytest.MonkeyPatch.context() as patch:  # its `myst_nb` is for the page only
    patch.setitem(sys.modules, "myst_nb", None)
    shell = module_at("site/run/shell.py")

PAGE = "chapters/calculator.html"
GRID = SITE / "_calculator" / "grid.js"
MAKERS = {
    "gaussian": dp.gaussian,
    "laplace": dp.laplace,
    "pure": dp.randomized_response,
    "response": dp.randomized_response,
}


def run_of(query, **more):
    """The loss of what the form describes."""
    query = {**query, **more}
    step = MAKERS[query["mechanism"]](query["noise"])
    return dp.subsample(step, query["rate"]).compose(query["steps"])


# ------------------------------------------------------------------------------- the table


def from_table(queries, damage=""):
    """What table.js answers, `damage` done to its source before."""
    source = (ROOT / "site/calculator/table.js").read_text(encoding="utf8")
    if damage:
        assert damage[0] in source
        source = source.replace(*damage)
    ask = "JSON.stringify(QUERIES.map(globalThis.dpnotesTable.answer))"
    script = f"{GRID.read_text(encoding='utf8')}\n{source}\nconsole.log({ask})"
    script = script.replace("QUERIES", json.dumps(queries))
    done = subprocess.run(
        [node_executable(), "-"], input=script, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def some_queries(rng, mechanism, low, high, size, question="epsilon"):
    """Random runs within the table; the noise is spread evenly on a logarithmic scale."""
    return [
        {
            "question": question,
            "mechanism": mechanism,
            "noise": float(np.exp(rng.uniform(np.log(low), np.log(high)))),
            "rate": float(10 ** rng.uniform(-4, 0)) if rng.random() < 0.75 else 1.0,
            "steps": int(10 ** rng.uniform(0, 4.5)),
            "delta": float(10 ** rng.uniform(-10, -3)),
        }
        for _ in range(size)
    ]


WITHIN = {"gaussian": (0.41, 49.0), "laplace": (0.51, 99.0), "pure": (0.0101, 4.9)}


@pytest.mark.parametrize("mechanism", WITHIN)
def test_the_table_is_never_below_the_exact_number(mechanism):
    queries = some_queries(np.random.default_rng(16), mechanism, *WITHIN[mechanism], size=25)
    found = np.array(from_table(queries), dtype=float)
    assert np.isfinite(found).all()
    # exactly: at the epsilon of the table no more than delta is left
    left = [run_of(q).delta(e) / q["delta"] for q, e in zip(queries, found, strict=True)]
    assert max(left) <= 1 + 1e-9


def test_the_table_is_a_tenth_too_large_where_it_is_used_most():
    queries = [
        dict(question="epsilon", mechanism="gaussian", noise=s, rate=r, steps=k, delta=1e-5)
        for s, r, k in ((1.1, 256 / 60_000, 14_100), (1.5, 0.01, 5000), (20, 1, 100), (4, 0.1, 300))
    ]
    exact = np.array([run_of(q).epsilon(1e-5) for q in queries])
    assert (np.array(from_table(queries)) / exact < 1.15).all()


def test_a_table_that_takes_the_smaller_node_is_caught():
    queries = some_queries(np.random.default_rng(16), "gaussian", 0.41, 49.0, size=25)
    damage = ("(1 - w) * low + w * high", "low")
    found = from_table(queries, damage)
    assert any(run_of(q).delta(e) > q["delta"] for q, e in zip(queries, found, strict=True))


def test_the_other_way_round_is_safe():
    rng = np.random.default_rng(17)
    for question in ("noise", "steps", "rate", "delta"):
        queries = some_queries(rng, "gaussian", 0.8, 10.0, size=8, question=question)
        queries = [
            dict(q, epsilon=float(rng.uniform(0.5, 8)), steps=10 + q["steps"]) for q in queries
        ]
        answers = from_table(queries)
        assert sum(found is not None for found in answers) >= 3
        for query, found in zip(queries, answers, strict=True):
            if found is not None:
                known = {**query, question: found}
                assert run_of(known).delta(known["epsilon"]) <= known["delta"] * (1 + 1e-9)


def test_a_step_of_any_kind_has_no_larger_moments():
    for mechanism in ("laplace", "pure"):
        query = dict(question="epsilon", mechanism=mechanism, rate=0.3, steps=50, delta=1e-5)
        query["noise"] = {"laplace": 2.0, "pure": 0.5}[mechanism]
        pure, found = from_table([{**query, "mechanism": "pure", "noise": 0.5}, query])
        assert found <= pure * (1 + 1e-9)


def shape(function, points):
    """How far the middle of neighbours lies above the function, and its steps; both relative."""
    values = np.array([function(float(x)) for x in points])
    bent = (values[2:] + values[:-2]) / 2 - values[1:-1]
    return (bent / values[1:-1]).min(), (np.diff(values) / values[1:]).min()


def log_moment(mechanism, noise, rate, order):
    return (order - 1) * dp.subsample(MAKERS[mechanism](noise), rate).renyi(float(order))


@pytest.mark.parametrize("order", [2, 3, 5, 17])
def test_the_moments_are_convex_and_grow_as_the_page_proves(order):
    """Proposition calculator-table; a wrong power of the rate is caught."""
    for mechanism, noise in (("gaussian", 0.9), ("laplace", 0.7), ("pure", 1.5)):

        def excess(rate, power=2, of=(mechanism, noise)):
            return np.expm1(log_moment(*of, rate, order)) / rate**power

        assert min(shape(excess, np.linspace(0.02, 1, 15))) >= -1e-10
    if order == 2:
        assert shape(lambda rate: excess(rate, power=3), np.linspace(0.02, 1, 15))[1] < -0.01
    for rate in (0.01, 0.3, 1.0):
        families = (
            lambda t, rate=rate: log_moment("gaussian", t**-0.5, rate, order),
            lambda t, rate=rate: log_moment("laplace", 1 / t, rate, order),
            lambda epsilon, rate=rate: np.exp(log_moment("pure", epsilon, rate, order)),
        )
        for family in families:
            assert min(shape(family, np.linspace(0.1, 3, 15))) >= -1e-10


def test_the_page_asks_for_little():
    files = [SITE / "_calculator" / n for n in ("grid.js", "table.js", "calculator.js")]
    sizes = [len(gzip.compress(file.read_bytes())) for file in files]
    assert sizes[0] <= 60_000 and sum(sizes) <= 70_000
    others = [p for p in (SITE / "chapters").glob("*.html") if p.name != "calculator.html"]
    assert all("_calculator/" not in p.read_text(encoding="utf8") for p in others)


# ------------------------------------------------------------------------------- the form


@pytest.fixture(scope="module")
def form(browser, address):
    """A tab with the calculator and a clipboard."""
    with Watched(browser, address) as form:
        form.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        form.context.add_init_script(path=AXE)
        yield form


def number(tab):
    return tab.locator(".calculator-number").inner_text()


def words(tab):
    """The parameters in the address."""
    return {name: value[0] for name, value in parse_qs(urlsplit(tab.url).query).items()}


def test_the_form_answers_at_once(form):
    tab = form.open(PAGE)
    query = dict(mechanism="gaussian", noise=1.1, rate=256 / 60_000, steps=14_100, delta=1e-5)
    bound = float(number(tab).removeprefix("ε ≤ "))
    exact = run_of(query).epsilon(1e-5)
    assert exact < bound < 1.15 * exact
    described = tab.locator(".calculator-curve > svg").get_attribute("aria-label")
    assert described.startswith("ε against δ")
    assert tab.locator(".calculator-theorems").is_hidden()
    tab.get_by_label("σ, in units").fill("2.2")
    assert float(number(tab).removeprefix("ε ≤ ")) < bound / 2
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
        assert number(tab) == "–" and tab.locator(".calculator-curve > svg").count() == 0
    tops = [tab.get_by_label(name).bounding_box()["y"] for name in ("rate of", "σ, in units")]
    assert abs(tops[0] - tops[1]) < 3, "the field does not move"
    assert tab.get_by_text("What the number assumes").is_hidden()
    assert tab.get_by_role("button", name="Compute exactly").is_disabled()
    assert tab.locator("[name=copy]").is_hidden()
    field.fill("1/2")
    assert tab.locator(".calculator-wrong").count() == 0 and number(tab).startswith("ε ≤ ")
    assert field.get_attribute("aria-invalid") == "false"


def test_the_address_is_the_state(form):
    tab = form.open(PAGE)
    tab.get_by_label("I want to know").select_option("noise")
    tab.get_by_label("target ε").fill("3")
    tab.get_by_label("target ε").press("Tab")
    assert words(tab)["question"] == "noise" and words(tab)["epsilon"] == "3"
    assert "noise" not in words(tab) and words(tab)["rate"] == "256/60000"
    said, where = number(tab), tab.url
    assert said.startswith("σ = ") and said.endswith("is enough")
    tab.get_by_label("Mechanism").select_option("laplace")
    assert number(tab) != said
    tab.go_back()
    assert tab.get_by_label("Mechanism").input_value() == "gaussian" and number(tab) == said
    tab.go_back()
    assert tab.get_by_label("target ε").input_value() == "2"
    tab.go_forward()
    assert number(tab) == said
    tab.goto(where)
    assert number(tab) == said
    tab.get_by_role("button", name="Copy the address").click()
    assert tab.evaluate("navigator.clipboard.readText()") == where
    assert form.faults == []


ASKED = [
    "question=epsilon&mechanism=gaussian&noise=1.1&rate=0.00427&steps=14100&delta=1e-5",
    "question=epsilon&mechanism=laplace&noise=10&rate=1&steps=20&delta=1e-6",
    "question=delta&mechanism=pure&noise=0.1&rate=0.5&steps=100&epsilon=1",
    "question=noise&mechanism=gaussian&rate=0.01&steps=1000&epsilon=2&delta=1e-5",
    "question=steps&mechanism=response&noise=0.1&rate=1&epsilon=2&delta=1e-5",
    "question=rate&mechanism=gaussian&noise=1.1&steps=500&epsilon=2&delta=1e-5",
]


def go(tab, asked):
    """To another address of the same page, without loading it again."""
    tab.evaluate(
        """(asked) => {
        history.pushState(null, "", "?" + asked);
        dispatchEvent(new PopStateEvent("popstate"));
        }""",
        asked,
    )


@pytest.mark.parametrize("asked", ASKED)
def test_the_call_to_copy_is_the_one_of_the_package(form, asked):
    tab = form.tab if PAGE in form.tab.url else form.open(PAGE)
    go(tab, asked)
    tab.locator("[name=copy]").click()
    copied = tab.evaluate("navigator.clipboard.readText()")
    *lines, last = copied.splitlines()
    names = {}
    exec("\n".join(lines), names)
    assert eval(last, names) == calculator.answers(query_of(asked))["answer"]
    assert form.faults == []


def query_of(asked):
    """The query that the form asks of Python, for an address."""
    given = {name: value[0] for name, value in parse_qs(asked).items()}
    part = {"mechanism": given["mechanism"]}
    parameter = {"gaussian": "sigma", "laplace": "scale"}.get(part["mechanism"], "epsilon")
    for name, key in (("noise", parameter), ("rate", "rate"), ("steps", "steps")):
        if name in given:
            part[key] = float(given[name])
    target = {name: float(given[name]) for name in ("epsilon", "delta") if name in given}
    return {"question": given["question"], "parts": [part], **target}


@pytest.fixture(scope="module")
def with_python():
    """The site was built with Python; said plainly if not, and a failure where CI is set."""
    facts = SITE / "_run" / "runtime.json"
    if not (facts.exists() and json.loads(facts.read_text())["available"]):
        unable("the site was built without Python: exact answers were not checked")


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
        form.context.add_init_script(path=AXE)
        if request.param == "own":
            request.getfixturevalue("with_python")
        else:
            form.context.expose_function("thisPython", in_this_process)
            script = {"body": STAND_IN, "content_type": "text/javascript"}
            form.context.route("**/_run/python.js", lambda route: route.fulfill(**script))
        form.open(f"{PAGE}?{ASKED[0]}").get_by_role("button", name="Compute exactly").click()
        settled(form.tab)
        yield form


def settled(tab):
    """Wait until the exact answer, its table and its curve are there."""
    tab.wait_for_function(
        """() => !document.querySelector(".calculator").hasAttribute("aria-busy")
        && document.querySelector(".calculator-origin").textContent.startsWith("Exact")
        && document.querySelector(".calculator-progress").textContent === "" """,
    )


def check_exact(tab, asked):
    """The page shows what the command line prints, to the printed digits."""
    found = calculator.answers(query_of(asked))
    assert number(tab).split(" = ")[1] == found["shown"]
    origin = tab.locator(".calculator-origin").inner_text()
    shown = [float(word.strip(".")) for word in origin.split() if word[0].isdigit()]
    assert shown == pytest.approx([found["low"], found["high"]], rel=1e-11)
    cells = tab.locator(".calculator-theorems tbody tr").all_inner_texts()
    said = {row["name"]: row["shown"] for row in found["rows"] if row["epsilon"] is not None}
    seen = {line.split("\t")[0].splitlines()[0].strip(): line.split("\t")[1] for line in cells}
    assert {name: text.strip() for name, text in seen.items()} == said
    assert tab.locator(".calculator-call pre").inner_text() == found["call"]
    assert tab.locator(".calculator-remarks li:visible").all_inner_texts() == found["warnings"]


def test_the_exact_answer_is_that_of_the_command_line(python):
    check_exact(python.tab, ASKED[0])
    label = python.tab.locator(".calculator-curve > svg").get_attribute("aria-label")
    assert "exact: from" in label and "Rényi DP: from" in label
    python.tab.get_by_label("rate of Poisson").fill("2")
    muted = python.tab.locator(".calculator-progress").evaluate("(e) => getComputedStyle(e).color")
    answer = python.tab.locator(".calculator-number")
    assert answer.evaluate("(one) => getComputedStyle(one).color") == muted
    assert number(python.tab) == "–" and python.tab.locator(".calculator-theorems").is_hidden()
    python.tab.get_by_label("rate of Poisson").fill("0.00427")
    settled(python.tab)
    assert python.faults == []


@pytest.mark.parametrize("asked", ASKED[1:4])
def test_later_answers_are_exact_without_a_click(python, asked):
    tab = python.tab
    go(tab, asked)
    settled(tab)
    check_exact(tab, asked)


def test_stop_ends_it_and_the_table_still_answers(with_python, browser, address):
    other = Watched(browser, address, viewport=NARROW)
    tab = other.open(f"{PAGE}?{ASKED[0]}")
    tab.get_by_role("button", name="Compute exactly").click()
    tab.get_by_role("button", name="Stop", exact=True).first.click()
    assert tab.locator(".calculator-progress").inner_text() == "stopped"
    tab.get_by_label("σ, in units").fill("2")
    assert number(tab).startswith("ε ≤ ") and tab.locator("[name=stop]").is_hidden()
    assert tab.locator(".calculator-fault").inner_text() == ""
    assert [fault for fault in other.faults if "failed" not in fault] == []
    other.context.close()


@pytest.mark.parametrize("looks", SOME_LOOKS)
def test_results_are_accessible_in_both_modes_and_fit_a_phone(python, looks):
    """On a phone in light colours and on a screen in dark ones; the other ways once a week."""
    tab = python.tab
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
        assert f":label: {found['claim'].lower()}\n" in page, found


def test_without_javascript_the_page_says_what_to_do(browser, address):
    with Watched(browser, address, java_script_enabled=False) as plain:
        tab = plain.open(PAGE)
        assert "python -m dpnotes" in tab.locator(".calculator-off").inner_text()
        assert tab.locator(".calculator form").is_hidden()
