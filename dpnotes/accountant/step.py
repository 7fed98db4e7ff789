"""One step of a mechanism, seen through its privacy loss L = log p(X)/q(X), X ~ p.

Each kind of step answers the same few questions about the law of L; the numerics of composition
(``contour``, ``lattice``) ask nothing else:

``law(reach, band)``
    L as finitely many values with probabilities, equal to the true law for every moment
    E exp(zL) with -1 <= Re z <= reach and \\|Im z\\| <= band to 1e-15: a quadrature rule.
``cumulant(z)``, ``cumulant_noise(c)``, ``line(c, y)``
    K(z) = log E exp(zL) at real z; its round-off at c; and K(c + iy) - K(c).
``ceiling(c, height)``
    A bound on log \\|E exp((c+iy)L)\\| - K(c) for every y >= height.
``cells(spacing, reach)``
    L as values with probabilities, fine enough to be binned with this spacing.
``given_finite()``
    The same step without its infinite loss.
``flipped()``
    The same step with p and q exchanged, K_QP(z) = K_PQ(-1-z).
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from .law import (
    EPS,
    Law,
    derivatives,
    gauss_between,
    line_of_law,
    log_moment,
    mean_loss,
    moment_noise,
    multiples,
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

    def _law_up_to(self, reach):
        """The law for all tilts up to this one, or None where each has a shorter one of its own."""
        return self.law(reach, 0.0)

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        law = self._law_up_to(float(np.max(z)))
        if law is None:
            return np.array([float(log_moment(self.law(c, 0.0), c)) for c in z.tolist()])
        return log_moment(law, z)

    def spread(self):
        """The standard deviation of the loss, roughly."""
        return sqrt(float(self.derivatives(np.zeros(1))[2][0]))

    def cumulant_at(self, c):
        """K at one c."""
        return float(self.cumulant(np.array([c]))[0])

    def cumulant_noise(self, c):
        """A bound on the round-off of ``cumulant_at``, in EPS, beyond 8 EPS of K itself."""
        return moment_noise(self.law(c, 0.0), c, self.cumulant_at(c))

    def derivatives(self, z):
        law = self._law_up_to(float(np.max(z)))
        if law is None:
            return tuple(np.array([derivatives(self.law(c, 0.0), c) for c in z.tolist()]).T)
        return derivatives(law, z)

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

    def cumulant_noise(self, c):
        return 0.0

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

    def cells(self, spacing, reach, least):
        mean = 0.5 * self.mu**2
        loss, weight = self._mesh(spacing, reach, least)
        log_p = -0.5 * ((loss - mean) / self.mu) ** 2 - np.log(self.mu * np.sqrt(2 * np.pi))
        return Law(loss, log_p + np.log(weight))

    def _mesh(self, spacing, reach, least):
        """Around the law and the tilted one; between the two nothing weighs anything."""
        shift, width = reach * self.mu**2, 11 * self.mu
        first = 0.5 * self.mu**2 - width
        ends = [(first, first + shift + 2 * width)]
        if shift > 100 * self.mu:
            ends = [(a, a + 2 * width) for a in (first, first + shift)]
        meshes = [
            gauss_between(
                np.linspace(a, b, int(2 * (b - a) / self.mu) + 2),
                multiples(spacing, max(a, least), b),
            )
            for a, b in ends
        ]
        return (np.concatenate(part) for part in zip(*meshes, strict=True))


@dataclass(frozen=True)
class Finite(Step):
    """Two laws on finitely many outcomes: the losses themselves."""

    losses: tuple
    log_p: tuple
    infinite: float = 0.0
    lost: float = 0.0
    errors: tuple = ()  # of losses and of log_p, where more than round-off (``finite_sums.errors``)

    def __hash__(self):
        return self._hash

    @cached_property
    def _hash(self):
        """Once: a law may have a million losses, and be looked up a hundred times."""
        return hash((self.losses, self.log_p, self.infinite, self.lost, self.errors))

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
        return self._law

    @cached_property
    def _law(self):
        gap = self.lost - self.infinite
        return Law(np.array(self.losses), np.array(self.log_p), self.infinite, gap)

    def ceiling(self, c):
        return lambda height: 0.0

    def extent(self, reach):
        return min(self.losses), max(self.losses)

    def cells(self, spacing, reach, least):
        return self.law(reach, 0.0)
