"""How much Gaussian noise: the exact privacy curve, its inverse, and the closed forms of the notes.

The mechanism adds N(0, sigma^2 I) to a query of l2 sensitivity `sensitivity` (under whichever
adjacency it was computed). All of it depends on one number, mu = sensitivity / sigma. With
t = epsilon/mu - mu/2 the privacy loss exceeds epsilon with probability Q(t), Q the upper tail of
N(0, 1), and delta = Q(t) - e^epsilon Q(t + mu). Arrays broadcast; scalars give Python floats.
"""

import numpy as np

from ._scipy import erfcx, erfinv, ndtr, ndtri
from ._types import Answer, ArrayLike
from ._validate import (
    nonnegative,
    open_probability,
    plain,
    positive,
    positive_probability,
    probability,
    real,
)
from .accountant.law import gauss

__all__ = [
    "gaussian_loss_law",
    "gaussian_loss_tail",
    "gaussian_delta",
    "gaussian_tradeoff",
    "gaussian_sigma",
    "gaussian_sigma_tail",
    "gaussian_delta_chernoff",
    "gaussian_epsilon_chernoff",
    "gaussian_sigma_chernoff",
    "gaussian_sigma_chernoff_root",
    "gaussian_sigma_mills",
    "gaussian_sigma_mills_root",
    "gaussian_sigma_classical",
    "gaussian_sigma_dwork_roth",
    "gaussian_break_even",
]

CLASSICAL_LIMIT = 2 * np.log(2.5)  # the largest epsilon for which the page proves F-3.22
_HALF_LOG_TWO_PI = 0.5 * np.log(2 * np.pi)

# ---------------------------------------------------------------- the exact curve


def gaussian_loss_law(sigma: ArrayLike, sensitivity: ArrayLike = 1.0) -> tuple[Answer, Answer]:
    """Mean eta = mu^2/2 and variance 2 eta of the (normal) privacy loss (U-plrv-gaussian)."""
    eta = _mu(sigma, sensitivity) ** 2 / 2
    return plain(eta), plain(2 * eta)


def gaussian_loss_tail(
    sigma: ArrayLike, epsilon: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """P(L > epsilon) for the worst neighbours, any real epsilon: Q(epsilon/mu - mu/2) (T-9)."""
    mu = _mu(sigma, sensitivity)
    return plain(ndtr(mu / 2 - np.asarray(real("epsilon", epsilon)) / mu))


def gaussian_delta(sigma: ArrayLike, epsilon: ArrayLike, sensitivity: ArrayLike = 1.0) -> Answer:
    """The smallest delta at `epsilon` (any real number), exact to about 1e-13 (U-balle-wang).

    Balle & Wang 2018, theorem 8: Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). For
    negative epsilon by delta(-e) = 1 - exp(-e) + exp(-e) delta(e). Below 1e-308 it is 0.
    """
    epsilon, mu = np.asarray(real("epsilon", epsilon)), _mu(sigma, sensitivity)
    size = np.abs(epsilon)
    with np.errstate(under="ignore"):
        value = np.exp(_log_delta(size, mu))
        return plain(np.where(epsilon < 0, -np.expm1(-size) + np.exp(-size) * value, value))


def gaussian_tradeoff(alpha: ArrayLike, sigma: ArrayLike, sensitivity: ArrayLike = 1.0) -> Answer:
    """Least type-II error of a test between the two outputs at level `alpha` in [0, 1].

    Phi(Phi^-1(1 - alpha) - mu): the trade-off function of the pair (U-privacy-profile).
    """
    return plain(ndtr(-ndtri(np.asarray(probability("alpha", alpha))) - _mu(sigma, sensitivity)))


def gaussian_sigma(epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0) -> Answer:
    """The least sigma that is (epsilon, delta)-DP, to rounding; epsilon >= 0, 0 < delta < 1.

    Newton on log delta against log mu, whose slope is mu phi(t)/delta. It starts at the larger of
    two lower bounds on mu: the tail's (`gaussian_sigma_tail`) and total variation's (epsilon = 0).
    """
    epsilon, delta = np.broadcast_arrays(
        nonnegative("epsilon", epsilon), open_probability("delta", delta)
    )
    at_zero = 2 * np.sqrt(2) * erfinv(delta)
    mu = np.maximum(at_zero, 1 / _least_sigma(-ndtri(delta), np.maximum(epsilon, 1e-300)))
    for _ in range(60):
        log_delta = _log_delta(epsilon, mu)
        t = epsilon / mu - mu / 2
        slope = np.exp(np.log(mu) - t * t / 2 - _HALF_LOG_TWO_PI - log_delta)
        step = np.exp(np.clip((np.log(delta) - log_delta) / slope, -1, 1))
        mu = mu * step
        if (np.abs(step - 1) < 1e-14).all():
            break
    mu = np.where(epsilon == 0, at_zero, mu)
    return plain(np.asarray(positive("sensitivity", sensitivity)) / mu)


def _log_delta(epsilon, mu):
    """log delta for epsilon >= 0. With Mills' ratio M = Q/phi, delta = phi(t) (M(t) - M(t + mu)).

    For small mu the difference is the integral of -M'(x) = 1 - x M(x) from t to t + mu instead.
    """
    epsilon, mu = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(mu, float))
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        low, high = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        log_density = -low * low / 2 - _HALF_LOG_TWO_PI
        small = np.minimum(mu, 1.0)[..., None]
        nodes, weights = gauss(np.array([0.0, 1.0]))
        integral = (weights * _flattening(low[..., None] + small * nodes)).sum(-1) * mu
        apart = _mills(np.maximum(low, 0.0)) - _mills(high)
        far = np.log(ndtr(-low) - np.exp(log_density) * _mills(high))
        value = np.where(low < 0, far, log_density + np.log(apart))
        value = np.where(mu < 1, log_density + np.log(integral), value)
    return np.where(np.isfinite(high), value, np.where(mu > 1, 0.0, -np.inf))


def _mills(x):
    """Q(x)/phi(x) for x >= 0."""
    return np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2))


def _flattening(x):
    """1 - x Q(x)/phi(x) for x >= -1; above 12 by asymptotic series 1/x^2 - 3/x^4 + 15/x^6 ..."""
    inverse = 1 / np.maximum(x, 12.0) ** 2
    series = np.zeros_like(inverse)
    for k in range(18, 0, -1):
        series = inverse * (1 - (2 * k + 1) * series)
    return np.where(x > 12, series, 1 - x * _mills(np.minimum(x, 12.0)))


# ---------------------------------------------------------------- by way of the tail


def gaussian_sigma_tail(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """The least sigma with P(L > epsilon) <= delta: all that a tail bound (T-1) can ever give."""
    epsilon, delta = _target(epsilon, delta)
    return _scaled(_least_sigma(-ndtri(delta), epsilon), sensitivity)


def gaussian_delta_chernoff(
    sigma: ArrayLike, epsilon: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """exp(-t^2/2), t = epsilon/mu - mu/2: a bound on delta where t > 0; 1 elsewhere (T-9 (6.8))."""
    mu = _mu(sigma, sensitivity)
    t = np.asarray(nonnegative("epsilon", epsilon)) / mu - mu / 2
    with np.errstate(under="ignore"):
        return plain(np.exp(-(np.maximum(t, 0.0) ** 2) / 2))


def gaussian_epsilon_chernoff(
    sigma: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """mu^2/2 + mu sqrt(2 log(1/delta)), for any delta in (0, 1] (U-classical-gaussian)."""
    mu = _mu(sigma, sensitivity)
    return plain(mu * mu / 2 + mu * _chernoff_quantile(positive_probability("delta", delta)))


def gaussian_sigma_chernoff(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """sqrt(2 log(1/delta))/epsilon + 1/sqrt(2 epsilon), times the sensitivity (T-9 (6.81))."""
    epsilon, delta = _target(epsilon, delta)
    return _scaled(_chernoff_quantile(delta) / epsilon + 1 / np.sqrt(2 * epsilon), sensitivity)


def gaussian_sigma_chernoff_root(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """sqrt(epsilon + 2 log(1/delta))/epsilon, times the sensitivity (T-9 (6.83))."""
    epsilon, delta = _target(epsilon, delta)
    return _scaled(np.sqrt(epsilon - 2 * np.log(delta)) / epsilon, sensitivity)


def gaussian_sigma_mills(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """max(1, sqrt(log(1/(2 pi delta^2))_+))/epsilon + 1/sqrt(2 epsilon), scaled (T-9 (6.82))."""
    epsilon, delta = _target(epsilon, delta)
    return _scaled(_mills_quantile(delta) / epsilon + 1 / np.sqrt(2 * epsilon), sensitivity)


def gaussian_sigma_mills_root(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """sqrt(epsilon + max(1, log(1/(2 pi delta^2))))/epsilon, times the sensitivity (T-9 (6.84))."""
    epsilon, delta = _target(epsilon, delta)
    return _scaled(np.sqrt(epsilon + _mills_quantile(delta) ** 2) / epsilon, sensitivity)


def gaussian_sigma_classical(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """sqrt(2 log(1.25/delta))/epsilon, times the sensitivity (F-3.22, U-classical-gaussian).

    Refuses epsilon > 2 log(5/2) = 1.83, up to where it is proved for every delta in (0, 1]: at
    epsilon = 10 it gives too little noise.
    """
    return _classical(epsilon, delta, sensitivity, 0.0)


def gaussian_sigma_dwork_roth(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0
) -> Answer:
    """max(3/2, sqrt(2 log(1.25/delta)))/epsilon, times the sensitivity, epsilon <= 1.83 (T-A.1)."""
    return _classical(epsilon, delta, sensitivity, 1.5)


def gaussian_break_even(epsilon: ArrayLike, delta: ArrayLike) -> Answer:
    """The ratio of l1 to l2 sensitivity above which the Gaussian has less variance than Laplace.

    epsilon sigma / sqrt 2, sigma the exact calibration at sensitivity 1; Laplace noise is
    calibrated to (epsilon, 0) (U-laplace-vs-gauss).
    """
    epsilon = np.asarray(positive("epsilon", epsilon))
    return plain(epsilon * gaussian_sigma(epsilon, delta) / np.sqrt(2))


def _least_sigma(t, epsilon):
    """The least sigma with epsilon sigma - 1/(2 sigma) >= t, any real t, without cancellation."""
    root = np.hypot(t, np.sqrt(2 * epsilon))
    return np.where(t > 0, (t + root) / (2 * epsilon), 1 / np.where(t > 0, 1.0, root - t))


def _chernoff_quantile(delta):
    """The t with exp(-t^2/2) = delta."""
    return np.sqrt(-2 * np.log(delta))


def _mills_quantile(delta):
    """The least t >= 1 with exp(-t^2/2)/sqrt(2 pi) <= delta."""
    return np.sqrt(np.maximum(1.0, -2 * np.log(delta) - 2 * _HALF_LOG_TWO_PI))


def _classical(epsilon, delta, sensitivity, least):
    epsilon = np.asarray(positive("epsilon", epsilon))
    delta = np.asarray(positive_probability("delta", delta))
    if (epsilon > CLASSICAL_LIMIT).any():
        raise ValueError(f"epsilon must be at most 2 log(5/2) = 1.8325..., got {epsilon}")
    factor = np.maximum(least, np.sqrt(2 * (np.log(1.25) - np.log(delta))))
    return _scaled(factor / epsilon, sensitivity)


def _target(epsilon, delta):
    return np.asarray(positive("epsilon", epsilon)), np.asarray(open_probability("delta", delta))


def _mu(sigma, sensitivity):
    sensitivity, sigma = positive("sensitivity", sensitivity), positive("sigma", sigma)
    with np.errstate(over="ignore", under="ignore"):
        return np.divide(sensitivity, sigma)


def _scaled(sigma, sensitivity):
    return plain(sigma * np.asarray(positive("sensitivity", sensitivity)))
