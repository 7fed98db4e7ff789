"""What one query may cost: units of work, counted where numbers are crunched.

A unit is about a nanosecond of processor time, by measurements on a busy machine, and ``CALL`` of
them go with every call, whatever its size. Whoever computes with n numbers calls
``spend`` first; the methods run ``within`` a limit, and give up where it would be passed. So every
query ends, and what an exact method could not finish is answered by the bounds that cost little
(``certain``).
"""

from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

__all__ = []

CALL = 50_000  # to begin with
LINES = 400_000_000  # for the line of one query in one direction
DRAWN = 100_000_000  # for what one drawing of a trade-off costs
JUMPS = 1_500_000_000  # for the lines of its jumps
LATTICE = 480_000_000  # for a lattice
LAST = 25_000_000  # for each bound that is left when all of these fail

_left = ContextVar("left", default=inf)


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
    """``answer(*arguments)``, or None if that takes more than so many units."""
    try:
        with limited(units):
            return answer(*arguments)
    except ExhaustedError:
        return None
