"""The pages keep to the rules of site/checks/lint.py, and each rule is seen to catch a fault."""

import re

import numpy as np
import pytest

from checks import lint
from dpnotes.sentences import NUMBER
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


FAULTS = [
    (lint.long_cells, cell(*["x = 1"] * 31)),
    (lint.unknown_tags, cell("x = 1", options=":tags: [hide-imput]\n")),
    (lint.unknown_tags, cell("x = 1", options="---\ntags:\n  - hide-input\n  - wrong\n---\n")),
    (lint.unlabelled_claims, ":::{prf:theorem} A claim\nIt holds.\n:::\n"),
    (lint.strange_labels, ":::{prf:theorem} A claim\n:label: t-999\nIt holds.\n:::\n"),
    (lint.notation, r"$\log p$"),
    (lint.notation, "two data sets"),
    (lint.notation, r"$(\alpha, \eps)$-RDP"),
    (lint.notation, "rate $q$"),
    (lint.notation, "rate $p$"),
    (lint.notation, r"$\qed$"),
    (lint.notation, r"$60\,000$"),
    (lint.unseeded_randomness, cell("rng = np.random.default_rng()")),
    (lint.unseeded_randomness, cell("np.random.seed(1)")),
    (lint.unseeded_randomness, cell("np.random.normal(3)")),
    (lint.unseeded_randomness, cell("import random")),
    (lint.unseeded_randomness, cell("x = stats.norm.rvs(size=3)")),
    (lint.glue, cell('glue("planted-x", x, display=False)')),
    (lint.typed_numbers, cell("x = 2.5") + "It falls to $2.71$.\n"),
    (lint.typed_numbers, cell('show(fig, alt="It falls to 2.71.")', "x = 2.5")),
    (lint.typed_numbers, cell("x = 2.5") + "About 1,797 of them fall.\n"),
    (lint.typed_numbers, cell("y = 0.41") + "It costs 41 percent.\n"),
    (lint.typed_numbers, cell("y = 2.5", "assert y > 2.71  # 2.71") + "It falls to 2.71.\n"),
    (lint.typed_numbers, cell('plotting.says({"falls to 2.7": 2.71})') + "It falls to 2.75.\n"),
    (
        lint.typed_numbers,
        cell('plotting.says({"a third": 1 / 3})') + "A third, a third, a third.\n",
    ),
    (lint.sides, "On the left it falls.\n"),
    (lint.sides, cell('show(fig, alt="Left: it falls.")')),
    (lint.exercises, "```{exercise} Alone\nProve it.\n```\n"),
    (lint.exercises, "```{exercise} One\n:label: ex-a\n```\n```{solution} ex-b\n```\n"),
]


@pytest.mark.parametrize(("rule", "text"), FAULTS)
def test_rule_catches_a_fault(rule, text):
    assert len(rule(lint.Page("planted", text))) == 1


def test_fifty_false_numbers_are_seen():
    """In place of a number that is tied to its words, one that the page's code has already, or
    another number word: three on each page."""
    rng = np.random.default_rng(57)
    tied = [page for page in PAGES if lint.said(page)[0]]
    assert {page.name for page in tied} >= {page.name for page in PAGES if len(page.cells()) > 3}
    planted = [fault for page in tied for fault in false_numbers(page, rng)]
    assert len(planted) >= 50
    unseen = [fault for fault, page in planted if not lint.typed_numbers(page)]
    assert unseen == []


def false_numbers(page, rng):
    """Three faults, each as (words, page with it)."""
    words, code = lint.said(page)
    for said in rng.choice(words, 3):
        if re.search(r"\d", said):
            numbers = [n for n in re.findall(r"\d+(?:\.\d+)?", code) if n not in said]
            false = re.sub(r"\d+(?:\.\d+)?(?!.*\d)", str(rng.choice(numbers)), said)
        else:
            false = NUMBER.sub(
                lambda found: "nine" if "seven" in found[0].lower() else "seven", said
            )
        text = page.text
        for line in page.text.split("\n"):
            if said in line and f'{said}":' not in line:
                text = text.replace(line, line.replace(said, false))
        assert text != page.text, said
        yield said, lint.Page(page.name, text)


def test_the_small_accountant_has_as_many_lines_as_its_page_says():
    (page,) = [page for page in PAGES if page.name == "accounting"]
    parts = ("def cumulant(", "C = lambda c:", "def exact_epsilon(")
    cells = [code for _, code in page.cells() if code[0].startswith(parts)]
    assert len(cells) == len(parts) and sum(map(len, cells)) == 22
    assert page.text.count("twenty-two lines") == 2


def test_every_rule_is_seen_to_catch_one():
    assert {rule for rule, _ in FAULTS} == set(lint.RULES)


def test_unused_equation_label_is_found():
    page = lint.Page("planted", "text\n\n$$\nx = 1\n$$ (eq-planted-lonely)\n")
    assert lint.unused_labels(page, page.text)
    assert not lint.unused_labels(page, page.text + "see {eq}`eq-planted-lonely`")


def test_options_of_a_cell_are_none_of_its_lines():
    long = cell(*["x = 1"] * 30, options=":tags: [hide-input]\n")
    assert lint.long_cells(lint.Page("planted", long)) == []
