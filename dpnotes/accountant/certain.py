"""Bounds that hold of every composition and cost little: what is left where all methods fail."""

from math import exp, expm1, inf, log1p

from . import contour, finite_sums, one_step
from .law import EPS
from .step import Finite
from .work import LAST, within

__all__ = []


def most_different(parts):
    """A bound on delta(0), and so on every delta: 1 - prod (1 - TV); couple each step."""
    return -expm1(sum(k * log1p(-one_step.total_variation(step)) for step, k in parts))


def delta(parts, epsilon):
    """What holds of every composition: no less than any of its steps alone (post-processing), no
    more than Chernoff's bound, and near 1 no less than its mirror image allows."""
    low = max(single(step).delta(epsilon)[0] for step, _ in parts)
    low = max(low, within(LAST, least_delta, parts, epsilon) or 0.0)
    chernoff = within(LAST, _chernoff_delta, parts, epsilon)
    if chernoff is None:
        chernoff = exp(min(0.0, within(LAST, contour.rough_bound, parts, epsilon) or 0.0))
    high = min(chernoff, most_different(parts) * (1 + 4 * EPS))
    high = max(high, low, 1e-300)
    return low, high, high


def least_delta(parts, epsilon):
    """A lower bound of delta(e), for where that is near 1: for -1 < c < 0,
    1 - delta(e) = E min(1, exp(e - L)) <= exp(K(c) - c e)."""
    c = contour.saddle_at(parts, -1, epsilon)[0]
    cumulant, shift = contour.total_at(parts, c), c * epsilon
    bound = cumulant - shift + 1e-12 * abs(cumulant) + 4 * EPS * abs(shift)
    return -expm1(min(bound, 0.0)) * (1 - 2 * EPS)


def _chernoff_delta(parts, epsilon):
    c = contour.saddle_at(parts, 1, epsilon)[0]
    return exp(min(0.0, contour.log_chernoff(parts, epsilon, c) + log1p(1e-12)))


def epsilon(parts, target):
    """The same for the inverse."""
    low = max(single(step).epsilon(exp(target))[0] for step, _ in parts)
    high = within(LAST, contour.chernoff_epsilon, parts, target)
    if high is None:
        high = within(LAST, contour.rough_epsilon, parts, target)
    high = inf if high is None else max(low, high)
    return low, high, high


def single(step):
    """One step alone."""
    if isinstance(step, Finite):
        return finite_sums.enumerated(((step, 1),)) or Unknown()
    return one_step.Single(step)


class Unknown:
    """A step of too many losses."""

    def delta(self, epsilon):
        return 0.0, 1.0, 1.0

    def epsilon(self, delta):
        return 0.0, inf, inf
