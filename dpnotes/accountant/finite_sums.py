"""Losses with finitely many values: exact sums, whose only error is round-off, and that bounded.

If the total loss takes the values l_i with probabilities p_i, both sums of ``kept``,

    t(e) = sum_i p_i (1 - exp(e - l_i))_+    and    r(e) = sum_i p_i min(1, exp(e - l_i)),

have positive terms. Every l_i and log p_i carries a bound on its error, and the sums move outwards
with them. Two-point steps (randomized response) have binomial weights (``binomial``, ``two_losses``
if there are many rounds); few finite steps are enumerated. The tables that takes are made at most
once a direction, and bounded by ``MOST_VALUES`` and ``MOST_COPIES``: at worst (30 losses, 5 rounds)
that is half a second and 150 MB. A sum then takes 40 ns a value, 10 ms at most (35 ms for one
round of a discrete Gaussian), and an answer some ten sums: so they are not charged.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb, exp, inf, log, log1p, nextafter

import numpy as np

from .binomial import atoms, deviance, errors, stirling_error
from .kept import Kept, enclosed
from .law import EPS, log_running_sums, log_sum_exp
from .step import Finite

__all__ = []

MOST_VALUES = 300_000  # of an enumerated sum
MOST_COPIES = 300_000_000  # of counts: n losses in k rounds are n tables of n counts a value
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
        log_weight = log_running_sums((log_p - shifted)[::-1])[::-1] + shifted
        rise = np.log(-np.expm1(-np.diff(loss))) + log_weight[1:]
        log_tail = np.append(log_running_sums(rise[::-1])[::-1], -np.inf)
    return Curve(loss, log_p, log_weight, log_tail)


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
        before = np.append(-inf, log_running_sums(self.log_p)[:-1])
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

    def guess(self, side, target):
        if side > 0:
            return self.curve.epsilon(log(target))
        log_rest, before = self.log_rest
        j = min(int(np.searchsorted(log_rest, log(target))), len(log_rest) - 1)
        share = exp(min(log(target) - self.curve.log_weight[j], 600.0))
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
        n = len(step.losses)
        if min(k, n - 1) > MOST_VALUES.bit_length():  # more ways than 2 to that power
            return None
        ways = comb(k + n - 1, k)
        total *= ways
        if total > MOST_VALUES or (k > 1 and n > 2 and n * n * ways > MOST_COPIES):
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


def rounds(step, k):
    """The values of k rounds of one step, given that all are finite: losses, their last digits and
    errors, log_p and their errors; the binomial law, or the multinomial one."""
    log_p = np.array(step.log_p) - log1p(-step.infinite)
    if k > 1 and len(step.losses) == 2:
        return atoms(step, k, np.arange(k + 1.0))
    loss, (shift, noise) = np.array(step.losses), errors(step)
    if k == 1:
        return loss, np.zeros_like(loss), shift, log_p, noise
    if len(loss) == 1:  # given that it is finite, it is certain
        none = np.zeros(1)
        return k * loss, none, k * (shift + EPS * np.abs(loss)), none, none
    counts = _counts(len(loss), k)
    value, error = log_multinomial(counts, k, log_p, noise)
    return loss @ counts, 0 * value, (shift + 8 * EPS * np.abs(loss)) @ counts, value, error


def _counts(n, k):
    """All ways to split k into n counts, one in each column."""
    columns, left = [], np.array([k])
    for _ in range(n - 1):
        index = np.repeat(np.arange(len(left)), left + 1)
        j = np.arange(len(index)) - np.repeat(np.cumsum(left + 1) - left - 1, left + 1)
        columns = [*(column[index] for column in columns), j.astype(np.int16)]  # k is below 1000
        left = left[index] - j
    return np.array([*columns, left.astype(np.int16)])


def log_multinomial(counts, k, log_p, noise):
    """log of the multinomial probabilities of the columns of ``counts``, and bounds on their errors
    if log_p[i] is off by noise[i]: a mean that moves by a factor costs its distance to the count.
    A term depends on one count alone: all are in a table.
    """
    j, log_p, noise = np.arange(k + 1.0), log_p[:, None], noise[:, None]
    far = j - k * np.exp(log_p)
    cost, error = deviance(j, log(k) + log_p, far)
    inner = np.maximum(j, 1.0)
    cost += np.where(j > 0, stirling_error(inner) + 0.5 * np.log(2 * np.pi * inner), 0.0)
    error = error + np.abs(far) * (noise + 4 * EPS) + 4 * EPS * cost
    cost, error = (sum(x[n] for x, n in zip(t, counts, strict=True)) for t in (cost, error))
    value = stirling_error(np.array(float(k))) + 0.5 * log(2 * np.pi * k) - cost
    return value, error + 8 * EPS * (4 + log(k) + np.abs(value))
