"""python -m assignments.grader build | grade | gradescope | leaks; see `--help` of each."""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tqdm import tqdm

from . import judge, masters, report, sandbox, submissions


def work(master_path, entry, limits, cache_folder, unsafe):
    """One submission, in a worker process."""
    return judge.mark(masters.read(master_path), entry, limits, cache_folder, unsafe)


def grade(name, folder, out, masters_folder, limits, jobs=2, unsafe=False):
    """Mark a folder; what an earlier run has finished is taken over."""
    path, out = Path(masters_folder) / f"{name}.md", Path(out)
    master, entries = masters.read(path), submissions.find(folder, name)
    if not unsafe:
        sandbox.check()
        sandbox.keep_out([path, Path(folder), out])
    fingerprints = {entry[0]: judge.fingerprint(path, entry[1], limits) for entry in entries}
    results = {s: r for s, f in fingerprints.items() if (r := report.remembered(out, s, f))}
    waiting = [entry for entry in entries if entry[0] not in results]
    fonts = sandbox.font_cache(out / "fonts")
    with (
        ProcessPoolExecutor(jobs) as pool,
        tqdm(total=len(entries), initial=len(results), unit="submission", disable=None) as bar,
    ):
        futures = {
            pool.submit(work, path, entry, limits, fonts, unsafe): entry[0] for entry in waiting
        }
        for future in as_completed(futures):
            result = future.result()
            report.remember(out, result, fingerprints[result["student"]])
            results[result["student"]] = result
            bar.update()
    report.everything(out, master, list(results.values()))
    return results


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


def main():
    given = arguments()
    if given.command == "grade":
        limits = sandbox.Limits(cell_seconds=given.cell_seconds, total_seconds=given.total_seconds)
        start = time.monotonic()
        results = grade(
            given.name,
            given.submissions,
            given.out,
            given.masters,
            limits,
            given.jobs,
            given.unsafe,
        )
        print(
            f"{len(results)} submissions in {time.monotonic() - start:.0f} s: {given.out / 'grades.csv'}"
        )


if __name__ == "__main__":
    try:
        main()
    except (sandbox.SandboxError, FileNotFoundError, ValueError) as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")
