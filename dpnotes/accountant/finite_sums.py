"""Losses with finitely many values: exact sums.

If the total loss takes the values l_0 < l_1 < ..., delta(e) is linear in exp(e) between them and
all of it follows from two sums of positive terms from the right (``Curve``). Two-point steps
(randomized response) have binomial weights; few finite steps are enumerated.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from scipy.special import gammaln

from .step import Finite

__all__ = []

MOST_VALUES = 300_000  # of an enumerated sum


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


@lru_cache(maxsize=2)
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
        loss, log_p = _joined(loss, log_p, *_rounds(step, k))
    return curve(loss, log_p)


def _rounds(step, k):
    """The values of k rounds of one step: the binomial law, or the multinomial one, whose round-off
    of k log k is far below that of so many values (``curves.Exact``)."""
    losses, log_p = np.array(step.losses), np.array(step.log_p)
    if k == 1:
        return losses, log_p
    if len(losses) == 2:
        j = np.arange(k + 1)
        return losses[0] * (k - j) + losses[1] * j, log_binomial(j, k, *log_p[::-1])
    counts = _counts(len(losses), k)
    return losses @ counts, log_p @ counts + gammaln(k + 1) - gammaln(counts + 1).sum(axis=0)


def _counts(n, k):
    """All ways to split k into n counts, one in each column."""
    columns, left = [], np.array([k])
    for _ in range(n - 1):
        index = np.repeat(np.arange(len(left)), left + 1)
        j = np.arange(len(index)) - np.repeat(np.cumsum(left + 1) - left - 1, left + 1)
        columns, left = [*(column[index] for column in columns), j], left[index] - j
    return np.array([*columns, left], dtype=float)


def _joined(loss, log_p, more, log_more):
    """The values of the sum of two independent losses."""
    return _merge(np.add.outer(loss, more).ravel(), np.add.outer(log_p, log_more).ravel())


def _merge(loss, log_p):
    """Sort, and add the probabilities of values equal to 1e-13 of the largest."""
    order = np.argsort(loss)
    loss, log_p = loss[order], log_p[order]
    near = 1e-13 * max(1e-300, np.abs(loss).max())
    starts = np.flatnonzero(np.append(True, np.diff(loss) > near))
    return loss[starts], np.logaddexp.reduceat(log_p, starts)
