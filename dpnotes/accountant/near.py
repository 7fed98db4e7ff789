"""1 - delta of many epsilons near one: what the search for the best line of a trade-off asks.

A line through the plane, the lines of ``jumps`` or a lattice, drawn for one epsilon, bound delta
for others around it. That costs as much as one query, and every further epsilon next to nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, expm1

import numpy as np

from . import array_sums, contour, jumps, lattice
from .inversion import TRUSTED
from .law import EPS
from .work import JUMPS, LATTICE, LINES, within

__all__ = []

SHARP = 1e-8  # relative error of a tail up to which a line is asked, if its own is not worse
USEFUL = 1e-4  # relative error of a tail, beyond which lines are asked after the lattice


@dataclass(frozen=True)
class Missed:
    """1 - delta at arrays of epsilon, from what was drawn for one of them; nan where unknown."""

    tails: Callable  # of epsilons: delta, or 1 - delta on side -1, roughly
    bounds: Callable  # no less than delta; no more than 1 - delta
    side: int
    log_kept: float = 0.0

    def rest(self, tail, room, missing):
        """room - delta, where room = 1 - missing, from a tail or its bound."""
        kept, pad = exp(self.log_kept), EPS * (8 + 16 * abs(self.log_kept))
        if self.side < 0:
            return kept * tail * (1 - pad) - missing
        return room + expm1(self.log_kept) * (1 + 16 * EPS) - kept * tail * (1 + pad)

    def at(self, epsilon, ends):
        """``tails`` or ``bounds`` where the conditional laws of finite losses have them, for an
        epsilon that is less by the round-off of the shift."""
        if self.log_kept == 0:
            return ends(epsilon)
        moved = epsilon - self.log_kept
        return ends(moved - 16 * EPS * np.abs(moved))


def missed(way, epsilon):
    """A ``Missed`` for a direction, around one epsilon >= 0; or None."""
    if epsilon >= way.end:
        return None
    parts, epsilon = way.given, epsilon - way.log_kept
    start = within(LINES, contour.saddle_at, parts, 1, epsilon)
    if start is None:
        return None
    side = 1 if start[2] < np.log(0.5) else -1
    line = within(LINES, contour.line_at, parts, side, epsilon)
    if line is None and side > 0:
        line = within(JUMPS, jumps.draw, parts, epsilon, start[2])
    dull = array_sums.own_error(line, epsilon) if line else 1.0
    found = None if dull <= USEFUL else within(LATTICE, _from_lattice, parts, start, way.log_kept)
    if found or dull > TRUSTED:
        return found
    return _from_line(line, side, way.log_kept, max(SHARP, 4 * dull))


def _from_line(line, side, log_kept, limit):
    def ends(epsilon):
        log_tail, _, above, below = array_sums.sums(line, epsilon)
        sharp = (np.maximum(above, below) <= limit) & (log_tail <= 0)
        tail = np.exp(np.where(sharp, log_tail, np.nan))
        return tail, tail * (1 + above) if side > 0 else tail * (1 - below)

    return Missed(lambda e: ends(e)[0], lambda e: ends(e)[1], side, log_kept)


def _from_lattice(parts, start, log_kept):
    spread = lattice.spread(parts, lattice.anchor(parts, start))
    if spread is None:
        return None

    def tails(epsilon):
        return np.exp([min(0.0, spread.curve.log_delta(e)) for e in epsilon])

    def bounds(epsilon):
        return np.exp([min(0.0, spread.log_bounds(e)[2]) for e in epsilon])

    return Missed(tails, bounds, 1, log_kept)
