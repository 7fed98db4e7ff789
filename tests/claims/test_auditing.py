"""The claims of the chapter `auditing`: coverage is summed exactly over all counts."""

from itertools import product

import numpy as np
from scipy import special, stats
from scipy.special import ndtr, ndtri

import dpnotes as dp
from boxes import expm1, for_all, log
from dpnotes.chapters import auditing
from evidence import at_most, claim, equal, must_fail


def pmf(n, p):
    """P(Bin(n, p) = k) for k = 0..n along a new last axis."""
    return stats.binom.pmf(np.arange(n + 1), n, np.asarray(p)[..., None])


def wald(k, n, alarm):
    """The estimate and its estimated standard error."""
    width = -ndtri(alarm) * np.sqrt(k / n * (1 - k / n) / n)
    return k / n - width, k / n + width


@claim(
    "X-clopper-pearson",
    of=auditing.clopper_pearson,
    wrong=[wald, lambda k, n, alarm: auditing.clopper_pearson(k, n, min(1.5 * alarm, 0.9))],
)
def test_bounds_of_a_chance_fail_as_rarely_as_stated(bounds):
    chances = np.r_[np.linspace(0, 1, 301), 1e-6, 1e-3, 0.999]
    for n, alarm in product((1, 2, 17, 250), (0.3, 0.05, 1e-4, 1e-9)):
        low, high = bounds(np.arange(n + 1), n, alarm)
        mass = pmf(n, chances)
        at_most((mass * (low > chances[:, None])).sum(1), alarm, rtol=1e-9)
        at_most((mass * (high < chances[:, None])).sum(1), alarm, rtol=1e-9)
    for n, k in ((9, 0), (9, 9), *((50, k) for k in range(51)), (1000, 3)):
        # SciPy's two-sided interval has half of its alarm at each end
        theirs = stats.binomtest(k, n).proportion_ci(0.98, method="exact")
        equal(bounds(k, n, 0.01), theirs, rtol=1e-9)


@claim("X-audit")
def test_what_an_audit_can_show_at_most_everywhere():
    """All of n = 50 runs against none, x = log(2/alpha)/n."""
    for_all(
        r"$\ln\frac1{e^x - 1} \le \ln\frac1x$, $x = \frac1n\ln\frac2\alpha$",
        (
            lambda x: [
                auditing.epsilon_from_counts(50, 0, 50, false_alarm=2 * np.exp(-50 * t)) for t in x
            ],
            lambda x: -log(expm1(x)),
        ),
        lambda x: -log(x),
        {"x": (0.02, 0.69)},
        too_low=[lambda x: -log(1.1 * x)],
    )


@claim(
    "X-audit",
    of=auditing.epsilon_from_counts,
    wrong=[
        # delta forgotten; the estimate for the bound
        lambda k, j, n, d, **alarm: auditing.epsilon_from_counts(k, j, n, 0.0, **alarm),
        lambda k, j, n, d, **alarm: np.log(np.maximum((k / n - d) / np.maximum(j / n, 1 / n), 1)),
    ],
)
def test_the_bound_on_epsilon_fails_as_rarely_as_stated(bound):
    """By summing over all pairs of counts, at the worst chances that (epsilon, delta) allows."""
    for n, alarm in ((1, 0.3), (40, 0.05), (120, 1e-5)):
        k = np.arange(n + 1)
        for epsilon, delta in product((0.0, 0.1, 1.0, 3.0), (0.0, 1e-3, 0.2)):
            bounds = bound(k[:, None], k, n, delta, false_alarm=alarm)
            q = np.array([1e-4, 0.01, 0.1, 0.4, 0.9])
            p = np.minimum(np.exp(epsilon) * q + delta, 1.0)
            wrong = np.einsum("ik,kl,il->i", pmf(n, p), bounds > epsilon, pmf(n, q))
            at_most(wrong, alarm, rtol=1e-9)


@claim("X-audit", of=1.0, wrong=[0.9])
def test_no_audit_finds_more_than_its_runs_allow(factor):
    for n, alarm in product((1, 5, 100, 300), (0.5, 0.05, 1e-8)):
        k, ceiling = np.arange(n + 1), np.log(factor * n / np.log(2 / alarm))
        bounds = auditing.epsilon_from_counts(k[:, None], k, n, false_alarm=alarm)
        at_most(bounds, max(ceiling, 0.0), rtol=1e-9)
        if n >= 100 and alarm > 1e-3:  # and it is nearly attained
            at_most(ceiling - 0.1, bounds[n, 0])


def mu_from_counts(k, other, n, alarm):
    low, _ = auditing.clopper_pearson(k, n, alarm / 2)
    _, high = auditing.clopper_pearson(other, n, alarm / 2)
    return np.maximum(ndtri(low) - ndtri(high), 0.0)


@claim("X-audit-tradeoff", of=0.0, wrong=[2.0])
def test_the_bound_on_mu_fails_as_rarely_as_stated(more):
    """How often the bound on mu exceeds mu for an event that tells the two inputs apart as well as
    mu allows (or better, as a mistake)."""
    q = np.array([1e-4, 0.02, 0.2, 0.5, 0.8])
    for n, alarm in ((1, 0.3), (60, 0.05), (150, 1e-5)):
        k = np.arange(n + 1)
        bounds = mu_from_counts(k[:, None], k, n, alarm)
        for mu in (0.0, 0.3, 1.0, 3.0):
            p = ndtr(ndtri(q) + mu + more)
            wrong = np.einsum("ik,kl,il->i", pmf(n, p), bounds > mu, pmf(n, q))
            at_most(wrong, alarm, rtol=1e-9)


@claim("X-audit-tradeoff")
def test_mu_is_an_epsilon_for_gaussian_pairs_only():
    """The probability that the bound, turned into an epsilon at delta, exceeds the true one."""
    n, delta, alarm = 400, 1e-5, 0.05
    k = np.arange(n + 1)
    bounds = mu_from_counts(k[:, None], k, n, alarm)

    def check(p, q, epsilon):
        allowed = 1 / dp.gaussian_sigma(epsilon, delta)  # the mu that has this epsilon
        at_most(pmf(n, p) @ (bounds > allowed) @ pmf(n, q), alarm, rtol=1e-9)

    for mu, threshold in product((0.5, 1.0, 2.0), (0.0, 1.0)):
        check(ndtr(mu - threshold), ndtr(-threshold), dp.gaussian(1 / mu).epsilon(delta))
    yes = np.e / (1 + np.e)  # randomized response with epsilon = 1
    must_fail(check, yes, 1 - yes, 1.0)
    wrong = pmf(n, yes) @ (bounds > 1 / dp.gaussian_sigma(1.0, delta)) @ pmf(n, 1 - yes)
    at_most(0.99, wrong)


SIGNS = np.array(list(product([-1, 1], repeat=3)))  # the eight settings of three coins
LEFT, RIGHT = np.nonzero((SIGNS[:, None] != SIGNS).sum(-1) == 1)  # that differ in one coin
GUESSES = np.array(list(product([-1, 0, 1], repeat=3)))
GUESSED = (GUESSES[:, None] == SIGNS).sum(-1)  # how many are right: (guess, setting)
MADE = (GUESSES != 0).sum(1)


def mechanisms(rng, count, outcomes):
    """Laws on `outcomes` results for each setting of three coins: (count, 8, outcomes)."""
    width = rng.choice([0.1, 0.6, 2.0], (count, 1, 1))
    return special.softmax(width * rng.normal(size=(count, 8, outcomes)), axis=-1)


@claim("X-one-run", of=1.0, wrong=[0.95])
def test_right_guesses_are_dominated_by_coins(factor):
    laws = mechanisms(np.random.default_rng(2), 2500, 8)
    # the first shows each coin by its own randomized response: the domination is an equality
    truth = special.expit(1.3)
    laws[0] = np.where(SIGNS[:, None] == SIGNS, truth, 1 - truth).prod(-1)
    epsilon = np.log(laws[:, LEFT] / laws[:, RIGHT]).max((1, 2))
    equal(epsilon[0], 1.3)
    posterior = laws / laws.sum(1, keepdims=True)  # of the setting, given the result
    p = special.expit(factor * epsilon)
    for v in (1, 2, 3):
        chance = np.einsum("gs,csy->cgy", GUESSED >= v, posterior)  # every guess, every result
        at_most(chance, stats.binom.sf(v - 1, MADE, p[:, None])[..., None], rtol=1e-9)
        equal(chance[0].max(), stats.binom.sf(v - 1, 3, truth))  # all three guessed as shown


@claim("X-one-run", of=1.0, wrong=[0.0])
def test_what_delta_adds_to_the_right_guesses(factor, rng):
    laws = mechanisms(rng, 3000, 6)
    laws[::2, :, 0] *= rng.random((1500, 8)) < 0.5  # results that some settings cannot show
    laws /= laws.sum(-1, keepdims=True)
    rule = rng.integers(0, len(GUESSES), (3000, 6))  # a guess for each result
    clever = laws.argmax(1)  # the likeliest setting
    rule[::3] = (3 ** np.arange(2, -1, -1) * (SIGNS[clever[::3]] + 1)).sum(-1)
    least = rng.integers(1, 4, (3000, 4))  # v(r): how many right of r raise an alarm
    alarm = GUESSED[rule] >= np.take_along_axis(least, MADE[rule], 1)[..., None]
    chance = np.einsum("cys,csy->c", alarm, laws) / 8
    for epsilon in (0.0, 0.2, 1.0, 2.5):
        over = np.maximum(laws[:, LEFT] - np.exp(epsilon) * laws[:, RIGHT], 0)
        delta = over.sum(-1).max(-1)
        p = 1 / (1 + np.exp(-epsilon))
        tail = stats.binom.sf(least - 1, np.arange(4), p).max(1)
        at_most(chance, tail + factor * 3 * delta / (1 + np.exp(epsilon)), rtol=1e-9)
    # one coin: randomized response that tells all with probability delta attains the bound
    for epsilon, delta in product((0.0, 0.5, 2.0), (0.0, 0.01, 0.3)):
        told = leaky(epsilon, delta)
        equal(dp.hockey_stick(*told, epsilon), delta, atol=1e-15)
        equal(told.max(0).sum() / 2, special.expit(epsilon) + delta / (1 + np.exp(epsilon)))


def leaky(epsilon, delta):
    """Both laws of randomized response that tells its coin with probability delta."""
    lie, p = (1 - delta) * special.expit([-epsilon, epsilon])
    return np.array([[delta, 0, p, lie], [0, delta, lie, p]])


def share(guesses, p):
    """The mean over n < guesses of the largest probability of Bin(n, p), shape of p."""
    n, k = np.arange(guesses)[:, None], np.arange(guesses)
    return stats.binom.pmf(k, n, np.asarray(p)[..., None, None]).max(-1).mean(-1)


@claim("X-one-run", of=share, wrong=[lambda r, p: 0.5 * share(r, p), lambda r, p: share(r + 1, p)])
def test_what_delta_adds_to_a_fixed_number_of_guesses(share, rng):
    """Three coins; the likeliest guesses of r of them, for each result."""
    laws = mechanisms(rng, 4000, 6)
    laws[::2, :, 0] *= rng.random((2000, 8)) < 0.5
    laws[1::4] *= rng.random((1000, 8, 6)) < 0.6  # many results give settings away
    laws += 1e-12
    laws[0] = np.hstack([SIGNS > 0, SIGNS < 0])  # one coin is told, the bound for one guess
    laws /= laws.sum(-1, keepdims=True)
    for r, epsilon in product((1, 2, 3), (0.0, 0.2, 1.0, 2.5)):
        over = np.maximum(laws[:, LEFT] - np.exp(epsilon) * laws[:, RIGHT], 0)
        delta, p = over.sum(-1).max(-1), special.expit(epsilon)
        for v in range(1, r + 1):
            right = (GUESSED[MADE == r] >= v).astype(float)  # (guess, setting)
            chance = np.einsum("gs,csy->cgy", right, laws / 8).max(1).sum(-1)
            most = stats.binom.sf(v - 1, r, p) + 3 * delta / (1 + np.exp(epsilon)) * share(r, p)
            at_most(chance, most, rtol=1e-9)


@claim(
    "X-one-run",
    of=auditing.epsilon_from_guesses,
    wrong=[  # a bound for both ends of an interval
        lambda *given, false_alarm: auditing.epsilon_from_guesses(
            *given, false_alarm=false_alarm / 2
        )
    ],
)
def test_the_bound_of_one_run_in_numbers(bound):
    w = np.arange(51)
    low, _ = auditing.clopper_pearson(w, 50, 0.05)
    equal(bound(w, 50, false_alarm=0.05), special.logit(np.maximum(low, 0.5)))
    for r, alarm in product((1, 3, 40, 1000), (0.4, 0.05, 1e-6)):
        ceiling = np.log(r / np.log(1 / alarm))  # never more than r guesses allow
        at_most(bound(r, r, false_alarm=alarm), max(ceiling, 0.0))
    for right, r, delta, m, alarm in (
        (45, 50, 1e-5, 1000, 0.05),
        (75, 100, 1e-4, 1000, 0.05),
        (1439, 1510, 1e-5, 100_000, 0.05),
        (990, 1000, 1e-6, 10_000, 1e-3),
    ):
        least = bound(right, r, delta, m, false_alarm=alarm)
        p = special.expit(least + np.array([0.0, 1e-3]))
        more = stats.binom.sf(right - 1, r, p) + m * delta * (1 - p) * share(r, p)
        equal(more[0], alarm, rtol=1e-2)  # blocks of numbers of guesses round up
        at_most(alarm, more[1])
    assert bound(45, 50, 1e-3, 10**6, false_alarm=0.05) == 0
    assert auditing.guess_canaries([3.0, 1.0, 2.0, 5.0, 4.0], 2).tolist() == [0, -1, 0, 1, 0]
    equal(bound([0, 0], [0, 4], false_alarm=0.05), 0)  # no guess is allowed, and shows nothing
    equal(auditing.guess_canaries([3.0, 1.0], 0), 0)
