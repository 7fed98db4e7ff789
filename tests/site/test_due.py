"""What is due is done, and nothing else: sources, stamps, and who owns a file."""

import json
import os
import subprocess
import sys

import pytest

import due
from machine import ROOT

PAGE = "# A page\n\nA sentence.\n\n```{code-cell} ipython3\n1 + 1\n```\n"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree with a page, and a part that has it among its sources."""
    monkeypatch.setattr(due, "ROOT", tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "a.md").write_text(PAGE)
    return tmp_path


def part(name="planted", **facts):
    return due.Part(name, "chapters dpnotes/*.py", **facts)


def due_now(one):
    return due.changes(one, due.last_green(one), due.state_of(one))


def test_every_file_has_an_owner_and_a_new_one_is_red():
    assert due.unowned(due.tracked()) == []
    planted = ["tests/new/test_a.py", "site2/a.py", "setup.cfg", "tests/claims/test_a.py"]
    assert due.unowned(planted) == planted[:3]


def test_every_file_of_tests_is_run_by_a_part():
    asked = " ".join(test for one in due.PARTS for test in (*one.tests, *map(str, one.commands)))
    files = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")]
    assert [
        str(file) for file in files if file.parts[1] != "claims" and str(file) not in asked
    ] == []
    assert "tests/claims" in asked and all((ROOT / name).exists() for name in due.ROOMS)


def test_part_is_due_until_it_is_green_and_when_a_source_is_another_one(tree):
    one = part()
    assert due_now(one) == ["chapters/a.md"]
    due.write_green(one, due.state_of(one))
    assert due_now(one) == []
    (tree / "chapters" / "a.md").write_text(PAGE.replace("sentence", "word"))
    assert due_now(one) == ["chapters/a.md"]
    (tree / "chapters" / "a.md").write_text(PAGE)
    (tree / "dpnotes").mkdir()
    (tree / "dpnotes" / "b.py").touch()
    assert due_now(one) == ["dpnotes/b.py"]
    due.write_green(one, due.state_of(one))
    (tree / "dpnotes" / "b.py").unlink()
    assert due_now(one) == ["dpnotes/b.py"]


def test_part_is_due_on_another_machine_and_when_what_it_makes_is_gone(tree, monkeypatch):
    one = part(makes="made")
    due.write_green(one, due.state_of(one))
    assert due_now(one) == []
    (tree / "made").unlink()
    assert due_now(one) == ["made"]
    due.write_green(one, due.state_of(one))
    monkeypatch.setattr(due, "machine", lambda: "another browser")
    assert due_now(one) == ["chapters/a.md"]


def test_stamp_is_of_a_run_that_saw_these_sources_and_all_of_its_tests(tree, monkeypatch):
    one = part()
    before = due.state_of(one)
    (tree / "chapters" / "a.md").write_text(PAGE + "Saved while the tests ran.\n")
    due.write_green(one, before)
    assert due.last_green(one) is None
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k little")
    due.write_green(one, due.state_of(one))
    assert due.last_green(one) is None


def test_a_sentence_is_no_source_of_what_only_runs_cells(tree):
    one = part(cells_only=True)
    before = due.state_of(one)
    (tree / "chapters" / "a.md").write_text(PAGE.replace("A sentence", "Two, $x$"))
    assert due.state_of(one) == before
    (tree / "chapters" / "a.md").write_text(PAGE.replace("1 + 1", "1 + 2"))
    assert due.state_of(one) != before


def test_notebook_is_its_code_and_results_and_one_without_is_refused(tree):
    file = tree / "page.ipynb"

    def write(**facts):
        cell = {"cell_type": "code", "source": "1", "outputs": ["1"], "execution_count": 1} | facts
        file.write_text(json.dumps({"cells": [cell, {"cell_type": "markdown", "source": "A"}]}))
        return due.executed_cells(file)

    assert write() == write(execution_count=7) == [["1", ["1"]]] != write(outputs=[])
    with pytest.raises(SystemExit, match="was not executed"):
        write(execution_count=None)


def test_red_part_gets_no_stamp_and_a_green_one_beside_it_does(tree, monkeypatch):
    parts = [part("a", tests=("tests/a",)), part("b", tests=("tests/b",))]
    asked = [(one, due.state_of(one), ["chapters/a.md"]) for one in parts]
    monkeypatch.setattr(due, "run", lambda *command, **settings: 1)
    monkeypatch.setattr(due, "failed_tests", lambda: ["tests/b/test_x.py::test_y"])
    assert due.run_tests(asked, "") == ["b"]
    assert due.last_green(parts[0]) and not due.last_green(parts[1])
    monkeypatch.setattr(due, "run", lambda *command, **settings: 2)  # interrupted
    assert due.run_tests(asked, "") == ["a", "b"]


def test_only_text_of_pages_asks_only_for_the_tests_of_these_pages():
    assert due.pages_in(["chapters/pure-dp.md", "chapters/erm.md"]) == ["pure-dp", "erm"]
    assert due.pages_in(["chapters/pure-dp.md", "ledger/pure-dp.yml"]) == []
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "tests/site/test_pages.py"]
    said = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "DPNOTES_PAGES": "pure-dp"}, text=True,
        capture_output=True,
    ).stdout  # fmt: skip
    assert "[pure-dp-typed_numbers]" in said and "[erm-" not in said
    assert "test_every_rule_is_seen_to_catch_one" in said
