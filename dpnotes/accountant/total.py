"""The total loss of a composition: the losses of independent rounds add up, and so does all that is
asked of them. K = log M of the total is the sum of those of the rounds, along a line, too."""

from functools import cached_property
from math import inf

import numpy as np

from .law import EPS


class Total:
    """The total of ``parts``: pairs of a step and how often it is run."""

    def __init__(self, parts):
        self.parts = tuple(parts)
        self._each = [(step, k * step.times) for step, k in self.parts]  # and each of its rows
        self.rounds = sum(times.sum() for _, times in self._each)

    def table(self, c):
        """K, K' and K'' at an array of tilts c >= -1."""
        return sum(times @ step.tables(c) for step, times in self._each)

    def cumulant(self, c):
        """K(c), and a bound on its round-off."""
        each = [(times, *step.cumulants(c)) for step, times in self._each]
        value = sum(float(times @ one) for times, one, _ in each)
        return value, sum(float(times @ noise) for times, _, noise in each)

    def along(self, c, h, count):
        """K(c + iy) - K(c) at y = 0, h, ..., (count - 1) h, and a bound on its round-off d: M(z) is
        off by expm1(d) of itself."""
        value, noise = np.zeros(count, dtype=complex), np.zeros(count)
        for step, times in self._each:
            total, slip = 0.0, 0.0
            for some, one, off in step.rows_along(c, h, count):
                total, slip = total + times[some] @ one, slip + times[some] @ off
            value, noise = value + total, noise + slip
        return value, noise

    def falls(self, c):
        """A function of a height: a bound on log(abs(M(c + iy)) / M(c)) for all y from there on."""
        each = [(times, step.fallings(c)) for step, times in self._each]
        return lambda height: sum(float(times @ falls(height)) for times, falls in each)

    def work(self, c, h, count):
        """About how many products ``along`` needs."""
        return sum(step.work(c, h, count) for step, _ in self.parts)

    def tilt_limit(self):
        return min((step.tilt_limit() for step, _ in self.parts), default=inf)

    def variance(self):
        """That of the loss, roughly."""
        return sum(k * step.spread() ** 2 for step, k in self.parts)

    def mean(self):
        return sum(k * step.mean() for step, k in self.parts)

    def renyi(self, alpha):
        """The Rényi divergence of order alpha >= 1 of finite losses."""
        if alpha == 1:
            return self.mean()
        c = alpha - 1
        return (self.cumulant(c)[0] + sum(k * step.left_out(c) for step, k in self.parts)) / c

    @cached_property
    def lattice(self):
        """(first, spacing, round-off) of the losses, if all lie on one lattice; or None."""
        apart, first, slip = [], 0.0, 0.0
        for step, k in self.parts:
            if step.listed is None:
                return None
            losses, _, slips = step.listed
            apart.append(losses[1:] - losses[0])
            first += k * losses[0]
            slip += k * max(16 * EPS * float(np.abs(losses).max()), float(slips.max()))
        gaps = np.concatenate(apart)
        gaps = gaps[gaps > 0]
        if not gaps.size:
            return None
        largest = float(gaps.max())
        for divisor in range(1, 13):
            count = np.rint(gaps * (divisor / gaps.min()))
            if count.max() > 1e9:
                return None
            spacing = largest / float(count[gaps.argmax()])
            off = float(np.abs(gaps - count * spacing).max())
            if off <= 32 * EPS * largest:
                return first, spacing, slip + self.rounds * off
        return None
