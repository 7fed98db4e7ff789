"""How much Gaussian noise: the exact privacy curve, its inverse, and the textbook formula.

The mechanism adds N(0, sigma^2 I) to a query of l2 sensitivity `sensitivity` (under whichever
adjacency it was computed). All of it depends on one number, mu = sensitivity / sigma. With
t = epsilon/mu - mu/2 the privacy loss exceeds epsilon with probability Q(t), Q the upper tail of
N(0, 1), and delta = Q(t) - e^epsilon Q(t + mu). Arrays broadcast; scalars give Python floats.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from ..numerics import ndtr
from ..accountant.attacks import mu_of, tail_sigma
from ..accountant.curves import gaussian_log_delta
from ..checks import (
    Array, ArrayLike, Nonnegative, OpenProbability, Positive, PositiveProbability, Real,
    checked, refusal,
)  # fmt: skip

CLASSICAL_LIMIT = 2 * np.log(2.5)  # the largest epsilon for which the page proves F-3.22


@overload
def loss_tail(sigma: float, epsilon: float, sensitivity: float = ...) -> float: ...
@overload
def loss_tail(sigma: ArrayLike, epsilon: ArrayLike, sensitivity: ArrayLike = ...) -> Array: ...
@checked
def loss_tail(sigma: Positive, epsilon: Real, sensitivity: Positive = 1.0) -> float | Array:
    """P(L > epsilon) for the worst neighbours, any real epsilon: Q(epsilon/mu - mu/2) (T-9).

    >>> gaussian.loss_tail(sigma=1.0, epsilon=0.5)
    0.5
    """
    mu = _mu(sigma, sensitivity)
    return ndtr(mu / 2 - epsilon / mu)


@overload
def gaussian_delta(sigma: float, epsilon: float, sensitivity: float = ...) -> float: ...
@overload
def gaussian_delta(sigma: ArrayLike, epsilon: ArrayLike, sensitivity: ArrayLike = ...) -> Array: ...
@checked
def gaussian_delta(sigma: Positive, epsilon: Real, sensitivity: Positive = 1.0) -> float | Array:
    """The smallest delta at `epsilon` (any real number), exact to about 1e-13 (U-balle-wang).

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle & Wang 2018, theorem 8). Below
    1e-308 it is 0.

    >>> round(dp.gaussian_delta(sigma=4.0, epsilon=1.0), 8)
    2.92e-06
    """
    mu = _mu(sigma, sensitivity)
    size = np.abs(epsilon)
    with np.errstate(under="ignore"):
        value = np.exp(gaussian_log_delta(mu, size))
        return np.where(epsilon < 0, -np.expm1(-size) + np.exp(-size) * value, value)


@overload
def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = ...) -> float: ...
@overload
def gaussian_sigma(epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = ...) -> Array: ...
@checked
def gaussian_sigma(
    epsilon: Nonnegative, delta: OpenProbability, sensitivity: Positive = 1.0
) -> float | Array:
    """The least sigma that is (epsilon, delta)-DP, to rounding; epsilon >= 0, 0 < delta < 1.

    >>> round(dp.gaussian_sigma(epsilon=1.0, delta=1e-6), 4)
    4.2247
    """
    return sensitivity / mu_of(epsilon, delta)


@overload
def sigma_tail(epsilon: float, delta: float, sensitivity: float = ...) -> float: ...
@overload
def sigma_tail(epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = ...) -> Array: ...
@checked
def sigma_tail(
    epsilon: Positive, delta: OpenProbability, sensitivity: Positive = 1.0
) -> float | Array:
    """The least sigma with P(L > epsilon) <= delta: all that a tail bound (T-1) can ever give.

    >>> round(gaussian.sigma_tail(epsilon=1.0, delta=1e-5), 4)
    4.3791
    """
    return sensitivity * tail_sigma(epsilon, delta)


@overload
def sigma_classical(epsilon: float, delta: float, sensitivity: float = ...) -> float: ...
@overload
def sigma_classical(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = ...
) -> Array: ...
@checked
def sigma_classical(
    epsilon: Positive, delta: PositiveProbability, sensitivity: Positive = 1.0
) -> float | Array:
    """sqrt(2 ln(1.25/delta))/epsilon, times the sensitivity (F-3.22, U-classical-gaussian).

    Refuses epsilon > 2 ln(5/2) (CLASSICAL_LIMIT), up to where it is proved for every delta in
    (0, 1]: at epsilon = 10 it gives too little noise.

    >>> round(gaussian.sigma_classical(epsilon=1.0, delta=1e-5), 4)
    4.8448
    """
    if (epsilon > CLASSICAL_LIMIT).any():
        raise refusal("epsilon", epsilon, f"at most 2 ln(5/2) = {CLASSICAL_LIMIT:.4f}...")
    return sensitivity * (np.sqrt(2 * (np.log(1.25) - np.log(delta))) / epsilon)


def _mu(sigma, sensitivity):
    with np.errstate(over="ignore", under="ignore"):
        return np.divide(sensitivity, sigma)
