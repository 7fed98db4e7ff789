"""The trade-off function (Dong, Roth and Su 2022): the least type-II error of a test at a level.

A test of level a for q has power at most e^s a + delta(s) under p, for every real s. So its type-II
error is at least 1 - delta(s) - e^s a, and the largest of these bounds is attained
(U-privacy-profile). For s < 0 the curve of the other direction says delta(s). The bound is concave
in e^s: it has one peak, around which a grid gets ever finer. Lower ends of 1 - delta make each
value a lower bound. Where delta is sharp it is right to about 1e-13.
"""

from math import sqrt

import numpy as np

from ..numerics import ndtri
from .law import EPS

GRID, ROUNDS = np.linspace(0, 1, 9), 26  # each grid lies between the neighbours of the last peak


def least_error(first, second, alpha):
    """Of tests of the null hypothesis q, where ``first`` is p against q."""
    found = np.where(alpha == 0, 1 - first.infinite, 0.0)
    asked = np.flatnonzero((alpha > 0) & (alpha < 1) & (first.infinite < 1))
    if not len(asked):
        return found
    alpha = alpha[asked, None]
    # a first guess of the peak: the quantile of the loss, as if it were normal under q
    spread = sqrt(sum(k * step.spread() ** 2 for step, k in second.parts))
    mean = -sum(k * step.mean() for step, k in second.parts)
    middle, width = mean - spread * ndtri(alpha), max(spread, abs(mean), 1e-12)
    low, high, best = middle - width, middle + width, np.zeros((len(alpha), 1))
    for _ in range(ROUNDS):
        places = low + (high - low) * GRID
        heights = np.nan_to_num(_heights(first, second, places, alpha), nan=-np.inf)
        at = heights.argmax(axis=1)[:, None]
        best = np.maximum(best, np.take_along_axis(heights, at, 1))
        if np.all(np.ptp(heights, axis=1) <= EPS / 16):  # the top is flat
            break
        wide = 2 * (high - low)
        low = np.where(at == 0, low - wide, np.take_along_axis(places, np.maximum(at - 1, 0), 1))
        after = np.take_along_axis(places, np.minimum(at + 1, len(GRID) - 1), 1)
        high = np.where(at == len(GRID) - 1, high + wide, after)
    found[asked] = np.clip(best, 0.0, 1 - alpha)[:, 0]
    return found


def _heights(first, second, places, alpha):
    """1 - delta(s) - e^s alpha, from below, for places s and levels."""
    s, missed = places.ravel(), np.empty(places.size)
    right = s >= 0
    missed[right] = first.complement(s[right])
    missed[~right] = second.complement(-s[~right])
    missed, size = missed.reshape(places.shape), np.exp(np.minimum(np.abs(places), 700.0))
    rises = missed - size * alpha * (1 + 8 * EPS)
    falls = (missed - alpha * (1 + 8 * EPS)) / size * (1 - 4 * EPS)
    return np.where(places >= 0, rises, falls)
