"""Moments of the privacy loss of Laplace noise, in closed form.

With a = 1/scale and s = (z + 1/2) a, the two atoms and the density between give

    E exp(zL) = exp(-a/2) f(s),    f(s) = cosh s + (a/2) (sinh s)/s,

which is even in s (K(z) = K(-1-z)) and has f(a/2) = exp(a/2).
"""

import numpy as np

__all__ = []

# x coth x - 1 = sum_n COTH[n-1] x^(2n), radius of convergence pi: 4^n B_2n / (2n)!
COTH = (
    (1 / 3, -1 / 45, 2 / 945, -1 / 4725, 2 / 93555, -1382 / 638512875, 4 / 18243225)
    + (-3617 / 162820783125, 87734 / 38979295480125, -349222 / 1531329465290625)
    + (310732 / 13447856940643125, -472728182 / 201919571963756521875)
    + (2631724 / 11094481976030578125,)
)


def cumulant(a, z):
    """K(z) = log E exp(zL) at an array of real z, to 1e-14 relative.

    f(s) - f(a/2) is a product, from which K follows without cancellation where it is small:

        K = log(1 + (e^(za) - 1) (1 - e^(-(z+1)a)) (1 + r) / 2),    m = (z+1)a/2, d = za/2,
        r = (m coth m - d coth d) / (m + d).
    """
    z = np.where(z < -0.5, -1 - z, z)
    s, tilt = (z + 0.5) * a, z * a
    near = (np.abs(tilt) < 1) & ((z > -0.25) | (a < 2))
    d = np.where(near, tilt / 2, 0.0)
    m = d + a / 2
    far_apart = (coth_excess(m) - coth_excess(d)) / np.where(m > 1, m + d, 1.0)
    apart = np.where(m > 1, far_apart, _quotient(m, d))
    rise = 0.5 * np.expm1(2 * d) * -np.expm1(-2 * m) * (1 + apart)
    far = tilt + np.log(0.5 * (1 + np.exp(-2 * s)) + 0.25 * a * _ramp(s))
    return np.where(near, np.log1p(rise), far)


def coth_excess(x):
    """x coth x - 1."""
    small, square = np.minimum(np.abs(x), 1.0), np.minimum(np.abs(x), 1.0) ** 2
    series = square * np.polyval(COTH[::-1], square)
    large = np.maximum(np.abs(x), 1.0)
    return np.where(small < 1, series, large / np.tanh(large) - 1)


def _quotient(m, d):
    """(m coth m - d coth d) / (m + d) for abs(d) <= m <= 1: (m - d) times the series' quotient by
    m^2 - d^2, by Horner's rule for divided differences."""
    x, y = np.minimum(m, 1.0) ** 2, d * d
    value, quotient = np.zeros_like(x), np.zeros_like(x)
    for c in reversed((0.0, *COTH)):
        value, quotient = c + y * value, value + x * quotient
    return (m - d) * quotient


def _ramp(s):
    """(1 - exp(-2s)) / s, 2 at s = 0."""
    safe = np.where(s == 0, 1.0, s)
    return np.where(s == 0, 2.0, -np.expm1(-2 * safe) / safe)


def derivatives(a, z):
    """K, K' and K'' at an array of real z, to 1e-12: of log f for s < 1; beyond, with
    E = exp(-2s) and T = (1 - E)/s, of log f = s + log g - log 2, g = 1 + E + (a/2) T."""
    s = (z + 0.5) * a
    side, s = np.where(s < 0, -1.0, 1.0), np.abs(s)
    slope, bend = np.where(s < 1, _near_slopes(a, s), _far_slopes(a, s))
    return cumulant(a, z), side * a * slope, a**2 * bend


def _near_slopes(a, s):
    s, odd = np.minimum(s, 1.0), np.arange(1, 22, 2)  # (sinh s)/s = sum s^(odd-1) / odd!
    terms = s[..., None] ** (odd - 1) / np.cumprod(np.where(odd > 1, odd * (odd - 1.0), 1.0))
    first = terms @ (odd - 1) / np.where(s > 0, s, 1.0)
    second = terms @ (odd / (odd + 2))
    f = np.cosh(s) + 0.5 * a * terms.sum(axis=-1)
    slope = (np.sinh(s) + 0.5 * a * first) / f
    return slope, (np.cosh(s) + 0.5 * a * second) / f - slope**2


def _far_slopes(a, s):
    s = np.maximum(s, 1.0)
    decay, ramp = np.exp(-2 * s), _ramp(s)
    first = (2 * decay - ramp) / s
    second = (-4 * decay - 2 * first) / s
    g = 1 + decay + 0.5 * a * ramp
    slope = (-2 * decay + 0.5 * a * first) / g
    return 1 + slope, (4 * decay + 0.5 * a * second) / g - slope**2
