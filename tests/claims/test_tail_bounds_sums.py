"""The claims of `tail-bounds` on sums and martingales, against exact laws."""

import math
from functools import reduce
from itertools import product

import mpmath
import numpy as np
from scipy import stats

from boxes import cosh, exp, for_all, log1p, sinh
from dpnotes.chapters import tail_bounds
from evidence import at_most, claim, equal, holds, must_fail, slip


@claim(
    "F-chernoff-additive",
    of=tail_bounds.chernoff_kl,
    wrong=[
        lambda t, n, mu: tail_bounds.chernoff_kl(t, 1.02 * n, mu),
        lambda t, n, mu: tail_bounds.chernoff_kl(mu, n, t),  # the arguments swapped
    ],
)
def test_the_sharp_form_of_the_additive_bound(bound, rng):
    """Exact laws of sums of n variables with values 0, 1/4, ..., 1, some of them nearly coins."""
    for n, spread in product((1, 2, 5, 20, 60), (0.01, 0.1, 1.0)):
        for _ in range(13):
            laws = rng.dirichlet(np.full(5, spread), n)
            law, mu = reduce(np.convolve, laws), (laws @ np.arange(5)).mean() / 4
            t, above, below = np.arange(law.size) / (4 * n), law[::-1].cumsum()[::-1], law.cumsum()
            at_most(above[t >= mu], bound(t[t >= mu], n, mu), rtol=1e-11)
            at_most(below[t <= mu], bound(t[t <= mu], n, mu), rtol=1e-11)
    t, mu = rng.random(2000), rng.random(2000)
    at_most(bound(t, 50, mu), np.exp(-2 * 50 * (t - mu) ** 2))
    for gap in (1e-3, 1e-5, 1e-7):  # huge n, s near mu: the exponent keeps its precision
        with mpmath.workdps(50):
            at, centre, n = mpmath.mpf(0.3 + gap), mpmath.mpf(0.3), 0.1 / gap**2
            kl = at * mpmath.log(at / centre) + (1 - at) * mpmath.log((1 - at) / (1 - centre))
            exact = float(mpmath.exp(-n * kl))
        equal(bound(0.3 + gap, n, 0.3), exact, rtol=1e-9)
    equal(bound([0.1, 0.0], 10, 0.0), [0.0, 1.0])
    missed = sum(math.comb(100, heads) for heads in range(101) if abs(heads - 50) >= 10) / 2**100
    at_most(missed, 2 * bound(0.6, 100, 0.5))
    slip(
        "F-chernoff-additive",
        "100 fair coins: their mean, which we see, misses the expectation by 0.1 or more with "
        f"probability {missed:.4f}: it is the mean that estimates the expectation",
    )


@claim("F-chernoff-multiplicative")
def test_multiplicative_chernoff_bounds_everywhere():
    """n kl((1+a) mu, mu) >= n mu ((1+a) log(1+a) - a): here n mu = 1, others are powers. Up to
    a = 1 the bound with a^2/3 is weaker, since 2 + a <= 3."""

    def poisson(a):
        return exp(a - (1 + a) * log1p(a))

    for_all(
        r"Above: $e^{a - (1+a)\ln(1+a)} \le e^{-a^2/(2+a)}$",
        poisson,
        lambda a: exp(-a * a / (2 + a)),
        {"a": (0, 100)},
        touch=3 * (0,),
        too_low=[lambda a: exp(-a * a / (1.99 + a)), lambda a: exp(-a * a / 2)],
    )
    for_all(
        r"Below: $e^{-a - (1-a)\ln(1-a)} \le e^{-a^2/2}$",
        lambda a: poisson(-a),
        lambda a: exp(-a * a / 2),
        {"a": (0, 0.9999)},
        touch=3 * (0,),
        too_low=[lambda a: exp(-a * a / 1.99)],
    )


@claim("F-chernoff-multiplicative")
def test_a_third_is_false_for_large_deviations():
    """Beyond a = 1.8: 900 where 300 are expected."""
    log_tail = stats.binom.logsf(899, 10**6, 3e-4)
    holds([log_tail > -300 * 2**2 / 3, log_tail < -300 * 2**2 / (2 + 2)])


def azuma(t, widths):
    """The bound of a martingale whose steps lie in intervals of these widths."""
    return np.exp(-2 * t * t / (widths**2).sum())


@claim("T-15")
def test_a_step_of_azumas_inequality_everywhere():
    """A step D in [-1, 1] of mean m <= 0: e^(tD) lies below its chord."""
    for_all(
        r"$\E e^{tD} e^{-t^2} \le (\cosh t + m\sinh t)e^{-t^2} \le e^{-t^2/2}$ for $\E D = m$",
        lambda t, m: (cosh(t) + m * sinh(t)) * exp(-t * t),
        lambda t, m: exp(-t * t / 2),
        {"t": (1e-6, 25), "m": (-1, 0)},
        too_high=[lambda t, m: (cosh(t) + (m + 0.1) * sinh(t)) * exp(-t * t)],
        too_low=[lambda t, m: exp(-0.7 * t * t)],
    )


@claim("T-15", "U-martingale")
def test_what_azumas_inequality_does_not_say():
    b = np.full(7, 0.6)  # it bounds centred terms, which lie in [-2b, 2b]
    equal(azuma(2.5, 4 * b), np.exp(-(2.5**2) / (8 * 7 * 0.6**2)))

    printed = math.exp(-((-1) ** 2) / 2)  # X constant, k = b = 1, t = -1
    assert 1 > printed
    slip(
        "T-15", f"X₀ = X₁, b = 1, t = −1: P(X₁ − X₀ ≥ −1) = 1, but exp(−t²/(2kb²)) = {printed:.4f}"
    )
    printed = math.exp(-2 * 1.0**2 / 2**2)
    assert 1 > printed
    slip(
        "U-martingale",
        "without a_i ≤ X_i ≤ b_i and ε ≥ 0 the display is false: X₁ = ±1 by a fair coin, ε = −1 "
        f"gives P(S₁ ≥ −1) = 1 against exp(−2/4) = {printed:.4f}",
    )


@claim("T-15")
def test_the_present_is_not_enough_for_the_highest_point():
    # three equally likely paths; given the position, the next step has mean <= 0 at each time
    def check(steps, place):
        paths = np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1)
        drift = [steps[paths[:, i] == x, i].mean() for i in range(5) for x in paths[:, i]]
        at_most(drift, 0.0)
        at_most((place(paths) >= 1).mean(), azuma(1.0, np.full(5, 2.0)))

    steps = np.array([[1, -1, -1, -1, -1], [0, 0, 1, -1, -1], [-1, 0, 0, 1, 1]], float)
    check(steps, lambda paths: paths[:, -1])
    must_fail(check, steps, lambda paths: paths.max(axis=1))
    must_fail(check, -steps, lambda paths: paths[:, -1])


def best_gambler(ranges):
    """Largest P(X_k - X_0 >= t), t = 0, 1, ..., over all fair steps i in [-low, high], one range
    (low, high) a round."""
    edge = sum(map(max, ranges)) + np.max(ranges)
    value = (np.arange(-edge, edge + 1) >= 0).astype(float)
    for low, high in ranges:
        best, m = value.copy(), max(low, high)
        for down, up in product(range(1, low + 1), range(1, high + 1)):
            fallen, risen = value[m - down : -m - down], value[m + up : value.size - m + up]
            best[m:-m] = np.maximum(best[m:-m], (up * fallen + down * risen) / (up + down))
        value = best
    return value[edge::-1][: sum(high for _, high in ranges) + 1]


@claim(
    "T-15",
    "U-martingale",
    of=azuma,
    wrong=[
        lambda t, widths: azuma(t, widths) ** 1.5,
        lambda t, widths: azuma(t, widths / 2),  # b in place of 2b
        lambda t, widths: azuma(t, np.full(widths.size, widths.mean())),
    ],
)
def test_no_gambler_beats_azuma(bound):
    for ranges in ([(1, 6), (3, 3), (5, 2), (2, 7)] * 3, [(4, 1)] * 10, [(9, 9)] + [(1, 1)] * 9):
        best = best_gambler(ranges)
        at_most(best, bound(np.arange(best.size), np.sum(ranges, axis=1)), rtol=1e-11)
    for k, m in ((1, 8), (3, 5), (9, 4), (25, 6), (60, 2)):
        best = best_gambler([(m, m)] * k)
        at_most(best, bound(np.arange(best.size), np.full(k, 2 * m)), rtol=1e-11)
        heads = np.arange((k + 1) // 2, k + 1)  # stop on arrival at t = 2 heads - k
        arrive = 2 * stats.binom.sf(heads, k, 0.5) + stats.binom.pmf(heads, k, 0.5)
        ends = 2 * heads - k
        equal(best[ends * m], arrive, rtol=1e-9)
        at_most(best[ends * m], 2 * stats.binom.sf(heads - 1, k, 0.5))


@claim("X-chernoff-sharp", of=1.0, wrong=[1.02, 8.0])
def test_chernoff_loses_a_square_root(factor, rng):
    def lower(t, n, p):
        return factor * tail_bounds.chernoff_kl(t, n, p) / np.sqrt(8 * n * t * (1 - t))

    for n in (2, 3, 5, 10, 30, 100, 1000):
        for p in rng.random(20):
            hits = np.arange(1, n)
            t, exact = hits / n, stats.binom.pmf(hits, n, p)
            keep = exact > 1e-280
            at_most(lower(t, n, p)[keep], exact[keep], rtol=1e-10)
    p = rng.random(50)
    equal(lower(0.5, 2, p), 2 * p * (1 - p))  # attained at one hit in two
    for n in (10, 100, 1000):  # what Chernoff loses, measured on the tail
        for p in (0.01, 0.3, 0.5):
            hits = np.arange(max(1, math.ceil(n * p)), n)
            exact = stats.binom.sf(hits - 1, n, p)
            keep = exact > 1e-280
            t, exact = hits[keep] / n, exact[keep]
            lost = tail_bounds.chernoff_kl(t, n, p) / exact
            at_most(1.0, lost, rtol=1e-10)
            at_most(lost, np.sqrt(8 * n * t * (1 - t)), rtol=1e-10)
