"""python -m assignments.grader build | grade | gradescope | leaks; see each `--help`."""

import argparse
import os
import sys
import time
from pathlib import Path

from . import check, gradescope, late, leaks, masters, report, run, sandbox, similar, submissions


def part(text):
    """(3, 40) of "3/40"."""
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"part must be i/n with 1 <= i <= n, got {text!r}")
    return int(number), int(of)


def late_rule(text):
    try:
        return late.Rule.read(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(problem) from None


def arguments():
    parser = argparse.ArgumentParser(prog="python -m assignments.grader", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, about):
        parser = commands.add_parser(name, help=about, description=about)
        parser.add_argument("--masters", default=Path("assignments"), type=Path)
        return parser.add_argument

    def with_limits(add):
        add("--cell-seconds", type=float, default=sandbox.Limits.cell_seconds)
        add("--total-seconds", type=float, default=sandbox.Limits.total_seconds)

    add = command("build", "write the student versions and check the masters in the sandbox")
    add("--pages", default="chapters/assignments", type=Path)
    add("--no-check", action="store_true", help="only write the student versions")
    with_limits(add)
    add = command("grade", "mark a folder of submissions")
    add("name")
    add("submissions", type=Path)
    add("out", type=Path)
    add("--unsafe", action="store_true", help="run students' code with your rights, no sandbox")
    add("--roster", type=Path, help="a CSV: student, name (one row each)")
    add("--median", action="store_true", help="show the class median on the feedback pages")
    add("--late", type=late_rule, default=late.NO_RULE, metavar="PERCENT/DAYS",
        help="10/2 takes 10 per cent of the points for each day after 2 days of grace")  # fmt: skip
    add("--part", type=part, default=(1, 1), help="3/40 marks the third of forty parts only")
    add("--similar", type=float, metavar="SHARE",
        help="report pairs of submissions that share so much of their code (0.8, say)")  # fmt: skip
    add("--solutions", action="store_true", help="show the model answers on the feedback pages")
    add("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    with_limits(add)
    add = command("gradescope", "write an autograder zip")
    add("name")
    add("out", type=Path)
    add = command("leaks", "look for solutions and hidden tests in what is published")
    add("folders", nargs="+", type=Path)
    return parser.parse_args()


def build(given, limits):
    """Student versions of all masters, then the check of each under the real grader."""
    problems, paths = [], sorted(given.masters.glob("*.md"))
    masters.claim(given.pages, given.masters, paths)
    for path in paths:
        master = masters.build(path, given.pages)
        points = sum(q.points for q in master.questions)
        print(f"{master.name}: {len(master.questions)} questions, {points:g} points")
        problems += [] if given.no_check else check.complaints(path, limits)
    return problems + leaks.sentences(given.masters, [given.pages])


def announce(given):
    """How many are left to mark, and how long each can take."""
    number, of = given.part
    entries = submissions.find(given.submissions, given.name)[number - 1 :: of]
    left = sum(not report.result_file(given.out, student).exists() for student, *_ in entries)
    print(
        f"{len(entries)} submissions, {left} without a result, {given.jobs} at a time, "
        f"at most {given.total_seconds:g} s each; what is finished is kept if you stop"
    )
    if left and of == 1 and any((given.out / "results").glob("*.json")):
        print("what is missing is marked now, on this machine")


def grade(given, limits):
    start = time.monotonic()
    announce(given)
    roster = report.read_roster(given.roster)
    options = run.Options(
        roster, given.median, given.solutions, given.late, time.time(), given.part
    )
    results = run.grade(
        given.name, given.submissions, given.out, given.masters, limits, given.jobs,
        sandbox.Bare if given.unsafe else sandbox.Bubblewrap, options,
    )  # fmt: skip
    where = "grades.csv" if given.part[1] == 1 else "results (run the whole for the tables)"
    seconds = time.monotonic() - start
    print(f"{len(results)} submissions in {seconds:.0f} s: {given.out / where}")
    if given.similar:
        print(similar.report(given, results))


def main():
    given, problems = arguments(), []
    if given.command == "leaks":
        problems = leaks.sentences(given.masters, given.folders)
    elif given.command == "gradescope":
        gradescope.write(given.name, given.masters, given.out)
    else:
        limits = sandbox.Limits(cell_seconds=given.cell_seconds, total_seconds=given.total_seconds)
        problems = {"build": build, "grade": grade}[given.command](given, limits)
    sys.exit("\n".join(problems or []) or 0)


if __name__ == "__main__":
    try:
        main()
    except (sandbox.SandboxError, FileNotFoundError, ValueError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")
