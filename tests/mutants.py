"""Change the package a little, one place at a time: does a test fail? (`make mutants ROOM=...`)

A room is a module or a folder of `dpnotes`. Each of N changes, drawn at random, is made in a copy
of the package, and the tests that name the room run until one fails, slow ones left out. Or a room
is the master of an assignment (`assignments/laplace.md`): then each change of an answer is tried
with the tests of its question. Changes that no test notices are printed; nothing is kept. Each is a
missing test, or changes nothing that is promised.

Masters are trusted: their changes run in plain child processes with limits on memory and time.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from assignments.grader import masters
from tests.mutations import of_answer

ROOT = Path(__file__).resolve().parents[1]
FORK = multiprocessing.get_context("fork")


def modules(room):
    """The files of a room."""
    path = ROOT / "dpnotes" / room
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [file.relative_to(ROOT) for file in files]


def tests_of(files):
    """The test files that name one of the modules."""
    names = {file.parent.stem if file.stem == "__init__" else file.stem for file in files}
    word = re.compile(rf"\b(?:{'|'.join(names)})\b|test_(?:{'|'.join(names)})\.py")
    tests = [*Path("tests/claims").glob("test_*.py"), *Path("tests/package").glob("test_*.py")]
    return sorted(str(t) for t in tests if word.search(f"{t} {t.read_text(encoding='utf-8')}"))


def passes(tests, file=None, source=None, seconds=None):
    """Whether the tests pass, with the text of one module replaced; None if they don't end."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree("dpnotes", Path(folder) / "dpnotes")
        if file:
            (Path(folder) / file).write_text(source, encoding="utf-8")
        paths = {"PYTHONPATH": f"{folder}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [Path(sys.executable).parent / "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["-m", "not slow and not thorough", *tests]
        try:
            done = subprocess.run(
                command, env=os.environ | paths, timeout=seconds, capture_output=True
            )
        except subprocess.TimeoutExpired:
            return None
    if done.returncode and not file:
        print(done.stdout.decode()[-2000:])
    return done.returncode == 0


def accepted(space, mutant, tests, seconds):
    """Whether the tests accept a mutant, in a forked child with so much time and memory."""
    child = FORK.Process(target=tried, args=(space, mutant, tests, seconds))
    child.start()
    child.join(20 * seconds + 10)
    child.kill()  # one that sleeps
    child.join()
    return child.exitcode == 0


def tried(space, mutant, tests, seconds):
    """Run a mutant and its tests; an exception where a test fails."""
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for good)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 2**30, size + 2**30))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    for source in (mutant.source, *tests):
        exec(compile(source, "mutant", "exec"), space)


def survivors(path, questions=()):
    """(all mutants, those that the tests of their question accept); `questions` limits them."""
    master, space, everyone, alive = masters.read(path), {}, [], []
    by_id = {q.id: q for q in master.questions if not q.manual}
    for cell in master.notebook.cells:
        if cell.cell_type != "code" or "points" in masters.grading(cell):
            continue
        source, name = masters.solution(cell.source), masters.grading(cell).get("grade_id")
        if name in by_id and (not questions or name in questions):
            tests = [by_id[name].source, by_id[name].hidden]
            start = time.process_time()
            exec(source, whole := dict(space))
            for test in tests:
                exec(test, whole)
            seconds = 2 + 5 * (time.process_time() - start)
            changed = list(of_answer(name, source))
            everyone += changed
            alive += [m for m in changed if accepted(space, m, tests, seconds)]
        exec(source, space)
    return everyone, alive


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("room", help="chapters/composition, accountant, assignments/laplace.md, …")
    parser.add_argument("tests", nargs="*", help="only these; of a master: only these questions")
    parser.add_argument("--count", type=int, default=40, help="of a master all are tried")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.room.endswith(".md"):
        os.environ["MPLBACKEND"] = "agg"
        everyone, alive = survivors(Path(asked.room), asked.tests)
        print(*sorted(f"{m.question}: {m.change}" for m in alive), sep="\n")
        print(f"{len(everyone) - len(alive)} of {len(everyone)} noticed")
        return
    os.chdir(ROOT)
    files = modules(asked.room)
    if not files or not files[0].exists():
        sys.exit(f"ROOM must be a module or folder of dpnotes (chapters/...), got {asked.room!r}")
    tests = asked.tests or tests_of(files)
    if not passes(tests):
        sys.exit("the tests fail, or are none, before anything is changed")
    everyone = [(file, m) for file in files for m in of_answer("", file.read_text())]
    drawn = random.Random(asked.seed).sample(everyone, min(asked.count, len(everyone)))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        noticed = pool.map(lambda one: not passes(tests, one[0], one[1].source, 900), drawn)
        left = [
            f"{file}: {m.change}" for (file, m), no in zip(drawn, noticed, strict=True) if not no
        ]
    print(*left, f"{len(drawn) - len(left)} of {len(drawn)} noticed", sep="\n")


if __name__ == "__main__":
    main()
