"""The claims of the chapter `query-release`."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, laplace

import dpnotes as dp
from evidence import at_most, equal, holds, must_fail, slip


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


def worst(noise, m):
    """log P(x) - log P(x') of the worst stream: m below, then `count` above."""
    c = noise.count
    reports = np.repeat([0.0, 1.0], (m, c))
    x, y = np.zeros(m + c), np.repeat([1.0, -1.0], (m, c))
    return dp.sparse_log_law(noise, x, reports) - dp.sparse_log_law(noise, y, reports)


# ----------------------------------------------------------------------------- sparse vector


@pytest.mark.claim("F-svt", by=("sparse_vector.sparse_epsilon", "sparse_vector.sparse_log_law"))
def test_reports_are_private_whatever_the_answers_are():
    rng = np.random.default_rng(1)

    def check(epsilon):
        for count, b1, b2 in ((1, 2.0, 4.0), (2, 0.5, 3.0), (1, 5.0, 0.7), (3, 1.0, 2.0)):
            for refresh in (None, 2 * b1):
                noise, rows = dp.SparseVector(b1, b2, refresh, count), patterns(3, count)
                for _ in range(4):
                    x, y = neighbours(rng, 3)
                    p, q = (dp.sparse_log_law(noise, z, rows) for z in (x, y))
                    equal([np.exp(p).sum(), np.exp(q).sum()], 1, rtol=1e-11)
                    at_most(np.abs(p - q), epsilon(noise), rtol=1e-10)

    check(dp.sparse_epsilon)
    must_fail(check, lambda noise: dp.sparse_epsilon(noise._replace(query_scale=4.0)) / 2)
    must_fail(check, lambda noise: dp.sparse_epsilon(noise) - 1 / noise.threshold_scale)


@pytest.mark.claim("F-svt", by=("sparse_vector.sparse_epsilon",))
def test_no_smaller_epsilon_holds_for_long_streams():
    def check(epsilon):
        for count, b1, b2 in ((1, 2.0, 4.0), (2, 1.0, 1.0), (5, 3.0, 2.0), (1, 0.3, 0.5)):
            noise = dp.SparseVector(b1, b2, None, count)
            spent = [worst(noise, m) for m in (10, 300, 20_000)]
            at_most(spent, epsilon(noise), rtol=1e-9)
            equal(spent[-1], epsilon(noise), rtol=1e-6)

    check(dp.sparse_epsilon)
    must_fail(check, lambda noise: 0.999 * dp.sparse_epsilon(noise))
    must_fail(check, lambda noise: 1.001 * dp.sparse_epsilon(noise))
    equal(dp.sparse_epsilon(dp.sparse_rounds(0.7)), 0.7)  # AboveThreshold: 2/epsilon, 4/epsilon
    equal(dp.sparse_rounds(0.7)[:2], [2 / 0.7, 4 / 0.7])


@pytest.mark.claim("F-svt", by=("sparse_vector.sparse_log_law",))
def test_the_law_against_an_independent_quadrature():
    rng = np.random.default_rng(2)

    def by_quad(b1, b2, answers, row):
        def integrand(z):
            factors = np.where(
                row > 0, laplace.sf(z - answers, scale=b2), laplace.cdf(z - answers, scale=b2)
            )
            return laplace.pdf(z, scale=b1) * factors.prod()

        ends = np.unique(np.r_[-60 * b1, 0, answers, 60 * b1])
        pieces = zip(ends[:-1], ends[1:], strict=True)
        return sum(quad(integrand, *ab, epsabs=0, epsrel=1e-10)[0] for ab in pieces)

    def check(law):
        for _ in range(3):
            b1, b2 = np.exp(rng.uniform(-1, 1, 2))
            answers, row = rng.normal(size=3), rng.integers(0, 2, 3).astype(float)
            noise = dp.SparseVector(b1, b2, None, 4)
            equal(law(noise, answers, row), np.log(by_quad(b1, b2, answers, row)), rtol=1e-7)

    check(dp.sparse_log_law)
    must_fail(check, lambda n, a, r: dp.sparse_log_law(n._replace(threshold_scale=1.0), a, r))
    one = dp.SparseVector(2.0, 3.0)  # one answer: the difference of two Laplace variables
    t = np.array([0.0, 0.5, 4.0])
    exact = (9 * np.exp(-t / 3) - 4 * np.exp(-t / 2)) / 10
    equal([np.exp(dp.sparse_log_law(one, [-u], [1.0])) for u in t], exact, rtol=1e-11)


@pytest.mark.claim(
    "F-svt", by=("sparse_vector.sparse_runs", "sparse_vector.sparse", "sparse_vector.lyu_variants")
)
def test_the_samplers_have_the_exact_laws():
    # each count is binomial; all of them together raise a false alarm with probability <= 1e-6
    answers, threshold, runs = np.array([0.3, -0.5, 1.0]), 0.2, 40_000

    def check(noise, sampled):
        rows = patterns(3, noise.count)
        law = np.exp(dp.sparse_log_law(noise, answers, rows, threshold))
        reports = dp.sparse_runs(sampled, answers, threshold, runs=runs, rng=rng())
        same = (reports[:, None] == rows) | (np.isnan(reports)[:, None] & np.isnan(rows))
        seen, level = same.all(-1).sum(0), 1e-6 / 100
        holds((binom.ppf(level, runs, law) <= seen) & (seen <= binom.ppf(1 - level, runs, law)))

    def rng():
        return np.random.default_rng(3)

    variants = {n: v for n, v in dp.lyu_variants(1.5, 2).items() if not v.shows_answer}
    for noise in [*variants.values(), dp.sparse_rounds(2.0, 2, 1e-6)]:
        check(noise, noise)
        must_fail(check, noise, noise._replace(threshold_scale=3 * noise.threshold_scale))
    two = dp.sparse_rounds(1.5, 2)
    must_fail(check, two, two._replace(refresh_scale=None))
    one_run = dp.sparse(answers, threshold, count=2, epsilon=1.5, rng=rng())
    by_hand = dp.sparse_runs(two, answers, threshold, rng=rng())[0]
    holds(one_run == by_hand[~np.isnan(by_hand)].astype(bool))


@pytest.mark.claim("F-svt", by=("sparse_vector.sparse_accuracy", "sparse_vector.above_threshold"))
def test_reports_are_right_up_to_alpha():
    # exactly, by the law: k answers just below T - alpha, and one just above T + alpha
    def check(accuracy):
        for epsilon, k, beta in product((0.3, 2.0), (1, 30, 3000), (1e-6, 0.05, 0.5)):
            noise = dp.sparse_rounds(epsilon)
            alpha = accuracy(noise, k, beta)
            false = -np.expm1(dp.sparse_log_law(noise, np.full(k, -alpha), np.zeros(k)))
            missed = np.exp(dp.sparse_log_law(noise, [alpha], [0.0]))
            at_most([false, missed], beta)
            at_most(alpha, 6 / epsilon * np.log(2 * k / beta))
            at_most(alpha, 8 / epsilon * (np.log(k) + np.log(2 / beta)))  # Dwork and Roth

    check(dp.sparse_accuracy)
    must_fail(check, lambda noise, k, beta: 0.5 * dp.sparse_accuracy(noise, k, beta))
    stream = np.full(2000, -dp.sparse_accuracy(dp.sparse_rounds(1.0), 2000, 1e-7))
    stream[1234] *= -1
    found = dp.above_threshold(stream, epsilon=1.0, rng=np.random.default_rng(4))
    holds(np.array([found == 1234]))


@pytest.mark.claim("F-svt", by=("sparse_vector.sparse_rounds", "sparse_vector.sparse_epsilon"))
def test_rounds_add_up_to_the_budget():
    for epsilon, c in product((0.1, 1.0, 4.0), (1, 7, 200)):
        equal(dp.sparse_epsilon(dp.sparse_rounds(epsilon, c)), epsilon)
        noise = dp.sparse_rounds(epsilon, c, 1e-6)
        each = dp.sparse_epsilon(noise) / c
        advanced = c * each**2 / 2 + each * np.sqrt(2 * c * np.log(1e6))
        equal(np.minimum(advanced, c * each), epsilon, rtol=1e-9)

    def check(stream):  # c rounds, each after a long silence: the budget is spent to the full
        noise = dp.sparse_rounds(1.0, 3)
        reports = np.tile(np.repeat([0.0, 1.0], (4000, 1)), 3)
        y = np.tile(np.repeat(stream, (4000, 1)), 3)
        p, q = (dp.sparse_log_law(noise, z, reports) for z in (0 * y, y))
        equal(p - q, 1.0, rtol=1e-3)

    check([1.0, -1.0])
    must_fail(check, [1.0, 0.0])


@pytest.mark.slow
@pytest.mark.claim("F-svt", by=("sparse_vector.numeric_sparse",))
def test_numeric_sparse_draws_fresh_noise_for_its_values():
    # mean and mean size of 2000 Laplace errors: six standard deviations, false alarms below 1e-8
    answers, epsilon, runs = np.array([0.0, 1.0]), 2.0, 2000

    def check(draw):
        values = np.array([draw(seed) for seed in range(runs)])
        values = values[values != -np.inf]
        scale = 2 / epsilon  # half of the budget of the one round, sensitivity 1
        n = len(values)
        at_most(abs(values.mean()), 6 * np.sqrt(2 / n) * scale)
        at_most(abs(np.abs(values).mean() - scale), 6 * scale / np.sqrt(n))

    def fresh(seed):
        rng = np.random.default_rng(seed)
        shown = dp.numeric_sparse(answers, 1.0, epsilon=epsilon, rng=rng)
        return -np.inf if np.isnan(shown[-1]) else shown[-1] - answers[len(shown) - 1]

    def compared(seed):  # variant 3 shows the noise that it compared
        noise = dp.SparseVector(2.0, 1.0, None, 1, shows_answer=True)
        shown = dp.sparse_runs(noise, answers, 1.0, rng=np.random.default_rng(seed))[0]
        last = shown[~np.isnan(shown)]
        return last[-1] - answers[len(last) - 1]

    check(fresh)
    must_fail(check, compared)


@pytest.mark.slow
@pytest.mark.claim("F-svt", by=("sparse_vector.lyu_variants", "sparse_vector.sparse_epsilon"))
def test_which_variants_keep_their_promise_by_exact_laws():
    rng = np.random.default_rng(5)

    def check(names, promised):
        for epsilon, c in ((0.5, 1), (1.0, 2), (2.0, 3)):
            variants = dp.lyu_variants(epsilon, c)
            for noise in (variants[n] for n in names):
                equal(dp.sparse_epsilon(noise), promised(epsilon, c))
                x, y = neighbours(rng, 4)
                p, q = (dp.sparse_log_law(noise, z, patterns(4, c)) for z in (x, y))
                at_most(np.abs(p - q), promised(epsilon, c), rtol=1e-9)
                if noise.refresh_scale is None:
                    equal(worst(noise, 30_000), promised(epsilon, c), rtol=1e-3)

    first, second, third, fourth, fifth, sixth = dp.lyu_variants(1.0, 2)
    check([first, second], lambda epsilon, c: epsilon)
    check([fourth], lambda epsilon, c: (1 + 6 * c) / 4 * epsilon)
    must_fail(check, [fourth], lambda epsilon, c: epsilon)
    must_fail(check, [sixth], lambda epsilon, c: epsilon)

    m, variants = np.array([1, 3, 10, 40]), dp.lyu_variants(1.0, 2)

    def no_bound(noise, least):  # the losses of the proofs, which grow without end
        loss = []
        for size in m:
            reports = np.repeat([-np.inf, 0.0] if noise.shows_answer else [0.0, 1.0], size)
            length = size + (1 if noise.shows_answer else size)
            pair = np.zeros(2 * size), np.repeat([1.0, -1.0], size)
            p, q = (dp.sparse_log_law(noise, z[:length], reports[:length]) for z in pair)
            loss.append(p - q)
        at_most(least, loss, rtol=1e-9)

    no_bound(variants[third]._replace(count=1), (m - 1) / 4)  # b = 2c/epsilon = 4
    no_bound(variants[sixth], m / 2)  # b = 2/epsilon
    must_fail(no_bound, variants[first]._replace(count=100), m / 2)
    reports = np.array([0.0, 1.0])
    p, q = (dp.sparse_log_law(variants[fifth], z, reports) for z in ([0.0, 1.0], [1.0, 0.0]))
    equal(np.exp(p), (1 - np.exp(-0.5)) / 2)  # 0 < rho <= 1
    holds(np.array([q == -np.inf]))


@pytest.mark.slow
@pytest.mark.claim("F-svt", by=("audit", "sparse_vector.sparse_runs"))
def test_an_audit_finds_the_broken_variants_and_no_others():
    # each of the two that are right is refuted with probability at most 5e-7
    def audited(noise, half=4):
        def condensed(x, runs, rng):
            seen = dp.sparse_runs(noise, x, runs=runs, rng=rng)
            if noise.shows_answer:
                early = (seen[:, :half] > -np.inf).any(axis=1)
                late = np.where(np.isnan(seen), -np.inf, seen)[:, half:].max(axis=1)
                return np.where(early | (late == -np.inf), 99.0, late)
            above = np.nan_to_num(seen)
            return 100 * above[:, :half].sum(axis=1) + above[:, half:].sum(axis=1)

        pair = np.zeros(2 * half), np.repeat([1.0, -1.0], half)
        settings = {"runs": 60_000, "false_alarm": 5e-7, "rng": np.random.default_rng(6)}
        return dp.audit(dp.in_batches(condensed), *pair, 2.0, **settings).refuted

    def check(variants, broken):
        holds(np.array([audited(noise) for noise in variants]) == broken)

    variants = list(dp.lyu_variants(2.0, 1).values())
    check(variants[:2], False)
    check(variants[2:], True)
    must_fail(check, variants[3:4], False)
    must_fail(check, variants[:1], True)


# -------------------------------------------------------------------- multiplicative weights


def kl(x, d):
    return (x * np.log(np.where(x > 0, x, 1) / d)).sum(-1)


@pytest.mark.claim("U-pmw", by=("release.weights_update",))
def test_an_update_lowers_the_potential():
    rng = np.random.default_rng(7)
    x, d = rng.dirichlet(np.full(6, 0.3), (2, 4000)) + 1e-9
    x, d = x / x.sum(-1, keepdims=True), d / d.sum(-1, keepdims=True)
    f = np.where(rng.random((4000, 1)) < 0.5, rng.integers(0, 2, (4000, 6)), rng.random((4000, 6)))
    gap = ((x - d) * f).sum(-1)

    def drop(step):
        after = d * np.exp(step[:, None] * f)
        return kl(x, d) - kl(x, after / after.sum(-1, keepdims=True))

    def check(constant):
        step = rng.normal(0, 3, 4000)
        at_most(step * gap - constant * step**2, drop(step), atol=1e-9)

    check(1 / 8)
    must_fail(check, 1 / 9)

    def measured(factor):  # 2 (u^2 - w^2) with the step 4 (u + w)
        w = rng.normal(0, 0.2, 4000)
        at_most(2 * (gap**2 - w**2), drop(factor * (gap + w)), atol=1e-9)

    measured(4)
    must_fail(measured, 12)
    at_most(15 / 32 * gap**2, drop(gap / 2), atol=1e-9)  # the step a/2 at an error of a
    one = dp.weights_update(d[0], f[0], 0.7)
    equal(one, d[0] * np.exp(0.7 * f[0]) / (d[0] * np.exp(0.7 * f[0])).sum())


@pytest.mark.claim("U-pmw", by=("release.update_bound", "release.weights_update"))
def test_the_number_of_updates():
    rng = np.random.default_rng(8)

    def updates(x, queries, a, step, noise=0.0):
        """How many an analyst who always asks the worst query forces."""
        d, count = np.full(len(x), 1 / len(x)), 0
        while True:
            gaps = queries @ (x - d)
            i = np.abs(gaps).argmax()
            if abs(gaps[i]) < a:
                return count
            d = dp.weights_update(d, queries[i], step(gaps[i] + noise * rng.uniform(-1, 1)))
            count += 1

    def check(bound, step, noise):
        for size, a in product((8, 64), (0.05, 0.15)):
            for _ in range(4):
                x = rng.dirichlet(np.full(size, 0.05))
                queries = rng.integers(0, 2, (300, size)).astype(float)
                at_most(updates(x, queries, a, step, noise * a), bound(size, a, noise * a))

    check(lambda size, a, e: dp.update_bound(size, a, e), lambda g: 4 * g, 0.0)
    check(lambda size, a, e: dp.update_bound(size, a, e), lambda g: 4 * g, 0.5)

    def printed(size, a, e):
        return 4 * np.log(size) / a**2

    for a in (0.05, 0.15):  # the step a/2 of the printed bound
        check(lambda size, b, e, a=a: printed(size, a, e), lambda g, a=a: np.sign(g) * a / 2, 0.0)

    def secret(bound):  # bits of a secret, learned one by one: within 1.39 of the bound
        for d in (3, 6, 9):
            bits = np.indices((2,) * d).reshape(d, -1).astype(float)
            x = np.eye(2**d)[-1]
            found = updates(x, bits, 0.5 - 1e-9, lambda g: 4 * g)
            equal(found, d)
            at_most(found, bound(2**d, 0.5))

    secret(dp.update_bound)
    must_fail(secret, lambda size, a: dp.update_bound(size, a) / 1.5)


@pytest.mark.claim("U-abovethreshold", by=("composition.advanced_composition_heterogeneous",))
def test_rounds_of_above_threshold_and_laplace_cost_what_is_stated():
    rng = np.random.default_rng(9)

    def order(exact):
        for above, answer, n, delta in ((0.04, 0.02, 50, 1e-6), (0.3, 0.1, 5, 1e-3)):
            both = above + answer
            rounds = np.repeat([above, answer], n)
            apart = dp.advanced_composition_heterogeneous(rounds, delta)
            mean = n * both**2 / 2 + both * np.sqrt(2 * n * np.log(1 / delta))
            at_most(exact(above, answer, n, delta), min(apart, n * both))
            at_most(apart, mean)

    def exact(above, answer, n, delta):
        coins = dp.randomized_response(above).compose(n)
        return (coins + dp.laplace(1 / answer).compose(n)).epsilon(delta=delta)

    order(exact)
    must_fail(order, lambda above, answer, n, delta: n * (above + answer) + 1e-6)

    def dominated(coin):  # AboveThreshold by a coin, at all epsilon
        grid, noise = np.linspace(-1.2, 1.2, 9), dp.sparse_rounds(1.0)
        for _ in range(12):
            pair = neighbours(rng, 3)
            p, q = (np.exp(dp.sparse_log_law(noise, z, patterns(3, 1))) for z in pair)
            heads = 1 / (1 + np.exp(-coin))
            limit = dp.hockey_stick([heads, 1 - heads], [1 - heads, heads], grid)
            at_most(dp.hockey_stick(p, q, grid), limit, atol=1e-12)

    dominated(1.0)
    must_fail(dominated, 0.3)

    def shifted(delta):  # Laplace noise at a distance s <= 1
        for s, b in ((0.2, 0.5), (0.7, 1.0), (1.0, 2.0)):
            grid = np.array([-1.5, -0.6, -0.1, 0.0, 0.3, 0.49, 1.0])
            edges = np.r_[np.linspace(-40 * b, 0, 60), np.linspace(s, s + 40 * b, 60)]
            laws = dp.density_laws(laplace(0, b).logpdf, laplace(s, b).logpdf, edges)
            kinks = (s - grid * b) / 2
            edges = np.unique(np.r_[edges, kinks])
            laws = dp.density_laws(laplace(0, b).logpdf, laplace(s, b).logpdf, edges)
            equal(dp.hockey_stick(*laws, grid), delta(s / b, grid), atol=1e-9)
            at_most(delta(0.9 * s / b, grid), delta(s / b, grid), atol=1e-15)

    def stated(mu, epsilon):
        return np.maximum(0, np.maximum(-np.expm1(epsilon), -np.expm1((epsilon - mu) / 2)))

    shifted(stated)
    must_fail(shifted, lambda mu, epsilon: np.maximum(0, -np.expm1((epsilon - mu) / 2)))


@pytest.mark.claim("U-abovethreshold", by=("release.weights_plan",))
def test_a_plan_spends_its_budget():
    for n, size, k, epsilon in ((10**3, 10, 50, 1.0), (10**6, 10**5, 10**4, 0.3)):
        for delta in (0.0, 1e-6):
            plan = dp.weights_plan(n, size, k, epsilon=epsilon, delta=delta)
            above = 1 / (n * plan.threshold_scale) + 2 / (n * plan.query_scale)
            each = above + 1 / (n * plan.answer_scale)
            equal([above, each], [plan.comparison_epsilon, plan.round_epsilon], rtol=1e-9)
            advanced = plan.updates * each**2 / 2 + each * np.sqrt(
                2 * plan.updates * np.log(1 / max(delta, 1e-300))
            )
            equal(min(plan.updates * each, advanced), epsilon, rtol=1e-9)
    small = dp.weights_plan(6366, 240, 1000, epsilon=1.0, delta=1e-6)
    at_most(small.loss().epsilon(delta=1e-6), 1.0)


def private_weights(counts, queries, plan, rng):
    system = dp.MultiplicativeWeights(counts, plan, rng=rng)
    return np.array([system.answer(f) for f in queries]), system


@pytest.mark.claim("U-pmw", by=("release.MultiplicativeWeights", "release.weights_plan"))
def test_all_answers_to_an_adaptive_analyst_are_within_the_promise():
    # 20 runs, each outside with probability at most 1e-8
    rng = np.random.default_rng(10)

    def check(factor):
        for n, size in ((10**6, 16), (10**8, 40)):
            plan = dp.weights_plan(n, size, 400, epsilon=1.0, beta=1e-8)
            for _ in range(10):
                counts = rng.multinomial(n, rng.dirichlet(np.full(size, 0.1))).astype(float)
                system = dp.MultiplicativeWeights(counts, plan, rng=rng)
                off = []
                for _ in range(200):
                    f = rng.integers(0, 2, size).astype(float)
                    for g in (f, f * (system.weights > np.median(system.weights))):
                        off.append(abs(system.answer(g) - g @ counts / n))
                at_most(max(off), factor * plan.error)
                at_most(system.updates, plan.updates)
        holds(np.array([system.updates >= 1]))

    check(1.0)
    must_fail(check, 0.05)


@pytest.mark.slow
@pytest.mark.claim("U-pmw", by=("audit", "release.MultiplicativeWeights"))
def test_private_multiplicative_weights_pass_an_audit():
    # a false alarm has probability at most 1e-6
    plan = dp.weights_plan(20, 2, 2, epsilon=1.5)._replace(updates=1, threshold=0.1)
    each = 20 * 1.5  # one round with all of the budget: half a comparison, half an answer
    plan = plan._replace(threshold_scale=4 / each, query_scale=8 / each, answer_scale=2 / each)
    queries = np.array([[0.0, 1.0], [0.0, 1.0]])

    def check(plan):
        def draw(x, runs, rng):
            return np.array([private_weights(x, queries, plan, rng)[0][0] for _ in range(runs)])

        x, y = np.array([10.0, 10.0]), np.array([9.0, 11.0])
        found = dp.audit(dp.in_batches(draw), x, y, 1.5, runs=6_000, rng=np.random.default_rng(11))
        holds(np.array([not found.refuted]))

    check(plan)
    must_fail(check, plan._replace(answer_scale=plan.answer_scale / 8))


# ------------------------------------------------------------------------------- the table


@pytest.mark.claim(
    "U-query-release-table", by=("release.laplace_queries_error", "release.laplace_histogram_error")
)
def test_errors_of_the_two_laplace_systems():
    # the number of runs beyond the bound is binomial: false alarms below 1e-6 in all
    n, size, runs, beta = 1000, 30, 1500, 0.05
    rng = np.random.default_rng(12)
    counts = rng.multinomial(n, np.full(size, 1 / size)).astype(float)
    queries = rng.integers(0, 2, (20, size)).astype(float)
    queries[0] = 1  # the widest
    truth, most = queries @ counts / n, binom.ppf(1 - 1e-7, runs, beta)

    def beyond(draw, bound):
        errors = np.array([np.abs(draw() - truth).max() for _ in range(runs)])
        return (errors > bound).sum()

    def check(factor):
        for epsilon, delta in ((1.0, 0.0), (0.5, 1e-5)):
            spent = {"epsilon": epsilon, "delta": delta}
            bound = factor * dp.laplace_queries_error(n, 20, **spent, beta=beta)
            seen = beyond(lambda s=spent: dp.laplace_queries(counts, queries, **s, rng=rng), bound)
            at_most(seen, most)
        bound = factor * dp.laplace_histogram_error(n, size, 20, epsilon=1.0, beta=beta)
        seen = beyond(lambda: queries @ dp.laplace_histogram(counts, epsilon=1.0, rng=rng), bound)
        at_most(seen, most)

    check(1.0)
    must_fail(check, 0.4)
    k, big = 50, 12.0  # the entries of the table, with its constants
    equal(dp.laplace_queries_error(n, k, epsilon=2.0), k * np.log(k / 0.05) / (n * 2))
    advanced = dp.laplace_queries_error(n, k, epsilon=2.0, delta=np.exp(-big))
    at_most(advanced, 2 * np.sqrt(k * big) * np.log(k / 0.05) / (n * 2))
    wide = np.sqrt(8 * np.log(2) * 10**4 * np.log(2 * k / 0.05)) * 2 / (n * 2)
    equal(dp.laplace_histogram_error(n, 10**4, k, epsilon=2.0), wide)
    at_most(wide, 10 * np.sqrt(10**4) * np.log(k / 0.05) / (n * 2))  # what is printed


@pytest.mark.claim("U-query-release-table", by=("release.laplace_histogram_error",))
def test_the_histogram_bound_against_chernoff_with_the_best_parameter():
    lam = np.linspace(1e-4, 1 - 1e-4, 20_000)

    def check(error):
        for m, k, beta in product((1, 5, 300, 10**5), (1, 1000), (0.5, 1e-9)):
            wide = np.log(2 * k / beta)
            best = ((wide - m * np.log1p(-(lam**2))) / lam).min()  # in units of the scale
            at_most(best, error(m, k, beta), rtol=1e-6)
            at_most(error(m, k, beta), 2 * best)

    def stated(m, k, beta):
        return dp.laplace_histogram_error(2, m, k, epsilon=1.0, beta=beta)

    check(stated)
    must_fail(check, lambda m, k, beta: 0.8 * stated(m, k, beta))


@pytest.mark.slow
@pytest.mark.claim("U-query-release-table", by=("release.weights_plan", "release.mwem_error"))
def test_the_orders_of_the_errors():
    settings = [
        (n, size, k)
        for n, size, k in product(10.0 ** np.arange(7, 13, 2), (10**2, 10**6), (10**2, 10**5))
    ]

    def check(pure, approximate):
        ratios = []
        for n, size, k in settings:
            x, q = np.log(size), np.log(k / 0.05)
            a = dp.weights_plan(int(n), size, k, epsilon=1.0).error
            b = dp.weights_plan(int(n), size, k, epsilon=1.0, delta=1e-8).error
            wide = q * np.sqrt(x * np.log(1e8)) / n
            ratios.append([a / (x * q / n) ** pure, b / wide**approximate])
        at_most(np.max(ratios, axis=0), [12.0, 12.0])
        at_most([1.0, 1.0], np.min(ratios, axis=0))

    check(1 / 3, 1 / 2)
    must_fail(check, 1 / 2, 1 / 2)
    must_fail(check, 1 / 3, 1 / 3)


@pytest.mark.slow
@pytest.mark.claim("U-query-release-table", by=("release.mwem", "release.mwem_error"))
def test_offline_weights_keep_their_bound_and_pass_an_audit():
    # 20 runs, each outside with probability at most 1e-8; the audit's false alarm is 5e-7
    rng = np.random.default_rng(13)

    def check(factor):
        for n, rounds in ((10**5, 10), (10**7, 60)):
            for _ in range(10):
                counts = rng.multinomial(n, rng.dirichlet(np.full(20, 0.1))).astype(float)
                queries = rng.integers(0, 2, (60, 20)).astype(float)
                D = dp.mwem(counts, queries, rounds=rounds, epsilon=1.0, rng=rng)
                equal(D.sum(), 1.0)
                bound = dp.mwem_error(n, 20, 60, rounds=rounds, epsilon=1.0, beta=1e-8)
                at_most(np.abs(queries @ (D - counts / n)).max(), factor * bound)

    check(1.0)
    must_fail(check, 0.05)

    def private(actual):
        def draw(x, runs, rng):
            f = np.array([[0.0, 1.0]])
            return np.array(
                [dp.mwem(x, f, rounds=2, epsilon=actual, rng=rng)[1] for _ in range(runs)]
            )

        x, y = np.array([5.0, 5.0]), np.array([4.0, 6.0])
        settings = {"runs": 3000, "false_alarm": 5e-7, "rng": np.random.default_rng(14)}
        holds(np.array([not dp.audit(dp.in_batches(draw), x, y, 1.0, **settings).refuted]))

    private(1.0)
    must_fail(private, 12.0)


@pytest.mark.claim("U-query-release-table", by=("selection.small_db_law",))
def test_the_row_of_small_db():
    rng = np.random.default_rng(15)
    counts = rng.multinomial(500, rng.dirichlet(np.ones(4))).astype(float)
    queries = rng.integers(0, 2, (12, 4)).astype(float)

    def check(constant):  # by the exact law: 2.4 (...)^(1/3) + 2 ln(|X|/beta)/(n epsilon)
        for epsilon, beta in product((0.5, 2.0, 8.0), (0.5, 0.05, 1e-4)):
            lead = np.log(4) * np.log(12) / (500 * epsilon)
            rows = int(np.ceil(np.log(12) / (4 * lead) ** (2 / 3)))
            weights, law = dp.small_db_law(counts, queries, rows, epsilon=epsilon)
            errors = np.abs(weights @ queries.T - queries @ counts / 500).max(1)
            bound = constant * lead ** (1 / 3) + 2 * np.log(4 / beta) / (500 * epsilon)
            at_most(law[errors > bound].sum(), beta)

    check(2.4)
    must_fail(check, 0.1)
    candidates = comb(1024 + 20 - 1, 20)
    at_most(1e41, candidates)
    slip(
        "U-query-release-table",
        f"SmallDB with ten yes/no columns, a universe of 1024, and 20 rows has "
        f"{float(candidates):.1e} candidates to weigh, not a multiple of 1024",
    )


@pytest.mark.claim("U-query-release-table", by=("queries.Marginals",))
def test_marginals_are_linear_queries():
    rng = np.random.default_rng(16)
    rows = np.array([rng.integers(0, size, 500) for size in (2, 3, 4)])
    counts = np.bincount(np.ravel_multi_index(rows, (2, 3, 4)), minlength=24)

    def check(attributes):
        for order in (1, 2, 3):
            tables = dp.Marginals((2, 3, 4), order)
            dense = np.array([tables[i] for i in range(len(tables))])
            equal(tables @ (counts / 500), dense @ (counts / 500), atol=1e-15)
            share = [
                (rows[list(attributes(a))] == np.array(c)[:, None]).all(0).mean()
                for a, c in zip(tables.attributes, tables.codes, strict=True)
            ]
            equal(tables @ (counts / 500), share, atol=1e-12)

    check(lambda a: a)
    must_fail(check, lambda a: a[::-1])


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda r: dp.above_threshold([1.0], epsilon=0, rng=r), "epsilon"),
        (lambda r: dp.sparse([1.0], count=0, epsilon=1, rng=r), "count"),
        (lambda r: dp.sparse([[1.0]], epsilon=1, rng=r), "answers"),
        (lambda r: dp.numeric_sparse([1.0], epsilon=1, sensitivity=-1, rng=r), "sensitivity"),
        (lambda r: dp.sparse_runs(dp.sparse_rounds(1), [1.0], rng=3), "rng"),
        (lambda r: dp.sparse_log_law(dp.sparse_rounds(1), [1.0], [1.0, 0.0]), "reports"),
        (lambda r: dp.sparse_accuracy(dp.sparse_rounds(1), 0), "queries"),
        (lambda r: dp.lyu_variants(-1, 1), "epsilon"),
        (lambda r: dp.Marginals((2, 3), 3), "order"),
        (lambda r: dp.Marginals((2, 0), 1), "shape"),
        (lambda r: dp.laplace_histogram([-1, 2], epsilon=1, rng=r), "histogram"),
        (lambda r: dp.laplace_queries([1, 2], np.eye(2), epsilon=np.nan, rng=r), "epsilon"),
        (lambda r: dp.laplace_queries_error(10, 5, epsilon=1, beta=0), "beta"),
        (lambda r: dp.laplace_histogram_error(0, 5, 5, epsilon=1), "rows"),
        (lambda r: dp.update_bound(10, 0.1, 0.2), "noise"),
        (lambda r: dp.weights_plan(10, 10, 10, epsilon=1, delta=2), "delta"),
        (lambda r: dp.mwem([1, 2], np.eye(2), rounds=0, epsilon=1, rng=r), "rounds"),
        (
            lambda r: dp.MultiplicativeWeights([1, 2], dp.weights_plan(4, 2, 2, epsilon=1), rng=r),
            "histogram",
        ),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        call(np.random.default_rng(0))
