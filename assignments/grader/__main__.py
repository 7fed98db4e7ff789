"""python -m assignments.grader build | grade | gradescope | leaks; see `--help` of each."""

import argparse
import os
import sys
import time
from pathlib import Path

from . import check, gradescope, leaks, masters, run, sandbox


def arguments():
    parser = argparse.ArgumentParser(prog="python -m assignments.grader", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser(
        "build", help="write the student versions and check the masters under the real grader"
    )
    build.add_argument("--pages", default="chapters/assignments", type=Path)
    build.add_argument("--no-check", action="store_true", help="only write the student versions")
    mark = commands.add_parser("grade", help="mark a folder of submissions")
    mark.add_argument("name")
    mark.add_argument("submissions", type=Path)
    mark.add_argument("out", type=Path)
    mark.add_argument(
        "--unsafe",
        action="store_true",
        help="run students' code without a sandbox, with your rights",
    )
    zipped = commands.add_parser("gradescope", help="write an autograder zip")
    zipped.add_argument("name")
    zipped.add_argument("out", type=Path)
    leaks = commands.add_parser(
        "leaks", help="look for solutions and hidden tests in what is published"
    )
    leaks.add_argument("folders", nargs="+", type=Path)
    for command in (build, mark, zipped, leaks):
        command.add_argument(
            "--masters", default=Path("assignments"), type=Path, help="the folder of masters"
        )
    for command in (build, mark):
        command.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
        command.add_argument("--cell-seconds", type=float, default=sandbox.Limits.cell_seconds)
        command.add_argument("--total-seconds", type=float, default=sandbox.Limits.total_seconds)
    return parser.parse_args()


def build(given, limits):
    """Student versions of all masters, then the check of each under the real grader."""
    problems = []
    for path in sorted(given.masters.glob("*.md")):
        master = masters.build(path, given.pages)
        points = sum(q.points for q in master.questions)
        print(f"{master.name}: {len(master.questions)} questions, {points:g} points")
        problems += [] if given.no_check else check.complaints(path, limits, given.jobs)
    problems += [
        f"{where}: shows {name}, {q}" for where, name, q in leaks.find(given.masters, [given.pages])
    ]
    if problems:
        sys.exit("\n".join(problems))


def main():
    given = arguments()
    if given.command == "leaks":
        found = leaks.find(given.masters, given.folders)
        sys.exit("\n".join(f"{where}: shows {name}, {q}" for where, name, q in found) or 0)
    if given.command == "gradescope":
        return gradescope.write(given.name, given.masters, given.out)
    limits = sandbox.Limits(given.cell_seconds, given.total_seconds)
    if given.command == "build":
        return build(given, limits)
    start = time.monotonic()
    results = run.grade(
        given.name, given.submissions, given.out, given.masters, limits, given.jobs, given.unsafe
    )
    seconds = time.monotonic() - start
    print(f"{len(results)} submissions in {seconds:.0f} s: {given.out / 'grades.csv'}")


if __name__ == "__main__":
    try:
        main()
    except (sandbox.SandboxError, FileNotFoundError, ValueError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")
