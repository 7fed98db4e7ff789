"""Stability in total variation: what it promises about adaptive analyses, and a test of that.

A statistical query is a function of one row with values in [0, 1]; its answer on m rows is the
mean. `eta` is a total-variation stability: how far apart, in total variation, the laws of a
mechanism's output are on datasets of m rows that differ in one row. Natural logarithms.
"""

from __future__ import annotations

from threading import Lock
from typing import Annotated, overload

import numpy as np

from ..numerics import erf, matrix_product
from ..checks import (
    Array, ArrayLike, Count, Counts, Function, Generator, Many, Nonnegative, NonnegativeNumber,
    OpenProbability, Positive, PositiveNumber, Real, Unique, checked, counts, refusal,
)  # fmt: skip

Sizes = Annotated[
    ArrayLike, lambda name, value: np.atleast_1d(counts(name, value, 10**7)).astype(int)
]


@overload
def stability_for_error(tau: float, m: float, delta: float) -> float: ...
@overload
def stability_for_error(tau: ArrayLike, m: ArrayLike, delta: ArrayLike) -> Array: ...
@checked
def stability_for_error(tau: Positive, m: Counts, delta: OpenProbability) -> float | Array:
    """Largest eta at which the error of a stable choice of query is at most tau.

    eta + (2 eta m + 1) sqrt(ln(2/delta)/(2m)) bounds |E q(S) - q(D)|, the mean over the coins, but
    for probability delta over the rows, if the choice is eta-TV-stable (S-generalization,
    S-sigma-tv, S-adaptive-dp). ValueError unless tau exceeds the root, the error of a fixed query.

    >>> round(adaptive_analysis.stability_for_error(0.1, m=10_000, delta=0.05), 6)
    0.000317
    """
    luck = _luck(m, delta)
    if not (tau > luck).all():
        least = float(np.max(luck))
        raise refusal("tau", tau, f"above {least:.4g}, the error of one fixed query")
    return np.minimum(1.0, (tau - luck) / (1 + 2 * m * luck))


@overload
def sample_size_for_error(tau: float, rate: float, delta: float) -> float: ...
@overload
def sample_size_for_error(tau: ArrayLike, rate: ArrayLike, delta: ArrayLike) -> Array: ...
@checked
def sample_size_for_error(
    tau: Positive, rate: Nonnegative, delta: OpenProbability
) -> float | Array:
    """Least number m of rows for `stability_for_error` rate/m, as a float.

    `rate`: k/(sqrt(2 pi) sigma) for k Gaussian answers added up (S-m-tv), sqrt(k) for k if they are
    composed exactly, sqrt(k)/(2b) for k Laplace answers of scale b (S-adaptive-dp).

    >>> adaptive_analysis.sample_size_for_error(0.1, rate=10.0, delta=0.05)
    81540.0
    """
    slope = _luck(1, delta) * (1 + 2 * rate)
    root = 2 * tau / (slope + np.sqrt(slope**2 + 4 * rate * tau))  # 1/sqrt(m)
    return np.ceil(root**-2 * (1 - 1e-14))


@checked
def vote_bias(m: Many, sigma: NonnegativeNumber = 0.0) -> float:
    """How much one row's agreement correlates with the vote: the mean of (2 agree - 1) vote.

    The vote is the sign of the answer's excess over 1/2, on m rows of pure noise, with Gaussian
    noise `sigma` (0: none) on the answer. It is close to sqrt(2/(pi m (1 + 4 m sigma^2)))
    (adaptive-analysis-vote).

    >>> round(adaptive_analysis.vote_bias(100), 4)
    0.0796
    """
    from scipy.stats import binom  # longer to import than all of dpnotes

    heads = np.arange(m + 1)
    mean = 2 * heads / m - 1
    with np.errstate(over="ignore"):
        sign = erf(mean / (np.sqrt(8) * sigma)) if sigma > 0 else np.sign(mean)
    return float(matrix_product(binom.pmf(heads, m, 0.5), mean * sign))


@overload
def vote_accuracy(m: int, k: float, sigma: float = ...) -> float: ...
@overload
def vote_accuracy(m: int, k: ArrayLike, sigma: float = ...) -> Array: ...
@checked
def vote_accuracy(m: Many, k: Counts, sigma: NonnegativeNumber = 0.0) -> float | Array:
    """Expected accuracy, on the m holdout rows, of the vote of k features of pure noise: exact.

    Ties count one half. The true accuracy is 1/2 (adaptive-analysis-vote).

    >>> round(adaptive_analysis.vote_accuracy(100, k=50), 4)
    0.7126
    """
    from scipy.stats import binom

    share = (1 + vote_bias(m, sigma)) / 2
    return binom.sf(k / 2, k, share) + binom.pmf(k / 2, k, share) / 2


@checked
def noise_analyst(
    sizes: Sizes,
    asked: Sizes,
    *,
    answer: Function,
    weigh: Function | None = None,
    repetitions: Many = 1,
    rng: Generator,
) -> Array:
    """Accuracy of a vote of features that are pure noise, on the rows that chose the votes.

    Each of `repetitions` worlds has samples of `sizes` rows, as (holdout,) or (holdout, training).
    A feature agrees with the label by a fair coin. For each block of features `answer` gets the
    shares of agreement on each sample, arrays (repetitions, block), and returns what the analyst is
    told. `weigh` turns that into votes (default: the sign of the excess over 1/2; NaN is no vote).
    Returns accuracies (samples, repetitions, len(asked)) after `asked` features. Ties count half.

    >>> rng = np.random.default_rng(1)
    >>> adaptive_analysis.noise_analyst((100,), (1, 50), answer=lambda shares: shares, rng=rng)
    array([[[0.52, 0.68]]])
    """
    if (np.diff(asked) <= 0).any():
        raise refusal("asked", asked, "increasing")
    weigh = weigh or (lambda told: np.where(told >= 0.5, 1.0, np.sign(told - 0.5)))
    worlds = repetitions
    votes = [np.zeros((worlds, m, 1), np.float32) for m in sizes]
    accuracies = np.empty((len(sizes), worlds, len(asked)))
    block = 1 + 2_000_000 // (worlds * max(sizes))  # what is in memory at a time
    for i, (start, stop) in enumerate(zip(np.r_[0, asked], asked, strict=False)):
        for done in range(start, stop, block):
            agree = [_coins((worlds, m, min(block, stop - done)), rng) for m in sizes]
            weights = weigh(_ask_analyst(answer, agree)).astype(np.float32)[..., None]
            weights = np.nan_to_num(weights)
            for total, coins in zip(votes, agree, strict=True):
                total += 2 * matrix_product(coins, weights) - weights.sum(1, keepdims=True)
        accuracies[..., i] = [((v > 0).mean(1) + (v == 0).mean(1) / 2)[:, 0] for v in votes]
    return accuracies


class Thresholdout(Unique):
    """Answers from the training set unless the holdout disagrees (Dwork et al. 2015).

    With Laplace noises G, H, Z of scales 2s, 4s, s, s = `scale`: if |holdout - training| exceeds
    `threshold` + G + H, the answer is holdout + Z, uses up one of `budget` and redraws G; else it
    is the training value. With the budget gone it is NaN. On m holdout rows a run is
    2 budget/(scale m)-DP (adaptive-analysis-thresholdout). Keeps `repetitions` runs at once.
    Threads that ask are answered one after the other. For study: floats leak (X-low-bits).

    >>> oracle = adaptive_analysis.Thresholdout(0.1, 0.01, budget=1, rng=np.random.default_rng(1))
    >>> oracle.answer([[0.5, 0.9, 0.5]], [[0.5, 0.5, 0.5]]).round(2)
    array([[0.5, 0.5, nan]])
    """

    @checked
    def __init__(
        self,
        threshold: PositiveNumber,
        scale: PositiveNumber,
        budget: Count,
        repetitions: Many = 1,
        *,
        rng: Generator,
    ) -> None:
        self._threshold, self._scale = threshold, scale
        self._left = np.full(repetitions, budget)
        self._rng, self._lock = rng, Lock()
        self._shift = rng.laplace(0.0, 2 * scale, repetitions)

    @property
    def left(self) -> Array:
        """What is left of the budget of each run."""
        return self._left.copy()

    @checked
    def answer(self, training: Real, holdout: Real) -> Array:
        """Answers to k queries, in order, from their averages (repetitions, k) on each sample."""
        if not (training.ndim == 2 and training.shape == np.shape(holdout)):
            raise ValueError(f"training must be shaped as holdout, got {training.shape}")
        if len(training) != len(self._left):
            raise ValueError(f"training must have {len(self._left)} rows, got {training.shape}")
        with self._lock:
            return self._answer(training, holdout)

    def _answer(self, training, holdout):
        told = np.empty(training.shape)
        noise = self._rng.laplace(0.0, self._scale, (3, *training.shape))
        gap = np.abs(holdout - training) - self._threshold
        for j in range(training.shape[1]):
            alive = self._left > 0
            above = alive & (gap[:, j] > self._shift + 4 * noise[0, :, j])
            told[:, j] = np.where(above, holdout[:, j] + noise[1, :, j], training[:, j])
            told[~alive, j] = np.nan
            self._left = self._left - above
            self._shift = np.where(above, 2 * noise[2, :, j], self._shift)
        return told


def _luck(m, delta):
    """Hoeffding's error of one fixed query on m rows: sqrt(ln(2/delta)/(2m))."""
    return np.sqrt((np.log(2) - np.log(delta)) / (2 * m))


def _coins(shape, rng):
    """Fair bits of any shape, as 32-bit floats (for fast matrix products)."""
    size = int(np.prod(shape))
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8), count=size)
    return bits.reshape(shape).astype(np.float32)


def _ask_analyst(answer, agree):
    """What `answer` makes of the shares of agreement, one array (worlds, block) a sample."""
    ones = (np.ones((1, a.shape[1]), np.float32) for a in agree)  # the samples' sizes may differ
    heads = [matrix_product(*pair)[:, 0].astype(float) for pair in zip(ones, agree, strict=True)]
    shares = [sums / a.shape[1] for sums, a in zip(heads, agree, strict=True)]
    told = np.asarray(answer(*shares), float)
    if told.shape != shares[0].shape:
        raise ValueError(f"answer must return an array {shares[0].shape}, got {told.shape}")
    return told
