"""The claims of the chapter `query-release`."""

from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import special
from scipy.stats import binom

import dpnotes as dp
from dpnotes.chapters import composition, selection
from dpnotes.chapters import query_release as release
from evidence import at_most, claim, equal, holds, must_fail, slip
from strategies import same_draws, slowly, together


def patterns(length, count):
    """All rows of reports of so many answers that stop at the `count`-th above."""
    rows = np.array(list(product([0.0, 1.0], repeat=length)))
    before = np.cumsum(rows, axis=1) - rows
    rows = np.where(before < count, rows, 9.0)  # NaN, but sortable
    rows = np.unique(rows, axis=0)
    return np.where(rows == 9, np.nan, rows)


def neighbours(rng, length):
    """Random answers, and others that differ by at most 1 in each place."""
    x = rng.normal(0, 1.5, length)
    return x, x + rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], length)


@claim(
    "F-svt",
    of=release.sparse_epsilon,
    wrong=[
        lambda noise: release.sparse_epsilon(replace(noise, query_scale=4.0)) / 2,
        lambda noise: release.sparse_epsilon(noise) - 1 / noise.threshold_scale,
    ],
)
def test_reports_are_private_whatever_the_answers_are(epsilon, rng):
    for count, b1, b2 in ((1, 2.0, 4.0), (2, 0.5, 3.0), (1, 5.0, 0.7), (3, 1.0, 2.0)):
        for refresh in (None, 2 * b1):
            noise, rows = release.SparseVector(b1, b2, refresh, count), patterns(3, count)
            for _ in range(4):
                x, y = neighbours(rng, 3)
                p, q = (release.sparse_log_law(noise, z, rows) for z in (x, y))
                equal([np.exp(p).sum(), np.exp(q).sum()], 1, rtol=1e-11)
                at_most(np.abs(p - q), epsilon(noise), rtol=1e-10)


@claim(
    "F-svt",
    of=release.sparse_epsilon,
    wrong=[
        lambda noise: 0.999 * release.sparse_epsilon(noise),
        lambda noise: 1.001 * release.sparse_epsilon(noise),
    ],
)
def test_no_smaller_epsilon_holds_for_long_streams(epsilon):
    """The worst stream: m answers below, then `count` above."""
    for count, b1, b2 in ((1, 2.0, 4.0), (2, 1.0, 1.0), (5, 3.0, 2.0), (1, 0.3, 0.5)):
        noise, spent = release.SparseVector(b1, b2, None, count), []
        for m in (10, 300, 20_000):
            reports, y = (np.repeat(pair, (m, count)) for pair in ([0.0, 1.0], [1.0, -1.0]))
            p, q = (release.sparse_log_law(noise, z, reports) for z in (0 * y, y))
            spent.append(p - q)
        at_most(spent, epsilon(noise), rtol=1e-9)
        equal(spent[-1], epsilon(noise), rtol=1e-6)


@claim("F-svt")
def test_the_samplers_have_the_exact_laws():
    # each count is binomial; all of them together raise a false alarm with probability <= 1e-6
    answers, threshold, runs = np.array([0.3, -0.5, 1.0]), 0.2, 400_000

    def check(noise, sampled):
        rows, rng = patterns(3, noise.count), np.random.default_rng(3)
        law = np.exp(release.sparse_log_law(noise, answers, rows, threshold))
        reports = release.sparse_runs(sampled, answers, threshold, runs=runs, rng=rng)
        same = (reports[:, None] == rows) | (np.isnan(reports)[:, None] & np.isnan(rows))
        seen, level = same.all(-1).sum(0), 1e-6 / 100
        holds((binom.ppf(level, runs, law) <= seen) & (seen <= binom.ppf(1 - level, runs, law)))

    variants = [v for v in release.lyu_variants(1.5, 2).values() if not v.shows_answer]
    for noise in [*variants, release.sparse_rounds(2.0, 2, 1e-6)]:
        check(noise, noise)
        must_fail(check, noise, replace(noise, threshold_scale=3 * noise.threshold_scale))
    two = release.sparse_rounds(1.5, 2)
    for refresh in (None, 1.3 * two.refresh_scale):
        must_fail(check, two, replace(two, refresh_scale=refresh))


def sparse_accuracy(noise, k, beta):
    """No report about k answers is off by more, but for chance beta, with one threshold noise."""
    return noise.threshold_scale * np.log(2 / beta) + noise.query_scale * np.log(2 * k / beta)


@claim(
    "F-svt",
    of=sparse_accuracy,
    wrong=[lambda noise, k, beta: 0.5 * sparse_accuracy(noise, k, beta)],
)
def test_reports_are_right_up_to_alpha(accuracy):
    for epsilon, k, beta in product((0.3, 2.0), (1, 30, 3000), (1e-6, 0.05, 0.5)):
        noise = release.sparse_rounds(epsilon)
        alpha = accuracy(noise, k, beta)
        false = -np.expm1(release.sparse_log_law(noise, np.full(k, -alpha), np.zeros(k)))
        missed = np.exp(release.sparse_log_law(noise, [alpha], [0.0]))
        at_most([false, missed], beta)
        at_most(alpha, 6 / epsilon * np.log(2 * k / beta))
        at_most(alpha, 8 / epsilon * (np.log(k) + np.log(2 / beta)))  # Dwork and Roth


@claim("F-svt", of=[1.0, -1.0], wrong=[[1.0, 0.0]])
def test_rounds_add_up_to_the_budget(stream):
    for epsilon, c in product((0.1, 1.0, 4.0), (1, 7, 200)):
        equal(release.sparse_epsilon(release.sparse_rounds(epsilon, c)), epsilon)
        noise = release.sparse_rounds(epsilon, c, 1e-6)
        each = release.sparse_epsilon(noise) / c
        advanced = c * each**2 / 2 + each * np.sqrt(2 * c * np.log(1e6))
        equal(np.minimum(advanced, c * each), epsilon, rtol=1e-9)
    noise = release.sparse_rounds(1.0, 3)
    reports = np.tile(np.repeat([0.0, 1.0], (4000, 1)), 3)
    y = np.tile(np.repeat(stream, (4000, 1)), 3)
    p, q = (release.sparse_log_law(noise, z, reports) for z in (0 * y, y))
    equal(p - q, 1.0, rtol=1e-3)


@claim("F-svt")
def test_what_the_six_variants_keep_of_their_promise():
    variants = list(release.lyu_variants(1.0, 2).values())
    first, _, third, _, fifth, sixth = variants
    spent = [release.sparse_epsilon(noise) for noise in variants]
    equal(spent, [1, 1, np.inf, (1 + 6 * 2) / 4, np.inf, np.inf])
    m = np.array([1, 3, 10, 40])

    def no_bound(noise, least):  # the losses of the proofs, which grow without end
        loss = []
        for size in m:
            reports = np.repeat([-np.inf, 0.0] if noise.shows_answer else [0.0, 1.0], size)
            length = size + (1 if noise.shows_answer else size)
            pair = np.zeros(2 * size), np.repeat([1.0, -1.0], size)
            p, q = (release.sparse_log_law(noise, z[:length], reports[:length]) for z in pair)
            loss.append(p - q)
        at_most(least, loss, rtol=1e-9)

    no_bound(replace(third, count=1), (m - 1) / 4)  # b = 2c/epsilon = 4
    no_bound(sixth, m / 2)  # b = 2/epsilon
    must_fail(no_bound, replace(first, count=100), m / 2)
    p, q = (release.sparse_log_law(fifth, z, [0.0, 1.0]) for z in ([0.0, 1.0], [1.0, 0.0]))
    equal(np.exp(p), (1 - np.exp(-0.5)) / 2)  # 0 < rho <= 1
    holds(q == -np.inf)


@claim("U-pmw", of=lambda found: found, wrong=[lambda found: 1.001 * found])
def test_accuracies_are_the_formulas_of_the_page(change):
    for n, size, k, delta in ((10**4, 10, 50, 0.0), (10**6, 10**5, 10**4, 1e-6)):
        plan = release.weights_plan(n, size, k, epsilon=0.7, delta=delta, beta=0.02)
        rounds, asked = np.log(3 * plan.updates / 0.02), np.log(3 * k / 0.02)
        noise = plan.answer_scale * rounds
        slack = plan.threshold_scale * rounds + plan.query_scale * asked
        gap = np.sqrt(noise**2 + np.log(size) / (2 * (plan.updates + 1)))
        equal([change(plan.threshold), change(plan.error)], [gap + slack, gap + 2 * slack])


COUNTS, ROWS = np.array([50.0, 30.0, 20.0]), 100
QUERIES = np.array([[0.0, 1.0, 1.0], [1.0, 0.5, 0.5]])
TRUTH = QUERIES @ COUNTS / ROWS


@claim("U-pmw", "U-query-release-table")
def test_the_noise_of_each_system_is_drawn_with_its_scale():
    """The same seed, and the scales of the page."""
    epsilon = 0.8

    def queried(factor, rng):
        return TRUTH + rng.laplace(0.0, factor * 2 / (ROWS * epsilon), 2)

    def shares(factor, rng):
        return COUNTS / ROWS + rng.laplace(0.0, factor * 2 / (ROWS * epsilon), 3)

    def mwem(factor, rng):  # four rounds, half of the epsilon of each for its choice
        each, weights, total = ROWS * epsilon / 8 / factor, np.full(3, 1 / 3), np.zeros(3)
        for _ in range(4):
            total = total + weights
            guess = QUERIES @ weights
            i = (np.abs(TRUTH - guess) * each / 2 + rng.gumbel(size=2)).argmax()
            rest = TRUTH[i] + rng.laplace(0.0, 1 / each) - guess[i]
            weights = release.weights_update(weights, QUERIES[i], 4 * rest)
        return total / 4

    systems = (
        (queried, lambda rng: release.laplace_queries(COUNTS, QUERIES, epsilon=epsilon, rng=rng)),
        (shares, lambda rng: release.laplace_histogram(COUNTS, epsilon=epsilon, rng=rng)),
        (mwem, lambda rng: release.mwem(COUNTS, QUERIES, rounds=4, epsilon=epsilon, rng=rng)),
    )  # fmt: skip

    for stated, system in systems:
        same_draws(system, stated, 1.0)
        must_fail(same_draws, system, stated, 1.05)


@claim("U-pmw", of=np.ones(4), wrong=list(1 + 0.05 * np.eye(4)))
def test_the_weights_draw_what_they_say_round_after_round(factors):
    """The same seed: the first and later thresholds, the comparisons, the answers."""
    plan = release.weights_plan(ROWS, 3, 2, epsilon=0.8)._replace(threshold=0.1, updates=4)
    stream = (0, 1, 0, 1, 1, 0)

    def stated(factors, rng):
        first, later, asked, answer = factors
        level = plan.threshold + rng.laplace(0.0, first * plan.threshold_scale)
        weights, left, told = np.full(3, 1 / 3), 4, []
        for i in stream:
            guess = QUERIES[i] @ weights
            off = abs(TRUTH[i] - guess)
            if left and off + rng.laplace(0.0, asked * plan.query_scale) >= level:
                told.append(TRUTH[i] + rng.laplace(0.0, answer * plan.answer_scale))
                weights = release.weights_update(weights, QUERIES[i], 4 * (told[-1] - guess))
                level = plan.threshold + rng.laplace(0.0, later * plan.threshold_scale)
                left -= 1
            else:
                told.append(guess)
        return told

    def system(rng):
        online = release.MultiplicativeWeights(COUNTS, plan, rng=rng)
        return [online.answer(QUERIES[i]) for i in stream]

    same_draws(system, stated, factors)


@claim("U-pmw", of=1 / 8, wrong=[1 / 9])
def test_an_update_lowers_the_potential(constant, rng):
    x, d = rng.dirichlet(np.full(6, 0.3), (2, 4000)) + 1e-9
    x, d = x / x.sum(-1, keepdims=True), d / d.sum(-1, keepdims=True)
    f = np.where(rng.random((4000, 1)) < 0.5, rng.integers(0, 2, (4000, 6)), rng.random((4000, 6)))
    gap = ((x - d) * f).sum(-1)

    def drop(step):
        after = d * np.exp(step[:, None] * f)
        return dp.kl(x, d) - dp.kl(x, after / after.sum(-1, keepdims=True))

    step = rng.normal(0, 3, 4000)
    at_most(step * gap - constant * step**2, drop(step), atol=1e-9)
    at_most(15 / 32 * gap**2, drop(gap / 2), atol=1e-9)  # the step a/2 at an error of a
    one = release.weights_update(d[0], f[0], 0.7)
    equal(one, d[0] * np.exp(0.7 * f[0]) / (d[0] * np.exp(0.7 * f[0])).sum())


def updates(x, queries, a, step):
    """How many an analyst who always asks the worst query forces, at errors of at least a."""
    d, count = np.full(len(x), 1 / len(x)), 0
    while True:
        gaps = queries @ (x - d)
        i = np.abs(gaps).argmax()
        if abs(gaps[i]) < a:
            return count
        d, count = release.weights_update(d, queries[i], step(gaps[i])), count + 1


@claim("U-pmw", of=1.0, wrong=[1.5])
def test_the_number_of_updates(factor, rng):
    for size, a in product((8, 64), (0.05, 0.15)):
        bound = np.log(size) / a**2 / factor
        for _ in range(4):
            x = rng.dirichlet(np.full(size, 0.05))
            queries = rng.integers(0, 2, (300, size)).astype(float)
            at_most(updates(x, queries, a, lambda g: 4 * g), bound / 2)
            noisy = updates(x, queries, a, lambda g, a=a: 4 * (g + a / 2 * rng.uniform(-1, 1)))
            at_most(noisy, bound / (2 * (1 - 0.5**2)))
            printed = updates(x, queries, a, lambda g, a=a: np.sign(g) * a / 2)
            at_most(printed, 4 * bound)
    # bits of a secret, learned one by one: within 1.39 of the bound
    for d in (3, 6, 9):
        bits = np.indices((2,) * d).reshape(d, -1).astype(float)
        count = updates(np.eye(2**d)[-1], bits, 0.5 - 1e-9, lambda g: 4 * g)
        equal(count, d)
        at_most(count, np.log(2**d) / (2 * 0.5**2) / factor)


@claim("U-pmw", of=1.0, wrong=[0.05])
def test_all_answers_to_an_adaptive_analyst_are_within_the_promise(factor, rng):
    for n, size in ((10**6, 16), (10**8, 40)):
        plan = release.weights_plan(n, size, 400, epsilon=1.0, beta=1e-8)
        for _ in range(10):
            counts = rng.multinomial(n, rng.dirichlet(np.full(size, 0.1))).astype(float)
            system = release.MultiplicativeWeights(counts, plan, rng=rng)
            off = []
            for _ in range(200):
                f = rng.integers(0, 2, size).astype(float)
                for g in (f, f * (system.weights > np.median(system.weights))):
                    off.append(abs(system.answer(g) - g @ counts / n))
            at_most(max(off), factor * plan.error)
            at_most(system.updates, plan.updates)
    holds(system.updates >= 1)


class Bare(release.MultiplicativeWeights):
    def answer(self, query):
        return self._answer(query)


@claim("U-pmw", of=release.MultiplicativeWeights, wrong=[Bare])
def test_threads_share_the_updates(kind):
    plan = release.weights_plan(1000, 2, 10, epsilon=1.0)._replace(updates=3, threshold=-1e9)

    class Slow(np.random.Generator):
        def laplace(self, *scales):
            return slowly(super().laplace(*scales))

    system = kind([400, 600], plan, rng=np.random.default_rng(18))
    system._rng = Slow(np.random.PCG64(18))
    told = together(lambda: system.answer(np.array([0.0, 1.0])))
    equal([system.updates, np.unique(told).size], [3, 4])  # and the guess after them


def rounds_exactly(above, answer, n, delta):
    """epsilon of n coins for AboveThreshold, and n Laplace answers."""
    coins = dp.randomized_response(above).compose(n)
    return (coins + dp.laplace(1 / answer).compose(n)).epsilon(delta=delta)


@claim(
    "U-abovethreshold",
    of=rounds_exactly,
    wrong=[lambda above, answer, n, delta: n * (above + answer) + 1e-6],
)
def test_rounds_of_above_threshold_and_laplace_cost_what_is_stated(exact):
    for above, answer, n, delta in ((0.04, 0.02, 50, 1e-6), (0.3, 0.1, 5, 1e-3)):
        both = above + answer
        apart = composition.advanced_heterogeneous(np.repeat([above, answer], n), delta)
        at_most(exact(above, answer, n, delta), min(apart, n * both))
        at_most(apart, n * both**2 / 2 + both * np.sqrt(2 * n * np.log(1 / delta)))


@claim("U-abovethreshold", of=1.0, wrong=[0.3])
def test_above_threshold_is_a_coin_at_most(coin, rng):
    grid, noise, heads = np.linspace(-1.2, 1.2, 9), release.sparse_rounds(1.0), special.expit(coin)
    limit = dp.hockey_stick([heads, 1 - heads], [1 - heads, heads], grid)
    for _ in range(12):
        rows = patterns(3, 1)
        p, q = (np.exp(release.sparse_log_law(noise, z, rows)) for z in neighbours(rng, 3))
        at_most(dp.hockey_stick(p, q, grid), limit, atol=1e-12)


@claim("U-abovethreshold", of=2, wrong=[1])
def test_a_plan_spends_its_budget(moves):
    """A query moves by 1/n, and the comparison with the threshold by twice as much."""
    for n, size, k, epsilon in ((10**3, 10, 50, 1.0), (10**6, 10**5, 10**4, 0.3)):
        for delta in (0.0, 1e-6):
            plan = release.weights_plan(n, size, k, epsilon=epsilon, delta=delta)
            above = 1 / (n * plan.threshold_scale) + moves / (n * plan.query_scale)
            each = above + 1 / (n * plan.answer_scale)
            equal([above, each], [plan.comparison_epsilon, plan.round_epsilon], rtol=1e-9)
            log = np.log(1 / max(delta, 1e-300))
            advanced = plan.updates * each**2 / 2 + each * np.sqrt(2 * plan.updates * log)
            equal(min(plan.updates * each, advanced), epsilon, rtol=1e-9)


@claim(
    "U-query-release-table",
    of=release.laplace_histogram_error,
    wrong=[lambda n, size, k, **how: size * np.log(k / 0.05) / n],
)
def test_errors_of_the_two_laplace_systems(of_histogram):
    n, k, big = 1000, 50, 12.0  # the entries of the table, with its constants
    advanced = 1 / composition.round_epsilon(2.0, k, np.exp(-big))
    at_most(advanced, 2 * np.sqrt(k * big) / 2)  # the scale, times n
    wide = np.sqrt(8 * np.log(2) * 10**4 * np.log(2 * k / 0.05)) * 2 / (n * 2)
    equal(of_histogram(n, 10**4, k, epsilon=2.0), wide)
    at_most(wide, 10 * np.sqrt(10**4) * np.log(k / 0.05) / (n * 2))  # what is printed


@pytest.mark.slow
@claim("U-query-release-table", of=(1 / 3, 1 / 2), wrong=[(1 / 2, 1 / 2), (1 / 3, 1 / 3)])
def test_the_orders_of_the_errors(pure, approximate):
    ratios = []
    for n, size, k in product(10.0 ** np.arange(7, 13, 2), (10**2, 10**6), (10**2, 10**5)):
        x, q = np.log(size), np.log(k / 0.05)
        a = release.weights_plan(int(n), size, k, epsilon=1.0).error
        b = release.weights_plan(int(n), size, k, epsilon=1.0, delta=1e-8).error
        wide = q * np.sqrt(x * np.log(1e8)) / n
        ratios.append([a / (x * q / n) ** pure, b / wide**approximate])
    at_most(np.max(ratios, axis=0), [12.0, 12.0])
    at_most([1.0, 1.0], np.min(ratios, axis=0))


@claim("U-query-release-table", of=2.4, wrong=[0.1])
def test_the_row_of_small_db(constant, rng):
    counts = rng.multinomial(500, rng.dirichlet(np.ones(4))).astype(float)
    queries = rng.integers(0, 2, (12, 4)).astype(float)
    for epsilon, beta in product((0.5, 2.0, 8.0), (0.5, 0.05, 1e-4)):
        lead = np.log(4) * np.log(12) / (500 * epsilon)
        rows = int(np.ceil(np.log(12) / (4 * lead) ** (2 / 3)))
        weights, law = selection.small_db_law(counts, queries, rows, epsilon=epsilon)
        errors = np.abs(weights @ queries.T - queries @ counts / 500).max(1)
        bound = constant * lead ** (1 / 3) + 2 * np.log(4 / beta) / (500 * epsilon)
        at_most(law[errors > bound].sum(), beta)
    candidates = comb(1024 + 20 - 1, 20)
    at_most(1e41, candidates)
    slip(
        "U-query-release-table",
        f"SmallDB with ten yes/no columns, a universe of 1024, and 20 rows has "
        f"{float(candidates):.1e} candidates to weigh, not a multiple of 1024",
    )


@claim("U-query-release-table", of=lambda a: a, wrong=[lambda a: a[::-1]])
def test_marginals_are_linear_queries(attributes, rng):
    rows = np.array([rng.integers(0, size, 500) for size in (2, 3, 4)])
    counts = np.bincount(np.ravel_multi_index(rows, (2, 3, 4)), minlength=24)
    for order in (1, 2, 3):
        tables = release.Marginals((2, 3, 4), order)
        dense = np.array([tables[i] for i in range(len(tables))])
        equal(tables @ (counts / 500), dense @ (counts / 500), atol=1e-15)
        share = [
            (rows[list(attributes(a))] == np.array(c)[:, None]).all(0).mean()
            for a, c in zip(tables.attributes, tables.codes, strict=True)
        ]
        equal(tables @ (counts / 500), share, atol=1e-12)


@claim("U-query-release-table", of=4, wrong=[2])
def test_the_error_of_mwem_is_the_formula_of_the_page(selection):
    for n, size, k, rounds in ((10**3, 8, 20, 4), (10**6, 10**4, 5, 50)):
        measured = 2 * rounds / (n * 0.8) * np.log(2 * rounds / 0.03)
        selected = selection * rounds / (n * 0.8) * np.log(2 * k * rounds / 0.03)
        stated = np.sqrt(np.log(size) / (2 * rounds) + measured**2) + selected
        found = release.mwem_error(n, size, k, rounds=rounds, epsilon=0.8, beta=0.03)
        equal(found, stated)
