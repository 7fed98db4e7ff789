"""delta(epsilon) by the trapezoid rule along one vertical line, with its error bound.

With M(z) = E exp(zL) of the total loss (Alghamdi et al. 2023, eq. 12; X-contour-inversion):

    delta(e)     =  (1/2 pi i) int M(z) e^(-ez) / (z (z+1)) dz    on Re z = c > 0,
    1 - delta(e) = -(1/2 pi i) int (the same)                     on Re z = c, -1 < c < 0.

The trapezoid rule with step 2 pi/P is *exactly* the sum over all integers m of t(e + mP) e^(cmP),
with t the tail on the left above (X-trapezoid): it can only over-report it, and Chernoff's bound
says by how much. Cutting the line at the height Y costs at most
sup_{y>Y} |M(c+iy)| e^(-ce) / (pi Y) (X-alias-bound).

*The pinch* (X-pinch). Where |M| does not fall, one more Gaussian release of a tiny mu = eta is
composed. It raises delta by eta^2 times a mean of the density of its loss at e - L, with a weight
between 1/2 - (5/32) r and e^(eta^2/8) - r/2 + r^2/13, r = ((e - L)/eta)^2. Both come from the same
nodes, as polynomials of s = (eta (z + 1/2))^2. Half of their sum is taken off delta, half of
their difference is the error. With |M| = 1 all are cut off by at most e^(-f) f^2/2 / (pi Y), if
f = (eta Y)^2/2 is at least 10 and Y at least 5 abs(c + 1/2).

*Losses on a lattice*, a + dn: M e^(-az) has the period 2 pi/d along the line. With P = Nd the sum
over all periods is one over N nodes, with a kernel that is a geometric series: no cut, no pinch
(jumps-lattice).
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import ceil, exp, isqrt, log, pi, sqrt

import numpy as np

from .gaussian import Gaussian
from .law import EPS
from .tilts import TOLERANCE, Tilts, least_bounds
from .total import Total

ENOUGH = 1e-9  # relative error: aliases and cut of a pinched line
WORK, BLOCK = 1_000_000_000, 4096  # most products of a line; nodes of a block
FEWEST = 100  # nodes of a pinched line
HEIGHTS = 1.15 ** np.arange(200)
NOTHING = -700.0  # log of what a node may have and is left out, beside those of 1e-290


@dataclass
class Line:
    """The integrand at the nodes c + iy, y = 0, h, 2h, ..., without its factor e^(K(c) - ce).

    Nodes below the axis are conjugates: twice the real part of a sum, in which y = 0 is halved."""

    tilts: Tilts
    c: float
    period: float
    count: int  # of nodes
    unit: float  # the weight of a node
    rivals: np.ndarray  # other tilts, and K + C there, for the bound on aliases
    log_cut: float  # log of the cut, over M(c) e^(-ce)
    grid: tuple | None = None  # (first loss, spacing, its round-off) of a lattice
    pinch: float = 0.0  # eta

    def __post_init__(self):
        """K(c) and its round-off; that of the sums at e = 0, and how much more a unit of e adds:
        the angle y e is off by 2 EPS of itself."""
        self.side, self.h = self.tilts.side, 2 * pi / self.period
        pinch = [Total([(Gaussian(self.pinch), 1)])] if self.pinch else []
        both = [self.tilts.total, *pinch]
        values, noises = zip(*(total.cumulant(self.c) for total in both), strict=True)
        self.cumulant = sum(values)
        self.round_off = sum(noises) + EPS * (16 + 8 * abs(self.cumulant))
        values, noises = zip(*(x.along(self.c, self.h, self.count) for x in both), strict=True)
        shape, noise = sum(values), sum(noises)  # log, of M^k
        shape[0] -= log(2)
        rows, width = 3 if self.pinch else 2, isqrt(self.count - 1) + 1
        self._square = np.zeros((rows, -(-self.count // width), width), dtype=complex)
        kernels, self._sizes = self._square.reshape(rows, -1), np.zeros((3, rows))
        for first in range(0, self.count, BLOCK):  # blocks, which a processor keeps at hand
            some = slice(first, min(first + BLOCK, self.count))
            y = self.h * np.arange(some.start, some.stop)
            z, value = self.c + 1j * y, np.exp(shape[some])
            off = np.expm1(noise[some]) + 10 * EPS
            off[shape[some].real + noise[some] < NOTHING] = 0.0
            if self.grid:
                off += self.grid[2] * np.abs(z)
                kernels[:, some] = self._of_lattice(self.grid[1], z, value)
            else:
                kernels[:, some] = self._kernels(z, value)
            self._sizes += [np.abs(kernels[:, some]) @ x for x in (off, 2 * EPS * y, y**0)]

    def _kernels(self, z, value):
        """M(z)/M(c) times the kernels of t, of -dt/de, and of the error of a pinch."""
        steep = value * (self.side / (z + 1))
        if not self.pinch:
            return steep * (1 / z), steep
        x, scale = (self.pinch * (z + 0.5)) ** 2, self.pinch**2 * value
        least, most = 11 / 32 - 5 / 32 * x, x * (x / 13 - 1 / 26) + exp(self.pinch**2 / 8) - 7 / 26
        half = scale * (most - least) / 2
        return steep * (1 / z) - self.side * (scale * least + half), steep, half

    def _of_lattice(self, spacing, z, value):
        one, other = -np.expm1(-z * spacing), -np.expm1(-(z + 1) * spacing)
        steep = self.side * value / other
        return -np.exp(-z * spacing) * np.expm1(-spacing) / one * steep, steep

    def sums(self, epsilon):
        """For an array of e: log t(e), abs(d log t/de), and a bound on the relative error of t."""
        place, left = self._first_above(epsilon)
        flat, steep, *density = 2 * self.unit * self._turned(place)
        # a tail is not below 0: less than this is round-off, and the error is many times as large
        value = np.maximum(flat - np.expm1(-left) * steep, 1e-290)
        slope = np.exp(-left) * np.abs(steep) / value
        front = self.cumulant - self.c * place
        rounding = self._rounding(0, place)
        if self.grid:  # and of the lattice itself, which moves ``left``
            slip = self.grid[2] * 2 * self.unit * self._sizes[2, 1]
            rounding = rounding - np.expm1(-left) * self._rounding(1, place) + slip
        rounding = rounding / value + self.round_off + 2 * EPS * np.abs(self.c * place)
        error = rounding + np.exp(self.log_cut) / value
        error += self._aliases(epsilon, self.cumulant - self.c * epsilon, value, left)
        if self.pinch:
            error += (np.abs(density[0]) + self._rounding(2, place)) / value
        return front + np.log(value), slope, np.where(np.isnan(error), np.inf, error)

    def _turned(self, place):
        """The sums of kernels times e^(-iy place): with y = coarse + fine, as in ``_direct_sums``,
        exponentials are needed only along two sides of a square."""
        many, rows, width = self._square.shape
        summed = np.empty((many, len(place)))
        block = max(1, 1_000_000 // (rows * many))
        for first in range(0, len(place), block):
            angle = -1j * self.h * place[first : first + block]
            fine = np.exp(np.multiply.outer(np.arange(width), angle))
            coarse = np.exp(np.multiply.outer(width * np.arange(rows), angle))
            sums = (self._square.reshape(-1, width) @ fine).reshape(many, rows, -1)
            summed[:, first : first + block] = (sums * coarse).sum(axis=1).real
        return summed

    def _first_above(self, epsilon):
        """On a lattice: its first loss above e, and its distance from e."""
        if self.grid is None:
            return epsilon, np.zeros_like(epsilon)
        first, spacing, _ = self.grid
        place = first + spacing * (np.floor((epsilon - first) / spacing) + 1)
        return place, np.clip(place - epsilon, 0.0, spacing)

    def _rounding(self, row, place):
        """The absolute round-off of the sum of one kernel."""
        still, turned, _ = self._sizes[:, row]
        return 2 * self.unit * (still + np.abs(place) * turned)

    def _aliases(self, epsilon, front, value, left):
        c, heights = self.rivals
        decay = np.abs(c - self.c) * self.period
        exponent = heights - np.multiply.outer(epsilon, c) - front[:, None] - decay
        exponent[:, decay < 0.7] = np.inf  # 1 / (1 - e^-decay) <= 2 for the others
        least = [np.fmin.reduce(exponent[:, way], axis=1) for way in (c > self.c, c < self.c)]
        scale = value * np.exp(-self.c * left)  # relative to e^(-ce), not e^(-c place)
        return 2 * sum(map(np.exp, least)) / scale


class SumOfLines:
    """Lines of measures that add up, and the tables of those that are only bounded."""

    pinch = 0.0

    def __init__(self, lines, rest):
        self.lines, self.rest = lines, rest

    def sums(self, epsilon):
        answers = np.array([one.sums(epsilon) for one in self.lines])
        log_tail = np.logaddexp.reduce(answers[:, 0])
        share = np.exp(answers[:, 0] - log_tail)
        slope, error = (share[:, None] * answers[:, 1:]).sum(axis=0)
        for tilts in self.rest:
            error += np.exp(tilts.log_bounds(epsilon) - log_tail)
        return log_tail, slope, np.where(np.isnan(error), np.inf, error)  # 0 times inf


def fall(total, c, variance, log_room, most):
    """The least height, of a grid, from which on the cut is at most e^log_room, and log of the cut
    there; or (None, None)."""
    heights = 5 / sqrt(variance + 1 / c**2) * HEIGHTS
    last = int(np.searchsorted(heights, most)) - 1
    falls = total.falls(c)

    def bound(n):
        return _log_cut(falls, float(heights[n]))

    n = bisect_left(range(last + 1), True, key=lambda n: bound(n) <= log_room)
    return (float(heights[n]), bound(n)) if n <= last else (None, None)


def _log_cut(falls, height):
    """log of what lies beyond the height, over M(c) e^(-ce): 1/(pi Y) of what M has fallen to."""
    return falls(height) - log(pi * height)


def line(tilts, start, nodes, pinched):
    """The line for a saddle point, or None if it can't be had with so many nodes, or so many with a
    pinch."""
    total = tilts.total
    c, period, rivals, value, variance = tilts.plan(start)
    if not np.isfinite(period):
        return None
    if grid := total.lattice:
        count = ceil(period / grid[1])
        if count <= nodes and total.work(c, 2 * pi / (count * grid[1]), count // 2 + 1) <= WORK:
            count |= 1  # all of one period, of which half are conjugates of the others
            period, cut = count * grid[1], -np.inf
            return Line(tilts, c, period, count // 2 + 1, 1 / count, rivals, cut, grid)
    step = 2 * pi / period
    log_room = start.log_tail - (value - c * start.epsilon) + log(TOLERANCE)
    height, log_cut = fall(total, c, variance, log_room, nodes * step)
    if height is not None:
        count = ceil(height / step) + 1
        if total.work(c, step, count) <= WORK:
            return Line(tilts, c, period, count, 1 / period, rivals, log_cut)
    return _pinched(tilts, start, pinched)


def beside(one, tilts, epsilon):
    """Bounds on log t(e) of the other direction from tilts near a plain line of one direction: that
    of Chernoff, and that of a line in the same place, whose error says whether it serves there."""
    plain = isinstance(one, Line) and one.side > 0 and not (one.pinch or one.grid)
    if plain and one.count > 1 and log(one.rivals[0].max()) <= tilts.cap:
        rivals = tilts.rivals(one.rivals[0, 1:])[2]
        yield least_bounds(epsilon, *rivals)[0]
        if tilts.total.work(one.c, one.h, one.count) > WORK:
            return
        log_cut = _log_cut(tilts.total.falls(one.c), one.h * (one.count - 1))
        log_cut += tilts.allowance(log_cut)
        place = one.c, one.period, one.count, one.unit
        (log_tail,), _, (error,) = Line(tilts, *place, rivals, log_cut).sums(epsilon)
        yield log_tail + np.log1p(error)


def _pinched(tilts, start, count):
    """With a pinch that makes M fall as far as so many nodes reach, or fewer if they are too much
    work. Its exponent at the last node is -f, with e^(-f) f^2/2 / (pi Y) about ENOUGH of the tail:
    one step of f = room + 2 log f, and at least the 10 of the bound on the cut."""
    c, period, rivals, value, _ = tilts.plan(start, ENOUGH)
    step = 2 * pi / period
    log_tail = start.log_tail - (value - c * start.epsilon)  # over M(c) e^(-ce)
    while count >= FEWEST and tilts.total.work(c, step, count) > WORK:
        count = count * 3 // 4
    if count < FEWEST:
        return None
    height = count * step
    room = max(10.0, -log_tail - log(ENOUGH * pi * height))
    fallen = room + 2 * log(room)
    eta = sqrt(2 * fallen) / height
    if eta > 1 or c + 0.5 > height / 5:
        return None
    log_cut = log(fallen**2 / 2 / pi / height) - fallen
    return Line(tilts, c, period, count + 1, 1 / period, rivals, log_cut, pinch=eta)
