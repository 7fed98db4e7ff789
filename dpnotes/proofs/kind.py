"""A kind of sampled Gaussian step in floating point, for ``plan``."""

from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from scipy.special import log_ndtr

from .sampled import ANGLES, Unproved

LIFTS = np.array([1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1, 1.2, 1.4])
FARTHEST = 4e5  # the widest window of outcomes, in standard deviations


class Far(Unproved):
    """This line would be too long."""


@dataclass
class Kind:
    """A kind of sampled Gaussian step, in one direction; of a band, with cuts (place, width)."""

    sigma: float
    rate: float
    times: int
    way: int
    above: tuple = ()
    below: tuple = ()

    def power(self, c):
        return 1 + c if self.way > 0 else -c

    def terms(self, c):
        """Outcomes, the losses of w, and log of the terms of M(c)."""
        n, s, r = self.power(c), self.sigma, self.rate
        low = 0.0 if n >= 0 else max(n, -s * s * np.log1p(-n * r / (s * s * (1 - r))))
        low, high, finest = low - 12 * s, max(1.0, n) + 12 * s, s / 12
        for cut in filter(None, (self.above, self.below)):
            finest = min(finest, cut[1] / 3)
        if self.above:
            place, width = self.above
            narrow = 1 / (1 / s**2 + 1 / width**2)
            high = min(high, narrow * (n / s**2 + place / width**2) + 70 * sqrt(narrow))
        if (high - low) / s > FARTHEST:
            raise Far("the tilt is too large")
        x = np.linspace(low, high, int(max((high - low) / finest, 400)))
        u = (x - 0.5) / s**2
        loss = np.logaddexp(np.log1p(-r), log(r) + u)
        unit = log((x[1] - x[0]) / (s * sqrt(2 * pi)))
        return u, loss, n * loss - 0.5 * (x / s) ** 2 + unit + self.kept(x, self.above)

    def kept(self, x, cut):
        return log_ndtr((cut[0] - x) / cut[1]) if cut else 0.0

    def cut(self, loss, soft):
        """Where the loss is so large, and how soft it is, in units of sigma^2."""
        s, r = self.sigma, self.rate
        ratio = loss + np.log((r - (1 - r) * np.expm1(-loss)) / r)  # log(1 + (e^loss - 1) / r)
        return float(0.5 + s**2 * ratio), float(soft * s**2)

    @property
    def steep(self):
        """What X-smooth-weights multiplies the squares of angles by."""
        cut = self.above or self.below
        return 1 + (self.sigma / cut[1]) ** 2 if cut else 1.0

    def real(self, c):
        """log of M of one step at the tilt c."""
        return total(self.terms(c)[2])

    def part(self, c):
        """log of the share of M that no cut below keeps."""
        u, _, terms = self.terms(c)
        return total(terms + self.between(u)) - total(terms)

    def between(self, u):
        """log of the share of each outcome, of those above, that is not below."""
        x = 0.5 + u * self.sigma**2
        less = self.kept(x, self.below) - self.kept(x, self.above)
        if not self.above:
            return log_ndtr((x - self.below[0]) / self.below[1])
        return np.log(-np.expm1(np.minimum(less, -1e-300)))

    def spacing(self, c, y, need):
        """That at which jumps-quadrature bounds the error by e^-need, and how many outcomes."""
        n, s, most, (u, loss, terms) = self.power(c), self.sigma, 0.0, self.terms(c)
        share = np.exp(log(self.rate) + u - loss)
        beyond = np.logaddexp.accumulate(terms[::-1])[::-1] - total(terms) if self.above else None
        for a in ANGLES:
            more, rise = 0.0 if n >= 0 else n * log(np.cos(a / 2)), y * a
            if self.above:
                phase = np.arctan2(share * np.sin(a), 1 - share * (1 - np.cos(a)))
                far = np.maximum(y * phase, y * (a - 0.1) + np.maximum(beyond + 0.1 * y, -40.0))
                rise = max(0.0, far.min())
            lift = self.steep * (s * a) ** 2 / 2
            most = max(most, 2 * pi * s**2 * a / (lift + rise + need + more))
        return float(most), float((u[-1] - u[0]) * s**2 / most)

    def lifts(self, c):
        """A function of a height: logs of the lifted sums at all angles, of all and of the part
        that no cut below keeps."""
        u, loss, terms = self.terms(c)
        share, angle = np.exp(log(self.rate) + u - loss), LIFTS[:, None]
        turned = np.log1p(-4 * np.sin(angle / 2) ** 2 * share * (1 - share))
        body = terms + self.power(c) / 2 * turned + self.steep * (self.sigma * angle) ** 2 / 2
        phase = np.arctan2(share * np.sin(angle), 1 - share * (1 - np.cos(angle)))
        most, part = total(terms), self.between(u) if self.below else 0.0

        def at(y):
            here = body - y * phase
            return np.minimum(total(here), most), total(here + part)

        return at


def total(logs):
    """log of the sums of exp, along the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return (top + np.log(np.exp(logs - top).sum(axis=-1, keepdims=True)))[..., 0]
