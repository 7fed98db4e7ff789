"""What one query may cost: units of work, counted where numbers are crunched.

A unit is about a nanosecond of processor time, by measurements on a busy machine, and ``CALL`` of
them go with every call, whatever its size. Whoever computes with n numbers calls ``spend`` first.
A query has ``QUERY`` units for both directions, and the methods run ``within`` a limit of their own
and of what is left of that, and give up where it would be passed. So every query ends, and what an
exact method could not finish is answered by the bounds that cost little (``certain``).
"""

from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

__all__ = []

CALL = 50_000  # to begin with
QUERY = 1_000_000_000  # for one query, in both directions
LINES = 300_000_000  # for the line of one query in one direction
DRAWN = 100_000_000  # for what one drawing of a trade-off costs
JUMPS = 600_000_000  # for the lines of its jumps
LATTICE = 480_000_000  # for a lattice
LAST = 25_000_000  # for each bound that is left when all of these fail
FIRST = 0.65  # of a query's work is for the first direction: the second may be shown to be below
KEPT = 50_000_000  # which no method may use up

_left = ContextVar("left", default=inf)
_kept = ContextVar("kept", default=KEPT)


class ExhaustedError(Exception):
    """More work is needed than is left."""


def spend(units):
    """Take so many units, or raise ``ExhaustedError`` and take none."""
    left = _left.get() - units - CALL
    if not left >= 0:
        raise ExhaustedError
    _left.set(left)


def left():
    """How many units are left."""
    return _left.get()


@contextmanager
def limited(units):
    """At most so many units in here, and no more than are left outside, where they count, too."""
    outside = _left.get()
    inside = min(units, outside)
    _left.set(inside)
    try:
        yield
    finally:
        _left.set(outside - (inside - _left.get()) if outside < inf else inf)


def within(units, answer, *arguments):
    """``answer(*arguments)``, or None if that takes more than so many units, or all but the last
    ``KEPT`` that are left: those are kept once, not again by a method within a method."""
    room = units if units <= LAST else min(units, left() - _kept.get())
    outside = _kept.set(0.0)
    try:
        with limited(room):
            return answer(*arguments)
    except ExhaustedError:
        return None
    finally:
        _kept.reset(outside)


def shared(ways):
    """For the first of so many answers to one query: at most ``FIRST`` of what is left, unless it
    is the only one."""
    return limited(left() * (FIRST if ways > 1 else 1.0))
