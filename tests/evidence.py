"""What a claim's test found: how many instances, how tight, which mistakes were caught.

A test calls `at_most`, `equal` and `holds` instead of a bare ``assert``. Each checks whole arrays,
and notes what it saw for the running test; the `claims` and `errata` pages are drawn from that.
"""

import ast
import functools
import inspect
import textwrap
from contextlib import contextmanager

import numpy as np
import pytest

_running = None


@contextmanager
def recording(record):
    """Let the checks below write into the dictionary `record` (None: write nowhere)."""
    global _running
    before, _running = _running, record
    try:
        yield record
    finally:
        _running = before


def claim(*ids, of=None, wrong=()):
    """A test of these entries of the ledger.

    With `of`, a function (or a tuple of arguments), the test is a check that takes it first: it
    must pass for `of` and fail for each planted mistake in `wrong`. The page of claims names what
    the test calls of its chapter's room; if that is nothing, of other rooms, or of the package.
    """

    def marked(test):
        called = {*functions_named_in(test), *filter(None, map(home, given(of)))}
        file = test.__module__.split(".")[-1]
        own = {name for name in called if file.startswith(f"test_{name.split('.')[-2]}")}
        chapters = {name for name in called if ".chapters." in name}
        by = sorted(".".join(name.split(".")[-2:]) for name in own or chapters or called)
        return pytest.mark.claim(*ids, by=by)(test if of is None else tried(test))

    def given(arguments):
        return arguments if isinstance(arguments, tuple) else (arguments,)

    def tried(check):
        @functools.wraps(check)
        def test(**fixtures):
            check(*given(of), **fixtures)
            for mistake in wrong:
                must_fail(check, *given(mistake), **fixtures)

        parameters = list(inspect.signature(check).parameters.values())[len(given(of)) :]
        test.__signature__ = inspect.Signature(parameters)
        return test

    return marked


def home(thing, room="", name=""):
    """``dpnotes.chapters.room.name`` of something of the package, in rooms of one file or more."""
    if inspect.isfunction(thing) or inspect.isclass(thing):
        room, name = thing.__module__, thing.__name__
    elif not type(thing).__module__.startswith("dpnotes"):
        return None
    parts = room.split(".")[: 3 if ".chapters." in room else 2]
    return ".".join([*parts, name]) if parts[0] == "dpnotes" else None


def functions_named_in(test, seen=()):
    """What a test names of dpnotes, in its body and through the helpers of its file."""
    function, names = ast.parse(textwrap.dedent(inspect.getsource(test))).body[0], test.__globals__
    nodes = [node for part in (function.args, *function.body) for node in ast.walk(part)]
    local = {node.arg for node in nodes if isinstance(node, ast.arg)}
    local |= {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    named = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            room = names.get(node.value.id)
            if inspect.ismodule(room):
                named.add(home(getattr(room, node.attr, None), room.__name__, node.attr))
        elif isinstance(node, ast.Name) and node.id not in local:
            helper = names.get(node.id)
            if isinstance(helper, tuple):
                named |= {home(each) for each in helper}
            elif getattr(helper, "__globals__", None) is names and helper not in seen:
                named |= functions_named_in(helper, (*seen, helper))
    return named - {None}


def at_most(smaller, larger, *, rtol=1e-12, atol=0.0):
    """Assert ``smaller <= larger`` up to rounding, and note the smallest relative slack."""
    smaller, larger = np.broadcast_arrays(np.asarray(smaller, float), np.asarray(larger, float))
    room = np.where(np.isfinite(larger), atol + rtol * np.abs(larger), 0.0)
    bad = ~(smaller <= larger + room)
    assert not bad.any(), _first(bad, smaller, "<=", larger)
    finite = np.isfinite(larger) & (larger != 0)
    slack = ((larger - smaller)[finite] / np.abs(larger[finite])).tolist()
    _note(smaller.size, **({"slack": min(slack)} if slack else {}))


def equal(left, right, *, rtol=1e-12, atol=0.0):
    """Assert ``left == right`` to `rtol` relative to `right`, and note the largest error."""
    left, right = np.broadcast_arrays(np.asarray(left, float), np.asarray(right, float))
    same = left == right
    error = np.abs(np.where(same, 0.0, left) - np.where(same, 0.0, right))
    bad = ~(same | (error <= atol + rtol * np.abs(right)))
    assert not bad.any(), _first(bad, left, "==", right)
    error = error / np.where(same | (right == 0), 1.0, np.abs(right))
    _note(left.size, error=float(error.max(initial=0.0)))


def holds(condition, message="the condition fails"):
    """Assert that every entry of the boolean array `condition` is true, and count them."""
    condition = np.asarray(condition)
    assert condition.dtype == bool, f"holds wants booleans, got {condition.dtype}"
    assert condition.all(), f"{message}: {np.count_nonzero(~condition)} of {condition.size}"
    _note(condition.size)


def must_fail(check, *mistaken, **also):
    """Plant a mistake: assert that ``check(*mistaken)`` raises AssertionError."""
    with recording(None), pytest.raises(AssertionError):
        check(*mistaken, **also)
    if _running is not None:
        _running["caught"] = _running.get("caught", 0) + 1


def slip(claim, computed):
    """Note for the errata page what the source's statement of `claim` gives when computed."""
    if _running is not None:
        _running.setdefault("slips", []).append([claim, computed])


def proved(text):
    """Note for the claims page what was proved for every parameter of a box."""
    if _running is not None:
        _running.setdefault("proved", []).append(text)


def _note(count, **values):
    """Add to the number of instances; keep the smallest slack and the largest error."""
    if _running is None:
        return
    _running["instances"] = _running.get("instances", 0) + int(count)
    for name, value in values.items():
        better = min if name == "slack" else max
        _running[name] = better(_running.get(name, value), value)


def _first(bad, left, sign, right):
    where = tuple(np.argwhere(bad)[0])
    index = f" at {tuple(map(int, where))}" if where else ""
    return f"{left[where]!r} {sign} {right[where]!r} fails{index} ({bad.sum()} of {bad.size})"
