"""The commands as an instructor starts them: stopped, in parts, refused, for Gradescope."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

import hostile
import ready
from assignments.grader import __main__, sandbox
from assignments.grader.check import solved

pytestmark = pytest.mark.usefixtures("bubblewrap")
ROOT = Path(__file__).resolve().parents[2]
GRADER = [sys.executable, "-m", "assignments.grader"]
LONGEST = 900  # seconds of any command here, on however slow a machine
PATIENT = ["--cell-seconds", 300, "--total-seconds", 900]


def grader(*arguments, check=True, **options):
    """Run the command to its end."""
    command = [*GRADER, *map(str, arguments)]
    options = {"cwd": ROOT, "text": True, "timeout": LONGEST, **options}
    return subprocess.run(command, check=check, capture_output=True, **options)


def grader_here(monkeypatch, *arguments):
    """The command in this process, where nothing is left to be marked."""
    monkeypatch.setattr(sys, "argv", ["grader", *map(str, arguments)])
    with pytest.raises(SystemExit, match="^0$"):
        __main__.main()


def grade(masters, folder, out, *more):
    return ["grade", "--masters", masters, *PATIENT, "laplace", folder, out, *more]


def test_folders_may_have_spaces():
    folders = {"SUBMISSIONS": "Homework 1", "OUT": "my results", "ROSTER": "Grades DP.csv"}
    command = ["make", "-n", "grade", "HW=laplace", *(f"{n}={v}" for n, v in folders.items())]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=env)
    assert set(folders.values()) <= set(shlex.split(said.stdout.splitlines()[-1]))


@contextmanager
def started(*command, **env):
    """A command in a session of its own; what is left of it at the end of the block is killed."""
    process = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, start_new_session=True, stderr=subprocess.DEVNULL,
        env={**os.environ, **{name: str(value) for name, value in env.items()}},
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(LONGEST)


def few(folder, master):
    """The first is marked at once, the others take a while."""
    for name in ("ada", "ben", "eve", "kim"):
        (folder / name).mkdir(parents=True)
        notebook = hostile.words("nothing") if name == "ada" else solved(master)
        if name == "eve":
            hostile.unsolve(notebook, master)
        (folder / name / "laplace.ipynb").write_text(json.dumps(notebook))


@pytest.fixture(scope="module")
def table(master, light, tmp_path_factory):
    """A small class and its table, marked at once; the folders are given from where we are."""
    folder = tmp_path_factory.mktemp("class")
    few(folder / "in", master)
    grader(*grade(light, *(os.path.relpath(folder / name, ROOT) for name in ("in", "out"))))
    return folder / "in", (folder / "out" / "grades.csv").read_bytes()


@pytest.mark.parametrize("moments", [(1,), pytest.param((0, 1, 2), marks=pytest.mark.thorough)])
def test_stopped_and_started_again(table, light, tmp_path, monkeypatch, moments):
    """Killed after so many results: the same table."""
    folder, at_once = table
    out = tmp_path / "out"
    command = grade(light, folder, out)
    sign, results = out / "assignment.txt", out / "results"
    for moment in moments:
        with started(*GRADER, *command, "--jobs", "1"):  # and killed at the end of the block
            wait_for(lambda n=moment: sign.exists() and len(list(results.glob("*.json"))) >= n)
        assert not (out / "grades.csv").exists()
    grader(*command)
    table = (out / "grades.csv").read_bytes()
    assert table == at_once
    by_hand = table.replace(b"ben,laplace.ipynb,2,2,2,,3", b"ben,laplace.ipynb,2,2,2,5.5,3")
    assert by_hand != table
    (out / "grades.csv").write_bytes(by_hand)
    grader_here(monkeypatch, *command)
    assert (out / "grades.csv").read_bytes() == by_hand
    assert "5.5 of 6" in (out / "feedback" / "ben.html").read_text()


def test_a_class_in_parts_gives_the_same_table(table, light, tmp_path, monkeypatch):
    """Two parts at the same time, as on two machines that share a folder, and then the whole."""
    folder, at_once = table
    out = tmp_path / "out"
    command = grade(light, folder, out, "--jobs", "1", "--part")
    with started(*GRADER, *command, "2/2") as one, started(*GRADER, *command, "1/2") as other:
        assert (one.wait(LONGEST), other.wait(LONGEST)) == (0, 0)
    assert not (out / "grades.csv").exists()
    assert len(list((out / "results").glob("*.json"))) == 4
    grader_here(monkeypatch, *grade(light, folder, out))
    assert (out / "grades.csv").read_bytes() == at_once
    with zipfile.ZipFile(out / "feedback.zip") as archive:
        assert archive.namelist() == [
            f"{n}/laplace.ipynb.html" for n in ("ada", "ben", "eve", "kim")
        ]


def test_a_killed_grader_leaves_nothing_running(master, light, tmp_path):
    """The cell may run for 300 s, and all must have ended long before."""
    folder = tmp_path / "in"
    folder.mkdir()
    notebook = solved(master)
    hostile.add_first(notebook, "import time\nwhile True:\n    time.sleep(1)")
    (folder / "ada.ipynb").write_text(json.dumps(notebook))
    for end in (signal.SIGTERM, signal.SIGKILL):
        with started(*GRADER, *grade(light, folder, tmp_path / f"out {end}")) as main:
            below = wait_for(lambda pid=main.pid: inside_of(pid))
            main.send_signal(end)
            main.wait(LONGEST)
            wait_for(lambda found=below: not any(p.is_running() for p in found), 60)


def inside_of(pid):
    """The processes that run a student's Python below this one."""
    found = psutil.Process(pid).children(recursive=True)
    return found if any("/grader/inside.py" in p.cmdline()[1:2] for p in found) else []


def wait_for(what, seconds=LONGEST):
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


def test_refuses_without_bubblewrap(table, light, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ada.ipynb").write_bytes((table[0] / "ben" / "laplace.ipynb").read_bytes())
    bare = {**os.environ, "PATH": str(tmp_path)}
    command = grade(light, tmp_path / "in", tmp_path / "out")
    refused = grader(*command, check=False, env=bare)
    assert refused.returncode != 0
    assert "bubblewrap is missing" in refused.stderr
    assert not (tmp_path / "out" / "grades.csv").exists()
    grader(*command, "--unsafe", env=bare)
    assert b",20," in (tmp_path / "out" / "grades.csv").read_bytes()


def test_masters_within_reach_are_refused(tmp_path):
    with pytest.raises(sandbox.SandboxError, match="students' code can read"):
        sandbox.keep_out([sys.prefix + "/share/laplace.md"])
    sandbox.keep_out([tmp_path, ROOT / "assignments"])


def test_private_folder_and_a_master_that_is_wrong(light, tmp_path):
    """A course of one's own: the same command, another folder; a mistake in a master stops it."""
    (tmp_path / "mine" / "wrong").mkdir(parents=True)
    text = (light / "laplace.md").read_text()
    assert "np.log1p(-2 * np.abs(u))" in text
    text = text.replace("np.log1p(-2 * np.abs(u))", "np.log1p(-np.abs(u))")
    (tmp_path / "mine" / "week1.md").write_text(text)
    (tmp_path / "mine" / "wrong" / "week1.yml").write_text("[]")
    pages = tmp_path / "pages"
    done = grader("build", "--masters", tmp_path / "mine", "--pages", pages, check=False)
    assert done.returncode != 0
    assert "week1: the master loses 2b" in done.stderr
    assert "week1: no wrong answer for 1a" in done.stderr
    assert (pages / "week1.md").exists()
    assert (pages / "downloads" / "week1.ipynb").exists()


def test_private_sheets_stay_when_the_book_is_built_again(light, tmp_path, monkeypatch):
    """Without the variable, and where the grader or the public masters are newer, as after a pull.
    A sheet that the private folder lacks is taken away, and the public ones come back if asked."""
    sheets, own = tmp_path / "chapters" / "assignments", tmp_path / "mine" / "laplace.md"
    (tmp_path / "assignments").mkdir()
    for name in ("grader", "laplace.md", "renyi.md"):
        (tmp_path / "assignments" / name).symlink_to(ROOT / "assignments" / name)
    (sheets / "downloads").mkdir(parents=True)
    own.parent.mkdir()
    own.write_text(
        (light / "laplace.md").read_text().replace("(2 points).**", "(2 points), ours.**")
    )

    def built(folder=""):
        """The sheets, and whether that of laplace is the private one, in both its forms."""
        monkeypatch.setenv("ASSIGNMENTS", str(folder))
        ready.write_assignments(tmp_path)
        texts = [file.read_text() for file in sheets.rglob("laplace.*")]
        assert len(texts) == 2
        return {file.stem for file in sheets.glob("*.md")}, all("ours.**" in t for t in texts)

    assert built() == ({"laplace", "renyi"}, False)
    assert built("mine") == ({"laplace"}, True)
    os.utime(sheets / ".complete", (0, 0))
    assert built() == ({"laplace"}, True)
    assert built("assignments") == ({"laplace", "renyi"}, False)
