"""Sums and logarithms that lose no digits, Gauss-Legendre quadrature, and SciPy's functions, which
are imported at the first call: importing SciPy takes longer than dpnotes does."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from importlib import import_module
from math import nextafter
from typing import Any

import numpy as np

optimize = partial(import_module, "scipy.optimize")  # optimize() is the module
SMALL = 0.5  # up to here exp(w) - 1 - w is a series
FACTORIALS = np.cumprod(np.arange(1.0, 17.0))
MIDPOINTS = np.arange(0.25, 7.0, 0.5) ** 2  # beyond is less than 1e-19
SERIES = 1 / FACTORIALS[:0:-1]  # 1/16!, ..., 1/2!


@lru_cache(maxsize=8)
def legendre(order=16):
    """Gauss-Legendre nodes and weights on [-1, 1]; NumPy's module is imported when first asked."""
    return np.polynomial.legendre.leggauss(order)


def gauss(edges, order=16):
    """Composite Gauss-Legendre nodes and weights."""
    x, w = legendre(order)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    return (middle[:, None] + half[:, None] * x).ravel(), (half[:, None] * w).ravel()


def matrix_product(a, b):
    """`a @ b` of finite numbers, without a warning that means nothing.

    BLAS may leave the mark of an invalid operation behind where every number is right; NumPy makes
    a RuntimeWarning of it. Here the product itself is looked at: it must be finite.
    """
    with np.errstate(all="ignore"):
        result = a @ b
    if not np.isfinite(result).all():
        raise FloatingPointError("a matrix product of finite numbers is too large to be a number")
    return result


def exp_excess(w):
    """exp(w) - 1 - w >= 0 without cancellation."""
    near = np.clip(w, -SMALL, SMALL)
    with np.errstate(over="ignore"):
        return np.where(abs(w) <= SMALL, near**2 * np.polyval(SERIES, near), np.expm1(w) - w)


def log1p_complex(w):
    """log(1 + w), also near w = 0 and w = -1, where NumPy's own loses digits."""
    u, v = w.real, w.imag
    rise = u * (2 + u) + v * v  # abs(1 + w)^2 - 1
    size = np.log(np.maximum(np.hypot(1 + u, v), 1e-300))
    near = 0.5 * np.log1p(np.maximum(rise, -0.5))
    return np.where(rise > -0.5, near, size) + 1j * np.arctan2(v, 1 + u)


def expm1_complex(w):
    """exp(w) - 1, also near w = 0."""
    rise = np.expm1(w.real)
    return rise * np.cos(w.imag) - 2 * np.sin(w.imag / 2) ** 2 + 1j * (1 + rise) * np.sin(w.imag)


def erfcx(x):
    """exp(x^2) (1 - erf(x)) for x >= 0, to 3 EPS: the trapezoid rule for a multiple of the integral
    of exp(-t^2) / (t^2 + x^2), at the midpoints of steps of 1/2, and what the pole at t = ix adds
    (Matta and Reichel 1971). All terms are positive, and the aliases are exp(-4 pi^2). SciPy would
    be imported for it."""
    x = np.minimum(x, 1e150)
    sums = (x[..., None] / (MIDPOINTS + (x * x)[..., None])) @ (np.exp(-MIDPOINTS) / np.pi)
    near = np.where(x < 2 * np.pi, x, 0.0)
    pole = 2 * np.exp(near * near) / (np.exp(4 * np.pi * near) + 1)
    return sums + np.where(x < 2 * np.pi, pole, 0.0)


def mean_excess(log_p, w):
    """The terms p (exp(w) - 1 - w), also where p underflows and w is large."""
    p, far = np.exp(log_p), w > 30
    near = p * exp_excess(np.where(far, 0.0, w))
    return np.where(far, np.exp(np.minimum(log_p + w, 700.0)) - p * (1 + w), near)


def quotient(a, b, towards):
    """a/b of positive numbers, rounded towards 0 or infinity."""
    near = a / b
    off = Fraction(near) * Fraction(b) - Fraction(a)
    return nextafter(near, towards) if (off > 0 if towards == 0 else off < 0) else near


def log_ratio(p, q):
    """log p/q to full relative accuracy also where p is close to q, and p - q is exact."""
    near = (p < 2 * q) & (q < 2 * p)
    ratio = np.where(near, (p - q) / np.where(near, q, 1.0), 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        plain = np.log(p / q)
    plain = np.where(np.isfinite(plain), plain, np.log(p) - np.log(q))
    return np.where(near, np.log1p(ratio), plain)


def _later(module: str, *names: str) -> Iterator[Callable[..., Any]]:
    """Functions of a module that is imported when one of them is first called."""

    def function(name):
        return lambda *arguments, **options: getattr(import_module(module), name)(
            *arguments, **options
        )

    return map(function, names)


(
    betainc, betainccinv, betaincinv, erf, erfinv, expit, gammaln, kl_div, log1p, log_ndtr,
    log_softmax, logsumexp, ndtr, ndtri, ndtri_exp, softmax, xlog1py, xlogy,
) = _later(
    "scipy.special", "betainc", "betainccinv", "betaincinv", "erf", "erfinv", "expit",
    "gammaln", "kl_div", "log1p", "log_ndtr", "log_softmax", "logsumexp", "ndtr", "ndtri",
    "ndtri_exp", "softmax", "xlog1py", "xlogy",
)  # fmt: skip
cho_factor, cho_solve, solve_triangular = _later(
    "scipy.linalg", "cho_factor", "cho_solve", "solve_triangular"
)
(lfilter,) = _later("scipy.signal", "lfilter")


def log_binomial(n, k):
    """log of the number of subsets of k among n."""
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def orders_near(values, orders):
    """Finer orders where `values`, one row for each of `orders`, are least: 16 to each of the two
    gaps beside the best order of a column, with their ends."""
    best = np.unique(np.argmin(values, axis=0))
    gaps = np.intersect1d(np.union1d(best - 1, best), np.arange(orders.size - 1))
    low, high = orders[gaps] - 1, orders[gaps + 1] - 1
    return np.unique(np.append(1 + np.geomspace(low, high, 17), orders[best]))
