"""The step of Laplace noise, sampled or not; and its moments, in closed form where not.

With a = 1/scale and s = (z + 1/2) a, the two atoms and the density between give

    E exp(zL) = exp(-a/2) f(s),    f(s) = cosh s + (a/2) (sinh s)/s,

which is even in s (K(z) = K(-1-z)) and has f(a/2) = exp(a/2).
"""

from dataclasses import dataclass, replace
from math import log1p

import numpy as np

from .law import (
    EPS,
    Law,
    exp_excess,
    gauss,
    gauss_between,
    inverse_mixed_loss,
    mixed_loss,
    multiples,
)
from .step import Step
from .work import spend

__all__ = []

VALUE = 40  # work of the density at a node

# x coth x - 1 = sum_n COTH[n-1] x^(2n), radius of convergence pi: 4^n B_2n / (2n)!
COTH = (
    (1 / 3, -1 / 45, 2 / 945, -1 / 4725, 2 / 93555, -1382 / 638512875, 4 / 18243225)
    + (-3617 / 162820783125, 87734 / 38979295480125, -349222 / 1531329465290625)
    + (310732 / 13447856940643125, -472728182 / 201919571963756521875)
    + (2631724 / 11094481976030578125,)
)


def cumulant(a, z):
    """K(z) = log E exp(zL) at an array of real z, to 1e-14 relative.

    f(s) - f(a/2) is a product, from which K follows without cancellation where it is small:

        K = log(1 + (e^(za) - 1) (1 - e^(-(z+1)a)) (1 + r) / 2),    m = (z+1)a/2, d = za/2,
        r = (m coth m - d coth d) / (m + d).
    """
    z = np.where(z < -0.5, -1 - z, z)
    s, tilt = (z + 0.5) * a, z * a
    near = (np.abs(tilt) < 1) & ((z > -0.25) | (a < 2))
    d = np.where(near, tilt / 2, 0.0)
    m = d + a / 2
    far_apart = (coth_excess(m) - coth_excess(d)) / np.where(m > 1, m + d, 1.0)
    apart = np.where(m > 1, far_apart, _quotient(m, d))
    rise = 0.5 * np.expm1(2 * d) * -np.expm1(-2 * m) * (1 + apart)
    far = tilt + np.log(0.5 * (1 + np.exp(-2 * s)) + 0.25 * a * _ramp(s))
    return np.where(near, np.log1p(rise), far)


def coth_excess(x):
    """x coth x - 1."""
    small, square = np.minimum(np.abs(x), 1.0), np.minimum(np.abs(x), 1.0) ** 2
    series = square * np.polyval(COTH[::-1], square)
    large = np.maximum(np.abs(x), 1.0)
    return np.where(small < 1, series, large / np.tanh(large) - 1)


def _quotient(m, d):
    """(m coth m - d coth d) / (m + d) for abs(d) <= m <= 1: (m - d) times the series' quotient by
    m^2 - d^2, by Horner's rule for divided differences."""
    x, y = np.minimum(m, 1.0) ** 2, d * d
    value, quotient = np.zeros_like(x), np.zeros_like(x)
    for c in reversed((0.0, *COTH)):
        value, quotient = c + y * value, value + x * quotient
    return (m - d) * quotient


def _ramp(s):
    """(1 - exp(-2s)) / s, 2 at s = 0."""
    safe = np.where(s == 0, 1.0, s)
    return np.where(s == 0, 2.0, -np.expm1(-2 * safe) / safe)


def derivatives(a, z):
    """K, K' and K'' at an array of real z, to 1e-12: of log f for s < 1; beyond, with
    E = exp(-2s) and T = (1 - E)/s, of log f = s + log g - log 2, g = 1 + E + (a/2) T."""
    s = (z + 0.5) * a
    side, s = np.where(s < 0, -1.0, 1.0), np.abs(s)
    slope, bend = np.where(s < 1, _near_slopes(a, s), _far_slopes(a, s))
    return cumulant(a, z), side * a * slope, a**2 * bend


def _near_slopes(a, s):
    s, odd = np.minimum(s, 1.0), np.arange(1, 22, 2)  # (sinh s)/s = sum s^(odd-1) / odd!
    terms = s[..., None] ** (odd - 1) / np.cumprod(np.where(odd > 1, odd * (odd - 1.0), 1.0))
    first = terms @ (odd - 1) / np.where(s > 0, s, 1.0)
    second = terms @ (odd / (odd + 2))
    f = np.cosh(s) + 0.5 * a * terms.sum(axis=-1)
    slope = (np.sinh(s) + 0.5 * a * first) / f
    return slope, (np.cosh(s) + 0.5 * a * second) / f - slope**2


def _far_slopes(a, s):
    s = np.maximum(s, 1.0)
    decay, ramp = np.exp(-2 * s), _ramp(s)
    first = (2 * decay - ramp) / s
    second = (-4 * decay - 2 * first) / s
    g = 1 + decay + 0.5 * a * ramp
    slope = (-2 * decay + 0.5 * a * first) / g
    return 1 + slope, (4 * decay + 0.5 * a * second) / g - slope**2


@dataclass(frozen=True)
class Laplace(Step):
    """Laplace noise, rate-subsampled: rate * Lap(1, b) + (1 - rate) * Lap(0, b) against Lap(0, b).

    Below 0 and above 1 the loss is constant (two atoms); between, u = (2x-1)/b runs from -1/b to
    1/b with q-density exp(-(u + 1/b)/2)/4, and the loss is log(1 + rate (e^u - 1)).
    """

    scale: float
    rate: float = 1.0
    side: int = 1

    def flipped(self):
        return self if self.rate == 1 else replace(self, side=-self.side)

    def _loss(self, u):
        return self.side * mixed_loss(u, self.rate)

    def top(self):
        return float(max(self._loss(1 / self.scale), self._loss(-1 / self.scale)))

    def log_at_top(self):
        """log of half of rate + (1 - rate) exp(-1/b), the mixture's atom, or of a half."""
        mixed = np.log(self.rate + (1 - self.rate) * np.exp(-1 / self.scale))
        return float((mixed if self.side > 0 else 0.0) - np.log(2))

    def tilt_limit(self, log_delta):
        return 4e3 * self.scale

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        return cumulant(1 / self.scale, z) if self.rate == 1 else super().cumulant(z)

    def derivatives(self, z):
        if self.rate < 1:
            return super().derivatives(z)
        return derivatives(1 / self.scale, np.asarray(z, dtype=float))

    def mean(self):
        return float(exp_excess(-1 / self.scale)) if self.rate == 1 else super().mean()

    def _slope(self, u):
        return self.rate * np.exp(u - mixed_loss(u, self.rate))

    def _heavy_end(self):
        """Where the loss is largest: a tilt leaves its weight there."""
        return self.side / self.scale

    def _edges(self, c, band):
        """Panels for 16 nodes: short enough for the loss (2, or 1 under a tilt, where the integrand
        is exp(-X e^u) at one end), for its phase (8), and for the tilt: from the heavy end on, the
        first takes an exponent of 4, and each is at most 1.5 times the one before."""
        end = 1 / self.scale
        steepness = 1.0 if self.rate == 1 else max(self._slope(end), self._slope(-end))
        width = min(2.0 if abs(c) <= 1 else 1.0, 8 / (band * steepness + 1e-300))
        edges = np.linspace(-end, end, int(np.ceil(2 * end / width)) + 1)
        near = self._graded(c, min(width, end))
        if len(near):
            heavy = self._heavy_end()
            edges = np.union1d(edges, np.sort(heavy - np.sign(heavy) * near))
        return edges

    def _graded(self, c, width):
        """Distances from the heavy end, in steps that grow up to ``width``."""
        first = 4 / (1 + abs(1 + c) * self._slope(self._heavy_end()))
        if first >= width:
            return np.zeros(0)
        count = 1 + int(np.ceil(np.log(width / first) / np.log(1.5)))
        steps = 2 * first * (1.5 ** np.arange(1, count + 1) - 1)
        return steps[steps < 2 / self.scale]

    def work(self, c, band):
        return 16 * (2 / self.scale * max(0.5 if abs(c) <= 1 else 1.0, band / 8) + 60) + 2

    def law(self, reach, band):
        return self._with_atoms(*gauss(self._edges(reach, band)))

    def extent(self, reach):
        return -self.flipped().top(), self.top()

    def cells(self, spacing, reach, least):
        low, high = self.extent(reach)
        grid = multiples(spacing, max(low, least), high)
        inside = inverse_mixed_loss(self.side * grid, self.rate)
        return self._with_atoms(*gauss_between(self._edges(reach, 0.0), inside))

    def _with_atoms(self, u, weight):
        spend(VALUE * len(u))
        end = 1 / self.scale
        log_q = np.concatenate(
            [[-np.log(2)], -(u + end) / 2 - np.log(4) + np.log(weight), [-np.log(2) - end]]
        )
        loss = mixed_loss(np.concatenate([[-end], u, [end]]), self.rate)
        return Law(self.side * loss, log_q + loss if self.side > 0 else log_q)

    def ceiling(self, c):
        """Atoms do not decay; the density w(u) between does, by one integration by parts:
        \\|int w e^{(c+iy)L} du\\| <= (g(-a) + g(a) + total variation of g) / y with a = 1/b and
        g = w e^{cL} / \\|L'\\| = exp(-(a+3u)/2) G^n / (4 rate), G = 1 - rate + rate e^u,
        n = 2 + c (mixture against q) or 1 - c.

        (log g)' = -3/2 + n rate e^u / G is negative throughout if n <= 3/2 and increases
        otherwise: g falls, or has one minimum. So it varies by g(-a) + g(a) - 2 min g, and the
        bound is 2 (g(-a) + g(a) - min g) / y. Lower down ``_low_ceiling`` says more.
        """
        end, power = 1 / self.scale, 2 + c if self.side > 0 else 1 - c
        u = np.array([-end, end, np.clip(self._lowest(power), -end, end)])
        mixed, cumulant = mixed_loss(u, self.rate), self.cumulant_at(c)
        g = power * mixed - (end + 3 * u) / 2 - np.log(4 * self.rate) - cumulant
        atoms = self._with_atoms(np.zeros(1), np.ones(1))
        atoms = (atoms.log_p + c * atoms.loss - cumulant)[[0, -1]]
        slack = 1 + EPS * (16 + 4 * (abs(power) + abs(c) + 2) * (end + 2))  # of all exponents
        atoms = np.exp(atoms).sum() * slack
        g = np.exp(np.minimum(g, 700.0))  # more says nothing at any height
        variation = 2 * (g[:2].sum() * slack - g[2])
        low = self._low_ceiling(c, float(atoms), float(g[:2].max() * slack))
        return lambda height: min(0.0, float(np.log(atoms + variation / height)), low(height))

    def _low_ceiling(self, c, atoms, peak):
        """The same from the variance V and the range R of the loss: where y R <= pi,

            phi(y)^2 = E cos(y (L - L')) <= 1 - (2y/pi)^2 V,    for 1 - cos x >= 2 (x/pi)^2;

        at any y the density, at most ``peak`` and of mass m = 1 - atoms, is one on the circle, of
        at most peak (1 + s) / y with s = yR/(2 pi) turns. On an arc it has the greatest mean:
        m (sin x)/x at most, x = m pi s/((1 + s) peak R)."""
        spread = (self.top() - self.bottom()) * (1 + 4 * EPS)
        variance = float(self.derivatives(np.array([c]))[2][0]) * (1 - 1e-9) - 1e-14 * spread**2
        mass, last = max(0.0, 1 - atoms), np.pi / spread

        def beyond(height):
            turns = height * spread / (2 * np.pi)
            x = mass * np.pi * turns / ((1 + turns) * peak * spread)
            return np.log(atoms + mass * np.sinc(x / np.pi))

        def ceiling(height):
            found = float(beyond(height))
            if height < last and variance > 0:
                square = min((2 * height / np.pi) ** 2 * variance, 1.0)
                found = min(found, max(0.5 * log1p(-min(square, 1 - EPS)), float(beyond(last))))
            return found

        return ceiling

    def _lowest(self, power):
        """The u where power * rate e^u / G = 3/2."""
        if power <= 1.5:
            return np.inf
        share = 1.5 / power
        with np.errstate(divide="ignore"):
            return np.log((1 - self.rate) / self.rate) + np.log(share / (1 - share))
