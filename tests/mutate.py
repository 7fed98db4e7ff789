"""Mutation testing of `dpnotes` (`make mutants`): change the code a little; does a test notice?

mutmut generates the changes, finds by running them which tests reach which function, and runs those
in a forked process for each mutant, the quickest first, until one fails. Here: the order of the
rooms, the choice of the tests, and the table in `tests/mutants.yml`; in `changes`: which changes
are worth a run. What a function's own tests miss is a survivor; it gets a better test, or an entry
under `explained` there.
"""

import argparse
import ast
import json
import random
import re
import sys
from hashlib import sha256
from pathlib import Path
from time import process_time
from unittest import mock

import pytest
import yaml

from caches import forget_caches
from changes import choose_operators, report

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "mutants.yml"
HEAD = """\
# How many small changes of the code the tests notice. `rooms` is written by `make mutants`,
# `explained` by hand: the function, the line as it is, what it became, and why nothing can notice.
"""
FIRST = (
    *("pure_dp", "tails", "approximate_dp", "composition", "divergences", "gaussian_noise"),
    *("subsampling", "renyi", "convex", "stability", "release", "selection", "sparse_vector"),
    *("audit", "audit_bounds", "floats", "discrete", "mechanisms", "surveys", "sgd", "erm"),
    *("optimal", "losses", "minimise", "runs", "experiments", "_outcomes", "_validate"),
)  # the others in the order of their names, the accountant last
WING = (
    *("accounting*", "accountant_faults", "attack", "calibrate", "contour", "finite_sums", "jumps"),
    *("laplace_sums", "losses", "many", "savings", "schedule", "shifted", "symmetrised"),
    *("tradeoff", "wing", "work"),
)  # the tests of the accountant itself, those of one module reach all others
ASIDE = ("lock", "plotting", "evidence", "attack", "survivors")  # tests of something else
PATIENCE = "seconds of the processor for the tests of a mutant, the quickest first"


# ------------------------------------------------------------------------------------- running them


class Watch:
    """A pytest plugin: the names of the tests that failed, and what each took of the processor."""

    def __init__(self):
        self.failed, self.seconds = set(), {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        start = process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = process_time() - start

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)


def quickest(tests, seconds, patience):
    """The tests that are done in so many seconds, at least one."""
    ordered, spent, kept = sorted(tests, key=lambda test: seconds[test]), 0.0, set()
    for test in ordered:
        spent += seconds[test]
        if kept and spent > patience:
            break
        kept.add(test)
    return kept


def prepare(patience):
    """mutmut, set up for this package, and its mutants; its module."""
    from mutmut.mutation import mutators

    choose_operators(mutators)
    import mutmut.__main__ as tool

    adapt_runs(tool)
    adapt_stats(tool, patience)
    Path("mutants").mkdir(exist_ok=True)
    with tool.CatchOutput():
        tool.copy_src_dir()
        tool.copy_also_copy_files()
        tool.create_mutants(1)
    forget_changed()
    return tool


def adapt_runs(tool):
    """Caches are forgotten before a mutant runs; a test that fails without one judges none."""
    from mutmut.runners.harness import PytestRunner

    run, measure = PytestRunner.run_tests, PytestRunner.run_stats

    def run_tests(self, *, mutant_name, tests):
        forget_caches()
        return run(self, mutant_name=mutant_name, tests=tests)

    def run_stats(self, *, tests):
        arguments = [each for each in self._pytest_args_regular_run(tests) if each != "-x"]
        execute, seen = self.execute_pytest, Watch()

        def watched(params, plugins):
            return execute(arguments, plugins=[*plugins, seen])

        with mock.patch.object(self, "execute_pytest", watched):
            measure(self, tests=tests)
        tool.state().duration_by_test.update(seen.seconds)
        for name in sorted(seen.failed):  # as one that reads the source of a function
            print("left out:", name, file=sys.__stdout__, flush=True)
        for reached in tool.state().tests_by_mangled_function_name.values():
            reached -= seen.failed
        return 0

    PytestRunner.run_tests, PytestRunner.run_stats = run_tests, run_stats


def adapt_stats(tool, patience):
    """Each room has its tests, and what is known of the others stays; the quickest are chosen.

    `forget_changed` sees to it that each test was seen to pass as it is now.
    """
    from mutmut.configuration import Config
    from mutmut.runners.harness import ListAllTestsResult
    from mutmut.workers import isolation
    from mutmut.workers.isolation import ForkRunner

    Config.config_fingerprint = lambda self: {}
    ListAllTestsResult.clear_out_obsolete_test_names = lambda self: None
    ForkRunner.run_clean_tests = lambda self, **_: 0
    isolation.register_timeout = lambda **_: None  # a busy machine ends no test: only CPU time does
    learn = tool.collect_or_load_stats

    def collect(*arguments, **more):
        learn(*arguments, **more)
        state = tool.state()
        for name, tests in state.tests_by_mangled_function_name.items():
            state.tests_by_mangled_function_name[name] = quickest(
                tests, state.duration_by_test, patience
            )

    tool.collect_or_load_stats = collect


def forget_changed():
    """Forget what the tests of a changed file reach: they are run again, and must pass."""
    seen, stats = Path("mutants/tests.json"), Path("mutants/mutmut-stats.json")
    files = Path("tests").rglob("*.py")
    now = {str(file): sha256(file.read_bytes()).hexdigest() for file in files}
    before = json.loads(seen.read_text()) if seen.exists() else {}
    stale = {file for file in now if now[file] != before.get(file)}
    if stats.exists() and stale:
        known = json.loads(stats.read_text())
        times = known["duration_by_test"]
        for test in [test for test in times if test.split("::")[0] in stale]:
            del times[test]
        reached = known["tests_by_mangled_function_name"]
        for name, tests in reached.items():
            reached[name] = [test for test in tests if test in times]
        stats.write_text(json.dumps(known))
    seen.write_text(json.dumps(now))


def names_in(file):
    """The functions and classes that a module defines."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def tests_near():
    """The accountant's own test files: the same for all its rooms, which are looked at once."""
    return sorted(str(file) for name in WING for file in Path("tests").rglob(f"test_{name}.py"))


def tests_of(room):
    """The test files that name what this room defines (what the engine defines, if it is a part of
    that), or import it, and those that try all functions."""
    file = ROOT / "dpnotes" / f"{room}.py"
    engine = [*file.parent.glob("*.py"), ROOT / "dpnotes" / "losses.py"]
    files = engine if file.parent.name == "accountant" else [file]
    names = "|".join(name for each in files for name in names_in(each))
    word = re.compile(
        rf"\bdp\.({names})\b|dpnotes\.{room.replace('/', '.')}\b"
        rf"|from dpnotes[.\w]* import [^\n]*\b{file.stem}\b"
    )
    tests = [*Path("tests/claims").glob("test_*.py"), *Path("tests/package").glob("test_*.py")]
    chosen = {test for test in tests if word.search(test.read_text(encoding="utf-8"))}
    chosen |= {
        Path(f"tests/package/test_{name}.py") for name in ("bad_input", "odd_input", "defaults")
    }
    return sorted(map(str, chosen - {Path(f"tests/package/test_{name}.py") for name in ASIDE}))


def all_rooms(tool):
    """{room: mutmut's data of it}, in the order they are run."""
    data = {}
    for path in tool.walk_mutatable_files():
        room = str(path.with_suffix("").relative_to("dpnotes"))
        data[room] = tool.SourceFileMutationData(path=path)
        data[room].load()

    def place(room):
        return room.startswith("accountant"), FIRST.index(room) if room in FIRST else 99, room

    return {room: data[room] for room in sorted(data, key=place) if data[room].exit_code_by_key}


def forget_unreached(tool, path):
    """What only slow tests reach has no result yet."""
    data = tool.SourceFileMutationData(path=path)
    data.load()
    for name, code in data.exit_code_by_key.items():
        if code in (5, 33):
            data.exit_code_by_key[name] = None
    data.save()


def wanted(data, again, sample, seed):
    """The mutants of a room to run: those without a result; with `again` the survivors too."""
    names = sorted(data.exit_code_by_key)
    if sample is not None and sample < len(names):
        names = sorted(random.Random(f"{seed} {data.path}").sample(names, sample))
    redo = (None, 0, 33) if again else (None,)
    return [name for name in names if data.exit_code_by_key[name] in redo]


def main(argv=None):
    """Run the rooms that are asked for, then write the table; 1 if a survivor is not explained."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rooms", nargs="*", help="as composition or accountant/law; default all")
    parser.add_argument("--again", action="store_true", help="run the survivors again, too")
    parser.add_argument("--sample", type=int, help="at most so many of a room, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=float, default=20, help=PATIENCE)
    parser.add_argument("--quick", action="store_true", help="without the tests marked slow")
    parser.add_argument("--near", action="store_true", help="only the accountant's own tests")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", action="store_true", help="run nothing, write the table")
    asked = parser.parse_args(argv)
    tool = prepare(asked.patience)
    if asked.quick:
        tool.config().pytest_add_cli_args += ["-m", "not slow and not thorough"]
    rooms = all_rooms(tool)
    unknown = set(asked.rooms) - set(rooms)
    if unknown:
        parser.error(f"no such rooms: {sorted(unknown)}; there are {list(rooms)}")
    runs = {}  # rooms of the same tests in one run, for each lists the tests anew
    for room in () if asked.table else asked.rooms or rooms:
        names = wanted(rooms[room], asked.again, asked.sample, asked.seed)
        print(f"{room}: {len(names)} mutants", flush=True)
        chosen = tuple(tests_near() if asked.near else tests_of(room))
        runs[chosen] = [*runs.get(chosen, []), *names]
    for chosen, names in runs.items():
        if names:
            tool.config().pytest_add_cli_args_test_selection[:] = chosen
            tool._run(names, asked.jobs)
            for room in asked.rooms or rooms if asked.quick else ():
                forget_unreached(tool, rooms[room].path)
    table = yaml.safe_load(TABLE.read_text()) if TABLE.exists() else {}
    table = {"rooms": table.get("rooms") or {}, "explained": table.get("explained") or []}
    for room, data in all_rooms(tool).items():
        row, open_ones = report(tool, data, table)
        if row:
            table["rooms"][room] = row
        if room in (asked.rooms or rooms):
            for each in open_ones:
                print("{}\n  - {}\n  + {}".format(*each))
    text = yaml.safe_dump(table, sort_keys=False, width=99, allow_unicode=True)
    TABLE.write_text(HEAD + text, encoding="utf-8")
    for room, row in table["rooms"].items():
        sampled = "" if row["run"] == row["mutants"] else "a sample"
        print(f"{room:30}", *(f"{name} {count:5}" for name, count in row.items()), sampled)
    return int(any(row["open"] for row in table["rooms"].values()))


if __name__ == "__main__":
    sys.exit(main())
