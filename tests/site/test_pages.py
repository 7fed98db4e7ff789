"""The pages' sources keep to the rules of site/lint.py, and each rule is seen to catch a fault."""

import pytest

import lint
from machine import ROOT

PAGES = [lint.Page.read(file) for file in sorted((ROOT / "chapters").glob("*.md"))]


@pytest.mark.parametrize("rule", lint.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_keeps_the_rule(page, rule):
    assert rule(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_equation_labels_are_used(page):
    assert lint.unused_labels(page, "\n".join(p.text for p in PAGES)) == []


def cell(*lines, options=""):
    return "```{code-cell}\n" + options + "\n".join(lines) + "\n```\n"


FAULTS = {
    lint.long_cells: cell(*["x = 1"] * 31),
    lint.unknown_tags: cell("x = 1", options=":tags: [hide-imput]\n"),
    lint.unlabelled_claims: ":::{prf:theorem} A claim\nIt holds.\n:::\n",
    lint.strange_labels: ":::{prf:theorem} A claim\n:label: t-999\nIt holds.\n:::\n",
    lint.notation: ":::{admonition} Proof\n:class: dropdown\nIt is so.\n:::\n",
    lint.unseeded_randomness: cell("rng = np.random.default_rng()"),
    lint.glue: cell('glue("planted-x", x, display=False)'),
    lint.exercises: "```{exercise} Alone\n:label: ex-alone\nProve it.\n```\n",
}


@pytest.mark.parametrize("rule", lint.RULES, ids=lambda rule: rule.__name__)
def test_rule_catches_a_fault(rule):
    assert rule(lint.Page("planted", FAULTS[rule]))


@pytest.mark.parametrize(
    "code",
    ["np.random.seed(1)", "import random", "x = stats.norm.rvs(size=3)", "np.random.normal(3)"],
)
def test_unseeded_randomness_is_found_in_each_form(code):
    assert lint.unseeded_randomness(lint.Page("planted", cell(code)))


@pytest.mark.parametrize(
    "text",
    [r"$\log p$", "two data sets", r"$(\alpha, \eps)$-RDP", "rate $q$", r"$\qed$"],
)
def test_other_notation_is_found(text):
    assert lint.notation(lint.Page("planted", text))


def test_unused_equation_label_is_found():
    page = lint.Page("planted", "text\n\n$$\nx = 1\n$$ (eq-planted-lonely)\n")
    assert lint.unused_labels(page, page.text)
    assert not lint.unused_labels(page, page.text + "see {eq}`eq-planted-lonely`")


def test_lines_of_a_cell_with_options_are_counted():
    page = lint.Page("planted", cell("x = 1", "y = 2", options=":tags: [hide-input]\n"))
    assert [len(code) for _, code in page.cells()] == [2]


def test_a_multiline_block_of_tags_is_read():
    options = "---\ntags:\n  - hide-input\n  - wrong-tag\n---\n"
    page = lint.Page("planted", cell("x = 1", options=options))
    assert lint.unknown_tags(page) == ["unknown cell tag 'wrong-tag'"]
