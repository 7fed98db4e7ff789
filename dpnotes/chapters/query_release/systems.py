"""Answering many linear queries by Laplace noise, and what the theorems say of the errors.

The data are a histogram over a finite universe, `rows` people in all, and that number is public:
neighbours replace one row. A linear query is a vector of values in [0, 1], one for each element
of the universe; its answer is the mean over the rows and changes by at most 1/rows. `queries` is
a (k, universe) array or `Marginals`. `weights` has multiplicative weights, `selection` SmallDB.
Samplers draw floating-point noise and are for study.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Annotated

import numpy as np

from ...numerics import matrix_product
from ...checks import (
    Array, ArrayLike, BelowOneNumber, Count, Generator, OpenProbabilityNumber, PositiveNumber,
    also, array, checked, count, count_up_to, probability, vector,
)  # fmt: skip
from ..composition import round_epsilon


class Marginals:
    """All marginals of `order` attributes of a coded table, as linear queries.

    `shape`: how many codes each attribute has; the universe is their product, in C order. Query i
    is the share of rows with given codes of `order` given attributes: `attributes[i]`, `codes[i]`.
    `self @ weights` costs a few passes over the universe for all cells of a table together.

    >>> query_release.Marginals((2, 3), order=1) @ [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    array([0.7, 0.3, 0.6, 0.2, 0.2])
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


def shares_of(histogram, queries):
    """The shares of the elements of the universe, and how many rows there are.

    Queries on another universe are refused.
    """
    size = np.prod(queries.shape if isinstance(queries, Marginals) else queries.shape[1])
    if size != len(histogram):
        raise ValueError(f"queries must be on a universe of {len(histogram)}, got {queries.shape}")
    rows = round(histogram.sum())
    return histogram / rows, rows


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

    Scale k/(rows epsilon), or by advanced composition if delta > 0 and that is less. For study:
    floats leak (X-low-bits).

    >>> rng = np.random.default_rng(1)
    >>> query_release.laplace_queries([30, 10], [[1, 0], [0, 1]], epsilon=1.0, rng=rng).round(4)
    array([0.7512, 0.3656])
    """
    shares, rows = shares_of(histogram, queries)
    scale = 1 / (rows * round_epsilon(epsilon, len(queries), delta))
    return matrix_product(queries, shares) + rng.laplace(0.0, scale, len(queries))


@checked
def laplace_histogram(histogram: Histogram, *, epsilon: PositiveNumber, rng: Generator) -> Array:
    """The shares of the histogram with Laplace noise of scale 2/(rows epsilon): epsilon-DP.

    For study: floats leak (X-low-bits). To publish: `discrete_laplace_mechanism` of the counts.

    >>> query_release.laplace_histogram([3, 1], epsilon=1.0, rng=np.random.default_rng(1)).round(4)
    array([0.762, 1.406])
    """
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

    >>> round(query_release.laplace_histogram_error(1000, universe=10, queries=5, epsilon=1.0), 4)
    0.0343
    """
    m, k = universe, queries
    scale = 2 / (rows * epsilon)
    wide, room = np.log(2 * k / beta), m * np.log(2)
    return float(scale * (np.sqrt(8 * room * wide) if wide <= room else 2**0.5 * (wide + room)))
