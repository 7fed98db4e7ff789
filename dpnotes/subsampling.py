"""Privacy amplification by subsampling: a mechanism that sees a random part of the data.

Two theorems share one formula and differ in the adjacency. Uniform subsets of n out of m rows
(rate r = n/m, both public) are for substitution of a row (T-19); Poisson sampling, where every row
takes part independently with rate r, is for adding or removing one (X-poisson-amplification). Laws
of finite mechanisms on small datasets are computed exactly, by enumeration.
"""

from collections.abc import Callable, Sequence
from itertools import combinations, product
from math import comb

import numpy as np

from ._types import Answer, Array, ArrayLike
from ._validate import (
    count,
    count_or_zero,
    function,
    nonnegative,
    open_probability,
    plain,
    positive,
    positive_probability,
    probability,
    scalar,
    within,
)
from .accountant.law import inverse_mixed_loss, mixed_loss
from .optimal import dominating_pair

__all__ = [
    "amplification",
    "amplification_linear",
    "amplification_chord",
    "amplification_inverse",
    "replacement_amplification",
    "minibatch_epsilon",
    "subset_pairs",
    "uniform_subsample_law",
    "poisson_subsample_law",
    "replacement_subsample_law",
    "amplification_pair",
    "substitution_pair",
    "subsampled_dominating_pair",
]


_mixed = np.vectorize(lambda loss, rate: mixed_loss(loss, rate) if rate else 0.0, otypes=[float])
_before = np.vectorize(inverse_mixed_loss, otypes=[float])  # the engine's formula takes one rate


# ------------------------------------------------------------------------------- the formulas


def amplification(
    epsilon: ArrayLike, rate: ArrayLike, delta: ArrayLike = 0.0
) -> tuple[Answer, Answer]:
    """(log(1 + rate (e^epsilon - 1)), rate delta): what subsampling makes of (epsilon, delta)-DP.

    T-19: uniform subsets, substitution. X-poisson-amplification: Poisson sampling, add/remove.
    Arrays broadcast.
    """
    epsilon, rate = nonnegative("epsilon", epsilon), probability("rate", rate)
    return plain(_mixed(epsilon, rate)), plain(rate * np.asarray(probability("delta", delta)))


def amplification_linear(epsilon: ArrayLike, rate: ArrayLike) -> Answer:
    """rate (e^epsilon - 1) >= the amplified epsilon (T-19-linear); inf where beyond floats."""
    epsilon, rate = np.asarray(nonnegative("epsilon", epsilon)), probability("rate", rate)
    with np.errstate(over="ignore", invalid="ignore"):
        return plain(np.where(np.asarray(rate) == 0, 0.0, rate * np.expm1(epsilon)))


def amplification_chord(epsilon: ArrayLike, rate: ArrayLike, limit: float = 1.0) -> Answer:
    """rate epsilon (e^limit - 1)/limit >= the amplified epsilon, if epsilon <= limit (T-19-linear).

    With limit = 1 it is 1.72 rate epsilon, which the source rounds to 2 rate epsilon.
    """
    epsilon, limit = nonnegative("epsilon", epsilon), within("limit", limit, 1e-100, 700.0)
    if np.any(np.asarray(epsilon) > limit):
        raise ValueError(f"epsilon must be at most limit = {limit!r}, got {epsilon!r}")
    return plain(probability("rate", rate) * epsilon * np.expm1(limit) / limit)


def amplification_inverse(epsilon: ArrayLike, rate: ArrayLike) -> Answer:
    """The epsilon before sampling that is amplified to `epsilon`: log(1 + (e^epsilon - 1)/rate)."""
    epsilon, rate = nonnegative("epsilon", epsilon), positive_probability("rate", rate)
    with np.errstate(over="ignore"):
        return plain(_before(epsilon, rate))


def replacement_amplification(epsilon: ArrayLike, rows: int, draws: int) -> Answer:
    """draws log(1 + (e^epsilon - 1)/rows): pure DP of `draws` uniform rows with replacement.

    For substitution, epsilon-DP on `draws` rows (an exercise of the page); it can be attained.
    """
    return plain(count("draws", draws) * amplification(epsilon, 1 / count("rows", rows))[0])


# --------------------------------------------------------------------------------- minibatches


def minibatch_epsilon(
    epsilon: ArrayLike, rate: ArrayLike, passes: ArrayLike, delta_prime: ArrayLike
) -> Answer:
    """epsilon of passes/rate minibatches of an epsilon-DP step: T-19, then advanced composition.

    (e^eps - 1) sqrt(2 k r log(1/delta')) + k r (e^eps - 1)^2/2 with k passes (T-19-minibatch, as it
    can be proved). With (epsilon, delta)-DP steps it holds at k delta + delta'.
    """
    volume = np.asarray(positive_probability("rate", rate)) * positive("passes", passes)
    log_inverse = -np.log(open_probability("delta_prime", delta_prime))
    with np.errstate(over="ignore"):
        gain = np.expm1(nonnegative("epsilon", epsilon))
        return plain(gain * np.sqrt(2 * volume * log_inverse) + volume * gain**2 / 2)


# ---------------------------------------------------------------- exact laws of small mechanisms


def subset_pairs(rows: int, size: int, index: int) -> tuple[list, list, Array]:
    """The pairing of T-19: subsets with `index`, subsets without it, and who is paired with whom.

    Two lists of tuples, and the boolean matrix of the pairs that share size - 1 elements.
    """
    rows, size = count("rows", rows), count("size", size)
    if size > rows or comb(rows, size) > 5000:
        raise ValueError(f"size must leave 1 to 5000 subsets of {rows} rows, got {size!r}")
    index = count_or_zero("index", index)
    subsets = list(combinations(range(rows), size))
    with_it = [s for s in subsets if index in s]
    without = [s for s in subsets if index not in s]
    paired = [[len(set(i) & set(j)) == size - 1 for j in without] for i in with_it]
    return with_it, without, np.array(paired, dtype=bool).reshape(len(with_it), len(without))


def uniform_subsample_law(mechanism: Callable, data: Sequence, size: int) -> Array:
    """The law of mechanism(random subset of `size` rows): the mean over all subsets.

    `mechanism` maps a tuple of rows to a vector of probabilities.
    """
    mechanism, data = function("mechanism", mechanism), _data(data)
    if count_or_zero("size", size) > len(data):
        raise ValueError(f"size must be at most the number of rows, {len(data)}, got {size!r}")
    chosen = combinations(data, int(size))
    return np.mean([mechanism(rows) for rows in chosen], axis=0)


def poisson_subsample_law(mechanism: Callable, data: Sequence, rate: float) -> Array:
    """The law of mechanism(random part of the rows), each row in it independently with `rate`."""
    mechanism, data = function("mechanism", mechanism), _data(data)
    rate = scalar("rate", probability("rate", rate))
    total = 0.0
    for taken in product((0, 1), repeat=len(data)):
        weight = rate ** sum(taken) * (1 - rate) ** (len(data) - sum(taken))
        rows = tuple(row for row, t in zip(data, taken, strict=True) if t)
        total = total + weight * np.asarray(mechanism(rows))
    return total


def replacement_subsample_law(mechanism: Callable, data: Sequence, draws: int) -> Array:
    """The law of mechanism(`draws` independent uniform rows, repeats allowed)."""
    mechanism, data = function("mechanism", mechanism), _data(data)
    if not data:
        raise ValueError("data must have at least one row to draw, got none")
    draws = count_or_zero("draws", draws)
    if draws > 10**6 or len(data) ** min(draws, 20) > 10**6:  # 2^20 is more
        raise ValueError(f"draws must leave at most 10^6 samples to go through, got {draws!r}")
    chosen = product(data, repeat=draws)
    return np.mean([mechanism(rows) for rows in chosen], axis=0)


def _data(data):
    """The rows as a tuple."""
    if isinstance(data, (list, tuple, range)) or (isinstance(data, np.ndarray) and data.ndim):
        return tuple(data)
    raise ValueError(f"data must be a list of rows, got {data!r}")


# ----------------------------------------------------------------------------------- worst pairs


def amplification_pair(epsilon: float, rate: float, delta: float = 0.0) -> tuple[Array, Array]:
    """Laws of M(x) and M(x') on which T-19 is attained: (r P + (1-r) Q, Q), (P, Q) the leaky coin.

    N answers with P if the one special row is in its batch, with Q if not.
    """
    p, q = dominating_pair(epsilon, delta)
    rate = scalar("rate", probability("rate", rate))
    return rate * p + (1 - rate) * q, q


def substitution_pair(epsilon: float, rate: float) -> tuple[Array, Array]:
    """A pair on three outcomes under substitution, the other natural bad case beside
    `amplification_pair`: over many rounds it needs more epsilon at large delta, less at tiny delta.

    Batches with the special row a, with b, and with neither have the laws A, B, R; any two of
    them are epsilon-indistinguishable. Returns r A + (1-r) R and r B + (1-r) R (T-19-minibatch).
    """
    epsilon = scalar("epsilon", positive("epsilon", epsilon))
    rate = scalar("rate", probability("rate", rate))
    up, down = np.exp(min(epsilon, 700.0)), np.exp(-epsilon)
    w = -np.expm1(-epsilon) / (up + 1 - 2 * down)
    middle = np.array([w, w, 1 - 2 * w])
    a, b = middle * [up, 1, down], middle * [1, up, down]
    return rate * a + (1 - rate) * middle, rate * b + (1 - rate) * middle


def subsampled_dominating_pair(
    epsilon: float, rate: float, delta: float = 0.0
) -> tuple[Array, Array]:
    """A pair on five outcomes that no subsampled (epsilon, delta)-DP mechanism exceeds.

    Its hockey-stick curve is rate * delta(log(1 + (e^t - 1)/rate)) in both directions, delta()
    that of the leaky coin; so its composition bounds every composition of such rounds
    (X-subsampled-pair). Losses: inf, e', 0, -e', -inf with e' the amplified epsilon. rate > 0.
    """
    p, _ = dominating_pair(epsilon, delta)
    rate = scalar("rate", positive_probability("rate", rate))
    bound, leak = amplification(epsilon, rate, delta)
    low = p[2]
    high = low + rate * (p[1] - p[2])  # e^bound * low
    none = (1 - rate) * (p[0] + p[1] - p[2])
    law = np.array([leak, high, none, low, 0.0])
    return law, law[::-1].copy()
