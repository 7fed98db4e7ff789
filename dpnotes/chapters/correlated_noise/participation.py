"""How far one person moves what a strategy measures, and the privacy loss of the whole.

The largest sum over a pattern of participation is found best first: patterns are opened in the
order of a bound on what they can become, which a dynamic program gives.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Annotated

import numpy as np

from ...accountant import PrivacyLoss, gaussian, subsample
from ...checks import (
    ArrayLike, Count, PositiveNumber, PositiveProbabilityNumber, array, checked,
)  # fmt: skip
from ...numerics import matrix_product

LONGEST = 4096  # steps of a strategy that is written out as a matrix
SEARCHED, WORK = 2000, 10**8  # patterns that are opened at most; steps of their programs together


def _matrix(name, value):
    """A matrix with a column a step, and a row at least."""
    matrix = array(name, value, 2)
    if not (len(matrix) and 1 <= matrix.shape[1] <= LONGEST):
        raise ValueError(f"{name} must be a matrix with a column for each of 1 to {LONGEST} steps")
    return matrix


def check_triangular(name, value):
    """A square lower triangular matrix that can be inverted."""
    matrix = _matrix(name, value)
    square = matrix.shape[0] == matrix.shape[1]
    if not square or np.triu(matrix, 1).any() or not matrix.diagonal().all():
        raise ValueError(f"{name} must be square, lower triangular, with no zero on its diagonal")
    return matrix


Strategy = Annotated[ArrayLike, _matrix]
Triangular = Annotated[ArrayLike, check_triangular]


@checked
def sensitivity(strategy: Strategy, participations: Count = 1, separation: Count = 1) -> float:
    """How far one person moves strategy @ G, in l2 norm: an upper bound, often exact.

    The person gives vectors of norm at most 1, of any dimension, at up to `participations` steps
    that are at least `separation` apart (1: consecutive steps are allowed), and nothing elsewhere.
    Where vectors are replaced, not zeroed, it is twice as much.

    With X = strategy^T strategy: the root of the largest sum of abs(X[i, j]) over i, j in such a
    set of steps (X-participation). If no entry of X is negative, that is exact for one
    participation, for strategies whose columns `separation` apart are orthogonal (banded ones), and
    for nonnegative falling Toeplitz strategies; for others as long as a search over 2,000 patterns
    ends, and else an upper bound. All to rounding.

    >>> correlated_noise.sensitivity(np.tri(4), participations=2, separation=3)
    2.6457513110645907
    """
    n = strategy.shape[1]
    check_that_they_fit(n, participations, separation)
    overlaps = np.abs(matrix_product(strategy.T, strategy))
    if participations == 1:
        return np.sqrt(overlaps.diagonal().max())
    if participations == n:
        return np.sqrt(overlaps.sum())
    return np.sqrt(_heaviest_pattern(overlaps, participations, separation))


def check_that_they_fit(n, participations, separation):
    """Refuses more participations than n steps have room for."""
    most = 1 + (n - 1) // separation
    if participations > most:
        raise ValueError(
            f"participations must be at most {most}: no more fit into {n} steps"
            f" if they are {separation} apart, got {participations}"
        )


def _heaviest_pattern(overlaps, most, apart):
    """The largest sum of overlaps[i, j] over i, j of a pattern, or a bound on it: best first.

    A pattern on the heap stands for all that begin like it, with a bound on what they weigh; one
    that ends in `n` stands for itself.
    """
    n = len(overlaps)
    worth, closed = _own_worth(overlaps, most, apart), 0.0
    bound = _rest(worth, np.zeros(n), apart)[most, 0]
    patterns: list[tuple[float, tuple[int, ...]]] = [(-bound, ())]
    for _ in range(min(SEARCHED, WORK // (n * most) + 1)):
        low, pattern = heappop(patterns)
        bound = -low
        if pattern[-1:] == (n,):
            break
        weight = overlaps[np.ix_(pattern, pattern)].sum()
        heappush(patterns, (-weight, (*pattern, n)))
        closed, left = max(closed, weight), most - len(pattern)
        if left:
            met = 2 * overlaps[list(pattern)].sum(axis=0)
            step = np.arange(pattern[-1] + apart if pattern else 0, n)
            rest = _rest(worth, met, apart)[left - 1, np.minimum(step + apart, n)]
            bounds = weight + worth[left, step] + met[step] + rest
            for j in np.flatnonzero(bounds > closed):
                heappush(patterns, (-bounds[j], (*pattern, int(step[j]))))
    return bound


def _own_worth(overlaps, most, apart):
    """worth[m, j]: a bound on what step j adds if it and m - 1 later steps are in a pattern."""
    n = len(overlaps)
    worth, later = np.zeros((most + 1, n)), np.zeros((n, n + apart))
    step = np.arange(n)
    for m in range(1, most + 1):
        worth[m] = overlaps.diagonal() + 2 * later[step, np.minimum(step + apart, n)]
        gain = overlaps + later[:, apart:]
        later[:, :n] = np.maximum.accumulate(gain[:, ::-1], axis=1)[:, ::-1]
    return worth


def _rest(worth, met, apart):
    """rest[m, j]: the bounds `worth` and what is `met`, summed over the best m steps from j on."""
    most, n = worth.shape
    rest = np.zeros((most, n + apart))
    for m in range(1, most):
        gain = worth[m] + met + rest[m - 1, apart:]
        rest[m, :n] = np.maximum.accumulate(gain[::-1])[::-1]
    return rest


@checked
def release_loss(
    strategy: Strategy, sigma: PositiveNumber, participations: Count = 1, separation: Count = 1
) -> PrivacyLoss:
    """The privacy loss of all outputs, each person taking part as `sensitivity` says.

    Neighbours: all vectors of one person are set to zero, or come in place of zeros. One Gaussian
    release, also where vectors depend on earlier outputs, if the strategy is lower triangular
    (X-correlated-adaptive). `sigma` is the standard deviation of the entries of Z.

    >>> loss = correlated_noise.release_loss(correlated_noise.square_root(1024), sigma=10.0)
    >>> round(loss.epsilon(1e-5), 4)
    0.6502
    """
    return gaussian(sigma, sensitivity=sensitivity(strategy, participations, separation))


@checked
def cyclic_loss(
    strategy: Triangular, sigma: PositiveNumber, rate: PositiveProbabilityNumber
) -> PrivacyLoss:
    """The privacy loss of a training with a banded strategy and cyclic Poisson batches.

    With b bands people are in b groups, by a rule that looks at nobody else; group 1 has the steps
    1, b + 1, 2b + 1, ... At a step of its group each person is in the batch with probability
    `rate`, by a coin of its own. ceil(n/b) rounds of a sampled Gaussian release whose sensitivity
    is the longest column, add/remove (X-cyclic-poisson).

    >>> strategy = correlated_noise.best_banded(1000, bands=10)
    >>> round(correlated_noise.cyclic_loss(strategy, sigma=4.0, rate=0.1).epsilon(1e-5), 4)
    2.4257
    """
    n = len(strategy)
    step = gaussian(sigma, sensitivity=sensitivity(strategy))
    return subsample(step, rate).compose(-(-n // count_bands(strategy)))


def count_bands(strategy):
    """The least b with strategy[i, j] = 0 for i - j >= b."""
    row, column = np.nonzero(strategy)
    return int((row - column).max()) + 1
