"""The grader against submissions that break, cheat and spy (hostile.py); stopping; refusing."""

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import attacks
import honest
import hostile

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


from assignments.grader import files, masters, sandbox  # noqa: E402
from assignments.grader import run as runner  # noqa: E402
from assignments.grader.check import solved  # noqa: E402

NAMES = [name.replace("/", "∕") for name in hostile.CASES]
OTHERS = [
    *hostile.TEXTS, "renamed", "empty folder", "link.ipynb", "aliases", "references", "sparse",
    "nested", "ada (ada.ipynb)", "ada (ada.md)", "ada (laplace.ipynb)", "ada (ada.ipynb) (2)",
]  # fmt: skip
LIMITS = sandbox.Limits(cell_seconds=10, total_seconds=180, memory_mb=700, read_seconds=10)
PATIENT = sandbox.Limits(cell_seconds=120, total_seconds=900)  # on a busy machine, too


@pytest.fixture(scope="module", autouse=True)
def _bubblewrap():
    try:
        sandbox.check()
    except sandbox.SandboxError as problem:
        if os.environ.get("CI"):
            pytest.fail(f"grading must be tested in CI: {problem}")
        pytest.skip(f"grading needs bubblewrap: {problem}")


@pytest.fixture(scope="module")
def master():
    return masters.read(ROOT / "assignments" / "laplace.md")


@pytest.fixture(scope="module")
def run(master, tmp_path_factory):
    """All submissions graded once: results, expectations, the folder of the run."""
    folder, out = tmp_path_factory.mktemp("SUBMISSIONS"), tmp_path_factory.mktemp("graded")
    with socket.create_server(("127.0.0.1", 0)) as server:
        expected = hostile.write(folder, master, server.getsockname()[1])
        expected |= attacks.write(folder, master)
        results = runner.grade("laplace", folder, out, ROOT / "assignments", LIMITS, jobs=2)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    subprocess.run(["rm", "-rf", folder / "nested"], check=True)  # too deep for Python's own
    return results, expected, out


def log(out, student):
    return (out / "logs" / f"{files.file_name(student)}.txt").read_text()


def feedback(out, student):
    return (out / "feedback" / f"{files.file_name(student)}.html").read_text()


@pytest.mark.parametrize("student", NAMES + OTHERS)
def test_right_marks(run, student):
    results, expected, out = run
    points, flags = expected[student]
    result = results[student]
    assert sum(s or 0 for s in result["scores"].values()) == points, result["log"]
    for flag in flags:
        assert any(flag in found for found in result["flags"]), result["flags"]
    assert feedback(out, student).startswith("<!doctype html>")


def test_honest_work_gets_no_flags(run):
    for student in ("perfect", "untouched", "partial", "huge", "warnings and stderr"):
        assert run[0][student]["flags"] == []


@pytest.fixture(scope="module")
def honest_run(master, tmp_path_factory):
    folder, out = tmp_path_factory.mktemp("SUBMISSIONS"), tmp_path_factory.mktemp("honest")
    for name in honest.STYLES:
        notebook = solved(master)
        honest.change(notebook, name)
        (folder / f"{name}.ipynb").write_text(json.dumps(notebook))
    return runner.grade("laplace", folder, out, ROOT / "assignments", PATIENT, jobs=2)


@pytest.mark.parametrize("name", honest.STYLES)
def test_honest_styles_get_full_marks(honest_run, name):
    result = honest_run[name]
    assert result["messages"] == {}, result["log"]
    allowed = ["text cells outside of the answers: look into the notebook"]
    assert set(result["flags"]) <= {*allowed, *honest.MENTIONS.get(name, [])}


def test_memory_that_no_limit_counts_is_refused(run):
    out = run[2]
    assert "WORKS" not in log(out, "memory files") and "WORKS" not in log(out, "System V memory")
    assert len(log(out, "endless errors")) < 50_000


def test_what_hidden_tests_ask_is_not_told(run):
    page = feedback(run[2], "tells_hidden_inputs")
    assert "spied" not in page and "0.9" not in page


def test_forged_texts_are_cut(run):
    assert len(feedback(run[2], "forged errors of names")) < 10_000


def test_proofs_in_added_cells_reach_the_marker(run):
    page = (run[2] / "by-hand" / "2a.html").read_text()
    assert "second cell." in page
    assert "BEGIN SOLUTION" not in page and "1 point: the density" in page


def test_names_of_public_tests_can_be_plotted(run):
    assert "plotted 6" in log(run[2], "plots_and_names_of_tests")
    assert "data:image/png;base64,iVBOR" in (run[2] / "by-hand" / "3c.html").read_text()


def test_two_sources_of_one_student_are_visible(run):
    for name in ("ada (ada.ipynb) (2)", "ada (ada.md)", "ada (laplace.ipynb)"):
        assert "3 submissions of ada" in run[0][name]["flags"]


def test_only_the_broken_question_loses(run):
    scores = run[0]["loop in a function"]["scores"]
    assert scores["1a"] == 0
    assert scores["1b"] == 2


def test_grades_table(run, master):
    results, expected, out = run
    with open(out / "grades.csv", newline="", encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert len(rows) == len(expected)
    assert rows["perfect"]["automatic"] == "20"
    assert rows["perfect"]["of"] == "30"
    manual = [q.id for q in master.questions if q.manual]
    assert manual == ["2a", "3c"]
    assert all(row[q] == "" for row in rows.values() for q in manual)
    assert not any(name.startswith("=") for name in rows)


def test_nothing_reached_the_network_or_the_system(run):
    out = run[2]
    assert log(out, "network").count("network shut") == 2
    assert "REACHED" not in log(out, "network")
    written = log(out, "writes to the system")
    assert written.count("could not write") == 9
    assert re.findall("WROTE (.*)", written) == ["/dev/shm"], "its own, for process pools"
    assert not Path("/dev/shm/forged.txt").exists()
    assert not list(Path(sys.prefix).glob("forged.txt"))
    assert not [p for p in psutil.process_iter(["cmdline"]) if "98765" in (p.info["cmdline"] or [])]


def test_nothing_of_the_course_is_in_sight(run):
    out = run[2]
    searched = log(out, "searches the disk")
    assert "searched and found []" in searched
    assert "SUBMISSIONS" not in searched
    frames = re.findall(r"frames .*", log(out, "looks at its callers"))
    assert frames
    assert not any("tests of" in line for line in frames)


def test_feedback_has_no_hidden_test(run, master):
    results, _, out = run
    hidden = [line for q in master.questions for line in q.hidden.splitlines() if len(line) > 30]
    for student in results:
        page = feedback(out, student)
        assert not any(line in page for line in hidden)
        assert "<script" not in page
    assert "a test that is not shown" in feedback(out, "public answers by heart")
    assert "spied" not in feedback(out, "public answers by heart")
    assert "&lt;script&gt;" in feedback(out, "markup in a message")


def test_feedback_teaches(run):
    assert "NotImplementedError" in feedback(run[2], "untouched")
    assert "is not defined" in feedback(run[2], "syntax error")
    assert "ran too long" in feedback(run[2], "loop in a function") or "took too long" in feedback(
        run[2], "loop in a function"
    )


def few(folder, master):
    folder.mkdir()
    for name in ("ada", "ben", "eve", "kim"):
        (folder / name).mkdir()
        notebook = solved(master)
        if name == "eve":
            hostile.unsolve(notebook, master)
        (folder / name / "laplace.ipynb").write_text(json.dumps(notebook))


def grade_command(folder, out, *more):
    command = [sys.executable, "-m", "assignments.grader", "grade", "laplace", folder, out, *more]
    return [str(part) for part in command]


def test_stopped_and_started_again(master, tmp_path):
    """Killed at three moments (before any result, after one, after two): the same table."""
    few(tmp_path / "in", master)
    command = grade_command(tmp_path / "in", tmp_path / "out")
    sign, results = tmp_path / "out" / "assignment.txt", tmp_path / "out" / "results"
    for moment in (0, 1, 2):
        stopped = subprocess.Popen(
            [*command, "--jobs", "1"], cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL
        )
        wait_for(lambda n=moment: sign.exists() and len(list(results.glob("*.json"))) >= n)
        os.killpg(stopped.pid, signal.SIGKILL)
        stopped.wait()
        assert not (tmp_path / "out" / "grades.csv").exists()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    at_once = grade_command(tmp_path / "in", tmp_path / "again")
    subprocess.run(at_once, cwd=ROOT, check=True, capture_output=True)
    table = (tmp_path / "out" / "grades.csv").read_bytes()
    assert table == (tmp_path / "again" / "grades.csv").read_bytes()
    assert table.count(b"\n") == 5 or table.count(b"\r\n") == 5

    by_hand = table.decode().replace("ada,laplace.ipynb,2,2,2,,3", "ada,laplace.ipynb,2,2,2,5.5,3")
    assert by_hand != table.decode()
    (tmp_path / "out" / "grades.csv").write_bytes(by_hand.encode())
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / "out" / "grades.csv").read_bytes() == by_hand.encode()
    assert "5.5 of 6" in (tmp_path / "out" / "feedback" / "ada.html").read_text()


def test_a_class_marked_in_four_parts_gives_the_same_table(master, tmp_path):
    few(tmp_path / "in", master)
    whole = grade_command(tmp_path / "in", tmp_path / "out")
    for number in (3, 1, 4, 2):
        part = [*whole, "--part", f"{number}/4"]
        subprocess.run(part, cwd=ROOT, check=True, capture_output=True)
        assert not (tmp_path / "out" / "grades.csv").exists()
    subprocess.run(whole, cwd=ROOT, check=True, capture_output=True)
    at_once = grade_command(tmp_path / "in", tmp_path / "at once")
    subprocess.run(at_once, cwd=ROOT, check=True, capture_output=True)
    table = (tmp_path / "out" / "grades.csv").read_bytes()
    assert table == (tmp_path / "at once" / "grades.csv").read_bytes()


def test_a_killed_grader_leaves_nothing_running(master, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    notebook = solved(master)
    hostile.add_first(notebook, "import time\nwhile True:\n    time.sleep(1)")
    (folder / "ada.ipynb").write_text(json.dumps(notebook))
    for end in (signal.SIGTERM, signal.SIGKILL):
        main = subprocess.Popen(
            grade_command(folder, tmp_path / f"out {end}"), cwd=ROOT, stderr=subprocess.DEVNULL
        )
        started = wait_for(lambda pid=main.pid: inside_of(pid))
        main.send_signal(end)
        main.wait()
        wait_for(lambda found=started: not any(p.is_running() for p in found))


def inside_of(pid):
    """The processes that run a student's Python below this one."""
    found = psutil.Process(pid).children(recursive=True)
    return found if any("inside.py" in " ".join(p.cmdline()) for p in found) else []


def wait_for(what, seconds=300):
    """The first answer that is not empty."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if answer := what():
                return answer
        except psutil.Error:
            pass
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def test_refuses_without_bubblewrap(master, tmp_path):
    few(tmp_path / "in", master)
    for name in ("ben", "eve", "kim"):
        shutil.rmtree(tmp_path / "in" / name)
    bare = {**os.environ, "PATH": str(tmp_path)}
    command = grade_command(tmp_path / "in", tmp_path / "out")
    refused = subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True)
    assert refused.returncode != 0
    assert "bubblewrap is missing" in refused.stderr
    assert not (tmp_path / "out" / "grades.csv").exists()
    subprocess.run([*command, "--unsafe"], cwd=ROOT, env=bare, check=True, capture_output=True)
    assert b",20," in (tmp_path / "out" / "grades.csv").read_bytes()


def test_masters_within_reach_are_refused(tmp_path):
    with pytest.raises(sandbox.SandboxError, match="students' code can read"):
        sandbox.keep_out([Path(sys.prefix) / "share" / "laplace.md"])
    sandbox.keep_out([tmp_path, ROOT / "assignments"])
