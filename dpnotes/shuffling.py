"""Batches as they are made in practice: shuffled, allotted to steps at random, several rows a user.

None of these pairs is that of one number with Gaussian noise, and for many steps none has a closed
form. What decides is the density ratio R = dP/dQ under Q: H_a(P || Q) = E_Q (R - a)_+ is the mean
of a convex function of it. To merge outcomes (R becomes its mean over a cell) can only lower it; to
move R to the two ends of its cell, with the same mean, can only raise it (in-practice-order). Both
leave a finite pair, so each function gives two losses, one on either side of the truth; both
compose.

The masses of the cells are right to round-off, about 1e-13 of each, and the ratios to 2e-16.
"""

from typing import NamedTuple

import numpy as np

from ._scipy import log_ndtr, ndtr, ndtri
from ._validate import count_up_to, scalar, within
from .accountant.privacy_loss import PrivacyLoss
from .losses import finite

__all__ = ["random_allocation", "sampled_group", "sampled_substitution", "shuffled_floor"]

WIDTH = 9.0  # standard deviations of noise on either side; what lies beyond is one cell
CUT = 1e-17  # what a grid of averages leaves to its first and its last cell


class _Ratio(NamedTuple):
    """A finite law of the density ratio: its values, their masses under Q, and P's mass where Q has
    none."""

    value: np.ndarray
    mass: np.ndarray
    lost: float

    def loss(self):
        return finite(np.append(self.value * self.mass, self.lost), np.append(self.mass, 0.0))


def shuffled_floor(sigma: float, steps: int, cells: int = 600) -> PrivacyLoss:
    """A LOWER bound: one epoch of `steps` batches of a shuffled dataset (X-shuffling).

    The sum of a batch, rows clipped to norm 1, gets Gaussian noise sigma; a neighbour has one row
    of zeros in place of a row. Of the output only the largest coordinate is looked at, and only to
    which of `cells` cells it belongs; ``.compose(epochs)`` for epochs shuffled afresh. sigma from
    0.1 to 1e3, steps up to 1e7.
    """
    sigma, cells = _sigma(sigma), _cells(cells)
    steps = count_up_to("steps", steps, 10**7)
    inner = np.linspace(sigma * ndtri(np.exp(-40.0 / steps)), 2 + WIDTH * sigma, cells - 1)
    return finite(*(_maximum(inner, sigma, steps, mean) for mean in (2.0, 1.0)))


def random_allocation(
    sigma: float, steps: int, cells: int = 600
) -> tuple[PrivacyLoss, PrivacyLoss]:
    """(low, high): losses on either side of that of one epoch of random allocation (X-allocation).

    Each row takes part in one of `steps` steps, chosen uniformly and independently of all others.
    The sum of a step, rows clipped to norm 1, gets Gaussian noise sigma; add/remove. Epochs
    that are allotted afresh compose. sigma from 0.1 to 1e3, steps up to 1e7.
    """
    sigma, cells = _sigma(sigma), _cells(cells)
    steps = count_up_to("steps", steps, 10**7)
    z = np.linspace(-WIDTH * sigma, 1 + WIDTH * sigma, cells - 1)
    edges = np.concatenate([[0.0], np.exp((2 * z - 1) / (2 * sigma**2)), [np.inf]])
    q, p = _gaussian(z, sigma, 0.0), _gaussian(z, sigma, 1.0)
    return tuple(_averaged(rule(edges, q, p, 0.0), steps, rule) for rule in (_merged, _spread))


def sampled_group(
    sigma: float, rate: float, rows: int, cells: int = 600
) -> tuple[PrivacyLoss, PrivacyLoss]:
    """(low, high): losses on either side of that of one user's `rows` rows, each of which is in the
    Poisson sample with this rate (X-group-sampled).

    The sum over the sample, rows clipped to norm 1, gets Gaussian noise sigma; a user is added or
    removed. sigma from 0.1 to 1e3, rows up to 25 sigma.
    """
    sigma, rate = _sigma(sigma), _rate(rate)
    rows = count_up_to("rows", rows, 10**4)
    within("rows / sigma", rows / sigma, 0.0, 25.0)
    taken = _binomial(rows, rate)
    z = np.linspace(-WIDTH * sigma, rows + WIDTH * sigma, _cells(cells) - 1)
    return _both(z, sigma, taken, np.array([1.0]), np.arange(rows + 1.0), np.zeros(1))


def sampled_substitution(
    sigma: float, rate: float, cells: int = 600
) -> tuple[PrivacyLoss, PrivacyLoss]:
    """(low, high): around the pair (1-r)N(0) + rN(1), (1-r)N(0) + rN(-1) of Poisson sampling when
    one row is REPLACED (X-poisson-substitution).

    The sum over the sample, rows clipped to norm 1, gets Gaussian noise sigma, from 0.1 to 1e3. The
    pair dominates and is attained.
    """
    sigma, rate = _sigma(sigma), _rate(rate)
    reach = 1 + WIDTH * sigma
    z = np.linspace(-reach, reach, _cells(cells) - 1)
    weights = np.array([1 - rate, rate])
    return _both(z, sigma, weights, weights, np.array([0.0, 1.0]), np.array([0.0, -1.0]))


def _rate(rate):
    return within("rate", scalar("rate", rate), 1e-10, 1.0)


def _sigma(sigma):
    return within("sigma", scalar("sigma", sigma), 0.1, 1e3)


def _cells(cells):
    return int(within("cells", count_up_to("cells", cells, 2000), 20, 2000))


def _both(z, sigma, weights_p, weights_q, means_p, means_q):
    """Merged and spread, for two mixtures of Gaussians whose ratio rises with z."""
    p = sum(w * _gaussian(z, sigma, m) for w, m in zip(weights_p, means_p, strict=True))
    q = sum(w * _gaussian(z, sigma, m) for w, m in zip(weights_q, means_q, strict=True))
    above, below = _tilts(z, sigma, weights_p, means_p), _tilts(z, sigma, weights_q, means_q)
    least = weights_p[0] if len(weights_q) == 1 else 0.0  # the ratio far out on the left
    edges = np.concatenate([[least], above / below, [np.inf]])
    return tuple(rule(edges, q, p, 0.0).loss() for rule in (_merged, _spread))


def _tilts(z, sigma, weights, means):
    """The density of a mixture of Gaussians, relative to the Gaussian around 0."""
    return np.exp((np.multiply.outer(z, means) - means**2 / 2) / sigma**2) @ weights


def _gaussian(z, sigma, mean):
    """Masses of the cells between the points z, and beyond both ends."""
    t = (z - mean) / sigma
    left = np.diff(np.concatenate([[0.0], ndtr(t), [1.0]]))
    right = -np.diff(np.concatenate([[1.0], ndtr(-t), [0.0]]))
    return np.where(np.append(t, np.inf) > 0, right, left)


def _maximum(c, sigma, steps, mean):
    """Masses of the same cells for the largest of `steps` coordinates, one around `mean`."""
    log_cdf = log_ndtr((c - mean) / sigma) + (steps - 1) * log_ndtr(c / sigma)
    below = np.diff(np.concatenate([[0.0], np.exp(log_cdf), [1.0]]))
    above = -np.diff(np.concatenate([[1.0], -np.expm1(log_cdf), [0.0]]))
    return np.where(np.append(log_cdf, 0.0) > -0.5, above, below)


def _binomial(rows, rate):
    law = np.array([1.0])
    for _ in range(rows):
        law = np.convolve(law, [1 - rate, rate])
    return law


def _merged(edges, q, p, lost):
    """Each cell becomes one outcome: the ratio is replaced by its mean over the cell."""
    seen = q > 0
    return _Ratio(p[seen] / q[seen], q[seen], lost + p[~seen].sum())


def _spread(edges, q, p, lost):
    """Each cell's ratio moves to the cell's two ends, with the same mean; in the last cell, which
    has no upper end, what exceeds its lower end becomes an infinite loss."""
    low, high = edges[:-1], edges[1:]
    excess, gap = (p - low * q)[:-1], (high - low)[:-1]  # no gap: both ends are the same double
    up = np.clip(np.divide(excess, gap, out=np.zeros_like(gap), where=gap > 0), 0.0, q[:-1])
    mass = q.copy()
    mass[:-1] -= up
    mass[1:] += up
    return _Ratio(low, mass, lost + max(p[-1] - low[-1] * q[-1], 0.0))


def _averaged(one, steps, rule):
    """The mean of `steps` independent ratios, by doubling."""
    total, n = one, 1
    for digit in bin(steps)[3:]:
        total, n = _gathered(*_twice(total), len(total.value), rule), 2 * n
        if digit == "1":
            total, n = _gathered(*_mixed(total, one, n / (n + 1)), len(one.value), rule), n + 1
    return total.loss()


def _gathered(value, mass, lost, size, rule):
    """A law of so many values in this many cells, and what of it is lost."""
    mass /= mass.sum()  # else round-off doubles with each doubling
    log_value = np.log(np.maximum(value, 1e-300))
    grid = _grid(log_value, value, mass, size)
    cell = np.searchsorted(grid, log_value, side="right")
    q = np.bincount(cell, mass, minlength=len(grid) + 1)
    p = np.bincount(cell, mass * value, minlength=len(grid) + 1)
    edges = np.concatenate([[0.0], np.exp(grid), [np.inf]])
    return rule(edges, q, p, lost)


def _mixed(a, b, share):
    """share a + (1 - share) b for independent a and b: values, masses, what is lost."""
    value = np.add.outer(share * a.value, (1 - share) * b.value).ravel()
    mass = np.multiply.outer(a.mass, b.mass).ravel()
    return value, mass, share * a.lost + (1 - share) * b.lost


def _twice(one):
    """The mean of two of the same law: each pair of different values counts for both orders."""
    i, j = np.triu_indices(len(one.value))
    mass = one.mass[i] * one.mass[j]
    mass[i != j] *= 2
    return 0.5 * (one.value[i] + one.value[j]), mass, one.lost


def _grid(log_value, value, mass, size):
    """Evenly spaced points over the logarithms that matter under P or Q."""
    low, high = log_value.min(), log_value.max()
    for _ in range(3):  # a ratio near 0 or a large one makes the first range far too wide
        fine = np.linspace(low, high, 4 * size)
        place = (log_value - low) / (high - low) * (4 * size - 1)
        cell = np.clip(place, 0, 4 * size - 2).astype(int)
        q, p = np.bincount(cell, mass), np.bincount(cell, mass * value)
        first = np.searchsorted(np.cumsum(q), CUT)
        last = len(p) - np.searchsorted(np.cumsum(p[::-1]), CUT)
        low, high = fine[first], fine[last]
    return np.linspace(low, high, size)
