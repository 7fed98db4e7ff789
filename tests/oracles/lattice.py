"""delta(epsilon) by convolving losses moved to a lattice: few rounds, jumps, atoms.

What lies between two points of the lattice is shared between them so that its masses under P and Q
are kept. That can only raise delta, as (1 - exp(e - L))_+ is convex in exp(-L). Three steps, each
half of the last, must raise it less and less: twice the last difference is the error. Losses on
one common lattice stay where they are. Sums of tilted masses, in 80-bit arithmetic.
"""

import itertools
from dataclasses import replace
from functools import lru_cache
from math import ceil, floor, inf, sqrt

import numpy as np
import scipy.fft
from flint import arb
from scipy.optimize import minimize_scalar

from .laws import ONE, ZERO, TooLongError, above, finite_losses

LONG, ULP = np.longdouble, 2.0**-63
LAW, SUM = 100.0, 45.0  # what is left out of a law, and of a tilted sum, is exp(-these)
MOST_CELLS, POINTS, MOST_ROUNDS = 6_000, 2**17, 10**7


def _long(x):
    high = float(x.mid())
    return LONG(high) + LONG(float((x - high).mid()))


@lru_cache(maxsize=256)
def _reach(part, way):
    """Losses between which all but exp(-LAW) of both laws lies."""
    if part.counted:
        losses = [float(loss) for loss, _ in finite_losses(part, way)[0]]
        return min(losses), max(losses)
    tiny, ends = arb(-LAW).exp(), []
    for side in (-1, 1):
        for j in range(-60, 60):
            p, q = above(part, way, side * arb(2) ** j / 2)
            if max(p, q) < tiny if side > 0 else max(1 - p, 1 - q) < tiny:
                ends.append(float(side * arb(2) ** j / 2))
                break
        else:
            raise TooLongError
    return tuple(ends)


def gap(parts, way):
    """The step of a lattice on which all losses lie already (each part from its own first), or
    None."""
    if not all(part.counted for part in parts):
        return None
    gaps = []
    for part in parts:
        losses = sorted((loss for loss, _ in finite_losses(part, way)[0]), key=float)
        gaps += [b - a for a, b in itertools.pairwise(losses) if b > a]
    if not gaps or any(abs(float(x / gaps[0]) - 1) > 1e-14 for x in gaps):
        return None
    return gaps[0].mid()


@lru_cache(maxsize=64)
def _masses(part, way, h):
    """(first point, log P at it and each h further, P(the loss is finite))."""
    masses, kept, origin = {}, ONE, ZERO

    def share(j, p, q):
        left, right = (-origin - h * j).exp(), (-origin - h * (j + 1)).exp()
        up = (p * left - q) / (left - right)
        masses[j] = masses.get(j, ZERO) + p - up
        masses[j + 1] = masses.get(j + 1, ZERO) + up

    if part.counted:
        losses, infinite = finite_losses(part, way)
        kept, origin = 1 - infinite, max(losses, key=lambda pair: float(pair[1]))[0]
        for loss, p in losses:
            at = float((loss - origin) / h)
            if abs(at - round(at)) < 1e-12:
                masses[round(at)] = masses.get(round(at), ZERO) + p
            else:
                share(floor(at), p, p * (-loss).exp())
    else:
        low, high = _reach(part, way)
        j, last, (p, q) = floor(low / float(h)), ceil(high / float(h)), (ONE, ONE)
        while j < last:
            more = above(part, way, h * (j + 1)) if j + 1 < last else (ZERO, ZERO)
            share(j, p - more[0], q - more[1])
            (p, q), j = more, j + 1
    first = min(masses)
    logs = np.full(max(masses) - first + 1, -inf)
    for j, p in masses.items():
        logs[j - first] = float(p.log()) if p > 0 else -inf
    return origin + h * first, logs, kept


def _log_sum(x):
    return float(np.logaddexp.reduce(x))


class Sum:
    """The law of the sum on one lattice, tilted towards e."""

    def __init__(self, parts, way, h, e):
        self.h, self.kept, self.start, steps = h, ONE, ZERO, []
        for part in parts:
            first, logs, kept = _masses(part, way, h)
            self.kept *= kept**part.k
            self.start += part.k * first
            steps.append((part.k, logs, np.arange(len(logs)) * float(h)))
        self.near, away = e, float(self.start - e)

        def level(c):  # log E exp(c (L - e))
            return c * away + sum(k * _log_sum(logs + c * x) for k, logs, x in steps)

        wide = max(float(x[-1]) for _, _, x in steps) or 1.0
        self.c = minimize_scalar(level, bounds=(0.0, 700 / wide), method="bounded").x
        self.size = level(self.c)
        tilts = np.geomspace(1e-4, 300, 40) / wide
        with np.errstate(invalid="ignore"):
            low = max(-(level(self.c - s) - self.size + SUM) / s for s in tilts)
            high = min((level(self.c + s) - self.size + SUM) / s for s in tilts)
        if not np.isfinite([self.size, low, high]).all():
            raise TooLongError
        self.width, self.first = high - low, floor((low - away) / float(h))
        self.points = scipy.fft.next_fast_len(ceil(self.width / float(h)) + 2, real=True)
        if self.points > 8 * POINTS:
            raise TooLongError
        lost = sum(k * (1 + abs(_log_sum(logs + self.c * x))) for k, logs, x in steps)
        self.noise = 4e-15 * (lost + abs(self.c * away))
        self._convolve(steps)

    def _convolve(self, steps):
        transform = LONG(1)
        for k, logs, x in steps:
            tilted = logs + self.c * x
            tilted = np.exp((tilted - tilted.max()).astype(LONG))
            folded = np.zeros(self.points, dtype=LONG)
            np.add.at(folded, np.arange(len(x)) % self.points, tilted / tilted.sum())
            transform = transform * _power(scipy.fft.rfft(folded), k)
        law = scipy.fft.irfft(transform, self.points)
        self.law = np.roll(law, -self.first % -self.points)
        self.blur = 32 * ULP * (20 + sum(k for k, _, _ in steps)) * float(law.max())

    def at(self, e):
        """(delta, its round-off) of finite losses."""
        away = _long(self.start - self.near)
        away = away + _long(self.h) * (np.arange(self.points) + self.first)
        over = away - (LONG(e) - LONG(self.near))
        there = over > 0
        weight = -np.expm1(-over[there]) * np.exp(LONG(self.size) - LONG(self.c) * away[there])
        delta = float((self.law[there] * weight).sum())
        return delta, abs(delta) * self.noise + self.blur * float(weight.sum())


def _power(x, k):
    out = np.ones_like(x)
    while k:
        out = out * x if k % 2 else out
        x, k = x * x, k // 2
    return out


@lru_cache(maxsize=4)
def _sums(parts, way, near):
    own = gap(parts, way)
    if own is not None:
        return [Sum(parts, way, own, near)]
    wide = max(np.ptp(_reach(part, way)) for part in parts)
    rough = Sum(parts, way, arb(wide / 500), near)
    step = rough.width / POINTS
    if not all(part.counted for part in parts):
        step = max(step, wide / MOST_CELLS)
    return [Sum(parts, way, (arb(step) / n).mid(), near) for n in (0.5, 1, 2)]


def lattice_delta(parts, way, e, near=None):
    """A ball of delta in one way; the sums for `near` serve its neighbours."""
    parts = tuple(
        replace(part, value=(part.value[0] / sqrt(part.k),), k=1)
        if part.is_plain("gaussian")
        else part
        for part in parts
    )
    if sum(part.k for part in parts) > MOST_ROUNDS:
        raise TooLongError  # of round-off
    sums = _sums(parts, way, float(e if near is None else near))
    answers = [one.at(float(e)) for one in sums]
    fine, noise = answers[-1]
    least, more = 1e-30 * sum(part.k for part in parts), 0.0
    if not fine > least:  # what is left out of the laws counts
        return 1 - sums[-1].kept + ZERO.union(arb(max(fine, 0.0) + noise + least))
    if len(sums) > 1:
        before, more = answers[0][0] - answers[1][0], answers[1][0] - fine
        if not -noise <= more <= max(0.7 * before, 1e-9 * fine + noise):
            raise TooLongError  # the step is not small yet
    return 1 - sums[-1].kept + arb(fine).union(arb(fine - 2 * max(more, 0.0))) + arb(0, noise)
