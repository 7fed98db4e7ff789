"""Multiplicative weights: weights over the universe that learn from the queries they miss.

Histograms and queries are those of `systems`.
"""

from __future__ import annotations

from threading import Lock
from typing import Annotated, NamedTuple

import numpy as np

from ...numerics import matrix_product
from ...checks import (
    Array, ArrayLike, BelowOneNumber, Count, Distribution, Generator, Many,
    OpenProbabilityNumber, Positive, PositiveNumber, RealNumber, Unique, Vector, checked,
    probability, vector,
)  # fmt: skip
from ..composition import round_epsilon
from .systems import Histogram, Queries, shares_of

Query = Annotated[ArrayLike, lambda name, value: probability(name, vector(name, value))]


@checked
def weights_update(weights: Distribution, query: Vector, step: RealNumber) -> Array:
    """The weights after one multiplicative update: proportional to weights exp(step query).

    >>> query_release.weights_update([0.5, 0.5], query=[1, 0], step=np.log(3)).round(4)
    array([0.75, 0.25])
    """
    if query.shape != weights.shape:
        raise ValueError(f"query must have {len(weights)} entries, got {len(query)}")
    growth = step * query
    weights = weights * np.exp(growth - growth.max())
    return weights / weights.sum()


class WeightsPlan(NamedTuple):
    """Scales and threshold of private multiplicative weights, and the error they promise.

    >>> query_release.weights_plan(1000, universe=8, queries=10, epsilon=1.0).updates
    2
    """

    updates: int  # rounds of AboveThreshold and Laplace, at most
    round_epsilon: float  # what one round costs: AboveThreshold and Laplace
    comparison_epsilon: float  # AboveThreshold's part of it
    threshold: float  # on |answer - synthetic answer|
    threshold_scale: float
    query_scale: float
    answer_scale: float
    rows: int
    error: float  # no answer is off by more, but for chance beta


@checked
def weights_plan(
    rows: Count,
    universe: Count,
    queries: Count,
    *,
    epsilon: PositiveNumber,
    delta: BelowOneNumber = 0.0,
    beta: OpenProbabilityNumber = 0.05,
) -> WeightsPlan:
    """The `WeightsPlan` with the least error bound for `queries` adaptive queries (U-pmw).

    Tries numbers of updates and ways to split a round's budget; it looks at no data.

    >>> round(query_release.weights_plan(1000, universe=8, queries=10, epsilon=1.0).error, 4)
    0.7443
    """
    n, k = rows, queries
    size = universe
    updates = np.unique(np.geomspace(1, max(4, 8 * n), 300).astype(int))
    each = np.array([round_epsilon(epsilon, int(u), delta) for u in updates])[:, None]
    share = np.linspace(0.03, 0.6, 39)  # of a round, for the Laplace answer
    compare = each * (1 - share)
    log_rounds = np.log(3 * updates[:, None]) - np.log(beta)
    log_all = np.log(3 * k) - np.log(beta)
    root = np.sqrt(log_rounds) + np.sqrt(2 * log_all)
    # b1 log_rounds + b2 log_all is least among all with the budget 1/(n b1) + 2/(n b2) = compare
    b1 = root / (n * compare * np.sqrt(log_rounds))
    b2 = 2 * root / (n * compare * np.sqrt(2 * log_all))
    b3 = 1 / (n * each * share)
    noise, slack = b3 * log_rounds, b1 * log_rounds + b2 * log_all
    gap = np.sqrt(noise**2 + np.log(size) / (2 * (updates[:, None] + 1)))
    i, j = np.unravel_index(np.argmin(gap + 2 * slack), gap.shape)
    best = compare, gap + slack, b1, b2, b3, gap + 2 * slack
    compared, threshold, on_threshold, on_query, on_answer, error = (float(t[i, j]) for t in best)
    return WeightsPlan(
        int(updates[i]), float(each[i, 0]), compared, threshold,
        on_threshold, on_query, on_answer, n, error,
    )  # fmt: skip


class MultiplicativeWeights(Unique):
    """Private multiplicative weights: answers queries one at a time, chosen as one likes.

    `weights` over the universe start uniform. A query whose answer they get wrong is answered with
    Laplace noise, and the weights are updated. Threads that ask are answered one after the other.
    For study: floats leak (X-low-bits).

    >>> plan = query_release.weights_plan(1000, universe=2, queries=10, epsilon=5.0)
    >>> rng = np.random.default_rng(1)
    >>> system = query_release.MultiplicativeWeights([900, 100], plan, rng=rng)
    >>> round(system.answer([1, 0]), 4)
    0.8896
    """

    @checked
    def __init__(self, histogram: Histogram, plan: WeightsPlan, *, rng: Generator) -> None:
        rows = round(histogram.sum())
        if rows != plan.rows:
            raise ValueError(f"histogram must hold {plan.rows} rows, got {rows}")
        self._plan, self._shares = plan, histogram / rows
        self._rng, self._lock = rng, Lock()
        self._weights, self._updates = np.full(len(histogram), 1 / len(histogram)), 0
        self._new_level()

    @property
    def updates(self) -> int:
        """How often the weights were updated."""
        return self._updates

    @property
    def weights(self) -> Array:
        """The weights over the universe."""
        return self._weights.copy()

    @checked
    def answer(self, query: Query) -> float:
        """The published answer to one linear query, a vector of values in [0, 1]."""
        if query.shape != self._weights.shape:
            raise ValueError(f"query must have {len(self._weights)} entries, got {len(query)}")
        with self._lock:
            return self._answer(query)

    def _answer(self, query):
        guess = float(matrix_product(query, self._weights))
        if self._updates >= self._plan.updates:
            return guess
        truth = float(matrix_product(query, self._shares))
        if abs(truth - guess) + self._rng.laplace(0.0, self._plan.query_scale) < self._level:
            return guess
        measured = truth + self._rng.laplace(0.0, self._plan.answer_scale)
        self._weights = weights_update(self._weights, query, 4 * (measured - guess))
        self._updates += 1
        self._new_level()
        return measured

    def _new_level(self):
        noise = self._rng.laplace(0.0, self._plan.threshold_scale)
        self._level = self._plan.threshold + noise


@checked
def mwem(
    histogram: Histogram, queries: Queries, *, rounds: Many, epsilon: PositiveNumber, rng: Generator
) -> Array:
    """Offline multiplicative weights (Hardt, Ligett and McSherry 2012): synthetic weights.

    Each round: the exponential mechanism picks a query on which the weights are far off, Laplace
    noise measures it, the weights are updated; half of epsilon/rounds each. Returns the mean of the
    weights over the rounds; epsilon-DP. The step is 4 (measured - synthetic), 8 times the authors'.
    For study: floats leak (X-low-bits).

    >>> rng = np.random.default_rng(1)
    >>> query_release.mwem([900, 100], [[1, 0]], rounds=4, epsilon=1.0, rng=rng).round(4)
    array([0.7769, 0.2231])
    """
    shares, rows = shares_of(histogram, queries)
    each = rows * epsilon / (2 * rounds)
    truth = matrix_product(queries, shares)
    weights = np.full(len(histogram), 1 / len(histogram))
    total = np.zeros_like(weights)
    for _ in range(rounds):
        guess = matrix_product(queries, weights)
        score = np.abs(truth - guess) * each / 2
        i = int(np.argmax(score + rng.gumbel(size=len(score))))
        total = total + weights
        measured = truth[i] + rng.laplace(0.0, 1 / each)
        weights = weights_update(weights, queries[i], 4 * (measured - guess[i]))
    return total / rounds


@checked
def mwem_error(
    rows: Count,
    universe: Count,
    queries: Count,
    *,
    rounds: Count,
    epsilon: Positive,
    beta: OpenProbabilityNumber = 0.05,
) -> float:
    """What no error of `mwem` exceeds, but for chance beta.

    sqrt(ln(universe)/(2 T) + e^2) + s: e = 2T ln(2T/beta)/(rows epsilon) bounds the measurements,
    s = 4T ln(2 k T/beta)/(rows epsilon) the selections, T = rounds.

    >>> round(query_release.mwem_error(100_000, universe=8, queries=10, rounds=5, epsilon=1.0), 4)
    0.4575
    """
    t, k = rounds, queries
    unit = 2 * t / (rows * epsilon)
    noise, lost = unit * np.log(2 * t / beta), 2 * unit * np.log(2 * k * t / beta)
    spread = np.log(universe) / (2 * t)
    return float(np.sqrt(spread + noise**2) + lost)
