"""The Poisson-subsampled Gaussian step, whose law is a smooth integral over x."""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, expm1, log, log1p, pi, sqrt

import numpy as np
from scipy.special import ndtri_exp

from .law import (
    Law,
    derivatives,
    gauss,
    inverse_mixed_loss,
    line_of_law,
    log_moment,
    log_sum_exp,
    mean_phase,
    mixed_loss,
    mixed_loss_complex,
)
from .step import Step

__all__ = []

MOST_PANELS = 100_000  # of x, in one piece
SHIFTS = np.append(np.geomspace(1e-5, 1.0, 11), [1.4, 1.9, 2.4])  # d / sigma^2


@dataclass(frozen=True)
class SampledGaussian(Step):
    """rate * N(1, sigma^2) + (1 - rate) * N(0, sigma^2) against N(0, sigma^2).

    With u(x) = (x - 1/2)/sigma^2 the loss at x is log(1 + rate (e^u - 1)).
    """

    sigma: float
    rate: float
    sign: int = 1

    def flipped(self):
        return replace(self, sign=-self.sign)

    def loss(self, x):
        """The loss at x of p against q (of the mixture, whatever the sign)."""
        return mixed_loss((x - 0.5) / self.sigma**2, self.rate)

    def outcome(self, loss):
        """The x with this loss."""
        return 0.5 + self.sigma**2 * inverse_mixed_loss(loss, self.rate)

    def top(self):
        return np.inf if self.sign > 0 else -log1p(-self.rate)

    def far_end(self, log_mass):
        """An x beyond which p has a probability of at most exp(log_mass)."""
        sampled = 1 - self.sigma * ndtri_exp(min(log_mass - log(2 * self.rate), 0.0))
        return float(max(sampled, -self.sigma * ndtri_exp(log_mass - log(2))))

    def spread(self):
        """That of rate (e^u - 1), or of a loss of 1/sigma^2 at this rate, if that is less."""
        far = self.sigma**-2
        return sqrt(self.rate) * min(far, sqrt(self.rate * expm1(min(far, 700.0))))

    def tilt_limit(self, log_delta):
        """Beyond this c, the tilted law costs more than log_delta: cK' - K > log_delta."""
        tail = self.sigma * np.sqrt(2 * log_delta) - 2 * self.sigma**2 * np.log(self.rate) + 1
        return tail if self.sign > 0 else np.inf

    def _power(self, c):
        """E_p exp(zL) = E_q (1 + rate (e^u - 1))^a with a = 1 + z, or -z with p and q exchanged."""
        return 1 + c if self.sign > 0 else -c

    def _peak(self, power):
        """Where phi(x) exp(power * loss(x)) is largest: x = power * sigma^2 * loss'(x)."""

        def pull(x):  # power times e^u rate / (1 - rate + e^u rate)
            odds = (x - 0.5) / self.sigma**2 + log(self.rate) - log1p(-self.rate)
            return power / (1 + exp(min(-odds, 700.0)))

        if power >= 0:
            x, old = pull(power), power
            while abs(x - old) > 0.1 * self.sigma:
                x, old = pull(x), x
            return x
        low, high = power, 0.0
        while high - low > 0.1 * self.sigma:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if middle < pull(middle) else (low, middle)
        return low

    @lru_cache(maxsize=64)  # noqa: B019 (of a frozen value, and few)
    def _window(self, c):
        """Interval of x that holds all of q, of p and of the tilted law, to exp(-60)."""
        power = self._power(c)
        peak = self._peak(power)
        least = max(0.0, min(2.0, 1 - self.sigma**2 * log(self.rate))) + 11 * self.sigma
        floor = max(self._height(peak, power), self._height(0.0, power)) - 60
        low, high = max(peak, 0.0), max(power, 0.0) + 11 * self.sigma
        while high - low > 0.2 * self.sigma + 1e-12 * high:  # decreasing beyond the last peak
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._height(middle, power) > floor else (low, middle)
        return min(0.0, peak) - 11 * self.sigma, max(high, least)

    def _height(self, x, power):
        """log of phi(x) exp(power * loss(x)), up to a constant."""
        u = (x - 0.5) / self.sigma**2
        loss = log1p(self.rate * expm1(u)) if u < 500 else u + log(self.rate)
        return power * loss - 0.5 * (x / self.sigma) ** 2

    def _tilted_window(self, c):
        """Interval of x that holds the law tilted by exp(cL) alone."""
        power, (low, high) = self._power(c), self._window(c)
        peaks = np.array([0.0, self._peak(power)])  # both, which a coarse mesh may miss
        for _ in range(3):
            inside = peaks[(low < peaks) & (peaks < high)]
            x = np.union1d(np.linspace(low, high, 513), inside)
            height = power * self.loss(x) - x * x / (2 * self.sigma**2)
            kept = np.flatnonzero(height >= height.max() - 60)  # = where 60 is below round-off
            low, high = x[max(kept[0] - 1, 0)], x[min(kept[-1] + 1, len(x) - 1)]
        return low, high

    def _sharpness(self):
        """1/width of the narrowest Gaussian in the integrand."""
        return 1 / self.sigma

    def _log_weight(self, x):
        """log of the share of the outcome x that this law has (see ``jumps``)."""
        return 0.0

    def _lift_cost(self, height):
        """log of a bound on what moving x to x + i height does to abs(density), beside the loss."""
        return 0.5 * (height / self.sigma) ** 2

    @lru_cache(maxsize=64)  # noqa: B019
    def _nodes(self, c, band):
        """Trapezoid nodes (low, high, step), and from which y on to lift them.

        The rule's error is exp(-2 pi d/step) if the integrand is analytic for \\|Im x\\| <= d; the
        loss is for d < pi sigma^2, and a phase exp(iyL) costs exp(y L' d). Where that asks for too
        many nodes, the integral is taken along x + i sigma^2 angle instead: there a fast phase is a
        small modulus (below 1e-16 from y = 42/angle on).
        """
        low, high = self._window(c)
        u = (high - 0.5) / self.sigma**2
        slope = self.rate * exp(u - float(mixed_loss(u, self.rate))) / self.sigma**2
        sharp, longest = self._sharpness(), 0.42 * self.sigma**2
        if self._power(c) < 0:  # the tilted peak, at low + 11 sigma, is narrower than sigma
            sharp *= sqrt(1 + max(0.0, -low - 11 * self.sigma) / self.sigma**2)
            longest = 0.23 * self.sigma**2  # and exp(-A e^u) only decays for \\|Im u\\| < pi/2
        angle = min(1.0, 3 / (self.sigma**2 * sharp))
        edge = 42 / angle
        if band * slope <= max(edge * slope, 30 * sharp):
            edge, phase = np.inf, 1.1 * band * slope + max(9 * sharp, 2 * pi / longest)
        else:
            shifted = (9.5 + angle * self.sigma**2 * sharp) * sharp
            phase = 1.1 * edge * slope + max(shifted, 2 * pi / longest)
        return low, high, 2 * pi / phase, edge

    def work(self, c, band):
        low, high, step, _ = self._nodes(c, band)
        return (high - low) / step

    def law(self, reach, band):
        low, high, step, _ = self._nodes(reach, band)
        return self._at(np.arange(low, high + step, step), np.log(step))

    def cumulant(self, z):
        """One quadrature for all z, or one each, around the tilted peak, where that is long."""
        z = np.asarray(z, dtype=float)
        if self.work(float(np.max(z)), 0.0) < 20_000:
            return super().cumulant(z)
        return np.array([float(log_moment(self._law_near(c), c)) for c in z])

    @lru_cache(maxsize=64)  # noqa: B019
    def cumulant_at(self, c):
        """K at one c."""
        return float(self.cumulant(np.array([c]))[0])

    def derivatives(self, z):
        if self.work(float(np.max(z)), 0.0) < 20_000:
            return super().derivatives(z)
        return tuple(np.array([derivatives(self._law_near(c), c) for c in z]).T)

    def _law_near(self, c):
        """The law as far as its tilted version needs it."""
        if self.work(c, 0.0) < 20_000:
            return self.law(c, 0.0)
        low, high = self._tilted_window(c)
        step = self._nodes(c, 0.0)[2]
        return self._at(np.arange(low, high, step), np.log(step))

    def extent(self, reach):
        return tuple(np.sort(self._at(np.array(self._window(reach)), 0.0).loss))

    def cells(self, spacing, reach):
        low, high = self._window(reach)
        first, last = self.extent(reach)
        grid = spacing * np.arange(np.ceil(first / spacing), np.floor(last / spacing) + 1)
        inside = self.outcome(self.sign * grid)
        fine = 0.04 * min(self.sigma, 4 * self.sigma**2)
        spans = [(low, high)]
        if high - low > MOST_PANELS * fine:  # nothing between q, p and the tilted law
            spans = [(-12 * self.sigma, 1 + 12 * self.sigma), self._tilted_window(reach)]
        coarse = [np.linspace(a, b, int((b - a) / fine) + 2) for a, b in spans]
        edges = np.unique(np.concatenate([np.clip(inside, low, high), *coarse]))
        x, weight = gauss(edges)
        return self._at(x, np.log(weight))

    def _at(self, x, log_weight):
        log_q = -0.5 * (x / self.sigma) ** 2 - np.log(self.sigma * np.sqrt(2 * np.pi)) + log_weight
        loss = self.loss(x)
        return Law(self.sign * loss, log_q + loss if self.sign > 0 else log_q)

    def line(self, c, y):
        edge = self._nodes(c, float(y[-1]))[3]
        far = int(np.searchsorted(y, edge, side="right"))
        law = self.law(c, float(y[-1]))
        value, noise = line_of_law(law, c, y[:far])
        if far == len(y):
            return value, noise
        lifted, error = self._lifted_line(c, y[far:], 42 / edge)
        return np.concatenate([value, lifted]), np.concatenate([noise, error])

    def _lifted_line(self, c, y, angle):
        """K(c+iy) - K(c) from the integral along x + i sigma^2 angle."""
        low, high, step, _ = self._nodes(c, float(y[-1]))
        x, power = np.arange(low, high + step, step), self._power(c)
        angle *= self.sign
        loss = mixed_loss_complex((x - 0.5) / self.sigma**2, angle, self.rate)
        terms = power * loss - 0.5 * (x / self.sigma + 1j * self.sigma * angle) ** 2
        terms += self._log_weight(x + 1j * self.sigma**2 * angle)
        terms += log(step / (self.sigma * sqrt(2 * pi))) - self.cumulant_at(c)
        sizes = np.abs(terms) + 20
        return mean_phase(np.exp(terms), self.sign * loss, sizes, y)

    def ceiling(self, c):
        """Shift the integral over x to x + id: the phase exp(iyL) becomes exp(-y arg), where arg is
        that of 1 + rate (e^u - 1), which decreases in y; the Gaussian pays exp(d^2/2 sigma^2)."""
        low, high, step, _ = self._nodes(c, 0.0)
        x, angle = np.arange(low, high + step, step), SHIFTS[:, None]
        loss = mixed_loss_complex((x - 0.5) / self.sigma**2, angle, self.rate)
        terms = self._power(c) * loss.real - 0.5 * (x / self.sigma) ** 2 + self._log_weight(x)
        terms += self._lift_cost(self.sigma**2 * angle) - self.cumulant_at(c)
        terms += np.log(step / (self.sigma * np.sqrt(2 * np.pi)))
        terms += np.where(angle > 1, 1e-3, 1e-13)  # their quadrature is worse near pi
        return lambda height: min(0.0, float(log_sum_exp(terms - height * loss.imag).min()))
