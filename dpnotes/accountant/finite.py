"""Finite laws. A few losses in a few rounds have few sums, which are listed with their chances."""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, comb, exp, floor, inf, log, log1p, prod

import numpy as np

from .curves import inverse_mixed_loss, mixed_loss
from .law import BLOCK, EPS, LIGHT, Rule, Step, in_blocks

MOST_OF_ONE, MOST = 60, 2_000  # most rounds or losses of one step, and most sums of all steps
REACH, CUT = 38.4, 1e-305  # deviations of discrete Gaussian noise; more than what is beyond has
OFF = 1e-9  # what a law may be off by: more than the round-off of a million outcomes
STEEPEST = 4e3  # times the largest loss: the largest tilt


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

    listed = property(lambda self: (*self.arrays, self.slips))

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
        return self.losses[-1] - self.slips[-1], self.losses[-1], self.log_p[-1]

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

    def fallings(self, _c):
        return lambda height: np.zeros(1)

    def sampled(self, rate):
        """The mixture of both laws against q."""
        (loss, log_p), log_rest = self.arrays, log1p(-rate)
        log_p = np.logaddexp(np.log(rate) + log_p, log_rest + log_p - loss)
        before, loss = loss, mixed_loss(loss, rate)
        slip = self.slips * np.exp(np.log(rate) + before - loss)  # times the slope
        if self.cut:
            sigma, sensitivity, before, side = self.cut
            cut = sigma, sensitivity, rate * before, side
            return finite_step(loss, log_p, rate * self.infinite, self.lost, slip, cut)
        if self.lost:  # where p vanishes the mixture has (1 - rate) q
            loss, log_p = np.append(loss, log_rest), np.append(log_p, log_rest + np.log(self.lost))
            slip = np.append(slip, 0.0)
        return finite_step(loss, log_p, rate * self.infinite, 0.0, slip)

    def left_out(self, c):
        """What K(c) grows by, at most, if the noise is not cut off; c > 0.

        Of a Gaussian sum over whole numbers z, exp(x z s / sigma^2) makes one of the mean x s. With
        the loss u before sampling, whose slope in z is s/sigma^2, M is a sum of exp((1+c) L) under
        q. What lies between the cut and u = v adds at most CUT exp((1+c) L(v)), which is exp(-100).
        From there on L(u) <= L(v) + u - v. In the exchanged direction L is concave beyond the cut,
        and at most -log(1 - rate)."""
        if not self.cut:
            return super().left_out(c)
        (sigma, s, rate, side), value = self.cut, float(self.cumulants(c)[0][0])
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


def finite_step(loss, log_p, infinite, lost, slip=0.0, cut=()):
    """A Finite step with equal losses merged and in ascending order. The round-off of the largest
    loss, and of the least one, which is that of the other direction, goes away from 0; ``slip`` is
    that of what the losses were computed from."""
    order = np.argsort(loss, kind="stable")
    values, first = np.unique(loss[order], return_index=True)
    slips = (slip + 12 * EPS * np.abs(loss))[order][first]
    if first.size:
        out = (slips - 8 * EPS * np.abs(values))[[0, -1]]
        values[[0, -1]] += out * np.sign(values[[0, -1]])
        slips[[0, -1]] += out
    merged = np.logaddexp.reduceat(log_p[order], first) if first.size else log_p
    laws = tuple(values.tolist()), tuple(merged.tolist())
    return Finite(*laws, float(infinite), float(lost), tuple(slips.tolist()), cut)


def is_short(parts):
    """Whether the losses are few enough to be written out. One round always is."""
    if any(step.listed is None for step, _ in parts):
        return False
    sizes = [(k, len(step.losses)) for step, k in parts]
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
            for _ in range(k):
                more = zip((loss, log_p, slip), step.listed, strict=True)
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
        return in_blocks(self._sums, epsilon, max(1, BLOCK // len(self.loss)))

    def _sums(self, epsilon):
        gap = self.loss - epsilon[:, None]
        loses, inside = -np.expm1(-np.maximum(gap, 0.0)), gap > 0
        felt = gap > -self.slip  # what is there may lose more than epsilon
        top = np.where(felt, self.log_p, -np.inf).max(axis=1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        p = np.exp(np.where(felt, self.log_p - top, -np.inf))
        terms = p * loses
        value = terms.sum(axis=1)
        slope = (p * inside * np.exp(-np.maximum(gap, 0.0))).sum(axis=1)
        near = self.slip + EPS * np.abs(epsilon[:, None])
        error = (terms * self.noise + p * near).sum(axis=1)
        error = np.where(error > 0, error / value, 0.0)  # 0 of nothing
        slope = np.nan_to_num(slope / value, nan=0.0, posinf=1e300)
        return np.log(value) + top[:, 0], slope, error


def reach(sigma):
    """The largest value of discrete Gaussian noise that is kept; its tilted laws have room, too."""
    return ceil(REACH * sigma) + 64


def _log_mass(sigma, mean, least):
    """log of the sum of exp(-x^2/(2 sigma^2)), x = z - mean >= least, over whole numbers z."""
    wide = 40 * sigma + 1
    x = ceil(max(least, -wide) + mean % 1 - 1e-9) - mean % 1 + np.arange(2 * wide)
    return float(np.logaddexp.reduce(-0.5 * (x / sigma) ** 2))
