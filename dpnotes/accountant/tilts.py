"""K(c) = log M(c) of a composition at real tilts c: saddle points and Chernoff's bounds.

On the right side, c > 0, the tail is t(e) = delta(e); on the left, -1 < c < 0, it is 1 - delta(e).
Both are the integral of M(z) e^(-ez) / (z (z+1)) along Re z = c, up to the sign. One table of K, on
a grid that is geometric in c, gives the saddle point of the integrand (``Tilts.saddle``), the bound
t(e) <= exp(K(c) + C(c) - c e), and with it the bounds on aliases (``line``).
"""

from collections import namedtuple
from functools import cached_property
from math import log, sqrt

import numpy as np

from .law import EPS

TOLERANCE = 1e-14  # relative error: aliases and cut of a line
STEP = 1 / 3  # of log c in the table
FIRST = 27  # steps of a new table, and of each extension
MOST = 400  # entries of a table
STEEP = 4.0  # more than this between two entries is refined: there few large losses take over
Saddle = namedtuple("Saddle", "c epsilon log_tail")  # a tilt, the e that has it, about log t(e)
NEAR = np.concatenate([-np.geomspace(2.0, 0.003, 13), [0.0], np.geomspace(0.003, 2.0, 13)])


def chernoff(c):
    """C(c): log of the largest value of (1 - e^-s)_+ e^(-cs), c log c - (c+1) log(c+1), without its
    cancellation; 0 on the left side (X-alias-bound)."""
    positive = np.maximum(c, 1e-300)
    return np.where(c > 0, -positive * np.log1p(1 / positive) - np.log1p(positive), 0.0)


def least_bounds(epsilon, c, heights):
    """log of the least of the bounds exp(height - c e), for an array of e, rounded up."""
    moved = np.multiply.outer(epsilon, c)
    return np.fmin.reduce(heights - moved + 4 * EPS * np.abs(moved), axis=1)


def log_kernel(c):
    """log |1/(c (c+1))|."""
    return -np.log(np.abs(c)) - np.log1p(c)


class Tilts:
    """The table of one side (1 or -1) of a total of finite losses.

    A question begins with the same entries, and adds what it needs to its own copy. What was
    computed once is kept, but no answer depends on it."""

    def __init__(self, total, side):
        self.total, self.side, self._known = total, side, {}
        self.cap = min(60.0, log(total.tilt_limit())) if side > 0 else 60.0

    @cached_property
    def _first(self):
        """The coordinates that each question begins with."""
        last = 5.0
        if self.side > 0:
            last = min(log(40 / max(sqrt(self.total.variance()), 1e-100)), self.cap)
        return last - STEP * np.arange(FIRST + 1.0)[::-1]

    def tilt(self, t):
        """The tilt c at the coordinate t of the table; it increases with t."""
        return np.exp(t) if self.side > 0 else -1 / (1 + np.exp(t))

    def _saddles(self, t):
        """c, K, the e whose integrand has its saddle point there, and the saddle-point value of
        log t(e), for an array t."""
        key = t.tobytes()
        if key not in self._known:
            c = self.tilt(t)
            value, mean, variance = self.total.table(c)
            epsilon = mean - 1 / c - 1 / (c + 1)
            bend = variance + 1 / c**2 + 1 / (c + 1) ** 2
            log_tail = value - c * epsilon + log_kernel(c) - 0.5 * np.log(2 * np.pi * bend)
            self._known[key] = np.array([c, value, epsilon, log_tail])
        return self._known[key]

    def saddle(self, epsilon=None, log_tail=None):
        """The saddle point for an e, or for a tail."""
        t, rows, column, target = self._entries(epsilon, log_tail)
        place = float(np.interp(target, column, t))
        return Saddle(float(self.tilt(place)), *(float(np.interp(place, t, x)) for x in rows[2:]))

    def _entries(self, epsilon=None, log_tail=None):
        """The entries of the table that an e, or a tail, needs: t, rows, the increasing row to look
        it up in, and what to look up."""
        row, target = (2, epsilon) if log_tail is None else (3, -self.side * log_tail)
        sign = 1.0 if log_tail is None else -self.side
        t, rows = self._first, self._saddles(self._first)
        for _ in range(60):
            column = np.maximum.accumulate(sign * rows[row])
            i = int(np.searchsorted(column, target))
            if i == 0 and t[0] > -80:
                new = t[0] - STEP * np.arange(1.0, FIRST)[::-1]
            elif i == len(t) and t[-1] < self.cap - 1e-9:
                new = np.unique(np.minimum(t[-1] + STEP * np.arange(1.0, FIRST), self.cap))
            elif 0 < i < len(t) < MOST and column[i] - column[i - 1] > STEEP:
                if t[i] - t[i - 1] < 1e-12:
                    break
                new = np.linspace(t[i - 1], t[i], 9)[1:-1]
            else:
                break
            t, rows = np.append(t, new), np.append(rows, self._saddles(new), axis=1)
            order = np.argsort(t)
            t, rows = t[order], rows[:, order]
        return t, rows, column, target

    def plan(self, start, tolerance=TOLERANCE):
        """(c, P, rivals, K, K''): the line near the saddle point ``start`` with the shortest
        period. The alias at m < 0 is bounded by a rival tilt below c, that at m > 0 by one
        above, each by exp(K + C - c'e - abs(c - c') P)."""
        near, epsilon, log_tail = start
        t = log(near) if self.side > 0 else log(-1 / near - 1)
        c = self.tilt(np.minimum(t + NEAR, max(t, self.cap)))
        value, variance, rivals = self.rivals(c)
        exponent = rivals[1] - rivals[0] * epsilon - log_tail - log(tolerance)
        gap = rivals[0] - c[:, None]
        period = np.maximum(exponent, 1.0) / np.abs(gap)
        above = np.where(gap > 0, period, np.inf).min(axis=1)
        below = np.where(gap < 0, period, np.inf).min(axis=1)
        height = value - c * epsilon + log_kernel(c)  # far above the tail digits are lost
        low = height < max(height.min() + 2.5, log_tail)
        cost = np.where(low, np.maximum(above, below), np.inf)
        at = int(np.argmin(cost))
        return float(c[at]), 1.001 * float(cost[at]), rivals, float(value[at]), float(variance[at])

    def rivals(self, c):
        """K and K'' at an array of tilts; and rows of c and K + C there, and at the ends."""
        value, _, variance = self.total.table(c)
        ends = np.zeros((2, 1)) if self.side > 0 else np.array([[-1.0, 0.0], [0.0, 0.0]])
        bounds = value + chernoff(c) + self.allowance(value)
        return value, variance, np.concatenate([ends, [c, bounds]], axis=1)

    def allowance(self, value):
        """What is added to K + C for its round-off where it is a bound."""
        return 1e-12 * (1 + np.abs(value)) + 1e-14 * self.total.rounds

    def log_bounds(self, epsilon):
        """log of the least Chernoff bound on t(e) in the table, for an array of e."""
        if not len(epsilon):
            return epsilon
        c, heights = self._heights({"epsilon": x} for x in {epsilon.min(), epsilon.max()})
        return least_bounds(epsilon, c, heights)

    def epsilon_bounds(self, log_tail):
        """The least e that Chernoff's bound on the right side gives, for an array of tails."""
        c, heights = self._heights({"log_tail": x} for x in {log_tail.min(), log_tail.max()})
        bounds = np.fmin.reduce((heights - log_tail[:, None]) / c, axis=1)
        return bounds * (1 + 1e-14) + 1e-300

    def _heights(self, questions):
        """Tilts, and K + C there, for Chernoff's bounds: all entries that these questions need."""
        c, value, *_ = np.concatenate([self._entries(**x)[1] for x in questions], axis=1)
        return c, value + chernoff(c) + self.allowance(value)
