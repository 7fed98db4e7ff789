"""delta(epsilon) by convolving losses moved to a lattice: for the few and middling numbers of
rounds whose transforms decay too slowly for a contour.

Each loss is shared between lattice points, in two ways: between two of them, so that both
probabilities, p and q, are kept, which can only raise delta (the chord lies above the convex
(1 - exp(e-L))_+ as a function of exp(-L)); and between four, by Lagrange's cubic weights, which is
right to the fourth order where a density is smooth. Tilted by exp(cL) and raised to powers in
80-bit arithmetic; a lattice three times as coarse says how far the second answer is off, and it may
not lie above the first, which is a bound.
"""

from contextlib import suppress
from functools import lru_cache
from math import ceil, exp, inf, log, log2, sqrt

import numpy as np
import scipy.fft
from flint import arb

from .contours import lines, saddle
from .moments import moments as moments_of
from .nodes import leftmost, legendre, log_ratio, log_sum
from .quadrature import TooLongError

__all__ = ["lattice_delta"]

POINTS = 2**15, 2**17
MOST_ROUNDS = 50_000
ROUND_OFF = 4 * 2.0**-63
LOSS_OFF = 2.0**-49  # of a loss: of its logarithm, its place on the lattice, and e


def power(base, k):
    """The k-th power by squares: of numbers up to 1, off by k units of round-off."""
    found = None
    while k:
        if k & 1:
            found = base if found is None else found * base
        k >>= 1
        base = base * base if k else base
    return found


class Lattice:
    """The composition in one direction near a loss e, tilted by exp(c (L - e)) / its size."""

    def __init__(self, moments, c, e, reach, points):
        self.moments, self.c, self.e = moments, c, e
        self.h = 2 * reach / points
        self.points = points
        self.loss = e + self.h * (np.arange(points) - points // 2)
        self.laws = {}
        self.upper, self.close = (self._composed(way) for way in (self._chord, self._cubic))

    def _composed(self, share):
        total, self.log_size = np.ones(self.points // 2 + 1, dtype=np.clongdouble), 0.0
        for part in self.moments.parts:
            if part not in self.laws:
                self.laws[part] = self._law(part)
            loss, log_p = self.laws[part]
            log_p = log_p + self.c * loss
            size = log_sum(log_p)
            cell = np.floor(loss / self.h).astype(np.int64)
            mass = np.zeros(self.points)
            for j, weight in share(loss / self.h - cell, cell):
                weight = weight * np.exp(log_p - size)
                mass += np.bincount((cell + j) % self.points, weight, self.points)
            total *= power(scipy.fft.rfft(mass.astype(np.longdouble)), part.k)
            self.log_size += part.k * size
        found = scipy.fft.irfft(total, self.points)
        # index i stands for the loss h i modulo the window; the window begins at loss[0]
        first = int(round(self.loss[0] / self.h))
        self.loss = self.h * (first + np.arange(self.points))
        return np.roll(found, -(first % self.points))

    def _chord(self, theta, cell):
        """Keeps p and q, and so what the tilt makes of them."""
        right = -np.expm1(-theta * self.h) / -np.expm1(-self.h)
        return [(0, (1 - right) * self._tilt(-theta)), (1, right * self._tilt(1 - theta))]

    def _cubic(self, theta, cell):
        t = theta
        weights = [
            (-1, -t * (t - 1) * (t - 2) / 6),
            (0, (t + 1) * (t - 1) * (t - 2) / 2),
            (1, -(t + 1) * t * (t - 2) / 2),
            (2, (t + 1) * t * (t - 1) / 6),
        ]
        return weights

    def _tilt(self, shift):
        return np.exp(self.c * self.h * shift)

    def _law(self, part):
        """Losses and log p, in four points of each cell."""
        moments = self.moments
        if part.counted:
            pairs = [(p, q) for p, q in moments.laws[part] if p > 0 < q]
            both = [(float((p / q).log()), float(p.log())) for p, q in pairs]
            return tuple(np.array(column) for column in zip(*both, strict=True))
        way = 1 if part.swapped else moments.way
        edges, unit = self._edges(part)
        x4, w4 = legendre(4)
        half = np.diff(edges)[:, None] / 2
        x = (edges[:-1, None] + half + half * x4).ravel()
        w = np.log((half * w4).ravel())
        if part.kind == "laplace":
            log_q = w - (x + unit) / 2 - log(4)
            ends = [unit] if part.swapped else [-unit, unit]
            x = np.concatenate([x, ends])
            log_q = np.concatenate([log_q, [-log(2) - (end + unit) / 2 for end in ends]])
            ratio = log_ratio(x, part.rate) if part.rate < 1 else x
        else:
            log_q = w - 0.5 * (x * unit) ** 2 + log(unit / sqrt(2 * np.pi))
            u = (x - 0.5) * unit**2
            ratio = log_ratio(u, part.rate) if part.rate < 1 else u
        if part.swapped:
            rest = moments.log_rest(part)
            ratio = np.concatenate([-ratio, [0.0], ratio])
            log_p = np.concatenate([log_q, [rest], log_q + ratio[len(log_q) + 1 :]])
        else:
            log_p = log_q + ratio if way > 0 else log_q
        keep = log_p + self.c * way * ratio
        keep = keep > keep.max() - 60
        return (way * ratio)[keep], log_p[keep]

    def _edges(self, part):
        way, unit, rate = self.moments.way, 1 / part.value[0], part.rate
        way = 1 if part.swapped else way
        if part.kind == "laplace":
            low, high, fine = -unit, unit, min(0.25, 2 / (abs(self.c) + 2))
        else:
            n = self.c + 1 if way > 0 else -self.c
            low, high = leftmost(part, n) - 12 / unit, max(0.0, n) + 12 / unit
            fine = min(0.1 / unit, 1 / unit**2 / (2 * abs(self.c) + 8))
        if (high - low) / fine > 1e6:
            raise TooLongError
        edges = [np.linspace(low, high, ceil((high - low) / fine) + 1)]
        scale = 1.0 if part.kind == "laplace" else unit**2
        middle = 0.0 if part.kind == "laplace" else 0.5
        ends = way * log_ratio((np.array([low, high]) - middle) * scale, rate)
        first, last = np.floor(min(ends) / self.h), np.ceil(max(ends) / self.h)
        if last - first > 3e6:
            raise TooLongError
        grid = way * self.h * np.arange(first, last + 1)
        ratio = np.expm1(grid) / rate
        with np.errstate(divide="ignore", invalid="ignore"):
            cuts = np.log1p(ratio[ratio > -1]) / scale + middle
        edges.append(cuts[(cuts > low) & (cuts < high)])
        found = np.unique(np.concatenate(edges))
        if part.swapped:
            found = np.append(middle, found[found > middle])
        return found, unit

    def at(self, e):
        """(upper, close) without the infinite losses, by how much ``close`` was mended, and the
        round-off: of the transform, spread over all points alike (where few losses exceed e, but
        those by far, the tilted law is nearly all where none does, and the answer little above
        that), and of the losses, each as good as an e that is off by as much."""
        over = self.loss > e
        gap = self.loss[over] - e
        tilt = np.exp(-self.c * gap)
        kernel = -np.expm1(-gap) * tilt
        front = exp(self.log_size - self.c * e)
        upper, close = (front * float(kernel @ found[over]) for found in (self.upper, self.close))
        mend, rounds = front * self._kink(e), sum(part.k for part in self.moments.parts)
        noise = ROUND_OFF * (rounds + log2(self.points)) / sqrt(self.points)
        noise = noise * sqrt(float(kernel @ kernel)) + LOSS_OFF * abs(e) * float(
            tilt @ self.upper[over]
        )
        return upper, close + mend, abs(mend), front * noise

    def _kink(self, e):
        """What the kink of (1 - exp(e-L))_+ at e costs the sum over the lattice (Euler and
        Maclaurin): -h/2 B_2(t) times the mass at e, t the place of e in its cell."""
        j = int(np.searchsorted(self.loss, e, side="right"))
        if not 0 < j < self.points:
            return 0.0
        t = (self.loss[j] - e) / self.h
        tilt = np.exp(-self.c * (self.loss[j - 1 : j + 1] - e))
        mass = np.array([t, 1 - t]) @ (self.close[j - 1 : j + 1] * tilt)
        return 0.5 * self.h * (t * t - t + 1 / 6) * float(mass)


def _widest(moments, part):
    """The largest size of a bounded loss."""
    if part.kind != "laplace":
        return moments.widest(part) if part.counted else inf
    return float(np.abs(log_ratio(np.array([-1.0, 1.0]) / part.value[0], part.rate)).max())


def _whole(moments, c, e):
    """(reach, c): all losses there are, tilted by no more than 80-bit arithmetic bears."""
    high = sum(part.k * _widest(moments, part) for part in moments.parts)
    if high == inf:
        raise TooLongError
    reach = 1.01 * (high + abs(e))
    return reach, min(c, 12 / reach)


@lru_cache(maxsize=16)
def _lattices(parts, way, e):
    if sum(part.k for part in parts) > MOST_ROUNDS:
        raise TooLongError
    moments = moments_of(parts, way)
    c, log_tail = saddle(moments, 1, e)
    if log_tail < -745:
        raise TooLongError
    found = []
    with suppress(TooLongError):
        found.append(lines(moments, 1, c, e, log_tail - 3, 36.0, 9.0)[0])
    with suppress(TooLongError):
        found.append(_whole(moments, c, e))
    if not found:
        raise TooLongError
    reach, c = min(found)
    return [Lattice(moments, c, e, reach * s, n) for s, n in zip((1.0, 1.23), POINTS, strict=True)]


def lattice_delta(parts, way, e, near=None):
    near = float(e) if near is None else near
    drawn, moments = _lattices(parts, way, near), moments_of(parts, way)
    coarse, fine = (lattice.at(float(e)) for lattice in drawn)
    infinite = 1 - moments.kept()
    rounding = 1e-13 + 4e-16 * sum(part.k for part in parts)
    noise = coarse[3] + fine[3]
    error = abs(coarse[1] - fine[1]) + abs(fine[1]) * rounding + noise
    smooth = all(part.kind == "gaussian" for part in parts)  # else atoms: the mass at e is not
    if smooth and not fine[2] <= 0.01 * abs(fine[1]):  # no start of an expansion: too coarse
        raise TooLongError
    error += fine[2] / 10 if smooth else fine[2]
    close = any(_widest(moments, part) < 100 * drawn[1].h for part in parts)
    if close or any(part.swapped or part.counted for part in parts):  # both may err alike
        error += abs(fine[0] - fine[1])
    if sum(part.k * _widest(moments, part) for part in parts) - float(e) < 100 * drawn[0].h:
        error += fine[1]  # so near the largest loss of all, both are what their cells add to it
    low = fine[1] - error
    high = min(fine[1] + error, min(coarse[0], fine[0]) * (1 + rounding) + noise)
    if not low <= high:
        raise TooLongError
    return infinite + arb((low + high) / 2, (high - low) / 2)
