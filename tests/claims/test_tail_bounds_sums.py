"""The claims of `tail-bounds` and `more-tails` on sums and martingales, against exact laws."""

import math

import mpmath
import numpy as np
from scipy import stats

from boxes import cosh, exp, for_all, log1p, sinh
from dpnotes.chapters import tail_bounds
from evidence import at_most, claim, equal, holds, must_fail, slip
from rounds import falling_tail


def sum_law(laws):
    """Law of a sum of independent variables with values 0, 1, 2, ..."""
    total = np.ones(1)
    for law in laws:
        total = np.convolve(total, law)
    return total


def random_sums(rng, count, n):
    """Exact laws of sums of n independent variables with values 0, 1/4, ..., 1, and their means."""
    steps = np.arange(5) / 4
    for _ in range(count):
        laws = rng.dirichlet(np.full(5, rng.choice([0.1, 0.3, 1.0])), n)
        if rng.random() < 0.5:  # coins
            heads = rng.random(n) * rng.choice([0.1, 1.0])
            laws = np.stack([1 - heads, 0 * heads, 0 * heads, 0 * heads, heads], axis=-1)
        law = sum_law(laws)
        yield law, (laws @ steps).mean(), np.arange(law.size) / (4 * n)


@claim(
    "F-chernoff-additive",
    of=tail_bounds.chernoff_kl,
    wrong=[
        lambda t, n, mu: tail_bounds.chernoff_kl(t, 1.02 * n, mu),
        lambda t, n, mu: tail_bounds.chernoff_kl(mu, n, t),  # the arguments swapped
    ],
)
def test_the_sharp_form_of_the_additive_bound(bound, rng):
    for n in (1, 2, 5, 20, 60):
        for law, mu, t in random_sums(rng, 40, n):
            above, below = law[::-1].cumsum()[::-1], law.cumsum()
            up, down = t >= mu, t <= mu
            at_most(above[up], bound(t[up], n, mu), rtol=1e-11)
            at_most(below[down], bound(t[down], n, mu), rtol=1e-11)
    t, mu = rng.random(2000), rng.random(2000)
    at_most(bound(t, 50, mu), np.exp(-2 * 50 * (t - mu) ** 2))
    for gap in (1e-3, 1e-5, 1e-7):  # huge n, s near mu: the exponent keeps its precision
        with mpmath.workdps(50):
            at, centre, n = mpmath.mpf(0.3 + gap), mpmath.mpf(0.3), 0.1 / gap**2
            kl = at * mpmath.log(at / centre) + (1 - at) * mpmath.log((1 - at) / (1 - centre))
            exact = float(mpmath.exp(-n * kl))
        equal(bound(0.3 + gap, n, 0.3), exact, rtol=1e-9)
    equal(bound([0.1, 0.0], 10, 0.0), [0.0, 1.0])


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


def grow(rng, trees, depth, law):
    """Random trees: every node has its own law(rng, shape, level) of three steps.

    The ends of all paths of each tree, their weights, and for every node the mean of its steps.
    """
    ends, weights, drift = np.zeros((trees, 1)), np.ones((trees, 1)), []
    for level in range(depth):
        steps, chances = law(rng, ends.shape, level)
        drift.append((steps * chances).sum(-1).ravel())
        ends = (ends[..., None] + steps).reshape(trees, -1)
        weights = (weights[..., None] * chances).reshape(trees, -1)
    return ends, weights, np.concatenate(drift)


def fair_steps(low, high):
    """Steps in [low[i], high[i]] at level i, with mean 0: two opposite ones, and none."""

    def law(rng, shape, level):
        down, up = low[level] * rng.random(shape), high[level] * rng.random(shape)
        at_ends = rng.random(shape) < 0.7
        down, up = np.where(at_ends, low[level], down), np.where(at_ends, high[level], up)
        move = rng.random(shape) ** 0.2
        chances = np.stack([move * up, move * -down, (1 - move) * (up - down)], axis=-1)
        return np.stack([down, up, 0 * up], axis=-1), chances / (up - down)[..., None]

    return law


def azuma(t, k, b):
    return np.exp(-t * t / (2 * k * b * b))


@claim(
    "U-martingale",
    of=lambda t, widths: np.exp(-2 * t * t / np.sum(widths**2)),
    wrong=[lambda t, widths: np.exp(-8 * t * t / np.sum(widths**2))],  # half the widths
)
def test_azuma_hoeffding(bound, rng):
    for depth in (1, 2, 4, 7):
        for _ in range(5):
            low, high = -np.exp(rng.normal(size=depth)), np.exp(rng.normal(size=depth))
            ends, weights, drift = grow(rng, 8, depth, fair_steps(low, high))
            equal(drift, 0.0, atol=1e-12)
            for side in (1, -1):
                at, exact = falling_tail(side * ends, weights)
                at_most(exact[at >= 0], bound(at[at >= 0], high - low), rtol=1e-11)
    t = rng.exponential(size=500)
    equal(bound(t, np.full(9, 0.6)), azuma(t, 9, 0.3), rtol=1e-11)

    printed = math.exp(-2 * 1.0**2 / 2**2)
    assert 1 > printed
    slip(
        "U-martingale",
        "without a_i ≤ X_i ≤ b_i and ε ≥ 0 the display is false: X₁ = ±1 by a fair coin, ε = −1 "
        f"gives P(S₁ ≥ −1) = 1 against exp(−2/4) = {printed:.4f}",
    )


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


@claim("T-15")
def test_azuma_is_weaker_than_hoeffdings_bound():
    equal(azuma(2.5, 7, 2 * 0.6), np.exp(-(2.5**2) / (8 * 7 * 0.6**2)))  # of centred terms

    printed = math.exp(-((-1) ** 2) / 2)  # X constant, k = b = 1, t = -1
    assert 1 > printed
    slip(
        "T-15", f"X₀ = X₁, b = 1, t = −1: P(X₁ − X₀ ≥ −1) = 1, but exp(−t²/(2kb²)) = {printed:.4f}"
    )


@claim("T-15")
def test_the_present_is_not_enough_for_the_highest_point():
    # three equally likely paths; given the position, the next step has mean <= 0 at each time
    def check(steps, place):
        paths = np.cumsum(np.pad(steps, ((0, 0), (1, 0))), axis=1)
        drift = [steps[paths[:, i] == x, i].mean() for i in range(5) for x in paths[:, i]]
        at_most(drift, 0.0)
        at_most((place(paths) >= 1).mean(), azuma(1.0, 5, 1.0))

    steps = np.array([[1, -1, -1, -1, -1], [0, 0, 1, -1, -1], [-1, 0, 0, 1, 1]], float)
    check(steps, lambda paths: paths[:, -1])
    must_fail(check, steps, lambda paths: paths.max(axis=1))
    must_fail(check, -steps, lambda paths: paths[:, -1])


def best_gambler(k, m):
    """Largest P(X_k - X_0 >= j/m), j = 0 ... k m, over all fair steps i/m in [-1, 1]."""
    edge = (k + 1) * m
    value = (np.arange(-edge, edge + 1) >= 0).astype(float)
    for _ in range(k):
        best = value.copy()
        for down in range(1, m + 1):
            for up in range(1, m + 1):
                low, high = value[m - down : -m - down], value[m + up : value.size - m + up]
                best[m:-m] = np.maximum(best[m:-m], (up * low + down * high) / (up + down))
        value = best
    return value[edge::-1][: k * m + 1]


@claim(
    "T-15",
    of=azuma,
    wrong=[
        lambda t, k, b: azuma(t, k, b) ** 1.5,
        lambda t, k, b: azuma(t, k, b / 2),  # width b, not 2b
    ],
)
def test_no_gambler_beats_azuma(bound):
    for k, m in ((1, 8), (3, 5), (9, 4), (25, 6), (60, 2)):
        best, t = best_gambler(k, m), np.arange(k * m + 1) / m
        at_most(best, bound(t, k, 1.0), rtol=1e-11)
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
