"""Privacy amplification by subsampling: a mechanism that sees a random part of the data; DP-SGD.

Two theorems share one formula and differ in the adjacency. Uniform subsets of n out of m rows
(rate r = n/m, both public) are for substitution of a row (T-19); Poisson sampling, where every row
takes part independently with rate r, is for adding or removing one (X-poisson-amplification).

DP-SGD (Abadi et al. 2016) clips each example's gradient, sums and adds Gaussian noise. With Poisson
samples of a public rate the run is ``subsample(gaussian(sigma), rate).compose(steps)`` for adding
or removing one row. The noise is drawn in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Annotated, Any, overload

import numpy as np

from ..numerics import expit, matrix_product, softmax
from ..accountant import PrivacyLoss, gaussian, subsample
from ..accountant.curves import mixed_loss
from ..checks import (
    Array, ArrayLike, Function, Generator, Many, Matrix, Nonnegative, NonnegativeNumber,
    OpenProbability, Positive, PositiveNumber, PositiveProbability, PositiveProbabilityNumber,
    Probability, ProbabilityNumber, Real, Vector, array, checked,
)  # fmt: skip
from .composition import dominating_pair

PATIENCE = 5.0  # seconds until a long run shows its progress bar (on stderr, if tqdm is there)
_mixed = np.vectorize(lambda loss, rate: mixed_loss(loss, rate) if rate else 0.0, otypes=[float])


def _rows(name, data):
    """Rows of any form, as a tuple."""
    if isinstance(data, (list, tuple, range)) or (isinstance(data, np.ndarray) and data.ndim):
        return tuple(data)
    raise ValueError(f"{name} must be a list of rows")


Rows = Annotated[Sequence, _rows]


@overload
def amplification(epsilon: float, rate: float, delta: float = ...) -> tuple[float, float]: ...
@overload
def amplification(
    epsilon: ArrayLike, rate: ArrayLike, delta: ArrayLike = ...
) -> tuple[Array, Array]: ...
@checked
def amplification(
    epsilon: Nonnegative, rate: Probability, delta: Probability = 0.0
) -> tuple[float | Array, float | Array]:
    """(ln(1 + rate (e^epsilon - 1)), rate delta): what subsampling makes of (epsilon, delta)-DP.

    T-19: uniform subsets, substitution. X-poisson-amplification: Poisson sampling, add/remove.

    >>> round(subsampling.amplification(1.0, 0.01)[0], 4)
    0.017
    """
    return _mixed(epsilon, rate), rate * delta


@overload
def minibatch_epsilon(epsilon: float, rate: float, passes: float, delta_prime: float) -> float: ...
@overload
def minibatch_epsilon(
    epsilon: ArrayLike, rate: ArrayLike, passes: ArrayLike, delta_prime: ArrayLike
) -> Array: ...
@checked
def minibatch_epsilon(
    epsilon: Nonnegative, rate: PositiveProbability, passes: Positive, delta_prime: OpenProbability
) -> float | Array:
    """epsilon of passes/rate minibatches of an epsilon-DP step: T-19, then advanced composition.

    (e^eps - 1) sqrt(2 k r ln(1/delta')) + k r (e^eps - 1)^2/2 with k passes (T-19-minibatch). With
    (epsilon, delta)-DP steps it holds at k delta + delta'.

    >>> round(subsampling.minibatch_epsilon(0.1, rate=0.01, passes=10, delta_prime=1e-6), 4)
    0.1754
    """
    volume = rate * passes
    log_inverse = -np.log(delta_prime)
    with np.errstate(over="ignore"):
        gain = np.expm1(epsilon)
        return gain * np.sqrt(2 * volume * log_inverse) + volume * gain**2 / 2


@checked
def poisson_subsample_law(mechanism: Function, data: Rows, rate: ProbabilityNumber) -> Array:
    """The law of mechanism(random part of the rows), each row in it independently with `rate`.

    >>> mechanism = lambda rows: [1 - len(rows) / 4, len(rows) / 4]
    >>> subsampling.poisson_subsample_law(mechanism, data=[1, 2], rate=0.5)
    array([0.75, 0.25])
    """
    total: Any = 0.0
    for taken in product((0, 1), repeat=len(data)):
        weight = rate ** sum(taken) * (1 - rate) ** (len(data) - sum(taken))
        rows = tuple(row for row, t in zip(data, taken, strict=True) if t)
        total = total + weight * np.asarray(mechanism(rows))
    return total


@checked
def substitution_pair(epsilon: PositiveNumber, rate: ProbabilityNumber) -> tuple[Array, Array]:
    """A second bad pair under substitution, on three outcomes (T-19-minibatch).

    Batches with the special row a, with b, and with neither have the laws A, B, R; any two of
    them are epsilon-indistinguishable. Returns r A + (1-r) R and r B + (1-r) R. Over many rounds
    this pair needs more epsilon than a sampled leaky coin if delta is large. It needs less if delta
    is tiny.

    >>> subsampling.substitution_pair(np.log(2), rate=0.5)[0].round(4)
    array([0.375, 0.25 , 0.375])
    """
    up, down = np.exp(min(epsilon, 700.0)), np.exp(-epsilon)
    w = -np.expm1(-epsilon) / (up + 1 - 2 * down)
    middle = np.array([w, w, 1 - 2 * w])
    a, b = middle * [up, 1, down], middle * [1, up, down]
    return rate * a + (1 - rate) * middle, rate * b + (1 - rate) * middle


@checked
def subsampled_dominating_pair(
    epsilon: NonnegativeNumber, rate: PositiveProbabilityNumber, delta: ProbabilityNumber = 0.0
) -> tuple[Array, Array]:
    """A pair on five outcomes that no subsampled (epsilon, delta)-DP mechanism exceeds.

    Its hockey-stick curve is rate * delta(ln(1 + (e^t - 1)/rate)) in both directions, delta() that
    of the leaky coin; so it bounds every composition of such rounds (X-subsampled-pair). Losses:
    inf, e', 0, -e', -inf with e' the amplified epsilon.

    >>> subsampling.subsampled_dominating_pair(np.log(3), rate=0.5)[0].round(4)
    array([0.  , 0.5 , 0.25, 0.25, 0.  ])
    """
    p, _ = dominating_pair(epsilon, delta)
    _bound, leak = amplification(epsilon, rate, delta)
    low = p[2]
    high = low + rate * (p[1] - p[2])  # e^bound * low
    none = (1 - rate) * (p[0] + p[1] - p[2])
    law = np.array([leak, high, none, low, 0.0])
    return law, law[::-1].copy()


def _labels(name, value):
    """Labels as they are, whole numbers or floats, in a list as long as x."""
    array(name, value, 1)
    return np.asarray(value)


def _codes(name, value):
    """A list of whole numbers; an empty one has none of another kind."""
    labels = _labels(name, value)
    if labels.size and labels.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers")
    return labels.astype(int)


Gradients = Annotated[ArrayLike, lambda name, value: array(name, value, 1, 2, 3, 4, 5)]
Labels = Annotated[ArrayLike, _labels]
Codes = Annotated[ArrayLike, _codes]


@dataclass(frozen=True)
class DPSGDRun:
    """What a run publishes, and what that costs.

    ``theta``: the last iterate. ``loss``: the `PrivacyLoss` of the whole run, add/remove.

    >>> run = subsampling.DPSGDRun(theta=np.zeros(2), loss=dp.gaussian(1.0))
    >>> round(run.loss.delta(1.0), 4)
    0.1269
    """

    theta: np.ndarray
    loss: PrivacyLoss


@checked
def clip_rows(x: Real, bound: Positive = 1.0) -> Array:
    """Scale every row of x longer than `bound` (l2) back to it: row by row, so privacy is free.

    Fill gaps first: a refusal of NaN is no private answer.

    >>> dp.clip_rows([[3.0, 4.0], [0.3, 0.4]], bound=1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1.0, bound / np.maximum(size, 1e-300))


@checked
def clipped_sum(gradients: Gradients, clip: PositiveNumber) -> Array:
    """Sum over the first axis of `gradients`, each scaled back to l2 norm <= clip (T-clipping).

    A gradient may be a number or have up to four axes; its norm is taken over all entries. One row
    moves the sum by at most `clip` if it is added or removed, by at most 2 clip if replaced.

    >>> subsampling.clipped_sum([[3.0, 4.0], [0.0, 0.5]], clip=1.0)
    array([0.6, 1.3])
    """
    norms = np.linalg.norm(gradients.reshape(len(gradients), prod(gradients.shape[1:])), axis=1)
    return np.tensordot(clip / np.maximum(norms, clip), gradients, axes=1)


@checked
def softmax_clipped_sum(theta: Matrix, x: Matrix, y: Codes, clip: PositiveNumber) -> Array:
    """Clipped gradients of softmax regression, summed: theta (d, classes), x (b, d), y in 0, 1, ...

    The gradient of one example is x (p - e_y)^T, of norm ||x|| ||p - e_y||: it need not be formed.

    >>> subsampling.softmax_clipped_sum([[0.0, 0.0]], [[0.5], [9.0]], [0, 1], clip=1.0).round(4)
    array([[ 0.4571, -0.4571]])
    """
    _same_columns(x, theta)
    slope = softmax(matrix_product(x, theta), axis=1)
    if len(y) != len(x) or ((y < 0) | (y >= slope.shape[1])).any():
        raise ValueError(f"y must be a whole number from 0 to {slope.shape[1] - 1} a row of x")
    slope[np.arange(len(y)), y] -= 1
    return _outer_clipped_sum(x, slope, clip)


@checked
def logistic_clipped_sum(theta: Vector, x: Matrix, y: Vector, clip: PositiveNumber) -> Array:
    """Clipped gradients of logistic regression, summed: theta (d,), x (b, d), y -1 or +1.

    >>> subsampling.logistic_clipped_sum([0.0, 0.0], [[0.5, 0.0], [0.0, 9.0]], [1, -1], clip=1.0)
    array([-0.25,  1.  ])
    """
    _same_columns(x, theta)
    if y.shape != (len(x),) or not (np.abs(y) == 1).all():
        raise ValueError("y must hold -1 and +1 only")
    slope = -y * expit(-y * matrix_product(x, theta))
    return _outer_clipped_sum(x, slope[:, None], clip)[:, 0]


def _same_columns(x, theta):
    if x.shape[1] != len(theta) or theta.size == 0:
        raise ValueError(f"theta must have a row a column of x, got {theta.shape}, {x.shape}")


def _outer_clipped_sum(x, slope, clip):
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(slope, axis=1)
    return matrix_product(x.T, slope * (clip / np.maximum(norms, clip))[:, None])


@checked
def dp_sgd(
    x: Matrix,
    y: Labels,
    start: Real,
    *,
    rate: PositiveProbabilityNumber,
    sigma: PositiveNumber,
    steps: Many,
    batch_size: PositiveNumber,
    learning_rate: PositiveNumber,
    clip: PositiveNumber = 1.0,
    gradient_sum: Function = softmax_clipped_sum,
    rng: Generator,
) -> DPSGDRun:
    """Private stochastic gradient descent (T-dpsgd; Abadi et al. 2016, algorithm 1).

    theta <- theta - learning_rate (sum of clipped gradients + N(0, (sigma clip)^2 I)) / batch_size,
    `steps` times, each on a fresh Poisson sample of the rows of `x` (n, d) and `y` (n,).

    Everything but x and y must be public, the shape of `start` and `rate` included. `batch_size` is
    the divisor: a public number, meant to be the expected size of a batch. The actual size depends
    on who is in the data. `gradient_sum(theta, x, y, clip)` must move by at most `clip` (l2) when a
    row is added or removed. Data that cannot be read raise an error, which is seen: check their
    form row by row before. For study: floats leak (X-low-bits).

    >>> public = {"rate": 0.5, "sigma": 2.0, "steps": 5, "batch_size": 1, "learning_rate": 0.1}
    >>> rng = np.random.default_rng(1)
    >>> run = subsampling.dp_sgd(np.eye(2), [0, 1], np.zeros((2, 2)), **public, rng=rng)
    >>> run.theta.shape, round(run.loss.epsilon(1e-5), 4)
    ((2, 2), 2.8078)
    """
    if y.shape != (len(x),):
        raise ValueError(f"y must be one number a row of x, got shape {y.shape}")
    theta, pace = start, learning_rate / batch_size
    run = subsample(gaussian(sigma), rate).compose(steps)
    for _ in _progress(steps):
        batch = np.flatnonzero(rng.random(len(x)) < rate)  # each row independently: Poisson
        noise = rng.normal(0.0, sigma * clip, theta.shape)
        theta = theta - pace * (gradient_sum(theta, x[batch], y[batch], clip) + noise)
    return DPSGDRun(theta, run)


def _progress(steps):
    """range(steps), with a progress bar on stderr once it has taken PATIENCE seconds."""
    try:
        from tqdm import tqdm
    except ImportError:
        return range(steps)
    return tqdm(range(steps), desc="dp_sgd", unit="step", delay=PATIENCE, leave=False)
