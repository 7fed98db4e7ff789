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
``flipped()``
    The same step with p and q exchanged, K_QP(z) = K_PQ(-1-z).
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np

__all__ = []

EPS = np.finfo(float).eps
SMALL = 0.5  # below this, exp(w) - 1 - w is summed as a series


class Law(NamedTuple):
    """Values of the loss and the logarithms of their probabilities under p.

    ``infinite`` is p's mass where q vanishes (L = inf); ``lost`` is q's mass where p vanishes.
    """

    loss: np.ndarray
    log_p: np.ndarray
    infinite: float = 0.0
    lost: float = 0.0


def exp_excess(w):
    """exp(w) - 1 - w >= 0 without cancellation."""
    w = np.asarray(w, dtype=float)
    v = np.clip(w, -SMALL, SMALL)
    series = np.ones_like(v)
    for n in range(16, 2, -1):
        series = 1 + series * v / n
    with np.errstate(over="ignore"):
        return np.where(np.abs(w) <= SMALL, 0.5 * v * v * series, np.expm1(w) - w)


def mean_excess(log_p, w):
    """The mean of exp(w) - 1 - w, one for each row of w; p may underflow where w is large."""
    p, far = np.exp(log_p), w > 30
    values = p * exp_excess(np.where(far, 0.0, w))
    if far.any():
        values = np.where(far, np.exp(np.where(far, log_p + w, 0.0)) - p * (1 + w), values)
    return values.sum(axis=-1)


def log_sum_exp(terms, axis=-1):
    """log sum exp along one axis."""
    top = np.max(terms, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(top, axis) + np.log(np.sum(np.exp(terms - top), axis=axis))


def log1p_complex(u, v):
    """log(1 + u + iv) from its real parts, exact near 0 (numpy's complex log1p is not)."""
    square = u * (2 + u) + v * v
    size = np.log(np.maximum(np.hypot(1 + u, v), 1e-300))
    return np.where(square > -0.5, 0.5 * np.log1p(np.maximum(square, -0.5)), size) + 1j * (
        np.arctan2(v, 1 + u)
    )


def mean_loss(law):
    """E L = E[exp(-L) - 1 + L], because E exp(-L) = 1: a sum of positive terms."""
    if law.infinite:
        return np.inf
    return float(mean_excess(law.log_p, -law.loss)) + law.lost


def log_moment(law, z):
    """K(z) = log E exp(zL) at an array of real z.

    E exp(zL) - 1 = z E L + E[exp(zL) - 1 - zL]: for small L both are sums of squares, so no digit
    is lost where the terms of first order cancel. Infinite losses are left out.
    """
    z = np.asarray(z, dtype=float)
    tilted = z[..., None] * law.loss
    terms = law.log_p + tilted
    large = terms.max(axis=-1) > 20
    mean = float(mean_excess(law.log_p, -law.loss)) if np.any(~large) else 0.0
    rest = mean_excess(law.log_p, np.where(large[..., None], 0.0, tilted))
    drift = z * (mean + law.lost) - law.infinite
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(large, log_sum_exp(terms), np.log1p(np.where(large, 0.0, drift + rest)))


def derivatives(law, z):
    """K, K' and K'' at an array of real z: moments of the law tilted by exp(zL). Absolute error
    1e-15, enough to plan with."""
    terms = law.log_p + np.multiply.outer(z, law.loss)
    top = terms.max(axis=-1)
    weights = np.exp(terms - top[..., None])
    mass = weights.sum(axis=-1)
    mean = weights @ law.loss / mass
    variance = weights @ law.loss**2 / mass - mean**2
    return top + np.log(mass), mean, np.maximum(variance, 0.0)


class Step:
    """What follows from ``law`` alone."""

    infinite = 0.0

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        return log_moment(self.law(float(np.max(z)), 0.0), z)

    def derivatives(self, z):
        return derivatives(self.law(float(np.max(z)), 0.0), z)

    def mean(self):
        return mean_loss(self.law(1.0, 0.0))

    def line(self, c, y):
        """K(c+iy) - K(c) for an array y, and a bound on its rounding error."""
        return line_of_law(self.law(c, float(y[-1])), c, y)


def line_of_law(law, c, y):
    """Under the tilted law, E exp(iyL) - 1 = -2 E sin^2(yL/2) + i E sin(yL)."""
    terms = law.log_p + c * law.loss
    weights = np.exp(terms - terms.max())
    weights /= weights.sum()
    keep = weights > 1e-40
    weights, loss = weights[keep], law.loss[keep]
    sizes = np.abs(law.log_p[keep]) + np.abs(c * loss) + 8
    noise = EPS * float((weights * np.abs(loss)) @ sizes)
    u, v = np.empty_like(y), np.empty_like(y)
    for part in blocks(len(y), len(loss)):
        half = np.multiply.outer(0.5 * y[part], loss)
        sine = np.sin(half)
        u[part] = -2 * (sine * sine) @ weights
        v[part] = 2 * (sine * np.cos(half)) @ weights
    return log1p_complex(u, v), noise * (abs(c) + y)


def blocks(rows, columns):
    """Slices of rows that keep a table small enough for the cache."""
    size = max(1, 100_000 // columns)
    return [slice(start, start + size) for start in range(0, rows, size)]


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
        edges = _edges(*self.extent(reach), self.mu, spacing)
        loss, weight = _gauss(edges)
        log_p = -0.5 * ((loss - mean) / self.mu) ** 2 - np.log(self.mu * np.sqrt(2 * np.pi))
        return Law(loss, log_p + np.log(weight))


@dataclass(frozen=True)
class Finite(Step):
    """Two laws on finitely many outcomes: the losses themselves."""

    losses: tuple
    log_p: tuple
    infinite: float = 0.0
    lost: float = 0.0

    def flipped(self):
        loss, log_p = np.array(self.losses), np.array(self.log_p)
        order = np.argsort(-loss, kind="stable")
        return Finite(tuple(-loss[order]), tuple((log_p - loss)[order]), self.lost, self.infinite)

    def top(self):
        return np.inf if self.infinite else max(self.losses)

    def tilt_limit(self, log_delta):
        return np.inf

    def work(self, c, band):
        return len(self.losses)

    def law(self, reach, band):
        return Law(np.array(self.losses), np.array(self.log_p), self.infinite, self.lost)

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

    def tilt_limit(self, log_delta):
        return np.inf

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
        return self._with_atoms(*_gauss(edges))

    def extent(self, reach):
        return -self.flipped().top(), self.top()

    def cells(self, spacing, reach):
        end, (low, high) = 1 / self.scale, self.extent(reach)
        grid = spacing * np.arange(np.ceil(low / spacing), np.floor(high / spacing) + 1)
        inside = np.clip(inverse_mixed_loss(self.sign * grid, self.rate), -end, end)
        coarse = np.linspace(-end, end, int(8 * end * (1 + min(reach, 1e3))) + 3)
        edges = np.unique(np.concatenate([inside, coarse]))
        return self._with_atoms(*_gauss(edges))

    def _with_atoms(self, u, weight):
        end = 1 / self.scale
        log_q = np.concatenate(
            [[-np.log(2)], -(u + end) / 2 - np.log(4) + np.log(weight), [-np.log(2) - end]]
        )
        loss = mixed_loss(np.concatenate([[-end], u, [end]]), self.rate)
        return Law(self.sign * loss, log_q + loss if self.sign > 0 else log_q)

    def ceiling(self, c):
        """Atoms do not decay; the density w(u) between does, by one integration by parts:
        \\|int w e^{iyL} du\\| <= (total variation of w/L') / y."""
        u = np.linspace(-1 / self.scale, 1 / self.scale, 513)
        law = self._with_atoms(u, np.ones_like(u))
        terms = law.log_p + c * law.loss - float(self.cumulant(np.array([c]))[0])
        profile = np.exp(terms[1:-1]) / self._slope(u)
        variation = profile[0] + profile[-1] + 1.01 * np.abs(np.diff(profile)).sum()
        atoms = np.exp(terms[0]) + np.exp(terms[-1])
        return lambda height: min(0.0, float(np.log(atoms + variation / height)))


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

    def top(self):
        return np.inf if self.sign > 0 else -float(np.log1p(-self.rate))

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

    def _window(self, c):
        """Interval of x that holds all of q, of p and of the tilted law, to exp(-60)."""
        peak = self._peak(self._power(c))
        high = max(0.0, peak, min(2.0, 1 - self.sigma**2 * np.log(self.rate)))
        return min(0.0, peak) - 11 * self.sigma, high + 11 * self.sigma

    def _tilted_window(self, c):
        """Interval of x that holds the law tilted by exp(cL) alone."""
        x = np.linspace(*self._window(c), 513)
        height = self._power(c) * mixed_loss((x - 0.5) / self.sigma**2, self.rate)
        height -= x * x / (2 * self.sigma**2)
        kept = np.flatnonzero(height > height.max() - 60)
        return x[max(kept[0] - 1, 0)], x[min(kept[-1] + 1, 512)]

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
        edge = 42 / self._angle()
        if band * slope <= max(edge * slope, 30 / self.sigma):
            edge, phase = np.inf, 1.1 * band * slope + 9 / self.sigma
        else:
            phase = 1.1 * edge * slope + (9.5 + self._angle() * self.sigma) / self.sigma
        return low, high, min(2 * pi / phase, 0.42 * self.sigma**2), edge

    def _angle(self):
        return min(1.0, 3 / self.sigma)

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
        inside = 0.5 + self.sigma**2 * inverse_mixed_loss(self.sign * grid, self.rate)
        fine = 0.04 * min(self.sigma, 4 * self.sigma**2)
        coarse = np.linspace(low, high, int((high - low) / fine) + 2)
        edges = np.unique(np.concatenate([np.clip(inside, low, high), coarse]))
        x, weight = _gauss(edges)
        return self._at(x, np.log(weight))

    def _at(self, x, log_weight):
        log_q = -0.5 * (x / self.sigma) ** 2 - np.log(self.sigma * np.sqrt(2 * np.pi)) + log_weight
        loss = mixed_loss((x - 0.5) / self.sigma**2, self.rate)
        return Law(self.sign * loss, log_q + loss if self.sign > 0 else log_q)

    def line(self, c, y):
        far = int(np.searchsorted(y, self._nodes(c, float(y[-1]))[3], side="right"))
        law = self.law(c, float(y[-1]))
        value, noise = line_of_law(law, c, y[:far])
        if far == len(y):
            return value, noise
        lifted, error = self._lifted_line(c, y[far:])
        return np.concatenate([value, lifted]), np.concatenate([noise, error])

    def _lifted_line(self, c, y):
        """K(c+iy) - K(c) from the integral along x + i sigma^2 angle."""
        low, high, step, _ = self._nodes(c, float(y[-1]))
        x, power = np.arange(low, high + step, step), self._power(c)
        lift = 1j * self.sign * self._angle()
        loss = mixed_loss_complex((x - 0.5) / self.sigma**2, lift, self.rate)
        terms = power * loss - 0.5 * ((x + self.sigma**2 * lift) / self.sigma) ** 2
        terms += log(step / (self.sigma * sqrt(2 * pi))) - float(self.cumulant(np.array([c]))[0])
        weights, loss = np.exp(terms), self.sign * loss
        keep = np.abs(weights) > 1e-40
        weights, loss = weights[keep], loss[keep]
        ratio, sizes = np.empty(len(y), dtype=complex), np.empty(len(y))
        for part in blocks(len(y), len(loss)):
            table = np.exp(np.multiply.outer(1j * y[part], loss))
            ratio[part] = table @ weights
            sizes[part] = np.abs(table) @ (np.abs(weights) * (60 + np.abs(loss)))
        ratio = np.where(np.abs(ratio) < 1e-300, 1e-300, ratio)
        return np.log(ratio), EPS * sizes / np.abs(ratio)

    def ceiling(self, c):
        """Shift the integral over x to x + id: the phase exp(iyL) becomes exp(-y arg), where arg is
        that of 1 + rate (e^u - 1), which decreases in y; the Gaussian pays exp(d^2/2 sigma^2)."""
        low, high, step, _ = self._nodes(c, 0.0)
        x, angle = np.arange(low, high + step, step), SHIFTS[:, None]
        loss = mixed_loss_complex((x - 0.5) / self.sigma**2, 1j * angle, self.rate)
        terms = self._power(c) * loss.real - 0.5 * (x / self.sigma) ** 2
        terms += 0.5 * (self.sigma * angle) ** 2 - float(self.cumulant(np.array([c]))[0])
        terms += np.log(step / (self.sigma * np.sqrt(2 * np.pi)))
        terms += np.where(angle > 1, 1e-3, 1e-13)  # their quadrature is worse near pi
        decay = loss.imag
        return lambda height: min(0.0, float(log_sum_exp(terms - height * decay).min()))


SHIFTS = np.append(np.geomspace(1e-5, 1.0, 16), [1.4, 1.9, 2.4])  # d / sigma^2


def mixed_loss(u, rate):
    """log(1 + rate (e^u - 1)) without overflow or cancellation."""
    if rate == 1:
        return u
    huge = np.maximum(u, 500.0)
    above = huge + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-huge))
    return np.where(np.asarray(u) > 500, above, np.log1p(rate * np.expm1(np.minimum(u, 500.0))))


def mixed_loss_complex(u, lift, rate):
    """log(1 + rate (e^(u + lift) - 1)) for imaginary lift, |lift| < pi."""
    top = np.maximum(u, 0)
    return top + np.log((1 - rate) * np.exp(-top) + rate * np.exp(u - top + lift))


def inverse_mixed_loss(loss, rate):
    """The u with log(1 + rate (e^u - 1)) = loss; -inf at and below the least loss."""
    if rate == 1:
        return loss
    with np.errstate(divide="ignore"):
        below = np.log1p(np.maximum(np.expm1(np.minimum(loss, 1.0)) / rate, -1.0))
    high = np.maximum(loss, 1.0)
    above = high - np.log(rate) + np.log1p((rate - 1) * np.exp(-high))
    return np.where(np.asarray(loss) > 1, above, below)


def _edges(low, high, unit, spacing):
    """Edges between low and high: every multiple of spacing, and none further than unit/25."""
    grid = spacing * np.arange(np.ceil(low / spacing), np.floor(high / spacing) + 1)
    return np.union1d(grid, np.linspace(low, high, int(25 * (high - low) / unit) + 2))


@lru_cache(maxsize=4)
def _legendre(order):
    return np.polynomial.legendre.leggauss(order)


def _gauss(edges):
    """Composite Gauss-Legendre nodes and weights: 16 a panel if few, 4 if many (short ones)."""
    x, w = _legendre(16 if len(edges) < 3000 else 4)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()
