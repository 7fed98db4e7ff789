"""delta(epsilon) and epsilon(delta) of a composition of finite losses, as enclosures
(low, value, high), from exact sums.
"""

from math import exp, inf, log

import numpy as np

from . import contour, finite_sums, one_step
from .law import EPS

__all__ = []


class Exact:
    """A Curve without any error but round-off: of its sums, and of its losses (``shift``)."""

    def __init__(self, curve, shift):
        self.curve, self.shift = curve, shift
        size = np.ptp(curve.loss) + np.abs(curve.log_p[curve.log_p > -inf]).max()
        self.rounding = 1e-12 + 4 * EPS * (float(size) + len(curve.loss))

    def log_bound(self, epsilon, way):
        """A bound on log delta from below (way -1) or above (1)."""
        value = self.curve.log_delta(epsilon - way * self.shift)
        return min(0.0, value + way * self.rounding)

    def delta(self, epsilon):
        low, high = (exp(self.log_bound(epsilon, way)) for way in (-1, 1))
        return low, exp(min(0.0, self.curve.log_delta(epsilon))), high

    def epsilon(self, delta):
        value = max(0.0, self.curve.epsilon(log(delta)))
        return one_step.around(self.log_bound, value, log(delta))


class Binomial:
    """Two losses, k rounds: the window of the binomial law that the query needs."""

    def __init__(self, step, k):
        self.step, self.k = step, k

    def _curve(self, find, value):
        start = find(((self.step, self.k),), 1, value) if self.k > 20_000 else (0.0,)
        shift = 4 * EPS * self.k * max(map(abs, self.step.losses))
        return Exact(finite_sums.two_point(self.step, self.k, start[0], least=0.0), shift)

    def delta(self, epsilon):
        return self._curve(contour.saddle_at, epsilon).delta(epsilon)

    def epsilon(self, delta):
        return self._curve(contour.saddle_for, log(delta)).epsilon(delta)
