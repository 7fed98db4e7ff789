"""What a claim's test found: how many instances, how tight, which mistakes were caught.

A test calls `at_most`, `equal` and `holds` instead of a bare ``assert``. Each checks whole arrays,
and notes what it saw for the running test; the `claims` and `errata` pages are drawn from that.
"""

from contextlib import contextmanager

import numpy as np

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
    with recording(None):
        try:
            check(*mistaken, **also)
        except AssertionError:
            pass
        else:
            raise AssertionError("the planted mistake went unnoticed")
    if _running is not None:
        _running["caught"] = _running.get("caught", 0) + 1


def slip(claim, found):
    """Note for the errata page what the source's statement of `claim` gives when computed."""
    if _running is not None:
        _running.setdefault("slips", []).append([claim, found])


def _note(count, **found):
    """Add to the number of instances; keep the smallest slack and the largest error."""
    if _running is None:
        return
    _running["instances"] = _running.get("instances", 0) + int(count)
    for name, value in found.items():
        better = min if name == "slack" else max
        _running[name] = better(_running.get(name, value), value)


def _first(bad, left, sign, right):
    where = tuple(np.argwhere(bad)[0])
    index = f" at {tuple(map(int, where))}" if where else ""
    return f"{left[where]!r} {sign} {right[where]!r} fails{index} ({bad.sum()} of {bad.size})"
