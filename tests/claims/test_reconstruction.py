"""The claims of the chapter `reconstruction`."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom, gamma, norm

import dpnotes as dp
from dpnotes.chapters import reconstruction
from evidence import at_most, claim, equal, holds, must_fail


def tables_of(people):
    """All tables, made in another way than the room makes them."""
    return np.array(list(product([0, 1], repeat=people)))


def distances(fit, truth):
    return np.abs(fit - truth).sum(1)


def worst_answers(truth, other):
    """In the middle of what the two tables say."""
    return reconstruction.all_subsets(len(truth)) @ (truth + other) / 2


@claim(
    "X-all-subsets", of=lambda error: 4 * error, wrong=[lambda error: 4 * error - 0.5, np.square]
)
def test_all_counts_leave_at_most_four_errors(places, rng):
    for people in (1, 4, 6, 8):
        subsets, furthest = reconstruction.all_subsets(people), []
        for error in (0.0, 0.3, 0.5, 1.0, 1.5):
            for _ in range(20):
                truth = rng.integers(0, 2, people)
                noise = error * rng.choice([-1, 1, rng.random()], len(subsets))
                fit = reconstruction.fitting_tables(subsets, subsets @ truth + noise, error)
                holds((fit == truth).all(1).any(keepdims=True))
                at_most(distances(fit, truth), places(error))
            if (half := int(2 * error)) <= people // 2 and half == 2 * error:  # sharp
                truth, other = np.zeros(people, int), np.zeros(people, int)
                truth[:half], other[half : 2 * half] = 1, 1
                answers = worst_answers(truth, other)
                at_most(np.abs(answers - subsets @ truth), error)
                fit = reconstruction.fitting_tables(subsets, answers, error)
                furthest.append((distances(fit, truth).max(), places(error)))
        if furthest:
            equal(*np.array(furthest).T)


@claim(
    "X-random-subsets",
    of=reconstruction._same_answers,
    wrong=[lambda d, e: 0.98 * binom.pmf(d // 2, d, 0.5)],
)
def test_two_tables_have_the_same_counts_by_the_middle_of_a_binomial_law(chance):
    for places, error in product(range(1, 11), (0.0, 0.4, 0.5, 1.0, 1.7, 6.0)):
        subsets = tables_of(places)
        seen = []
        for ones in range(places + 1):  # so many places where the other table has the 1
            change = np.r_[np.ones(ones), -np.ones(places - ones)]
            seen.append((np.abs(subsets @ change) <= 2 * error).mean())
        equal(max(seen), chance(np.array(places), error), rtol=1e-9)


def distance_by_hand(people, count, error, failure):
    """The sum of the theorem with whole numbers; chances of coins from lists."""
    total, window = 0.0, 2 * int(np.floor(2 * error)) + 1
    for places in range(people, 0, -1):
        heads = sorted((comb(places, k) for k in range(places + 1)), reverse=True)
        total += comb(people, places) * (sum(heads[:window]) / 2**places) ** count
        if total > failure:
            return places
    return 0


@claim(
    "X-random-subsets",
    of=reconstruction.furthest_fit,
    wrong=[
        lambda n, m, e, b: reconstruction.furthest_fit(n, m, e, b) + 1,
        lambda n, m, e, b: reconstruction.furthest_fit(n, m, e / 2, b),
    ],
)
def test_the_furthest_fit_is_the_sum_of_the_theorem(furthest, rng):
    for people, error in product((1, 5, 30, 60), (0.0, 0.5, 1.0, 2.3)):
        for count in rng.integers(1, 4 * people + 2, 4):
            by_hand = distance_by_hand(people, int(count), error, 0.01)
            equal(furthest(people, int(count), error, 0.01), by_hand)


@claim(
    "X-random-subsets",
    of=lambda a, n: 32 / np.pi * (4 * a + n**-0.5) ** 2,
    wrong=[lambda a, n: 3 * a**2],
)
def test_the_closed_form_is_never_below_the_sum(share):
    for people in (16, 100, 400, 1000):
        for alpha in (0.0, 0.005, 0.01, 0.02, 0.03):
            exact = reconstruction.furthest_fit(
                people, people, alpha * np.sqrt(people), 2.0**-people
            )
            at_most(min(exact, people), max(share(alpha, people) * people, 0) + (exact == people))
    places = np.arange(1, 2000)
    at_most(binom.pmf(places // 2, places, 0.5), np.sqrt(2 / (np.pi * places)))


@claim("X-random-subsets", of=1.0, wrong=[0.0])
def test_tables_that_fit_random_counts_are_near(room, rng):
    # each run fails with probability at most 1e-9
    for people, error in ((10, 0.5), (12, 1.0), (14, 0.5)):
        count, seen = 24 * people, []
        limit = reconstruction.furthest_fit(people, count, error, 1e-9)
        assert limit < people
        for _ in range(10):
            truth = rng.integers(0, 2, people)
            subsets = reconstruction.random_subsets(count, people, rng=rng)
            other = truth ^ (np.arange(people) < 2)  # answers between the truth and a near table
            answers = subsets @ truth + np.clip(subsets @ (other - truth) / 2, -error, error)
            fit = reconstruction.fitting_tables(subsets, answers, error)
            at_most(distances(fit, truth), room * limit)
            seen.append(distances(fit, truth).max())
        holds(np.array(seen) > 0)


@claim(
    "X-least-squares",
    of=reconstruction.most_wrong,
    wrong=[lambda a, e: reconstruction.most_wrong(a, e) / 8, lambda a, e: len(a) * e**2],
)
def test_least_squares_gets_no_more_wrong_than_stated(most, rng):
    """Against the errors that do most harm, too."""
    largest = 0.0
    for people, factor in product((1, 2, 5, 20), (1, 2, 4)):
        for _ in range(60):
            subsets = reconstruction.random_subsets(factor * people + 2, people, rng=rng)
            if np.linalg.matrix_rank(subsets) < people:
                continue
            right = np.linalg.svd(subsets)[2]
            error = np.exp(rng.uniform(-3, 0))
            wanted = rng.choice([-1.0, 1.0], people) if rng.random() < 0.5 else right[-1]
            harm = np.linalg.pinv(subsets).T @ np.sign(wanted)
            for noise in (error * np.sign(harm), error * rng.uniform(-1, 1, len(subsets))):
                truth = rng.integers(0, 2, people)
                found = reconstruction.least_squares(subsets, subsets @ truth + noise)
                limit = most(subsets, np.abs(noise).max())
                at_most(np.abs(found - truth).sum(), limit)
                moved = np.linalg.pinv(subsets) @ noise
                at_most(4 * (moved**2).sum(), limit)
                largest = max(largest, 4 * (moved**2).sum() / limit)
    one = reconstruction.most_wrong(np.eye(1), 0.5)  # attained: one person, asked about alone
    equal(one, 1.0)
    found = reconstruction.least_squares(np.eye(1), [0.5])
    holds(found == 0)
    assert largest > 0.3


@claim("X-least-squares", of=4.0, wrong=[3.9])
def test_what_fits_gets_at_most_four_times_as_many_wrong(factor, rng):
    for people, factor_of in product((1, 2, 5, 12), (1, 3)):
        for _ in range(60):
            subsets = reconstruction.random_subsets(factor_of * people + 2, people, rng=rng)
            if people == 1:
                subsets[:] = 1
            if np.linalg.matrix_rank(subsets) < people:
                continue
            error = np.exp(rng.uniform(-2, 1))
            move = np.linalg.svd(subsets)[2][-1] if rng.random() < 0.5 else rng.normal(size=people)
            move *= 2 * error / np.abs(subsets @ move).max()  # both ends fit what is in the middle
            at_most(4 * (move**2).sum(), factor * reconstruction.most_wrong(subsets, error))


@claim("X-least-squares")
def test_the_linear_program_fits_and_finds_what_is_certain(rng):
    for people in (2, 5, 12):
        subsets, truth = reconstruction.all_subsets(min(people, 6)), rng.integers(0, 2, people)
        if people > 6:
            subsets = np.vstack(
                [np.eye(people), reconstruction.random_subsets(30, people, rng=rng)]
            )
        answers = subsets @ truth[: subsets.shape[1]] + rng.uniform(-0.2, 0.2, len(subsets))
        found = reconstruction.linear_program(subsets, answers)
        equal(found, truth[: subsets.shape[1]])  # each alone is within .2 + .2 of the answer

    def attack(subsets, answers):
        equal(reconstruction.linear_program(subsets, answers), truth)

    attack(subsets, subsets @ truth)
    must_fail(attack, subsets, subsets @ (1 - truth))


@claim(
    "X-least-squares",
    of=reconstruction.expected_wrong,
    wrong=[
        lambda a, s: reconstruction.expected_wrong(a, 1.1 * s),
        lambda a, s: 2 * reconstruction.expected_wrong(a, s),
    ],
)
def test_the_expected_number_wrong_is_that_of_many_runs(expected, rng):
    # false alarms: the mean of 20,000 runs is within 5.5 standard errors but for 4e-8
    for people, sigma in ((3, 0.4), (10, 1.0), (10, 3.0)):
        subsets = reconstruction.random_subsets(4 * people, people, rng=rng)
        truth = rng.integers(0, 2, people)
        noise = sigma * rng.normal(size=(len(subsets), 20_000))
        found = np.linalg.pinv(subsets) @ (subsets @ truth[:, None] + noise) > 0.5
        wrong = (found != truth[:, None].astype(bool)).sum(0)
        near = 5.5 * wrong.std() / np.sqrt(20_000)
        holds(np.array([abs(wrong.mean() - expected(subsets, sigma)) < near]))
        spread = np.diag(np.linalg.inv(subsets.T @ subsets))
        at_most(expected(subsets, sigma), 4 * sigma**2 * spread.sum())
        equal(expected(subsets, sigma), norm.sf(0.5 / (sigma * np.sqrt(spread))).sum())


@claim(
    "X-reconstruction-limit",
    of=reconstruction.most_right,
    wrong=[
        lambda e, g: reconstruction.most_right(0.95 * e, g),
        lambda e, g: np.maximum(g, reconstruction.most_right(e)),
    ],
)
def test_no_attack_finds_more_than_the_limit(limit, rng):
    """The best attack on random mechanisms, by Bayes' rule, for tables of three bits."""
    tables = tables_of(3)
    near = np.abs(tables[:, None] - tables).sum(-1) == 1
    for _ in range(600):
        chance = rng.uniform(0.05, 0.95, 3)
        prior = np.where(tables == 1, chance, 1 - chance).prod(1)
        law = np.exp(rng.uniform(0, 3) * rng.uniform(-1, 1, (8, 6)))
        law /= law.sum(1, keepdims=True)
        epsilon = dp.max_divergence(law[:, None], law[None])[near].max()
        joint = prior[:, None] * law
        right = [max_of(joint, tables[:, person]) for person in range(3)]
        each = [limit(epsilon, max(c, 1 - c)) for c in chance]
        at_most(right, each)
        at_most(np.mean(right), limit(epsilon, max(*chance, *(1 - chance))))
    for epsilon in (0.0, 0.5, 1.0, 3.0):  # attained
        for guess in (0.5, 0.6, 0.9):
            truth = np.exp(epsilon) / (1 + np.exp(epsilon))
            posterior = truth * guess / (truth * guess + (1 - truth) * (1 - guess))
            equal(posterior, limit(epsilon, guess))


def test_the_price_holds_with_a_delta(rng):
    """The best guess of a fair bit from two laws, and two laws that attain its bound."""
    for _ in range(600):
        p, q = rng.dirichlet(np.full(5, 0.5), size=2)
        a = np.exp(rng.uniform(0, 2))
        delta = max(np.maximum(p - a * q, 0).sum(), np.maximum(q - a * p, 0).sum())
        at_most(np.maximum(p, q).sum() / 2, (a + delta) / (1 + a))
    p = np.array([delta, (1 - delta) * a / (1 + a), (1 - delta) / (1 + a), 0.0])
    equal(np.maximum(p, p[::-1]).sum() / 2, (a + delta) / (1 + a))


def max_of(joint, bits):
    """The chance of the best guess of one bit from the output."""
    return np.maximum(joint[bits == 1].sum(0), joint[bits == 0].sum(0)).sum()


@claim(
    "X-packing",
    of=reconstruction.least_error,
    wrong=[
        lambda d, e, n, b: reconstruction.least_error(d, e, n, b) + 0.5,
        lambda d, e, n, b: reconstruction.least_error(d, e / 1.5, n, b),
    ],
)
def test_packing_against_mechanisms_and_whole_numbers(least, rng):
    for d, epsilon, failure in product((1, 2, 5, 30), (0.03, 0.5, 1.0, 4.0), (0.5, 0.05)):
        room = np.log(float(2**d - 1) * (1 - failure) / failure)
        people = max(k for k in range(3000) if k == 0 or k * epsilon < room)
        equal(least(d, epsilon, 10_000, failure), people / 2)
        equal(least(d, epsilon, 3, failure), min(people, 3) / 2)
        # a mechanism that is epsilon-DP is off by as much with that probability
        quantile = gamma.isf(failure, d) / epsilon
        at_most(least(d, epsilon, 10_000, failure), quantile)
    # the best choice among k or no rows v: exponential mechanism on the 2^d answers
    for d, epsilon, k in product((1, 3, 5), (0.2, 1.0), (1, 2, 6)):
        right = 1 / (1 + (2**d - 1) * np.exp(-k * epsilon))
        enough = k * epsilon >= np.log((2**d - 1) * 0.5 / 0.5) - 1e-12
        holds(np.array([enough or right < 0.5]))
        holds(np.array([enough or 2 * least(d, epsilon, 10_000, 0.5) >= k]))


@claim(
    "X-cube-noise",
    of=lambda d, rng: reconstruction.cube_noise(d, 0.5, rng=rng),
    wrong=[
        lambda d, rng: rng.gamma(d) / 0.5 * rng.uniform(-1, 1, d),
        lambda d, rng: rng.laplace(scale=d / 0.5, size=d),
    ],
)
def test_cube_noise_has_its_law(draw, rng):
    # the empirical distribution of 4,000 draws is within .05 of the law but for 2 exp(-20) = 4e-9
    for d in (2, 3, 10):
        noise = np.array([draw(d, rng) for _ in range(4000)])
        largest = np.sort(np.abs(noise).max(1))
        law = gamma.cdf(largest, d, scale=2.0)
        holds(np.abs(law - np.arange(1, 4001) / 4000) < 0.05)
        # one entry is the largest with probability 1/d, else uniform up to it
        one = np.sort(np.abs(noise[:, 0]))
        up_to = gamma.cdf(one, d, scale=2.0)
        law = up_to + (1 - 1 / d) * one * 0.5 / (d - 1) * gamma.sf(one, d - 1, scale=2.0)
        holds(np.abs(law - np.arange(1, 4001) / 4000) < 0.05)


@claim("X-cube-noise", of=np.max, wrong=[lambda moves, axis: np.min(moves, axis=axis)])
def test_the_loss_of_cube_noise_is_at_most_epsilon(norm_of, rng):
    for d in (1, 2, 7):
        move = rng.choice([-1.0, 0.0, 1.0], (4000, d))
        y = rng.normal(size=(4000, d)) * np.exp(rng.uniform(-1, 3, (4000, 1)))
        loss = norm_of(np.abs(y - move), axis=1) - np.abs(y).max(1)
        at_most(np.abs(loss), 1.0)


def test_what_is_refused_says_why_in_one_sentence():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="count must be at most 10,000 for so many people"):
        reconstruction.random_subsets(10_001, 1000, rng=rng)
    with pytest.raises(ValueError, match="no two tables have the same counts"):
        reconstruction.least_squares([[1, 1], [0, 0]], [1, 0])
    with pytest.raises(ValueError, match="no two tables have the same counts"):
        reconstruction.most_wrong([[1, 1, 0]], 1.0)
    with pytest.raises(ValueError, match="bits must be zeros and ones$"):
        reconstruction.count_subsets([[1, 1]], [0, 2])
    with pytest.raises(ValueError, match="answers must be of length 2"):
        reconstruction.least_squares([[1, 1], [0, 1]], [1])
    with pytest.raises(ValueError, match="people must be at most 20"):
        reconstruction.all_subsets(21)
    must_fail(lambda value: holds(np.array([value < 1])), 2)
