"""The tests of the assignments notice small changes of the answers, or the list says why not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from assignments.grader import masters, mutants
from assignments.grader.check import MARKERS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "assignments"
NAMES = [path.stem for path in sorted(FOLDER.glob("*.md"))]


def told(*arguments):
    """What the command prints. It forks, which a process with threads (a test's) should not."""
    command = [sys.executable, "-m", "assignments.grader", "mutants", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)


def test_laplace_notices_every_mutant_that_is_not_listed():
    done = told("laplace")
    assert done.returncode == 0, done.stderr
    assert int(re.match(r"laplace: (\d+) mutants", done.stdout)[1]) > 100


def test_weak_tests_and_reasons_without_a_survivor_are_found_out(tmp_path):
    text = (FOLDER / "laplace.md").read_text()
    weak = "\n".join(line for line in text.split("\n") if "whichever it is" not in line)
    assert weak != text
    (tmp_path / "laplace.md").write_text(weak)
    reason = {"laplace": [{"question": "1c", "change": "x => y", "why": "z"}]}
    (tmp_path / "survivors.yml").write_text(yaml.safe_dump(reason))
    done = told("laplace", "1a", "1c", "--masters", tmp_path)
    assert done.returncode != 0
    assert re.search(r"1a: survives: .*possible = \(p > 0\) \| \(q > 1\)", done.stderr)
    assert done.stderr.count("\n") > 1
    assert "1c: listed, but does not survive: x => y" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_every_question_has_mutants(name):
    master = masters.read(FOLDER / f"{name}.md")
    tested = {q.id for q in master.questions if not q.manual}
    for cell in master.notebook.cells:
        question = masters.grading(cell).get("grade_id")
        if question in tested:
            found = list(mutants.of_answer(question, MARKERS.sub("", cell.source)))
            assert len({m.source for m in found}) == len(found) >= 2
            tested.remove(question)
    assert not tested


def test_every_survivor_of_the_list_has_a_reason():
    known = yaml.safe_load((FOLDER / "survivors.yml").read_text())
    assert set(known) <= set(NAMES)
    for survivor in (s for listed in known.values() for s in listed):
        assert set(survivor) == {"question", "change", "why"} and len(survivor["why"]) > 10


ENDLESS = """
from assignments.grader.mutants import Mutant, accepted
assert not accepted({}, Mutant("1a", "", "while True: pass"), [], 0.2)
assert not accepted({}, Mutant("1a", "", "import time; time.sleep(1e6)"), [], 0.01)
assert not accepted({}, Mutant("1a", "", "x = [0] * 10**9"), [], 5)
assert not accepted({}, Mutant("1a", "", "raise SystemExit(0)"), [], 5)
assert accepted({}, Mutant("1a", "", "x = 1"), ["assert x == 1"], 5)
"""


def test_mutants_end():
    """Endless ones, sleeping ones, and those that take all memory: none is accepted."""
    subprocess.run([sys.executable, "-c", ENDLESS], cwd=ROOT, check=True, timeout=900)
