"""One step of a mechanism, seen through its privacy loss L = log p(X)/q(X), X ~ p.

Each kind of step answers the same few questions about the law of L; the numerics of composition
(``contour``, ``lattice``) ask nothing else:

``law(reach, band)``
    L as finitely many values with probabilities, equal to the true law for every moment
    E exp(zL) with -1 <= Re z <= reach and \\|Im z\\| <= band to 1e-15: a quadrature rule.
``cumulant(z)``, ``line(c, y)``
    K(z) = log E exp(zL) at real z, and K(c + iy) - K(c).
``ceiling(c, height)``
    A bound on log \\|E exp((c+iy)L)\\| - K(c) for every y >= height.
``cells(spacing, reach)``
    L as values with probabilities, fine enough to be binned with this spacing.
``given_finite()``
    The same step without its infinite loss.
``flipped()``
    The same step with p and q exchanged, K_QP(z) = K_PQ(-1-z).
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from . import laplace
from .law import (
    EPS,
    Law,
    derivatives,
    edges_between,
    exp_excess,
    gauss,
    inverse_mixed_loss,
    line_of_law,
    log_moment,
    mean_loss,
    mixed_loss,
)

__all__ = []


class Step:
    """What follows from ``law`` alone."""

    infinite = 0.0

    def log_at_top(self):
        """log of the probability of the largest finite loss."""
        return -np.inf

    def given_finite(self):
        """The step given that its loss is finite, P/(1 - infinite) against Q."""
        return self

    def smooth_limit(self):
        """The largest c for a line; K is only a bound beyond."""
        return np.inf

    def bottom(self):
        """The least loss."""
        return -self.flipped().top()

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        return log_moment(self.law(float(np.max(z)), 0.0), z)

    def spread(self):
        """The standard deviation of the loss, roughly."""
        return sqrt(float(self.derivatives(np.zeros(1))[2][0]))

    def cumulant_at(self, c):
        """K at one c."""
        return float(self.cumulant(np.array([c]))[0])

    def derivatives(self, z):
        return derivatives(self.law(float(np.max(z)), 0.0), z)

    def mean(self):
        return mean_loss(self.law(1.0, 0.0))

    def line(self, c, y):
        """K(c+iy) - K(c) for an array y, and a bound on its rounding error."""
        return line_of_law(self.law(c, float(y[-1])), c, y)


@dataclass(frozen=True)
class Gaussian(Step):
    """N(1, sigma^2) against N(0, sigma^2): L ~ N(mu^2/2, mu^2), mu = 1/sigma, so
    K(z) = mu^2 z(z+1)/2. Two of them compose to one with mu^2 summed."""

    mu: float

    def flipped(self):
        return self

    def top(self):
        return np.inf

    def tilt_limit(self, log_delta):
        return np.sqrt(2 * log_delta) / self.mu

    def work(self, c, band):
        return 1

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        return 0.5 * self.mu**2 * z * (z + 1)

    def derivatives(self, z):
        return self.cumulant(z), self.mu**2 * (z + 0.5), np.full_like(z, self.mu**2)

    def mean(self):
        return 0.5 * self.mu**2

    def line(self, c, y):
        value = self.mu**2 * (-0.5 * y * y + 1j * (c + 0.5) * y)
        return value, 4 * EPS * np.abs(value)

    def ceiling(self, c):
        return lambda height: -0.5 * (self.mu * height) ** 2

    def extent(self, reach):
        middle, width = 0.5 * self.mu**2, 11 * self.mu
        return middle - width - self.mu**2, middle + width + reach * self.mu**2

    def cells(self, spacing, reach):
        mean = 0.5 * self.mu**2
        edges = edges_between(*self.extent(reach), self.mu, spacing)
        loss, weight = gauss(edges)
        log_p = -0.5 * ((loss - mean) / self.mu) ** 2 - np.log(self.mu * np.sqrt(2 * np.pi))
        return Law(loss, log_p + np.log(weight))


@dataclass(frozen=True)
class Finite(Step):
    """Two laws on finitely many outcomes: the losses themselves."""

    losses: tuple
    log_p: tuple
    infinite: float = 0.0
    lost: float = 0.0
    errors: tuple = ()  # of losses and of log_p, where more than round-off (``finite_sums.errors``)

    def flipped(self):
        loss, log_p = np.array(self.losses), np.array(self.log_p)
        order = np.argsort(-loss, kind="stable")
        blur = np.array(self.errors)[:, order] if self.errors else ()
        errors = tuple(map(tuple, (blur[0], blur.sum(axis=0)))) if self.errors else ()
        losses, log_q = tuple(-loss[order]), tuple((log_p - loss)[order])
        return Finite(losses, log_q, self.lost, self.infinite, errors)

    def given_finite(self):
        log_kept = np.log1p(-self.infinite)
        losses, log_p = (
            tuple((np.array(x) - log_kept).tolist()) for x in (self.losses, self.log_p)
        )
        return Finite(losses, log_p, 0.0, self.lost)

    def top(self):
        return np.inf if self.infinite else max(self.losses)

    def bottom(self):
        return min(self.losses)

    def log_at_top(self):
        return max(zip(self.losses, self.log_p, strict=True))[1]

    def tilt_limit(self, log_delta):
        return 4e3 / max(map(abs, self.losses)) if any(self.losses) else np.inf

    def work(self, c, band):
        return len(self.losses)

    def law(self, reach, band):
        gap = self.lost - self.infinite
        return Law(np.array(self.losses), np.array(self.log_p), self.infinite, gap)

    def ceiling(self, c):
        return lambda height: 0.0

    def extent(self, reach):
        return min(self.losses), max(self.losses)

    def cells(self, spacing, reach):
        return self.law(reach, 0.0)


@dataclass(frozen=True)
class Laplace(Step):
    """Laplace noise, rate-subsampled: rate * Lap(1, b) + (1 - rate) * Lap(0, b) against Lap(0, b).

    Below 0 and above 1 the loss is constant (two atoms); between, u = (2x-1)/b runs from -1/b to
    1/b with q-density exp(-(u + 1/b)/2)/4, and the loss is log(1 + rate (e^u - 1)).
    """

    scale: float
    rate: float = 1.0
    sign: int = 1

    def flipped(self):
        return self if self.rate == 1 else replace(self, sign=-self.sign)

    def _loss(self, u):
        return self.sign * mixed_loss(u, self.rate)

    def top(self):
        return float(max(self._loss(1 / self.scale), self._loss(-1 / self.scale)))

    def log_at_top(self):
        """log of half of rate + (1 - rate) exp(-1/b), the mixture's atom, or of a half."""
        mixed = np.log(self.rate + (1 - self.rate) * np.exp(-1 / self.scale))
        return float((mixed if self.sign > 0 else 0.0) - np.log(2))

    def tilt_limit(self, log_delta):
        return 4e3 * self.scale

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        return laplace.cumulant(1 / self.scale, z) if self.rate == 1 else super().cumulant(z)

    def derivatives(self, z):
        if self.rate < 1:
            return super().derivatives(z)
        return laplace.derivatives(1 / self.scale, np.asarray(z, dtype=float))

    def mean(self):
        return float(exp_excess(-1 / self.scale)) if self.rate == 1 else super().mean()

    def _panels(self, c, band):
        """Panels short enough for the loss (2) and for the phase or tilt along it (8)."""
        reach = 1 / self.scale
        steepness = 1.0 if self.rate == 1 else max(self._slope(reach), self._slope(-reach))
        return 2 * reach * (0.5 + (min(abs(c), 1e3) + band) * steepness / 8)

    def _slope(self, u):
        return self.rate * np.exp(u - mixed_loss(u, self.rate))

    def work(self, c, band):
        return 16 * self._panels(c, band) + 2

    def law(self, reach, band):
        end = 1 / self.scale
        edges = np.linspace(-end, end, int(np.ceil(self._panels(reach, band))) + 1)
        if abs(reach) > 1e3:  # all weight within a few 1/reach of an end
            near = np.arange(1, 12) * min(4 / abs(reach), end / 12)
            edges = np.union1d(edges, np.concatenate([near - end, end - near]))
        return self._with_atoms(*gauss(edges))

    def extent(self, reach):
        return -self.flipped().top(), self.top()

    def cells(self, spacing, reach):
        end, (low, high) = 1 / self.scale, self.extent(reach)
        grid = spacing * np.arange(np.ceil(low / spacing), np.floor(high / spacing) + 1)
        inside = np.clip(inverse_mixed_loss(self.sign * grid, self.rate), -end, end)
        coarse = np.linspace(-end, end, int(8 * end * (1 + min(reach, 1e3))) + 3)
        edges = np.unique(np.concatenate([inside, coarse]))
        return self._with_atoms(*gauss(edges))

    def _with_atoms(self, u, weight):
        end = 1 / self.scale
        log_q = np.concatenate(
            [[-np.log(2)], -(u + end) / 2 - np.log(4) + np.log(weight), [-np.log(2) - end]]
        )
        loss = mixed_loss(np.concatenate([[-end], u, [end]]), self.rate)
        return Law(self.sign * loss, log_q + loss if self.sign > 0 else log_q)

    def ceiling(self, c):
        """Atoms do not decay; the density w(u) between does, by one integration by parts:
        \\|int w e^{(c+iy)L} du\\| <= (g(-a) + g(a) + total variation of g) / y with a = 1/b and
        g = w e^{cL} / \\|L'\\| = exp(-(a+3u)/2) G^n / (4 rate), G = 1 - rate + rate e^u,
        n = 2 + c (mixture against q) or 1 - c.

        (log g)' = -3/2 + n rate e^u / G is negative throughout if n <= 3/2 and increases
        otherwise: g falls, or has one minimum. So it varies by g(-a) + g(a) - 2 min g, and the
        bound is 2 (g(-a) + g(a) - min g) / y.
        """
        end, power = 1 / self.scale, 2 + c if self.sign > 0 else 1 - c
        u = np.array([-end, end, np.clip(self._lowest(power), -end, end)])
        mixed, cumulant = mixed_loss(u, self.rate), self.cumulant_at(c)
        g = power * mixed - (end + 3 * u) / 2 - np.log(4 * self.rate) - cumulant
        atoms = self._with_atoms(np.zeros(1), np.ones(1))
        atoms = (atoms.log_p + c * atoms.loss - cumulant)[[0, -1]]
        slack = 1 + EPS * (16 + 4 * (abs(power) + abs(c) + 2) * (end + 2))  # of all exponents
        atoms = np.exp(atoms).sum() * slack
        g = np.exp(np.minimum(g, 700.0))  # more says nothing at any height
        variation = 2 * (g[:2].sum() * slack - g[2])
        return lambda height: min(0.0, float(np.log(atoms + variation / height)))

    def _lowest(self, power):
        """The u where power * rate e^u / G = 3/2."""
        if power <= 1.5:
            return np.inf
        share = 1.5 / power
        with np.errstate(divide="ignore"):
            return np.log((1 - self.rate) / self.rate) + np.log(share / (1 - share))
