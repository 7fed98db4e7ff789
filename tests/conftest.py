"""Shared by all tests: paths, a limit on memory, the evidence that claims collect."""

import json
import os
import resource
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
for folder in ("tests", "site"):
    sys.path.insert(0, str(ROOT / folder))

import surroundings  # noqa: E402

surroundings.enter()  # before NumPy is loaded

import numpy as np  # noqa: E402

import evidence  # noqa: E402
from machine import address, browser  # noqa: E402, F401  (fixtures)

_collected = {}
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


@pytest.fixture
def rng():
    """Random numbers, the same in every run."""
    return np.random.default_rng(1)


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


def page_of(value):
    """The name of the page that a parameter of a test stands for, if any."""
    if isinstance(value, dict):
        return value.get("page")
    return Path(value).stem if isinstance(value, str) else getattr(value, "name", None)


def pytest_collection_modifyitems(config, items):
    """Where only the text of some pages is another one, tests of other pages are left out."""
    changed = set(os.environ.get("DPNOTES_PAGES", "").split())
    pages = {path.stem for path in (ROOT / "chapters").rglob("*.md")} if changed else set()

    def is_of_others(item):
        values = item.callspec.params.values() if hasattr(item, "callspec") else ()
        asked = {name for name in map(page_of, values) if isinstance(name, str)} & pages
        return bool(asked) and not asked & changed

    left_out = [item for item in items if is_of_others(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_of_others(item)]


def pytest_runtest_logreport(report):
    if report.when != "teardown":
        if report.failed:
            _collected.pop(report.nodeid, None)
        return
    for name, value in report.user_properties:
        if name == "claims":
            claims, by, record = value
            _collected[report.nodeid] = {"claims": claims, "by": by, **record}


def pytest_sessionfinish(session, exitstatus):
    """After a green run of the claims, write their evidence."""
    target = os.environ.get("DPNOTES_EVIDENCE")
    if not target or exitstatus or hasattr(session.config, "workerinput"):
        return
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(json.dumps(_collected, indent=1, sort_keys=True) + "\n")
