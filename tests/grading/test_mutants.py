"""The tests of the assignments notice small changes of the answers, or the list says why not."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from assignments.grader import masters, mutants  # noqa: E402
from assignments.grader.check import MARKERS  # noqa: E402

FOLDER = ROOT / "assignments"
NAMES = [path.stem for path in sorted(FOLDER.glob("*.md"))]


def test_laplace_notices_every_mutant_that_is_not_listed():
    count, complaints = mutants.report(FOLDER, "laplace")
    assert count > 100
    assert complaints == []


def test_a_weakened_test_is_found_out(tmp_path):
    text = (FOLDER / "laplace.md").read_text()
    weak = "\n".join(line for line in text.split("\n") if "whichever it is" not in line)
    assert weak != text
    (tmp_path / "laplace.md").write_text(weak)
    _, complaints = mutants.report(tmp_path, "laplace", ("1a",))
    assert any("possible = (p > 0) | (q > 1)" in line for line in complaints)


def test_a_reason_without_a_survivor_is_found_out(tmp_path):
    (tmp_path / "laplace.md").write_text((FOLDER / "laplace.md").read_text())
    reason = {"laplace": [{"question": "1c", "change": "x => y", "why": "z"}]}
    (tmp_path / "survivors.yml").write_text(yaml.safe_dump(reason))
    _, complaints = mutants.report(tmp_path, "laplace", ("1c",))
    assert complaints == ["1c: listed, but does not survive: x => y"]


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


def test_endless_mutants_end():
    endless = mutants.Mutant("1a", "", "while True:\n    pass")
    assert not mutants.accepted({}, endless, [], 0.2)
    assert mutants.accepted({}, mutants.Mutant("1a", "", "x = 1"), ["assert x == 1"], 5)


def test_the_command_knows_every_assignment():
    command = [sys.executable, "-m", "assignments.grader", "mutants", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "name" in done.stdout
