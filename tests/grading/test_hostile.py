"""The grader against submissions that break, cheat and spy (hostile.py, attacks.py)."""

import csv
import os
import re
import socket
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from unittest import mock

import psutil
import pytest

import attacks
import honest
import hostile
import unlucky
from assignments.grader import files, reading, sandbox, submissions
from assignments.grader import run as runner

pytestmark = pytest.mark.usefixtures("bubblewrap")
HARMLESS = "cells that do no harm in the end"
NAMES = [name.replace("/", "∕") for name in hostile.CASES]
OTHERS = [*hostile.TEXTS, "empty folder", "link.ipynb", "sparse", *attacks.WORDS]
# nothing here needs much memory, and two at a time must fit into a small machine
PATIENT = sandbox.Limits(cell_seconds=120, total_seconds=600, memory_mb=400, typeset_seconds=0.5)
SHORT = sandbox.Limits(
    cell_seconds=0.3, spare_seconds=0.3, total_seconds=300, memory_mb=400, read_seconds=0.5
)


@dataclass
class Graded:
    """A class whose submissions are marked when a test asks for them, each once: the folder of
    results is that of all processes of the tests, and what one has marked the others find."""

    folder: Path
    out: Path
    masters: Path
    master: object
    limits: sandbox.Limits
    expected: dict
    results: dict = field(default_factory=dict)

    def grade(self, jobs=1, **options):
        options = runner.Options(**options)
        with mock.patch.object(runner.masters, "read", lambda _: self.master):  # each time the same
            return runner.grade(
                "laplace", self.folder, self.out, self.masters, self.limits, jobs, options=options
            )

    def __getitem__(self, student):
        """The result of one student: a part of the class that holds nobody else."""
        if student not in self.results:
            names = [entry[0] for entry in submissions.find(self.folder, "laplace")]
            self.results |= self.grade(part=(names.index(student) + 1, len(names)))
        return self.results[student]

    @cached_property
    def whole(self):
        """The folder with the tables and pages of the whole class."""
        self.results = self.grade(jobs=2)
        return self.out


def shared(factory, name):
    """A folder that all processes of the tests have in common."""
    base = factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name


@pytest.fixture(scope="module")
def run(master, light, tmp_path_factory):
    """All that end by themselves. Nobody may reach this machine's network."""
    folder, out = tmp_path_factory.mktemp("SUBMISSIONS"), shared(tmp_path_factory, "graded")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        expected = hostile.write(folder, master, server.getsockname()[1])
        expected |= attacks.write(folder, master) | honest.write(folder, master)
        yield Graded(folder, out, light, master, PATIENT, expected)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.fixture(scope="module")
def endless(master, light, tmp_path_factory):
    """The endless ones, with limits that cut them off soon."""
    folder, out = tmp_path_factory.mktemp("SUBMISSIONS"), shared(tmp_path_factory, "endless")
    expected = hostile.notebooks(folder, master, hostile.ENDLESS)
    expected |= attacks.write_endless(folder, master)
    return Graded(folder, out, light, master, SHORT, expected)


def feedback(run, student):
    return (run.whole / "feedback" / f"{files.file_name(student)}.html").read_text()


def check(run, student):
    points, flags = run.expected[student]
    result = run[student]
    assert sum(s or 0 for s in result["scores"].values()) == points, result["log"]
    for flag in flags:
        assert any(flag in found for found in result["flags"]), result["flags"]
    if student in attacks.WORDS:  # it is its owner's
        assert f"by {student}" in result["answers"]["2a"]


@pytest.mark.parametrize("student", NAMES + OTHERS)
def test_right_marks(run, student):
    check(run, student)


@pytest.mark.parametrize("student", [*hostile.ENDLESS, *(n[:-3] for n in attacks.FILES)])
def test_endless_ones_end(endless, student):
    check(endless, student)


def lines(run, student, master):
    """{source of a cell: what the log says of it}"""
    steps = reading.read(student, run.folder / f"{student}.ipynb", [], master).steps
    said = {}
    for line in run[student]["log"].split("again in a new")[0].splitlines():
        if found := re.match(r"cell (\d+): (.*)", line):
            said[steps[int(found[1]) - 1][1]] = found[2]
    return said


def test_the_log_says_what_became_of_each_cell(run, endless, master):
    for student, patterns in hostile.LINES.items():
        said = lines(endless if student in hostile.ENDLESS else run, student, master)
        for source, pattern in patterns.items():
            (line,) = [text for cell, text in said.items() if cell.split("PORT")[0] in source or
                       source.split("PORT")[0] in cell]  # fmt: skip
            assert re.match(pattern, line), (source, line)


def test_the_feedback_says_what_became_of_each_answer(run, endless):
    for student, patterns in hostile.MESSAGES.items():
        result = (endless if student in hostile.ENDLESS else run)[student]
        for question, pattern in patterns.items():
            assert result["scores"][question] == 0, (student, question)
            assert re.search(pattern, result["messages"][question]), (student, question)


def test_honest_work_gets_full_marks_and_no_flags(run):
    """In all of the forty styles, of which some share a notebook; flags ask for a look, no more."""
    shared = honest.notebooks()
    assert sorted(name for names in shared for name in names) == sorted(honest.STYLES)
    assert len(honest.STYLES) >= 39
    outside = "text cells outside of the answers: look into the notebook"
    for number in range(len(shared)):
        check(run, f"honest {number}")
        assert set(run[f"honest {number}"]["flags"]) <= {"mentions multiprocessing", outside}, (
            shared[number]
        )
    for student in ("perfect", "untouched", "partial_and_huge"):
        assert run[student]["flags"] == []


def test_errors_are_cut(run):
    assert len(run["endless errors"]["log"]) < 50_000
    assert len(feedback(run, "forged errors of names")) < 10_000


def test_what_hidden_tests_ask_is_not_told(run):
    """What a student's code can write into a message comes from a process without hidden tests."""
    page = feedback(run, "tells_hidden_inputs")
    assert "spied[]" in page and "0.9" not in page
    page = feedback(run, "hidden_inputs_in_numbers")
    assert "yours times epsilon: [1. 1. 1. 1. 1. 1.]" in page


def test_calls_sockets_and_memory_that_no_limit_counts_are_refused(run):
    said = run[HARMLESS]["log"]
    assert "calls answered: []" in said and "WORKS" not in said
    assert said.count("socket refused") == 5 and "socket OPENED" not in said


def test_no_page_tells_where_the_course_lies(run):
    """A process can read where the files that it sees come from, on this machine."""
    page = feedback(run, "objects that can't be shown")
    assert "/grader" in page
    assert str(run.out) not in page and "assignments" not in page


def test_a_wrong_answer_beside_the_stub_is_an_answer_and_a_missing_one_costs_its_own_points(run):
    """Later questions that use it are tried with the master's answer in its place."""
    student = unlucky.wrong_and_timed_beside_the_stub_and_one_missing.__name__
    result, page = run[student], feedback(run, student)
    assert set(result["messages"]) == {"1a", "2b"} and set(result["helped"]) == {"2c", "3b"}
    assert (
        "it returned 7.0" in page
        and "not answered" in page
        and page.count("with a correct answer to an earlier") == 2
    )
    assert set(run["lends_to_itself"]["messages"]) == {"2b", "3a"}


def test_proofs_reach_the_marker(run):
    """In added cells, in cells turned into code, as photographs, as text that can't be typeset."""
    page = (run.whole / "by-hand" / "2a.html").read_text()
    assert "second cell." in page and "turned into code" in page
    (photo,) = run[attacks.proof_in_a_code_cell_and_photographed.__name__]["pictures"]["3c"]
    shown = f'<img alt="pictures in the answer" loading="lazy" src="pictures/{photo}">'
    assert shown in (run.whole / "by-hand" / "3c.html").read_text()
    assert "BEGIN SOLUTION" not in page and "1 point: the density" in page
    assert "<pre>_a*_a*_a*" in page and page.count("<section>") == len(run.expected)


def test_names_of_public_tests_can_be_plotted(run):
    result = run[attacks.proof_in_an_added_cell_and_plots_of_tests.__name__]
    assert "plotted 6" in result["log"]
    (plot,) = result["pictures"][""]
    assert f'src="pictures/{plot}"' in (run.whole / "by-hand" / "3c.html").read_text()
    assert (run.out / "by-hand" / "pictures" / plot).read_bytes()[:4] == b"\x89PNG"


def test_grades_table(run, master):
    with open(run.whole / "grades.csv", newline="", encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert len(rows) == len(run.expected)
    assert rows["perfect"]["automatic"] == "20"
    assert rows["perfect"]["of"] == "30"
    manual = [q.id for q in master.questions if q.manual]
    assert manual == ["2a", "3c"]
    blank = {student for student, row in rows.items() if {row[q] for q in manual} == {"0"}}
    assert {"untouched", "empty folder"} <= blank and "ada (ada.md)" not in blank
    assert all(row[q] == "" for s, row in rows.items() if s not in blank for q in manual)
    assert not any(name.startswith("=") for name in rows)


def test_nothing_reached_the_network_or_the_system(run):
    written = run[HARMLESS]["log"]
    assert written.count("network shut") == 2 and "REACHED" not in written
    assert written.count("could not write") == 9
    assert re.findall("WROTE (.*)", written) == ["/dev/shm"], "its own, for process pools"
    assert not Path("/dev/shm/forged.txt").exists()
    assert not list(Path(sys.prefix).glob("forged.txt"))
    assert not [p for p in psutil.process_iter(["cmdline"]) if "98765" in (p.info["cmdline"] or [])]


def test_nothing_of_the_course_is_in_sight(run):
    searched = run["searches the disk"]["log"]
    assert "searched and found []" in searched
    assert "SUBMISSIONS" not in searched
    frames = re.findall(r"frames .*", run["answers by heart, looks at callers"]["log"])
    assert frames
    assert not any("tests of" in line for line in frames)


def test_feedback_has_no_hidden_test(run, master):
    hidden = [line for q in master.questions for line in q.hidden.splitlines() if len(line) > 30]
    for student in run.expected:
        page = feedback(run, student)
        assert page.startswith("<!doctype html>")
        assert not any(line in page for line in hidden)
        assert "<script" not in page
    assert "a test that is not shown" in feedback(run, "answers by heart, looks at callers")
    assert "spied" not in feedback(run, "answers by heart, looks at callers")
    assert "&lt;script&gt;" in feedback(run, "odd answers")


def test_feedback_teaches(run):
    assert "The last call was estimate(" in feedback(run, "more odd answers")
