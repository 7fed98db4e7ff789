"""python -m assignments.grader build | grade | gradescope | leaks | mutants; see each `--help`."""

import argparse
import os
import sys
import time
from pathlib import Path

from . import (
    check,
    gradescope,
    leaks,
    marks,
    masters,
    mutants,
    report,
    run,
    sandbox,
    similar,
    submissions,
)  # fmt: skip


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
    mark.add_argument("--roster", type=Path, help="a CSV: student, name (one row each)")
    mark.add_argument(
        "--median",
        dest="footer",
        action="store_const",
        const=report.median,
        default=run.Options.footer,
        help="show the class median on the feedback pages",
    )
    mark.add_argument("--part", default="1/1", help="3/40 marks the third of forty parts only")
    mark.add_argument(
        "--similar",
        type=float,
        metavar="SHARE",
        help="report pairs of submissions that share so much of their code (0.8, say)",
    )
    zipped = commands.add_parser("gradescope", help="write an autograder zip")
    zipped.add_argument("name")
    zipped.add_argument("out", type=Path)
    leaks = commands.add_parser(
        "leaks", help="look for solutions and hidden tests in what is published"
    )
    leaks.add_argument("folders", nargs="+", type=Path)
    changed = commands.add_parser("mutants", help="do the tests notice a changed answer?")
    changed.add_argument("name")
    changed.add_argument("questions", nargs="*", help="only these questions")
    for command in (build, mark, zipped, leaks, changed):
        command.add_argument(
            "--masters", default=Path("assignments"), type=Path, help="the folder of masters"
        )
    mark.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    for command in (build, mark):
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
        problems += [] if given.no_check else check.complaints(path, limits)
    problems += [
        f"{where}: shows {name}, {q}" for where, name, q in leaks.find(given.masters, [given.pages])
    ]
    if problems:
        sys.exit("\n".join(problems))


def roster(path):
    """{student: name} of the list of students."""
    found = {}
    for line in marks.rows(path) if path else []:
        student = next(iter(line.values()))
        found[student.strip()] = (line.get("name") or "").strip()
    if path and not found:
        raise ValueError(f"roster {path} must be a CSV whose first column holds the students")
    return found


def part(text):
    """(3, 40) of "3/40"."""
    try:
        number, of = map(int, text.split("/"))
    except ValueError:
        number, of = 0, 0
    if not 1 <= number <= of:
        raise ValueError(f"part must be i/n with 1 <= i <= n, got {text!r}")
    return number, of


def announce(given):
    """How many there are, and how long they can take at most and took last time."""
    entries = submissions.find(given.submissions, given.name)
    known = report.seconds(given.out)
    usual = f"about {known * len(entries) / given.jobs / 60:.1f} minutes, " if known else ""
    print(
        f"{len(entries)} submissions, {given.jobs} at a time: {usual}"
        f"at most {given.total_seconds:g} s each; what is finished is kept if you stop"
    )


def main():
    given = arguments()
    if given.command == "leaks":
        found = leaks.find(given.masters, given.folders)
        sys.exit("\n".join(f"{where}: shows {name}, {q}" for where, name, q in found) or 0)
    if given.command == "gradescope":
        return gradescope.write(given.name, given.masters, given.out)
    if given.command == "mutants":
        return mutants.main(given.masters, given.name, given.questions)
    limits = sandbox.Limits(given.cell_seconds, given.total_seconds)
    if given.command == "build":
        return build(given, limits)
    start = time.monotonic()
    launcher = sandbox.Bare if given.unsafe else sandbox.Bubblewrap
    options = run.Options(roster(given.roster), given.footer, part(given.part))
    announce(given)
    results = run.grade(
        given.name, given.submissions, given.out, given.masters, limits, given.jobs, launcher,
        options,
    )  # fmt: skip
    seconds = time.monotonic() - start
    where = "grades.csv" if options.part[1] == 1 else "results (run the whole for the tables)"
    print(f"{len(results)} submissions in {seconds:.0f} s: {given.out / where}")
    if given.similar:
        read = {s for s, r in results.items() if run.FAILED not in r["flags"]}
        print(similar.report(given, read))


if __name__ == "__main__":
    try:
        main()
    except (sandbox.SandboxError, FileNotFoundError, ValueError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")
