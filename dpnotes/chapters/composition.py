"""Composition: what k mechanisms leak together, by every theorem of the notes.

The rounds may be adaptive: round i is chosen after the outputs of the rounds before it were seen.
But the number k of rounds and the guarantee of each round are fixed in advance. `epsilon` and
`delta` are those of one round, `delta_prime` is the delta that the composition theorem adds.
Arrays broadcast; scalars give Python floats.

The theorem that cannot be improved (`optimal`; Kairouz, Oh and Viswanath 2015) rests on leaky
randomized response, the `dominating_pair`: every (epsilon, delta)-indistinguishable pair of laws
comes out of it, when its symbol is processed further. So k adaptive rounds leak at most what k
independent rounds of it leak: with probability 1 - (1-delta)^k everything, else what k coins lose,
which the accountant sums exactly.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from typing import overload

import numpy as np

from ..accountant import randomized_response
from ..checks import (
    Array, ArrayLike, Count, Counts, Function, Laws, Nonnegative, NonnegativeNumber, PositiveNumber,
    PositiveProbability, PositiveProbabilityNumber, Probability, ProbabilityNumber, checked,
    refusal,
)  # fmt: skip
from .approximate_dp import conditioning_events


@checked
def adaptive_law(*kernels: Laws) -> Array:
    """Joint law of k adaptive rounds with finitely many outputs, one axis a round (T-def-adaptive).

    `kernels[i]`: the law of round i along its last axis, for all outputs of the rounds before it.
    A one-dimensional kernel is a round that does not depend on them (T-def-independent).

    >>> composition.adaptive_law([0.5, 0.5], [[1, 0], [0.5, 0.5]]).tolist()
    [[0.5, 0.0], [0.25, 0.25]]
    """
    joint = np.ones(())
    for kernel in kernels:
        joint = joint[..., None] * kernel
    return joint


@overload
def kl_from_pure(epsilon: float) -> float: ...
@overload
def kl_from_pure(epsilon: ArrayLike) -> Array: ...
@checked
def kl_from_pure(epsilon: Nonnegative) -> float | Array:
    """Largest KL divergence of an epsilon-indistinguishable pair: epsilon tanh(epsilon/2).

    Randomized response attains it (U-kl-tight).

    >>> round(composition.kl_from_pure(1.0), 4)
    0.4621
    """
    return epsilon * np.tanh(epsilon / 2)


@checked
def kl_from_pure_exponential(epsilon: Nonnegative) -> float | Array:
    """Bound on the same KL divergence: epsilon (e^epsilon - 1) (F-3.18); inf beyond the floats.

    It bounds KL(p||q) + KL(q||p) too (T-11).

    >>> round(composition.kl_from_pure_exponential(1.0), 4)
    1.7183
    """
    with np.errstate(over="ignore"):
        return epsilon * np.expm1(epsilon)


@checked
def kl_from_pure_piecewise(epsilon: Nonnegative) -> float | Array:
    """Bound on the same KL divergence: the lesser of epsilon (e^epsilon - 1) and epsilon (T-12).

    >>> composition.kl_from_pure_piecewise(1.0)
    1.0
    """
    return epsilon * np.expm1(np.minimum(epsilon, np.log(2)))


@overload
def advanced(epsilon: float, k: float, delta_prime: float, mean: Function = ...) -> float: ...
@overload
def advanced(
    epsilon: ArrayLike, k: ArrayLike, delta_prime: ArrayLike, mean: Function = ...
) -> Array: ...
@checked
def advanced(
    epsilon: Nonnegative, k: Counts, delta_prime: PositiveProbability, mean: Function = kl_from_pure
) -> float | Array:
    """epsilon of k adaptive rounds: k mean(epsilon) + epsilon sqrt(2k ln(1/delta_prime)).

    `mean` bounds the mean loss of one round: epsilon^2/2 gives A-advanced-pure and U-advanced,
    `kl_from_pure_piecewise` T-14 and T-17, `kl_from_pure_exponential` F-3.20 and S-0.3. Rounds that
    are (epsilon, delta)-DP have this epsilon too, at 1 - (1-delta)^k (1-delta_prime).

    >>> round(composition.advanced(0.1, 100, 1e-6), 4)
    5.7561
    """
    return k * mean(epsilon) + epsilon * np.sqrt(-2 * k * np.log(delta_prime))


@checked
def advanced_azuma(
    epsilon: Nonnegative,
    k: Counts,
    delta_prime: PositiveProbability,
    mean: Function = kl_from_pure_piecewise,
) -> float | Array:
    """The same by Azuma: k a + (epsilon + a) sqrt(2k ln(1/delta_prime)), a = mean(epsilon).

    (T-16, T-18.) `advanced` holds under the same hypotheses and is smaller.

    >>> round(composition.advanced_azuma(0.1, 100, 1e-6), 4)
    6.8611
    """
    a = mean(epsilon)
    return k * a + (epsilon + a) * np.sqrt(-2 * k * np.log(delta_prime))


@checked
def advanced_heterogeneous(epsilons: Nonnegative, delta_prime: PositiveProbability) -> float:
    """Different rounds: sum eps_i tanh(eps_i/2) + sqrt(2 ln(1/delta_prime) sum eps_i^2).

    >>> round(composition.advanced_heterogeneous([0.1, 0.2, 0.3], 1e-6), 4)
    2.0364
    """
    epsilons = np.atleast_1d(epsilons)
    log_inverse = -np.log(delta_prime)
    width = np.sqrt(2 * log_inverse) * np.linalg.norm(epsilons)
    return np.sum(kl_from_pure(epsilons)) + width


@overload
def per_query_epsilon(epsilon: float, k: float, delta_prime: float) -> float: ...
@overload
def per_query_epsilon(epsilon: ArrayLike, k: ArrayLike, delta_prime: ArrayLike) -> Array: ...
@checked
def per_query_epsilon(
    epsilon: Nonnegative, k: Counts, delta_prime: PositiveProbability
) -> float | Array:
    """Largest x with k x^2/2 + x sqrt(2k ln(1/delta')) <= epsilon: the budget of one of k queries.

    From A-advanced-pure, solved for x.

    >>> round(composition.per_query_epsilon(1.0, 100, 1e-6), 4)
    0.0187
    """
    log_inverse = -np.log(delta_prime)
    sum_of_roots = np.sqrt(2 * log_inverse + 2 * epsilon) + np.sqrt(2 * log_inverse)
    with np.errstate(invalid="ignore"):
        return np.where(epsilon > 0, 2 * epsilon / (np.sqrt(k) * sum_of_roots), 0.0)


@checked
def round_epsilon(epsilon: PositiveNumber, count: Count, delta: ProbabilityNumber) -> float:
    """Budget of one of so many rounds that are (epsilon, delta)-DP together: by basic composition,
    or by advanced composition where delta > 0 and that gives more.

    >>> round(composition.round_epsilon(1.0, count=100, delta=1e-6), 4)
    0.0187
    """
    by_advanced = per_query_epsilon(epsilon, count, delta) if delta else 0.0
    return max(epsilon / count, float(by_advanced))


@checked
def answerable_queries(
    error: PositiveNumber,
    epsilon: NonnegativeNumber,
    delta: PositiveProbabilityNumber,
    beta: PositiveProbabilityNumber = 0.05,
    each: Function = per_query_epsilon,
) -> int:
    """Most counting queries that Laplace noise answers all within `error`, but for chance `beta`.

    The largest k with ln(k/beta)/each(epsilon, k, delta) <= error (F-n-squared, with F-3.8);
    ``each=lambda epsilon, k, delta: epsilon / k`` is basic composition.

    >>> composition.answerable_queries(100.0, 1.0, 1e-6)
    11
    """

    def fits(k):
        return np.log(k / beta) <= error * each(epsilon, k, delta)

    numbers = range(1, sys.maxsize)  # the most a range may have, also in the browser
    most = bisect_left(numbers, True, key=lambda k: not fits(k))
    if most == len(numbers):
        raise refusal("error", error, f"smaller: over {len(numbers)} queries fit")
    return most


@checked
def dominating_pair(
    epsilon: NonnegativeNumber, delta: ProbabilityNumber = 0.0
) -> tuple[Array, Array]:
    """Leaky randomized response: laws p, q on four symbols, the worst (epsilon, delta) pair.

    With probability delta the data are shown (first symbol under p, last under q), else a coin
    that is right with odds e^epsilon (the two in the middle).

    >>> round(dp.finite(*dp.dominating_pair(0.1, 1e-8)).compose(100).epsilon(1e-5), 4)
    4.3296
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

    >>> composition.simulating_kernel([0.5, 0.5], [0.25, 0.75], np.log(3))[1:3].round(4).tolist()
    [[0.625, 0.375], [0.125, 0.875]]
    """
    e, f = conditioning_events(p, q, epsilon, delta)
    rows = np.empty((4, e.size))
    rows[0], rows[3] = _normalise(p - e, p), _normalise(q - f, q)
    if epsilon > 0:
        odds = np.exp(-epsilon)
        rows[1], rows[2] = _normalise(e - odds * f, e), _normalise(f - odds * e, f)
    else:
        rows[1] = rows[2] = _normalise(e, p)
    return rows


@overload
def optimal_delta(epsilon: float, k: int, target_epsilon: float, delta: float = ...) -> float: ...
@overload
def optimal_delta(
    epsilon: float, k: int, target_epsilon: ArrayLike, delta: float = ...
) -> Array: ...
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

    >>> round(composition.optimal_delta(0.1, 100, target_epsilon=4.0), 8)
    3.422e-05
    """
    coins, log_kept = randomized_response(epsilon).compose(k), _log_kept(delta, k)
    with np.errstate(divide="ignore"):
        return -np.expm1(log_kept + np.log1p(-np.minimum(coins.delta(target_epsilon), 1.0)))


@overload
def optimal(epsilon: float, k: int, target_delta: float, delta: float = ...) -> float: ...
@overload
def optimal(epsilon: float, k: int, target_delta: ArrayLike, delta: float = ...) -> Array: ...
@checked
def optimal(
    epsilon: NonnegativeNumber, k: Count, target_delta: Probability, delta: ProbabilityNumber = 0.0
) -> float | Array:
    """Least epsilon of k adaptive (epsilon, delta)-DP rounds at `target_delta` (X-optimal).

    Infinite if `target_delta` < 1 - (1-delta)^k, and k epsilon at equality.

    >>> round(composition.optimal(0.1, 100, 1e-6), 4)
    4.7746
    """
    coins, kept = randomized_response(epsilon).compose(k), _log_kept(delta, k)
    with np.errstate(divide="ignore"):  # ln(1 - target_delta) - k ln(1-delta), <= 0 if feasible
        room = np.where(target_delta == 1, -np.inf, np.log1p(-target_delta) - max(kept, -1e300))
    epsilons = np.asarray(coins.epsilon(-np.expm1(np.minimum(room, 0.0))))
    return np.where(room > 0, np.inf, epsilons)


def _log_kept(delta, k):
    """ln (1-delta)^k: no round shows the data."""
    return k * np.log1p(-delta) if delta < 1 else -np.inf


def _normalise(part, law):
    """`part` scaled to sum 1, without negative rounding errors.

    Where that is 0 everywhere it is `law` that is scaled, and where that is 0 too, a constant.
    """
    for weights in (np.maximum(part, 0.0), law, np.ones_like(part)):
        if weights.sum() > 1e-15:
            return weights / weights.sum()
