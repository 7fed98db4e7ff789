"""The composition theorem that cannot be improved (Kairouz, Oh and Viswanath 2015; X-optimal).

Every (epsilon, delta)-indistinguishable pair of laws is what comes out of one pair of laws on four
symbols, leaky randomized response, when its symbol is processed further. So k adaptive rounds leak
at most what k independent rounds of it leak: with probability 1 - (1-delta)^k everything, else
what k coins lose, which the accountant sums exactly.
"""

from __future__ import annotations

import numpy as np

from ...checks import (
    Array, Count, Laws, Nonnegative, NonnegativeNumber, Probability, ProbabilityNumber, checked,
)  # fmt: skip
from ...accountant import randomized_response
from ..approximate_dp import conditioning_events


@checked
def dominating_pair(
    epsilon: NonnegativeNumber, delta: ProbabilityNumber = 0.0
) -> tuple[Array, Array]:
    """Leaky randomized response: laws p, q on four symbols, the worst (epsilon, delta) pair.

    With probability delta the data are shown (first symbol under p, last under q), else a coin
    that is right with odds e^epsilon (the two in the middle).
    """
    right = 1 / (1 + np.exp(-epsilon))
    wrong = np.exp(-epsilon) * right
    p = np.array([delta, (1 - delta) * right, (1 - delta) * wrong, 0.0])
    return p, p[::-1].copy()


@checked
def simulating_kernel(
    p: Laws, q: Laws, epsilon: NonnegativeNumber, delta: ProbabilityNumber = 0.0
) -> Array:
    """Row-stochastic matrix K with P K = p and Q K = q, (P, Q) the `dominating_pair` (X-optimal).

    `p`, `q` are finite (epsilon, delta)-indistinguishable laws; ValueError if they are not.
    """
    e, f = conditioning_events(p, q, epsilon, delta)
    rows = np.empty((4, e.size))
    rows[0], rows[3] = _normalised(p - e, p), _normalised(q - f, q)
    if epsilon > 0:
        odds = np.exp(-epsilon)
        rows[1], rows[2] = _normalised(e - odds * f, e), _normalised(f - odds * e, f)
    else:
        rows[1] = rows[2] = _normalised(e, p)
    return rows


@checked
def optimal_delta(
    epsilon: NonnegativeNumber,
    k: Count,
    target_epsilon: Nonnegative,
    delta: ProbabilityNumber = 0.0,
) -> float | Array:
    """Least delta of k adaptive (epsilon, delta)-DP rounds at `target_epsilon` (X-optimal).

    1 - (1-delta)^k (1 - sum_i C(k,i) (e^(i eps) - e^(target + (k-i) eps))_+ / (1+e^eps)^k),
    attained by `dominating_pair`.
    """
    coins, kept = _coins(epsilon, k), _log_kept(delta, k)
    return _leak(kept, coins.delta(target_epsilon))


@checked
def optimal(
    epsilon: NonnegativeNumber, k: Count, target_delta: Probability, delta: ProbabilityNumber = 0.0
) -> float | Array:
    """Least epsilon of k adaptive (epsilon, delta)-DP rounds at `target_delta` (X-optimal).

    Infinite if `target_delta` < 1 - (1-delta)^k, and k epsilon at equality.
    """
    coins, kept = _coins(epsilon, k), _log_kept(delta, k)
    with np.errstate(divide="ignore"):  # ln(1 - target_delta) - k ln(1-delta), <= 0 if feasible
        room = np.where(target_delta == 1, -np.inf, np.log1p(-target_delta) - max(kept, -1e300))
    found = np.asarray(coins.epsilon(-np.expm1(np.minimum(room, 0.0))))
    return np.where(room > 0, np.inf, found)


def _coins(epsilon, k):
    """The loss of k rounds of randomized response."""
    return randomized_response(epsilon).compose(k)


def _log_kept(delta, k):
    """ln (1-delta)^k: no round shows the data."""
    return k * np.log1p(-delta) if delta < 1 else -np.inf


def _leak(log_kept, pure):
    """1 - (1-delta)^k (1 - delta of the coins)."""
    with np.errstate(divide="ignore"):
        return -np.expm1(log_kept + np.log1p(-np.minimum(pure, 1.0)))


def _normalised(part, law):
    """`part` scaled to sum 1, without negative rounding errors.

    Where that is 0 everywhere it is `law` that is scaled, and where that is 0 too, a constant.
    """
    for weights in (np.maximum(part, 0.0), law, np.ones_like(part)):
        if weights.sum() > 1e-15:
            return weights / weights.sum()
