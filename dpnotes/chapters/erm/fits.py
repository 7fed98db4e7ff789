"""Private empirical risk minimisation: the fits, each with the privacy loss that it guarantees.

Adjacency here is substitution: neighbours have the same number of rows n, which is public, and
differ in one whole row (x_i, y_i). Rows must be numbers, with ||x|| <= 1, and labels such as the
loss knows. A refusal of a single row is no private answer: fill gaps by a public constant and call
`clip_rows` first, always, and no refusal depends on what the rows say. Noise is floating point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import expm1, inf, log, log1p, sqrt
from typing import Annotated, overload

import numpy as np

from ...accountant import randomized_response
from ...numerics import optimize
from ...checks import (
    Anything, Array, ArrayLike, BelowOneNumber, Count, Generator, Many, Nonnegative,
    OpenProbabilityNumber, Positive, PositiveNumber, checked, number_within, refusal,
)  # fmt: skip
from ..gaussian import gaussian_delta, gaussian_sigma
from ..subsampling import clip_rows
from .losses import (
    RowLoss, UnitRows, checked_labels, huber_loss, logistic_loss, optimum_radius,
    refuse_without_curvature,
)  # fmt: skip
from .optima import descend

AIM = 1e-12  # the gradient norm at which the solver stops
RESIDUAL = 1e-9  # the gradient norm that the privacy proof allows; the gap absorbs rounding
SOLVER_SHARE = 0.01  # of epsilon, spent by objective perturbation on that residual
WIDEST = 1e4  # largest mean length of b/(n lambda): with longer b rounding could exceed RESIDUAL

# at least 1e-9, so that the optimum is short enough for rounding to stay below RESIDUAL
Ridge = Annotated[float, number_within(1e-9, 1e50)]


@dataclass(frozen=True)
class PrivateFit:
    """A published parameter and what its publication guarantees, for substitution of one row.

    ``theta``: (d,). ``epsilon``, ``delta``: the target it was fitted for. ``scale``: of the noise,
    as the method's docstring says. ``delta_at(epsilon)``: the proved delta at any epsilon >= 0; if
    the target is pure, that of randomized response, which is the worst.

    >>> x, y, rng = [[1, 0], [0, 1]] * 500, [1, -1] * 500, np.random.default_rng(1)
    >>> fit = erm.output_perturbation(x, y, epsilon=1.0, regularization=0.1, rng=rng)
    >>> round(fit.scale, 4), round(fit.delta_at(0.5), 4)
    (0.0195, 0.2876)
    """

    theta: np.ndarray
    epsilon: float
    delta: float
    scale: float
    delta_at: Callable[[float], float]


@checked
def spherical_laplace(dimension: Many, scale: Positive, *, rng: Generator) -> Array:
    """A vector with density proportional to exp(-||b||/scale) in R^dimension.

    Its norm is Gamma(dimension, scale), its direction uniform. For study: floats leak (X-low-bits).

    >>> erm.spherical_laplace(3, scale=0.1, rng=np.random.default_rng(1)).round(4)
    array([0.0383, 0.0911, 0.0367])
    """
    direction = rng.standard_normal(dimension)
    return direction / np.linalg.norm(direction) * rng.gamma(dimension) * scale


@checked
def best_regularization(
    n: Count,
    dimension: Count,
    *,
    epsilon: PositiveNumber,
    delta: BelowOneNumber = 0.0,
    radius: PositiveNumber = 1.0,
) -> float:
    """lambda that minimises the proved regret against all ||theta|| <= radius (X-private-erm).

    The root mean square of the perturbation's norm, over n radius.

    >>> round(erm.best_regularization(1000, 5, epsilon=1.0), 4)
    0.011
    """
    d = dimension
    spread = 2 * sqrt(d * (d + 1)) / epsilon
    if delta > 0:
        spread = 2 * sqrt(d) * float(gaussian_sigma(epsilon, delta))
    return spread / (n * radius)


@checked
def output_sensitivity(
    n: Count, regularization: PositiveNumber, loss: RowLoss = logistic_loss
) -> float:
    """How far the regularised optimum moves (l2) when one of n rows is replaced: 2 L(r)/(n lambda).

    L(r) is the loss's Lipschitz constant where the optimum must lie (X-output-perturbation).

    >>> round(erm.output_sensitivity(1000, regularization=0.1), 4)
    0.0195
    """
    radius = optimum_radius(loss, regularization)
    return 2 * loss.lipschitz(radius) / (n * regularization)


@checked
def output_perturbation(
    x: UnitRows,
    y: Anything,
    *,
    epsilon: PositiveNumber,
    delta: BelowOneNumber = 0.0,
    regularization: Ridge,
    loss: RowLoss = logistic_loss,
    rng: Generator,
) -> PrivateFit:
    """Find the regularised optimum, add noise, publish (X-output-perturbation).

    delta = 0: spherical Laplace noise. delta > 0: Gaussian noise of standard deviation ``scale``
    from the exact curve. The solver's residual is in the sensitivity (X-approximate-minimiser). For
    study: floats leak (X-low-bits).

    >>> x, y, rng = [[1, 0], [0, 1]] * 500, [1, -1] * 500, np.random.default_rng(1)
    >>> erm.output_perturbation(x, y, epsilon=1.0, regularization=0.1, rng=rng).theta.round(2)
    array([ 1.19, -1.14])
    """
    y = checked_labels(loss, x, y)
    refuse_without_curvature(loss)
    lam = regularization
    optimum, _ = descend(x, y, loss, lam, np.zeros(x.shape[1]), 0.0, tolerance=AIM)
    sensitivity = output_sensitivity(len(x), lam, loss) + 2 * RESIDUAL / lam
    if delta == 0:
        scale = sensitivity / epsilon
        noise = spherical_laplace(x.shape[1], scale, rng=rng)
        return PrivateFit(optimum + noise, epsilon, 0.0, scale, randomized_response(epsilon).delta)
    multiplier = _multiplier(epsilon, delta)
    scale = float(multiplier * sensitivity)
    noise = rng.normal(0, scale, x.shape[1])
    return PrivateFit(optimum + noise, epsilon, delta, scale, partial(gaussian_delta, multiplier))


@checked
def objective_perturbation(
    x: UnitRows,
    y: Anything,
    *,
    epsilon: PositiveNumber,
    delta: BelowOneNumber = 0.0,
    regularization: Ridge,
    loss: RowLoss = logistic_loss,
    rng: Generator,
) -> PrivateFit:
    """Minimise mean loss + regularization/2 ||theta||^2 + <b, theta>/n, b random.

    X-objective-perturbation, for the logistic and the Huber loss: convex in the margin, slopes in
    [-1, 0]. b is spherical Laplace of scale ``scale``; if delta > 0, Gaussian with that standard
    deviation. One percent of epsilon pays for the solver (X-approximate-minimiser). ValueError if
    regularization is too weak for epsilon. For study: floats leak (X-low-bits).

    >>> x, y, rng = [[1, 0], [0, 1]] * 500, [1, -1] * 500, np.random.default_rng(1)
    >>> erm.objective_perturbation(x, y, epsilon=1.0, regularization=0.1, rng=rng).theta.round(2)
    array([ 1.17, -1.2 ])
    """
    y = checked_labels(loss, x, y)
    if loss not in (logistic_loss, huber_loss):
        raise refusal("loss", loss.name, "logistic or Huber here")
    (n, d), lam = x.shape, regularization
    share, kappa = SOLVER_SHARE * epsilon, log1p(loss.smoothness / (n * lam))
    if kappa >= epsilon - share:
        least = loss.smoothness / (n * expm1(epsilon - share))
        raise refusal("regularization", lam, f"above {least:.4g} here")
    left = epsilon - share - kappa
    scale = _objective_sigma(left, delta) if delta else 2 / left
    if scale * (sqrt(d) if delta else d) > WIDEST * n * lam:
        raise refusal("regularization", lam, "larger for so much noise")
    b = rng.normal(0, scale, d) if delta else spherical_laplace(d, scale, rng=rng)
    # completing the square: <b, theta>/n moves the regulariser's centre to -b/(n lambda)
    optimum, _ = descend(x, y, loss, lam, -b / (n * lam), np.zeros(d), tolerance=AIM)
    theta = optimum + spherical_laplace(d, 2 * RESIDUAL / (lam * share), rng=rng)
    pure = randomized_response(epsilon).delta
    approximate = partial(objective_perturbation_delta, sigma=scale, excess=share + kappa)
    return PrivateFit(theta, epsilon, delta, scale, approximate if delta else pure)


@overload
def objective_perturbation_delta(epsilon: float, sigma: float, *, excess: float = ...) -> float: ...
@overload
def objective_perturbation_delta(
    epsilon: ArrayLike, sigma: ArrayLike, *, excess: ArrayLike = ...
) -> Array: ...
@checked
def objective_perturbation_delta(
    epsilon: Nonnegative, sigma: Positive, *, excess: Nonnegative = 0.0
) -> float | Array:
    """delta of objective perturbation with b ~ N(0, sigma^2 I) at `epsilon`, for substitution.

    2 G_1(epsilon - excess) + G_2(epsilon - excess), G_s the exact curve at sensitivity s; `excess`
    is ln(1 + c/(n lambda)) plus what the solver was given. 1 where epsilon < excess.

    >>> round(erm.objective_perturbation_delta(1.0, sigma=3.0, excess=0.1), 6)
    0.042228
    """
    left = epsilon - excess
    at = np.maximum(left, 0.0)
    delta = 2 * gaussian_delta(sigma, at) + gaussian_delta(sigma, at, sensitivity=2.0)
    return np.where(left < 0, 1.0, np.minimum(1.0, delta))


_multiplier = lru_cache(maxsize=1024)(gaussian_sigma)  # of a single Gaussian release


@lru_cache(maxsize=1024)
def _objective_sigma(left, delta):
    """The sigma at which `objective_perturbation_delta` of `left` is delta, rounded up."""
    low = gaussian_sigma(left, delta, sensitivity=2.0)  # too little: it ignores the first term
    high = gaussian_sigma(left, delta / 3, sensitivity=2.0)  # enough: each of the three <= delta/3
    if objective_perturbation_delta(left, low) <= delta:
        return low
    sigma = optimize().brentq(
        lambda s: log(objective_perturbation_delta(left, s) / delta), low, high
    )
    return min(high, sigma * (1 + 1e-9))


@checked
def noisy_gradient_descent(
    x: UnitRows,
    y: Anything = None,
    *,
    epsilon: PositiveNumber,
    delta: OpenProbabilityNumber,
    steps: Many,
    radius: PositiveNumber = 1.0,
    loss: RowLoss = logistic_loss,
    rng: Generator,
) -> PrivateFit:
    """Projected gradient descent over ||theta|| <= radius, Gaussian noise in every full gradient.

    Returns the mean of the iterates (X-noisy-gradient-descent). Any loss with a (sub)gradient; for
    `distance_loss` x holds the points and y is not needed. ``scale`` is the noise's standard
    deviation in each coordinate of each step's mean gradient, whose sensitivity is 2 L(radius)/n.
    For study: floats leak (X-low-bits).

    >>> x, y, rng = [[1, 0], [0, 1]] * 500, [1, -1] * 500, np.random.default_rng(1)
    >>> erm.noisy_gradient_descent(x, y, epsilon=1.0, delta=1e-6, steps=50, rng=rng).theta.round(2)
    array([ 0.6 , -0.59])
    """
    y = checked_labels(loss, x, y)
    (n, d), slope = x.shape, loss.lipschitz(radius)
    if slope == inf:
        raise refusal("loss", loss.name, "one with bounded gradients")
    multiplier = _multiplier(epsilon, delta)
    scale = multiplier * sqrt(steps) * 2 * slope / n  # steps rounds compose to one Gaussian
    rate = radius / sqrt(steps * (slope**2 + d * scale**2))
    theta, total = np.zeros(d), np.zeros(d)
    for _ in range(steps):
        gradient = loss.gradient(theta, x, y).mean(0) + rng.normal(0, scale, d)
        theta = clip_rows(theta - rate * gradient, radius)  # the projection onto the ball
        total += theta
    return PrivateFit(total / steps, epsilon, delta, scale, partial(gaussian_delta, multiplier))
