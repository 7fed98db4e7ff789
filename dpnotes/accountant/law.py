"""Laws of the privacy loss as finitely many values with probabilities, and their moments.

All sums are in log space and without the cancellations that a small loss invites: for k = 1e9
rounds log E exp(zL) of one round is needed to 1e-21.
"""

from functools import lru_cache
from math import exp, factorial, floor, frexp, ldexp
from typing import NamedTuple

import numpy as np

from . import phases
from .phases import EPS
from .work import spend

__all__ = []

SMALL = 0.5  # below this, exp(w) - 1 - w is summed as a series, w^2 (1/2! + w/3! + ...)
MANY = 3000  # points of a lattice, beside which panels are short anyway
BLOCK = 1024  # of a running sum
TABLE, MOMENT = 12, 50  # work of one value of the loss at one z
EXCESS = [1 / factorial(n) for n in range(2, 16)]


class Law(NamedTuple):
    """Values of the loss and the logarithms of their probabilities under p.

    ``infinite`` is p's mass where q vanishes (L = inf); ``gap`` is q's mass where p vanishes, less
    ``infinite``: large tilts multiply it, so it is kept apart from both.
    """

    loss: np.ndarray
    log_p: np.ndarray
    infinite: float = 0.0
    gap: float = 0.0


def exp_excess(w):
    """exp(w) - 1 - w >= 0 without cancellation."""
    w = np.asarray(w, dtype=float)
    v = np.clip(w, -SMALL, SMALL)
    series = np.full_like(v, EXCESS[-1])
    for coefficient in EXCESS[-2::-1]:
        series *= v
        series += coefficient
    with np.errstate(over="ignore"):
        return np.where(np.abs(w) <= SMALL, v * v * series, np.expm1(w) - w)


def mean_excess(log_p, w):
    """The mean of exp(w) - 1 - w, one for each row of w; p may underflow where w is large."""
    p, far = np.exp(log_p), w > 30
    values = p * exp_excess(np.where(far, 0.0, w))
    if far.any():
        values = np.where(far, np.exp(np.where(far, log_p + w, 0.0)) - p * (1 + w), values)
    return values.sum(axis=-1)


def log_sum_exp(terms, axis=-1):
    """log sum exp along one axis."""
    top = np.max(terms, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(top, axis) + np.log(np.sum(np.exp(terms - top), axis=axis))


def log_running_sums(terms):
    """log of the running sums of exp(terms), in blocks: logarithms of size 300 that are added one
    by one lose 3e-14 each time. Off by EPS for each of the ``BLOCK`` values and for each block, and
    by 8 EPS of the largest term; but a block with terms that vanish beside it takes logarithms."""
    found, scale, carried = np.empty(len(terms)), -np.inf, 0.0  # carried exp(scale) is before it
    for first in range(0, len(terms), BLOCK):
        block = terms[first : first + BLOCK]
        old, scale = scale, max(scale, float(block.max()))
        if scale == -np.inf:
            sums = block
        else:
            carried *= exp(old - scale)
            total = carried + np.cumsum(np.exp(block - scale))
            if total[0] > 1e-290:
                sums = np.log(total) + scale
            else:
                sums = np.logaddexp.accumulate(block)
                if first:
                    sums = np.logaddexp(sums, found[first - 1])
            carried = float(total[-1])
        found[first : first + BLOCK] = sums
    return found


def log1p_complex(u, v):
    """log(1 + u + iv) from its real parts, exact near 0 (numpy's complex log1p is not)."""
    square = u * (2 + u) + v * v
    size = np.log(np.maximum(np.hypot(1 + u, v), 1e-300))
    return np.where(square > -0.5, 0.5 * np.log1p(np.maximum(square, -0.5)), size) + 1j * (
        np.arctan2(v, 1 + u)
    )


def mean_loss(law):
    """E L = E[exp(-L) - 1 + L], because E exp(-L) = 1: a sum of positive terms."""
    if law.infinite:
        return np.inf
    return float(mean_excess(law.log_p, -law.loss)) + law.gap


def log_moment(law, z):
    """K(z) = log E exp(zL) at an array of real z.

    E exp(zL) - 1 = z E L + E[exp(zL) - 1 - zL]: for small L both are sums of squares, so no digit
    is lost where the terms of first order cancel. Infinite losses are left out.
    """
    z = np.asarray(z, dtype=float)
    spend(MOMENT * z.size * len(law.loss))
    tilted = z[..., None] * law.loss
    terms = law.log_p + tilted
    large = terms.max(axis=-1) > 20
    mean = float(mean_excess(law.log_p, -law.loss)) if np.any(~large) else 0.0
    rest = mean_excess(law.log_p, np.where(large[..., None], 0.0, tilted))
    drift = z * (mean + law.gap) - law.infinite
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(large, log_sum_exp(terms), np.log1p(np.where(large, 0.0, drift + rest)))


def moment_noise(law, c, cumulant):
    """A bound on the round-off of K(c) by ``log_moment``, in EPS: its terms, each times the size of
    what its exponent is a sum of."""
    spend(2 * MOMENT * len(law.loss))
    tilted = c * law.loss
    sizes = 8 + np.abs(law.log_p) + np.abs(tilted)
    noise = float(excess_terms(law.log_p - cumulant, tilted) @ sizes)
    if (law.log_p + tilted).max() > 20:  # as in ``log_moment``
        return noise
    sizes = 8 + np.abs(law.log_p) + np.abs(law.loss)
    return noise + abs(c) * float(excess_terms(law.log_p - cumulant, -law.loss) @ sizes)


def excess_terms(log_p, w):
    """The sizes of the terms that ``mean_excess`` sums."""
    far, log_p = w > 30, np.minimum(log_p, 600.0)
    near = np.exp(log_p) * exp_excess(np.where(far, 0.0, np.maximum(w, -1e300)))
    return np.where(far, np.exp(np.minimum(log_p + w, 600.0)), near)


def derivatives(law, z):
    """K, K' and K'' at an array of real z: moments of the law tilted by exp(zL). Absolute error
    1e-15, enough to plan with."""
    spend(TABLE * np.size(z) * len(law.loss))
    terms = law.log_p + np.multiply.outer(z, law.loss)
    top = terms.max(axis=-1)
    weights = np.exp(terms - top[..., None])
    mass = weights.sum(axis=-1)
    # plain sums: two threads of a library that waits for both are slow on a busy machine
    weights *= law.loss
    mean = weights.sum(axis=-1) / mass
    weights *= law.loss
    variance = weights.sum(axis=-1) / mass - mean**2
    return top + np.log(mass), mean, np.maximum(variance, 0.0)


def line_of_law(law, c, y):
    """K(c+iy) - K(c) for equally spaced y, and a bound on its rounding error: log of the mean of
    exp(iyL) under the law tilted by exp(cL)."""
    terms = law.log_p + c * law.loss
    weights = np.exp(terms - terms.max())
    keep = weights > 1e-40
    sizes = np.abs(law.log_p[keep]) + np.abs(c * law.loss[keep]) + 20
    return mean_phase(weights[keep] / weights.sum(), law.loss[keep], sizes, y)


def mean_phase(weights, loss, sizes, y):
    """log sum_j weights_j exp(iy loss_j) for equally spaced y, and a bound on its rounding error.

    The weights sum to 1, so this is log(1 + sum_j weights_j (exp(iy loss_j) - 1)), whose terms are
    small where y is. ``sizes`` are the relative errors of the weights in units of round-off; they
    are independent between the terms, up to a common one of a few units.
    """
    keep = phases.heavy(weights, loss)
    value, squares, common = phases.sums(weights[keep], loss[keep], sizes[keep], y)
    value = log1p_complex(value.real, value.imag)
    return value, EPS * (4 * np.sqrt(squares) + 4 * common) * np.exp(-value.real)


def mixed_loss(u, rate):
    """log(1 + rate (e^u - 1)) without overflow or cancellation; an array of rates has none at 1."""
    if np.ndim(rate) == 0 and rate == 1:
        return u
    huge = np.maximum(u, 500.0)
    above = huge + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-huge))
    rise = rate * np.expm1(np.minimum(u, 500.0))
    low = np.log((1 - rate) + rate * np.exp(np.minimum(u, 0.0)))  # where 1 + rise cancels
    near = np.where(rise < -0.5, low, np.log1p(np.maximum(rise, -0.5)))
    return np.where(np.asarray(u) > 500, above, near)


def mixed_loss_complex(u, angle, rate):
    """log(1 + rate (e^(u + i angle) - 1)) for abs(angle) < pi, without overflow or cancellation."""
    low, high = np.minimum(u, 30.0), np.maximum(u, 30.0)
    real = np.expm1(low) * np.cos(angle) - 2 * np.sin(angle / 2) ** 2
    near = log1p_complex(rate * real, rate * np.exp(low) * np.sin(angle))
    far = high + np.log(rate + (1 - rate) * np.exp(-high - 1j * angle)) + 1j * angle
    return np.where(u > 30, far, near)


def inverse_mixed_loss(loss, rate):
    """The u with log(1 + rate (e^u - 1)) = loss; -inf at and below the least loss."""
    if rate == 1:
        return loss
    with np.errstate(divide="ignore"):
        below = np.log1p(np.maximum(np.expm1(np.minimum(loss, 1.0)) / rate, -1.0))
    high = np.maximum(loss, 1.0)
    above = high - np.log(rate) + np.log1p((rate - 1) * np.exp(-high))
    return np.where(np.asarray(loss) > 1, above, below)


@lru_cache(maxsize=4)
def legendre(order):
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return np.polynomial.legendre.leggauss(order)


def gauss(edges, order=16):
    """Composite Gauss-Legendre nodes and weights."""
    x, w = legendre(order)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def gauss_between(edges, grid):
    """Nodes and weights no panel of which passes over a point of ``grid``. The edges are those of
    panels that 16 nodes serve; beside many points 4 do, in panels of a sixteenth."""
    grid = np.clip(grid, edges[0], edges[-1])
    if len(grid) < MANY and len(edges) < MANY:
        return gauss(np.union1d(edges, grid))
    sixteenths = np.arange(16 * (len(edges) - 1) + 1) / 16
    fine = np.interp(sixteenths, np.arange(len(edges)), edges)
    return gauss(np.union1d(fine, grid), order=4)


def exact_step(step, bits):
    """At most this step, of so many bits: its first 2^(53 - bits) multiples are floats without
    rounding."""
    mantissa, exponent = frexp(step)
    return ldexp(floor(ldexp(mantissa, bits)), exponent - bits)


def multiples(spacing, low, high):
    """The multiples of spacing from low to high."""
    return spacing * np.arange(np.ceil(low / spacing), np.floor(high / spacing) + 1)
