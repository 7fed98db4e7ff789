"""Closed forms: the loss on a sample of the data, and the curve delta(epsilon) of one step.

The curve delta_0 of a step on all of the data is written down. With the rate r (Balle, Barthe and
Gaboardi 2018, Theorem 2), for epsilon >= 0:

    mixture against q:   r delta_0(log(1 + (e^epsilon - 1)/r)), also under substitution;
    q against mixture:   b delta_0(epsilon + log(r/b)), b = 1 - e^epsilon (1 - r), or 0 if b <= 0.
"""

from math import log, pi, sqrt

import numpy as np

from ..numerics import erfcx, legendre
from .law import BLOCK, EPS, in_blocks

SHORT = 0.3  # a shift mu, up to which the two terms of Phi(a) - e^epsilon Phi(a - mu) cancel
AT_ONCE = BLOCK // 256  # epsilon of a closed form: each has four places with up to 64 nodes
ROUNDING = 1e-14  # of log delta, in units of 1 + abs(log delta); 1.5e-15 was seen in 20,000 draws


def mixed_loss(u, rate):
    """log(1 + rate (e^u - 1)) without overflow or cancellation."""
    if rate == 1:
        return u
    huge = np.maximum(u, 500.0)
    above = huge + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-huge))
    rise = rate * np.expm1(np.minimum(u, 500.0))
    low = np.log((1 - rate) + rate * np.exp(np.minimum(u, 0.0)))  # where 1 + rise cancels
    near = np.where(rise < -0.5, low, np.log1p(np.maximum(rise, -0.5)))
    return np.where(u > 500, above, near)


def inverse_mixed_loss(loss, rate):
    """The u with log(1 + rate (e^u - 1)) = loss; -inf at and below the least loss."""
    if rate == 1:
        return loss
    with np.errstate(divide="ignore"):
        below = np.log1p(np.maximum(np.expm1(np.minimum(loss, 1.0)) / rate, -1.0))
    high = np.maximum(loss, 1.0)
    above = high - np.log(rate) + np.log1p((rate - 1) * np.exp(-high))
    return np.where(np.asarray(loss) > 1, above, below)


def log_share(u, rate):
    """log of the share that the sampled law has in the mixture where p/q of the step is e^u."""
    return -np.logaddexp(0.0, -(u + np.log(rate) - np.log1p(-rate)))


def gaussian_log_delta(mu, epsilon):
    """log delta of N(mu, 1) against N(0, 1), for arrays (Balle and Wang 2018, eq. 6).

    delta = Phi(a) - e^epsilon Phi(a - mu), a = mu/2 - epsilon/mu. With R = Phi/phi this is
    phi(a) (R(a) - R(a - mu)); for a short shift it is an integral of positive terms.
    """
    mu, epsilon = np.broadcast_arrays(np.asarray(mu, float), np.asarray(epsilon, float))
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        a = np.maximum(mu / 2 - epsilon / mu, -1e150)
        log_phi = -a * a / 2
        one, other = erfcx(np.array([abs(a), mu - np.minimum(a, mu)]) / sqrt(2))
        far = log_phi + np.log((one - other) / 2)
        near = np.log1p(-np.exp(log_phi) * (one + other) / 2)
        value = np.where(a > 0, near, far)
        if (short := mu < SHORT).any():
            integral = _short_shift(mu[short], a[short])
            value[short] = log_phi[short] - log(2 * pi) / 2 + np.log(integral)
    return np.where(np.isnan(value), np.where(a > 0, 0.0, -np.inf), value)


def _short_shift(mu, a):
    """int_0^inf (1 - exp(-mu v)) exp(a v - v^2/2) dv, by Gauss-Legendre on four panels."""
    a = np.maximum(a, -1e140)
    root = np.sqrt(a * a + 84)
    top = np.where(a > 0, a + root, 84 / (root - np.minimum(a, 0.0)))[:, None, None]
    nodes, weights = legendre()
    v = top * (np.arange(4.0)[:, None] + 0.5 * (1 + nodes)) / 4
    mu, a = mu[:, None, None], a[:, None, None]
    values = -np.expm1(-mu * v) * np.exp(v * (a - v / 2))
    return (top[:, 0, 0] / 8) * (values @ weights).sum(axis=1)


class OneStep:
    """The tail of a single step, with the interface of a ``line.Line``. Of all of the data it is
    ``log_delta`` of an array of epsilon >= 0, losses are of the size ``unit``, and the noise makes
    outcomes differ by ``size``."""

    def __init__(self, log_delta, size, unit, rate, side):
        self._unsampled, self.unit, self.rate, self.side = log_delta, unit, rate, side
        self.step_size = 1e-6 * size * rate  # of epsilon, for slopes, beside 1e-7 of itself

    def log_delta(self, epsilon):
        """For an array of epsilon >= 0."""
        if self.rate == 1:
            return self._unsampled(epsilon)
        if self.side > 0:
            return log(self.rate) + self._unsampled(inverse_mixed_loss(epsilon, self.rate))
        share = (1 - self.rate) / self.rate * np.expm1(epsilon)  # 1 - b/r
        log_left = np.log1p(-np.minimum(share, 1.0))
        log_delta = log(self.rate) + log_left + self._unsampled(epsilon - log_left)
        return np.where(share < 1, log_delta, -np.inf)

    def sums(self, epsilon):
        """log delta, its negative slope, and its relative error: as if epsilon were off by 4 EPS,
        plus ROUNDING. Where epsilon < 0 the value is that at 0."""
        return in_blocks(self._sums, epsilon, AT_ONCE)

    def _sums(self, epsilon):
        epsilon = np.maximum(epsilon, 0.0)
        width = np.maximum(self.step_size, 1e-7 * epsilon)
        left = np.maximum(epsilon - width, 0.0)
        earlier = np.maximum(epsilon - 4 * EPS * (epsilon + self.unit), 0.0)
        places = np.array([epsilon, left, left + width, earlier])
        value, above, below, before = self.log_delta(places)
        slope = (above - below) / width
        error = np.expm1(before - value + ROUNDING * (1 + np.abs(value)))
        error = np.where(np.isneginf(before), 0.0, error)  # nothing is lost there
        return value, np.nan_to_num(slope, nan=1e300, posinf=1e300), error
