"""One answer has one try, time is kept back for the tests, memory of sockets is counted."""

import json
import re
import socket
import sys

import pytest
from nbformat.v4 import new_code_cell

from assignments.grader import check, files, judge, marking, masters, sandbox
from honest import EPS, EST, WORST
from machine import LOOP

LIMITS = sandbox.Limits(cell_seconds=3, total_seconds=24, memory_mb=400)
RIGHT = "(np.mean(reports) * (1 + np.exp(epsilon)) - 1) / (np.exp(epsilon) - 1)"

PAIRS = """
import os, socket, time
for _ in range(12):
    if os.fork() == 0:
        keep = [socket.socketpair() for _ in range(100)]
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""


@pytest.fixture
def mark(master, bubblewrap, tmp_path):
    def grade(notebook, limits=LIMITS):
        file = tmp_path / "ada.ipynb"
        file.write_text(json.dumps(notebook), encoding="utf-8")
        launcher = sandbox.Bubblewrap(limits)
        return judge.grade_submission(master, ("ada", file, []), limits, launcher)

    return grade


def points(result):
    return sum(score or 0 for score in result["scores"].values())


def place(notebook, name):
    ids = [masters.grading(cell).get("grade_id") for cell in notebook.cells]
    return ids.index(name)


def test_copies_of_a_test_cell_give_no_second_try(master, mark):
    """An answer that takes another way each time its test cell begins again."""
    notebook = check.solved(master)
    spot = place(notebook, "test-1c")
    answer = notebook.cells[place(notebook, "1c")]
    first_reports = "seen = []\n"
    answer.source = (
        first_reports
        + EST
        + (
            "    seen.append(np.asarray(reports).tobytes())\n"
            f"    value = {RIGHT}\n"
            "    return 0.5 if len(reports) == 8 and seen.count(seen[0]) < 3 else value\n"
        )
    )
    for _ in range(2):
        notebook.cells.insert(spot, json.loads(json.dumps(notebook.cells[spot])))
    result = mark(notebook)
    assert result["scores"]["1c"] == 0 and points(result) == 18
    assert "the test cell of 1c stands there 3 times" in result["flags"]


@pytest.mark.parametrize("at", [2, None])
def test_experiments_that_run_too_long_cost_no_answer(master, mark, at):
    """Nine of them before all answers, or behind them: each of its full time is all there is."""
    notebook = check.solved(master)
    at = len(notebook.cells) if at is None else at
    notebook.cells[at:at] = [new_code_cell(f"number = {n}\n{LOOP}") for n in range(9)]
    result = mark(notebook)
    assert points(result) == 20, result["messages"]
    assert marking.CUT.format(24) in result["flags"]


def test_a_student_is_told_that_time_ran_out(master, mark):
    notebook = check.solved(master)
    answer = notebook.cells[place(notebook, "3b")]
    slow = "    end = time.process_time() + 4 * (len(epsilons) > 2)\n    while time.process_time() < end: pass\n"  # noqa: E501
    answer.source = "import time\n" + answer.source.replace("):\n", f"):\n{slow}", 1)
    said = mark(notebook)["messages"]
    assert "too long" in said["3b"] or "took longer than 3 seconds" in said["3b"]


def test_memory_that_the_kernel_holds_for_sockets_is_counted(master, mark):
    notebook = check.solved(master)
    notebook.cells.insert(2, new_code_cell(
        "import socket\npairs = []\n"
        "a, b = socket.socketpair()\n"
        "try:\n    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * 2**20)\n"
        "    print('size CHANGED')\n"
        "except PermissionError:\n    print('size refused')\n"
        "a.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)\nprint('option set')\n"
    ))  # fmt: skip
    result = mark(notebook)
    assert points(result) == 20
    assert "size refused" in result["log"] and "option set" in result["log"]
    notebook.cells.insert(3, new_code_cell(PAIRS))
    assert "used too much memory" in mark(notebook)["log"]


def test_what_failed_first_is_told(master, mark):
    """A helper whose cell needs a package that is missing; the given imports below such a line."""
    notebook = check.solved(master)
    for cell in notebook.cells:
        if cell.id == "1c":
            cell.source = EST + "    return mine(reports, epsilon)"
        if cell.id == "3a":
            cell.source = WORST + "    return math.inf, math.inf"
    notebook.cells[2:2] = [
        new_code_cell(f"import seaborn as sns\n{EST.replace('estimate', 'mine')}    return 0"),
        new_code_cell("from google.colab import drive\ndrive.mount('/here')\nimport math"),
    ]
    result = mark(notebook)
    assert points(result) == 14
    first = "the cell that should define `mine` stopped with ModuleNotFoundError"
    assert first in result["messages"]["1c"] and "'seaborn'" in result["messages"]["1c"]
    assert "define `math` stopped with ModuleNotFoundError" in result["messages"]["3a"]
    missing = [f for f in result["flags"] if f.startswith("a package is missing")]
    assert missing == ["a package is missing: seaborn", "a package is missing: google"]


def test_no_path_and_no_name_of_this_machine_reaches_a_student(master, mark):
    """Raised, returned, and in the text of a module's error."""
    notebook = check.solved(master)
    told = {
        "1a": EPS + "    import sys\n    raise ValueError(sys.prefix, sys.base_prefix)",
        "1c": EST + "    import os\n    return os.__file__, np.__file__, os.uname().nodename",
        "3a": WORST + "    import numpy.no_such",
    }
    for question, answer in told.items():
        notebook.cells[place(notebook, question)].source = answer
    result = mark(notebook)
    assert points(result) == 20 - 2 - 2 - 4
    said = json.dumps(list(result["messages"].values()))
    assert "ValueError" in said and "numpy" in said
    for secret in files.OURS | {socket.gethostname()}:
        assert not re.search(rf"{re.escape(secret)}(?![\w-])", said), said
    assert files.neutral(f"{sys.prefix}/lib and {files.ROOT}s") == f"…/lib and {files.ROOT}s"


def test_no_name_belongs_to_nobody():
    names = files.Names({"0": "Zero", "ada": "Ada"})
    assert names.find("") is None and names.find(None) is None
    assert names.find("000") == "0" and names.find("ada") == "ada"
    assert names.who({"number": "", "student": "bob"}) is None


def test_a_question_without_a_rubric_takes_no_other_one(light, tmp_path):
    text = (light / "laplace.md").read_text()
    last = text.rindex("*Rubric.*")
    changed = tmp_path / "laplace.md"
    changed.write_text(text[:last] + "*Bewertung.*" + text[last + len("*Rubric.*") :])
    by_hand = [q for q in masters.read(changed).questions if q.manual]
    assert by_hand[0].rubric and not by_hand[-1].rubric


def test_a_sheet_that_says_other_points_than_it_has_is_told(light, tmp_path):
    master = masters.read(light / "laplace.md")
    assert list(check.sums(master)) == []
    text = (light / "laplace.md").read_text()
    changed = tmp_path / "laplace.md"
    changed.write_text(text.replace('"points": 2', '"points": 3', 1))
    assert len(list(check.sums(masters.read(changed)))) == 2
