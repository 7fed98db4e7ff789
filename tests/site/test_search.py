"""Search: forty and more questions, and the page that must be among the first three."""

import pytest
import yaml
from test_site import NARROW, Watched, violations

from machine import ROOT, SITE

QUESTIONS = {
    "pure-dp": "what is epsilon; laplace mechanism; randomized response; sensitivity; histogram;"
    " publish a mean; group privacy; post-processing; noise to a count; neighbors;"
    " parallel composition; linkage attack",
    "approximate-dp": "what delta; choose delta; privacy loss; delta below 1/n; ε and δ",
    "gaussian": "laplace or gaussian; guassian; gaussian mechanism",
    "risk": "membership inference; f-DP; GDP; trade-off function; ROC; attack; advantage;"
    " what does epsilon mean; is epsilon 8 good; risk",
    "tail-bounds": "chernoff bound; hoeffding; subgaussian",
    "selection": "exponential mechanism; sparse vector; report noisy max; private median",
    "composition": "advanced composition; privacy budget; many queries",
    "query-release": "multiplicative weights; synthetic data; linear queries",
    "subsampling": "dp-sgd; clipping threshold; train a neural network",
    "renyi-dp": "renyi; Rényi; moments accountant; zcdp; Holder",
    "accounting": "saddle point; privacy accountant; trapezoidal rule",
    "in-practice": "opacus; opacus epsilon; shuffle; users with many rows",
    "stopping": "tune hyperparameters; privacy filter; odometer",
    "erm": "objective perturbation; logistic regression; output perturbation",
    "adaptive-analysis": "holdout reuse; overfitting; thresholdout",
    "floating-point": "floating point noise; discrete gaussian; rounding errors",
    "auditing": "audit my implementation; canaries",
    "calculator": "compute epsilon; how much noise; python -m dpnotes",
    "for-instructors": "homework; grading",
    "api": "API; API reference; signature of a function",
}
ASKED = [(asked.strip(), page) for page, some in QUESTIONS.items() for asked in some.split(";")]
FOUND = """async (asked) => {
  const {find, indexOf} = await import("./_search/rank.js");
  globalThis.texts ??= indexOf(await fetch("./_search/texts.json").then((file) => file.json()));
  return find(globalThis.texts, asked).map((page) => page.address);
}"""


@pytest.fixture(scope="module")
def tab(browser, address):
    with Watched(browser, address) as watched:
        yield watched.open("search.html")


@pytest.mark.parametrize(("asked", "page"), ASKED)
def test_the_page_is_among_the_first_three(tab, asked, page):
    first = tab.evaluate(FOUND, asked)[:3]
    assert f"chapters/{page}.html" in first, first


def test_every_place_of_the_other_words_exists():
    others = yaml.safe_load((ROOT / "site" / "search" / "words.yml").read_text(encoding="utf-8"))
    for place in others:
        page, _, section = place.partition("#")
        text = (SITE / page).read_text(encoding="utf-8")
        assert not section or f'id="{section}"' in text, place


@pytest.mark.parametrize("storage", ["kept", "denied"])
def test_what_is_found_is_shown(browser, address, storage):
    """As words, not as TeX or buttons; also where the browser keeps nothing."""
    watched = Watched(browser, address, viewport=NARROW)
    if storage == "denied":
        denied = "{get() { throw new DOMException('denied', 'SecurityError') }}"
        watched.context.add_init_script(f"Object.defineProperty(window, 'localStorage', {denied})")
    found = watched.open("search.html?q=laplace+mechanism")
    found.locator("#search-results mark").first.wait_for()
    text = found.locator("#search-results").inner_text()
    assert "Pure differential privacy" in text and "“laplace mechanism”" in text
    assert "\\" not in text and "Run all above" not in text
    assert violations(found) == []
    assert storage == "denied" or watched.faults == []
    found.locator("#search-results li a").first.click()
    found.wait_for_url("**/pure-dp.html*")
    watched.context.close()


def test_nothing_found_is_said(browser, address):
    with Watched(browser, address) as watched:
        found = watched.open("search.html?q=qwertzuiop")
        found.get_by_text("No pages for “qwertzuiop”").wait_for()
