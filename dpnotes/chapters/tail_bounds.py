"""Tail bounds whose best form takes a search, or care with precision: those of Chernoff.

A bound is the exponential of a logarithm: it is at most 1, and where it is below the smallest
positive double (5e-324) that number is returned, never a false 0. A threshold is called `t`.
Logarithms are natural. Arguments broadcast; scalars in, Python floats out.
"""

from __future__ import annotations

import math

from typing import overload

import numpy as np

from ..numerics import kl_div, optimize, xlog1py
from ..checks import (
    Array,
    ArrayLike,
    Function,
    NonnegativeOrInfNumber,
    Positive,
    Probability,
    Real,
    checked,
)

_SMALLEST = 5e-324


@overload
def chernoff(t: float, log_mgf: Function, limit: float = ...) -> float: ...
@overload
def chernoff(t: ArrayLike, log_mgf: Function, limit: float = ...) -> Array: ...
@checked
def chernoff(t: Real, log_mgf: Function, limit: NonnegativeOrInfNumber = math.inf) -> float | Array:
    """inf over 0 <= lam < limit of exp(log_mgf(lam) - lam t) >= P(X >= t) (U-chernoff-method).

    `log_mgf` takes one float lam and returns ln E exp(lam X), finite for lam < `limit`. The search
    over lam is numerical; whatever lam it ends at gives a valid bound. Its rounding error is added
    (4 ulp of the two terms).

    >>> round(tail_bounds.chernoff(3.0, lambda lam: lam**2 / 2), 4)
    0.0111
    """
    exponents = [_legendre(log_mgf, value, limit) for value in np.ravel(t).tolist()]
    return _probability(np.reshape(exponents, np.shape(t)))


def _legendre(log_mgf, t, limit):
    """The least value found of log_mgf(lam) - lam t over 0 <= lam < limit, rounded upwards."""

    def exponent(lam):
        value = float(log_mgf(lam))
        rounding = 4 * np.finfo(float).eps * (abs(value) + abs(lam * t))
        return value - lam * t + rounding if value < math.inf else 1e300

    last = math.nextafter(limit, 0)  # halves of what is left would round to the limit itself

    def farther(lam):
        return 2 * lam if 2 * lam < limit else min(lam + (limit - lam) / 2, last)

    lam = min(1.0, limit / 2)
    while exponent(lam) >= 0:  # the function is convex and 0 at 0: is it ever negative?
        lam /= 2
        if lam < 1e-300:
            return 0.0
    while lam < farther(lam) < 1e300 and exponent(farther(lam)) < exponent(lam):
        lam = farther(lam)
    while exponent(lam / 2) < exponent(lam):
        lam /= 2
    low, high = lam / 2, farther(lam)
    with np.errstate(over="ignore", invalid="ignore"):  # warnings of SciPy's parabola step
        minimum = optimize().minimize_scalar(
            exponent, bounds=(low, high), method="bounded", options={"xatol": 1e-9 * (high - low)}
        )
    return min(minimum.fun, exponent(lam))


@overload
def chernoff_kl(t: float, n: float, mu: float) -> float: ...
@overload
def chernoff_kl(t: ArrayLike, n: ArrayLike, mu: ArrayLike) -> Array: ...
@checked
def chernoff_kl(t: Probability, n: Positive, mu: Probability) -> float | Array:
    """P(S >= t) <= exp(-n kl(t, mu)) for t >= mu, and P(S <= t) <= the same for t <= mu.

    S is the mean of n independent [0,1] terms, mu its expectation (F-chernoff-additive, sharp).

    >>> round(tail_bounds.chernoff_kl(0.6, n=100, mu=0.5), 4)
    0.1335
    """
    # two terms >= 0 that keep their precision at t near mu
    return _probability(-n * (_excess(t, mu, t - mu) + _excess(1 - t, 1 - mu, mu - t)))


def _excess(s, mu, difference):
    """s ln(s/mu) - s + mu, where `difference` is s - mu."""
    near = np.abs(difference) < mu
    x = np.where(near, difference / np.where(near, mu, 1), 0)
    return np.where(near, mu * (xlog1py(1 + x, x) - x), kl_div(s, mu))


def _probability(log_bound):
    """exp(log_bound), at most 1 and never a false 0."""
    bound = np.clip(np.exp(np.minimum(log_bound, 0.0)), _SMALLEST, 1.0)
    return np.where(np.isneginf(log_bound), 0.0, bound)
