"""The claims of the chapter `risk`: finite laws written out, normal laws by SciPy, and an attack of
the page against their bound."""

from itertools import product

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom
from sklearn.datasets import load_digits

import dpnotes as dp
from dpnotes.chapters import risk
from evidence import at_most, claim, equal, must_fail

ALARM = 1e-6  # of the statistical test


def pairs(seed, count, size=4):
    """Random laws p and q, now and then with outcomes of probability 0."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        p, q = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))
        if rng.random() < 0.2:
            p = np.append(p[:-1], 0) / p[:-1].sum()
        yield p, q


def some_tests(rng, size, count=6):
    """Tests on so many outcomes, the probabilities to say "in": all sets, and a few at random."""
    return np.vstack([list(product((0.0, 1.0), repeat=size)), rng.random((count, size))])


def normal_delta(mu, epsilon):
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


def normal_tpr(mu, fpr):
    return ndtr(ndtri(fpr) + mu)


@claim("X-attack-rates")
def test_no_attack_exceeds_the_rates_and_the_advantage():
    tests = some_tests(np.random.default_rng(0), 4)

    def check(tpr, advantage):
        for p, q in pairs(1, 12):
            run, true, false = dp.finite(p, q), tests @ p, tests @ q
            at_most(true, tpr(run, np.clip(false, 0, 1)), rtol=1e-12)
            at_most(np.abs(true - false).max(), advantage(run), rtol=1e-12)
            equal(advantage(run), np.abs(true - false).max(), rtol=1e-11)  # attained by a set

    check(lambda run, fpr: run.tpr(fpr), lambda run: run.advantage())
    must_fail(check, lambda run, fpr: 0.999 * run.tpr(fpr), lambda run: run.advantage())
    must_fail(check, lambda run, fpr: run.tpr(fpr), lambda run: 0.999 * run.advantage())
    must_fail(check, lambda run, fpr: 1 - run.tradeoff(fpr / 2), lambda run: run.advantage())


def promised(fpr, epsilon, delta, rises=1.0, share=1.0):
    falling = 1 - np.exp(-epsilon) * (1 - share * delta - fpr)
    return np.minimum(1, np.minimum(np.exp(rises * epsilon) * fpr + delta, falling))


@claim("X-attack-rates")
def test_what_a_pair_alone_allows_and_the_laws_that_need_it():
    fpr = np.array([0.0, 1e-6, 0.01, 0.05, 0.09, 0.3, 0.6, 0.93, 1.0])

    def check(bound):
        for p, q in pairs(2, 10):
            for epsilon in (0.0, 0.3, 1.0):
                delta = max(dp.hockey_stick(p, q, epsilon), dp.hockey_stick(q, p, epsilon))
                found = dp.finite(p, q).tpr(fpr)
                at_most(found, bound(fpr, epsilon, delta), atol=1e-12)
        for epsilon, delta in product((0.1, 1.0, 3.0), (0.0, 1e-3, 0.2)):
            odds = np.exp(epsilon)
            p = np.array([delta, (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds), 0])
            equal(dp.finite(p, p[::-1]).tpr(fpr), bound(fpr, epsilon, delta), rtol=1e-9)

    check(promised)
    must_fail(check, lambda a, e, d: promised(a, e, d, rises=0.99))
    must_fail(check, lambda a, e, d: promised(a, e, d, rises=1.01))
    must_fail(check, lambda a, e, d: promised(a, e, d, share=0.0))


@claim("X-attack-rates", of=risk.precision, wrong=[lambda run, a, share: run.tpr(a),
       lambda run, a, share: risk.precision(run, a, 0.9 * share)])  # fmt: skip
def test_the_share_of_members_among_those_that_are_named(precision):
    tests = some_tests(np.random.default_rng(0), 3)
    for p, q in pairs(3, 8, size=3):
        run = dp.finite(p, q)
        for share in (1e-3, 0.1, 0.7):
            true, false = tests @ p, np.clip(tests @ q, 0, 1)
            some = false > 0
            named = share * true + (1 - share) * false
            at_most((share * true)[some] / named[some], precision(run, false[some], share))
            best = share * run.tpr(0.2)
            equal(precision(run, 0.2, share), best / (best + 0.2 * (1 - share)), rtol=1e-12)


@claim("X-attack-success", of=risk.success, wrong=[
    lambda run, prior: risk.success(run, prior) * 0.9999,
    lambda run, prior: prior + (1 - prior) * run.delta(0.0),
    lambda run, prior: np.maximum(prior, 1 - prior) + run.delta(0.0) / 2,
])  # fmt: skip
def test_the_chance_to_be_right(success):
    """All sets to say "in" at, both of who was in the data when the output was p."""
    sets = np.array(list(product((0, 1), repeat=4)))
    for p, q in pairs(4, 60):
        for prior in (1e-4, 0.1, 0.5, 0.8):
            right = [prior * sets @ a + (1 - prior) * (1 - sets @ b) for a, b in ((p, q), (q, p))]
            equal(success(dp.finite(p, q), prior), np.max(right), rtol=1e-11)
            at_most(np.max(right), success(dp.finite(p, q), prior), rtol=1e-15)


def concave_hull(levels, values, at):
    """The least concave function above these points, at one place."""
    left, right = levels <= at, levels >= at
    a, b = levels[left][:, None], levels[right][None]
    share = np.where(b > a, (at - a) / np.where(b > a, b - a, 1.0), 0.0)
    return np.max((1 - share) * values[left][:, None] + share * values[right][None])


@claim("X-reconstruction", of=risk.reconstruction, wrong=[
    lambda run, kappa: kappa + 0.5 * run.advantage() * kappa,
    lambda run, kappa: 0.999 * run.tpr(kappa),
    lambda run, kappa: run.tpr(kappa * 0.99),
])  # fmt: skip
def test_no_guess_reconstructs_more_than_the_bound(bound):
    """A law of the output for each of m targets, and one without any. The guess after each output
    is the best one; which guesses count for which target is random."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        m = int(rng.integers(2, 5))
        laws, nobody = rng.dirichlet(np.ones(4), size=m), rng.dirichlet(np.ones(4))
        prior, counts = rng.dirichlet(3 * np.ones(m)), np.eye(m) + (rng.random((m, m)) < 0.2) > 0
        success = np.max((prior[:, None] * laws).T @ counts, axis=1).sum()
        kappa = min(np.max(prior @ counts), 1.0)
        levels = np.sort(np.append(np.linspace(0, 1, 16), kappa))
        values = np.max([bound(dp.finite(law, nobody), levels) for law in laws], axis=0)
        at_most(success, concave_hull(levels, values, kappa), rtol=1e-9)
    for m, right in ((2, 0.6), (5, 0.3), (10, 0.2)):  # attained: one of m, told with some noise
        law = np.append(right, np.full(m - 1, (1 - right) / (m - 1)))
        equal(bound(dp.finite(law, np.full(m, 1 / m)), 1 / m), right, rtol=1e-11)


@claim("X-gdp")
def test_gaussian_noise_and_squares_that_add_up():
    rng, fpr = np.random.default_rng(6), np.array([1e-6, 0.01, 0.3, 0.8])

    def check(total):
        for _ in range(20):
            noises, scale = rng.uniform(0.5, 5.0, size=3), float(rng.uniform(0.5, 2))
            steps = [dp.gaussian(float(s), sensitivity=scale) for s in noises]
            mu = total(scale / noises)
            equal(sum(steps).tpr(fpr), normal_tpr(mu, fpr), rtol=1e-9)
            # kept from the closed form of one Gaussian
            apart = sum(steps) + dp.randomized_response(1e-13)
            equal(apart.delta([0.0, 1.0]), normal_delta(mu, np.array([0.0, 1.0])), rtol=1e-9)

    check(lambda mus: np.sqrt(np.sum(mus**2)))
    must_fail(check, np.sum)
    must_fail(check, np.max)
    must_fail(check, lambda mus: 1.0001 * np.sqrt(np.sum(mus**2)))


@claim("X-gdp")
def test_squares_add_up_when_the_second_step_looks_at_the_first():
    """A first answer with two outcomes below f_1, a second one whose law depends on it."""
    rng, epsilon = np.random.default_rng(7), np.linspace(0, 4, 41)

    def least_mu(p, q):
        """The least mu with all points of both profiles below that of normal laws."""
        inside = np.unique(np.abs(np.log(p / q)))
        grid = np.linspace(0, inside.max(), 60)
        found = 0.0
        for a, b in ((p, q), (q, p)):
            delta = dp.hockey_stick(a, b, grid)
            for e, d in zip(grid[delta > 1e-12], delta[delta > 1e-12], strict=True):
                found = max(found, brentq(lambda mu: normal_delta(mu, e) - d, 1e-4, 30))  # noqa: B023
        return found

    cases = []
    for _ in range(15):
        p, q = rng.dirichlet(5 * np.ones(2)), rng.dirichlet(5 * np.ones(2))
        kernels = [(rng.dirichlet(5 * np.ones(3)), rng.dirichlet(5 * np.ones(3))) for _ in range(2)]
        second = max(least_mu(*pair) for pair in kernels)
        both = [
            np.concatenate([law[u] * kernels[u][way] for u in (0, 1)])
            for way, law in enumerate((p, q))
        ]
        cases.append((least_mu(p, q), second, *both))

    def check(total):
        for first, second, p, q in cases:
            limit = normal_delta(total(first, second), epsilon)
            for a, b in ((p, q), (q, p)):
                at_most(dp.hockey_stick(a, b, epsilon), limit, rtol=1e-3, atol=1e-9)

    check(np.hypot)
    must_fail(check, lambda first, second: max(first, second) * 0.9)
    must_fail(check, lambda first, second: 0.5 * np.hypot(first, second))


@claim("X-regret")
def test_the_mu_of_a_run_bounds_its_attacks_and_its_curve():
    fpr, floor = np.array([1e-5, 1e-3, 0.05, 0.4]), 1e-7
    runs = [
        dp.subsample(dp.gaussian(1.1), 256 / 60_000).compose(14_100),
        dp.laplace(2.0).compose(20),
        dp.randomized_response(0.2).compose(100) + dp.gaussian(3.0),
        *(dp.finite(p, q).compose(2) for p, q in pairs(8, 6, size=3)),
    ]

    def check(less=1.0, more=1.0):
        for run in runs:
            low, high = np.multiply(run.mu(floor), (more, less))
            if high == np.inf:  # an outcome of probability 0 under one law
                continue
            at_most(run.tpr(fpr), normal_tpr(high, fpr) + floor, rtol=1e-9)
            epsilon = np.linspace(0, run.epsilon(floor), 600)
            delta = run.delta(epsilon)
            at_most(delta, normal_delta(high, epsilon), rtol=1e-8)
            at_most(normal_delta(low, epsilon), delta, rtol=1e-8)
            # neither end could be moved
            nearly = normal_delta(high * (1 - 1e-3), epsilon), normal_delta(low * 1.001, epsilon)
            assert (delta > nearly[0]).any() and (delta < nearly[1]).any()

    check()
    must_fail(check, less=0.99)
    must_fail(check, more=1.01)
    must_fail(check, less=1.01)
    must_fail(check, more=0.99)


@claim("X-regret")
def test_a_line_between_two_points_bounds_mu():
    """The third part: the least mu that meets its condition is the largest along the line."""
    rng = np.random.default_rng(9)

    def along(ends, x, at):
        return ends[0] + (ends[1] - ends[0]) * (at - x[0]) / (x[-1] - x[0])

    def check(place_of):
        for a, width, mu in rng.uniform((0, 0.01, 0.3), (3, 1.0, 2.0), size=(40, 3)):
            epsilon = np.linspace(a, a + width, 200)
            x, shares = np.exp(epsilon), rng.uniform((1, 0.9), (1.2, 1))
            ends = normal_delta(mu, epsilon[[0, -1]]) * shares
            slope = min((ends[0] - ends[1]) / (x[-1] - x[0]), 1.0)

            def room(m, ends=ends, x=x, slope=slope, epsilon=epsilon):
                place = np.clip(place_of(m, slope), epsilon[0], epsilon[-1])
                return normal_delta(m, place) - along(ends, x, np.exp(place))

            found = brentq(room, 0.05, 30)
            at_most(along(ends, x, x), normal_delta(found, epsilon), rtol=1e-9)
            nearly = normal_delta(found * (1 - 1e-3), epsilon)
            assert (nearly < along(ends, x, x)).any()

    check(lambda m, slope: -m * (ndtri(slope) + m / 2))
    must_fail(check, lambda m, slope: -m * (ndtri(slope) - m / 2))
    must_fail(check, lambda m, slope: np.inf)


def trainings(count, seed):
    """Weights with and without the first picture, and the direction that the attacker looks in."""
    x, y = load_digits(return_X_y=True)
    x, rng = (x / np.linalg.norm(x, axis=1, keepdims=True))[:100], np.random.default_rng(seed)
    y, both = y[:100], []
    for first in (0, 1):
        both.append(risk.train(x[first:], y[first:], runs=count, sigma=2.0, steps=5, rng=rng))
    still = [
        risk.train(x[first:], y[first:], runs=1, sigma=0.0, steps=5, rng=rng) for first in (0, 1)
    ]
    return [np.sum(weights * (still[0] - still[1]), axis=(1, 2)) for weights in both]


@claim("X-gdp")
def test_a_thousand_attacks_on_the_digits_stay_below_the_bound():
    """The cut is chosen by other runs. A false alarm needs a false bound on the FPR or on the hits:
    each has half of 1e-6."""
    inside, outside = trainings(400, seed=10)
    cut = np.quantile(outside, 0.9)
    inside, outside = trainings(1000, seed=11)
    hits, alarms = int((inside > cut).sum()), int((outside > cut).sum())
    most = beta.ppf(1 - ALARM / 2, alarms + 1, 1000 - alarms)  # Clopper and Pearson

    def check(run):
        assert binom.sf(hits - 1, 1000, run.tpr(most)) > ALARM / 2

    check(dp.gaussian(2.0).compose(5))
    must_fail(check, dp.gaussian(20.0).compose(5))
    must_fail(check, dp.gaussian(8.0).compose(1))
