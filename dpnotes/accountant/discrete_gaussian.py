"""Discrete Gaussian noise on whole numbers: P(z) proportional to exp(-z^2/(2 sigma^2)).

At sensitivity s the loss is L = s (2Z + s)/(2 sigma^2), so k rounds lie on the lattice
l_n = s (2n + k s)/(2 sigma^2) of spacing h = s/sigma^2. With f(a) the sum over n of
exp(-(n-a)^2/(2 sigma^2)),

    K(z) = z (z+1) s^2/(2 sigma^2) + log f(z s) - log f(0),

and under the law tilted by exp(cL) the noise is a discrete Gaussian with centre c s. One round is
summed over a window; k rounds are one period of the integral, as in ``two_losses``: N equally
spaced nodes give the sum over all m of t(e + m N h) exp(c m N h) exactly, Chernoff's bound serves
m != 0. By Jacobi's product abs(E exp(i theta Z)) falls from 0 to pi for every tilt, for each factor
abs(1 + a exp(i theta)), a > 0, does: that bounds what lies beyond the last node.

Round-off, as modelled: elementary functions to 4 EPS; log of the characteristic function of one
round to 4 EPS of itself and 8 EPS of Poisson's other terms; windows of NEAR deviations.
"""

from dataclasses import dataclass
from math import ceil, erfc, exp, floor, inf, log, pi, sqrt

import numpy as np

from . import contour
from .finite_sums import Exact
from .kept import Kept, outward
from .law import EPS, Law, log1p_complex, mean_phase
from .step import Finite, Step
from .two_losses import MOST_NODES, aliases, sums
from .work import ExhaustedError, spend

__all__ = []

REACH = 38.4  # standard deviations: exp(-REACH^2/2) is 1e-320
NEAR = 12.0  # and those of a law of which moments are asked: exp(-NEAR^2/2) is 5e-32
WIDEST = 48.0  # of the sum: a period has this many standard deviations
NODE = 400  # work of a node
WIDE = 3900.0  # sigma, from which on a window holds more than 300,000 values


@dataclass(frozen=True)
class DiscreteGaussian(Step):
    """s + Z against Z, for a whole number s."""

    sigma: float
    sensitivity: int

    def flipped(self):
        return self

    def top(self):
        return inf

    def tilt_limit(self, log_delta):
        return sqrt(2 * log_delta) * self.sigma / self.sensitivity

    def mean(self):
        return 0.5 * (self.sensitivity / self.sigma) ** 2

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        ratio = self.sensitivity / self.sigma
        return 0.5 * z * (z + 1) * ratio**2 + log_shift(z * self.sensitivity, self.sigma)

    def derivatives(self, z):
        s, sigma = self.sensitivity, self.sigma
        if sigma < 1:
            return super().derivatives(z)
        j, z = np.arange(1, 4), np.asarray(z, dtype=float)
        q, turn = 2 * np.exp(-2 * (pi * sigma * j) ** 2), 2 * pi * j * z[..., None] * s
        f = 1 + (q * np.cos(turn)).sum(-1)
        slope = -(2 * pi * j * s * q * np.sin(turn)).sum(-1) / f
        bend = -((2 * pi * j * s) ** 2 * q * np.cos(turn)).sum(-1) / f - slope**2
        unit = (s / sigma) ** 2
        return self.cumulant(z), unit * (z + 0.5) + slope, unit + bend

    def log_norm(self):
        """log f(0)."""
        n = np.arange(1, ceil(NEAR * self.sigma) + 2)
        return float(np.log1p(2 * np.exp(-0.5 * (n / self.sigma) ** 2).sum()))

    def values(self, z):
        """The losses of noise z, and their log probabilities."""
        s, sigma = self.sensitivity, self.sigma
        return s * (2 * z + s) / (2 * sigma**2), -0.5 * (z / sigma) ** 2 - self.log_norm()

    def law(self, reach, band):
        width = ceil(NEAR * self.sigma) + 2
        first, last = -self.sensitivity - width, ceil(max(reach, 0) * self.sensitivity) + width
        return Law(*self.values(np.arange(first, last + 1.0)))

    def window(self):
        """Noise from -(m + s) to m, and a bound on the probability beyond: by P(Z >= m + 1) <=
        (1/2) erfc(m/(sigma sqrt 2)) sigma sqrt(2 pi)/f(0), and f(0) >= max(1, sigma sqrt(2 pi))."""
        m = ceil(REACH * self.sigma)
        beyond = 1.0001 * max(erfc(m / (self.sigma * sqrt(2))), 1e-300)
        return np.arange(-m - self.sensitivity, m + 1.0), beyond

    def truncated(self):
        """The pair that dominates this one and is finite (X-lattice-loss): what lies beyond the
        window is an infinite loss. The window of outcomes is symmetric, so ``lost`` is the same.
        Beyond WIDE a query would take more memory and time than it may."""
        if self.sigma > WIDE:
            raise ValueError(
                f"sigma of discrete_gaussian must be at most {WIDE} where it is subsampled or run"
                f" together with other losses, got {self.sigma!r}"
            )
        z, beyond = self.window()
        loss, log_p = self.values(z)
        return Finite(tuple(loss.tolist()), tuple(log_p.tolist()), beyond, beyond)


def log_shift(a, sigma):
    """log f(a) - log f(0), at most 0 and of period 1, without an absolute error near 0; below
    sigma 1 to a few EPS of (a/sigma)^2, above of itself."""
    a = np.abs(a - np.round(a))[..., None]
    if sigma >= 1:  # Poisson: f(a) is proportional to 1 + 2 sum_j exp(-2 pi^2 sigma^2 j^2) cos
        j = np.arange(1, 4)
        q = np.exp(-2 * (pi * sigma * j) ** 2)
        return np.log1p(-4 * (q * np.sin(pi * j * a) ** 2).sum(-1) / (1 + 2 * q.sum()))
    n = np.arange(1, 16)
    t = a / sigma**2
    rise = np.exp(-0.5 * (n / sigma) ** 2 + n * t) * np.expm1(-n * t) ** 2
    norm = 1 + 2 * np.exp(-0.5 * (n / sigma) ** 2).sum()
    return np.log1p(rise.sum(-1) / norm) - 0.5 * (a[..., 0] / sigma) ** 2


def log_characteristic(off, sigma, theta):
    """log of E exp(i theta Z) for Z with weights exp(-(n - off)^2/(2 sigma^2)), abs(off) <= 1/2 and
    0 <= theta <= pi, and a bound on its error: by Poisson's sum if sigma >= 1, else over values."""
    if sigma < 1:
        n = np.arange(-14.0, 15.0)
        log_p = -0.5 * ((n - off) / sigma) ** 2
        weights = np.exp(log_p - log_p.max())
        return mean_phase(weights / weights.sum(), n, np.abs(log_p) + 20, theta)
    j = np.array([-3, -2, -1, 1, 2, 3])[:, None]
    turns = np.exp(-2j * pi * off * j)
    rise = np.exp(-0.5 * sigma**2 * ((theta - 2 * pi * j) ** 2 - theta**2)) * turns
    still = (np.exp(-2 * (pi * sigma * j) ** 2) * turns).sum().real
    value = -0.5 * (sigma * theta) ** 2 + 1j * off * theta
    total = rise.sum(0)
    value += log1p_complex(total.real, total.imag) - np.log1p(still)  # NumPy's own loses digits
    return value, EPS * (4 * np.abs(value) + 8 * np.abs(rise).sum(0) + 1e-6)


def alone_or_finite(parts):
    """The parts as they are, if there is one kind; else with finite laws for discrete Gaussians."""
    if len(parts) == 1:
        return parts
    return tuple((s.truncated() if isinstance(s, DiscreteGaussian) else s, k) for s, k in parts)


def exact(parts):
    """The exact sum of k rounds."""
    (step, k) = parts[0]
    return Rounds(step, k) if k > 1 else one_round(step)


def one_round(step):
    """The values in the window, and a bound on what is left out."""
    z, beyond = step.window()
    loss, log_p = step.values(z)
    shift, noise = 4 * EPS * np.abs(loss), EPS * (8 + 4 * np.abs(log_p))
    found = Exact(((step, 1),), (loss, 0 * loss, shift, log_p, noise), log(beyond))
    found.top = inf, inf
    return found


class Rounds(Kept):
    """k > 1 rounds: nodes on one period at each e."""

    def __init__(self, step, k):
        super().__init__(((step, k),))
        self.step, self.k, self.top = step, k, (inf, inf)
        self.gap = step.sensitivity / step.sigma**2

    def tail(self, epsilon):
        return self._enclosed(epsilon, 1)

    def rest(self, epsilon):
        return self._enclosed(epsilon, -1)

    def _enclosed(self, epsilon, side):
        """(0, 1) where t or r is so near 1 that it takes too many nodes: the other says more."""
        try:
            return self._from_nodes(epsilon, side)
        except ExhaustedError:
            return 0.0, 1.0

    def _from_nodes(self, epsilon, side):
        """(low, high) around t(e) or r(e)."""
        step, k, gap = self.step, self.k, self.gap
        c = contour.saddle_at(self.parts, side, epsilon)[0]
        n = floor(epsilon / gap - 0.5 * k * step.sensitivity) + 1
        slip = 8 * EPS * (abs(epsilon) / gap + k * step.sensitivity + abs(n))  # of the lattice
        left = min(max(gap * (n + 0.5 * k * step.sensitivity) - epsilon, 0.0), gap)
        tilt, deviation = c * gap, self._deviation(c)
        room = min(tilt, 1.0) if side > 0 else min(-tilt, tilt + gap)
        period = ceil(max(WIDEST * deviation, 100 / room, 64.0))
        theta, log_phase, noise = self._shape(c, n, period)
        total, slope, spread, cut = sums(log_phase, tilt + 1j * theta, gap, left, period)
        lost = spread @ (EPS * (40 + 8 * np.abs(log_phase)) + noise) + cut + 3 * slip * gap * slope
        here = step.cumulant_at(c)
        wrapped = aliases(
            lambda w: k * (step.cumulant_at(c + w / gap) - here) - w / gap * epsilon,
            *(8 / deviation, tilt, gap, side, period),
        )
        lost += wrapped * exp(min(c * left, 600.0))
        cumulant, moved = k * here, c * (epsilon + left)
        size = k * c * (c + 1) * step.mean()
        error = EPS * (16 + 8 * abs(moved) + 8 * abs(size)) + 2 * slip * abs(tilt)
        if cumulant - moved > 700 or not error < 1:
            return 0.0, 1.0
        front = exp(cumulant - moved)
        low, high = max(total - lost, 0.0) * (1 - error), (total + lost) * (1 + error)
        return outward(front * low, min(1.0, front * high))

    def _deviation(self, c):
        """The standard deviation of the sum of the noise under the tilted law."""
        variance = float(self.step.derivatives(np.array([c]))[2][0]) / self.gap**2
        return sqrt(self.k * max(variance, 1e-12))

    def _shape(self, c, n, period):
        """The nodes up to where exp(-44) is left (or pi), log E exp(i theta (sum - n)) there under
        the tilted law, and a bound on its error."""
        middle = round(c * self.step.sensitivity)
        off, count = c * self.step.sensitivity - middle, 64
        while True:
            count = min(2 * count, period // 2 + 1)
            if count > MOST_NODES:
                raise ExhaustedError
            spend(NODE * count)
            theta = 2 * pi / period * np.arange(count)
            value, noise = log_characteristic(off, self.step.sigma, theta)
            if count == period // 2 + 1 or self.k * float(value[-1].real) < -45:
                break
        drift = self.k * middle - n
        noise = self.k * noise + 4 * EPS * np.abs(theta * drift)
        log_phase = self.k * value + 1j * theta * drift
        if period % 2 == 0 and count == period // 2 + 1:
            log_phase[-1] -= log(2)  # the node at pi stands for itself alone
        return theta, log_phase, noise
