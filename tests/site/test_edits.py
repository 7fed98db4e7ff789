"""A reader's edit stops no cell below: numbers of visible cells changed, in CPython.

Hidden cells check the book's own numbers. Here they must do for other numbers, too.
"""

import json
import subprocess
import sys

import pytest
from test_run_printed import EXECUTED, printed
from visits import PAGES

from machine import ROOT
from run.cells import definitions


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("a = 1 / 0\nb = 2", {"b": 2}),
        ("assert 1 > 2\nplotting.says({'1': 2})\nplotting.glue('x', 3)", {}),
        ("for n in (1, 2):\n    assert n > 1\n    m = n", {"n": 2, "m": 2}),
        ("def f():\n    assert 0, 'no'\n    return 5\nc = f()", {"c": 5}),
    ],
)
def test_what_is_left_of_a_hidden_cell(code, left):
    space = {}
    exec(definitions(code), space)
    assert {name: space[name] for name in space if name not in ("__builtins__", "f")} == left


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("page", PAGES)
def test_below_an_edit_every_cell_runs_or_fails_by_its_own_code(page, seed):
    """One changed number a page; once a week twenty. Unchanged, all text is as it is printed."""
    count = 1 if seed == 1 else 20
    asked = [sys.executable, "-m", "tests.edits", page, str(count), str(seed)]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = json.loads(told)
    assert texts(found["shown"]) == printed_texts(page)
    faults = []
    for change in found["changes"]:
        for name, error, traceback in change["ended"]:
            by_itself = error is None or f"<{name}>" in traceback
            if (name == "a hidden cell" and error) or not by_itself:
                faults.append((change["cell"], change["source"], name, traceback))
    assert faults == []
    slow = [change for change in found["changes"] if not change["ended"]]
    assert len(slow) <= len(found["changes"]) / 4, "too many were ended in the changed cell"


def words(outputs):
    """The words and numbers of the outputs that are text."""
    return " ".join(text for kind, text in outputs if kind == "text").split()


def texts(shown):
    """What each visible cell shows as text."""
    cells = [cell["outputs"] for cell in shown if cell["number"]]
    return [words((output["type"], output["data"]) for output in outputs) for outputs in cells]


def printed_texts(page):
    """What the book prints for each of them."""
    notebook = json.loads((EXECUTED / f"{page}.ipynb").read_text(encoding="utf-8"))
    blocks = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    visible = [b for b in blocks if "remove-input" not in b["metadata"].get("tags", ())]
    return [words(map(printed, block["outputs"])) for block in visible]
