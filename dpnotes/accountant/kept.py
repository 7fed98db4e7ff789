"""Exact methods: infinite losses set apart, and the two doors that every such method has.

With t(e) = E (1 - exp(e - L))_+ and its complement r(e) = E min(1, exp(e - L)), given that the loss
is finite, and ``kept`` the probability of that,

    delta(e) = 1 - kept + kept t(e) = 1 - kept r(e).

A method encloses t and r; near delta = 1 the second form is the accurate one.
"""

from functools import cached_property
from math import exp, expm1, inf, log, log1p, nextafter

import numpy as np

from . import contour
from .law import EPS

__all__ = []


class Kept:
    """The probability that no loss is infinite, and the enclosures of delta that go with it.

    A method inherits ``delta`` and ``epsilon`` from here, and gives ``tail(e)`` and ``rest(e)``,
    enclosures (low, high) of t and r, and of the last value as ``top``.
    """

    def __init__(self, parts):
        self.parts = parts
        log_kept = sum(k * log1p(-step.infinite) for step, k in parts)
        self.log_kept, pad = log_kept, -8 * EPS * log_kept
        missing = -expm1(log_kept)
        self.kept, self.missing = (1.0, 1.0), (0.0, 0.0)
        if missing:
            self.kept = outward(exp(log_kept - pad), exp(log_kept + pad))
            self.missing = outward(missing * (1 - 16 * EPS), missing * (1 + 16 * EPS))

    @cached_property
    def given(self):
        """The parts without their infinite losses."""
        return tuple((step.given_finite(), k) for step, k in self.parts)

    def delta(self, epsilon):
        """(low, value, high); the value is the safe end."""
        low, high = self.bounds(epsilon)
        return low, high, high

    def bounds(self, epsilon):
        tail, rest = self.tail(epsilon), (0.0, 1.0)
        if tail[1] > 0.25 or self.missing[1] > 0.25:
            rest = self.rest(epsilon)
        below = self.missing[0] + self.kept[0] * tail[0], 1 - self.kept[1] * rest[1]
        above = self.missing[1] + self.kept[1] * tail[1], 1 - self.kept[0] * rest[0]
        if self.missing[1] == 0:  # then only 1 - r was rounded
            low, high = outward(below[1], above[1])
            return max(tail[0], low), min(tail[1], high, 1.0)
        low, high = outward(max(below) * (1 - 4 * EPS), min(above) * (1 + 4 * EPS))
        return low, min(high, 1.0)

    def meets(self, epsilon, delta, way):
        """Whether delta(epsilon) is surely at most (way 1) or at least (way -1) this delta."""
        if delta > 0.5:  # 1 - delta is exact
            rest = self.rest(epsilon)[way < 0] * self.kept[way < 0]
            return way * (rest * (1 - way * 2 * EPS) - (1 - delta)) >= 0
        low, high = self.bounds(epsilon)
        return high <= delta if way > 0 else low >= delta

    def epsilon(self, delta):
        """(low, value, high); the value is the safe end."""
        bottom, top = self.top
        if delta < self.missing[0]:
            return inf, inf, inf
        if delta <= self.missing[1]:  # within round-off of the probability of infinite losses
            low = self._last(delta) if self.missing[1] else bottom
            value = top if delta >= -expm1(self.log_kept) else inf
            return max(0.0, low), max(0.0, value), max(0.0, top) if self.missing[1] == 0 else inf
        if self.meets(0.0, delta, 1):
            return 0.0, 0.0, 0.0
        side, share = (-1, 1 - delta) if delta > 0.5 else (1, delta + expm1(self.log_kept))
        value = self.guess(side, share / exp(self.log_kept))
        low, high = around(lambda e, way: self.meets(e, delta, way), min(max(value, 0.0), top), top)
        return low, high, high

    def guess(self, side, target):
        """The e of a given t (side 1) or r (side -1), roughly: secants on its logarithm, from the
        saddle point on, and halves of what holds e where they leave that or don't end."""
        c, e, _ = contour.saddle_for(self.given, side, log(target))
        (low, high), last, slope = (0.0, self.top[1]), None, -abs(c)
        e = min(max(e + self.log_kept, low), high)
        for n in range(60):
            found = 0.5 * sum(self.tail(e) if side > 0 else self.rest(e))
            height = side * (log(max(found, 1e-320)) - log(target))
            low, high = (e, high) if height > 0 else (low, e)
            if last and (rise := (height - last[1]) / (e - last[0])) < 0:
                slope = rise
            last, e = (e, height), e - height / slope
            if not low <= e <= high or 12 <= n and high < inf:
                e = 0.5 * (low + high)
            if abs(e - last[0]) <= 1e-15 * e or 12 <= n and abs(height) <= 1e-13:
                break
        return e

    def _last(self, delta):
        """An e with delta(e) surely at least this much."""
        low, high = 0.0, max(self.top[0], 0.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.meets(middle, delta, -1) else (low, middle)
        return low


def enclosed(loss, fine, shift):
    """Bounds on the largest of these losses: it itself where it is exact."""
    width = 2 * (np.abs(fine) + shift)
    low, high = float(np.max(loss - width)), float(np.max(loss + width))
    return (nextafter(low, -inf), nextafter(high, inf)) if np.any(width) else (low, high)


def outward(low, high):
    """The next floats outside."""
    return max(0.0, nextafter(low, -inf)), nextafter(high, inf)


def around(meets, value, top):
    """(low, high) around an epsilon >= 0: what ``meets`` the target from below and from above."""
    ends = []
    for way in (-1, 1):
        width, end = 0.0, value
        while 0 <= end <= top and not (way < 0 and end == 0) and not meets(end, way):
            width = 2 * width or 4e-16 * value + 1e-300 + 1e-16 * (value == 0)
            end = value + way * width
        ends.append(min(max(end, 0.0), top))
    return tuple(ends)
