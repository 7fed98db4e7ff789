"""What a line says of many epsilons at once: ``Line.sums`` as products of matrices."""

from math import inf

import numpy as np

from . import jumps
from .law import EPS
from .work import spend

__all__ = []


def own_error(line, epsilon):
    """The relative error of a line's tail at one epsilon."""
    return float(max(x[0] for x in sums(line, np.array([epsilon]))[2:]))


def sums(line, epsilon):
    """``line.sums`` of an array: log tail, log slope, and both relative errors; of the lines of
    ``jumps``, too, added up."""
    if not isinstance(line, jumps.Lines):
        return _sums(line, epsilon)
    return line.added([_sums(one, epsilon) for one in line.lines], epsilon)


def _sums(line, epsilon):
    """Of one line.

    The phase of node m = a + B b is the product of two, so each sum over m is a bilinear form of a
    matrix of terms: (rows @ terms) * columns. Its sums have B and nodes/B summands, whose round-off
    is added to the budget.
    """
    size = len(line.y)
    spend(8 * size * len(epsilon))
    block = 1 << max(3, int(np.log2(size) / 2))
    count = -(-size // block)
    steep = np.zeros((2, count * block), dtype=complex)
    steep[:, :size] = line.terms
    h = line.y[1] if size > 1 else 0.0
    columns = np.exp(-1j * h * np.outer(epsilon, np.arange(block)))
    rows = np.exp(-1j * h * np.outer(epsilon, block * np.arange(count)))
    value, slope = (
        np.maximum(np.abs(((rows @ t.reshape(count, block)) * columns).sum(axis=1).real), 1e-250)
        for t in steep
    )
    weight = np.abs(steep[0, :size])
    noise = weight @ (line.noise + EPS * (16 + block + count))
    rounding = noise + 4 * EPS * np.abs(epsilon) * (weight @ line.y)
    rounding += value * (line.round_off + EPS * np.abs(line.c * epsilon))
    front, unit = line.cumulant - line.c * epsilon, np.log(2 / line.period)
    cut = np.exp(min(line.log_cut - unit, 0.0))
    aliases = _aliases(line, front + unit, epsilon)
    error = (rounding + cut) / value
    return (
        front + unit + np.log(value),
        front + unit + np.log(slope),
        np.minimum(error, 1e300),
        np.minimum(error + 1.1 * aliases / value, 1e300),
    )


def _aliases(line, front, epsilon):
    """Bounds by the best rival on either side, relative to exp(front)."""
    total = np.zeros(len(epsilon))
    for on in (line.rivals[0] > line.c, line.rivals[0] < line.c):
        c, bound = line.rivals[0][on], line.rivals[1][on]
        fixed = bound - np.abs(c - line.c) * line.period
        exponent = np.full(len(epsilon), inf)
        for slope, start in zip(c, fixed, strict=True):
            np.minimum(exponent, start - slope * epsilon - front, out=exponent)
        total += np.exp(np.minimum(exponent, 100.0))
    return total
