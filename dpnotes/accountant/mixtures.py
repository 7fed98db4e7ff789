"""Terms of ``jumps`` that share a line: their moment generating functions, added up.

Each term is a product of powers of a few functions, those of the classes of jumps and of the rest.
What these are at some c, or along a line, is computed once for all terms.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from . import contour
from .law import log_sum_exp
from .step import Step
from .work import left, spend, within

__all__ = []

LOOSE = 1.5  # log of how far above its own saddle point a term may be on a line that it shares,
SMALL = 4.0  # and of how far below delta in any case
APART = 0.75  # log of how far the saddle points of terms that share a line are from its c
PER_UNIT = 8  # saddle points in a unit of log c
CHUNK = 24  # of them at a time
LOWEST = 60.0  # log of how far below its scale c is looked for
DULL, FEW = 5e-13, 8  # error of a line, beyond which so many terms have lines of their own
MOST = 0.7  # of the work that is left, for one line
LEAST = 1e7  # work, with less than which none is begun again
PRODUCT = 40  # work of one term at one height
BLOCK = 100_000  # entries of one array at a time


@dataclass(frozen=True)
class Factor(Step):
    """A constant factor of the moment generating function."""

    log: float

    def tilt_limit(self, log_delta):
        return inf

    def work(self, c, band):
        return 0

    def cumulant(self, z):
        return np.full(np.shape(z), self.log)

    def cumulant_noise(self, c):
        return 0.0

    def derivatives(self, z):
        return self.cumulant(z), np.zeros(np.shape(z)), np.zeros(np.shape(z))

    def line(self, c, y):
        return np.zeros(len(y), dtype=complex), np.zeros(len(y))

    def ceiling(self, c):
        return lambda height: 0.0


@dataclass(frozen=True, eq=False)
class Mixture(Step):
    """The sum over terms t of exp(logs[t]) prod_i E exp(zL_i)^counts[t, i], as that of one step."""

    steps: tuple
    counts: np.ndarray
    logs: np.ndarray

    def tilt_limit(self, log_delta):
        return min(step.tilt_limit(log_delta) for step in self.steps)

    def smooth_limit(self):
        return min(step.smooth_limit() for step in self.steps)

    def work(self, c, band):
        return sum(step.work(c, band) for step in self.steps)

    def _each(self, c):
        """K of each term."""
        return self.logs + self.counts @ np.array([step.cumulant_at(c) for step in self.steps])

    def cumulant(self, z):
        each = self.counts @ np.array([step.cumulant(z) for step in self.steps])
        return log_sum_exp(each + self.logs[:, None], axis=0)

    def cumulant_at(self, c):
        return float(log_sum_exp(self._each(c)))

    def cumulant_noise(self, c):
        """The largest of all terms', for their tails add up."""
        noise = self.counts @ np.array([step.cumulant_noise(c) for step in self.steps])
        return float(np.max(noise + 8 * np.abs(self._each(c))))

    def derivatives(self, z):
        found = self.counts @ np.array([step.derivatives(z) for step in self.steps]).swapaxes(0, 1)
        each, mean, variance = found
        each = each + self.logs[:, None]
        total = log_sum_exp(each, axis=0)
        share = np.exp(each - total)
        middle = (share * mean).sum(axis=0)
        return total, middle, (share * (variance + (mean - middle) ** 2)).sum(axis=0)

    def line(self, c, y):
        spend(PRODUCT * len(y) * len(self.logs))
        found = [step.line(c, y) for step in self.steps]
        values, errors = (np.array(x) for x in zip(*found, strict=True))
        shares = np.exp(self._each(c) - self.cumulant_at(c))[:, None]
        value, noise = np.zeros(len(y), dtype=complex), np.zeros(len(y))
        block = max(1, BLOCK // len(self.logs))
        for first in range(0, len(y), block):
            here = slice(first, first + block)
            each = shares * np.exp(self.counts @ values[:, here])
            value[here] = each.sum(axis=0)
            noise[here] = (np.abs(each) * (self.counts @ errors[:, here])).sum(axis=0)
        value[value == 0] = 1e-300
        return np.log(value), noise / np.abs(value)

    def ceiling(self, c):
        ceilings = [step.ceiling(c) for step in self.steps]
        shares = self._each(c) - self.cumulant_at(c)

        def bound(height):
            each = np.array([ceiling(height) for ceiling in ceilings])
            return min(0.0, float(log_sum_exp(shares + self.counts @ each)))

        return bound


class Table:
    """K and K' of all terms at many c, for the saddle points of all of them."""

    def __init__(self, terms, epsilon):
        self.terms, self.epsilon = terms, epsilon
        every = [s for term in terms for s, _ in term if not isinstance(s, Factor)]
        self.steps = tuple(dict.fromkeys(every))
        place = {step: i for i, step in enumerate(self.steps)}
        self.counts, self.logs = np.zeros((len(terms), len(place))), np.zeros(len(terms))
        for t, term in enumerate(terms):
            for step, k in term:
                if isinstance(step, Factor):
                    self.logs[t] += k * step.log
                else:
                    self.counts[t, place[step]] += k
        self.limits = np.array([min(step.tilt_limit(800.0), 1e25) for step in self.steps])
        self.c, self.cumulant = self._filled()

    def _filled(self):
        """c, in equal steps of log c from below to beyond all saddle points, and K there."""
        squares = np.array([step.spread() ** 2 for step in self.steps])
        ends = np.log(np.where(self.counts > 0, self.limits, np.inf).min(axis=1))
        scale = np.log(40) - 0.5 * np.log(np.maximum(self.counts @ squares, 1e-200))
        scale = np.minimum(scale, ends)
        places = np.arange(-CHUNK, 0) + int(PER_UNIT * scale.max())
        blocks = [self._at(places)]
        while self._is_beyond(blocks[0], 0).any() and places[0] > PER_UNIT * (scale.min() - LOWEST):
            places = places - CHUNK
            blocks.insert(0, self._at(places))
        places = np.arange(CHUNK) + int(PER_UNIT * scale.max())
        while not self._is_beyond(blocks[-1], -1).all() and places[0] < PER_UNIT * ends.max():
            blocks.append(self._at(places))
            places = places + CHUNK
        c, cumulant, _ = (np.concatenate(x, axis=-1) for x in zip(*blocks, strict=True))
        return c, cumulant

    def _is_beyond(self, block, at):
        """For which terms the saddle point for epsilon is at a lower c."""
        c, _, mean = (x[..., at] for x in block)
        return mean - 1 / c - 1 / (c + 1) > self.epsilon

    def _at(self, places):
        """c, and K and K' of all terms, infinite beyond the limits of their steps."""
        c = np.exp(places / PER_UNIT)
        values = np.zeros((2, len(self.steps), len(c)))
        beyond = c > self.limits[:, None]
        for i, step in enumerate(self.steps):
            inside = ~beyond[i]
            if inside.any():
                values[:, i, inside] = step.derivatives(c[inside])[:2]
        cumulant, mean = self.counts @ values
        cumulant += self.logs[:, None]
        outside = self.counts @ beyond > 0
        return c, np.where(outside, np.inf, cumulant), np.where(outside, np.inf, mean)

    def bounds(self):
        """For each term c and A: its tail is at most exp(A - c e), for all e, and least here."""
        bound = self.cumulant + contour.chernoff(self.c) + 1e-12 * (1 + np.abs(self.cumulant))
        bound += 1e-14 * self.counts.sum(axis=1)[:, None]
        best = np.argmin(bound - self.c * self.epsilon, axis=1)
        return self.c[best], bound[np.arange(len(best)), best]

    def _front(self):
        return self.cumulant - self.c * self.epsilon + contour.log_kernel(self.c)

    def home(self, term):
        """The c of its saddle point."""
        return float(self.c[self._front()[term].argmin()])

    def shared(self, open_terms, log_delta):
        """[(c, terms)]: each of these terms is at home at one of few c."""
        front = self._front()
        least = front.min(axis=1, keepdims=True)
        at_home = front <= np.maximum(least + LOOSE, log_delta - SMALL)
        own = self.c[front.argmin(axis=1)]  # a term elsewhere makes a line long and high
        at_home &= np.abs(np.log(self.c) - np.log(own)[:, None]) <= APART
        excess = np.where(at_home, front - least, 0.0)
        rest, found = np.array(open_terms), []
        while rest.size:
            count = at_home[rest].sum(axis=0)
            most = np.flatnonzero(count == count.max())
            best = most[np.argmin(excess[rest][:, most].max(axis=0))]
            here = at_home[rest, best]
            found.append((float(self.c[best]), rest[here]))
            rest = rest[~here]
        return found

    def mixture(self, members):
        """These terms as parts of a composition."""
        if len(members) == 1:
            return self.terms[members[0]]
        used = np.flatnonzero(self.counts[members].any(axis=0))
        counts = self.counts[np.ix_(members, used)]
        return ((Mixture(tuple(self.steps[i] for i in used), counts, self.logs[members]), 1),)

    def lines(self, at, members, log_delta):
        """The line of these terms, or, if that is dull, one for each; none if one has none."""

        def drawn(at, terms):
            start = at, self.epsilon, log_delta
            return within(MOST * left(), contour.line, self.mixture(terms), 1, start)

        def error(lines):
            """Of their tails, relative to delta."""
            sums = np.array([line.sums(self.epsilon) for line in lines])
            return float(np.exp(np.minimum(sums[:, 0] - log_delta, 0.0)) @ sums[:, 2:].max(axis=1))

        line = drawn(at, members)
        few = 1 < len(members) <= FEW and left() > LEAST
        if not few or (line is not None and error([line]) < DULL):
            return [line] if line is not None else []
        alone = []
        for term in members:
            alone.append(drawn(self.home(term), np.array([term])))
            if alone[-1] is None:
                return [line] if line is not None else []
        return [line] if line is not None and error([line]) <= error(alone) else alone
