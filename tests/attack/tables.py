"""Sums of integer noise and of few atoms, in 80-bit arithmetic.

``rounds_delta``: k rounds of one discrete Gaussian, the law of the sum of the noise by a transform
of the tilted law as it is defined. ``table_delta``: every pair of outcomes of two halves of a
composition, by sums over the sorted losses of one.
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, log2, sqrt

import numpy as np
import scipy.fft
from flint import arb

from .lattices import power
from .laws import finite_law
from .quadrature import TooLongError

__all__ = ["rounds_delta", "table_delta", "table_size"]

LONG = np.longdouble
ULP = 2.0**-63
MOST_POINTS, MOST_ATOMS = 2**20, 400_000
WIDE = 16  # standard deviations of a sum: exp(-128) is left out


def rounds_delta(part, e):
    """A ball of delta at the double e of k rounds of a discrete Gaussian."""
    sigma, s, k = Fraction(part.value[0]), part.sensitivity, part.k
    edge = Fraction(e) * sigma**2 / s - Fraction(k * s, 2)  # the loss is e at this sum
    first = floor(edge) + 1
    centre = max(0, round(Fraction(first, k) * 2**20)) / LONG(2**20)
    variance = LONG(part.value[0]) ** 2
    middle = int(np.round(centre))
    reach = ceil(WIDE * part.value[0]) + 20
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-((z + middle - centre) ** 2) / (2 * variance))
    norm = np.exp(-(z.astype(LONG) ** 2) / (2 * variance)).sum()
    points = 2 ** ceil(log2(2 * (WIDE * (part.value[0] + 1) * sqrt(k) + reach + 100)))
    if points > MOST_POINTS:
        raise TooLongError
    law = np.zeros(points, dtype=LONG)
    np.add.at(law, z % points, weights / weights.sum())
    found = scipy.fft.irfft(power(scipy.fft.rfft(law), k), points)
    count = points // 2 + k * middle - first  # up to half a period above the middle
    if count < 1:
        raise TooLongError
    count = min(count, points - 1)
    j = np.arange(max(count, 1))
    gap = LONG(s) / variance * (j + LONG(float(first - edge)))
    kernel = np.exp(-centre / variance * j) * -np.expm1(-gap)
    mass = _ball(found[(first - k * middle + j) % points] @ kernel)
    # of a small sigma the mean is not at the centre: what is asked for is small beside the peak
    mass += arb(0, float(4 * ULP * (k + 64) * np.abs(found).max() * kernel.sum()))
    size = k * centre**2 / (2 * variance) - centre * LONG(first) / variance
    size += k * np.log(weights.sum() / norm)
    front = _ball(size).exp()
    noise = 64 * ULP * (k + 10 + abs(float(size)) + k * float(centre**2 / variance))
    return front * mass * arb(1, noise)


def table_size(parts):
    """How many pairs of outcomes there are, inf where another kind of step takes part."""
    total = 1.0
    for part in parts:
        total *= float(part.size) ** part.k if part.counted and part.k < 20 else np.inf
    return total


@lru_cache(maxsize=4)
def _halves(parts, way):
    """(losses, p) of the lesser part and of the rest, as sorted longdoubles, and P(L finite)."""
    laws, kept = [], arb(1)
    for part in parts:
        pairs = finite_law(part, way)
        finite = [(p, q) for p, q in pairs if p > 0 < q]
        if any(p > 0 and q == 0 for p, q in pairs):
            kept *= sum((p for p, _ in finite), arb(0)) ** part.k
        both = [(_long((p / q).log()), _long(p)) for p, q in finite]
        laws += [tuple(np.array(x, dtype=LONG) for x in zip(*both, strict=True))] * part.k
    halves = [(np.zeros(1, LONG), np.ones(1, LONG))] * 2
    for loss, p in sorted(laws, key=lambda law: -len(law[0])):
        i = int(len(halves[0][0]) > len(halves[1][0]))
        if len(halves[i][0]) * len(loss) > MOST_ATOMS:
            raise TooLongError
        old_loss, old_p = halves[i]
        halves[i] = np.add.outer(old_loss, loss).ravel(), np.multiply.outer(old_p, p).ravel()
    return [_sorted(*half) for half in halves], kept


def _long(x):
    high = float(x.mid())
    return LONG(high) + LONG(float((x - high).mid()))


def _sorted(loss, p):
    order = np.argsort(loss)
    return loss[order], p[order]


def table_delta(parts, way, e):
    """A ball of delta in one direction."""
    (one, two), kept = _halves(parts, way)
    loss, p = two
    above = np.append(np.cumsum(p[::-1])[::-1], 0)
    below = np.append(np.cumsum((p * np.exp(-loss))[::-1])[::-1], 0)
    left = LONG(float(e)) - one[0]
    i = np.searchsorted(loss, left, side="right")
    first, second = one[1] * above[i], one[1] * np.exp(left) * below[i]
    total, noise = (first - second).sum(), float((first + second).sum())
    noise *= ULP * (40 + 4 * len(parts) + len(loss) ** 0.5 + float(np.abs(loss).max()))
    return 1 - kept + arb(0, noise) + _ball(max(total, LONG(0)))


def _ball(x):
    high = float(x)
    return arb(high) + arb(float(x - LONG(high)))
