"""Finite laws, and curves that are written down: of a single step, and of a few losses.

The curve delta_0 of one step is a closed form (``kinds``). With the rate r (Balle, Barthe and
Gaboardi 2018, Theorem 2), for epsilon >= 0:

    mixture against q:   r delta_0(log(1 + (e^epsilon - 1)/r)), also under substitution;
    q against mixture:   b delta_0(epsilon + log(r/b)), b = 1 - e^epsilon (1 - r), or 0 if b <= 0.

A few losses in a few rounds have few sums, which are listed with their probabilities. Both have the
interface of a ``line.Line``.

Beside, what discrete Gaussian noise that was cut off adds to a Rényi divergence (``left_out``).
"""

from dataclasses import dataclass, field
from functools import cached_property, partial
from math import ceil, comb, exp, floor, inf, log, log1p, prod

import numpy as np

from .law import BLOCK, EPS, LIGHT, Rule, Step
from .sampled_gaussian import inverse_mixed_loss, mixed_loss

MOST_OF_ONE, MOST = 60, 2_000  # most rounds or losses of one step, and most sums of all steps
REACH, CUT = 38.4, 1e-305  # deviations of discrete Gaussian noise; more than what is beyond has
OFF = 1e-9  # what a law may be off by: more than the round-off of a million outcomes
STEEPEST = 4e3  # times the largest loss: the largest tilt
AT_ONCE = BLOCK // 256  # epsilon of a closed form: each has four places with up to 64 nodes
ROUNDING = 1e-14  # of log delta, in units of 1 + abs(log delta); 1.5e-15 was seen in 20,000 draws


class OneStep:
    """The tail of a single step, with the interface of a ``line.Line``."""

    def __init__(self, step, curve):
        size = curve.size(step)
        self.rate, self.side, self.unit = step.rate, step.side, size**curve.power
        self._unsampled = partial(curve.log_delta, size)
        self.step_size = 1e-6 * size * step.rate  # of epsilon, for slopes, beside 1e-7 of itself

    def log_delta(self, epsilon):
        """For an array of epsilon >= 0."""
        if self.rate == 1:
            return self._unsampled(epsilon)
        if self.side > 0:
            return log(self.rate) + self._unsampled(inverse_mixed_loss(epsilon, self.rate))
        share = (1 - self.rate) / self.rate * np.expm1(epsilon)  # 1 - b/r
        log_left = np.log1p(-np.minimum(share, 1.0))
        log_delta = log(self.rate) + log_left + self._unsampled(epsilon - log_left)
        return np.where(share < 1, log_delta, -np.inf)

    def sums(self, epsilon):
        """log delta, its negative slope, and its relative error: as if epsilon were off by 4 EPS,
        plus ROUNDING. Where epsilon < 0 the value is that at 0."""
        sums = np.empty((3, len(epsilon)))
        for first in range(0, len(epsilon), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            sums[:, some] = self._sums_at(epsilon[some])
        return sums

    def _sums_at(self, epsilon):
        epsilon = np.maximum(epsilon, 0.0)
        width = np.maximum(self.step_size, 1e-7 * epsilon)
        left = np.maximum(epsilon - width, 0.0)
        earlier = np.maximum(epsilon - 4 * EPS * (epsilon + self.unit), 0.0)
        places = np.array([epsilon, left, left + width, earlier])
        value, above, below, before = self.log_delta(places)
        slope = (above - below) / width
        error = np.expm1(before - value + ROUNDING * (1 + np.abs(value)))
        error = np.where(np.isneginf(before), 0.0, error)  # nothing is lost there
        return value, np.nan_to_num(slope, nan=1e300, posinf=1e300), error


@dataclass(frozen=True)
class Finite(Step):
    """Two laws on finitely many outcomes: the losses themselves, in ascending order, with log p;
    ``infinite`` is the mass of p where q has none, ``lost`` that of q where p has none. ``slip`` is
    the round-off of losses that were computed. ``cut`` is (sigma, sensitivity, rate, side) of
    discrete Gaussian noise of which values far out are left out: then ``infinite`` and ``lost`` are
    more than their mass. Both laws must sum to one."""

    losses: tuple
    log_p: tuple
    infinite: float = 0.0
    lost: float = 0.0
    slip: tuple = field(default=(), repr=False)
    cut: tuple = ()
    rate, side = 1.0, 1  # a sample of it is another Finite

    def __post_init__(self):
        loss, log_p = self.arrays
        masses = np.exp(np.logaddexp.reduce([log_p, log_p - loss], axis=1))
        for law, total in zip("pq", masses + (self.infinite, self.lost), strict=True):
            if not abs(total - 1) <= OFF:
                raise ValueError(f"the probabilities of {law} must sum to 1, got {total:.10g}")

    def __hash__(self):
        return self._hash

    @cached_property
    def _hash(self):  # of what may be a million losses, once
        return hash((self.losses, self.log_p, self.infinite, self.lost))

    @cached_property
    def arrays(self):
        return np.array(self.losses), np.array(self.log_p)

    @cached_property
    def slips(self):
        return np.array(self.slip) if self.slip else 4 * EPS * np.abs(self.arrays[0])

    lattice = property(lambda self: self.arrays[0])

    def flipped(self):
        loss, log_p = self.arrays
        other = (log_p - loss)[::-1]
        room = 2 * EPS * (8 + abs(log_p) + abs(loss)) + self.slips
        same = self.lost == self.infinite and np.array_equal(loss, -loss[::-1])
        if same and np.all(abs(other - log_p) <= room):  # its own reverse, up to round-off
            return self
        cut = self.cut and (*self.cut[:3], -self.cut[3])
        masses = self.lost, self.infinite
        return Finite(tuple(-loss[::-1]), tuple(other), *masses, self.slip[::-1], cut)

    def top(self):
        return self.losses[-1]

    def low_top(self):
        return self.losses[-1] - self.slips[-1]

    def log_at_top(self):
        return self.log_p[-1]

    def tilt_limit(self):
        """Beyond it the saddle point of a round is within 2/STEEPEST of its largest loss, of those
        that have a probability: the least number is e^-745."""
        loss, log_p = self.arrays
        return STEEPEST / max(np.abs(loss[log_p > -800]).max(initial=0.0), 1e-300)

    def rule(self, _c, _band):
        loss, log_p = self.arrays
        return Rule(loss, log_p, self.infinite, self.lost)

    def size(self, c, _band):
        loss, log_p = self.arrays
        terms = log_p + c * loss
        return int(np.count_nonzero(terms > terms.max() + log(LIGHT)))

    def falls(self, _c):
        return lambda height: 0.0


def is_short(parts):
    """Whether the losses are few enough to be written out. One round always is."""
    sizes = [(k, len(step.losses)) for step, k in parts if isinstance(step, Finite)]
    if len(sizes) < len(parts):
        return False
    few = max(map(max, sizes)) <= MOST_OF_ONE
    one = len(sizes) == 1 and sizes[0][0] == 1
    return one or (few and prod(comb(k + n - 1, k) for k, n in sizes) <= MOST)


class Sums:
    """The tail of all sums of the losses, with the interface of a ``line.Line``."""

    def __init__(self, parts):
        """Sums that differ by round-off are one."""
        loss, log_p, slip = np.zeros((3, 1))  # the last is the round-off of the losses
        sizes = 0.0  # round-off of log p in EPS, without the 4 log p below
        for step, k in parts:
            one = (*step.arrays, step.slips)
            for _ in range(k):
                more = zip((loss, log_p, slip), one, strict=True)
                loss, log_p, slip = (np.add.outer(*both).ravel() for both in more)
                order = np.argsort(loss)
                loss, log_p, slip = loss[order], log_p[order], slip[order]
                first = np.flatnonzero(np.diff(loss, prepend=-np.inf) > slip)
                width = np.append(loss[first[1:] - 1], loss[-1]) - loss[first]
                slip = np.maximum.reduceat(slip + EPS * np.abs(loss), first) + width
                loss, log_p = loss[first], np.logaddexp.reduceat(log_p, first)
            sizes += k * (8 + 4 * log(len(step.losses)))
        self.loss, self.log_p, self.slip = loss, log_p, slip
        self.noise = EPS * (sizes + 4 * np.abs(log_p))

    def sums(self, epsilon):
        """log delta, its negative slope, and a bound on its relative error."""
        sums = np.empty((3, len(epsilon)))
        block = max(1, BLOCK // len(self.loss))
        for first in range(0, len(epsilon), block):
            some = slice(first, first + block)
            sums[:, some] = self._block(epsilon[some, None])
        return sums

    def _block(self, epsilon):
        gap = self.loss - epsilon
        loses, inside = -np.expm1(-np.maximum(gap, 0.0)), gap > 0
        felt = gap > -self.slip  # what is there may lose more than epsilon
        top = np.where(felt, self.log_p, -np.inf).max(axis=1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        p = np.exp(np.where(felt, self.log_p - top, -np.inf))
        terms = p * loses
        value = terms.sum(axis=1)
        slope = (p * inside * np.exp(-np.maximum(gap, 0.0))).sum(axis=1)
        near = self.slip + EPS * np.abs(epsilon)
        error = (terms * self.noise + p * near).sum(axis=1)
        error = np.where(error > 0, error / value, 0.0)  # 0 of nothing
        slope = np.nan_to_num(slope / value, nan=0.0, posinf=1e300)
        return np.log(value) + top[:, 0], slope, error


def reach(sigma):
    """The largest value of discrete Gaussian noise that is kept; its tilted laws have room, too."""
    return ceil(REACH * sigma) + 64


def left_out(step, c):
    """What K(c) grows by, at most, if the noise is not cut off; c > 0.

    Of a Gaussian sum over whole numbers z, exp(x z s / sigma^2) makes one of the mean x s. With the
    loss u before sampling, whose slope in z is s/sigma^2, M is a sum of exp((1+c) L) under q. What
    lies between the cut and u = v adds at most CUT exp((1+c) L(v)), which is exp(-100). From there
    on L(u) <= L(v) + u - v. In the exchanged direction L is concave beyond the cut, and at most
    -log(1 - rate)."""
    if not isinstance(step, Finite) or not step.cut:
        return inf if step.infinite else 0.0
    (sigma, s, rate, side), value = step.cut, step.cumulant(c)[0]
    unit, last = s / sigma**2, reach(sigma)
    if side > 0:
        v = max(unit * (last + s / 2), float(inverse_mixed_loss(600 / (1 + c), rate)))
        first, mean = max(last + 1, floor(v / unit - s / 2)), c * s
        rise, most = (1 + c) * (float(mixed_loss(v, rate)) - v) + (1 + c) * mean * unit / 2, inf
    else:
        u = -unit * (last + s / 2)
        least = float(mixed_loss(u, rate))
        steep = rate * exp(u - least)
        first, mean = last + 1, c * steep * s
        rise = -c * (least + steep * unit * last) + (mean / sigma) ** 2 / 2
        most = log(CUT) - c * log1p(-rate) if rate < 1 else inf
    mass = _log_mass(sigma, mean, first - mean) - _log_mass(sigma, 0.0, -inf)
    return float(np.logaddexp(value, min(mass + rise, most)) - value)


def _log_mass(sigma, mean, least):
    """log of the sum of exp(-x^2/(2 sigma^2)), x = z - mean >= least, over whole numbers z."""
    wide = 40 * sigma + 1
    x = ceil(max(least, -wide) + mean % 1 - 1e-9) - mean % 1 + np.arange(2 * wide)
    return float(np.logaddexp.reduce(-0.5 * (x / sigma) ** 2))
