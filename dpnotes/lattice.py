"""Losses that sit on a lattice, or are moved there: exact sums, and the fallback.

If the total loss takes the values l_0 < l_1 < ..., delta(e) is linear in exp(e) between them and
all of it follows from two sums of positive terms from the right (``Curve``). Two-point steps
(randomized response) have binomial weights; few finite steps are enumerated.

Everything else can be moved to a lattice on the safe side: split each value l between its
neighbours so that the mass under p and under q stays (connect the dots, Doroshenko et al. 2022).
That replaces exp(-L) by a mean-preserving spread, so delta grows, at second order in the spacing;
the sum of the k shifts is a martingale in exp(-L), and Bernstein's inequality bounds how far it
strays, hence how much delta grew. The k-fold convolution is one FFT of the law tilted by exp(cL).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from scipy.special import gammaln

from . import contour
from .laws import EPS, log_sum_exp
from .steps import Finite, Laplace

__all__ = []

MOST_VALUES = 300_000  # of an enumerated sum
SIZE = 2**20  # of the FFT, at most
MOST_CELLS = 500_000  # of one step


@dataclass(frozen=True)
class Curve:
    """delta(e) of a discrete loss: the values in ascending order and the logs of

    weight[j] = sum_{i >= j} p_i exp(l_j - l_i)  and  tail[j] = delta(l_j).
    """

    loss: np.ndarray
    log_p: np.ndarray
    log_weight: np.ndarray
    log_tail: np.ndarray

    def log_delta(self, epsilon):
        """delta(l_{j+1}) + (1 - exp(e - l_{j+1})) weight[j+1] for l_j <= e < l_{j+1}."""
        j = int(np.searchsorted(self.loss, epsilon, side="right"))
        if j == len(self.loss):
            return -np.inf
        with np.errstate(divide="ignore"):
            part = np.log(-np.expm1(epsilon - self.loss[j])) + self.log_weight[j]
        return float(np.logaddexp(part, self.log_tail[j]))

    def epsilon(self, log_delta):
        """The inverse of ``log_delta``; inf only below the first value is left to the caller."""
        j = int(np.searchsorted(-self.log_tail, -log_delta))
        j = min(j, len(self.loss) - 1)
        above = np.exp(log_delta - self.log_weight[j]) - np.exp(
            self.log_tail[j] - self.log_weight[j]
        )
        return float(self.loss[j] + np.log1p(-min(max(above, 0.0), 1 - 1e-16)))


def curve(loss, log_p):
    """The Curve of values in ascending order with log probabilities."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shifted = loss - loss[-1]
        log_weight = np.logaddexp.accumulate((log_p - shifted)[::-1])[::-1] + shifted
        rise = np.log(-np.expm1(-np.diff(loss))) + log_weight[1:]
        log_tail = np.append(np.logaddexp.accumulate(rise[::-1])[::-1], -np.inf)
    return Curve(loss, log_p, log_weight, log_tail)


@lru_cache(maxsize=1)
def few_stirling_errors():
    """log n! - log(sqrt(2 pi n) (n/e)^n) for n < 16 (0 for n = 0)."""
    n = np.arange(1.0, 16.0)
    return np.append(0.0, gammaln(n + 1) - (n + 0.5) * np.log(n) + n - 0.5 * np.log(2 * np.pi))


def stirling_error(n):
    """The same for any n >= 1 (Loader 2000)."""
    n2 = n * n
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / n2) / n2) / n2) / n2) / n
    return np.where(n < 16, few_stirling_errors()[np.minimum(n, 15).astype(int)], series)


def deviance(x, log_mean):
    """x log(x/mean) - x + mean >= 0, near x = mean in terms of u = x/mean - 1: its error is then u
    units of round-off of the mean (Loader 2000, with log1p). The mean may underflow."""
    mean = np.exp(log_mean)
    u = (x - mean) / np.maximum(mean, 1e-300)
    near = np.abs(u) < 0.5
    v = np.where(near, u, 0.0)
    return np.where(near, mean * ((1 + v) * np.log1p(v) - v), x * (np.log(x) - log_mean) - x + mean)


def log_binomial(j, k, log_p, log_q):
    """log of the Binomial(k, p) probability of j, from log p and log (1-p)."""
    j = np.asarray(j, dtype=float)
    inner = np.clip(j, 1, k - 1)
    both = np.stack([inner, k - inner])
    value = stirling_error(np.array(float(k))) - stirling_error(both).sum(axis=0)
    value -= deviance(both, np.log(k) + np.array([[log_p], [log_q]])).sum(axis=0)
    value += 0.5 * np.log(k / (2 * np.pi * inner * (k - inner)))
    return np.where(j == 0, k * log_q, np.where(j == k, k * log_p, value))


def two_point(step, k, c, least=-np.inf):
    """The Curve of k steps with two losses, near the law tilted by exp(cL), from ``least`` on."""
    (low, high), (log_q, log_p) = step.losses, step.log_p
    odds = log_p - log_q + c * (high - low)
    centre = k / (1 + np.exp(-np.clip(odds, -700, 700)))
    width = 60 + 14 * np.sqrt(centre * (1 - centre / k) + 1)
    first, last = max(0, int(centre - width)), min(k, int(centre + width) + 1)
    if k <= 20_000:
        first, last = 0, k
    if least > low * k:
        first = max(first, min(int((least - low * k) / (high - low)) - 1, last - 1))
    j = np.arange(first, last + 1)
    loss = low * (k - j) + high * j
    return curve(
        loss.astype(float),
        log_binomial(j, k, log_p, log_q) if k > 1 else np.array([log_q, log_p])[j],
    )


def enumerated(parts):
    """The Curve of a sum of few finite losses, or None if it takes too many values."""
    total = 1
    for step, k in parts:
        if not isinstance(step, Finite) or (k > 5000 and len(step.losses) > 1):
            return None
        total *= comb(k + len(step.losses) - 1, k)
        if total > MOST_VALUES:
            return None
    loss, log_p = np.zeros(1), np.zeros(1)
    for step, k in parts:
        if len(step.losses) == 1:
            loss, log_p = loss + k * step.losses[0], log_p + k * step.log_p[0]
            continue
        for _ in range(k):
            loss = np.add.outer(loss, np.array(step.losses)).ravel()
            log_p = np.add.outer(log_p, np.array(step.log_p)).ravel()
            loss, log_p = _merge(loss, log_p)
    return curve(loss, log_p)


def _merge(loss, log_p):
    """Sort, and add the probabilities of values equal to 1e-13 of the largest."""
    order = np.argsort(loss)
    loss, log_p = loss[order], log_p[order]
    near = 1e-13 * max(1e-300, np.abs(loss).max())
    starts = np.flatnonzero(np.append(True, np.diff(loss) > near))
    return loss[starts], np.logaddexp.reduceat(log_p, starts)


@dataclass(frozen=True)
class Grid:
    """A window of the lattice, ``first`` to ``first + size`` in units of ``spacing``; the laws
    on it are tilted by exp(cL), so that round-off is relative to what is asked for."""

    c: float
    spacing: float
    size: int
    first: int
    top: float
    width: float  # of the support of the sum

    @property
    def loss(self):
        return self.spacing * (self.first + np.arange(self.size))


@dataclass(frozen=True)
class Spread:
    """A composition moved to a lattice: its Curve, and what bounds the cost of the move.

    ``log_up[i]`` and ``log_down[i]`` are log E exp(+-lam X) at S' = loss[i], where the move took
    the total loss from S to S' = S + X.
    """

    curve: Curve
    lam: float
    log_up: np.ndarray
    log_down: np.ndarray
    c: float
    log_front: float  # of the FFT's round-off, as log of an error in delta: log_front - c e
    log_alias: float

    def log_bounds(self, epsilon):
        """log of a lower bound, the value and an upper bound of delta(epsilon).

        Moving only matters to paths that cross epsilon, and they gain |1 - exp(epsilon - S')|; they
        have X >= S' - epsilon > 0 or -X >= epsilon - S' > 0, which Chernoff's bound weighs.
        """
        value, loss = self.curve.log_delta(epsilon), self.curve.loss
        noise = float(np.logaddexp(self.log_front - self.c * epsilon, self.log_alias))
        if epsilon >= loss[-2]:  # one value left: its probability, to a relative error
            noise = value + np.log(1e-11)
        lost = np.array([noise])
        if self.lam:
            reach = 60 / self.lam
            low, middle, high = np.searchsorted(loss, [epsilon - reach, epsilon, epsilon + reach])
            near = loss[low:high] - epsilon
            crossing = np.append(self.log_down[low:middle], self.log_up[middle:high])
            with np.errstate(divide="ignore"):
                gain = np.maximum(-near, 0.0) + np.log(-np.expm1(-np.abs(near)))
            lost = np.append(lost, crossing + gain - self.lam * np.abs(near))
        lost = float(log_sum_exp(lost))
        low = value + np.log1p(-np.exp(lost - value)) if lost < value else -np.inf
        return float(low), value, float(np.logaddexp(value, noise))


def common_spacing(parts):
    """The largest h of which all losses with atoms are multiples (up to 64 parts), or None."""
    values = np.concatenate([_atoms(step) for step, _ in parts])
    values = np.unique(np.abs(values[values != 0]))
    if len(values) == 0:
        return None
    for m in range(1, 65):
        ratio = values / (values[0] / m)
        if np.all(np.abs(ratio - np.round(ratio)) < 1e-12 * ratio):
            return float(values[0] / m)
    return None


def _atoms(step):
    if isinstance(step, Finite):
        return np.array(step.losses)
    if isinstance(step, Laplace):
        return step._loss(np.array([-1.0, 1.0]) / step.scale)
    return np.zeros(0)


def binned(law, grid, lam):
    """The law split between lattice neighbours so that the mass under p and under q stays, tilted
    by exp(cL + lam X) and wrapped: (tilted probabilities, their log sum, tilted E X^2)."""
    h = grid.spacing
    index = np.floor(law.loss / h + 1e-9)
    part = np.maximum(law.loss - h * index, 0.0)
    part[part < 1e-8 * h] = 0.0
    above = np.expm1(-part) / np.expm1(-h)
    tilt = law.log_p + grid.c * h * index
    with np.errstate(divide="ignore"):
        low = tilt - lam * part + np.log1p(-above)
        high = tilt + lam * (h - part) + np.log(above) + grid.c * h
    top = max(low.max(), high.max())
    low, high = np.exp(low - top), np.exp(high - top)
    slots = np.mod(index, grid.size).astype(np.int64)
    tilted = np.bincount(slots, low, grid.size)
    tilted += np.bincount((slots + 1) % grid.size, high, grid.size)
    mass = tilted.sum()
    variance = (low @ part**2 + high @ (h - part) ** 2) / mass
    return tilted / mass, top + np.log(mass), variance


def convolved(laws, grid, lam):
    """log of the probabilities of the sum on the grid's window (times E exp(lam X)), the log of the
    total tilted mass, and the tilted variance of X."""
    spectrum, log_mass, variance = 1.0, 0.0, 0.0
    for law, k in laws:
        tilted, log_sum, step_variance = binned(law, grid, lam)
        spectrum = spectrum * np.fft.rfft(tilted) ** k
        log_mass, variance = log_mass + k * log_sum, variance + k * step_variance
    tilted = np.roll(np.fft.irfft(spectrum, grid.size), -(grid.first % grid.size))
    tilted[grid.loss > grid.top] = 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(tilted, 0.0)) + log_mass - grid.c * grid.loss, log_mass, variance


def window(parts, start):
    """The grid for a saddle point (c, e, log tail): fine, and as long as aliases demand."""
    c, period, *_ = contour.plan(parts, 1, *start)
    width = sum(k * (step.top() - step.bottom()) for step, k in parts)
    longest = max(np.ptp(step.extent(c)) for step, _ in parts)
    period = 1.15 * min(period, width)
    spacing = max(period / (SIZE - 64), longest / MOST_CELLS)
    unit = common_spacing(parts)
    if unit and unit > spacing:
        spacing = unit / np.floor(unit / spacing)
    size = 2 ** int(np.ceil(np.log2(period / spacing + 64)))
    top = sum(k * (step.top() + spacing) for step, k in parts)
    return Grid(c, spacing, size, int(np.floor(start[1] / spacing)) - size // 16, top, width)


def anchor(parts, start):
    """A saddle point at or just left of this one (aliases are bounded from its e on), the same in a
    cell of 1 in c sd(L) or log c, whose epsilons share a lattice for e^(1/2) of round-off."""
    sd = np.sqrt(float(contour.derivatives(parts, np.array([start[0]]))[2][0]))
    cell = 0.5 ** np.ceil(np.log2(max(1.0, start[0] * sd)))
    t = cell * np.floor(np.log(start[0]) / cell)
    return tuple(float(x[0]) for x in contour.saddles(parts, 1, np.array([t]))[:3])


@lru_cache(maxsize=2)
def spread(parts, start):
    """Move the composition to a lattice and convolve, near the saddle point (c, e, log tail)."""
    grid = window(parts, start)
    laws = [(step.cells(grid.spacing, grid.c), k) for step, k in parts]
    log_p, log_mass, variance = convolved(laws, grid, 0.0)
    inside = grid.c * (grid.loss - start[1]) < 200
    moving = variance > 1e-14 * grid.spacing**2
    lam = min(1.5 / np.sqrt(variance), 2 / grid.spacing) if moving else 0.0
    moved = [
        convolved(laws, grid, sign * lam)[0][inside] if lam else log_p[inside] for sign in (1, -1)
    ]
    loss, log_p = grid.loss[inside], log_p[inside]
    rounds = sum(k for _, k in parts)
    count = min(grid.size, 1 / (2 * grid.c * grid.spacing) + 1)
    log_front = float(log_mass + np.log(EPS * (20 + rounds) * np.sqrt(count)))
    log_alias = start[2] + np.log(1e-13) if grid.spacing * grid.size < grid.width else -np.inf
    return Spread(curve(loss, log_p), lam, *moved, grid.c, log_front, log_alias)
