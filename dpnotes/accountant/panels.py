"""Densities between atoms: Laplace noise, sampled or not; Gaussian noise under substitution.

In terms of u, the loss of the step without sampling, q has the density exp(-(u + a)/2) / 4 on
(-a, a) for Laplace noise (a = 1/scale), and a normal one for Gaussian noise. The sampled loss is
m(u) = log G, G = 1 + rate (e^u - 1). Gauss-Legendre panels over u are the rule.

How M falls: for a density g of the loss, integrating by parts once shows that
abs(int g(L) e^(iyL) dL) is at most 2/y times the sum of the local maxima of g, ends included. Under
a tilt all densities here are exp(b - s u^2/2 - 3u/2) G^n / rate with s >= 0. Then (log g)' is a
sigmoid minus a line, or a sigmoid plus a constant, so g has at most two local maxima.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import erf, exp, expm1, inf, log, pi, sqrt

import numpy as np

from ..numerics import gauss, quotient
from .law import EPS, Rule, Step
from .sampled_gaussian import SampledGaussian, mixed_loss

LATE = 64.0  # above this height, in units of 1/a, the closed form of M is used


def falling(atoms, peaks):
    """A bound on log abs(M) at heights, for atoms of this mass and densities of these maxima."""
    rise = 4 * sum(peaks)  # a density varies by twice the sum of its maxima, at most two
    return lambda height: min(0.0, log(atoms + rise / height) if height > 0 else 0.0)


def peak(log_density):
    """The largest value of a density, from a mesh on which its logarithm moves by at most 0.1 near
    its maxima."""
    return float(np.exp(min(np.max(log_density, initial=-inf) + 0.1, 600.0)))


@dataclass(frozen=True)
class Laplace(Step):
    """The mixture rate Lap(1, scale) + (1 - rate) Lap(0, scale) against Lap(0, scale), or with
    ``side`` -1 the reverse: atoms at u = -a and a."""

    scale: float
    rate: float = 1.0
    side: int = 1

    @cached_property
    def end(self):
        """1/scale, rounded up: the largest loss of a step is told as its epsilon."""
        return quotient(1, self.scale, inf)

    def flipped(self):
        return self if self.rate == 1 else replace(self, side=-self.side)

    def top(self):
        if self.rate == 1:
            return self.end
        return float(abs(mixed_loss(self.side * self.end, self.rate))) * (1 + 4 * EPS)

    def log_at_top(self):
        mixed = log(self.rate + (1 - self.rate) * exp(-self.end)) if self.side > 0 else 0.0
        return mixed - log(2)

    def tilt_limit(self):
        return 4e3 * self.scale

    def log_q(self, u):
        return -(u + self.end) / 2 - log(4)

    def _panels(self, c, band):
        """How many panels: short enough for the loss (2, or 1 under a tilt) and its phase."""
        steepness = 1.0 if self.rate == 1 else max(self._slope(self.end), self._slope(-self.end))
        width = min(2.0 if abs(c) <= 1 else 1.0, 8 / (band * steepness + 1e-300))
        return int(np.ceil(2 * self.end / width))

    def edges(self, c, band):
        """Ends of panels of 16 nodes; next to the end where a tilt leaves its weight, ever shorter
        ones."""
        count = self._panels(c, band)
        edges, width = np.linspace(-self.end, self.end, count + 1), 2 * self.end / count
        first = 4 / (1 + abs(1 + c) * self._slope(self.side * self.end))
        count = max(0, int(np.ceil(np.log(width / first) / log(1.5)))) + 1
        steps = 2 * first * (1.5 ** np.arange(1, count + 1) - 1)
        near = self.side * (self.end - steps[steps < 2 * self.end])
        return np.union1d(edges, near)

    def _slope(self, u):
        return float(self.rate * np.exp(u - mixed_loss(u, self.rate)))

    def size(self, c, band):
        return 16 * self._panels(c, band)

    def work(self, c, h, count, room):
        return 60 * count if self._late(h * count) else super().work(c, h, count, room)

    def _late(self, height):
        return self.rate == 1 and height * self.end > LATE

    @lru_cache(maxsize=4)  # noqa: B019 (of a frozen value, and few)
    def rule(self, c, band):
        u, weight = gauss(self.edges(c, band))
        log_q = np.concatenate([[-log(2)], self.log_q(u) + np.log(weight), [-log(2) - self.end]])
        loss = mixed_loss(np.concatenate([[-self.end], u, [self.end]]), self.rate)
        return Rule(self.side * loss, log_q + loss if self.side > 0 else log_q)

    def along(self, c, h, count, room=0.0):
        """Unsampled, M(z) = e^(-a/2) (cosh s + (a/2) (sinh s)/s), s = (z + 1/2) a, is even in s."""
        if not self._late(h * count):
            return super().along(c, h, count, room)
        far, angle = abs(c + 0.5) * self.end or 1e-300, h * self.end * np.arange(count)
        s = far + (1j if c >= -0.5 else -1j) * angle
        sine, shrunk, rise = np.sin(s.imag), exp(-2 * far), np.empty(count, dtype=complex)
        rise.real = expm1(-2 * far) - 2 * shrunk * sine**2  # e^(-2s) - 1
        rise.imag = -2 * shrunk * sine * np.cos(s.imag)
        turned = 1 + rise * (0.5 - self.end / 4 / s)  # M e^-s, up to a constant; it has zeros
        value = s + np.log(turned)
        value -= value[0].real
        noise = EPS * (4 + 2 * (far + angle) + 2 * (abs(value.real) + abs(value.imag)))
        return value, noise / np.clip(abs(turned), 1e-100, 1.0)

    def falls(self, c):
        loss, log_p, *_ = self.rule(c, 0.0)
        tilted = log_p + c * loss - self.cumulant(c)[0]
        u = np.linspace(-self.end, self.end, 3)
        power = 2 + c if self.side > 0 else 1 - c
        density = self.log_q(u) - u + power * mixed_loss(u, self.rate) - log(self.rate)
        density -= self.cumulant(c)[0]  # g has no maximum but at its ends
        return falling(np.exp(tilted[[0, -1]]).sum() * (1 + 1e-12), [peak(density)])


@dataclass(frozen=True)
class Symmetrised(SampledGaussian):
    """Gaussian noise sampled under substitution: N(1, sigma^2) and N(0, sigma^2) at the outcome
    x = 1/2 + sigma^2 u. Outcomes of u > 0 have the loss m(u), with the mass of the mixture, or
    -m(u), with that of q; what is left loses nothing. It is its own reverse (Balle, Barthe and
    Gaboardi 2018, Theorem 2; Lebeda et al. 2024)."""

    def flipped(self):
        return self

    def log_rest(self):
        """log of the mass of what loses nothing."""
        return log((1 - self.rate) * erf(sqrt(0.125) / self.sigma))

    def log_q(self, u):
        return log(self.sigma / sqrt(2 * pi)) - 0.5 * (0.5 / self.sigma + self.sigma * u) ** 2

    @lru_cache(maxsize=16)  # noqa: B019
    def edges(self, c, band):
        ends = ((x - 0.5) / self.sigma**2 for x in self._window(abs(c)))
        first, last = (max(u, 0.0) for u in ends)
        width = min(0.6 / self.sigma, 2.4, 8 / (band + 1e-300))
        return np.linspace(first, last, int((last - first) / width) + 2)

    def size(self, c, band):
        narrowest = max(self.sigma / 0.6, 0.42, band / 8)  # 1 / width
        return 32 * self._window(abs(c))[1] / self.sigma**2 * narrowest

    @lru_cache(maxsize=4)  # noqa: B019
    def rule(self, c, band):
        u, weight = gauss(self.edges(c, band))
        loss, log_q = mixed_loss(u, self.rate), self.log_q(u) + np.log(weight)
        return Rule(
            np.concatenate([-loss, [0.0], loss]),
            np.concatenate([log_q, [self.log_rest()], log_q + loss]),
        )

    def falls(self, c):
        cumulant = self.cumulant(c)[0]
        edges = self.edges(c, 0.0)
        u = (edges[:-1, None] + np.diff(edges)[:, None] * np.arange(65) / 64).ravel()
        bare = self.log_q(u) - u - log(self.rate) - cumulant
        peaks = [peak(bare + power * mixed_loss(u, self.rate)) for power in (2 + c, 1 - c)]
        return falling(exp(self.log_rest() - cumulant) * (1 + 1e-12), peaks)
