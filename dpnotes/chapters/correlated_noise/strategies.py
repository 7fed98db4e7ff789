"""Strategies for prefix sums: the tree, the square root, the best banded one; and their error."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ...checks import Array, ArrayLike, Count, array, checked, count, count_up_to
from ...numerics import lfilter, matrix_product, optimize, solve_triangular
from .participation import LONGEST, Strategy, check_that_they_fit, sensitivity

ROUNDING = 1e-9  # of decoder @ strategy against the prefix sums; of independent columns


def _steps(name, value):
    return count_up_to(name, value, LONGEST)


def _from_two(name, value):
    return count(name, value, least=2)


Steps = Annotated[int, _steps]
FromTwo = Annotated[int, _from_two]
Decoder = Annotated[ArrayLike, lambda name, value: array(name, value, 2)]


@checked
def square_root(n: Steps) -> Array:
    """The square root of the n x n matrix of prefix sums (X-square-root).

    Lower triangular, constant along diagonals: 1, 1/2, 3/8, ..., binomial(2j, j)/4^j.

    >>> correlated_noise.square_root(3)
    array([[1.   , 0.   , 0.   ],
           [0.5  , 1.   , 0.   ],
           [0.375, 0.5  , 1.   ]])
    """
    j = np.arange(1, n)
    return _toeplitz(np.cumprod(np.append(1.0, (2 * j - 1) / (2 * j))), n)


def _toeplitz(first, n):
    """The lower triangular n x n matrix with this first column, filled up with zeros."""
    padded = np.zeros(2 * n - 1)
    padded[n - 1 : n - 1 + len(first)] = first
    return np.lib.stride_tricks.sliding_window_view(padded, n)[:, ::-1].copy()


@checked
def tree(n: Steps, arity: FromTwo = 2) -> Array:
    """The sums of a tree over n steps: a row for each block of arity^l steps that is complete.

    Blocks of one step come first, then the next level. Each step is in at most one block a level,
    so one contribution moves at most floor(log n/log arity) + 1 rows (X-tree).

    >>> correlated_noise.tree(4).astype(int)
    array([[1, 0, 0, 0],
           [0, 1, 0, 0],
           [0, 0, 1, 0],
           [0, 0, 0, 1],
           [1, 1, 0, 0],
           [0, 0, 1, 1],
           [1, 1, 1, 1]])
    """
    ends = np.array(_blocks(n, arity))
    step = np.arange(n)
    return ((ends[:, :1] <= step) & (step < ends[:, 1:])).astype(float)


@checked
def tree_decoder(n: Steps, arity: FromTwo = 2) -> Array:
    """The decoder of `tree` that waits for nothing: as few blocks a prefix as possible (X-tree).

    The blocks are those of the digits of t in base `arity`, all of them complete at step t.

    >>> bool((correlated_noise.tree_decoder(4) @ correlated_noise.tree(4) == np.tri(4)).all())
    True
    """
    row = {block: number for number, block in enumerate(_blocks(n, arity))}
    top = max(end - first for first, end in row)
    decoder = np.zeros((n, len(row)))
    for t in range(1, n + 1):
        first, size = 0, top
        while first < t:
            if first + size <= t:
                decoder[t - 1, row[first, first + size]] = 1
                first += size
            else:
                size //= arity
    return decoder


def _blocks(n, arity):
    """[(first, end)] of all blocks of arity^l steps, level by level from below."""
    size, blocks = 1, []
    while size <= n:
        blocks += [(first, first + size) for first in range(0, n - size + 1, size)]
        size *= arity
    return blocks


@checked
def largest_error(strategy: Strategy, decoder: Decoder | None = None) -> float:
    """Largest root mean square error of a prefix sum, where sigma is 1 for a sensitivity of 1.

    The longest row of the decoder times `sensitivity(strategy)`, one participation. `decoder` has
    n rows and a column a row of `strategy`, and decoder @ strategy is the matrix of prefix sums;
    without one it is the best for this strategy, A C^+ (X-factorization), which may need outputs
    that come later.

    >>> correlated_noise.largest_error(np.eye(1024))
    32.0
    >>> round(correlated_noise.largest_error(correlated_noise.square_root(1024)), 2)
    3.27
    """
    rows, n = strategy.shape
    sums = np.tri(n)
    if decoder is None:
        upper = np.asarray(np.linalg.qr(strategy, mode="r"))
        pivots = np.abs(upper.diagonal())
        if rows < n or pivots.min() <= ROUNDING * pivots.max():
            raise ValueError("strategy must reach every prefix sum: independent columns are needed")
        decoder = solve_triangular(upper, sums.T, trans="T").T  # B = decoder Q^T
    elif decoder.shape != (n, rows):
        raise ValueError(f"decoder must have the shape {(n, rows)}, got {decoder.shape}")
    elif not np.allclose(matrix_product(decoder, strategy), sums, rtol=0, atol=ROUNDING):
        raise ValueError("decoder must give the prefix sums: decoder @ strategy = np.tri(n)")
    return np.linalg.norm(decoder, axis=1).max() * sensitivity(strategy)


@checked
def best_banded(n: Steps, bands: Count, participations: Count = 1, separation: Count = 1) -> Array:
    """A banded Toeplitz strategy of small mean squared error: a minimum found by L-BFGS.

    Its first column has `bands` entries, nonnegative and falling, the first of them 1. Minimised is
    sensitivity^2 times the mean squared error of all prefix sums, with the `sensitivity` of
    `participations` and `separation`; for such strategies the worst pattern has its steps as early
    as it can (X-participation). That no other minimum is lower is not proved.

    >>> correlated_noise.best_banded(100, bands=3)[:4, 0].round(3)
    array([1.   , 0.739, 0.622, 0.   ])
    """
    if bands > n:
        raise ValueError(f"bands must be at most n, {n}, got {bands}")
    check_that_they_fit(n, participations, separation)
    starts = separation * np.arange(participations)
    start = np.append(-np.diff(square_root(bands)[:, 0]), square_root(bands)[-1, 0])
    found = optimize().minimize(
        lambda falls: _log_loss(falls, n, starts),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * bands,
        options={"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-14, "gtol": 1e-9},
    )
    first = np.cumsum(found.x[::-1])[::-1]
    return _toeplitz(first / first[0], n)


def _log_loss(falls, n, starts):
    """ln(sensitivity^2 sum of squared errors) and its gradient; the column falls by `falls`."""
    first = np.cumsum(falls[::-1])[::-1]
    bands = len(first)
    moved, left = np.zeros(n + bands), np.arange(n, 0, -1)
    for start in starts:
        moved[start : start + bands] += first
    moved[n:] = 0
    with np.errstate(all="ignore"):  # a try of the line search may be far out
        rows = lfilter([1.0], first, np.ones(n))  # of the decoder, from its diagonal on
        turned = lfilter([1.0], first, rows)
    size, error = moved @ moved, left @ rows**2
    by_size = 2 * sum(moved[start : start + bands] for start in starts)
    by_error = [-2 * (left[j:] * rows[j:]) @ turned[: n - j] for j in range(bands)]
    slope = by_size / size + np.array(by_error) / error
    return np.log(size * error), np.cumsum(slope)
