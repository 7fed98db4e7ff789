"""How far apart two output laws are: the distances that the definitions of privacy are made of.

A finite law is an array of probabilities along the last axis; leading axes hold many laws, and
the parameters `epsilon`, `delta`, `alpha` broadcast against those leading axes. So one pair and
m parameters give m numbers, and m pairs and one parameter give m numbers too. `density_laws`
turns a pair of densities on the line into such arrays, by quadrature. All logarithms are natural.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from .numerics import gauss, log_ratio, logsumexp, mean_excess
from .checks import (
    Array, ArrayLike, Few, Function, Laws, NonnegativeOrInf, Probability, Real, checked, refusal,
)  # fmt: skip


@overload
def total_variation(p: Sequence[float], q: Sequence[float]) -> float: ...
@overload
def total_variation(p: ArrayLike, q: ArrayLike) -> Any: ...
@checked
def total_variation(p: Laws, q: Laws) -> float | Array:
    """Largest difference in probability over all events, max_S p(S) - q(S); in [0, 1].

    >>> round(dp.total_variation([0.7, 0.3], [0.5, 0.5]), 4)
    0.2
    """
    p, q = _same_outcomes(p, q)
    return 0.5 * np.abs(p - q).sum(-1)


@overload
def kl(p: Sequence[float], q: Sequence[float]) -> float: ...
@overload
def kl(p: ArrayLike, q: ArrayLike) -> Any: ...
@checked
def kl(p: Laws, q: Laws) -> float | Array:
    """Kullback-Leibler divergence: the mean of ln p/q under p; infinite unless supp p <= supp q.

    The sum of p (ln p/q - 1 + q/p): its terms are nonnegative, so nothing cancels.

    >>> round(dp.kl([0.7, 0.3], [0.5, 0.5]), 4)
    0.0823
    """
    return _kl(*_same_outcomes(p, q))


@overload
def renyi_divergence(p: Sequence[float], q: Sequence[float], alpha: float) -> float: ...
@overload
def renyi_divergence(p: ArrayLike, q: ArrayLike, alpha: ArrayLike) -> Any: ...
@checked
def renyi_divergence(p: Laws, q: Laws, alpha: NonnegativeOrInf) -> float | Array:
    """Rényi divergence of order `alpha` in [0, inf], ln sum p^alpha q^(1-alpha) / (alpha-1).

    Order 1 is `kl`, order inf is `max_divergence` (U-renyi-divergence); order 0 is -ln q(p > 0).

    >>> round(dp.renyi_divergence([0.7, 0.3], [0.5, 0.5], alpha=2.0), 4)
    0.1484
    """
    p, q = _same_outcomes(p, q)
    alpha, shape = _with_outcome_axis(alpha, p)
    p, q = np.broadcast_to(p, shape), np.broadcast_to(q, shape)
    order, value = alpha[..., 0], np.empty(shape[:-1])
    mirrored = (order < 0.5) & ~((p == 0) & (q > 0)).any(-1)
    for rows, rule in (
        (mirrored, _renyi_by_symmetry),
        ((order != 1) & (order < np.inf) & ~mirrored, _renyi),
        (order == 1, _kl),
        (order == np.inf, _largest_loss),
    ):
        if rows.any():
            value[rows] = rule(p[rows], q[rows], alpha[rows])
    return value


@overload
def max_divergence(p: Sequence[float], q: Sequence[float]) -> float: ...
@overload
def max_divergence(p: ArrayLike, q: ArrayLike) -> Any: ...
@checked
def max_divergence(p: Laws, q: Laws) -> float | Array:
    """Largest privacy loss, the maximum of ln p/q over outcomes with p > 0 (F-max-divergence).

    >>> round(dp.max_divergence([0.7, 0.3], [0.5, 0.5]), 4)
    0.3365
    """
    return _largest_loss(*_same_outcomes(p, q))


@overload
def approximate_max_divergence(p: Sequence[float], q: Sequence[float], delta: float) -> float: ...
@overload
def approximate_max_divergence(p: ArrayLike, q: ArrayLike, delta: ArrayLike) -> Any: ...
@checked
def approximate_max_divergence(p: Laws, q: Laws, delta: Probability) -> float | Array:
    """Maximum over events S with p(S) > delta of ln((p(S) - delta) / q(S)), for delta in [0, 1].

    The least real epsilon with hockey_stick(p, q, epsilon) <= delta, infinite if there is none
    (F-max-divergence).

    >>> round(dp.approximate_max_divergence([0.7, 0.3], [0.5, 0.5], 0.1), 4)
    0.1823
    """
    p, q = _same_outcomes(p, q)
    delta, _ = _with_outcome_axis(delta, p)
    _, above, below = _sorted_by_ratio(p, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(above - delta) - np.log(below)
    return np.where(above > delta, value, -np.inf).max(-1)


@overload
def hockey_stick(p: Sequence[float], q: Sequence[float], epsilon: float) -> float: ...
@overload
def hockey_stick(p: ArrayLike, q: ArrayLike, epsilon: ArrayLike) -> Any: ...
@checked
def hockey_stick(p: Laws, q: Laws, epsilon: Real) -> float | Array:
    """Hockey-stick divergence max_S p(S) - e^epsilon q(S) = sum (p - e^epsilon q)_+, epsilon real.

    (epsilon, delta)-DP says that it is at most delta, both ways, for all neighbours
    (A-hs-divergence); at epsilon = 0 it is the total variation.

    >>> round(dp.hockey_stick([0.7, 0.3], [0.5, 0.5], epsilon=0.1), 4)
    0.1474
    """
    p, q = _same_outcomes(p, q)
    epsilon, _ = _with_outcome_axis(epsilon, p)
    excess = -np.expm1(np.minimum(epsilon - loss_of(p, q), 0.0))
    return (p * excess).sum(-1)


@overload
def tradeoff(p: Sequence[float], q: Sequence[float], alpha: float) -> float: ...
@overload
def tradeoff(p: ArrayLike, q: ArrayLike, alpha: ArrayLike) -> Any: ...
@checked
def tradeoff(p: Laws, q: Laws, alpha: Probability) -> float | Array:
    """Least type-II error of any randomized test of H0: p against H1: q at level `alpha` in [0, 1].

    The Neyman-Pearson tests reject the outcomes of largest q/p; between them the curve is linear.

    >>> round(dp.tradeoff([0.7, 0.3], [0.5, 0.5], alpha=0.05), 4)
    0.9167
    """
    p, q = _same_outcomes(p, q)
    alpha, _ = _with_outcome_axis(alpha, p)
    slope, power, level = _sorted_by_ratio(q, p)
    slope = np.where(np.isfinite(slope), slope, 0.0)
    start = np.where(level > 0, 1 - power + slope * level, 0.0)
    return np.maximum((start - slope * alpha).max(-1), 0.0)


@checked
def density_laws(
    log_p: Function, log_q: Function, edges: Real, nodes: Few = 64
) -> tuple[Array, Array]:
    """Two densities on the line as finite laws: masses at Gauss-Legendre nodes of each panel.

    `log_p`, `log_q` map an array of points to log densities. `edges` are increasing panel ends that
    cover all but a negligible mass and contain the densities' kinks. Sums over the arrays are then
    quadratures of integrals. A law whose sum is off one by over 1e-9 is refused later.

    >>> normal = lambda x: -0.5 * x**2 - 0.5 * np.log(2 * np.pi)
    >>> round(dp.kl(*dp.density_laws(normal, lambda x: normal(x - 1), edges=[-9, 10])), 4)
    0.5
    """
    if edges.ndim != 1 or edges.size < 2 or not (np.diff(edges) > 0).all():
        raise refusal("edges", edges, "an increasing array of at least two numbers")
    at, weight = gauss(edges, nodes)
    return weight * np.exp(log_p(at)), weight * np.exp(log_q(at))


def _same_outcomes(p, q):
    """Both arrays, broadcast to one shape; laws on different sets of outcomes are refused."""
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"p and q must have as many outcomes, got {p.shape[-1]} and {q.shape[-1]}")
    return np.broadcast_arrays(p, q)


def _with_outcome_axis(parameter, p):
    """The parameter with an axis for the outcomes, broadcast to the leading axes; full shape."""
    shape = np.broadcast_shapes(np.shape(parameter), p.shape[:-1])
    return np.broadcast_to(parameter, shape)[..., None], (*shape, p.shape[-1])


def loss_of(p, q):
    """ln p/q of each outcome; -inf where p = 0, also where both are."""
    with np.errstate(all="ignore"):
        return np.where(p > 0, log_ratio(p, q), -np.inf)


def _largest_loss(p, q, *_):
    return loss_of(p, q).max(-1)


def _weighted_excess(p, power):
    """p (exp(power) - 1 - power) >= 0; 0 where p = 0."""
    with np.errstate(divide="ignore"):
        return mean_excess(np.log(p), np.where(p > 0, power, 0.0))


def _kl(p, q, *_):
    """Sum of p (loss + exp(-loss) - 1), and of q where p = 0."""
    return (_weighted_excess(p, -loss_of(p, q)) + np.where(p > 0, 0.0, q)).sum(-1)


def _renyi_by_symmetry(p, q, alpha):
    """(1 - alpha) D_alpha(p || q) = alpha D_(1-alpha)(q || p), for orders in [0, 1/2).

    Not where q has mass outside of p's support: there nothing cancels, and this loses digits.
    """
    return (alpha / (1 - alpha))[..., 0] * _renyi(q, p, 1 - np.maximum(alpha, 1e-15))


def _renyi(p, q, alpha):
    """Orders in [0, 1) and (1, inf): log-sum-exp, or a sum of small terms about 1."""
    loss, more = loss_of(p, q), alpha - 1
    power = np.where(p > 0, more * np.where(p > 0, loss, 0.0), -np.inf)
    with np.errstate(under="ignore"):
        logs = np.log(np.where(p > 0, p, 1.0)) + power
        total = logsumexp(logs, axis=-1)
        near = (np.abs(total) < 0.5) & (loss < np.inf).all(-1)
        if near.any():
            p, q = p[near], q[near]
            excess = _weighted_excess(p, power[near]).sum(-1) + more[near][..., 0] * _kl(p, q)
            total[near] = np.log1p(excess)
    return total / (alpha[..., 0] - 1)


def _sorted_by_ratio(p, q):
    """Outcomes by falling p/q: that ratio, and the running sums of p and of q."""
    loss = loss_of(p, q)
    order = np.argsort(-loss, axis=-1, kind="stable")
    with np.errstate(over="ignore"):
        ratio = np.exp(np.take_along_axis(loss, order, -1))
    p, q = np.take_along_axis(p, order, -1), np.take_along_axis(q, order, -1)
    return ratio, np.cumsum(p, -1), np.cumsum(q, -1)
