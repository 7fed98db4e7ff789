"""The accountant through its public calls: references, schedules, corners. What holds for all runs
is asked of random ones in test_safety, and their truth in test_oracles.
"""

import json
import math
import tracemalloc

import numpy as np
import pytest
from scipy.stats import norm

import dpnotes as dp
from evidence import at_most, equal, holds, must_fail
from machine import ROOT

DATA = ROOT / "tests" / "data"
ROWS = json.loads((DATA / "accounting_reference.json").read_text())["rows"]
CURVES = [row for row in ROWS if not row["what"].startswith(("calibrate", "renyi"))]
SKEW, LEAK = ([0.6, 0.3, 0.1], [0.7, 0.1, 0.2]), ([0.4, 0.2, 0.4], [0.9, 0.1, 0.0])
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 1.7, 3.0])
RUNS = {  # one for every method, and mixtures of them
    "one step": dp.gaussian(1.2),
    "coins": dp.randomized_response(0.4).compose(300),
    "listed": dp.finite(*SKEW).compose(6),
    "leaking": dp.finite(*LEAK).compose(2),
    "smooth": dp.subsample(dp.gaussian(0.8), 0.05).compose(200),
    "pinched": dp.laplace(1.2).compose(3),
    "mixed": dp.gaussian(2.0) + dp.laplace(1.5) + dp.subsample(dp.gaussian(1.0), 0.1).compose(20),
    "leak and noise": dp.finite(*LEAK) + dp.gaussian(1.5),
    "substituted": dp.subsample_substitution(dp.gaussian(1.0), 0.05).compose(100),
}
every_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


def loss_of(row):
    """The PrivacyLoss of a reference row."""
    kind, k = row["what"], row["k"]
    if kind == "randomized response":
        return dp.randomized_response(row["epsilon"]).compose(k)
    if kind == "laplace":
        return dp.laplace(row["scale"]).compose(k)
    if kind == "gaussian":
        return dp.gaussian(row["sigma"]).compose(k)
    loss = dp.subsample(dp.gaussian(row["sigma"]), row["rate"]).compose(k)
    return loss + dp.laplace(row["scale"]) if kind.startswith("laplace +") else loss


# ---------------------------------------------------------------- references


@pytest.mark.parametrize("row", CURVES, ids=lambda row: row.get("id", row["what"]))
def test_reference(row):
    """A value of 25 digits lies in the interval, and that is narrow. It is wide far out, where
    tails are so far below the integrand that its round-off is seen."""
    loss, truth = loss_of(row), row["value"]

    def check(interval):
        low, high = interval
        holds(low <= truth <= high * (1 + 2e-16), "the truth lies in the interval")
        if row["delta"] > 1e-20:
            holds(high - low <= 1e-6 * truth, "the interval is narrow")

    interval = loss.epsilon_interval(row["delta"])
    check(interval)
    if interval[1] - interval[0] < 1e-3 * truth:
        must_fail(check, [1.002 * end for end in interval])
    low, _high = loss.delta_interval(truth)
    holds(low * (1 - 1e-9) <= row["delta"] + 1e-290, "delta at this epsilon")


RARE = [  # sigma, rate, rounds, delta, epsilon: by a program of another author, and its error
    (2.0, 1e-6, 1000, 1e-9, 6.1020911079040e-05, 1e-12),
    (1.0, 1e-5, 100, 1e-9, 1.35760611037792e-03, 1e-12),
    (0.5, 1e-6, 2, 1e-9, 2.95966663281951e-03, 3e-10),
    (1.0, 1e-3, 2, 1e-5, 0.012445140971958, 1e-12),
    (1.0, 1e-9, 10**9, 1e-9, 1.5410844799e-04, 3e-10),
    (
        0.5108541037619877,
        6.254436012482465e-08,
        46013646,
        2.7880853917567564e-14,
        0.64747104713,
        4e-11,
    ),
]


@pytest.mark.parametrize("sigma, rate, k, delta, truth, error", RARE)
def test_rare_losses(sigma, rate, k, delta, truth, error):
    """Where one line sees nothing, each band has its own; also beside other mechanisms."""

    def check(run):
        low, high = run.epsilon_interval(delta)
        holds((low <= truth * (1 + error)) & (truth * (1 - error) <= high), "the truth is inside")
        holds(high - low <= 1e-9 * high, "narrow")

    run = dp.subsample(dp.gaussian(sigma), rate).compose(k)
    check(run)
    must_fail(check, run + dp.subsample(dp.gaussian(sigma), rate))
    others = dp.gaussian(2000.0), dp.subsample(dp.gaussian(0.6), 1e-4).compose(5)
    for other in others:
        low, high = (run + other).epsilon_interval(delta)
        holds((high >= truth * (1 - error)) & (high - low <= 1e-9 * high), "a mixture")


def test_infinite_losses_stay():
    """Their chance is the least delta, at every epsilon, beside any noise."""
    run = dp.finite(*LEAK).compose(3) + dp.subsample(dp.gaussian(1.0), 0.1).compose(20)
    chance = 1 - 0.6**3
    equal(run.delta(200.0), chance, rtol=1e-12)
    holds(run.epsilon(chance * (1 - 1e-9)) == math.inf, "no epsilon for less")
    holds(run.epsilon(chance * (1 + 1e-6)) < 200, "an epsilon for more")
    everything = dp.finite([1.0, 0.0], [0.0, 1.0])  # is published: disjoint laws
    for run in (everything, everything.compose(3), everything + dp.gaussian(1.0)):
        equal([run.delta(5.0), *run.epsilon([0.0, 0.5, 1.0])], [1.0, math.inf, math.inf, 0.0])
        equal([run.renyi(2.0), run.tradeoff(0.3)], [math.inf, 0.0])


# ---------------------------------------------------------------- laws that all answers obey


@every_run
def test_arrays_are_answered_like_numbers(run):
    epsilon, delta = np.linspace(0, 4, 23), np.geomspace(1e-9, 0.3, 17)
    for interval, many in ((run.delta_interval, epsilon), (run.epsilon_interval, delta)):
        low, high = interval(many)
        one = np.array([interval(x) for x in many.tolist()]).T
        holds((low <= one[1]) & (one[0] <= high), "the intervals intersect")
    for query in (run.delta, run.epsilon, run.renyi, run.tradeoff):
        holds(query([[1.0], [1.0]]).shape == (2, 1), "an array of the same shape")
        holds(type(query(np.float64(1.0))) is float, "a number for a number")


@every_run
def test_composition_adds(run):
    twice = run.compose(2)
    low, high = (run + run).delta_interval(EPSILONS)
    least, most = twice.delta_interval(EPSILONS)
    holds((low <= most) & (least <= high), "k rounds are a sum")
    at_most(run.delta(EPSILONS), most, rtol=1e-9)
    at_most(run.delta(EPSILONS), (run + dp.gaussian(30.0)).delta_interval(EPSILONS)[1], rtol=1e-9)
    equal(twice.renyi([1.0, 1.5, 4.0]), 2 * run.renyi([1.0, 1.5, 4.0]), rtol=1e-10)
    equal(run.mean(), run.renyi(1.0))


def test_tradeoff_of_gaussian_noise():
    alpha = np.linspace(0.001, 0.999, 77)
    for mu in (0.1, 1.0, 4.0):
        truth = norm.cdf(norm.ppf(1 - alpha) - mu)
        equal(dp.gaussian(1 / mu).tradeoff(alpha), truth, rtol=1e-9, atol=1e-15)
    must_fail(equal, dp.gaussian(1.0).tradeoff(alpha), norm.cdf(norm.ppf(1 - alpha) - 1.001))


def test_tradeoff_of_one_finite_loss_in_a_direction():
    lone = dp.subsample(dp.finite([0.45, 0.55], [0.0, 1.0]), 0.3)
    equal(lone.tradeoff(0.12), 0.88 * 0.865, rtol=1e-12)  # ((0.135, 0.865), (0, 1)) at level 0.12


# ---------------------------------------------------------------- corners


def test_the_largest_loss_ends_the_curve():
    for run, top in ((dp.laplace(0.5).compose(7), 14.0), (RUNS["coins"], 120.0)):
        equal(run.epsilon(0.0), top)
        holds(run.delta(top * (1 + 1e-12)) == 0.0, "nothing beyond")
        near = run.epsilon_interval(1e-75)
        holds(near[0] > top * (1 - 1e-9), "next to it")
        at_most(run.delta(top * (1 - 1e-9)), 1e-9 * top * 1.01)


def test_far_out_and_certain():
    run = dp.subsample(dp.gaussian(1e4), 1e-10).compose(2)
    holds(run.delta_interval(0.5)[1] < 1e-280, "far out")
    holds(dp.gaussian(0.01).epsilon(1e-300) > 8000, "a tiny delta")
    tiny = dp.subsample(dp.gaussian(4510.0), 1.94e-5).compose(5)
    holds(3e-8 < tiny.epsilon(1.93e-12) < 4e-8, "a tiny loss")
    low, high = dp.randomized_response(0.25).compose(10**6).delta_interval(1.0)
    holds(1 - 1e-9 < low <= high == 1.0, "certain")
    holds(dp.gaussian(1.0).epsilon(1.0) == dp.laplace(1.0).epsilon(0.9) == 0.0, "no epsilon")


def test_many_tiny_losses_change_nothing():
    """200,001 outcomes whose losses cancel to first order; their equal weights must lose no digits
    when they are added up."""
    p = np.full(200_001, 1 / 200_001)
    q = p * (1 + 2e-11 * np.linspace(-1, 1, len(p)))
    tiny = dp.finite(p / math.fsum(p), q / math.fsum(q))
    low, high = (tiny + dp.gaussian(1.0)).delta_interval(1.0)
    holds(low <= dp.gaussian(1.0).delta(1.0) <= high < low * (1 + 1e-12), "the Gaussian's curve")


def delta_of_schedule(sigmas, rate, epsilon, c, period):
    """Of the direction that is the worse one here, by plain sums: one line, and for each step its
    own mesh."""
    z = c + 2j * np.pi / period * np.arange(500)
    log_moment = np.zeros(len(z), complex)
    for sigma in sigmas:
        x, dx = np.linspace(-14 * sigma, 14 * sigma + 14, 500, retstep=True)
        loss = np.log1p(rate * np.expm1((x - 0.5) / sigma**2))
        q = np.exp(-0.5 * (x / sigma) ** 2) * dx / (sigma * np.sqrt(2 * np.pi))
        log_moment += np.log(np.exp(np.outer(z + 1, loss)) @ q)
    terms = np.exp(log_moment - epsilon * z) / (z * (z + 1))
    return (2 * terms.real.sum() - terms.real[0]) / period


@pytest.mark.parametrize("sigmas, rate, epsilon, line", [
    (np.geomspace(0.9, 3.0, 150), 0.01, 1.0, (5.0, 20.0)),
    (np.linspace(4.0, 0.8, 90), 0.05, 3.0, (3.0, 30.0)),
    (2 + np.cos(np.linspace(0, np.pi, 40)), 0.2, 6.0, (3.0, 30.0)),
])  # fmt: skip
def test_a_schedule_is_the_sum_of_its_steps(sigmas, rate, epsilon, line):
    """Against a line of its own; the narrow interval holds it."""
    truth = delta_of_schedule(sigmas, rate, epsilon, *line)

    def check(sigmas):
        run = sum(dp.subsample(dp.gaussian(sigma), rate) for sigma in sigmas)
        low, high = run.delta_interval(epsilon)
        holds((low <= truth * (1 + 1e-11)) & (truth * (1 - 1e-11) <= high), "the truth is inside")
        holds(high - low <= 1e-9 * high, "narrow")

    check(sigmas)
    must_fail(check, sigmas[1:])


def test_a_rare_schedule_lies_between_rounded_ones():
    """More noise loses less; a line for each band makes the interval narrow."""
    sigmas = np.linspace(0.9, 1.2, 45).reshape(-1, 5)
    low, high = sum(dp.subsample(dp.gaussian(s), 1e-5) for s in sigmas.flat).epsilon_interval(1e-9)
    ends = [sum(dp.subsample(dp.gaussian(s), 1e-5).compose(5) for s in sigmas[:, n])
            for n in (-1, 0)]  # fmt: skip
    holds((ends[0].epsilon(1e-9) < low) & (high < ends[1].epsilon(1e-9)), "between")
    holds((0 < low) & (high - low <= 1e-9 * high), "narrow")


@pytest.mark.parametrize("sigma, rate, delta", [
    (1.5, 0.02, 1e-6), (0.8, 0.1, 1e-5), (1.2, 1e-5, 1e-9),
])  # fmt: skip
def test_steps_that_hardly_differ_are_as_equal_ones(sigma, rate, delta):
    different = [dp.subsample(dp.gaussian(sigma * (1 + 1e-13 * j)), rate) for j in range(60)]
    equal_steps = dp.subsample(dp.gaussian(sigma), rate).compose(60)
    (low, high), truth = sum(different).epsilon_interval(delta), equal_steps.epsilon(delta)
    holds((abs(high - truth) <= 1e-9 * truth) & (high - low <= 1e-9 * high), "the same")


@pytest.mark.parametrize("sigmas, rate, least, most", [
    (np.linspace(0.8, 2.5, 14_100), 0.01, 4.77, 4.78),
    (np.geomspace(6500, 9300, 8), 0.2, 5.39e-5, 5.40e-5),
])  # fmt: skip
def test_schedules_are_sharp_and_small(sigmas, rate, least, most):
    run = sum(dp.subsample(dp.gaussian(s), rate) for s in sigmas.tolist())
    tracemalloc.start()
    low, high = run.epsilon_interval(1e-5)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    holds((least < low) & (high < most) & (high - low <= 1e-9 * high), "sharp")
    holds(held < 2e8, "200 MB")


def test_little_noise_on_a_sample_shows_whether_the_row_was_taken():
    """Else a round loses log(1 - r), or under substitution nothing; but for e^-300 of it."""
    sigma, rate, alpha = 2.0**-6, 2.0**-20, 1 + np.array([6, 8, 12, 24]) / 1024
    c, step = alpha - 1, dp.gaussian(sigma)
    taken = rate**alpha * np.exp(c * alpha / (2 * sigma**2))
    not_taken = np.expm1(alpha * np.log1p(-rate)), -rate  # less 1
    for sample, rest in zip((dp.subsample, dp.subsample_substitution), not_taken, strict=True):
        equal(sample(step, rate).renyi(alpha) * c, np.log1p(taken + rest), rtol=2e-14)


def test_kinds_of_very_different_losses_share_their_bands():
    """In a band of the large losses the other kind has no weight at all."""
    small = dp.subsample(dp.gaussian(100.0), 1e-10).compose(5)
    large = dp.subsample(dp.gaussian(0.6), 1e-6).compose(10_000)
    low, high = (large + small).epsilon_interval(1e-9)
    assert large.epsilon_interval(1e-9)[0] <= high and high - low < 1e-11 * high
