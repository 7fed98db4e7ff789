"""Rényi differential privacy: the privacy loss seen through its moment generating function.

For a pair of laws (P, Q) with privacy loss L = ln dP/dQ under P, E exp((alpha-1) L) equals
exp((alpha-1) D_alpha(P||Q)) (U-mgf-plrv): a bound on Rényi divergences is a bound on moments, it
adds under composition, and Markov's inequality turns it back into (epsilon, delta). Divergences
of mechanisms and of their compositions, at real orders: ``PrivacyLoss.renyi``. Natural logarithms.
"""

from __future__ import annotations

from functools import partial
from typing import overload

import numpy as np

from ..numerics import exp_excess, log1p, log_binomial, logsumexp, optimize
from ..checks import (
    Array, ArrayLike, Nonnegative, OpenProbability, OrderAboveOne, ProbabilityNumber, checked,
)  # fmt: skip

ORDERS = 1 + np.geomspace(0.02, 2000.0, 80)  # among which the best one is looked for


@checked
def sampled_curve(curve: Nonnegative, rate: ProbabilityNumber) -> Array:
    """Bounds on the Rényi divergences of a Poisson-sampled step, at whole orders, add/remove.

    `curve`: those of the step on all of the data, at the orders 2, 3, ...; returned at the same
    orders (X-renyi-poisson, which says for which noise this bounds both directions). Of Gaussian
    noise it is the divergence itself (A-moments-accountant; Mironov, Talwar & Zhang 2019, 3.3).
    Real orders: ``subsample(loss, rate).renyi(alpha)``.

    >>> renyi_dp.sampled_curve([1.0, 1.5, 2.0], rate=0.01).round(6)
    array([0.000172, 0.000265, 0.000363])
    """
    orders = np.arange(2, np.size(curve) + 2)
    gains = np.ravel(curve) * (orders - 1)
    return np.array([_sampled_moment(gains[: a - 1], rate) / (a - 1) for a in orders])


def _sampled_moment(gains, rate):
    """log of the moment of p/q at the last of the orders j = 2, 3, ..., from `gains`, the logs
    of the moments of the step on all of the data: from the terms of its excess over one."""
    if rate in (0.0, 1.0):
        return rate * gains[-1]
    alpha = len(gains) + 1
    j = np.arange(2, alpha + 1)
    terms = log_binomial(alpha, j) + j * np.log(rate) + (alpha - j) * log1p(-rate)
    with np.errstate(divide="ignore"):  # a gain of 0 adds nothing
        return float(np.logaddexp(0, logsumexp(terms + gains + np.log(-np.expm1(-gains)))))


@overload
def rdp_to_dp(alpha: float, rdp: float, delta: float) -> float: ...
@overload
def rdp_to_dp(alpha: ArrayLike, rdp: ArrayLike, delta: ArrayLike) -> Array: ...
@checked
def rdp_to_dp(alpha: OrderAboveOne, rdp: Nonnegative, delta: OpenProbability) -> float | Array:
    """epsilon from (alpha, rdp)-RDP: rdp + ln(1/delta)/(alpha-1) (A-rdp-to-dp; Mironov 2017).

    >>> round(dp.rdp_to_dp(alpha=20.0, rdp=0.3, delta=1e-6), 4)
    1.0271
    """
    return rdp - np.log(delta) / (alpha - 1)


@overload
def rdp_to_dp_improved(alpha: float, rdp: float, delta: float) -> float: ...
@overload
def rdp_to_dp_improved(alpha: ArrayLike, rdp: ArrayLike, delta: ArrayLike) -> Array: ...
@checked
def rdp_to_dp_improved(
    alpha: OrderAboveOne, rdp: Nonnegative, delta: OpenProbability
) -> float | Array:
    """epsilon from (alpha, rdp)-RDP by Canonne, Kamath & Steinke (2020, proposition 12).

    rdp + ln(1-1/alpha) - ln(alpha delta)/(alpha-1), and never below zero.

    >>> round(dp.rdp_to_dp_improved(alpha=20.0, rdp=0.3, delta=1e-6), 4)
    0.8182
    """
    excess = log1p(-1 / alpha) - (np.log(delta) + np.log(alpha)) / (alpha - 1)
    return np.maximum(rdp + excess, 0.0)


@overload
def rdp_to_dp_optimal(alpha: float, rdp: float, delta: float) -> float: ...
@overload
def rdp_to_dp_optimal(alpha: ArrayLike, rdp: ArrayLike, delta: ArrayLike) -> Array: ...
@checked
def rdp_to_dp_optimal(
    alpha: OrderAboveOne, rdp: Nonnegative, delta: OpenProbability
) -> float | Array:
    """Least epsilon that D_alpha(P||Q) <= rdp implies at `delta` (Asoodeh et al. 2021).

    Only two-point laws matter: the largest ln((p-delta)/q) over (p, q) with
    D_alpha((p, 1-p)||(q, 1-q)) <= rdp. Never below zero.

    >>> round(dp.rdp_to_dp_optimal(alpha=20.0, rdp=0.3, delta=1e-6), 4)
    0.818
    """
    return _optimal(alpha, rdp, delta)


@partial(np.vectorize, otypes=[float])
def _optimal(alpha, rdp, delta):
    if rdp == 0:
        return 0.0
    best, logit = rdp + log1p(-delta), np.linspace(-745.0, 40.0, 158)  # of p = 1; and of others
    for _ in range(6):  # the value has one peak, along the share of 1 - delta that p - delta has
        excess, rest = (np.exp(-np.logaddexp(0, at)) * (1 - delta) for at in (-logit, logit))
        p = delta + excess
        log_excess = log1p(-delta) - np.logaddexp(0, -logit)
        value = _most_log_ratio(p, rest, alpha, rdp) + log_excess - np.log(p)
        top = int(value.argmax())
        best = max(best, value[top])
        logit = np.linspace(logit[max(top - 1, 0)], logit[min(top + 1, logit.size - 1)], 32)
    return float(np.minimum(max(0.0, best), rdp_to_dp_improved(alpha, rdp, delta)))  # of round-off


def _most_log_ratio(p, rest, alpha, rdp):
    """The largest ln(p/q) >= 0 for which the laws (p, rest) and (q, 1-q) have a divergence of at
    most `rdp`, by bisection: an upper end."""
    power, rdp = alpha - 1, max(rdp, 1e-200)  # more loss than there is: still a bound
    with np.errstate(over="ignore", divide="ignore"):
        low, high = np.zeros_like(p), np.minimum(rdp - np.log(p) / power, rdp / p + 1)
        while (high - low > 4e-16 * high).any():
            ratio = (low + high) / 2
            fits = _two_point_moment(p, rest, ratio, power, power * rdp < 0.5) <= power * rdp
            low, high = np.where(fits, ratio, low), np.where(fits, high, ratio)
    return high


def _two_point_moment(p, rest, ratio, power, small):
    """power times the divergence, for ln(p/q) = ratio >= 0. Small ones come from what the moment
    exceeds 1 by, a sum without negative terms: p k(power x) + power p k(-x) with
    k(y) = e^y - 1 - y and x = ln(p/q), and the same of the other outcome."""
    other = -log1p(-p * np.expm1(-ratio) / rest)  # ln(rest/(1-q))
    if not small:
        return np.logaddexp(np.log(p) + power * ratio, np.log(rest) + power * other)
    pairs = (p, ratio), (rest, other)
    return log1p(sum(w * (exp_excess(power * x) + power * exp_excess(-x)) for w, x in pairs))


@overload
def zcdp_to_dp(rho: float, delta: float) -> float: ...
@overload
def zcdp_to_dp(rho: ArrayLike, delta: ArrayLike) -> Array: ...
@checked
def zcdp_to_dp(rho: Nonnegative, delta: OpenProbability) -> float | Array:
    """epsilon from rho-zCDP: rho + 2 sqrt(rho ln(1/delta)) (U-zcdp-to-dp; Bun & Steinke 2016).

    >>> round(dp.zcdp_to_dp(rho=0.1, delta=1e-6), 4)
    2.4508
    """
    return rho + 2 * np.sqrt(-rho * np.log(delta))


@overload
def zcdp_to_dp_improved(rho: float, delta: float) -> float: ...
@overload
def zcdp_to_dp_improved(rho: ArrayLike, delta: ArrayLike) -> Array: ...
@checked
def zcdp_to_dp_improved(rho: Nonnegative, delta: OpenProbability) -> float | Array:
    """epsilon from rho-zCDP at the best order of `rdp_to_dp_improved`.

    >>> round(dp.zcdp_to_dp_improved(rho=0.1, delta=1e-6), 4)
    2.1419
    """
    return _at_best_order(rho, delta)


@partial(np.vectorize, otypes=[float])
def _at_best_order(rho, delta):
    def at(log_order):
        alpha = 1 + np.exp(log_order)
        return rdp_to_dp_improved(alpha, rho * alpha, delta)

    grid = np.linspace(-10, 40, 201)  # one valley lies somewhere along it
    best = int(np.argmin(at(grid)))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    least = optimize().minimize_scalar(at, bounds=bounds, method="bounded", options={"xatol": 1e-5})
    return float(least.fun)
