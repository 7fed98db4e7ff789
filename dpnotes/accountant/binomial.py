"""The binomial law (Loader 2000), each logarithm with a bound on its error.

Near the mean its deviance is a series in the distance to the mean, which is formed without
cancellation: so k may be 1e12.
"""

from functools import lru_cache
from math import exp, log

import numpy as np

from .._scipy import expit, gammaln
from .law import EPS

__all__ = []


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
    """Whether this is randomized response, leaky or not: but for ``errors``, its losses are
    exact."""
    low, high = step.losses[0], step.losses[-1]
    return len(step.losses) == 2 and low == -high and step.infinite == step.lost


@lru_cache(maxsize=1)
def _few_stirling_errors():
    n = np.arange(1.0, 16.0)
    return np.append(0.0, gammaln(n + 1) - (n + 0.5) * np.log(n) + n - 0.5 * np.log(2 * np.pi))


def stirling_error(n):
    """log n! - log(sqrt(2 pi n) (n/e)^n) for n >= 1 (0 for n = 0), to 1e-14."""
    n2 = np.maximum(n, 1.0) ** 2
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / n2) / n2) / n2) / n2) / n2**0.5
    return np.where(n < 16, _few_stirling_errors()[np.minimum(n, 15).astype(int)], series)


def deviance(x, log_mean, far):
    """x log(x/mean) - x + mean >= 0 with far = x - mean, and a bound on its round-off. Near x =
    mean, of v = far/mean: mean times the series of (1+v) log(1+v) - v. The mean may underflow."""
    mean = np.exp(log_mean)
    with np.errstate(over="ignore"):
        v = far / np.maximum(mean, 1e-300)
    near = np.abs(v) < 0.2
    v = np.where(near, v, 0.0)
    series = np.zeros_like(v)
    for n in range(24, 1, -1):
        series = 1 / (n * (n - 1)) - v * series
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(x > 0, x * (np.log(x) - log_mean), 0.0)
    value = np.where(near, mean * v * v * series, apart - x + mean)
    sizes = x * (2 + np.abs(np.log(np.maximum(x, 1.0))) + np.abs(log_mean)) + mean
    return value, EPS * np.where(near, 8 * value, 2 * sizes)


def offset(j, k, logit):
    """j - k p for p = 1/(1 + exp(-logit)), and a bound on its error."""
    if abs(logit) < 1:
        moved = 0.5 * k * np.tanh(0.5 * logit)
        far = (j - 0.5 * k) - moved
        return far, EPS * (4 * abs(moved) + np.abs(far))
    mean = k * expit(-abs(logit))  # of the rarer outcome
    far = (j - mean) if logit < 0 else mean - (k - j)
    return far, EPS * ((4 + 2 * abs(logit)) * mean + np.abs(far))


def log_law(j, k, logit, noise=0.0):
    """log of the binomial probabilities of j in k, and their errors if the logit is off by
    ``noise``: it moves them by j - kp."""
    j = np.asarray(j, dtype=float)
    log_p, log_q = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)
    if k == 1:
        value = np.where(j == 1, log_p, log_q)
        return value, noise + 4 * EPS * np.abs(value)
    inner = np.clip(j, 1, k - 1)
    far, far_error = offset(j, k, logit)
    up, up_error = deviance(j, log(k) + log_p, far)
    down, down_error = deviance(k - j, log(k) + log_q, -far)
    value = stirling_error(np.array(float(k))) - stirling_error(inner) - stirling_error(k - inner)
    value += 0.5 * np.log(k / (2 * np.pi * inner * (k - inner))) - up - down
    value = np.where(j == 0, k * log_q, np.where(j == k, k * log_p, value))
    variance = np.maximum(k * exp(log_p + log_q), 1e-300)
    with np.errstate(over="ignore"):
        steep = np.abs(far) / variance
    slope = np.minimum(steep, np.abs(np.log(inner / (k - inner)) - logit) + 1)
    error = np.abs(far) * noise + far_error * slope + up_error + down_error
    error += EPS * (32 + 4 * np.abs(np.log(inner)) + 8 * np.abs(value))
    return value, error


def chances(step):
    """The logit of the higher loss, given that it is finite, and a bound on its error."""
    if is_coin(step):
        return step.losses[1], float(errors(step)[0][1])
    return step.log_p[1] - step.log_p[0], float(errors(step)[1].sum())


def atoms(step, k, j):
    """See ``finite_sums.rounds``: the values of which j of k losses are the higher one."""
    (low, high), (shift, _) = step.losses, errors(step)
    if is_coin(step):
        loss, fine = product(high, 2 * j - k)
        size = 4 * EPS * EPS * np.abs(loss) + shift[1] * np.abs(2 * j - k)
    else:
        loss, fine = low * (k - j) + high * j, np.zeros_like(j)
        size = shift[0] * (k - j) + shift[1] * j + 2 * EPS * (abs(low) * (k - j) + abs(high) * j)
    return loss, fine, size, *log_law(j, k, *chances(step))


def product(a, n):
    """a n as a float and what it leaves, exactly (Dekker 1971)."""
    first = (134217729.0 * a) - (134217729.0 * a - a)
    rest = a - first
    top = (134217729.0 * n) - (134217729.0 * n - n)
    low, value = n - top, a * n
    return value, ((first * top - value) + first * low + rest * top) + rest * low
