"""A line through the plane, once its values of K are known: tails of any epsilon (``contour``)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .law import EPS
from .work import spend

__all__ = []

VALUE, QUERY = 80, 12  # work of a height, once and for each epsilon


@dataclass(frozen=True)
class Line:
    """The integrand along Re z = c without its factor exp(K(c) - c e), at y = 0, h, 2h, ..., which
    are floats without rounding."""

    c: float
    period: float
    y: np.ndarray
    cumulant: float
    round_off: float  # of exp K(c), relative
    shape: np.ndarray
    noise: np.ndarray
    rivals: np.ndarray  # c' and K(c') + C(c') of the Chernoff bounds on the aliases
    log_cut: float  # log of sup |exp K(c+iy)| / (pi Y), relative to exp K(c)

    @cached_property
    def terms(self):
        """exp(K(z) - K(c)) over z (z+1), and over z+1."""
        spend(VALUE * len(self.y))
        z = self.c + 1j * self.y
        steep = np.exp(self.shape) / (z + 1)
        steep[0] *= 0.5
        return steep / z, steep

    @cached_property
    def rounding(self):
        """The round-off of a sum over the first ones, at e = 0 and for each unit of e."""
        sizes = np.abs(self.terms[0])
        return float(sizes @ (self.noise + 8 * EPS)), EPS * float(sizes @ self.y)

    def _turns(self, epsilon):
        """exp(-iy e) as products of coarse and fine turns."""
        spend(QUERY * len(self.y))
        stride = max(1, int(np.sqrt(len(self.y))))
        coarse, fine = (np.exp(-1j * epsilon * y) for y in (self.y[::stride], self.y[:stride]))
        return np.multiply.outer(coarse, fine).ravel()[: len(self.y)]

    def sums(self, epsilon):
        """log of tail(e) and of -d tail/de (their trapezoid sums), and the error of the first.

        The error is relative to the tail and has three parts: aliases, cut and round-off.
        """
        terms, turns = self.terms, self._turns(epsilon)
        value, slope = (max(abs(float((t * turns).sum().real)), 1e-250) for t in terms)
        front = self.cumulant - self.c * epsilon
        rounding = self.rounding[0] + abs(epsilon) * self.rounding[1]
        rounding += value * (self.round_off + EPS * abs(self.c * epsilon))
        unit = np.log(2 / self.period)
        cut = np.exp(min(self.log_cut - unit, 0.0))
        exponent = self.rivals[1] - self.rivals[0] * epsilon - front - unit
        decay = np.abs(self.rivals[0] - self.c) * self.period
        alias = np.minimum(exponent - decay, 100.0)
        above, below = self.rivals[0] > self.c, self.rivals[0] < self.c
        aliases = np.exp(alias[above].min()) + np.exp(alias[below].min())
        return (
            front + unit + np.log(value),
            front + unit + np.log(slope),
            min((rounding + cut) / value, 1e300),
            min((rounding + cut + 1.1 * aliases) / value, 1e300),
        )
