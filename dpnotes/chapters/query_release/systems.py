"""Answering many linear queries: four systems, and what the theorems say of their errors.

The data are a histogram over a finite universe, `rows` people in all, and that number is public:
neighbours replace one row. A linear query is a vector of values in [0, 1], one for each element
of the universe; its answer is the mean over the rows and changes by at most 1/rows. `queries` is
a (k, universe) array or `Marginals`. SmallDB is in `selection`. Samplers draw floating-point
noise and are for study.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from threading import Lock
from typing import Annotated, NamedTuple

import numpy as np

from ...numerics import matrix_product
from ...checks import (
    Array, ArrayLike, BelowOneNumber, Count, Distribution, Generator, Many,
    OpenProbabilityNumber, Positive, PositiveNumber, RealNumber, Unique, Vector, also, array,
    checked, count, count_up_to, probability, vector,
)  # fmt: skip
from ..composition import round_epsilon


class Marginals:
    """All marginals of `order` attributes of a coded table, as linear queries.

    `shape`: how many codes each attribute has; the universe is their product, in C order. Query i
    is the share of rows with given codes of `order` given attributes: `attributes[i]`, `codes[i]`.
    `self @ weights` costs a few passes over the universe for all cells of a table together.
    """

    def __init__(self, shape: Iterable[int], order: int) -> None:
        self.shape = tuple(count("shape", size) for size in shape)
        order = count_up_to("order", order, len(self.shape))
        self.tables = list(combinations(range(len(self.shape)), order))
        self.attributes, self.codes = [], []
        for table in self.tables:
            for code in np.ndindex(*(self.shape[a] for a in table)):
                self.attributes.append(table)
                self.codes.append(code)

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, i):
        query = np.zeros(self.shape)
        where = [slice(None)] * len(self.shape)
        for axis, code in zip(self.attributes[i], self.codes[i], strict=True):
            where[axis] = code
        query[tuple(where)] = 1.0
        return query.ravel()

    def __matmul__(self, weights):
        cube, axes = np.reshape(weights, self.shape), set(range(len(self.shape)))
        return np.concatenate([cube.sum(tuple(axes - set(t))).ravel() for t in self.tables])


def _counts_rows(histogram):
    """Whether these are counts, one for each element of the universe, of a whole number of rows."""
    rows = histogram.sum()
    return (histogram >= 0).all() and rows >= 1 and abs(rows - round(rows)) <= 1e-6


def _queries(name, value):
    """Marginals, or an array with a row of values in [0, 1] for each query."""
    return value if isinstance(value, Marginals) else probability(name, array(name, value, 2))


Histogram = Annotated[ArrayLike, also(vector, _counts_rows, "counts of at least one row")]
Queries = Annotated[ArrayLike | Marginals, _queries]


def _shares(histogram, queries):
    """The shares of the elements of the universe, and how many rows there are.

    Queries on another universe are refused.
    """
    size = np.prod(queries.shape if isinstance(queries, Marginals) else queries.shape[1])
    if size != len(histogram):
        raise ValueError(f"queries must be on a universe of {len(histogram)}, got {queries.shape}")
    rows = round(histogram.sum())
    return histogram / rows, rows


Query = Annotated[ArrayLike, lambda name, value: probability(name, vector(name, value))]


@checked
def laplace_queries(
    histogram: Histogram,
    queries: Queries,
    *,
    epsilon: PositiveNumber,
    delta: BelowOneNumber = 0.0,
    rng: Generator,
) -> Array:
    """Every query with Laplace noise of its own: (epsilon, delta)-DP answers, shape (k,).

    Scale k/(rows epsilon), or by advanced composition if delta > 0 and that is less.
    """
    shares, rows = _shares(histogram, queries)
    scale = 1 / (rows * round_epsilon(epsilon, len(queries), delta))
    return matrix_product(queries, shares) + rng.laplace(0.0, scale, len(queries))


@checked
def laplace_histogram(histogram: Histogram, *, epsilon: PositiveNumber, rng: Generator) -> Array:
    """The shares of the histogram with Laplace noise of scale 2/(rows epsilon): epsilon-DP."""
    rows = round(histogram.sum())
    scale = 2 / (rows * epsilon)
    return histogram / rows + rng.laplace(0.0, scale, histogram.shape)


@checked
def laplace_histogram_error(
    rows: Count,
    universe: Count,
    queries: Count,
    *,
    epsilon: PositiveNumber,
    beta: OpenProbabilityNumber = 0.05,
) -> float:
    """What no error of `queries @ laplace_histogram` exceeds, but for chance beta.

    b sqrt(8 ln(2) m l) if l = ln(2k/beta) <= m ln 2, else sqrt(2) b (l + m ln 2), where
    b = 2/(rows epsilon) and m is the size of the universe (U-query-release-table, 2).
    """
    m, k = universe, queries
    scale = 2 / (rows * epsilon)
    wide, room = np.log(2 * k / beta), m * np.log(2)
    return float(scale * (np.sqrt(8 * room * wide) if wide <= room else 2**0.5 * (wide + room)))


@checked
def weights_update(weights: Distribution, query: Vector, step: RealNumber) -> Array:
    """The weights after one multiplicative update: proportional to weights exp(step query)."""
    if query.shape != weights.shape:
        raise ValueError(f"query must have {len(weights)} entries, got {len(query)}")
    growth = step * query
    weights = weights * np.exp(growth - growth.max())
    return weights / weights.sum()


class WeightsPlan(NamedTuple):
    """Scales and threshold of private multiplicative weights, and the error they promise."""

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

    plan = property(lambda self: self._plan)
    updates = property(lambda self: self._updates)
    weights = property(lambda self: self._weights.copy())

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
    """
    shares, rows = _shares(histogram, queries)
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
    """
    t, k = rounds, queries
    unit = 2 * t / (rows * epsilon)
    noise, lost = unit * np.log(2 * t / beta), 2 * unit * np.log(2 * k * t / beta)
    spread = np.log(universe) / (2 * t)
    return float(np.sqrt(spread + noise**2) + lost)
