"""How much Gaussian noise: the exact privacy curve, its inverse, and the textbook formula.

The mechanism adds N(0, sigma^2 I) to a query of l2 sensitivity `sensitivity` (under whichever
adjacency it was computed). All of it depends on one number, mu = sensitivity / sigma. With
t = epsilon/mu - mu/2 the privacy loss exceeds epsilon with probability Q(t), Q the upper tail of
N(0, 1), and delta = Q(t) - e^epsilon Q(t + mu). Arrays broadcast; scalars give Python floats.
"""

from __future__ import annotations

import numpy as np

from ..numerics import erfinv, ndtr, ndtri
from ..accountant.kinds import gaussian_log_delta
from ..checks import (
    Array, Nonnegative, OpenProbability, Positive, PositiveProbability, Real, checked, refusal,
)  # fmt: skip

CLASSICAL_LIMIT = 2 * np.log(2.5)  # the largest epsilon for which the page proves F-3.22
_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)


@checked
def loss_tail(sigma: Positive, epsilon: Real, sensitivity: Positive = 1.0) -> float | Array:
    """P(L > epsilon) for the worst neighbours, any real epsilon: Q(epsilon/mu - mu/2) (T-9).

    >>> gaussian.loss_tail(sigma=1.0, epsilon=0.5)
    0.5
    """
    mu = _mu(sigma, sensitivity)
    return ndtr(mu / 2 - epsilon / mu)


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


@checked
def gaussian_sigma(
    epsilon: Nonnegative, delta: OpenProbability, sensitivity: Positive = 1.0
) -> float | Array:
    """The least sigma that is (epsilon, delta)-DP, to rounding; epsilon >= 0, 0 < delta < 1.

    Newton on ln delta against ln mu, whose slope is mu phi(t)/delta, from the larger of two lower
    bounds on mu: the tail's (`sigma_tail`) and that of epsilon = 0.

    >>> round(dp.gaussian_sigma(epsilon=1.0, delta=1e-6), 4)
    4.2247
    """
    epsilon, delta = np.broadcast_arrays(epsilon, delta)
    at_zero = 2 * np.sqrt(2) * erfinv(delta)
    mu = np.maximum(at_zero, 1 / _least_sigma(-ndtri(delta), np.maximum(epsilon, 1e-300)))
    for _ in range(60):
        log_delta = gaussian_log_delta(mu, epsilon)
        t = epsilon / mu - mu / 2
        slope = np.exp(np.log(mu) - t * t / 2 - _HALF_LOG_TWO_PI - log_delta)
        step = np.exp(np.clip((np.log(delta) - log_delta) / slope, -1, 1))
        mu = mu * step
        if (np.abs(step - 1) < 1e-14).all():
            break
    mu = np.where(epsilon == 0, at_zero, mu)
    return sensitivity / mu


@checked
def sigma_tail(
    epsilon: Positive, delta: OpenProbability, sensitivity: Positive = 1.0
) -> float | Array:
    """The least sigma with P(L > epsilon) <= delta: all that a tail bound (T-1) can ever give.

    >>> round(gaussian.sigma_tail(epsilon=1.0, delta=1e-5), 4)
    4.3791
    """
    return sensitivity * _least_sigma(-ndtri(delta), epsilon)


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


def _least_sigma(t, epsilon):
    """The least sigma with epsilon sigma - 1/(2 sigma) >= t, any real t, without cancellation."""
    root = np.hypot(t, np.sqrt(2 * epsilon))
    return np.where(t > 0, (t + root) / (2 * epsilon), 1 / np.where(t > 0, 1.0, root - t))


def _mu(sigma, sensitivity):
    with np.errstate(over="ignore", under="ignore"):
        return np.divide(sensitivity, sigma)
