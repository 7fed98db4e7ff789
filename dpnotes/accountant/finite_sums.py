"""Losses with finitely many values: exact sums, whose only error is round-off, and that bounded.

If the total loss takes the values l_i with probabilities p_i, and is infinite with probability 1 -
kept, then with t(e) = sum_i p_i (1 - exp(e - l_i))_+ and its complement r(e) = sum_i p_i min(1,
exp(e - l_i)), both sums of positive terms given that the loss is finite,

    delta(e) = 1 - kept + kept t(e) = 1 - kept r(e).

Every l_i and log p_i carries a bound on its error, and both sums move outwards with them. Two-point
steps (randomized response) have binomial weights (``binomial``); few finite steps are enumerated.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, exp, expm1, inf, log, log1p, nextafter

import numpy as np

from .law import EPS, log_sum_exp
from .step import Finite

__all__ = []

MOST_VALUES = 300_000  # of an enumerated sum
LEAST = 1e-280  # of a sum in which terms that underflow don't matter


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


class Kept:
    """The probability that no loss is infinite, and the enclosures of delta that go with it.

    A method inherits ``delta`` and ``epsilon`` from here, and gives ``tail(e)`` and ``rest(e)``,
    enclosures (low, high) of t and r, the last value as ``top``, and ``guess(t)`` and
    ``guess_rest(r)``, the e of a given t or r, roughly.
    """

    def __init__(self, parts):
        self.parts = parts
        log_kept = sum(k * log1p(-step.infinite) for step, k in parts)
        self.log_kept, pad = log_kept, -8 * EPS * log_kept
        missing = -expm1(log_kept)
        self.kept, self.missing = (1.0, 1.0), (0.0, 0.0)
        if missing:
            self.kept = outward(exp(log_kept - pad), exp(log_kept + pad))
            self.missing = outward(missing * (1 - 16 * EPS), missing * (1 + 16 * EPS))

    def delta(self, epsilon):
        """(low, value, high); the value is the safe end."""
        low, high = self.bounds(epsilon)
        return low, high, high

    def bounds(self, epsilon):
        tail, rest = self.tail(epsilon), (0.0, 1.0)
        if tail[1] > 0.25 or self.missing[1] > 0.25:
            rest = self.rest(epsilon)
        below = self.missing[0] + self.kept[0] * tail[0], 1 - self.kept[1] * rest[1]
        above = self.missing[1] + self.kept[1] * tail[1], 1 - self.kept[0] * rest[0]
        if self.missing[1] == 0:  # then only 1 - r was rounded
            low, high = outward(below[1], above[1])
            return max(tail[0], low), min(tail[1], high, 1.0)
        low, high = outward(max(below) * (1 - 4 * EPS), min(above) * (1 + 4 * EPS))
        return low, min(high, 1.0)

    def meets(self, epsilon, delta, way):
        """Whether delta(epsilon) is surely at most (way 1) or at least (way -1) this delta."""
        if delta > 0.5:  # 1 - delta is exact
            rest = self.rest(epsilon)[way < 0] * self.kept[way < 0]
            return way * (rest * (1 - way * 2 * EPS) - (1 - delta)) >= 0
        low, high = self.bounds(epsilon)
        return high <= delta if way > 0 else low >= delta

    def epsilon(self, delta):
        """(low, value, high); the value is the safe end."""
        bottom, top = self.top
        if delta < self.missing[0]:
            return inf, inf, inf
        if delta <= self.missing[1]:  # within round-off of the probability of infinite losses
            low = self._last(delta) if self.missing[1] else bottom
            value = top if delta >= -expm1(self.log_kept) else inf
            return max(0.0, low), max(0.0, value), max(0.0, top) if self.missing[1] == 0 else inf
        if self.meets(0.0, delta, 1):
            return 0.0, 0.0, 0.0
        if delta > 0.5:
            value = self.guess_rest((1 - delta) / exp(self.log_kept))
        else:
            value = self.guess((delta + expm1(self.log_kept)) / exp(self.log_kept))
        low, high = around(lambda e, way: self.meets(e, delta, way), min(max(value, 0.0), top), top)
        return low, high, high

    def _last(self, delta):
        """An e with delta(e) surely at least this much."""
        low, high = 0.0, max(self.top[0], 0.0)
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.meets(middle, delta, -1) else (low, middle)
        return low


def enclosed(loss, fine, shift):
    """Bounds on the largest of these losses: it itself where it is exact."""
    width = 2 * (np.abs(fine) + shift)
    low, high = float(np.max(loss - width)), float(np.max(loss + width))
    return (nextafter(low, -inf), nextafter(high, inf)) if np.any(width) else (low, high)


def outward(low, high):
    """The next floats outside."""
    return max(0.0, nextafter(low, -inf)), nextafter(high, inf)


def around(meets, value, top):
    """(low, high) around an epsilon >= 0: what ``meets`` the target from below and from above."""
    ends = []
    for way in (-1, 1):
        width, end = 0.0, value
        while 0 <= end <= top and not (way < 0 and end == 0) and not meets(end, way):
            width = 2 * width or 4e-16 * value + 1e-300 + 1e-16 * (value == 0)
            end = value + way * width
        ends.append(min(max(end, 0.0), top))
    return tuple(ends)


class Exact(Kept):
    """Values ``loss`` (+ ``fine``, their last digits) with their probabilities, both to bounds.

    ``shift`` bounds the error of each loss, ``noise`` that of each log_p, ``log_omitted`` the
    probability of values that are not listed.
    """

    def __init__(self, parts, values, log_omitted=-inf):
        super().__init__(parts)
        order = np.argsort(values[0], kind="stable")
        self.loss, self.fine, self.shift, self.log_p, self.noise = (v[order] for v in values)
        self.omitted = nextafter(exp(log_omitted), inf) if log_omitted > -inf else 0.0
        self.top = enclosed(self.loss, self.fine, self.shift)

    @cached_property
    def curve(self):
        return curve(self.loss, self.log_p)

    @cached_property
    def log_rest(self):
        """r at each value, rising, and the probability of the values before."""
        before = np.append(-inf, np.logaddexp.accumulate(self.log_p)[:-1])
        return np.logaddexp(before, self.curve.log_weight), before

    def _gap(self, epsilon):
        return (self.loss - epsilon) + self.fine

    def tail(self, epsilon):
        gap, found = self._gap(epsilon), []
        for way in (-1, 1):
            moved = gap + way * self.shift
            on = moved > 0
            weight = -np.expm1(-moved[on])
            log_p = self.log_p[on] + way * self.noise[on]
            found.append(_sum(log_p, weight, lambda w=weight: np.log(w), way))
        return found[0], min(1.0, found[1] + self.omitted)

    def rest(self, epsilon):
        gap, found = self._gap(epsilon), []
        for way in (-1, 1):
            fall = -np.maximum(gap - way * self.shift, 0.0)
            log_p = self.log_p + way * self.noise
            found.append(_sum(log_p, np.exp(fall), lambda f=fall: f, way))
        return found[0], min(1.0, found[1] + self.omitted)

    def guess(self, tail):
        return self.curve.epsilon(log(tail))

    def guess_rest(self, rest):
        log_rest, before = self.log_rest
        j = min(int(np.searchsorted(log_rest, log(rest))), len(log_rest) - 1)
        share = exp(min(log(rest) - self.curve.log_weight[j], 600.0))
        share -= exp(min(before[j] - self.curve.log_weight[j], 600.0))
        return float(self.loss[j]) + log(min(max(share, 1e-300), 1.0))


def _sum(log_p, weight, log_weight, way):
    """The sum of exp(log_p) weight from below (way -1) or above (1): NumPy sums in pairs of blocks
    of 128, so 60 units of round-off cover the sum. By logarithms, with theirs, if it underflows."""
    if len(log_p) == 0:
        return 0.0
    units, total = 8 + min(len(log_p), 60), float(np.sum(np.exp(log_p) * weight))
    if total > LEAST:
        return nextafter(total * (1 + way * EPS * units), max(0.0, way * inf))
    terms = log_p + log_weight()
    total = float(log_sum_exp(terms))
    if total == -inf:
        return 0.0 if way < 0 else nextafter(0.0, 1.0)
    total += way * EPS * (units + 3 * abs(total) + 2 * abs(float(np.max(terms))))
    return nextafter(exp(total), max(0.0, way * inf))


@lru_cache(maxsize=4)
def enumerated(parts):
    """The Exact sum of few finite losses, or None if it takes too many values."""
    total = 1
    for step, k in parts:
        if not isinstance(step, Finite):
            return None
        total *= comb(k + len(step.losses) - 1, k)
        if total > MOST_VALUES:
            return None
    values = np.zeros((5, 1))
    for step, k in parts:
        values = _joined(values, rounds(step, k))
    return Exact(parts, values)


def _joined(values, more):
    """The values of the sum of two independent losses; what their sum as floats leaves (Knuth's
    two-sum, exact) goes to the last digits."""
    one, other = values[0][:, None], more[0][None, :]
    total = one + other
    back = total - one
    left = ((one - (total - back)) + (other - back)).ravel()
    loss, fine, shift, log_p, noise = (
        np.add.outer(one, other).ravel() for one, other in zip(values, more, strict=True)
    )
    fine = fine + left
    return loss, fine, shift + 2 * EPS * np.abs(fine), log_p, noise + EPS * np.abs(log_p)


def errors(step):
    """Bounds on the errors of the losses of a Finite step, and of its log_p given that the loss is
    finite: logarithms of quotients and products of numbers with a few units of round-off each."""
    if step.errors:
        return tuple(map(np.array, step.errors))
    loss, log_p = np.abs(step.losses), np.abs(step.log_p)
    if is_coin(step):
        return np.zeros(2), EPS * (2 + 2 * log_p)
    return EPS * (3 * loss + 2 * (loss > 0.5) * log_p), EPS * (2 + 3 * log_p + 3 * loss)


def is_coin(step):
    """Whether this is randomized response, leaky or not: its losses are exact."""
    low, high = step.losses[0], step.losses[-1]
    return len(step.losses) == 2 and low == -high and step.infinite == step.lost


def rounds(step, k):
    """The values of k rounds of one step, given that all are finite: losses, their last digits and
    errors, log_p and their errors; the binomial law, or the multinomial one."""
    log_p = np.array(step.log_p) - log1p(-step.infinite)
    if k > 1 and len(step.losses) == 2:
        from .binomial import atoms

        return atoms(step, k, np.arange(k + 1.0))
    loss, (shift, noise) = np.array(step.losses), errors(step)
    if k == 1:
        return loss, np.zeros_like(loss), shift, log_p, noise
    counts = _counts(len(loss), k)
    value, error = log_multinomial(counts, k, log_p, noise)
    return loss @ counts, 0 * value, (shift + 8 * EPS * np.abs(loss)) @ counts, value, error


def _counts(n, k):
    """All ways to split k into n counts, one in each column."""
    columns, left = [], np.array([k])
    for _ in range(n - 1):
        index = np.repeat(np.arange(len(left)), left + 1)
        j = np.arange(len(index)) - np.repeat(np.cumsum(left + 1) - left - 1, left + 1)
        columns, left = [*(column[index] for column in columns), j], left[index] - j
    return np.array([*columns, left], dtype=float)


def log_multinomial(counts, k, log_p, noise):
    """log of the multinomial probabilities of the columns of ``counts``, and bounds on their errors
    if log_p[i] is off by noise[i]: a mean that moves by a factor costs its distance to the count.
    """
    from .binomial import deviance, stirling_error

    log_p, noise = log_p[:, None], noise[:, None]
    far = counts - k * np.exp(log_p)
    cost, error = deviance(counts, log(k) + log_p, far)
    value = stirling_error(np.array(float(k))) + 0.5 * log(2 * np.pi * k)
    inner = np.maximum(counts, 1.0)
    each = np.where(counts > 0, stirling_error(inner) + 0.5 * np.log(2 * np.pi * inner), 0.0)
    value = value - (each + cost).sum(axis=0)
    error = error + np.abs(far) * (noise + 4 * EPS) + 4 * EPS * (each + cost)
    return value, error.sum(axis=0) + 8 * EPS * (4 + log(k) + np.abs(value))
