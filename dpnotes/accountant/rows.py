"""What ``law`` computes of one law, for many at once: arrays of (steps, nodes), a row a step.

The formulas are those of ``law``, and so are their errors. Entries that are no nodes have log p =
-inf.
"""

from math import log2, sqrt

import numpy as np

from .law import (
    EPS,
    MOMENT,
    TABLE,
    excess_terms,
    log1p_complex,
    log_sum_exp,
    mean_excess,
)
from .phases import expm1_i
from .work import spend

__all__ = []

TURN, NODE, PRODUCT = 20, 50, 0.3  # work of a turn, of a height, of both: ``phases``, in blocks


def cumulants(law):
    """``law.log_moment`` of each row, from its first n nodes, as a function of z."""
    spend(MOMENT * law.loss.size)
    mean = mean_excess(law.log_p, -law.loss)

    def sums(z, n):
        spend(MOMENT * n * len(mean))
        log_p, tilted = law.log_p[:, :n], z * law.loss[:, :n]
        terms = log_p + tilted
        large = terms.max(axis=-1) > 20
        rest = mean_excess(log_p, np.where(large[:, None], 0.0, tilted))
        near = np.log1p(np.where(large, 0.0, z * mean + rest))
        return np.where(large, log_sum_exp(terms), near) if large.any() else near

    return sums


def derivatives(law):
    """``law.derivatives`` of each row."""
    squares = law.loss**2

    def sums(z, n):
        spend(TABLE * n * len(law.loss))
        loss = law.loss[:, :n]
        weights = z * loss
        weights += law.log_p[:, :n]
        top = weights.max(axis=-1)
        weights -= top[:, None]
        np.exp(weights, out=weights)
        mass = weights.sum(axis=-1)
        mean = np.einsum("sn,sn->s", weights, loss) / mass
        variance = np.einsum("sn,sn->s", weights, squares[:, :n]) / mass - mean**2
        return top + np.log(mass), mean, np.maximum(variance, 0.0)

    return sums


def moment_noise(law, c, cumulant):
    """``law.moment_noise`` of each row."""
    spend(2 * MOMENT * law.loss.size)
    tilted, log_p = c * law.loss, law.log_p - cumulant[:, None]
    size = 8 + np.where(law.log_p > -np.inf, np.abs(law.log_p), 0.0)
    noise = np.sum(excess_terms(log_p, tilted) * (size + np.abs(tilted)), axis=-1)
    small = (law.log_p + tilted).max(axis=-1) <= 20
    first = np.sum(excess_terms(log_p, -law.loss) * (size + np.abs(law.loss)), axis=-1)
    return noise + np.where(small, abs(c) * first, 0.0)


def tilted(law, c):
    """The probabilities of each row tilted by exp(cL); they sum to 1."""
    terms = law.log_p + c * law.loss
    weights = np.exp(terms - terms.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def line(law, c, y):
    """``law.line_of_law`` and ``law.mean_phase`` of each row; y = 0, h, 2h, ...

    R(ma) = exp(ima) - 1 comes from R(a) by R(a + b) = R(a) (1 + R(b)) + R(b), in so many steps as
    are in ``sizes``."""
    weights, loss = tilted(law, c), law.loss
    stride = max(1, int(sqrt(len(y))))
    coarse, step = y[::stride], y[1] - y[0] if len(y) > 1 else 0.0
    spend(loss.size * (PRODUCT * len(y) + TURN * stride) + NODE * len(y) * len(loss))
    near = _turns(step * loss, stride, 1.0)
    far = _turns(stride * step * loss, len(coarse), weights)
    near[0], far[0] = 1.0, weights  # where R is 0, a sum over the other
    rise = far.transpose(1, 0, 2) @ near.transpose(1, 2, 0)  # (steps, coarse, fine)
    rise[:, 0, 0] = 0.0
    rise[:, 1:, 1:] += rise[:, 1:, :1] + rise[:, :1, 1:]
    value = rise.reshape(len(loss), -1)[:, : len(y)]
    value = log1p_complex(value.real, value.imag)
    sizes = np.where(weights > 1e-40, np.abs(law.log_p), 0.0) + np.abs(c * loss)
    sizes += 20 + 2.2 * sqrt(max(stride, len(coarse)))
    moved = (coarse + step * (stride - 1))[:, None, None] * np.abs(loss)
    np.minimum(moved, 2.0, out=moved)
    noise = 4 * np.einsum("csn,sn->sc", moved, weights)
    moved *= moved
    noise += 4 * np.sqrt(np.einsum("csn,sn->sc", moved, (weights * sizes) ** 2))
    noise = np.repeat(EPS * noise, stride, axis=1)[:, : len(y)]
    return value, noise * np.exp(-value.real)


def _turns(angle, count, weights):
    """weights * (exp(im angle) - 1) for m = 0, 1, ..., count - 1: by steps of 1, then by longer
    ones, of about sqrt(count)."""
    found = np.zeros((count, *angle.shape), dtype=complex)
    if count == 1:
        return found
    small = large = expm1_i(angle)
    found[1] = weights * small
    doublings = round(0.5 * log2(count))
    for _ in range(doublings):
        large = large * (2 + large)
    small, large, stride = 1 + small, 1 + large, 2**doublings
    for m in range(2, count):
        back, turn = (1, small) if m <= stride else (stride, large)
        np.multiply(found[m - back], turn, out=found[m])
        found[m] += found[back]
    return found
