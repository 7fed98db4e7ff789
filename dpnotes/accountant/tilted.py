"""Where the integrand of a sampled Gaussian's moment is: phi(x) exp(power * loss(x)).

It has one or two peaks, which may be very far from each other: the nodes go where they are.
"""

from dataclasses import dataclass
from math import exp, expm1, inf, log, log1p

__all__ = []

LEFT_OUT = 60.0  # exp(-60) of the largest value of the integrand is cut off
FAR = 1000.0  # standard deviations, beyond which what lies before a first peak is cut off, too
STEEP = 1e12  # log of the integrand, beyond which a difference of two has too few digits


@dataclass(frozen=True)
class Tilted:
    """phi(x/sigma) (1 + rate (e^u - 1))^power with u = (x - 1/2)/sigma^2."""

    sigma: float
    rate: float
    power: float

    def spans(self, high=inf, end=inf):
        """Intervals of x, in ascending order, that hold both laws and the tilted one; of a window
        that ends softly, from ``high`` to ``end``, what of them it holds, and the slope below."""
        wide = 11 * self.sigma
        near, far = self._peaks()
        last, top = end, min(far, high)
        if far <= high:
            floor = max(self._height(near), self._height(far)) - LEFT_OUT
            start = far if far < -FAR * self.sigma else max(far, 0.0)
            last = self._edge(start, max(self.power, 0.0) + wide, floor)
        valley = min(self._valley(near, far), top)
        floor = max(self._height(min(near, top)), self._height(top)) - LEFT_OUT
        is_far = near > FAR * self.sigma
        first = self._edge(near, 0.0, floor) if is_far else min(0.0, near) - wide
        spans = [(-wide, wide), (1 - wide, 1 + wide), (first, near + self.sigma)]
        if self._height(valley) < floor:
            spans += [(near, self._edge(near, valley, floor))]
            spans += [(self._edge(top, valley, floor), last)]
        else:
            spans += [(near, last)]
        return merged((a, min(b, end)) for a, b in spans)

    def hull(self):
        """One interval that holds all this, and is found at once: the peaks lie between 0 and
        max(power, 1), or between the pull at 0, which is stronger than at less, and 1; beyond them
        the integrand falls at least as fast as phi."""
        wide = 11 * self.sigma
        return min(self._pull(0.0), 0.0) - wide, max(self.power, 1.0) + wide

    def _odds(self, x):
        """log of the odds that x is from the sampled Gaussian."""
        return (x - 0.5) / self.sigma**2 + log(self.rate) - log1p(-self.rate)

    def _pull(self, x):
        """sigma^2 times the slope of power * loss at x: its fixed points are the peaks."""
        return self.power / (1 + exp(min(-self._odds(x), 700.0)))

    def _peaks(self):
        """The first and the last local maximum, roughly."""
        if self.power < 0:  # there is one
            low, high = self.power, 0.0
            while high - low > 0.1 * self.sigma + 1e-12 * abs(low):
                x = 0.5 * (low + high)
                low, high = (x, high) if x < self._pull(x) else (low, x)
            return low, low
        return tuple(self._climb(x) for x in (0.0, self.power))

    def _climb(self, x):
        """From x to the next fixed point of an increasing function."""
        for _ in range(200):
            old, x = x, self._pull(x)
            if abs(x - old) <= 0.1 * self.sigma:
                break
        return x

    def _height(self, x):
        """log of the integrand, up to a constant."""
        u = (x - 0.5) / self.sigma**2
        loss = log1p(self.rate * expm1(u)) if u < 500 else u + log(self.rate)
        return self.power * loss - 0.5 * (x / self.sigma) ** 2

    def _valley(self, near, far):
        """The lowest point between the two peaks."""
        low, high = near, far
        while high - low > self.sigma + 1e-12 * high:
            x = 0.5 * (low + high)
            low, high = (x, high) if self._pull(x) < x else (low, x)
        return low

    def _edge(self, high, low, floor):
        """From a high place towards a low one: where the integrand falls below the floor. Left of
        one that is STEEP it is exp(-x^2/(2 sigma^2)) around a point no less, or falls faster."""
        near = high - 12 * self.sigma
        if low < near and self._height(high) > STEEP and self._odds(near) > 100:
            return near
        while abs(high - low) > 0.2 * self.sigma + 1e-12 * abs(low):
            x = 0.5 * (high + low)
            high, low = (x, low) if self._height(x) > floor else (high, x)
        return low


def merged(spans):
    """A union of intervals as separate ones, in ascending order."""
    found = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        elif high > low:
            found.append((low, high))
    return tuple(found)
