"""The student's process seen from the grader: what starts it, what ends it, whose fault it is."""

import dataclasses
import io
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest

from assignments.grader import judge, run, sandbox, wire
from assignments.grader.session import SandboxEnded, Session, ended, files
from machine import LOOP

pytestmark = pytest.mark.usefixtures("bubblewrap")
LIMITS = sandbox.Limits(cell_seconds=120, total_seconds=900)


def session(given):
    return Session(given, LIMITS, sandbox.Bubblewrap(LIMITS))


def test_given_cells_that_fail_are_not_the_students_fault():
    last_words = "import os\nos.write(2, b'why')\nos._exit(1)"
    missing = (["import no_such_module"], "ModuleNotFoundError")
    for given, why in (missing, ([last_words], "why"), ([last_words, "x = 1"], "by itself why")):
        refusal = pytest.raises(sandbox.SandboxError, match=f"that are given don't run.*{why}")
        with session(given) as broken, refusal:
            broken.run("x = 1")


def test_limits_are_of_work_and_not_of_the_clock():
    """A cell that waits longer than its work may take is no runaway; one that works is."""
    limits = dataclasses.replace(LIMITS, cell_seconds=0.5, spare_seconds=0.5, patience=900)
    with Session([], limits, sandbox.Bubblewrap(limits)) as student:
        assert student.run("import time\ntime.sleep(2)") == ""
        said = student.run(LOOP)
        assert "ran too long" in said or "took too long" in said
        assert not student.late


def test_who_has_used_up_all_time_is_no_failure_of_the_machine():
    """No second run begins: what is killed while it starts can escape."""
    limits = dataclasses.replace(LIMITS, total_seconds=2, patience=900)
    with Session(["x = 1"], limits, sandbox.Bubblewrap(limits)) as student:
        with pytest.raises(SandboxEnded, match="no time was left"):
            for _ in range(9):
                student.run(LOOP)
        assert student.process is None


def test_who_loses_something_to_busy_neighbours_is_marked_again_alone(light, monkeypatch, tmp_path):
    marked = []

    def supervised(context, master, entry, *_):
        marked.append(entry[0])
        late = marked in (["ada"], ["ben", "ada"])
        return judge.make_result(entry[0], [], "log", late=late)

    monkeypatch.setattr(run, "supervised", supervised)
    (tmp_path / "in").mkdir()
    for name in ("ada", "ben"):
        (tmp_path / "in" / f"{name}.ipynb").write_text("{}")
    for jobs, times in ((2, 2), (1, 1)):  # with one at a time nobody of this class was beside
        marked.clear()
        found = run.grade("laplace", tmp_path / "in", tmp_path / f"out {jobs}", light, LIMITS, jobs)
        assert marked.count("ada") == times and marked.count("ben") == 1
        assert found["ada"]["log"].startswith(run.AGAIN) == (jobs == 2)


def test_nothing_of_our_environment_is_seen(monkeypatch):
    monkeypatch.setenv("TOKEN_OF_A_COURSE", "x")
    with session([]) as student:
        assert student.run("import os\nseen = 'TOKEN_OF_A_COURSE' in os.environ") == ""
        assert student.look({"seen"}) == {"seen": {"value": False}}


def test_what_comes_from_the_sandbox_is_bounded_and_plain():
    """A frame beyond all bounds is not waited for, and a text stands for no number."""
    with pytest.raises(EOFError):
        wire.receive(io.BytesIO(struct.pack(">I", wire.LARGEST + 1) + bytes(wire.LARGEST + 1)))
    with pytest.raises(ValueError, match="whole numbers"):
        wire.unpack({"fraction": ["1e9"]})


def test_a_process_that_forks_answers_once():
    with session([]) as student:
        assert student.run("import os\nfor _ in range(3):\n    os.fork()") == ""
        assert student.run("x = 5") == ""
        assert student.look({"x"}) == {"x": {"value": 5}}
        assert student.starts == 1


def test_what_was_printed_last_is_kept(monkeypatch):
    """The thread that reads may be late: here it begins when the process has been killed."""
    drain, kill, killed = Session.drain, Session.kill, threading.Event()
    monkeypatch.setattr(Session, "drain", lambda *given: killed.wait() and drain(*given))
    monkeypatch.setattr(Session, "kill", lambda *given: kill(*given) or killed.set())
    with session([]) as student:
        assert student.run("print('the last words')") == ""
    assert student.output == b"the last words\n"


def test_only_what_is_still_ours_is_killed():
    """A dead process keeps its number until it is waited for, and gets no signal after that."""
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ended(process) and process.returncode is None
    os.killpg(process.pid, signal.SIGKILL)  # still there
    process.wait(900)
    assert ended(process)
    Session([], LIMITS, None).kill(process)  # not there any more: nothing is sent


def test_a_sandbox_that_only_begins_is_killed_whole():
    """Who survived would hold the pipe until its input ends."""
    for moment in range(40):
        with sandbox.Bubblewrap(LIMITS).start() as process:
            time.sleep(moment / 2000)  # each time at another step
            Session([], LIMITS, None).kill(process)
            assert select.select([process.stdout], [], [], 60)[0] and not process.stdout.read()


def test_a_lost_sandbox_is_no_mark(master, tmp_path):
    """Where nothing could be tried there is an error for the instructor, not a row of zeros."""
    broken = dataclasses.replace(master, given=["import no_such_module"])
    (tmp_path / "laplace.md").write_text("```{code-cell} ipython3\nx = 1\n```\n")
    with pytest.raises((sandbox.SandboxError, ModuleNotFoundError)):
        judge.grade_submission(broken, ("ada", tmp_path / "laplace.md", []), LIMITS,
                   sandbox.Bubblewrap(LIMITS))  # fmt: skip


def test_files_of_this_machine_are_nobodys_fault(monkeypatch):
    """Mounts can change between two looks at a path, as they do while a sandbox is set up."""
    looked = os.stat

    def elsewhere(path, **options):
        """What a path leads to; of one in another process's root, as if it led there no more."""
        found = looked(path, **options)
        if not str(path).startswith("/proc/"):
            return found
        return os.stat_result((*found[:2], found.st_dev + 1, *found[3:10]))

    monkeypatch.setattr(os, "stat", elsewhere)
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as process:
        assert files(process) == 0
