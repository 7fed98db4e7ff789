"""Shared by all tests: paths, Hypothesis settings, the evidence that claims collect, times."""

import json
import os
import resource
import sys
import zlib
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
for folder in ("tests", "site"):
    sys.path.insert(0, str(ROOT / folder))

import no_grammar  # noqa: E402, F401  (before all that reads notebooks)

# isort: split
import evidence  # noqa: E402
from machine import address, browser, drawn_address  # noqa: E402, F401  (fixtures)

hypothesis.settings.register_profile(
    "book", derandomize=True, deadline=None, max_examples=200, database=None
)
hypothesis.settings.load_profile("book")

_collected, _times = {}, {}
TIMES = ROOT / "_build" / "test-times.json"
# begun first, so that no process is left alone with one of them at the end
LONGEST = (
    "site/test_site.py", "site/test_run.py", "site/test_homework.py",
    "grading/test_assignments.py", "grading/test_hostile.py", "site/test_calculator.py",
    "grading/test_commands.py", "site/test_carry.py", "site/test_sliders.py",
    "site/test_lab.py", "package/test_accounting_properties.py", "site/test_guards.py",
    "package/test_private_fits.py", "package/test_many.py", "package/test_attack.py",
    "grading/test_mutants.py", "package/test_accounting.py", "grading/test_honest.py",
    "site/test_notebooks.py",
)  # fmt: skip
# tests of a file that need not run in one process; both may take of them
SPREAD = {
    "site/test_site.py": ("test_page_opens_and_is_accessible", 4),
    "grading/test_assignments.py": ("test_master_stubs_and_some_wrong_answers", 3),
}
MOST_MEMORY = 6 * 2**30  # of address space, in the tests that start no browser and no sandbox


@pytest.fixture(autouse=True)
def _bounded(request):
    """A test that asks for far too much memory fails by name, and the others go on."""
    if request.path.parent.name not in ("claims", "package"):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(autouse=True)
def _recorded(request):
    """Note what a claim's test checks; the note travels with the report (also under xdist)."""
    marks = list(request.node.iter_markers("claim"))
    if not marks:
        yield
        return
    with evidence.recording({}) as record:
        yield
    claims = [claim for mark in marks for claim in mark.args]
    by = [name for mark in marks for name in mark.kwargs.get("by", ())]
    request.node.user_properties.append(("claims", [claims, by, record]))


def pytest_collection_modifyitems(items):
    """The longest files first (the order within a file stays)."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get("/".join(item.path.parts[-2:]), len(place)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist loadfile`: the tests of a file stay together, but for those in SPREAD."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file, _, test = nodeid.partition("::")
            name, parts = SPREAD.get("/".join(file.split("/")[-2:]), ("", 1))
            if not name or not test.startswith(name):
                return file
            return f"{file} {zlib.crc32(test.encode()) % parts}"

    return ByFile(config, log)


def pytest_runtest_logreport(report):
    file = report.nodeid.partition("::")[0]
    _times[file] = _times.get(file, 0.0) + report.duration
    if report.when != "teardown":
        if report.failed:
            _collected.pop(report.nodeid, None)
        return
    for name, value in report.user_properties:
        if name == "claims":
            claims, by, record = value
            _collected[report.nodeid] = {"claims": claims, "by": by, **record}


def pytest_terminal_summary(terminalreporter):
    """The time of each file, the longest first."""
    if len(_times) > 1:
        terminalreporter.section("seconds of each file")
        for file, seconds in sorted(_times.items(), key=lambda one: -one[1]):
            terminalreporter.write_line(f"{seconds:8.1f}  {file}")


def pytest_sessionfinish(session, exitstatus):
    """Write the times of the files that ran, and after a green run of the claims their evidence."""
    if hasattr(session.config, "workerinput"):
        return
    if TIMES.parent.exists() and _times:
        known = json.loads(TIMES.read_text()) if TIMES.exists() else {}
        known |= {file: round(seconds, 1) for file, seconds in _times.items()}
        TIMES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    target = os.environ.get("DPNOTES_EVIDENCE")
    if not target or exitstatus:
        return
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(json.dumps(_collected, indent=1, sort_keys=True) + "\n")
