"""Batches as they are made in practice: shuffled, allotted to steps at random, several rows a user.

For many steps none of these pairs has a closed form. What decides is the density ratio R = dP/dQ
under Q: H_a(P || Q) = E_Q (R - a)_+ is the mean of a convex function of it. To merge outcomes (R
becomes its mean over a cell) can only lower it; to move R to the two ends of its cell, with the
same mean, can only raise it (in-practice-order). Both leave a finite pair. So each function gives
two losses, one on either side of the truth; both compose. The masses of the cells are right to
about 1e-13 of each, and the ratios to 2e-16.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, inf, log, nextafter
from typing import Annotated, NamedTuple

import numpy as np

from ..numerics import log_ndtr, matrix_product, ndtr, ndtri
from ..accountant import PrivacyLoss, finite
from ..checks import (
    Count, Few, Many, NonnegativeNumber, ProbabilityNumber, checked, count, number_within, within,
)  # fmt: skip

WIDTH = 9.0  # standard deviations of noise on either side; what lies beyond is one cell
CUT = 1e-17  # probability left to the first and to the last cell
ROUGH = 48  # bits of a double that do not matter there


Sigma = Annotated[float, number_within(0.1, 1e3)]
Rate = Annotated[float, number_within(1e-10, 1.0)]


Cells = Annotated[int, lambda name, value: int(within(name, count(name, value), 20, 2000))]


class _Ratio(NamedTuple):
    """A finite law of the density ratio: its values, their masses under Q, and P's mass where Q has
    none."""

    value: np.ndarray
    mass: np.ndarray
    lost: float

    def loss(self):
        mass = self.mass / self.mass.sum()  # the round-off of many means adds up
        return finite(np.append(self.value * mass, self.lost), np.append(mass, 0.0))


@checked
def shuffled_floor(sigma: Sigma, steps: Many, cells: Cells = 600) -> PrivacyLoss:
    """A LOWER bound: one epoch of `steps` batches of a shuffled dataset (X-shuffling).

    The sum of a batch, rows clipped to norm 1, gets Gaussian noise sigma; a neighbour has one row
    of zeros in place of a row. Of the output only the largest coordinate is looked at, and only to
    which of `cells` cells it belongs; ``.compose(epochs)`` for epochs shuffled afresh. sigma from
    0.1 to 1e3, steps up to 1e7.

    >>> round(in_practice.shuffled_floor(1.0, steps=100).epsilon(1e-5), 3)
    4.063
    """
    inner = np.linspace(sigma * ndtri(np.exp(-40.0 / steps)), 2 + WIDTH * sigma, cells - 1)
    return finite(*(_cell_masses_of_max(inner, sigma, steps, mean) for mean in (2.0, 1.0)))


@checked
def random_allocation(
    sigma: Sigma, steps: Many, cells: Cells = 600
) -> tuple[PrivacyLoss, PrivacyLoss]:
    """(low, high): losses on either side of that of one epoch of random allocation (X-allocation).

    Each row takes part in one of `steps` steps, chosen uniformly and independently of all others.
    The sum of a step, rows clipped to norm 1, gets Gaussian noise sigma; add/remove. Epochs
    that are allotted afresh compose. sigma from 0.1 to 1e3, steps up to 1e7.

    >>> low, high = in_practice.random_allocation(1.0, steps=100, cells=200)
    >>> round(low.epsilon(1e-5), 2), round(high.epsilon(1e-5), 2)
    (0.62, 0.63)
    """
    z = np.linspace(-WIDTH * sigma, 1 + WIDTH * sigma, cells - 1)
    edges = np.concatenate([[0.0], np.exp((2 * z - 1) / (2 * sigma**2)), [np.inf]])
    q, p = _cell_masses(z, sigma, 0.0), _cell_masses(z, sigma, 1.0)
    return tuple(_average(rule(edges, q, p, 0.0), steps, rule) for rule in (_merge, _spread_out))


@checked
def group_privacy(
    epsilon: NonnegativeNumber, delta: ProbabilityNumber, rows: Count
) -> tuple[float, float]:
    """(epsilon, delta) for `rows` rows of any mechanism that is (epsilon, delta)-DP for one.

    rows epsilon, and delta (e^(rows epsilon) - 1)/(e^epsilon - 1), or 1 if that is less; both are
    rounded up (X-group-curve). Of Gaussian or Laplace noise more is known: a query of sensitivity
    `rows`, or `sampled_group`.

    >>> far, delta = in_practice.group_privacy(0.5, 1e-6, rows=4)
    >>> far, round(delta, 9)
    (2.0, 9.849e-06)
    """
    far = rows * epsilon
    if Fraction(far) < rows * Fraction(epsilon):
        far = nextafter(far, inf)
    share = expm1(-far) / expm1(-epsilon) if epsilon > 0 else rows
    if delta == 0:
        return far, 0.0
    size = far - epsilon, log(delta)
    return far, min(exp(min(sum(size) + log(share), 0.0)) * (1 + 1e-15 * (8 - size[1] + far)), 1.0)


@checked
def sampled_group(
    sigma: Sigma, rate: Rate, rows: Few, cells: Cells = 600
) -> tuple[PrivacyLoss, PrivacyLoss]:
    """(low, high): losses on either side of that of one user's `rows` rows, each of which is in the
    Poisson sample with this rate (X-group-sampled).

    The sum over the sample, rows clipped to norm 1, gets Gaussian noise sigma; a user is added or
    removed. sigma from 0.1 to 1e3, rows up to 25 sigma.

    >>> low, high = in_practice.sampled_group(1.0, rate=0.01, rows=3)
    >>> round(low.epsilon(1e-5), 2), round(high.epsilon(1e-5), 2)
    (0.76, 0.76)
    """
    within("rows / sigma", rows / sigma, 0.0, 25.0)
    from scipy.stats import binom  # longer to import than all of dpnotes

    taken = binom.pmf(np.arange(rows + 1), rows, rate)
    z = np.linspace(-WIDTH * sigma, rows + WIDTH * sigma, cells - 1)
    return _loss_bounds(z, sigma, taken, np.array([1.0]), np.arange(rows + 1.0), np.zeros(1))


@checked
def sampled_substitution(
    sigma: Sigma, rate: Rate, cells: Cells = 600
) -> tuple[PrivacyLoss, PrivacyLoss]:
    """(low, high): around the pair (1-r)N(0) + rN(1), (1-r)N(0) + rN(-1) of Poisson sampling when
    one row is REPLACED (X-poisson-substitution).

    The sum over the sample, rows clipped to norm 1, gets Gaussian noise sigma, from 0.1 to 1e3. The
    pair dominates and is attained.

    >>> low, high = in_practice.sampled_substitution(1.0, rate=0.01)
    >>> round(low.epsilon(1e-5), 2), round(high.epsilon(1e-5), 2)
    (0.21, 0.21)
    """
    reach = 1 + WIDTH * sigma
    z = np.linspace(-reach, reach, cells - 1)
    weights = np.array([1 - rate, rate])
    return _loss_bounds(z, sigma, weights, weights, np.array([0.0, 1.0]), np.array([0.0, -1.0]))


def _loss_bounds(z, sigma, weights_p, weights_q, means_p, means_q):
    """Merged and spread, for two mixtures of Gaussians whose ratio rises with z."""
    p = sum(w * _cell_masses(z, sigma, m) for w, m in zip(weights_p, means_p, strict=True))
    q = sum(w * _cell_masses(z, sigma, m) for w, m in zip(weights_q, means_q, strict=True))
    above = _mixture_ratio(z, sigma, weights_p, means_p)
    below = _mixture_ratio(z, sigma, weights_q, means_q)
    least = weights_p[0] if len(weights_q) == 1 else 0.0  # the ratio far out on the left
    edges = np.concatenate([[least], above / below, [np.inf]])
    return tuple(rule(edges, q, p, 0.0).loss() for rule in (_merge, _spread_out))


def _mixture_ratio(z, sigma, weights, means):
    """The density of a mixture of Gaussians, relative to the Gaussian around 0."""
    return matrix_product(np.exp((np.multiply.outer(z, means) - means**2 / 2) / sigma**2), weights)


def _cell_masses(z, sigma, mean):
    """Masses of the cells between the points z, and beyond both ends."""
    t = (z - mean) / sigma
    return _differences(ndtr(t), ndtr(-t))


def _cell_masses_of_max(c, sigma, steps, mean):
    """Masses of the same cells for the largest of `steps` coordinates, one around `mean`."""
    log_cdf = log_ndtr((c - mean) / sigma) + (steps - 1) * log_ndtr(c / sigma)
    return _differences(np.exp(log_cdf), -np.expm1(log_cdf))


def _differences(below, above):
    """Masses of cells from the probabilities below and above each point, the smaller of both."""
    left = np.diff(np.concatenate([[0.0], below, [1.0]]))
    right = -np.diff(np.concatenate([[1.0], above, [0.0]]))
    return np.where(np.append(above, 0.0) < 0.5, right, left)


def _merge(_, q, p, lost):
    """Each cell becomes one outcome: the ratio is replaced by its mean over the cell."""
    seen = q > 0
    return _Ratio(p[seen] / q[seen], q[seen], lost + p[~seen].sum())


def _spread_out(edges, q, p, lost):
    """Each cell's ratio moves to the two ends of the cell, with the same mean. The last cell has no
    upper end: what exceeds its lower end becomes an infinite loss.
    """
    low, high = edges[:-1], edges[1:]
    excess, gap = (p - low * q)[:-1], (high - low)[:-1]  # no gap: both ends are the same double
    up = np.clip(np.divide(excess, gap, out=np.zeros_like(gap), where=gap > 0), 0.0, q[:-1])
    mass = q.copy()
    mass[:-1] -= up
    mass[1:] += up
    return _Ratio(low, mass, lost + max(p[-1] - low[-1] * q[-1], 0.0))


def _average(one, steps, rule):
    """The mean of `steps` independent ratios: doubled for each binary digit of `steps`, and one
    ratio more where the digit is 1."""
    mean, n = one, 1
    for digit in bin(steps)[3:]:
        mean, n = _weighted_sum(mean, mean, 0.5, rule), 2 * n
        if digit == "1":
            mean, n = _weighted_sum(mean, one, n / (n + 1), rule), n + 1
    return mean.loss()


def _weighted_sum(a, b, share, rule):
    """share a + (1 - share) b for independent ratios a and b, in as many cells as b has. Of a ratio
    and its own copy each pair of values is taken once."""
    if a is b:
        i, j = _pairs(len(b.value))
        value = share * a.value[i] + (1 - share) * b.value[j]
        q = a.mass[i] * b.mass[j] * np.where(i < j, 2.0, 1.0)
    else:
        value = np.add.outer(share * a.value, (1 - share) * b.value).ravel()
        q = np.multiply.outer(a.mass, b.mass).ravel()
    p = q * value
    first, last = max(_reaching(value, q, 1), 1e-300), _reaching(value, p, -1)
    points = np.geomspace(first, last, len(b.value))
    cell = np.searchsorted(points, value, side="right")
    q, p = (np.bincount(cell, law, minlength=len(points) + 1) for law in (q, p))
    edges = np.concatenate([[0.0], points, [np.inf]])
    return rule(edges, q, p, share * a.lost + (1 - share) * b.lost)


@lru_cache(maxsize=1)
def _pairs(n):
    return np.triu_indices(n)


def _reaching(value, law, way):
    """The value at which the sum of `law`, from the least value up (`way` 1) or from the largest
    down (-1), reaches CUT. The leading bits of a double >= 0 increase with it: only the values of
    one bin are sorted."""
    bits = value.view(np.int64) >> ROUGH
    sums = np.append(0.0, np.cumsum(np.bincount(bits, law)[::way]))
    at = min(int(np.searchsorted(sums[1:], CUT)), len(sums) - 2)
    inside = np.flatnonzero(bits == (at if way > 0 else len(sums) - 2 - at))
    inside = inside[np.argsort(value[inside])[::way]]
    last = int(np.searchsorted(sums[at] + np.cumsum(law[inside]), CUT))
    return value[inside[min(last, len(inside) - 1)]]
