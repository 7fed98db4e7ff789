"""What the page's check accepts, the grader's public tests accept, and the other way round.

The page's Python is newer than that of marking. It runs here outside of a page, without packages:
for what it can read. What both make of whole answers is compared in this process's Python.
"""

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from assignments.grader import check, marking, masters, reading, sandbox, session, words
from machine import ROOT, module_at, unable
from snippets import NEW, OLD

checker = module_at("site/homework/check.py")
PATHS = sorted((ROOT / "assignments").glob("*.md"))
LIMITS = sandbox.Limits(cell_seconds=300, total_seconds=3600)
TEST = {"id": "test-1a", "kind": "test", "source": "assert f(2) == 4, 'f squares'"}
PROGRAM = """
import json
{code}
given = json.loads(given)
def refused(source):
    try:
        refuse_new_syntax(source, "cell")
    except TooNew as error:
        return error.msg
answers = [check(cells, "test-1a") for cells in given["cells"]]
json.dumps([answers, [refused(source) for source in given["sources"]]])
"""


@pytest.fixture(scope="module")
def in_the_page():
    """(answers of `check`, reasons to refuse a source) of the page's own Python."""
    node = shutil.which("node", path=str(Path(sys.executable).parent)) or shutil.which("node")
    if not node or not (ROOT / "node_modules" / "pyodide").exists():
        unable("Node or the packages of `package.json` are missing")

    def ask(cells=(), sources=()):
        code = (ROOT / "site" / "homework" / "check.py").read_text(encoding="utf-8")
        given = [PROGRAM.format(code=code), {"cells": cells, "sources": sources}]
        command, options = [node, Path(__file__).with_name("pyodide.mjs")], {"timeout": 300}
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True,
                              **options)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def grader_reads(source, started):
    started.run("f = None")
    return not started.run(source) and started.call("f", (2,), {}) == 4


def test_the_page_refuses_syntax_that_marking_cannot_read(bubblewrap, in_the_page):
    every = NEW + OLD
    assert len(every) > 40
    answers, _ = in_the_page([[{"id": "1a", "kind": "code", "source": s}, TEST] for s in every])
    with session.Session([], LIMITS, sandbox.Bubblewrap(LIMITS)) as started:
        marked = [grader_reads(source, started) for source in every]
    oldest = sys.version_info[:2] == checker.OLDEST
    for source, answer, accepted in zip(every, answers, marked, strict=True):
        assert accepted or not answer["ok"], source
        assert not oldest or answer["ok"] == accepted, (source, answer["message"])
    for source, answer in zip(NEW, answers, strict=False):
        assert answer["message"].startswith("marking runs Python 3.11 to 3.13, which"), source
    assert sum(answer["ok"] for answer in answers[len(NEW) :]) == len(OLD) - 2


def test_one_list_of_versions():
    assert "marking runs Python 3.11 to 3.13" == checker.MARKING and checker.MARKING in words.RULES


def books(path):
    """The master, and its wrong answers, as many in a book as there are questions."""
    master = masters.read(path)
    shared = check.groups(check.wrong_answers(path))
    return master, [check.solved(master), *(check.spoiled(master, group) for group in shared)]


def test_the_page_reads_every_master_and_every_wrong_answer(in_the_page):
    sources = {
        c.source for p in PATHS for b in books(p)[1] for c in b.cells if c.cell_type == "code"
    }
    _, refused = in_the_page(sources=sorted(sources))
    assert len(refused) > 300 and not any(refused)


def page_cells(book, master):
    """The cells as the page has them: what is run, and of which kind it is."""
    tests = {f"test-{q.id}" for q in master.questions}
    for cell in (c for c in book.cells if c.cell_type == "code"):
        answer = masters.grading(cell).get("solution")
        kind = "test" if cell.id in tests else "code" if answer else "given"
        yield {"id": cell.id, "kind": kind, "source": cell.source}


def graders(master, book, folder):
    """{question: whether its public tests hold}, by the grader, without a lent answer."""
    file = folder / "book.ipynb"
    file.write_text(json.dumps(book), encoding="utf-8")
    steps = reading.read("ada", file, [], master).steps
    with session.Session(master.given, LIMITS, sandbox.Bubblewrap(LIMITS)) as started:
        tried = marking.Marking(started, steps, master, marking.namespace(master))
        tried.run_steps(steps, tried.public)
        return {q: q in tried.spaces for q in tried.questions}


WEEKLY = [pytest.param(path, None, id=path.stem, marks=pytest.mark.thorough) for path in PATHS]


@pytest.mark.parametrize("path, most", [(ROOT / "assignments" / "laplace.md", 2), *WEEKLY])
@pytest.mark.timeout(3600)
def test_page_and_grader_agree(bubblewrap, path, most, tmp_path):
    """Of the master and of each wrong answer, which questions hold their public tests."""
    master, every = books(path)
    for book in every[:most]:
        cells = [c for c in page_cells(book, master) if not c["id"].endswith("-plot")]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            marked = graders(master, book, tmp_path)
            seen = {q: checker.check(cells, f"test-{q}") for q in marked}
        assert {q: one["ok"] for q, one in seen.items()} == marked
