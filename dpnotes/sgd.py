"""DP-SGD as it is used (Abadi et al. 2016): clip each example's gradient, sum, add Gaussian noise.

Every row takes part in each step independently with a public rate (Poisson sampling), so the run
is ``subsample(gaussian(sigma), rate).compose(steps)`` for adding or removing one row. The noise is
drawn in floating point.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from ._scipy import expit, softmax
from ._types import Array, ArrayLike, Generator
from ._validate import (
    array,
    count_up_to,
    function,
    generator,
    positive,
    positive_probability,
    real,
    scalar,
)
from .accountant.privacy_loss import PrivacyLoss
from .losses import gaussian, subsample

__all__ = [
    "clipped_sum",
    "dp_sgd",
    "logistic_clipped_sum",
    "softmax_clipped_sum",
]

PATIENCE = 5.0  # seconds until a long run shows its progress bar (on stderr, if tqdm is there)


@dataclass(frozen=True)
class DPSGDRun:
    """What a run publishes, and what that costs.

    ``theta``: the last iterate; ``average``: the mean of the iterates after each step. Both are
    functions of the noisy gradients, so either or both may be published. ``loss``: the
    `PrivacyLoss` of the whole run, add/remove. ``batch_sizes`` are NOT private: for teaching only.
    """

    theta: np.ndarray
    average: np.ndarray
    loss: PrivacyLoss
    batch_sizes: np.ndarray


def clipped_sum(gradients: ArrayLike, clip: float) -> Array:
    """Sum over the first axis of `gradients`, each scaled back to l2 norm <= clip (T-clipping).

    A gradient may be a number or have up to four axes, as the kernels of a convolution; its norm is
    taken over all entries. One row moves the sum by at most `clip` if it is added or removed, by at
    most 2 clip if it is replaced.
    """
    clip = scalar("clip", positive("clip", clip))
    gradients = array("gradients", gradients, 1, 2, 3, 4, 5)
    norms = np.linalg.norm(gradients.reshape(len(gradients), prod(gradients.shape[1:])), axis=1)
    return np.tensordot(clip / np.maximum(norms, clip), gradients, axes=1)


def softmax_clipped_sum(theta: ArrayLike, x: ArrayLike, y: ArrayLike, clip: float) -> Array:
    """Clipped gradients of softmax regression, summed: theta (d, classes), x (b, d), y in 0, 1, ...

    The gradient of one example is x (p - e_y)^T, of norm ||x|| ||p - e_y||: it is clipped
    without being written out.
    """
    x, theta, clip = _checked(x, array("theta", theta, 2), clip)
    slope = softmax(x @ theta, axis=1)
    if len(array("y", y, 1)) != len(x):
        raise ValueError(f"y must be one whole number a row of x, got {y!r}")
    y = np.asarray(y) if len(x) else np.zeros(0, dtype=int)  # an empty list has no whole numbers
    if y.dtype.kind not in "iu" or ((y < 0) | (y >= slope.shape[1])).any():
        raise ValueError(f"y must hold whole numbers from 0 to {slope.shape[1] - 1}")
    slope[np.arange(len(y)), y] -= 1
    return _outer_clipped_sum(x, slope, clip)


def logistic_clipped_sum(theta: ArrayLike, x: ArrayLike, y: ArrayLike, clip: float) -> Array:
    """Clipped gradients of logistic regression, summed: theta (d,), x (b, d), y -1 or +1."""
    x, theta, clip = _checked(x, array("theta", theta, 1), clip)
    y = array("y", y, 1)
    if y.shape != (len(x),) or not (np.abs(y) == 1).all():
        raise ValueError("y must hold -1 and +1 only")
    slope = -y * expit(-y * (x @ theta))
    return _outer_clipped_sum(x, slope[:, None], clip)[:, 0]


def _checked(x, theta, clip):
    x = array("x", x, 2)
    if x.shape[1] != len(theta) or theta.size == 0:
        raise ValueError(f"theta must have a row a column of x, got {theta.shape}, {x.shape}")
    return x, theta, scalar("clip", positive("clip", clip))


def _outer_clipped_sum(x, slope, clip):
    norms = np.linalg.norm(x, axis=1) * np.linalg.norm(slope, axis=1)
    return x.T @ (slope * (clip / np.maximum(norms, clip))[:, None])


def dp_sgd(
    x: ArrayLike,
    y: ArrayLike,
    start: ArrayLike,
    *,
    rate: float,
    sigma: float,
    steps: int,
    batch_size: float,
    learning_rate: float,
    clip: float = 1.0,
    gradient_sum: Callable = softmax_clipped_sum,
    rng: Generator,
) -> DPSGDRun:
    """Private stochastic gradient descent (T-dpsgd; Abadi et al. 2016, algorithm 1).

    theta <- theta - learning_rate (sum of clipped gradients + N(0, (sigma clip)^2 I)) / batch_size,
    `steps` times, each on a fresh Poisson sample of the rows of `x` (n, d) and `y` (n,).

    Everything but x and y must be public, the shape of `start` and `rate` included. `batch_size` is
    the divisor: a public number, meant to be the expected size of a batch. The actual size depends
    on who is in the data, so it must not be the divisor. `gradient_sum(theta, x, y, clip)` must
    move by at most `clip` (l2) when a row is added or removed: use `clipped_sum`. With no rows at
    all, the neighbour of one row, the steps are noise alone. Data that cannot be read raise an
    error, which is seen: check their form row by row before, as with labels.
    """
    x, y, theta = _data(x, y, start)
    rate = scalar("rate", positive_probability("rate", rate))
    sigma, clip = _positive("sigma", sigma), _positive("clip", clip)
    pace = _positive("learning_rate", learning_rate) / _positive("batch_size", batch_size)
    steps, rng = count_up_to("steps", steps, 10**8), generator("rng", rng)
    gradient_sum = function("gradient_sum", gradient_sum)
    run = subsample(gaussian(sigma), rate).compose(steps)
    total, sizes = np.zeros_like(theta), np.empty(steps, dtype=int)
    for t in _progress(steps):
        batch = np.flatnonzero(rng.random(len(x)) < rate)  # each row independently: Poisson
        noise = rng.normal(0.0, sigma * clip, theta.shape)
        theta = theta - pace * (gradient_sum(theta, x[batch], y[batch], clip) + noise)
        total, sizes[t] = total + theta, len(batch)
    return DPSGDRun(theta, total / steps, run, sizes)


def _positive(name, value):
    return scalar(name, positive(name, value))


def _data(x, y, start):
    x, start = array("x", x, 2), np.array(real("start", start))
    y = np.asarray(y)
    if y.shape != (len(x),) or y.dtype.kind not in "iuf":
        raise ValueError(f"y must be one number a row of x, got shape {y.shape} of {y.dtype}")
    return x, y, start


def _progress(steps):
    """range(steps), with a progress bar on stderr once it has taken PATIENCE seconds."""
    try:
        from tqdm import tqdm
    except ImportError:
        return range(steps)
    return tqdm(range(steps), desc="dp_sgd", unit="step", delay=PATIENCE, leave=False)
