"""A class of more than a hundred: 60 honest submissions and every hostile one of the tests.

    .venv/bin/python tests/grading/class_of_100.py

Marked with the limits that `make grade` has, killed at three moments and started again; marks and
flags must be the expected ones, and the table that of a run that nobody stopped. Takes some ten
minutes on two cores, so `make test` runs its parts instead (test_hostile, test_honest and
test_commands).
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import attacks  # noqa: E402
import honest  # noqa: E402
import hostile  # noqa: E402
from assignments.grader import masters  # noqa: E402
from assignments.grader.check import solved  # noqa: E402

HONEST, MOMENTS = 60, (10, 45, 80)


def class_of(folder, master):
    """Write all submissions; {student: (points, flags that must be there)}."""
    folder.mkdir()
    expected = hostile.write(folder, master, port=9) | attacks.write(folder, master)
    expected |= hostile.notebooks(folder, master, hostile.ENDLESS)
    expected |= attacks.write_endless(folder, master)
    styles = list(honest.STYLES)
    for number in range(HONEST):
        notebook = solved(master)
        honest.change(notebook, styles[number % len(styles)])
        (folder / f"student {number}.ipynb").write_text(json.dumps(notebook))
        expected[f"student {number}"] = (hostile.FULL, ())
    return expected


def command(folder, out):
    words = "-m", "assignments.grader", "grade", "laplace", folder, out, "--jobs", 2
    return [sys.executable, *map(str, words)]


def stopped(folder, out, moment):
    """Start marking, and kill it when so many results are there."""
    with open(os.devnull, "w") as nowhere:
        run = subprocess.Popen(
            command(folder, out), cwd=ROOT, stdout=nowhere, stderr=nowhere, start_new_session=True
        )
        while run.poll() is None and len(list((out / "results").glob("*.json"))) < moment:
            time.sleep(0.2)
        assert run.poll() is None, "it ended before it could be stopped"
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def complaints(out, expected):
    """What is wrong with the marks of a finished run."""
    results = {}
    for file in (out / "results").glob("*.json"):
        result = json.loads(file.read_text())["result"]
        results[result["student"]] = result
    for student, (points, flags) in expected.items():
        if student not in results:
            yield f"{student}: no result"
            continue
        result = results[student]
        found = sum(score or 0 for score in result["scores"].values())
        if found != points:
            yield f"{student}: {found} points, not {points}; {result['flags']}"
        missing = [flag for flag in flags if not any(flag in f for f in result["flags"])]
        if missing:
            yield f"{student}: not flagged: {missing}"


def main():
    scratch = Path(tempfile.mkdtemp())
    folder, out, again = (scratch / name for name in ("in", "out", "again"))
    try:
        expected = class_of(folder, masters.read(ROOT / "assignments" / "laplace.md"))
        for moment in MOMENTS:
            stopped(folder, out, moment)
        subprocess.run(command(folder, out), cwd=ROOT, check=True)
        wrong = list(complaints(out, expected))
        print(*wrong, sep="\n", flush=True)
        start = time.monotonic()
        subprocess.run(command(folder, again), cwd=ROOT, check=True)
        print(f"{len(expected)} submissions at once: {time.monotonic() - start:.0f} s")
        wrong += list(complaints(again, expected))
        if (out / "grades.csv").read_bytes() != (again / "grades.csv").read_bytes():
            wrong.append("the tables differ")
        print("\n".join(wrong) or "all marks and flags as expected, both tables the same")
        return bool(wrong)
    finally:
        subprocess.run(["rm", "-rf", scratch], check=True)  # too deep for Python


if __name__ == "__main__":
    sys.exit(main())
