"""Where the integrands of many sampled Gaussians are, all at once: what ``tilted`` says, on arrays.

One power for all steps, and one entry of each array a step. Nodes are whole multiples of a number
of 16 bits, as in ``sampled_gaussian``; those of a step are counted from one end of its window, and
what lies between two parts of it is left out.
"""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from .tilted import FAR, LEFT_OUT, STEEP

__all__ = []

WIDE = 11.0  # standard deviations of a Gaussian, beyond which exp(-60) of it lies
BLOCK = 120_000  # entries of an array
ALIKE = 1.2  # the lengths of the rows of a block differ by no more than this factor


@dataclass(frozen=True, eq=False)
class Windows:
    """phi(x/sigma) (1 + rate (e^u - 1))^power with u = (x - 1/2)/sigma^2, for each step."""

    sigma: np.ndarray
    rate: np.ndarray
    power: float
    share: float = 1.0  # of the digits

    def spans(self):
        """Intervals of x that hold both laws and the tilted one, as arrays of (5, steps) lower and
        upper ends; they may overlap."""
        sigma, wide = self.sigma, WIDE * sqrt(self.share) * self.sigma
        near, far = self._peaks()
        floor = np.maximum(self._height(near), self._height(far)) - LEFT_OUT * self.share
        start = np.where(far < -FAR * sigma, far, np.maximum(far, 0.0))
        last = self._edge(start, max(self.power, 0.0) + wide, floor)
        valley = self._halved(near, far, 1.0, 1)
        deep = self._height(valley) < floor
        first, again = last, near
        if deep.any():
            first = np.where(deep, self._edge(near, valley, floor), last)
            again = np.where(deep, self._edge(far, valley, floor), near)
        low = np.minimum(0.0, near) - wide
        if (is_far := near > FAR * sigma).any():
            low = np.where(is_far, self._edge(near, 0.0, floor), low)
        low = np.array([-wide, 1 - wide, low, near, again])
        return low, np.array([wide, 1 + wide, near + sigma, first, last])

    def _odds(self, x):
        return (x - 0.5) / self.sigma**2 + np.log(self.rate) - np.log1p(-self.rate)

    def _pull(self, x):
        return self.power / (1 + np.exp(np.minimum(-self._odds(x), 700.0)))

    def _peaks(self):
        """The first and the last local maximum of each, roughly."""
        if self.power < 0:  # there is one
            low = self._halved(np.full_like(self.sigma, self.power), 0.0, 0.1, -1)
            return low, low
        return self._climbed(0.0), self._climbed(self.power)

    def _climbed(self, start):
        x = np.full_like(self.sigma, start)
        moving = np.ones(len(x), dtype=bool)
        for _ in range(200):
            old = x
            x = np.where(moving, self._pull(x), x)
            moving = np.abs(x - old) > 0.1 * self.sigma
            if not moving.any():
                break
        return x

    def _height(self, x):
        """log of the integrand, up to a constant."""
        u = (x - 0.5) / self.sigma**2
        loss = np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + u)
        return self.power * loss - 0.5 * (x / self.sigma) ** 2

    def _halved(self, low, high, share, way):
        """By bisection, the lower end of where x - ``_pull(x)`` changes its sign."""
        high = np.broadcast_to(high, low.shape)
        while True:
            size = np.maximum(np.abs(low), np.abs(high))
            if np.all(high - low <= share * self.sigma + 1e-12 * size):
                return low
            x = 0.5 * (low + high)
            up = way * (self._pull(x) - x) < 0
            low, high = np.where(up, x, low), np.where(up, high, x)

    def _edge(self, high, low, floor):
        """From high places towards low ones: where the integrand falls below the floor, or as in
        ``tilted``."""
        near = high - 12 * self.sigma
        steep = (low < near) & (self._height(high) > STEEP) & (self._odds(near) > 100)
        high, low = np.where(steep, near, high), np.where(steep, near, low)
        while not np.all(np.abs(high - low) <= 0.2 * self.sigma + 1e-12 * np.abs(low)):
            x = 0.5 * (high + low)
            above = self._height(x) > floor
            high, low = np.where(above, x, high), np.where(above, low, x)
        return low


class Mesh(NamedTuple):
    """Nodes of each step: way * spacing * (first, first + 1, ...), ``count`` of them; after so many
    (``before``) so many are left out (``gaps``)."""

    way: int
    spacing: np.ndarray
    first: np.ndarray
    count: np.ndarray
    before: np.ndarray
    gaps: np.ndarray

    def points(self, steps):
        """The nodes of these steps as rows, and which entries are nodes: others repeat the last."""
        count = self.count[steps, None]
        place = np.arange(int(count.max()))
        inside = place < count
        at = np.minimum(place, count - 1)
        index = self.first[steps, None] + at
        for before, gap in zip(self.before, self.gaps, strict=True):
            if gap[steps].any():
                index = index + gap[steps, None] * (at >= before[steps, None])
        return self.way * self.spacing[steps, None] * index, inside

    def ends(self, steps):
        """Places of the first and the last node of these steps, and of those beside gaps, as rows;
        where there are fewer, the first again."""
        gap = self.gaps[:, steps] > 0
        beyond = np.where(gap, self.before[:, steps], 0.0)[gap.any(axis=1)]
        last = self.count[steps] - 1
        places = [np.zeros_like(last), last, *beyond, *np.maximum(beyond - 1, 0.0)]
        return np.array(places).astype(int).T


def mesh(spans, spacing, way):
    """The Mesh of these intervals; from the upper end down for way -1."""
    mantissa, exponent = np.frexp(spacing)
    spacing = np.ldexp(np.floor(np.ldexp(mantissa, 16)), exponent - 16)
    low, high = spans if way > 0 else (-spans[1], -spans[0])
    first = np.floor(low / spacing)
    order = np.argsort(first, axis=0)
    first = np.take_along_axis(first, order, axis=0)
    last = np.take_along_axis(np.ceil(high / spacing), order, axis=0)
    last = np.maximum.accumulate(last, axis=0)
    gaps = np.maximum(first[1:] - last[:-1] - 1, 0.0)
    skipped = np.cumsum(gaps, axis=0)
    before = last[:-1] - first[0] + 1 - (skipped - gaps)
    count = last[-1] - first[0] + 1 - gaps.sum(axis=0)
    return Mesh(way, spacing, first[0], count, before, gaps)


def hull(spans):
    """One interval for each step."""
    return spans[0].min(axis=0)[None], spans[1].max(axis=0)[None]


def blocks(count, entries=BLOCK):
    """Steps with about as many nodes each, together; as arrays of their numbers."""
    order, found, start = np.argsort(count, kind="stable"), [], 0
    sizes = count[order]
    for i in range(1, len(order) + 1):
        full = i == len(order) or sizes[i] > ALIKE * sizes[start] + 4
        if full or sizes[i] * (i - start + 1) > entries:
            found.append(order[start:i])
            start = i
    return found
