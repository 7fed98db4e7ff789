"""Tail bounds: how likely is a random number to be far from where it should be?

From Markov's inequality to Azuma's, for sums of independent terms and for martingales; nothing
in here knows about privacy. An upper bound on a probability is computed as the exponential of a
logarithm: it is at most 1, and where it is below the smallest positive double (5e-324) that
number is returned, so that it is never a false 0. Logarithms are natural. Arguments broadcast;
scalars in, Python floats out.
"""

import math

import numpy as np
from scipy.special import kl_div, xlog1py

from . import _validate as check

__all__ = [
    "markov",
    "chebyshev",
    "moment_tail",
    "chernoff",
    "mills_upper",
    "mills_lower",
    "subgaussian_tail",
    "subgaussian_bounded",
    "subgaussian_mean",
    "hoeffding",
    "hoeffding_deviation",
    "chernoff_additive",
    "chernoff_kl",
    "chernoff_above",
    "chernoff_below",
    "azuma",
    "azuma_hoeffding",
    "hoeffding_from_azuma",
    "stirling",
    "binomial_tail_lower",
    "pinsker",
    "bretagnolle_huber",
]

_SMALLEST = 5e-324


def markov(t, mean):
    """P(X >= t) <= mean / t for a variable X >= 0 and t > 0 (U-markov)."""
    return check.plain(
        np.minimum(np.divide(check.nonnegative("mean", mean), check.positive("t", t)), 1)
    )


def chebyshev(u, variance):
    """P(|X - E X| >= u) <= variance / u^2 for u > 0 (U-chebyshev)."""
    u, variance = check.positive("u", u), check.nonnegative("variance", variance)
    return check.plain(np.minimum(np.divide(variance, u) / u, 1))


def moment_tail(u, moment, order):
    """P(|Y| >= u) <= E|Y|^order / u^order for u > 0, where `moment` is E|Y|^order (U-chebyshev)."""
    u = check.positive("u", u)
    moment = check.nonnegative("moment", moment)
    order = check.positive("order", order)
    with np.errstate(divide="ignore"):
        return _probability(np.log(moment) - order * np.log(u))


def chernoff(u, log_mgf, limit=math.inf):
    """inf over 0 <= t < limit of exp(log_mgf(t) - t u), a bound on P(X >= u) (U-chernoff-method).

    `log_mgf` takes one float t and returns log E exp(tX), convex with value 0 at t = 0, finite for
    t < `limit` (infinity is taken as such). The search over t is numerical; whatever t it ends at
    gives a valid bound, and its rounding error (4 ulp of the two terms) is added.
    """
    u = check.real("u", u)
    limit = check.nonnegative_or_inf("limit", limit)
    exponents = [_legendre(log_mgf, value, limit) for value in np.ravel(u).tolist()]
    return _probability(np.reshape(exponents, np.shape(u)))


def _legendre(log_mgf, u, limit):
    """The least value found of log_mgf(t) - t u over 0 <= t < limit, rounded upwards."""

    def exponent(t):
        value = float(log_mgf(t))
        rounding = 4 * np.finfo(float).eps * (abs(value) + abs(t * u))
        return value - t * u + rounding if value < math.inf else math.inf

    def farther(t):
        return 2 * t if 2 * t < limit else t + (limit - t) / 2

    t = min(1.0, limit / 2)
    while exponent(t) >= 0:  # the function is convex and 0 at t = 0: is it ever negative?
        t /= 2
        if t < 1e-300:
            return 0.0
    while t < farther(t) < 1e300 and exponent(farther(t)) < exponent(t):
        t = farther(t)
    while exponent(t / 2) < exponent(t):
        t /= 2
    return _golden_section(exponent, t / 2, farther(t))


def _golden_section(function, low, high):
    """The least value seen of a convex function on [low, high]."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(45):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


def mills_upper(t):
    """P(X > t) < exp(-t^2/2) / (t sqrt(2 pi)) for a standard normal X and t > 0 (T-8, 6.3)."""
    t = check.positive("t", t)
    return _probability(-_half_square(t) - np.log(t) - math.log(2 * math.pi) / 2)


def mills_lower(t):
    """P(X > t) > t exp(-t^2/2) / ((1 + t^2) sqrt(2 pi)), the companion of `mills_upper` (T-8)."""
    t = check.positive("t", t)
    return check.plain(np.exp(-_half_square(t)) / (t + np.divide(1, t)) / math.sqrt(2 * math.pi))


def subgaussian_tail(u, sigma=1.0):
    """P(X - E X >= u) <= exp(-u^2 / (2 sigma^2)) for a sigma-subgaussian X, u >= 0 (U-subgaussian).

    With sigma = 1 it is the second bound of T-8 (6.5) for a standard normal variable.
    """
    u, sigma = check.nonnegative("u", u), check.positive("sigma", sigma)
    with np.errstate(over="ignore"):
        return _probability(-_half_square(np.divide(u, sigma)))


def subgaussian_bounded(low, high):
    """The sigma, (high - low)/2, of every variable in [low, high] (U-subgaussian-bounded)."""
    low, high = check.real("low", low), check.real("high", high)
    return check.positive("high - low", np.subtract(high, low)) / 2


def subgaussian_mean(sigma, n):
    """The sigma/sqrt(n) of a mean of n independent sigma-subgaussians (U-subgaussian-mean)."""
    return check.plain(check.positive("sigma", sigma) / np.sqrt(check.positive("n", n)))


def hoeffding(t, k, b):
    """P(L - E L >= t) <= exp(-t^2 / (2 k b^2)), L sums k independent |L_i| <= b, t >= 0 (T-13)."""
    k, b = check.positive("k", k), check.positive("b", b)
    return subgaussian_tail(t, np.sqrt(k) * b)


def hoeffding_deviation(beta, k, b):
    """The t = b sqrt(2 k log(1/beta)) at which `hoeffding` equals beta, 0 < beta <= 1 (T-13)."""
    beta = check.positive_probability("beta", beta)
    k, b = check.positive("k", k), check.positive("b", b)
    return check.plain(b * np.sqrt(2 * k * np.abs(np.log(beta))))


def azuma(t, k, b):
    """P(X_k - X_0 >= t) <= exp(-t^2 / (2 k b^2)), supermartingale, |steps| <= b, t >= 0 (T-15)."""
    return hoeffding(t, k, b)


def hoeffding_from_azuma(t, k, b):
    """Hoeffding's inequality as plain `azuma` gives it: exp(-t^2 / (8 k b^2)) (T-15)."""
    return azuma(t, k, 2 * check.positive("b", b))


def azuma_hoeffding(t, widths):
    """P(S >= t) <= exp(-2 t^2 / sum of widths^2), t >= 0 (U-martingale).

    S sums martingale differences; the i-th lies in an interval of length ``widths[..., i]``.
    """
    widths = np.atleast_1d(check.nonnegative("widths", widths))
    size = np.abs(widths).max(-1)  # scaled, so that squares neither overflow nor vanish
    total = size * np.sqrt(np.square(widths / np.where(size > 0, size, 1)[..., None]).sum(-1))
    return subgaussian_tail(t, check.positive("the sum of widths", total) / 2)


def chernoff_additive(a, n):
    """P(S >= mu + a) <= exp(-2 n a^2), S a mean of n independent [0,1] terms, mu = E S, a >= 0.

    The same bounds P(S <= mu - a) (F-chernoff-additive).
    """
    a, n = check.nonnegative("a", a), check.positive("n", n)
    return _probability(-2 * n * np.square(a))


def chernoff_kl(s, n, mu):
    """P(S >= s) <= exp(-n kl(s, mu)) for s >= mu, and P(S <= s) <= the same for s <= mu.

    S is the mean of n independent [0,1] terms, mu its expectation, kl the divergence of coins
    (F-chernoff-additive in its sharp form).
    """
    s, mu = check.probability("s", s), check.probability("mu", mu)
    n = check.positive("n", n)
    return _probability(-n * _kl_coins(np.asarray(s), np.asarray(mu)))


def _kl_coins(s, mu):
    """Divergence of two coins: two terms >= 0 that keep their precision at s near mu."""
    return _excess(s, mu, s - mu) + _excess(1 - s, 1 - mu, mu - s)


def _excess(s, mu, difference):
    """s log(s/mu) - s + mu, where `difference` is s - mu."""
    near = np.abs(difference) < mu
    x = np.where(near, difference / np.where(near, mu, 1), 0)
    return np.where(near, mu * (xlog1py(1 + x, x) - x), kl_div(s, mu))


def chernoff_above(a, n, mu):
    """P(S >= (1 + a) mu) <= exp(-n mu a^2 / max(3, 2 + a)), a >= 0 (F-chernoff-multiplicative).

    S is the mean of n independent [0,1] terms, mu its expectation. The maximum is 3 for a <= 1.
    """
    a, n = np.asarray(check.nonnegative("a", a)), check.positive("n", n)
    mu = np.asarray(check.positive_probability("mu", mu))
    return _probability(-n * mu * a * (a / np.maximum(3, 2 + a)))


def chernoff_below(a, n, mu):
    """P(S <= (1 - a) mu) <= exp(-n mu a^2 / 2), 0 <= a <= 1 (F-chernoff-multiplicative)."""
    a, mu = check.probability("a", a), np.asarray(check.probability("mu", mu))
    return _probability(-check.positive("n", n) * mu * np.square(a) / 2)


def stirling(n):
    """(lower, upper) bounds on log n!, n >= 1, less than 1/(144 n^2) apart (F-stirling)."""
    n = np.asarray(check.order("n", check.positive("n", n)))
    middle = np.log(2 * math.pi * n) / 2 + n * (np.log(n) - 1)
    return check.plain(middle + 1 / (12 * n + 1)), check.plain(middle + 1 / (12 * n))


def binomial_tail_lower(s, n, p):
    """P(S >= s) >= exp(-n kl(s, p)) / sqrt(8 n s (1 - s)) for S ~ Binomial(n, p)/n, 0 < s < 1.

    s n must be a whole number. Below p the same bounds P(S <= s) (X-chernoff-sharp).
    """
    s, p = np.asarray(check.open_probability("s", s)), np.asarray(check.open_probability("p", p))
    n = np.asarray(check.positive("n", n))
    return check.plain(np.exp(-n * _kl_coins(s, p) - np.log(8 * n * s * (1 - s)) / 2))


def pinsker(kl):
    """The l1 distance of two laws is at most sqrt(2 kl), kl their divergence (U-pinsker)."""
    return check.plain(np.sqrt(2 * np.asarray(check.nonnegative_or_inf("kl", kl))))


def bretagnolle_huber(kl):
    """The l1 distance is at most 2 sqrt(1 - exp(-kl)): never above 2 (Bretagnolle & Huber 1979)."""
    return check.plain(2 * np.sqrt(-np.expm1(-np.asarray(check.nonnegative_or_inf("kl", kl)))))


def _half_square(x):
    """x^2/2, held below overflow: exp(-1e299) is as small as any."""
    return np.square(np.minimum(x, 1e150)) / 2


def _probability(log_bound):
    """exp(log_bound), at most 1 and never a false 0."""
    bound = np.clip(np.exp(np.minimum(log_bound, 0.0)), _SMALLEST, 1.0)
    return check.plain(np.where(np.isneginf(log_bound), 0.0, bound))
