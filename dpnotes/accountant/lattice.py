"""The fallback: losses moved to a lattice, on the safe side.

Split each value l between its neighbours so that the mass under p and under q stays (connect the
dots, Doroshenko et al. 2022). That replaces exp(-L) by a mean-preserving spread, so delta grows, at
second order in the spacing; the sum of the k shifts is a martingale in exp(-L), and Bernstein's
inequality bounds how far it strays, hence how much delta grew. The k-fold convolution is one FFT of
the law tilted by exp(cL).
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from . import contour
from .convolution import convolved, groups, halved, joined
from .finite_sums import Curve, curve
from .laplace import Laplace
from .law import EPS, log_sum_exp
from .step import Finite, Gaussian
from .symmetrised import SymmetrisedLaplace
from .work import KEPT, LATTICE, left, spend

__all__ = []

SIZE, LEAST_SIZE = 2**19, 2**15  # of the FFT: as much as the work for all steps allows
PER_CELL = 350  # work of one step for each point of the lattice,
PER_POINT = 80  # and of one round of finite laws
CELLS = 0.48  # of one step, per point of the lattice
FFT_NOISE = 4.0  # norm-wise error of a transform, and of a power, in units of EPS
ALIAS = 1e-13  # of delta at the saddle point is wrapped, at most; ``plan`` asks for 1e-14
LAST_NOISE = 1e-11  # relative error of the probability of the largest loss of all
STEEPEST = 30.0  # c times the spacing: beyond, the lattice is too coarse for the tilt
HELPFUL = 0.01  # of that is the least relative width it was seen to leave
FARTHEST = 4.0  # log of how much the move may raise delta; beyond, other bounds say more
SUMS_NOISE = 1e-12  # relative error of a running sum of them (``law.log_running_sums``), twice
CELL_NOISE = 1e-14  # relative error of the probabilities of one step: quadrature and round-off


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
    the total loss from S to S' = S + X. Below ``least`` aliases are not
    bounded.
    """

    least: float
    curve: Curve
    lam: float
    log_up: np.ndarray
    log_down: np.ndarray
    c: float
    log_front: float  # of the FFT's round-off, as log of an error in delta: log_front - c e
    relative: float  # error of the probabilities that were moved
    log_alias: float
    whole: bool  # whether the last value is the largest of all

    def log_bounds(self, epsilon):
        """log of a lower bound, the value and an upper bound of delta(epsilon).

        Moving only matters to paths that cross epsilon, and they gain |1 - exp(epsilon - S')|; they
        have X >= S' - epsilon > 0 or -X >= epsilon - S' > 0, which Chernoff's bound weighs.
        """
        if epsilon < self.least:
            return -np.inf, 0.0, 0.0
        value, loss = self.curve.log_delta(epsilon), self.curve.loss
        noise = float(np.logaddexp(self.log_front - self.c * epsilon, self.log_alias))
        noise = float(np.logaddexp(noise, value + np.log(self.relative)))
        if self.whole and epsilon >= loss[-2]:  # one value left: its probability, nearly exact
            noise = value + np.log(LAST_NOISE)
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
    if len(values) == 0 or values[-1] / 1e12 > values[0]:  # more points than any lattice has
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
    if isinstance(step, SymmetrisedLaplace):
        return np.array([step.top()])
    return np.zeros(0)


def per_point(parts):
    """Work of a point of the lattice; laws of few values are joined (``convolution.joined``)."""
    sizes = sorted(len(step.losses) for step, k in parts if isinstance(step, Finite) and k == 1)
    return PER_CELL * (len(parts) - len(sizes)) + PER_POINT * len(groups(sizes))


def longest(parts):
    """The points that the work for all steps allows."""
    work = min(LATTICE, left() - KEPT)
    most = 2 ** int(np.log2(max(work, 1.0) / per_point(parts))) if work > PER_CELL else 1
    return min(max(most, LEAST_SIZE), SIZE)


@lru_cache(maxsize=8)
def window(parts, start, most=SIZE):
    """The grid for a saddle point (c, e, log tail), as long as aliases demand, and as fine as the
    most points allow, or None if that is without end; and for each step the loss below which
    exp(-60) of its tilted law lies, by Chernoff's bound."""
    c, period, *_ = contour.plan(parts, 1, *start)
    width = sum(k * (step.top() - step.bottom()) for step, k in parts)
    least = [(step.cumulant_at(c) - 60) / c for step, _ in parts]
    ends = [step.extent(c) for step, _ in parts]
    reach = max(b - max(a, low) for (a, b), low in zip(ends, least, strict=True))
    period = 1.15 * min(period, width)
    if not np.isfinite(period):
        return None, least
    spacing = max(period / (most - 64), reach / (CELLS * most))
    unit = common_spacing(parts)
    if unit and unit > spacing:
        spacing = unit / np.floor(unit / spacing)
    size = 2 ** int(np.ceil(np.log2(period / spacing + 64)))
    top = sum(k * (step.top() + spacing) for step, k in parts)
    first = np.floor(start[1] / spacing) - size // 16
    if spacing * size >= width:  # the whole support, from its least loss on
        first = np.floor(sum(k * step.bottom() for step, k in parts) / spacing) - 8
    if not abs(first) < 2**52:
        return None, least
    return Grid(c, spacing, size, int(first), top, width), least


def anchor(parts, start):
    """A saddle point at or just left of this one (aliases are bounded from its e on), the same in a
    cell of 1 in c sd(L) or log c, whose epsilons share a lattice for e^(1/2) of round-off."""
    sd = np.sqrt(float(contour.derivatives(parts, np.array([start[0]]))[2][0]))
    cell = 0.5 ** np.ceil(np.log2(max(1.0, start[0] * sd)))

    @cache
    def at(n):
        return tuple(float(x[0]) for x in contour.saddles(parts, 1, np.array([cell * n]))[:3])

    low = high = int(np.floor(np.log(start[0]) / cell))
    reach = 1
    while at(low)[1] > start[1]:  # ``start`` is read from a table: its c may belong to a larger e
        low, high, reach = low - reach, low, 2 * reach
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle)[1] <= start[1] else (low, middle)
    return at(low)


def spread(parts, start, known=1.0):
    """Move the composition to a lattice and convolve, near the saddle point (c, e, log tail); None
    where that needs too fine a lattice, or too much work, or is no use beside what is known."""
    most = longest(parts)
    grid, _ = window(parts, start, most)
    if grid is None:
        return None
    if not grid.c * grid.spacing <= STEEPEST:
        return None
    rise = 0.5 * grid.c * (grid.c + 1) * strayed(parts, grid)
    if not rise <= FARTHEST or (known < HELPFUL * rise and start[2] < np.log(0.5)):
        return None
    spend(per_point(parts) * grid.size)
    return moved(parts, start, most)


def strayed(parts, grid):
    """The tilted variance of what the move to the lattice adds to the total loss, roughly."""
    total = 0.0
    for step, k in parts:
        if isinstance(step, Gaussian):  # one, and wide
            continue
        law = step.law(grid.c, 0.0)
        weight = law.log_p + grid.c * law.loss
        weight = np.exp(weight - weight.max())
        part = np.mod(law.loss, grid.spacing)
        total += k * float(weight @ (part * (grid.spacing - part)) / weight.sum())
    return total


@lru_cache(maxsize=4)
def moved(parts, start, most=SIZE):
    """The same, whatever it costs."""
    grid, least = window(parts, start, most)
    pairs = zip(parts, least, strict=True)
    cells = joined([(step.cells(grid.spacing, grid.c, low), k) for (step, k), low in pairs])
    halves = [(halved(law, grid), k) for law, k in cells]
    log_p, log_mass, variance = convolved(halves, grid, 0.0)
    rounds = sum(k for _, k in parts)
    count = min(grid.size, 1 / (2 * grid.c * grid.spacing) + 1)
    log_front = float(log_mass + np.log(FFT_NOISE * EPS * (5 + rounds) * np.sqrt(count)))
    check_mass(log_p, log_front, grid, start[1])
    inside = grid.c * (grid.loss - start[1]) < 200
    moving = variance > 1e-14 * grid.spacing**2
    lam = min(1.5 / np.sqrt(variance), 2 / grid.spacing) if moving else 0.0
    both = [
        convolved(halves, grid, sign * lam)[0][inside] if lam else log_p[inside] for sign in (1, -1)
    ]
    relative = SUMS_NOISE + CELL_NOISE * rounds + EPS * (abs(log_mass) + abs(grid.c * start[1]))
    log_alias = start[2] + np.log(ALIAS) if grid.spacing * grid.size < grid.width else -np.inf
    whole = bool(grid.loss[inside][-1] + grid.spacing >= sum(k * step.top() for step, k in parts))
    found = curve(grid.loss[inside], log_p[inside])
    return Spread(start[1], found, lam, *both, grid.c, log_front, relative, log_alias, whole)


def check_mass(log_p, log_front, grid, least):
    """All probabilities from this loss on sum to at most 1: mass that was wrapped to where it does
    not belong is seen here, for the tilt weighs it up."""
    valid = grid.loss >= least
    floor = log_front - grid.c * max(least, grid.loss[0])
    if log_sum_exp(log_p[valid]) > np.logaddexp(1e-6, floor + np.log(grid.size)):
        raise ArithmeticError("mass was wrapped on the lattice: please report this composition")
