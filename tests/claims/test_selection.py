"""The claims of the chapter `selection`.

Samplers: seeds are fixed; a correct sampler fails one comparison with probability 1e-8, which is
below 1e-6 for the file, and a planted broken one fails for certain.
"""

import math
from functools import partial
from itertools import combinations_with_replacement, pairwise, permutations, product
from math import comb

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import softmax

import dpnotes as dp
from boxes import exp, for_all
from dpnotes.chapters import erm, selection
from evidence import at_most, claim, equal, holds, must_fail
from strategies import follows, same_draws, score_pairs


@claim("F-exponential", of=1.0, wrong=[2.0])
def test_the_law_of_the_exponential_mechanism(factor, rng):
    for epsilon, sensitivity in product((0.01, 1.0, 20.0), (0.1, 3.0)):
        u = rng.normal(size=(500, 6))
        law = selection.exponential_law(u, sensitivity, epsilon)
        equal(law, softmax(factor * epsilon * u / (2 * sensitivity), axis=-1), rtol=1e-9)
    far = selection.exponential_law([1e100, -1e100, 1e100], 1e-100, 1e3)
    equal(far, [0.5, 0.0, 0.5])


NOISES = ("laplace", "exponential", "gumbel")


@claim("F-exponential", "X-permute-and-flip", "F-3.9")
def test_samplers_follow_their_laws(rng):
    def check(sampler, law, factor, **options):  # a factor on the scale of the noise
        for u in ([0.0, 1.0, 3.0, 3.0], [5.0, -2.0, 4.0]):
            drawn = sampler(np.tile(u, (60_000, 1)), rng=rng, **options)
            follows(drawn, law(np.array(u) / factor, **options))
        assert sampler([0.0], rng=rng, **options) == 0

    def both(*case, **options):
        check(*case, 1.0, **options)
        must_fail(check, *case, 1.1, **options)

    both(selection.exponential, selection.exponential_law, sensitivity=2, epsilon=1.5)
    both(selection.permute_and_flip, selection.permute_and_flip_law, sensitivity=2, epsilon=1.5)
    for noise in NOISES:
        both(selection.noisy_max, selection.noisy_max_law, scale=2.0, noise=noise)


def test_what_the_samplers_return(rng):
    noisy_max = partial(selection.noisy_max, scale=1.0)
    for sampler in (selection.exponential, selection.permute_and_flip, noisy_max):
        assert type(sampler([0, 1e6], rng=rng)) is int and sampler([0, 1e6], rng=rng) == 1
        drawn = sampler(np.zeros((4, 3, 2)), rng=rng)
        assert drawn.shape == (4, 3) and drawn.dtype.kind == "i"


def losses(law, pair, *others, **also):
    p, q = (law(scores, *others, **also) for scores in pair)
    return np.log(p) - np.log(q)


@claim("F-3.10", of=1.0, wrong=[0.5])
def test_the_exponential_mechanism_costs_the_spread_and_no_more(sensitivity, rng):
    for epsilon, size in product((0.05, 1.0, 5.0), (2, 3, 12)):
        pair = score_pairs(rng, 500, size, 2.0)
        loss = losses(selection.exponential_law, pair, sensitivity, epsilon)
        at_most(np.abs(loss), epsilon, rtol=1e-9)
        rising = score_pairs(rng, 500, size, 1.0)  # monotone scores: weights exp(epsilon u)
        loss = losses(selection.exponential_law, rising, sensitivity / 2, epsilon)
        at_most(np.abs(loss), epsilon, rtol=1e-9)

    def needed(limit):  # without the factor 2: the example of the proof
        k = np.array([2, 10, 1000, 10**5])
        for epsilon in (0.1, 1.0, 3.0):
            for size in k:
                up = np.full(size, -1.0)
                up[0] = 1.0
                p, q = (selection.exponential_law(u, 0.5, epsilon) for u in (up, 0 * up))
                stated = 2 * epsilon - np.log1p(np.expm1(2 * epsilon) / size)
                equal(np.log(p[0] / q[0]), stated, rtol=1e-9)
            at_most(limit * epsilon, np.log(p[0] / q[0]))

    needed(1.98)
    must_fail(needed, 2.0)


@claim(
    "U-exp-utility",
    of=lambda b, k, tied, s, e: 2 * s / e * np.log(k / (tied * b)),
    wrong=[
        lambda b, k, tied, s, e: s / e * np.log(k / (tied * b)),
        lambda b, k, tied, s, e: 2 * s / e * np.log(1 / b),
    ],
)
def test_utility_of_the_exponential_mechanism(accuracy, rng):
    beta = np.logspace(-9, 0, 40)
    for epsilon, sensitivity in product((0.1, 1.0, 8.0), (0.5, 2.0)):
        for size, best in ((2, 1), (7, 3), (400, 1)):
            u = rng.integers(-60, 0, (60, size)).astype(float)
            u[:, :best] = 0.0
            u[:20, best:] = np.linspace(-60, -1e-3, 20)[:, None]  # all others tied
            best = (u == 0).sum(1)
            law = selection.exponential_law(u, sensitivity, epsilon)
            for row, p, tied in zip(u, law, best, strict=True):
                loss = accuracy(beta, size, int(tied), sensitivity, epsilon)
                at_most((p * (row <= -loss[:, None])).sum(1), beta, rtol=1e-9)


def law_by_quad(u, noise):
    """The law of the largest of the scores, each with such noise."""

    def density(z, r):
        return noise.pdf(z - u[r]) * np.prod(noise.cdf(z - np.delete(u, r)))

    pieces = list(pairwise([u.min() - 40, *sorted(u), u.max() + 40]))
    exact = {"epsabs": 1e-15, "epsrel": 1e-11}
    return [
        sum(integrate.quad(density, *ends, args=(r,), **exact)[0] for ends in pieces)
        for r in range(len(u))
    ]


@pytest.mark.slow
@claim("F-3.9")
def test_the_laws_of_report_noisy_max(rng):
    def check(law):  # against adaptive quadrature
        for size in (1, 2, 4):
            u = rng.normal(size=size) * 3
            equal(law(u, scale=1.0), law_by_quad(u, stats.laplace()), rtol=1e-9, atol=1e-13)

    check(selection.noisy_max_law)
    must_fail(check, lambda u, scale: selection.noisy_max_law(u, scale=scale, noise="gumbel"))
    for noise in NOISES:  # a law, the same for shifted scores, and with ties
        u = rng.normal(size=(150, 9)) * rng.exponential(10, (150, 1))
        u[::2, 3] = u[::2, 4]
        law = selection.noisy_max_law(u, scale=1.7, noise=noise)
        equal(law.sum(-1), 1.0)
        equal(law[::2, 3], law[::2, 4])
        equal(selection.noisy_max_law(u / 1.7 + 5, scale=1.0, noise=noise), law, rtol=1e-7)
    gap = np.linspace(0, 600, 100)  # two candidates: the tail of a difference, also far away
    two = selection.noisy_max_law(np.stack([0 * gap, -gap], -1), scale=1.0)
    equal(two[:, 1], np.exp(-gap) / 2 * (1 + gap / 2), rtol=1e-11)
    equal(selection.noisy_max_law([0, -1e9], scale=1.0), [1.0, 0.0])
    tied = selection.noisy_max_law(np.zeros(300), scale=1.0)
    equal(tied, 1 / 300, rtol=1e-11)


@claim("F-3.9", of=1.0, wrong=[2.0])  # 2: the careless use
def test_noisy_max_costs_the_spread_over_the_scale(spread, rng):
    for noise in NOISES:
        for scale, size in product((0.4, 1.0, 10.0), (2, 5)):
            pair = score_pairs(rng, 60, size, spread)
            loss = losses(selection.noisy_max_law, pair, scale=scale, noise=noise)
            at_most(np.abs(loss), 1 / scale, rtol=1e-9)

    def careless(limit):  # scores of sensitivity 1, Lap(1/epsilon): nearly 2 epsilon
        for epsilon in (0.2, 1.0, 3.0):
            gap = np.array([2.0, 10.0, 600.0 / max(epsilon, 1)])
            x, y = np.stack([0 * gap, gap], -1), np.stack([0 * gap + 1, gap - 1], -1)
            p, q = (selection.noisy_max_law(u, scale=1 / epsilon)[:, 0] for u in (x, y))
            stated = np.log((1 + epsilon * (gap - 2) / 2) / (1 + epsilon * gap / 2))
            equal(np.log(q / p), 2 * epsilon + stated, rtol=1e-9)
            at_most(limit * epsilon, np.log(q / p)[-1])

    careless(1.9)
    must_fail(careless, 2.0)


@claim(
    "F-3.9",
    of=[stats.laplace(), stats.expon(), stats.gumbel_r()],
    wrong=[[stats.norm()], [stats.laplace(scale=0.9)]],
)
def test_the_tails_of_the_three_noises(laws):
    z = np.linspace(-30, 30, 4001)
    for law in laws:
        holds(np.diff(law.logsf(z) + z) >= -1e-12)


@claim("X-permute-and-flip")
def test_permute_and_flip_between_two_candidates_everywhere():
    """The chance of the worse one, at a gap of g."""

    def computed(law):
        return lambda g: [law([0.0, 2 * x])[0] for x in g]

    flip = (computed(selection.permute_and_flip_law), lambda g: exp(-g) / 2)
    box = {"g": (0.01, 50)}

    def exponential(g):
        return 1 / (1 + exp(g))

    for_all(
        r"Permute and flip errs less: $\frac12 e^{-g} \le \frac1{1 + e^g}$",
        flip,
        (computed(selection.exponential_law), exponential),
        box,
        too_high=[lambda g: 0.6 * exp(-g)],
    )
    for_all(
        r"at most twice as well: $\frac1{1 + e^g} \le e^{-g}$",
        exponential,
        lambda g: 2 * flip[1](g),
        box,
        too_low=[lambda g: 1.9 * flip[1](g)],
    )


def flip_law_by_orders(p):
    """The law of permute and flip by all orders of the candidates."""
    law = np.zeros(len(p))
    for order in (orders := list(permutations(range(len(p))))):
        alive = 1.0
        for r in order:
            law[r] += alive * p[r] / len(orders)
            alive *= 1 - p[r]
    return law


@claim("X-permute-and-flip", of=selection.permute_and_flip_law, wrong=[selection.exponential_law])
def test_permute_and_flip_is_noisy_max_with_exponential_noise(law, rng):
    for size in range(1, 7):
        for _ in range(8):
            u = rng.normal(size=size) * 2
            u[rng.integers(size)] = u[0]
            equal(law(u, 0.5, 1.0), flip_law_by_orders(np.exp(u - u.max())), rtol=1e-11)
    for _ in range(2):
        u = rng.normal(size=4) * 2
        equal(law(u, 0.5, 1.0), law_by_quad(u, stats.expon()), rtol=1e-9)
    equal(selection.permute_and_flip_law(np.zeros(999)), 1 / 999, rtol=1e-10)


@claim(
    "X-permute-and-flip",
    of=(selection.permute_and_flip_law, 0.5),
    wrong=[
        (selection.permute_and_flip_law, 0.6),
        (lambda u, s, e: selection.noisy_max_law(u, scale=2 * s / e), 0.5),
    ],
)
def test_permute_and_flip_against_exponential(law, least, rng):
    for size in (2, 3, 8, 40):
        u = np.sort(rng.normal(size=(400, size)) * rng.exponential(4, (400, 1)), axis=1)
        u[::3, -2] = u[::3, -1]
        flip, base = law(u, 0.5, 1.0), selection.exponential_law(u, 0.5, 1.0)
        # all non-decreasing functions at once: the chance of a score below any threshold
        at_most(np.cumsum(flip, 1)[:, :-1], np.cumsum(base, 1)[:, :-1], rtol=1e-10)
        error = [(one * (u.max(1, keepdims=True) - u)).sum(1) for one in (flip, base)]
        at_most(error[0], error[1], rtol=1e-10, atol=1e-300)
        at_most(least * base, flip, rtol=1e-10)

    def private(spread):
        pair = score_pairs(rng, 800, 5, spread)
        loss = losses(selection.permute_and_flip_law, pair, 1.0, 1.5)
        at_most(np.abs(loss), 1.5, rtol=1e-9)

    private(2.0)
    must_fail(private, 2.5)


@claim("X-private-median", of=1.0, wrong=[2 / 1.9])
def test_the_private_geometric_median(factor, rng):
    def law(points, candidates, epsilon):
        return selection.exponential_law(
            -erm.distance_loss(candidates, points).sum(-1), 2.0, epsilon
        )

    for epsilon in (0.2, 1.0, 5.0):
        for _ in range(30):
            x = dp.clip_rows(rng.normal(size=(6, 2)))
            candidates = rng.uniform(-1, 1, (50, 2))
            other = x.copy()
            other[0] = -x[0] / np.linalg.norm(x[0])
            one, two = (law(points, candidates, factor * epsilon) for points in (x, other))
            at_most(np.abs(np.log(one / two)), epsilon)
        many = np.r_[1.0, np.full(100_000, -1.0)][:, None]  # nearly attained
        one, two = (law(np.array([[v]]), many, factor * epsilon)[0] for v in (1.0, -1.0))
        at_most(np.log(one / two), epsilon)
        at_most(0.99 * epsilon, np.log(one / two))


@claim("U-smalldb")
def test_small_db_draws_from_its_law_seed_by_seed(rng):
    """The same seeds, and the law of the page: a wrong epsilon changes what is drawn."""
    queries, histogram = rng.random((5, 4)), np.array([9, 4, 0, 7])

    def small(epsilon, rng):
        databases, law = selection.small_db_law(histogram, queries, 3, epsilon=epsilon)
        return databases[rng.choice(len(law), p=law)]

    def drawn(rng):
        return selection.small_db(histogram, queries, 3, epsilon=1.7, rng=rng)

    same_draws(drawn, small, 1.7)
    must_fail(same_draws, drawn, small, 1.1 * 1.7)


@claim("U-smalldb", of=(0.5, 1.0), wrong=[(0.5, 4.0), (1.0, 1.0)])
def test_small_db_is_an_exponential_mechanism(power, factor, rng):
    histogram = np.array([9, 4, 0, 7])
    queries = rng.random((5, 4))
    databases, law = selection.small_db_law(histogram, queries, 3, epsilon=1.7)
    listed = [np.bincount(c, minlength=4) for c in combinations_with_replacement(range(4), 3)]
    equal(sorted((3 * databases).round().tolist()), sorted(np.array(listed).tolist()))

    error = np.abs((databases - histogram / 20) @ queries.T).max(1)
    equal(law, softmax(-power * 20 * error * 1.7), rtol=1e-9)
    # every neighbour under replace
    _, here = selection.small_db_law(histogram, queries, 3, epsilon=factor * 1.7)
    for i, j in product(range(4), repeat=2):
        if i != j and histogram[i]:
            moved = histogram - np.eye(4, dtype=int)[i] + np.eye(4, dtype=int)[j]
            there = selection.small_db_law(moved, queries, 3, epsilon=factor * 1.7)[1]
            at_most(np.abs(np.log(here / there)), 1.7)


@claim("U-smalldb", of=1.0, wrong=[0.4])
def test_small_databases_approximate_and_small_db_finds_one(shrink, rng):
    for rows, universe in product((1, 2, 3, 6), (2, 4)):
        yes_or_no = np.array(list(product((0.0, 1.0), repeat=universe)))
        for queries in (yes_or_no, rng.random((2, universe)), np.eye(universe)):
            for n in (1, 7, 300):
                histogram = rng.multinomial(n, rng.dirichlet(np.full(universe, 0.5)))
                databases, law = selection.small_db_law(histogram, queries, rows, epsilon=1.3)
                error = np.abs((databases - histogram / n) @ queries.T).max(1)
                sampled = np.sqrt(np.log(len(queries)) / rows)  # a, with rows = ln|Q|/a^2
                at_most(error.min(), shrink * sampled)
                for beta in (1.0, 0.3, 1e-3):
                    bound = selection.small_db_accuracy(beta, n, universe, len(queries), rows, 1.3)
                    at_most(law[error > shrink * bound * (1 + 1e-12)].sum(), beta)


@claim("U-smalldb", of=1 / 3, wrong=[1 / 2])
def test_the_combined_guarantee_of_small_db(power, rng):
    n, universe = 10 ** rng.uniform(0, 8, 600), 2 ** rng.integers(1, 30, 600)
    queries, epsilon = rng.integers(2, 10**6, 600), 10 ** rng.uniform(-2, 1, 600)
    beta = 10 ** rng.uniform(-6, 0, 600)
    logs = np.log(universe) * np.log(queries)
    a = (4 * logs / (epsilon * np.floor(n))) ** power
    rows = np.ceil(np.log(queries) / a**2)
    stated = 1.5 * a + 2 / (epsilon * np.floor(n)) * (np.log(universe) - np.log(beta))
    deltas = [
        selection.small_db_accuracy(*each)
        for each in zip(beta, np.floor(n), universe, queries, rows, epsilon, strict=True)
    ]
    at_most(deltas, stated, rtol=1e-9)


@claim("U-smalldb", of=2.0, wrong=[1.9])
def test_accuracy_of_small_db(factor):
    for n, universe, k, rows in ((10**5, 8, 26, 12), (10**7, 1024, 500, 40)):
        databases = comb(universe + rows - 1, rows)
        paid = factor * (math.log(databases) + math.log(20)) / (0.9 * n)
        stated = np.sqrt(np.log(k) / rows) + paid
        equal(selection.small_db_accuracy(0.05, n, universe, k, rows, 0.9), stated, rtol=1e-11)
