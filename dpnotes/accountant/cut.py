"""Sampled Gaussian steps of which only some losses count: those of a band between two thresholds.

With lam = L - log(1 - rate) >= 0, s_tau is a smooth 'lam is at most tau', Phi(-g(lam/tau)) with
g(t) = (t - 1/t) / (2 WIDTH). A cut step has the weight s_tau - s_lower.

How it falls: the outcome is lifted to x + id, as for the whole step, and there
abs(Phi(x+iy)) <= e^(y^2/2) Phi(x) bounds the weights.

Its law is that of one window, 14 standard deviations to the left and 40 to the right: what is
beyond has 1e-44 of the least losses, and e^-800 of the largest.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log, log1p

import numpy as np

from ..numerics import log_ndtr
from .law import Rule, kept
from .sampled_gaussian import QUADRATURE, SampledGaussian

WIDTH = 0.12  # of a threshold
REAL = 0.05  # spacing of u where y = 0
LEFT, RIGHT = 14, 40  # standard deviations to both ends of the window
ANGLES = np.array([0.74, 0.6, 0.48, 0.37, 0.27, 0.18, 0.1, 0.04])[:, None]
KEPT = 32  # tables of as many cuts are kept: of one kind of steps, all
LEFT_OUT, EMPTY = 75.0, 200.0  # -log of the terms that a line leaves out; of as good as nothing


def _shares(lam, tau):
    """log s_tau and log(1 - s_tau); for complex lam bounds on log of their absolute values."""
    if tau == inf:
        return np.zeros(lam.shape), np.full(lam.shape, -inf)
    if not tau:
        return np.full(lam.shape, -inf), np.zeros(lam.shape)
    at = (lam / tau - tau / lam) / (2 * WIDTH)
    most = 0.5 * at.imag**2
    below, above = log_ndtr(-at.real) + most, log_ndtr(at.real) + most
    if not np.iscomplexobj(lam):
        return below, above
    return _lesser(below, np.logaddexp(0, above)), _lesser(above, np.logaddexp(0, below))


def _lesser(one, other):
    """The lesser of two bounds along rows. Next to where they cross, the greater: the trapezoid
    rule is below the integral at a peak between two nodes, by an eighth of what this adds."""
    first = one < other
    turns = np.pad(first[:, 1:] != first[:, :-1], ((0, 0), (1, 1)))
    return np.where((turns[:, 1:] | turns[:, :-1]) ^ first, one, other)


def log_weights(lam, tau, lower):
    """log of the weight s_tau - s_lower, and of 1 less it."""
    (low, above), (least, beyond) = _shares(lam, tau), _shares(lam, lower)
    near = beyond + np.log(-np.expm1(above - beyond))
    weight = np.where(beyond < low, near, low + np.log(-np.expm1(least - low)))
    return weight, np.logaddexp(above, least)


def most_weight(lam, step):
    """A bound on log of its absolute value, for complex lam along rows."""
    (low, above), (least, beyond) = _shares(lam, step.tau), _shares(lam, step.lower)
    return _lesser(np.logaddexp(low, least), np.logaddexp(above, beyond))


@dataclass(frozen=True)
class Cut(SampledGaussian):
    """The part of sampled Gaussian steps with the weight s_tau - s_lower: laws of less than 1."""

    tau: float = inf
    lower: float = 0.0

    angles, empty = ANGLES, EMPTY

    def tilt_limit(self):
        return self._reach[0]

    @property
    def digits(self):
        """Rounds raise a to a power, but J only once."""
        return 40.0 if self.lower else QUADRATURE

    @cached_property
    def _reach(self):
        """(limit, spacing): the largest real tilt that has fallen at both ends of the window, and
        the mesh on which the sums of all up to it are right; but for rows of less than e^-EMPTY.
        It is looked for from far out, down by a fifth each time."""
        far = min(30 + 35 * self.sigma, 600) / self.tau
        c = super().tilt_limit() if self.tau == inf else far
        _, loss, log_p, weight, _ = self._whole_window
        usual = self._real_spacing(c)
        for _ in range(60):
            terms = log_p + weight + c * loss
            top = terms.max(axis=1)
            fallen = terms[:, [0, -1]].max(axis=1) < top - self.digits
            spacing = self._spacing_of_strip(c, 0.0)
            if np.all(fallen | (top < -EMPTY)) and (spacing >= usual / 4 or top.max() < -EMPTY):
                break
            c /= 1.25
        return c, min(usual, max(spacing, usual / 4))

    def _odds(self, x):
        """log of the odds that the row was taken; lam is log(1 + e^it)."""
        return (x - 0.5) / self.sigma**2 + log(self.rate) - log1p(-self.rate)

    def _far_window(self, _c):
        return -LEFT * self.sigma, 1 + RIGHT * self.sigma

    def _real_spacing(self, _c):
        return min(REAL, 0.3 / self.each[-1]) * self.sigma**2

    def _window(self, c):
        """Where the terms of this tilt are more than e^-LEFT_OUT of the largest one."""
        x, loss, log_p, weight, _ = self._whole_window
        terms = log_p + weight + c * loss
        top = terms.max(axis=1, keepdims=True)
        top = np.where(top < min(-EMPTY, top.max()), inf, top)
        inside = x[(terms > top - LEFT_OUT).any(axis=0)]
        return inside[0], inside[-1]

    @property
    @kept(KEPT)
    def _whole_window(self):
        """The mesh on which limit, windows and N(d) are found."""
        return self._mesh(self._real_spacing(0.0))

    def _mesh(self, spacing):
        """x, loss, rows of log p, log of the weight, and of what it leaves of 1."""
        x, loss, log_p = _uncut(replace(self, tau=inf, lower=0.0), spacing)
        return x, loss, log_p, *self._log_weights(x)

    def _log_weights(self, x):
        return log_weights(np.logaddexp(0.0, self._odds(x)), self.tau, self.lower)

    def _lift(self, _x):
        return self._lift_of_window

    @property
    @kept(KEPT)
    def _lift_of_window(self):
        """As for whole steps, with the bounds on the weight."""
        x, *_, log_weight, _ = self._whole_window
        grown, phase, *_ = super()._lift(x)
        lam = np.maximum(np.logaddexp(0.0, self._odds(x)) + grown, 1e-300) + 1j * phase
        return grown, phase, most_weight(lam, self), log_weight

    @kept(4)
    def rule(self, c, band):
        """With what is left out of the mass of both laws."""
        if not band:
            return self._real_rule
        x, loss, log_p = self._nodes(self._window(c), self._spacing(c, band))
        return Rule(loss, log_p + self._log_weights(x)[0])

    @property
    @kept(KEPT)
    def _real_rule(self):
        """For all real tilts up to the limit."""
        _, spacing = self._reach
        _, loss, log_p, weight, left = self._mesh(spacing)
        out = np.exp(log_p + left)
        return Rule(loss, log_p + weight, out.sum(axis=1), gap=out @ np.expm1(-loss))


@kept(KEPT)
def _uncut(step, spacing):
    """The nodes that all cuts of a step share."""
    return step._nodes(step._far_window(0.0), spacing)
