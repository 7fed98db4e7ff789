"""Answering many linear queries: four systems, and what the theorems say of their errors.

The data are a histogram over a finite universe, `rows` people in all, and that number is public:
neighbours replace one row. A linear query is a vector of values in [0, 1], one for each element
of the universe; its answer is the mean over the rows and changes by at most 1/rows. `queries` is
a (k, universe) array or `Marginals`. SmallDB is in `selection`. Samplers draw floating-point
noise and are for study.
"""

from typing import NamedTuple

import numpy as np

from . import _validate as check
from ._types import Array, ArrayLike, Generator
from .accountant.privacy_loss import PrivacyLoss
from .composition import round_epsilon
from .losses import laplace, randomized_response
from .queries import Marginals, histogram_rows, on_universe

__all__ = [
    "laplace_queries",
    "laplace_queries_error",
    "laplace_histogram",
    "laplace_histogram_error",
    "weights_update",
    "update_bound",
    "WeightsPlan",
    "weights_plan",
    "MultiplicativeWeights",
    "mwem",
    "mwem_error",
]


# --------------------------------------------------------------------------- two Laplace systems


def laplace_queries(
    histogram: ArrayLike,
    queries: ArrayLike | Marginals,
    *,
    epsilon: float,
    delta: float = 0.0,
    rng: Generator,
) -> Array:
    """Every query with Laplace noise of its own: (epsilon, delta)-DP answers, shape (k,).

    Scale k/(rows epsilon), or by advanced composition if delta > 0 and that is less.
    """
    histogram, rows = histogram_rows(histogram)
    queries = on_universe(queries, len(histogram))
    scale = 1 / (rows * round_epsilon(epsilon, len(queries), delta))
    return queries @ (histogram / rows) + check.generator("rng", rng).laplace(
        0.0, scale, len(queries)
    )


def laplace_queries_error(
    rows: int, queries: int, *, epsilon: float, delta: float = 0.0, beta: float = 0.05
) -> float:
    """What no error of `laplace_queries` reaches, but for chance beta: scale log(k/beta)."""
    k = check.count("queries", queries)
    scale = 1 / (check.count("rows", rows) * round_epsilon(epsilon, k, delta))
    return float(scale * np.log(k / check.open_probability("beta", beta)))


def laplace_histogram(histogram: ArrayLike, *, epsilon: float, rng: Generator) -> Array:
    """The shares of the histogram with Laplace noise of scale 2/(rows epsilon): epsilon-DP."""
    histogram, rows = histogram_rows(histogram)
    scale = 2 / (rows * check.positive("epsilon", check.scalar("epsilon", epsilon)))
    return histogram / rows + check.generator("rng", rng).laplace(0.0, scale, histogram.shape)


def laplace_histogram_error(
    rows: int, universe: int, queries: int, *, epsilon: float, beta: float = 0.05
) -> float:
    """What no error of `queries @ laplace_histogram` exceeds, but for chance beta.

    b sqrt(8 log(2) m l) if l = log(2k/beta) <= m log 2, else sqrt(2) b (l + m log 2), where
    b = 2/(rows epsilon) and m is the size of the universe (U-query-release-table, 2).
    """
    m, k = check.count("universe", universe), check.count("queries", queries)
    scale = 2 / (check.count("rows", rows) * check.positive("epsilon", epsilon))
    wide, room = np.log(2 * k / check.open_probability("beta", beta)), m * np.log(2)
    return float(scale * (np.sqrt(8 * room * wide) if wide <= room else 2**0.5 * (wide + room)))


# ------------------------------------------------------------------------ multiplicative weights


def weights_update(weights: ArrayLike, query: ArrayLike, step: float) -> Array:
    """The weights after one multiplicative update: proportional to weights exp(step query)."""
    weights, query = check.distribution("weights", weights), check.array("query", query, 1)
    if query.shape != weights.shape:
        raise ValueError(f"query must have {len(weights)} entries, got {query!r}")
    growth = check.real("step", check.scalar("step", step)) * query
    weights = weights * np.exp(growth - growth.max())
    return weights / weights.sum()


def update_bound(universe: int, gap: float, noise: float = 0.0) -> float:
    """Most updates of multiplicative weights: log(universe)/(2 (gap^2 - noise^2)) (U-pmw).

    If at each update the true answer and the synthetic one are at least `gap` apart, and the step
    is 4 (measured - synthetic) with a measurement that is off by at most `noise` < `gap`.
    """
    gap, noise = check.positive("gap", gap), check.nonnegative("noise", noise)
    if np.any(noise >= gap):
        raise ValueError(f"noise must be below the gap {gap!r}, got {noise!r}")
    return np.log(check.count("universe", universe)) / (2 * (gap**2 - noise**2))


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

    def loss(self) -> PrivacyLoss:
        """A privacy loss that dominates the whole run: coins for AboveThreshold, and Laplace."""
        coins = randomized_response(self.comparison_epsilon).compose(self.updates)
        return coins + laplace(self.answer_scale, 1 / self.rows).compose(self.updates)


def weights_plan(
    rows: int,
    universe: int,
    queries: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
) -> WeightsPlan:
    """The `WeightsPlan` with the least error bound for `queries` adaptive queries (U-pmw).

    Tries numbers of updates and ways to split a round's budget; it looks at no data.
    """
    n, k = check.count("rows", rows), check.count("queries", queries)
    size, beta = check.count("universe", universe), check.open_probability("beta", beta)
    updates = np.unique(np.geomspace(1, max(4, 8 * n), 300).astype(int))
    each = np.array([round_epsilon(epsilon, int(u), delta) for u in updates])[:, None]
    share = np.linspace(0.03, 0.6, 39)  # of a round, for the Laplace answer
    compare = each * (1 - share)
    log_rounds = np.log(3 * updates[:, None]) - np.log(beta)
    log_all = np.log(3 * k) - np.log(beta)
    root = np.sqrt(log_rounds) + np.sqrt(2 * log_all)
    b1 = root / (n * compare * np.sqrt(log_rounds))  # least b1 log_rounds + b2 log_all for the
    b2 = 2 * root / (n * compare * np.sqrt(2 * log_all))  # budget 1/(n b1) + 2/(n b2) = compare
    b3 = 1 / (n * each * share)
    noise, slack = b3 * log_rounds, b1 * log_rounds + b2 * log_all
    gap = np.sqrt(noise**2 + np.log(size) / (2 * (updates[:, None] + 1)))
    i, j = np.unravel_index(np.argmin(gap + 2 * slack), gap.shape)
    return WeightsPlan(
        int(updates[i]),
        float(each[i, 0]),
        float(compare[i, j]),
        float(gap[i, j] + slack[i, j]),
        float(b1[i, j]),
        float(b2[i, j]),
        float(b3[i, j]),
        n,
        float(gap[i, j] + 2 * slack[i, j]),
    )


class MultiplicativeWeights:
    """Private multiplicative weights: answers queries one at a time, chosen as one likes.

    `weights` over the universe start uniform; a query whose answer they get wrong is answered with
    Laplace noise and teaches them. What each query costs in time is a few passes over the universe.
    """

    def __init__(self, histogram: ArrayLike, plan: WeightsPlan, *, rng: Generator) -> None:
        histogram, rows = histogram_rows(histogram)
        if rows != plan.rows:
            raise ValueError(f"histogram must hold {plan.rows} rows, got {rows}")
        self.plan, self._shares = plan, histogram / rows
        self._rng = check.generator("rng", rng)
        self.weights = np.full(len(histogram), 1 / len(histogram))
        self.updates = 0
        self._new_level()

    def answer(self, query: ArrayLike) -> float:
        """The published answer to one linear query, a vector of values in [0, 1]."""
        query = check.probability("query", check.array("query", query, 1))
        if query.shape != self.weights.shape:
            raise ValueError(f"query must have {len(self.weights)} entries, got {query!r}")
        guess = float(query @ self.weights)
        if self.updates >= self.plan.updates:
            return guess
        truth = float(query @ self._shares)
        if abs(truth - guess) + self._rng.laplace(0.0, self.plan.query_scale) < self._level:
            return guess
        measured = truth + self._rng.laplace(0.0, self.plan.answer_scale)
        self.weights = weights_update(self.weights, query, 4 * (measured - guess))
        self.updates += 1
        self._new_level()
        return measured

    def _new_level(self):
        noise = self._rng.laplace(0.0, self.plan.threshold_scale)
        self._level = self.plan.threshold + noise


def mwem(
    histogram: ArrayLike,
    queries: ArrayLike | Marginals,
    *,
    rounds: int,
    epsilon: float,
    rng: Generator,
) -> Array:
    """Offline multiplicative weights (Hardt, Ligett and McSherry 2012): synthetic weights.

    Each round: the exponential mechanism picks a query on which the weights are far off, Laplace
    noise measures it, the weights learn, half of epsilon/rounds each. Returns the mean of the
    weights over the rounds, for which `mwem_error` is proved; epsilon-DP. The step is
    4 (measured - synthetic), 8 times the authors'.
    """
    histogram, rows = histogram_rows(histogram)
    rounds, rng = check.count_up_to("rounds", rounds, 10**6), check.generator("rng", rng)
    each = rows * check.positive("epsilon", epsilon) / (2 * rounds)
    queries = on_universe(queries, len(histogram))
    truth = queries @ (histogram / rows)
    weights, total = np.full(len(histogram), 1 / len(histogram)), 0.0
    for _ in range(rounds):
        guess = queries @ weights
        score = np.abs(truth - guess) * each / 2
        i = int(np.argmax(score + rng.gumbel(size=len(score))))
        total = total + weights
        measured = truth[i] + rng.laplace(0.0, 1 / each)
        weights = weights_update(weights, queries[i], 4 * (measured - guess[i]))
    return total / rounds


def mwem_error(
    rows: int, universe: int, queries: int, *, rounds: int, epsilon: float, beta: float = 0.05
) -> float:
    """What no error of `mwem` exceeds, but for chance beta.

    sqrt(log(universe)/(2 T) + e^2) + s: e = 2T log(2T/beta)/(rows epsilon) bounds the measurements,
    s = 4T log(2 k T/beta)/(rows epsilon) the selections, T = rounds.
    """
    t, k = check.count("rounds", rounds), check.count("queries", queries)
    beta = check.open_probability("beta", beta)
    unit = 2 * t / (check.count("rows", rows) * check.positive("epsilon", epsilon))
    noise, lost = unit * np.log(2 * t / beta), 2 * unit * np.log(2 * k * t / beta)
    spread = np.log(check.count("universe", universe)) / (2 * t)
    return float(np.sqrt(spread + noise**2) + lost)
