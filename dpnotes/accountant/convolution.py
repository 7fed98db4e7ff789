"""Laws on a lattice, tilted, and their convolution by transforms, for ``lattice``."""

from itertools import islice
from math import exp, inf
from typing import NamedTuple

import numpy as np

from .law import Law

__all__ = []

FEW = 4096  # values of a product of laws
VANISHED = 100.0  # exp(-100) of the largest entry of a transform is 0


class Halves(NamedTuple):
    """A law on a lattice: each value's slot below it, the way there, the share of its probability
    that goes there and the share that goes up, both tilted by exp(cL) and relative to exp(top)."""

    slot: np.ndarray
    part: np.ndarray
    low: np.ndarray
    high: np.ndarray
    top: float


def halved(law, grid):
    """The law split between lattice neighbours so that the mass under p and under q stays."""
    h = grid.spacing
    index = np.floor(law.loss / h + 1e-9)
    part = np.maximum(law.loss - h * index, 0.0)
    part[part < 1e-8 * h] = 0.0
    above = np.expm1(-part) / np.expm1(-h)
    tilt = law.log_p + grid.c * h * index
    top = tilt.max()
    weight = np.exp(tilt - top)
    slot = np.mod(index, grid.size).astype(np.int64)
    return Halves(slot, part, weight * (1 - above), weight * above * exp(grid.c * h), float(top))


def binned(halves, grid, lam):
    """The law on the lattice, tilted by exp(cL + lam X), wrapped: (tilted probabilities, their log
    sum, tilted E X^2)."""
    slot, part, low, high, top = halves
    rest = grid.spacing - part
    if lam:
        turned = np.exp(-lam * part)
        low, high = low * turned, high * (turned * exp(lam * grid.spacing))
    tilted = np.bincount(slot, low, grid.size + 1)
    tilted[1:] += np.bincount(slot, high, grid.size)
    tilted[0] += tilted[-1]
    tilted = tilted[:-1]
    mass = tilted.sum()
    variance = (low @ part**2 + high @ rest**2) / mass
    return tilted / mass, top + np.log(mass), variance


def groups(sizes):
    """How many of these sizes, which ascend, go together each time: as many as give ``FEW``."""
    found, product = [], inf
    for size in sizes:
        product *= size
        if product <= FEW:
            found[-1] += 1
        else:
            product = size
            found.append(1)
    return found


def joined(laws):
    """Laws of few values that occur once, each product of up to ``FEW`` values as one: an exact
    sum instead of two transforms, and of two moves."""
    once = iter(sorted((law for law, k in laws if k == 1), key=lambda law: len(law.loss)))
    found = []
    for count in groups(sorted(len(law.loss) for law, k in laws if k == 1)):
        loss, log_p = next(once)[:2]
        for law in islice(once, count - 1):
            loss, log_p = (
                np.add.outer(one, other).ravel()
                for one, other in zip((loss, log_p), law[:2], strict=True)
            )
        found.append(Law(loss, log_p))
    return [(law, 1) for law in found] + [(law, k) for law, k in laws if k > 1]


def power(spectrum, k):
    """The k-th power by squares, of what does not vanish beside the rest (the modulus is at most 1,
    and 1 somewhere)."""
    size = spectrum.real**2 + spectrum.imag**2
    large = size > np.exp(-2 * VANISHED / k)
    if large.all():
        return _squared(spectrum, k)
    found = np.zeros_like(spectrum)
    found[large] = _squared(spectrum[large], k)
    return found


def _squared(base, k):
    found = None
    while k:
        if k & 1:
            found = base.copy() if found is None else np.multiply(found, base, out=found)
        k >>= 1
        base = base * base if k else base
    return found


def convolved(laws, grid, lam):
    """log of the probabilities of the sum on the grid's window (times E exp(lam X)), the log of the
    total tilted mass, and the tilted variance of X."""
    spectrum, log_mass, variance = 1.0, 0.0, 0.0
    for halves, k in laws:
        tilted, log_sum, step_variance = binned(halves, grid, lam)
        spectrum = spectrum * power(np.fft.rfft(tilted), k)
        log_mass, variance = log_mass + k * log_sum, variance + k * step_variance
    tilted = np.roll(np.fft.irfft(spectrum, grid.size), -(grid.first % grid.size))
    tilted[grid.loss > grid.top] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(tilted, 0.0)) + log_mass - grid.c * grid.loss, log_mass, variance
