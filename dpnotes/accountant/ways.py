"""The ways to get a line, in the order in which they are tried."""

from functools import lru_cache
from math import inf
from typing import NamedTuple

from .bands import SMALL, Bands
from .line import line

MOST_ROWS, MOST_KINDS = 1000, 60  # steps that differ, and meshes for them, at most
TRIES = 4  # of each way


class Way(NamedTuple):
    """A line, or one for each band, with so many nodes, or so many with a pinch. It is tried where
    the least error so far is above one number, and not above another."""

    above: float
    most: float
    nodes: tuple
    each: bool = False


PLAIN, LAST = Way(1e-9, inf, (300_000, 24_000)), Way(1e-6, 1e-4, (300_000, 96_000))
EACH, EACH_PINCHED = Way(1e-10, inf, (20_000, 0), True), Way(1e-6, inf, (20_000, 10_000), True)
bands_of = lru_cache(maxsize=8)(Bands)


def ways(tilts):
    """Where bands can be had, first a short line, with a pinch beside atoms. They are of the steps
    that can be sorted by their losses, if their tables do not fill the memory; right lines only."""
    parts = tilts.total.parts
    kinds = [step for step, _ in parts if step.sorts and tilts.side > 0]
    served = 0 < len(kinds) <= MOST_KINDS and sum(len(x.times) for x in kinds) <= MOST_ROWS
    if not served or min(step.sigma for step in kinds) < SMALL:
        return PLAIN, LAST
    pinched = 0 if all(step.smooth for step, _ in parts) else 4_000
    return Way(1e-11, inf, (4_000, pinched)), EACH, PLAIN, EACH_PINCHED, LAST


def tail_near(tilts, start, asked, guess):
    """The tail near a saddle point, or None, and its answer.

    ``asked`` says of a tail and its start which start would be better, the error there, whether
    this one is too far away, and its answer. With a ``guess`` the e of the start is only that."""
    best, error, answered, near = None, inf, None, start
    for way in ways(tilts):
        left, start = TRIES, near
        while left and way.above < error <= way.most:
            bands = bands_of(tilts.total.parts) if way.each else None
            if bands and guess:
                start, guess = start._replace(epsilon=bands.place(start.log_tail)), False
            tried = bands.lines(start, *way.nodes) if bands else line(tilts, start, *way.nodes)
            better, off, far, answer = asked(tried, start) if tried else (start, inf, False, None)
            left = far and left - 1
            if off < error:
                best, error, answered = tried, off, answer
            if off < inf:
                start, guess = better, False
            if off < 1:
                near = better
    return best, answered
