"""The privacy loss of one step, L = log p(X)/q(X) with X ~ p, as a quadrature rule.

Each kind of step says two things about M(z) = E exp(zL), beside ``size`` (how many losses its rule
has), ``tilt_limit``, ``sampled``, and where its own differs what ``Step`` says of all kinds:

``rule(c, band)``
    finitely many losses and log probabilities whose sum is M(z) at Re z = c, 0 <= Im z <= band,
    and with band = 0 at all real z from -1 to c (with a band they may be complex). Steps that have
    the same losses with different probabilities may be summed together: these are the rows of a
    matrix, each run ``times``;
``fallings(c)``
    a function of a height: of each row a bound on log(abs(M(c + iy)) / M(c)) for all y from there.

K = log M of each row, its derivatives, its values along a vertical line and their round-off follow
from the rule (``total`` adds them up). No sum loses digits where the losses are small: 1e9 rounds
need K of one round to 1e-24.
"""

from collections.abc import Callable
from functools import lru_cache
from math import inf, isqrt, sqrt
from typing import NamedTuple

import numpy as np

from ..numerics import expm1_complex, log1p_complex, mean_excess

EPS = 2.0**-52
TERM = 16  # EPS of a term: its own, those of its exponent, and of a sum of thousands
UNDERFLOW = 1e-300  # more than what is lost in a sum of a few thousand terms
LIGHT = 1e-40  # outcomes of less than this share of the largest tilted one are left out of a line
BLOCK = 400_000  # entries of the largest matrix that is held at once
SOME = 32  # rows that are summed along a line at once, at most
MANY, MOST = 1_500, 900_000  # losses, and nodes, for which a transform pays; losses of a line
TERMS, FOURIER = 22, 128  # of its series; its round-off in EPS, more than 5 (4 + log2 of 2^20)
kept = lru_cache  # of methods: steps are frozen values, so that equal ones share what is kept


def in_blocks(answers, epsilon, most):
    """Rows of answers for an array of e, so many at once."""
    if len(epsilon) <= most:
        return answers(epsilon)
    firsts = range(0, len(epsilon), most)
    return np.concatenate([answers(epsilon[n : n + most]) for n in firsts], axis=1)


class Rule(NamedTuple):
    """Losses and their log probabilities under p; ``infinite`` is the mass of p where q = 0,
    ``lost`` that of q where p = 0, ``gap`` is their difference, if known."""

    loss: np.ndarray
    log_p: np.ndarray
    infinite: float = 0.0
    lost: float = 0.0
    gap: float | None = None


def ratios_to_first(log_terms):
    """Rows as products with the first: log of the largest ratio, and ratios relative to it."""
    if len(log_terms) == 1:
        return np.zeros((1, 1)), np.ones(log_terms.shape)
    ratios = np.where(log_terms[0] > -inf, log_terms - log_terms[0], -inf)
    most = ratios.max(axis=1)[:, None]
    return most, np.exp(ratios - most)


def phase_sums(weights, loss, h, count):
    """(sums, moved). For each row of weights the sums of weights (exp(iy loss) - 1) at y = 0, h,
    ..., (count - 1) h, and the weight that was summed by FFT: its round-off does not vanish as
    y -> 0."""
    if len(loss) < MANY or count < MANY or np.iscomplexobj(loss):
        return _direct_sums(weights, loss, h, count), np.zeros((len(weights), 1))
    total, moved = zip(*(_fourier_sums(row, loss, h, count) for row in weights), strict=True)
    return np.array(total), np.array(moved)[:, None]


def _fourier_sums(weights, loss, h, count):
    """The sums of weights (exp(iy loss) - 1), and the weight of what is transformed: each loss is
    moved to the nearest multiple of a spacing, by x spacings, and exp(iyx) is its series. With y up
    to half of the transform's period, its terms are at most (pi/2)^n / n!. What is moved to 0 needs
    no transform."""
    size = 2 ** (2 * count - 1).bit_length()
    place = loss * (h * size / (2 * np.pi))
    order = np.argsort(place, kind="stable")
    place, weights = place[order], weights[order]
    cell = np.rint(place)
    near = cell == 0
    still, light, place, weights = place[near], weights[near], place[~near], weights[~near]
    cell, moved, power = cell[~near], weights.sum(), np.ones(count, complex)
    total = -moved * power
    first = np.flatnonzero(np.diff(cell, prepend=-np.inf))
    x, cell = place - cell, cell[first].astype(np.int64) % size
    for n in range(TERMS):  # reduceat adds in pairs: many equal weights lose no digits
        moments = np.bincount(cell, np.add.reduceat(weights, first), size)
        total += power * (np.conj(np.fft.rfft(moments)[:count]) + (light.sum() if n else 0.0))
        weights, light = weights * x, light * still
        power = power * (2j * np.pi / size / (n + 1)) * np.arange(count)
    return total, moved


def _direct_sums(weights, loss, h, count):
    """For each row the sums of weights (exp(iy loss) - 1). With y = coarse + fine,
    e^(ia) e^(ib) - 1 = AB + A + B for A = e^(ia) - 1, B = e^(ib) - 1: the turns of a square grid
    are two thin matrices, and their product."""
    many, width = len(weights), isqrt(count - 1) + 1
    rows = -(-count // width)
    total = np.zeros((many * rows, width), dtype=complex)
    step = max(1, BLOCK // (many * rows + width))
    for first in range(0, len(loss), step):
        part, weight = loss[first : first + step], weights[:, first : first + step]
        coarse = _exp_minus_1(np.multiply.outer(width * h * np.arange(rows), part))
        coarse = (coarse * weight[:, None]).reshape(many * rows, -1)
        fine = _exp_minus_1(np.multiply.outer(h * np.arange(width), part))
        total += coarse @ fine.T + coarse.sum(axis=1)[:, None]
        total += np.repeat(weight @ fine.T, rows, axis=0)
    return total.reshape(many, -1)[:, :count]


def _exp_minus_1(angle):
    """exp(i angle) - 1."""
    if np.iscomplexobj(angle):
        return expm1_complex(1j * angle)
    turn = np.empty(angle.shape, dtype=complex)
    turn.real = -2 * np.sin(angle / 2) ** 2
    turn.imag = np.sin(angle)
    return turn


class Step:
    """What follows from ``rule``, and what holds for most kinds."""

    rule: Callable  # of its own for each kind, as the next four
    size: Callable
    fallings: Callable
    tilt_limit: Callable
    sampled: Callable  # of a rate: the step on a Poisson sample of the data
    side: int  # 1, or -1 with the laws exchanged
    infinite = 0.0  # the probability of an infinite loss
    times = np.ones(1)  # of the rows of its law: how often each is run
    slips = 0.0  # the round-off of losses, beside that of a quadrature rule
    listed = None  # losses, log p and slips of a finite law
    smooth = False  # whether M falls to nothing along a line
    sorts = False  # whether ``part`` and ``thresholds`` serve for bands of losses
    kin = None  # what is the same in steps that may be rows of one

    def curve(self):
        """The tail of one step in closed form, if it is written down."""
        return None

    def flipped(self):
        """The step with p and q exchanged."""
        return self

    def _power(self, c):
        """Of the ratio of both laws of a sample, in p e^(cL) = q ratio^power, q the one without."""
        return 1 + c if self.side > 0 else -c

    def weaker(self, other):
        """Whether it is the other step, or one that is known to be dominated by it."""
        return self == other

    def left_out(self, _c):
        """What K(c) grows by, at most, if no part of the law is left out."""
        return inf if self.infinite else 0.0

    def top(self):
        """The largest finite loss, rounded down and rounded up, and log of its probability."""
        return inf, inf, -inf

    def spread(self):
        """The standard deviation of the loss, roughly."""
        return sqrt(self.tables(np.zeros(1))[2, 0, 0])

    def tables(self, c):
        """K, K' and K'' of each row at an array of tilts c >= -1, to 1e-15 and 1e-13 of themselves;
        K is not below its value where numbers underflow. Rows are told by their ratios to the
        first."""
        loss, log_p, *_ = self.rule(float(c.max()), 0.0)
        if len(c) > 1 and len(loss) * len(c) > BLOCK // 4:
            return np.concatenate([self.tables(half) for half in np.array_split(c, 2)], axis=2)
        front, ratios = ratios_to_first(np.atleast_2d(log_p))
        terms = np.atleast_2d(log_p)[0] + np.multiply.outer(c, loss)
        top = terms.max(axis=1)
        weights = np.exp(terms - top[:, None])
        mass = ratios @ weights.T + UNDERFLOW
        mean, square = ((ratios * loss**n) @ weights.T / mass for n in (1, 2))
        return np.array([front + top + np.log(mass), mean, np.maximum(square - mean**2, 0.0)])

    def mean(self):
        """E L = E[exp(-L) - 1 + L] + (the mass of q where p has none): positive terms only."""
        loss, log_p, _, lost, _ = self.rule(0.0, 0.0)
        return float(self.times @ (mean_excess(np.atleast_2d(log_p), -loss).sum(axis=1) + lost))

    def cumulants(self, c):
        """K(c) of each row, and a bound on its round-off.

        M(c) - 1 = c E L + E[exp(cL) - 1 - cL] - (1 + c) P(L = infinity). The terms of first order
        in L cancel in ``first``, before anything is rounded."""
        loss, log_p, infinite, lost, gap = self.rule(c, 0.0)
        log_p, gap = np.atleast_2d(log_p), lost - infinite if gap is None else gap
        tilted, sizes = c * loss, TERM + 5 * abs(log_p)
        exponents = log_p + tilted
        top = exponents.max(axis=1)
        terms, first = mean_excess(log_p, tilted), mean_excess(log_p, -loss)
        rise = terms.sum(axis=1) + c * (first.sum(axis=1) + gap) - infinite
        noise = (terms * (sizes + abs(tilted)) + abs(c) * first * (sizes + abs(loss))).sum(axis=1)
        noise += TERM * abs(rise) + 64 * (abs(c * gap) + infinite)
        # what moves a loss by x moves p (e^(cL) - 1 - cL) + cp (e^(-L) - 1 + L) by so much
        moves = np.minimum((1 + c) * abs(loss), 1.0) * np.exp(np.maximum(exponents, log_p - loss))
        noise = EPS * noise + abs(c) * (moves * self.slips).sum(axis=1)
        far = (top > 20) | ~((rise > -0.5) & (rise < 1e9))
        rise = np.where(far, 0.0, rise)
        value, noise = np.log1p(rise), noise / (1 + rise)
        if far.any():
            terms = np.exp(exponents - top[:, None])
            mass = terms.sum(axis=1)
            off = EPS * (sizes + abs(tilted)) + abs(c) * self.slips
            value = np.where(far, top + np.log(mass), value)
            noise = np.where(far, (terms * off).sum(axis=1) / mass, noise)
        return value, noise

    def work(self, c, h, count):
        """About how many products ``rows_along`` needs: 50 a loss and 300 a node for the transform;
        of each row."""
        losses, rows = self.size(c, h * (count - 1)), len(self.times)
        products = min(losses * count / 4, 50 * losses + 300 * count)
        return rows * products if rows * losses <= MOST else inf

    def rows_along(self, c, h, count):
        """For some rows, then the next: which they are, K(c + iy) - K(c) of each at y = 0, h, ...,
        (count - 1) h, and a bound on its round-off d: M(z) is off by expm1(d) of itself.

        Each weight is off by EPS times 16, 5 sizes of log p and one of cL, each angle y L by 5 EPS
        of itself, and both by what ``slips`` says of L; all are taken to err the same way."""
        losses, rows, *_ = self.rule(c, h * (count - 1))
        rows, y = np.atleast_2d(rows), h * np.arange(count)
        block = max(1, min(SOME, BLOCK // (4 * count)))
        for start in range(0, len(rows), block):
            some = slice(start, start + block)
            log_p = rows[some]
            terms = log_p + c * losses
            weights = np.exp(terms - terms.real.max(axis=1)[:, None])
            heavy = (abs(weights) > LIGHT).any(axis=0)
            slips = np.broadcast_to(self.slips / EPS, losses.shape)[heavy]
            loss, weights = losses[heavy], weights[:, heavy] / weights.sum(axis=1)[:, None]
            value, moved = phase_sums(weights, loss, h, count)
            weights = abs(weights)
            sizes = TERM + 5 * abs(log_p[:, heavy]) + abs(c) * (abs(loss) + slips)
            value, slip = log1p_complex(value), np.multiply.outer(weights @ slips, y)
            most = 5 * np.multiply.outer(weights @ abs(loss), y)
            weights = weights * sizes
            most += 2 * weights.sum(axis=1)[:, None]
            near = np.multiply.outer(weights @ abs(loss), y)
            noise = EPS * (np.minimum(near, most) + slip + FOURIER * moved)
            # what is below its round-off is said to be as large, and off by twice as much
            least = np.log(np.maximum(noise, 1e-300))
            lost = value.real < least
            value.real = np.where(lost, least, value.real)
            yield some, value, np.log1p(np.where(lost, 2.0, noise * np.exp(-value.real)))
