"""The claims of `adaptive-analysis` on private answers: what they promise, who breaks the rest."""

from itertools import product

import numpy as np
from scipy import stats

import dpnotes as dp
from dpnotes.chapters import adaptive_analysis as adaptive
from dpnotes.chapters import query_release
from evidence import at_most, claim, equal, holds, must_fail, slip
from strategies import analysis_settings, same_draws, slowly, together


@claim("S-adaptive-dp", of=(1 / (2 * np.sqrt(2)), np.sqrt(2)), wrong=[(0.75, np.sqrt(2))])
def test_error_through_privacy(low, high, rng):
    """The order of magnitude; that the error is tau is shown with the noise of S-sigma-tv."""
    tau, k, m, delta, luck = analysis_settings(rng, 20_000)
    epsilon = 2 * adaptive.stability_for_error(tau, m, delta) / np.sqrt(k)
    ratio = (epsilon * np.sqrt(k * m * np.log(2 / delta)) / tau)[tau >= 2 * luck]
    at_most(low, ratio)
    at_most(ratio, high)


@claim("S-adaptive-dp")
def test_the_slips_on_the_way_to_the_privacy():
    epsilon, k, m, beta = 1e-3, 100, 10_000, 0.05
    eta, luck = epsilon * np.sqrt(k), np.sqrt(np.log(2 / beta) / m)
    before = eta + (2 * eta * m + 1) * luck
    printed = eta + 3 * epsilon * np.sqrt(k * m) * luck
    right = eta + 3 * epsilon * np.sqrt(k) * m * luck
    assert eta * m >= 1
    at_most(before, right)
    holds(before > 10 * printed)
    slip(
        "S-adaptive-dp",
        f"$\\varepsilon = {epsilon}$, $k = {k}$, $m = {m}$, $\\beta = {beta}$: the second line is "
        f"{before:.3f}, the third, which should be above it, {printed:.3f}; with "
        f"$3\\varepsilon\\sqrt k\\,m$ it is {right:.3f}",
    )
    little = 1e-5 * np.sqrt(100) * 1000  # alpha m
    holds(np.array(2 * little + 1 > 3 * little))
    slip(
        "S-adaptive-dp",
        f"$\\varepsilon = 10^{{-5}}$, $k = 100$, $m = 1000$: $2\\alpha m + 1$ is "
        f"{2 * little + 1:.1f}, not below $3\\alpha m = {3 * little:.1f}$",
    )


@claim(
    "S-adaptive-dp",
    of=adaptive.vote_accuracy,
    wrong=[
        lambda m, k, sigma: adaptive.vote_accuracy(m, k, 0.0),
        lambda m, k, sigma: stats.norm.cdf(np.sqrt(k) * adaptive.vote_bias(m, sigma)),
    ],
)
def test_what_a_vote_of_coins_gains_by_enumeration(accuracy):
    for m, k in ((1, 3), (2, 2), (3, 3), (5, 2), (3, 4)):
        agree = np.array(list(product([0, 1], repeat=m * k))).reshape(-1, m, k)
        share = agree.mean(1)
        for sigma in (0.0, 0.05, 0.4):
            yes = stats.norm.cdf((share - 0.5) / sigma) if sigma else (share >= 0.5) * 1.0
            right = 0.0
            for vote in product([1, -1], repeat=k):
                chance = np.where(np.array(vote) > 0, yes, 1 - yes).prod(1)
                total = (2 * agree - 1) @ np.array(vote)
                right += chance @ ((total > 0) + (total == 0) / 2).mean(1)
            equal(accuracy(m, k, sigma), right / len(agree), rtol=1e-9)
    for m, sigma in ((1000, 0.0), (1000, 0.05), (10_000, 0.01)):
        normal = np.sqrt(2 / (np.pi * m * (1 + 4 * m * sigma**2)))
        equal(adaptive.vote_bias(m, sigma), normal, rtol=1e-3)


@claim("S-adaptive-dp", of=1.0, wrong=[0.0, 0.05])  # 0: raw answers
def test_noisy_answers_stop_the_analyst(drawn):
    k = np.unique(np.geomspace(1, 1e6, 200).astype(int))
    for sigma, m in product((0.02, 0.05, 0.3), (50, 300, 2000)):
        gain = adaptive.vote_accuracy(m, k, drawn * sigma) - 0.5
        at_most(gain, 2 * stats.norm.cdf(np.sqrt(k) / m / (2 * sigma)) - 1)
    holds(adaptive.vote_accuracy(1000, 1000) > 0.78)
    # without adaptivity a thousand answers are fine: all within 0.08, except with 2e-2
    at_most(2 * 1000 * np.exp(-2 * 1000 * 0.08**2), 0.02)


@claim("S-adaptive-dp")
def test_the_simulated_analyst():
    # 12 tests of means of 300 worlds at six standard errors: false alarm below 1e-6 in all
    def check(answer, sigma, m=201, asked=(1, 30, 201)):
        rng = np.random.default_rng(13)
        seen = adaptive.noise_analyst(
            (m, 60), asked, answer=lambda h, t: answer(h, t, rng), repetitions=300, rng=rng
        )
        error = 6 * seen.std(1, ddof=1) / np.sqrt(300)
        at_most(np.abs(seen[0].mean(0) - adaptive.vote_accuracy(m, asked, sigma)), error[0])
        at_most(np.abs(seen[1].mean(0) - 0.5), error[1])  # rows that were not looked at

    def noisy(sigma):
        return lambda h, t, rng: dp.gaussian_mechanism(h, sigma=sigma, rng=rng)

    check(lambda h, t, rng: h, 0.0)
    check(noisy(0.05), 0.05)
    must_fail(check, noisy(0.02), 0.05)
    must_fail(check, lambda h, t, rng: t, 0.0)  # told about the wrong sample
    must_fail(check, lambda h, t, rng: 1 - h, 0.0)


@claim("S-adaptive-dp")
def test_weights_screening_and_silence(rng):
    # means of 300 worlds against normal theory; the normal approximation is off by less than 0.003
    def check(weigh, factor):
        rng = np.random.default_rng(14)
        seen = adaptive.noise_analyst(
            (400,), [400], answer=lambda h: h, weigh=weigh, repetitions=300, rng=rng
        )
        error = 0.003 + 6 * seen.std() / np.sqrt(300)
        at_most(abs(seen.mean() - stats.norm.cdf(factor)), error)

    edge = 0.612 / (2 * np.sqrt(400))
    check(None, np.sqrt(2 / np.pi))
    check(lambda a: a - 0.5, 1.0)
    check(lambda a: np.sign(a - 0.5) * (abs(a - 0.5) >= edge), 0.9)
    must_fail(check, lambda a: a - 0.5, np.sqrt(2 / np.pi))
    mute = adaptive.noise_analyst((50,), [5], answer=lambda h: h * np.nan, repetitions=3, rng=rng)
    equal(mute, 0.5)  # no answers, no votes, all ties


@claim("S-adaptive-dp", of=(2.0, 4.0), wrong=[(1.0, 4.0), (2.0, 2.0)])
def test_a_round_of_thresholdout_is_private(ratio, last, rng):
    """It is AboveThreshold on the gaps, which move by 1/m: some below, and then one above."""
    scale, step = 0.01, 1 / 100
    noise = query_release.SparseVector(ratio * scale, last * scale)
    # nearly the worst: many queries that ought to cross, then one that ought not
    cases = [(np.r_[np.full(60, 0.13), 0.05], np.r_[np.full(60, step), -step])]
    cases += [(rng.uniform(0, 0.2, 4), rng.choice([-step, step], 4)) for _ in range(40)]
    for gaps, move in cases:
        n = np.arange(len(gaps))
        reports = np.append(np.where(n > n[:, None], np.nan, np.eye(n.size)), [0 * n], axis=0)
        p, q = (query_release.sparse_log_law(noise, x, reports, 0.1) for x in (gaps, gaps + move))
        at_most(np.abs(p - q), step / scale, rtol=1e-6)
        equal(np.exp(p).sum(), 1.0, rtol=1e-8)


@claim("S-adaptive-dp", of=np.ones(5), wrong=list(1 + 0.05 * np.eye(5)))
def test_thresholdout_draws_what_it_says(factors):
    """The same seed: the first and later G, H of each comparison, Z of each answer, and T."""
    scale, near = 0.01, 0.5 + 0.13
    training, holdout = np.full((1, 12), 0.5), np.full((1, 12), near)

    def stated(factors, rng):
        first, later, last, answer, threshold = factors
        shift, left, told = rng.laplace(0.0, first * 2 * scale), 2, []
        for h, z, g in rng.laplace(0.0, scale, (3, 12)).T:
            above = left and near - 0.5 > threshold * 0.1 + shift + last * 4 * h
            told.append((near + answer * z if above else 0.5) if left else 99)
            if above:
                left, shift = left - 1, later * 2 * g
        return [*told, left]

    def system(rng):
        oracle = adaptive.Thresholdout(0.1, scale, 2, rng=rng)
        told = np.nan_to_num(oracle.answer(training, holdout), nan=99)
        return [*told[0], *oracle.left]

    same_draws(system, stated, factors)


class Bare(adaptive.Thresholdout):
    def answer(self, training, holdout):
        return self._answer(np.array(training), np.array(holdout))


@claim("S-adaptive-dp", of=adaptive.Thresholdout, wrong=[Bare])
def test_threads_that_ask_at_once_share_one_budget(kind):
    class Slow(np.ndarray):
        def __gt__(self, other):
            return slowly(np.array(self) > other)

    oracle = kind(0.1, 0.001, 3, rng=np.random.default_rng(23))
    oracle._left = oracle._left.view(Slow)
    told = together(lambda: oracle.answer([[0.9]], [[0.1]]).item())
    equal(np.sum(~np.isnan(told)), 3)
