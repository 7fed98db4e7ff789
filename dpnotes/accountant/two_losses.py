"""Two losses, many rounds: a window of the binomial law, or one period of its integral.

With h the distance of the two losses, l_n = k low + n h and e = l_n - g, 0 < g <= h,

    t(e) = (1/2 pi) int E exp(z (L - l_n)) G(z) dtheta   over z h = c h + i theta, |theta| <= pi,
    G(z) = 1/(1 - exp(-zh)) - exp(-g)/(1 - exp(-(z+1)h)),   c > 0 (-r(e) if -1 < c < 0):

the geometric series of (1 - exp(e - l_i)) over i >= n. Everything has the period 2 pi in theta. N
equally spaced nodes give the sum over all m of t(e + m N h) exp(c m N h) exactly; Chernoff's bound
serves m != 0. The tilted law is binomial again, |E exp(i theta J)|^2 = (1 - 4 pq sin^2(theta/2))^k,
falls up to pi, and so bounds what lies beyond the last node that is computed.
"""

from math import asin, ceil, exp, expm1, floor, inf, log, log1p, pi, sqrt, tanh

import numpy as np

from .._scipy import expit
from . import contour
from .binomial import atoms, chances, log_law
from .finite_sums import Exact
from .kept import Kept, enclosed, outward
from .law import EPS
from .work import ExhaustedError, spend

__all__ = []

ALL = 20_000  # rounds, up to which all values are listed
MOST_NODES = 200_000
MOST_VALUES = 30_000  # of a window; a longer one is smooth enough for few nodes
VALUE = 200  # work of one of them, or of a node


class Binomial(Kept):
    """k > ``ALL`` rounds of a step with two losses: at each e a window of the values, or nodes."""

    def __init__(self, step, k):
        super().__init__(((step, k),))
        self.step, self.k = step, k
        self.gap = step.losses[1] - step.losses[0]
        self.logit, self.noise = chances(step)
        self.top = enclosed(*atoms(step, k, np.array([float(k)]))[:3])

    def tail(self, epsilon):
        return self._enclosed(epsilon, 1)

    def rest(self, epsilon):
        return self._enclosed(epsilon, -1)

    def _enclosed(self, epsilon, side):
        n = floor(epsilon / self.gap - self.step.losses[0] / self.gap * self.k) + 1
        n = min(max(n, 0), self.k)
        first, last = self._window(n, side)
        if last - first > MOST_VALUES:
            return self._from_nodes(epsilon, side, n)
        spend(VALUE * (last - first))
        exact = Exact(self.parts, atoms(self.step, self.k, np.arange(first, last + 1.0)))
        low, high = exact.tail(epsilon) if side > 0 else exact.rest(epsilon)
        return low, min(1.0, high + self._omitted(exact, epsilon, side, first, last))

    def _window(self, n, side):
        """What t or r sums over, but for what is 14 deviations away from n and from the mean."""
        mean = self.k * float(expit(self.logit))
        ends = [(x, 60 + 14 * sqrt(x * (1 - x / self.k) + 1)) for x in (n, mean)]
        (n, near), (mean, wide) = ends
        right = min(near, 60 - 45 / min(self._fall(n, 1, side), -1e-9))
        if side > 0:
            first = max(n - 3, mean - wide)
            last = n + right if n > mean else mean + wide
        else:
            left = min(near, 60 - 45 / min(self._fall(n, -1, side), -1e-9))
            first = n - left if n < mean else mean - wide
            last = min(n + right, max(mean + wide, n + 3))
        first = min(max(0, int(first)), self.k - 3)
        return first, min(self.k, max(int(last), first + 3))

    def _fall(self, n, way, side):
        """log of the quotient of the terms at n + way and n (before the threshold: of all r)."""
        if way > 0:
            fall = log((self.k - n) / (n + 1)) if n < self.k else -inf
            return fall + self.logit - (self.gap if side < 0 else 0.0)
        return (log(n / (self.k - n + 1)) if n > 0 else -inf) - self.logit

    def _omitted(self, exact, epsilon, side, first, last):
        """Geometric series over the terms beyond both ends, whose quotients fall outwards."""
        k, total = self.k, 0.0
        beyond = max(0.0, float(exact.loss[-1]) - epsilon)
        if last < k:
            start = exact.log_p[-1] - (beyond if side < 0 else 0)
            total += _series(start, self._fall(last, 1, side))
        if first > 0 and (side < 0 or exact.loss[0] > epsilon):
            total += _series(exact.log_p[0], self._fall(first, -1, side))
        return total

    def _from_nodes(self, epsilon, side, n):
        """(0, 1) where t or r is so near 1 that it takes too many nodes: the other says more."""
        try:
            value, error = self.nodes(epsilon, side, n)
        except ExhaustedError:
            return 0.0, 1.0
        return outward(value * (1 - error), min(1.0, value * (1 + error)))

    def nodes(self, epsilon, side, n):
        """t(e) or r(e), and a bound on its relative error."""
        k, gap = self.k, self.gap
        c = contour.saddle_at(self.given, side, epsilon - self.log_kept)[0]
        logit = self.logit + c * gap
        tilt = logit - self.logit  # c h, for this very logit
        slip = self.noise + 2 * EPS * (abs(logit) + abs(self.logit) + gap)
        variance = k * float(expit(logit)) * float(expit(-logit))
        period = ceil(max(30 * sqrt(variance), 50 / min(abs(tilt), tilt + gap if side < 0 else 1)))
        angle = 2 * asin(min(1.0, sqrt(-expm1(-90 / k) * k / variance) / 2))
        count = int(angle * period / (2 * pi)) + 2
        if count > MOST_NODES:
            raise ExhaustedError
        spend(VALUE * count)
        theta = 2 * pi / period * np.arange(count)
        sizes, turns = self._shape(n, logit, variance, theta)
        loss, fine, shift = (float(v[0]) for v in atoms(self.step, k, np.array([float(n)]))[:3])
        left = min(max((loss - epsilon) + fine, 0.0), gap)
        z, log_phase = tilt + 1j * theta, sizes + 1j * turns[0]
        total, slope, spread, cut = sums(log_phase, z, gap, left, period)
        noise = spread @ (EPS * (40 + 8 * np.abs(sizes) + 4 * turns[1]) + 2 * slip / abs(tilt))
        noise += spread.sum() * 2 * slip / (tilt + gap) + cut + 3 * shift * slope
        p = float(expit(logit))
        noise += aliases(
            lambda w: k * (log1p(p * expm1(w)) - w * p) + w * (k * p - n),
            *(8 / sqrt(variance), tilt, gap, side, period),
        )
        (first, one_error), (second, other_error) = (
            [float(v[0]) for v in log_law(np.array([float(n)]), k, *at)]
            for at in ((self.logit, self.noise), (logit, 0.0))
        )
        front = exp(first - second)
        error = noise / total + one_error + other_error + EPS * (8 + abs(first) + abs(second))
        return front * total, min(1.01 * error, 1.0)

    def _shape(self, n, logit, variance, theta):
        """log of E exp(i theta (J - n)) under the tilted law: log modulus; phase, and its terms."""
        sizes = 0.5 * self.k * np.log1p(-4 * variance / self.k * np.sin(theta / 2) ** 2)
        turned = self.k * np.arctan(tanh(logit / 2) * np.tan(theta / 2))
        moved = theta * (0.5 * self.k - n)
        return sizes, (moved + turned, np.abs(moved) + np.abs(turned))


def sums(log_phase, z, gap, left, period):
    """The sum over nodes of E exp(z (L - l_n)) G(z), and that for its slope, from the logs of the
    first factor; the sizes of the first one's terms; and a bound on what is beyond the last node,
    where exp(-44) is left of them."""
    one, other = -np.expm1(-z), -np.expm1(-(z + gap))
    kernel = (-expm1(-left) - np.exp(-z - left) * expm1(left - gap)) / one / other
    terms = np.exp(log_phase) * (2 / period)
    terms[0] *= 0.5
    total, slope = abs((terms * kernel).sum().real), abs((terms / other).sum().real)
    return total, slope, np.abs(terms * kernel), exp(-44) * abs(kernel[0])


def aliases(rise, best, tilt, gap, side, period):
    """sum over m != 0 of t(e + m N h) exp(c m N h), relative to the front factor: Chernoff's bound
    at tilts w higher and lower, which t <= 1 allows down to 0, and r between -h and 0; the log of
    E exp(w J) moves by ``rise(w)``."""
    up = best if side > 0 else min(best, -tilt)
    down = min(best, tilt if side > 0 else tilt + gap)
    return sum(1.1 * exp(min(rise(w) + 1e-3 - abs(w) * period, 600.0)) for w in (up, -down))


def _series(log_first, log_quotient):
    """The sum of a geometric series after its first term, rounded up; 1 if it grows."""
    if log_quotient >= 0:
        return 1.0
    return 1.001 * exp(min(log_first + log_quotient, 0.0)) / -expm1(log_quotient)
