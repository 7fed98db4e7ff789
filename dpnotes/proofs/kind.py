"""A kind of sampled Gaussian step in floating point, for ``plan``."""

from dataclasses import dataclass
from math import e, erf, log, log1p, pi, sqrt

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

    def left(self, c):
        """log of what may be left of the window, as a part of M."""
        return self.power(c) * np.log1p(-self.rate) - self.real(c) if self.way < 0 else 0.0

    def turned(self, c, angle):
        """log of what a lift by this angle multiplies the outcomes beyond the window by."""
        return max(self.power(c) * log(np.cos(angle / 2)), 0.0)

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
        s, most, (u, loss, terms) = self.sigma, 0.0, self.terms(c)
        share = np.exp(log(self.rate) + u - loss)
        beyond = np.logaddexp.accumulate(terms[::-1])[::-1] - total(terms) if self.way > 0 else None
        for a in ANGLES:
            more, rise = self.turned(c, a), y * a
            if self.way > 0 and a < pi / 2:
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


@dataclass
class Swapped:
    """A kind of Gaussian step sampled under substitution; as ``replaced`` sums it."""

    sigma: float
    rate: float
    times: int
    above = below = ()
    steep = 1.0

    @property
    def unit(self):
        return min(1.0, self.sigma)

    def left(self, _):
        return 0.0

    def turned(self, *_):
        return 0.0

    def nodes(self, c, angle=0.0):
        """Losses at nodes that are turned by an angle, and log of the terms of both halves."""
        s, c = self.sigma, max(c, -1 - c)
        last = (1 + c) / s + 12
        if last > 600 * self.unit:
            raise Far("the tilt is too large")
        t, step = np.linspace(-45, last, int((45 + last) / (0.15 * self.unit)), retstep=True)
        t = t + 1j * angle if angle else t
        out = np.log1p(np.exp(t))
        loss = np.log1p(self.rate * np.expm1(out / s))
        log_p = t - out - (out + 0.5 / s) ** 2 / 2 + log(step / sqrt(2 * pi))
        return loss, log_p.real + np.multiply.outer((1 + c, -c), loss.real)

    def still(self):
        return log1p(-self.rate) + log(erf(1 / (sqrt(8) * self.sigma)))

    def real(self, c):
        return float(np.logaddexp(self.still(), total(total(self.nodes(c)[1]))))

    def spacing(self, c, y, need):
        most = 0.0
        for a in np.array(ANGLES) * self.unit / 2:
            lift = a * a / 2 + 2 / e * np.tan(a / 2) ** 2
            lift -= (1 + 0.5 / self.sigma) * np.log(np.cos(a / 2))
            most = max(most, 2 * pi * a / (lift + y * a / self.sigma + need))
        return float(most), (60 + need + (1 + c) / self.sigma) / most

    def lifts(self, c):
        parts = [self.nodes(c, angle * self.unit) for angle in LIFTS]
        phases = np.array([loss.imag for loss, _ in parts])
        halves, most = np.array([terms for _, terms in parts]), self.real(c)

        def at(y):
            sums = total(total(halves - y * phases[:, None]))
            sums[LIFTS > 1] = most  # where sums on nodes would need to be finer
            return np.minimum(np.logaddexp(self.still(), sums), most), 0.0

        return at


def total(logs):
    """log of the sums of exp, along the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return (top + np.log(np.exp(logs - top).sum(axis=-1, keepdims=True)))[..., 0]
