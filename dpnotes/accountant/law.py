"""The privacy loss of one step, L = log p(X)/q(X) with X ~ p, as a quadrature rule.

Each kind of step says two things about M(z) = E exp(zL), beside ``size`` (how many losses its rule
has), ``tilt_limit``, and where its own differs what ``Step`` says of all kinds:

``rule(c, band)``
    finitely many losses and log probabilities whose sum is M(z) at Re z = c, 0 <= Im z <= band,
    and with band = 0 at all real z from -1 to c;
``falls(c)``
    a function of a height: a bound on log(abs(M(c + iy)) / M(c)) for all y from there on.

K = log M, its derivatives, its values along a vertical line and their round-off follow from the
rule. No sum loses digits where the losses are small: 1e9 rounds need K of one round to 1e-24.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isqrt, sqrt
from typing import NamedTuple

import numpy as np

from ..numerics import log1p_complex, mean_excess

EPS = 2.0**-52
TERM = 16  # EPS of a term: its own, those of its exponent, and of a sum of thousands
LIGHT = 1e-40  # outcomes of less than this share of the largest tilted one are left out of a line
BLOCK = 1_000_000  # entries of the largest matrix that is held at once
FEW, MOST = 300_000, 900_000  # nodes times losses that need no transform; losses of a line
TERMS, FOURIER = 22, 128  # of its series; its round-off in EPS, more than 5 (4 + log2 of 2^20)


class Rule(NamedTuple):
    """Losses and their log probabilities under p; ``infinite`` is the mass of p where q = 0,
    ``lost`` that of q where p = 0, ``gap`` is their difference, if known."""

    loss: np.ndarray
    log_p: np.ndarray
    infinite: float = 0.0
    lost: float = 0.0
    gap: float | None = None


def phase_sums(weights, loss, h, count, room):
    """The sums of weights (exp(iy loss) - 1) at y = 0, h, ..., (count - 1) h; and how much weight
    went through a Fourier transform, which is fast, but errs where y is small, too. Those are the
    largest losses, of a weight of at most ``room``."""
    if len(loss) * count < FEW:
        return _direct_sums(weights, loss, h, count), 0.0
    far = len(loss)
    if room < 1:
        order = np.argsort(-abs(loss))
        weights, loss = weights[order], loss[order]
        far = int(np.searchsorted(np.cumsum(weights), room))
    total, moved = _direct_sums(weights[far:], loss[far:], h, count), float(weights[:far].sum())
    return total + _fourier_sums(weights[:far], loss[:far], h, count) - moved, moved


def _fourier_sums(weights, loss, h, count):
    """The sums of weights exp(iy loss): each loss is moved to the nearest multiple of a spacing, by
    x spacings, and exp(iyx) is its series. With y up to half of the transform's period, its terms
    are at most (pi/2)^n / n!."""
    size = 2 ** (2 * count - 1).bit_length()
    place = loss * (h * size / (2 * np.pi))
    order = np.argsort(place, kind="stable")
    place, weights = place[order], weights[order]
    power, total = np.ones(count, complex), np.zeros(count, complex)
    cell = np.rint(place)
    first = np.flatnonzero(np.diff(cell, prepend=-np.inf))
    x, cell = place - cell, cell[first].astype(np.int64) % size
    for n in range(TERMS):  # reduceat adds in pairs: many equal weights lose no digits
        moments = np.bincount(cell, np.add.reduceat(weights, first), size)
        total += power * np.conj(np.fft.rfft(moments)[:count])
        weights = weights * x
        power = power * (2j * np.pi / size / (n + 1)) * np.arange(count)
    return total


def _direct_sums(weights, loss, h, count):
    """The sums of weights (exp(iy loss) - 1). With y = coarse + fine, e^(ia) e^(ib) - 1 =
    AB + A + B for A = e^(ia) - 1, B = e^(ib) - 1: the turns of a square grid are two thin matrices,
    and their product."""
    width = isqrt(count - 1) + 1
    rows = -(-count // width)
    total = np.zeros((rows, width), dtype=complex)
    step = max(1, BLOCK // (rows + width))
    for first in range(0, len(loss), step):
        part, weight = loss[first : first + step], weights[first : first + step]
        coarse = _exp_minus_1(np.multiply.outer(width * h * np.arange(rows), part)) * weight
        fine = _exp_minus_1(np.multiply.outer(h * np.arange(width), part))
        total += coarse @ fine.T + coarse.sum(axis=1)[:, None] + fine @ weight
    return total.ravel()[:count]


def _exp_minus_1(angle):
    """exp(i angle) - 1."""
    found = np.empty(angle.shape, dtype=complex)
    found.real = -2 * np.sin(angle / 2) ** 2
    found.imag = np.sin(angle)
    return found


class Step:
    """What follows from ``rule``, and what holds for most kinds."""

    rule: Callable  # of its own for each kind, as ``size``
    size: Callable
    infinite = 0.0  # the probability of an infinite loss
    rounds = 1  # how many it stands for
    slips = 0.0  # the round-off of losses, beside that of a quadrature rule
    lattice = None  # losses of which all differ by multiples of one number, or None

    def flipped(self):
        """The step with p and q exchanged."""
        return self

    def top(self):
        """The largest finite loss, rounded up."""
        return inf

    def low_top(self):
        """The same, rounded down."""
        return self.top() * (1 - 16 * EPS)

    def log_at_top(self):
        """log of the probability of the largest loss."""
        return -inf

    def spread(self):
        """The standard deviation of the loss, roughly."""
        return sqrt(self.table(np.zeros(1))[2][0])

    def table(self, c):
        """K, K' and K'' at an array of tilts c >= -1, to 1e-15 and 1e-13 of themselves."""
        rule = self.rule(float(c.max()), 0.0)
        if len(c) > 1 and len(rule.loss) * len(c) > BLOCK // 4:
            return np.concatenate([self.table(half) for half in np.array_split(c, 2)], axis=1)
        terms = rule.log_p + np.multiply.outer(c, rule.loss)
        top = terms.max(axis=1)
        weights = np.exp(terms - top[:, None])
        mass = weights.sum(axis=1)
        weights *= rule.loss
        mean = weights.sum(axis=1) / mass
        weights *= rule.loss
        variance = np.maximum(weights.sum(axis=1) / mass - mean**2, 0.0)
        return np.array([top + np.log(mass), mean, variance])

    def mean(self):
        """E L = E[exp(-L) - 1 + L] + (the mass of q where p has none): positive terms only."""
        loss, log_p, _, lost, _ = self.rule(0.0, 0.0)
        return float(mean_excess(log_p, -loss).sum()) + lost

    def cumulant(self, c):
        """K(c), and a bound on its round-off.

        M(c) - 1 = c E L + E[exp(cL) - 1 - cL] - (1 + c) P(L = infinity). The terms of first order
        in L cancel in ``first``, before anything is rounded."""
        loss, log_p, infinite, lost, gap = self.rule(c, 0.0)
        gap = lost - infinite if gap is None else gap
        tilted, sizes = c * loss, TERM + abs(log_p)
        exponents = log_p + tilted
        top = float(exponents.max())
        terms, first = mean_excess(log_p, tilted), mean_excess(log_p, -loss)
        rise = float(terms.sum()) + c * (float(first.sum()) + gap) - infinite
        if top > 20 or not -0.5 < rise < 1e9:
            terms = np.exp(exponents - top)
            mass = float(terms.sum())
            noise = float(terms @ (EPS * (sizes + abs(tilted)) + abs(c) * self.slips)) / mass
            return top + float(np.log(mass)), noise
        noise = terms @ (sizes + abs(tilted)) + abs(c) * (first @ (sizes + abs(loss)))
        noise = float(noise) + TERM * abs(rise) + 64 * (abs(c * gap) + infinite)
        # what moves a loss by x moves p (e^(cL) - 1 - cL) + cp (e^(-L) - 1 + L) by so much
        moves = np.minimum((1 + c) * abs(loss), 1.0) * np.exp(np.maximum(exponents, log_p - loss))
        slip = abs(c) * float((moves * self.slips).sum())
        return float(np.log1p(rise)), (EPS * noise + slip) / (1 + rise)

    def work(self, c, h, count, room):
        """About how many products ``along`` needs: 50 a loss and 300 a node for the transform, and
        those of the losses that its room leaves out."""
        losses = self.size(c, h * (count - 1))
        products = 50 * losses + 300 * count + max(0.0, 1 - room) * losses * count / 4
        return products if losses <= MOST else inf

    def along(self, c, h, count, room=0.0):
        """K(c + iy) - K(c) at y = 0, h, ..., (count - 1) h, and a bound on its round-off, which
        grows with ``room`` (``phase_sums``).

        Each probability is off by EPS times the size of its exponent, each angle y L by 5 EPS of
        itself, and both by what ``slips`` says of L; all are taken to err in the same direction."""
        loss, log_p, *_ = self.rule(c, h * (count - 1))
        terms = log_p + c * loss
        weights = np.exp(terms - terms.max())
        heavy = weights > LIGHT
        slips = np.broadcast_to(self.slips / EPS, loss.shape)[heavy]
        loss, weights = loss[heavy], weights[heavy] / weights.sum()
        sizes = weights * (TERM + abs(log_p[heavy]) + abs(c) * (abs(loss) + slips))
        value, moved = phase_sums(weights, loss, h, count, room)
        value = log1p_complex(value)
        y = h * np.arange(count)
        slip = y * float(weights @ slips)
        most = 2 * float(sizes.sum()) + 5 * y * float(weights @ abs(loss)) + slip
        near = y * float(sizes @ abs(loss)) + slip
        noise = EPS * (np.minimum(near, most) + FOURIER * moved)
        # what is below its round-off is said to be as large, and off by twice as much
        least = np.log(np.maximum(noise, 1e-300))
        lost = value.real < least
        value.real = np.where(lost, least, value.real)
        return value, np.where(lost, 2.0, noise * np.exp(-value.real))


@dataclass(frozen=True)
class Gaussian(Step):
    """N(1, sigma^2) against N(0, sigma^2): L ~ N(mu^2/2, mu^2) with mu = 1/sigma. Two of them
    compose to one with the sum of mu^2."""

    mu: float
    rate, side = 1.0, 1  # on all of the data, p against q

    def tilt_limit(self):
        return 40 / self.mu

    def table(self, c):
        return self.mu**2 * np.array([c * (c + 1) / 2, c + 0.5, np.ones_like(c)])

    def mean(self):
        return 0.5 * self.mu**2

    def cumulant(self, c):
        value = 0.5 * self.mu**2 * c * (c + 1)
        return value, 4 * EPS * abs(value)

    def work(self, c, h, count, room):
        return 10 * count

    def along(self, c, h, count, room=0.0):
        y = h * np.arange(count)
        value = self.mu**2 * (-0.5 * y * y + 1j * (c + 0.5) * y)
        return value, 4 * EPS * abs(value)

    def falls(self, c):
        return lambda height: -0.5 * (self.mu * height) ** 2
