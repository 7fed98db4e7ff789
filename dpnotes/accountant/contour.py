"""delta(epsilon) as an integral along a line in the complex plane, with its error bound.

With K(z) = log E_P exp(zL) of the total loss (Alghamdi et al. 2023, eq. 12; a Laplace inversion):

    delta(e)     =  (1/2 pi i) int exp(K(z) - e z) / (z (z+1)) dz    on Re z = c > 0,
    1 - delta(e) = -(1/2 pi i) int (the same)                        on Re z = c, -1 < c < 0.

The trapezoid rule with step 2 pi/P along the line equals *exactly* (Poisson summation)

    sum over all integers m of tail(e + mP) exp(c m P),    tail = delta, or 1 - delta,

so it can only over-report the tail: delta on the right line; 1 - delta on the left one, where
delta is under-reported by at most 1e-14 (1 - delta) (callers return the safe end). Chernoff's
bound tail(e) <= exp(K(c') + C(c') - c' e), at other c', says by how much. Cutting the line at
height Y leaves out at most sup_{y>Y} |exp K(c+iy)| exp(-c e) / (pi Y). What is left is round-off.
"""

from dataclasses import replace
from functools import cache, lru_cache
from math import log, sqrt

import numpy as np

from .law import EPS, exact_step
from .lines import Line
from .schedule import Schedule, grouped
from .work import spend

__all__ = []

TOLERANCE = 1e-14  # of aliases and of the cut, relative to the tail
MOST_NODES = 400_000
MOST_VALUES = 300_000  # of the loss at a real z, for a line: 31 shifted ones are 150 MB
SHIFTS = np.geomspace(0.003, 2.0, 14)
SHIFTS = np.concatenate([-SHIFTS[::-1], [0.0], SHIFTS])  # of log c: where a line may be
TABLE = np.linspace(-9.0, 0.0, 28)
MOST_MESH, MESH = 2_000_000, 40  # values along a line: some are 100 MB; work of each


def total(parts, z):
    """K(z) of the composition at an array of real z."""
    return sum(k * step.cumulant(z) for step, k in grouped(parts))


def total_at(parts, c):
    """K(c) of the composition at one real c."""
    return sum(k * step.cumulant_at(c) for step, k in grouped(parts))


def derivatives(parts, z):
    """K, K' and K'' of the composition at an array of real z."""
    return sum(k * np.array(step.derivatives(z)) for step, k in grouped(parts))


def log_kernel(c):
    """log |1/(c (c+1))|."""
    return -np.log(np.abs(c)) - np.log1p(c)


def chernoff(c):
    """C(c): the largest value of tail/exp(-c(e - L)), c log c - (c+1) log(c+1), or 0 below 0;
    as -c log(1 + 1/c) - log(1 + c), without the cancellation that c = 1e15 would suffer."""
    positive = np.maximum(c, 1e-300)
    return np.where(c > 0, -positive * np.log1p(1 / positive) - np.log1p(positive), 0.0)


def abscissa(side, t):
    """A real t to the half line c > 0 (side 1) or to the gap -1 < c < 0 (side -1), increasing."""
    return np.exp(t) if side > 0 else -1 / (1 + np.exp(t))


def saddles(parts, side, t):
    """For an array t: c, and the e whose integrand has its saddle there, the saddle-point value
    of log tail(e), and K(c)."""
    c = abscissa(side, t)
    cumulant, mean, variance = derivatives(parts, c)
    epsilon = mean - 1 / c - 1 / (c + 1)
    curvature = variance + 1 / c**2 + 1 / (c + 1) ** 2
    value = cumulant - c * epsilon + log_kernel(c) - 0.5 * np.log(2 * np.pi * curvature)
    return c, epsilon, value, cumulant


@lru_cache(maxsize=16)
def first_table(parts, side):
    """t and ``saddles`` there, where most saddle points are; the parts are ``grouped``."""
    t = scale(parts, side) + TABLE
    return t, saddles(parts, side, t)


@lru_cache(maxsize=16)
def saddle_at(parts, side, epsilon):
    """(c, e, log tail) of the saddle point for a given e."""
    return _locate(parts, side, lambda found: found[1], epsilon)


@lru_cache(maxsize=16)
def saddle_for(parts, side, log_tail):
    """(c, e, log tail) of the saddle point for a given tail."""
    return _locate(parts, side, lambda found: -side * found[2], -side * log_tail)


def log_limit(parts, side):
    """The largest t worth a look."""
    if side < 0:
        return 60.0
    return log(min(min(step.tilt_limit(800.0) for step, _ in grouped(parts)), 1e25))


def scale(parts, side):
    """A t beyond most saddle points: c = 40 standard deviations of the loss, inverted."""
    if side < 0:
        return 5.0
    spread = max(sqrt(sum(k * step.spread() ** 2 for step, k in grouped(parts))), 1e-100)
    return min(log(40 / spread), log_limit(parts, side))


def _locate(parts, side, column, target):
    """Where an increasing column of ``saddles`` reaches its target: a table, refined where
    it is steep (a wall, where the tail passes from many small losses to few large ones)."""
    parts = grouped(parts)
    cap, (t, found) = log_limit(parts, side), first_table(parts, side)
    while column(found)[0] > target and t[0] > -80:
        t = t - 8.5
        found = saddles(parts, side, t)
    while column(found)[-1] < target and t[-1] < cap:
        t = np.linspace(t[-2], min(t[-1] + 8.5, cap), 28)
        found = saddles(parts, side, t)
    for _ in range(8):
        values = np.maximum.accumulate(column(found))
        i = min(max(int(np.searchsorted(values, target)), 1), len(t) - 1)
        if values[i] - values[i - 1] < 4.0:
            break
        t = np.linspace(t[i - 1], t[i], 9)
        found = saddles(parts, side, t)
    at = np.interp(target, values, t)
    return float(abscissa(side, at)), *(float(np.interp(at, t, x)) for x in found[1:3])


def chernoff_table(parts, c):
    """25 c > 0 around that of a saddle point, and K(c) + C(c), rounded up: ``total`` keeps K
    to 1e-13 relative for any number of rounds (the K of ``derivatives`` is off by 1e-15 a round),
    C is right to a few units of round-off, and 1e-12 of each covers both."""
    c = c * np.geomspace(0.3, 3.0, 25)
    cumulant, constant = total(parts, c), chernoff(c)
    return c, cumulant + constant + 1e-12 * (np.abs(cumulant) + np.abs(constant))


def log_chernoff(parts, epsilon, c):
    """min over a table of c of K(c) + C(c) - c e: the bound on log delta(e) that Renyi DP gives."""
    c, values = chernoff_table(parts, c)
    return float(np.min(values - (1 - 4 * EPS) * c * epsilon))


def rough_bound(parts, epsilon):
    """log of that bound on delta(e), from the first table alone."""
    return _roughly(parts, lambda c, bound: bound - (1 - 1e-14) * c * epsilon)


def rough_epsilon(parts, log_tail):
    """Its inverse, likewise."""
    return _roughly(parts, lambda c, bound: (1 + 1e-14) * (bound - log_tail) / c)


def _roughly(parts, answer):
    """The least answer(c, bound on K(c) + C(c)) in the first table, with room for the round-off of
    K, 1e-15 a round, and of C."""
    rounds, parts = sum(k for _, k in parts), grouped(parts)
    c, _, _, cumulant = first_table(parts, 1)[1]
    room = chernoff(c) + 1e-14 * rounds + 1e-12
    found = answer(c, cumulant + room)
    if any(isinstance(step, Schedule) for step, _ in parts):  # there K is rough
        best = int(np.argmin(found))
        return float(answer(c[best], total_at(parts, float(c[best])) + room[best]))
    return float(np.min(found))


def chernoff_epsilon(parts, log_tail):
    """Its inverse, min over c of (K(c) + C(c) - log delta)/c."""
    c, values = chernoff_table(parts, saddle_for(parts, 1, log_tail)[0])
    return float(np.min((values - log_tail) / c))


def plan(parts, side, c, epsilon, log_tail):
    """(c, P, rivals, K''(c)): the line with the shortest period whose aliases are negligible.

    The alias at m < 0 is bounded by a rival c' < c, that at m > 0 by one at c' > c, each by
    exp(A' - |c - c'| P) with A' = K(c') + C(c') - c' e; all are read from one table of K.
    """
    limit = min(step.smooth_limit() for step, _ in parts)
    t = np.log(c) if side > 0 else np.log(-1 / c - 1)
    table = abscissa(side, t + SHIFTS)
    cumulant, _, variance = derivatives(parts, table)
    values = cumulant + chernoff(table)
    ends, at_ends = ([0.0], [0.0]) if side > 0 else ([-1.0, 0.0], [0.0, 0.0])
    rivals = np.array([np.concatenate([ends, table]), np.concatenate([at_ends, values])])
    exponent = rivals[1] - rivals[0] * epsilon - log_tail - np.log(TOLERANCE)
    exponent = np.maximum(exponent, 1.0)
    gap = rivals[0][None, :] - table[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        period = exponent / np.abs(gap)
    above = np.where(gap > 0, period, np.inf).min(axis=1)
    below = np.where(gap < 0, period, np.inf).min(axis=1)
    loss = cumulant - table * epsilon + log_kernel(table)
    cost = np.where(loss < max(loss.min() + 2.5, log_tail), np.maximum(above, below), np.inf)
    cost = np.where(table <= limit, cost, np.inf)
    best = int(np.argmin(cost))
    return float(table[best]), 1.001 * float(cost[best]), rivals, float(variance[best])


def cut_height(parts, c, variance, log_room, most):
    """Least Y found, and its bound, with sup_{y>Y} |exp(K(c+iy) - K(c))| / (pi Y) <= e^log_room.

    The bound falls with Y: the least of the heights least, 1.2 least, ... is found by bisection,
    from where a Gaussian of this variance would end."""
    ceilings = [(k, step.ceiling(c)) for step, k in grouped(parts)]
    least = 5 / sqrt(variance + 1 / c**2)

    @cache
    def bound(n):
        height = least * 1.2**n
        return sum(k * ceiling(height) for k, ceiling in ceilings) - np.log(np.pi * height)

    last = int(log(max(most / least, 1.0)) / log(1.2)) if most >= least else -1
    low, high, reach = -1, last + 1, 1
    at = min(int(log(max(0.25 * sqrt(2 * max(-log_room, 1.0)), 1.0)) / log(1.2)), last)
    while high - low > 1:
        if bound(at) <= log_room:
            high, at = at, max(at - reach, (low + at) // 2)
        else:
            low, at = at, min(at + reach, (at + high) // 2)
        reach *= 2
    return (least * 1.2**high, bound(high)) if high <= last else (None, None)


def moved(line, parts):
    """The same line through the plane of other parts; its bounds are left as they are."""
    parts = grouped(parts)
    shape = sum(k * step.line(line.c, line.y)[0] for step, k in parts)
    return replace(line, cumulant=total_at(parts, line.c), shape=shape)


def line_at(parts, side, epsilon):
    """The line for one epsilon, or None."""
    return line(parts, side, saddle_at(parts, side, epsilon))


def line(parts, side, start):
    """The line for a saddle point ``start`` = (c, e, log tail), or None if it is too long."""
    _, epsilon, log_tail = start
    parts = grouped(parts)
    c, period, rivals, variance = plan(parts, side, *start)
    values = sum(step.work(c, 0.0) for step, _ in parts)
    if not np.isfinite(period) or values > MOST_VALUES:
        return None
    h = exact_step(2 * np.pi / period, 28)
    period = 2 * np.pi / h
    cumulant = total_at(parts, c)
    log_room = log_tail - (cumulant - c * epsilon) + np.log(TOLERANCE)
    height, log_cut = cut_height(parts, c, variance, log_room, MOST_NODES * 2 * np.pi / period)
    if height is None:
        return None
    nodes = int(np.ceil(height * period / (2 * np.pi))) + 1
    band = h * (nodes - 1)
    values = sum(step.work(c, band) for step, _ in parts)  # a fast phase needs a finer mesh
    if nodes > MOST_NODES or not values <= MOST_MESH:
        return None
    spend(MESH * values)
    y = h * np.arange(nodes)
    shape, noise = np.zeros(nodes, dtype=complex), np.zeros(nodes)
    for step, k in parts:
        value, error = step.line(c, y)
        shape += k * value
        noise += k * error
    beyond = sum(k * step.cumulant_noise(c) for step, k in parts)
    round_off = EPS * (16 + 8 * abs(cumulant) + beyond)
    return Line(c, period, y, cumulant, round_off, shape, noise, rivals, log_cut)
