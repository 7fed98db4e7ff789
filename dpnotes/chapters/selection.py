"""Choosing privately: samplers that return an index or a point, their exact laws and accuracies.

The **spread** of a step to a neighbour says how far the change of one candidate's score can be from
the change of another's. It is at most 2 sensitivity, and at most sensitivity where all scores move
the same way (as counts under add/remove do). Noise of scale b, or weights exp(score/b), cost
epsilon = spread/b (F-3.9, F-3.10). Scores stand along the last axis.
"""

from __future__ import annotations

from functools import partial
from math import comb
from typing import Annotated

import numpy as np

from ..numerics import gauss, log_binomial, matrix_product, softmax
from ..checks import (
    Array, ArrayLike, Count, Generator, PositiveNumber, PositiveProbability, RealNumber,
    Vector, also, array, checked, choice, count, probability, real, refusal,
)  # fmt: skip
from ..safe import Data, safe_quantile

MOST_ENTRIES = 10_000_000  # of the table of databases that small_db lists
MOST_CANDIDATES = 4000  # of an exact law

Scores = Annotated[ArrayLike, also(real, np.ndim, "an array of scores")]
Noise = Annotated[str, partial(choice, allowed=("laplace", "exponential", "gumbel"))]
Shares = Annotated[ArrayLike, lambda name, value: probability(name, array(name, value, 2))]
TwoOrMore = Annotated[int, partial(count, least=2)]


@checked
def exponential(
    utility: Scores,
    sensitivity: PositiveNumber = 1.0,
    epsilon: PositiveNumber = 1.0,
    *,
    rng: Generator,
) -> int | Array:
    """Index r with probability proportional to exp(epsilon utility[r] / (2 sensitivity)).

    epsilon-DP when one neighbour moves every utility by at most `sensitivity` (F-exponential,
    F-3.10). The largest exponent after Gumbel noise, along the last axis. For study: floats make
    some outcomes impossible (X-impossible).

    >>> selection.exponential([10, 8, 3], rng=np.random.default_rng(1))
    0
    """
    gaps = _gaps(utility, 2 * sensitivity / epsilon)
    return _largest(gaps + rng.gumbel(size=gaps.shape))


@checked
def exponential_law(
    utility: Scores, sensitivity: PositiveNumber = 1.0, epsilon: PositiveNumber = 1.0
) -> Array:
    """Probabilities of the indices of `exponential`, in the shape of `utility`.

    >>> selection.exponential_law([1, 0], epsilon=2 * np.log(3)).round(4)
    array([0.75, 0.25])
    """
    return softmax(_gaps(utility, 2 * sensitivity / epsilon), axis=-1)


@checked
def noisy_max(
    scores: Scores, *, scale: PositiveNumber, noise: Noise = "laplace", rng: Generator
) -> int | Array:
    """Index of the largest of `scores` after independent noise of this `scale` on each.

    (s/scale)-DP for scores of spread s (F-3.9). `noise`: "laplace", "exponential" (the law of
    `permute_and_flip`) or "gumbel" (the law of `exponential`). For study: floats make some outcomes
    impossible (X-impossible).

    >>> selection.noisy_max([10, 8, 3], scale=1.0, rng=np.random.default_rng(1))
    1
    """
    gaps = _gaps(scores, scale)
    draw = getattr(rng, noise)
    return _largest(gaps + draw(size=gaps.shape))


@checked
def noisy_max_law(scores: Scores, *, scale: PositiveNumber, noise: Noise = "laplace") -> Array:
    """Probabilities of the indices of `noisy_max`, in the shape of `scores`.

    A softmax for Gumbel noise, else quadrature to near machine precision, for candidates up to
    MOST_CANDIDATES.

    >>> selection.noisy_max_law([1, 0], scale=1.0).round(4)
    array([0.7241, 0.2759])
    """
    gaps = _gaps(scores, scale)
    rule = {"laplace": _laplace_law, "exponential": _flip_law, "gumbel": softmax}
    return np.apply_along_axis(rule[noise], -1, gaps)


@checked
def permute_and_flip(
    utility: Scores,
    sensitivity: PositiveNumber = 1.0,
    epsilon: PositiveNumber = 1.0,
    *,
    rng: Generator,
) -> int | Array:
    """Visit the candidates in random order; stop at r with probability exp(epsilon g/(2 sens.)).

    g = utility[r] - max utility. The same epsilon as `exponential`; for one choice its expected
    utility is never lower. Over many choices `exponential` can cost less: its losses lie in one
    interval of length epsilon, these do not (X-permute-and-flip; McKenna and Sheldon 2020). For
    study: floats make some outcomes impossible (X-impossible).

    >>> selection.permute_and_flip([10, 8, 3], rng=np.random.default_rng(1))
    0
    """
    gaps = _gaps(utility, 2 * sensitivity / epsilon)
    heads = np.log1p(-rng.random(gaps.shape)) <= gaps  # always where gaps = 0
    return _largest(np.where(heads, rng.random(gaps.shape), -1.0))  # the first head of the order


@checked
def permute_and_flip_law(
    utility: Scores, sensitivity: PositiveNumber = 1.0, epsilon: PositiveNumber = 1.0
) -> Array:
    """Probabilities of the indices of `permute_and_flip`, in the shape of `utility`.

    >>> selection.permute_and_flip_law([1, 0], epsilon=2 * np.log(2)).round(4)
    array([0.75, 0.25])
    """
    gaps = _gaps(utility, 2 * sensitivity / epsilon)
    return np.apply_along_axis(_flip_law, -1, gaps)


@checked
def private_median(
    values: Data, *, epsilon: PositiveNumber, lower: RealNumber, upper: RealNumber,
    grid: PositiveNumber | None = None, rng: Generator,
) -> float:  # fmt: skip
    """A number of the public interval [lower, upper] near the median, epsilon-DP, exactly drawn.

    `dpnotes.safe_quantile` at 0.5, which says what `grid` is (X-private-median). Values outside are
    clipped; NaN counts as `lower`, since a refusal would reveal it.

    >>> values, rng = [1, 2, 3, 4, 99], np.random.default_rng(1)
    >>> selection.private_median(values, epsilon=9.0, lower=0, upper=10, grid=0.5, rng=rng)
    3.0
    """
    return safe_quantile(values, lower=lower, upper=upper, grid=grid, epsilon=epsilon, rng=rng)


@checked
def small_db(
    histogram: Vector, queries: Shares, rows: Count, *, epsilon: PositiveNumber, rng: Generator
) -> Array:
    """Weights over the universe, summing to 1, of a synthetic database of `rows` rows (U-smalldb).

    epsilon-DP under replace. `histogram`: counts (|X|,); `queries`: (k, |X|), entries in [0, 1].
    For study: floats make some outcomes impossible (X-impossible).

    >>> selection.small_db([3, 1], [[1, 0]], 4, epsilon=20.0, rng=np.random.default_rng(1))
    array([0.75, 0.25])
    """
    databases, law = small_db_law(histogram, queries, rows, epsilon=epsilon)
    return databases[rng.choice(len(law), p=law)]


@checked
def small_db_law(
    histogram: Vector, queries: Shares, rows: Count, *, epsilon: PositiveNumber
) -> tuple[Array, Array]:
    """All N databases of `rows` rows, as weights (N, |X|), and their probabilities (N,).

    The exponential mechanism with utility - max over queries of the error, of sensitivity 1/n.
    N |X| is at most 1e7.

    >>> selection.small_db_law([3, 1], [[1, 0]], 2, epsilon=2.0)[1].round(4)
    array([0.0634, 0.4683, 0.4683])
    """
    if (histogram < 0).any() or (histogram % 1 != 0).any() or not 1 <= histogram.sum() < 2**53:
        raise ValueError("histogram must hold whole numbers >= 0 and some row")
    size, n = len(histogram), histogram.sum()
    if queries.shape[1] != size:
        raise ValueError(f"queries must have {size} columns as histogram, got {queries.shape[1]}")
    if rows > MOST_ENTRIES or comb(size + rows - 1, rows) * size > MOST_ENTRIES:
        raise refusal("rows", rows, "few enough to list all databases")
    databases, error = _databases(size, rows) / rows, 0.0
    for query in queries:
        error = np.maximum(
            error, np.abs(matrix_product(databases, query) - matrix_product(query, histogram) / n)
        )
    return databases, exponential_law(-error, 1 / n, epsilon)


@checked
def small_db_accuracy(
    beta: PositiveProbability,
    n: Count,
    universe: Count,
    queries: TwoOrMore,
    rows: Count,
    epsilon: PositiveNumber = 1.0,
) -> float | Array:
    """Error of SmallDB on every query, but for probability `beta` (U-smalldb); at most 1.

    sqrt(ln(queries)/rows) + 2/(epsilon n) (ln N + ln(1/beta)), N = C(universe + rows - 1, rows) the
    number of databases, n rows in the data.

    >>> round(selection.small_db_accuracy(0.05, n=100_000, universe=10, queries=100, rows=500), 4)
    0.0969
    """
    databases = log_binomial(universe + rows - 1, rows)
    choosing = (databases - np.log(beta)) * (2 / (n * epsilon))
    return np.minimum(np.sqrt(np.log(queries) / rows) + choosing, 1.0)


def _gaps(scores, scale):
    """Scores less the largest one, in units of the scale; minus infinity for those far below."""
    with np.errstate(over="ignore"):
        return (scores - scores.max(-1, keepdims=True)) / scale


def _largest(noisy):
    return int(np.argmax(noisy)) if noisy.ndim == 1 else np.argmax(noisy, axis=-1)


def _products_without_each(p):
    """For each r: the integral over w in [0, 1] of the product of 1 - p_j w over all j but r."""
    if len(p) > MOST_CANDIDATES:
        raise ValueError(f"scores must be at most {MOST_CANDIDATES} here, got {len(p)}")
    nodes = (len(p) + 1) // 2  # exact up to degree len(p) - 1 at least
    w, weight = gauss(np.array([0.0, 1.0]), nodes)
    logs = np.log1p(-w[:, None] * p)
    return matrix_product(weight, np.exp(logs.sum(1, keepdims=True) - logs))


def _flip_law(gaps):
    """Law of permute-and-flip: p_r E 1/(1 + number of other heads), p = exp(gaps)."""
    p = np.exp(gaps)
    return p * _products_without_each(p)


def _laplace_law(gaps):
    """Law of the largest score after Laplace noise: the integral, for each candidate, of its
    density times the distribution functions of the others.
    """
    law, near = np.zeros(len(gaps)), gaps > -700.0  # else 0 in floating point
    u = gaps[near]
    k, least, p = len(u), u.min(), np.exp(u) / 2
    # the part where the winning noisy score exceeds all scores; substitute w = exp(-that score)
    chance = p * _products_without_each(p)
    chance += np.exp(k * (least - np.log(2)) - u.sum()) / k  # below all scores
    edges = np.unique(np.concatenate([u, np.arange(least, 0.0)]))
    node, weight = gauss(edges, 16)
    for some in np.array_split(np.arange(len(node)), 1 + len(node) * k // 800_000):
        far = node[some, None] - u
        inner = -np.abs(far) - np.log(2)  # log density, and log tail on its side
        below = np.where(far < 0, inner, np.log1p(-np.exp(inner)))
        mass = np.exp(below.sum(1, keepdims=True) - below + inner)
        chance += matrix_product(weight[some], mass)
    law[near] = chance
    return law


def _databases(size, rows):
    """All ways to spread `rows` rows over `size` cells: counts (N, size)."""
    columns: list[Array] = []
    left = np.array([rows])
    for _ in range(size - 1):
        ways = left + 1
        parent = np.repeat(np.arange(len(left)), ways)
        taken = np.arange(len(parent)) - np.repeat(np.cumsum(ways) - ways, ways)
        columns, left = [*(c[parent] for c in columns), taken], left[parent] - taken
    return np.stack([*columns, left], axis=1)
