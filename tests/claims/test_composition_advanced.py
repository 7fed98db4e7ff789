"""The claims of the chapter `composition`: every advanced theorem, on coins (exactly, by binomial
tails) and on random adaptive compositions of three rounds.
"""

import math

import numpy as np
import pytest

import dpnotes as dp
from boxes import cosh, expm1, for_all, log, root, tanh
from dpnotes.chapters import approximate_dp, composition
from evidence import at_most, claim, equal, holds, must_fail, slip
from rounds import (
    MEANS,
    approximate_tree,
    joint,
    optimal,
    optimal_of_different,
    quadratic,
    random_rounds,
)


def chernoff_of_a_round(says, mean, epsilons, azuma=False, touch=(0,)):
    """The theorem with this mean loss by Chernoff's bound, for the worst round and any delta'.

    The loss L of randomized response has log E exp(lam L) = log cosh(lam eps + eps/2) - log
    cosh(eps/2), and no round has more (U-pure-zcdp). It is to be at most lam eps' - y^2/2, where
    lam = y/size and eps' is the theorem's for one round at delta' = exp(-y^2/2): then k rounds have
    a loss above k eps' with probability at most delta'^k, and k eps' is the theorem's for that.
    """
    formula, computed = mean
    theorem = composition.advanced_azuma if azuma else composition.advanced

    def size(e, mean=formula):
        return e + azuma * mean(e)

    def moment(y, e):
        return log(cosh(y * e / size(e) + e / 2)) - log(cosh(e / 2)) + y * y / 2

    def promised(y, e):
        return y / size(e, computed) * theorem(e, 1, np.exp(-y * y / 2), mean=computed)

    for_all(
        says,
        moment,
        (promised, lambda y, e: y * formula(e) / size(e) + y * y),
        {"y": (0, 20), r"\eps": epsilons},
        touch=touch,
        too_low=[
            lambda y, e: 0.2 * y * formula(e) / size(e) + y * y,
            lambda y, e: y * formula(e) / size(e) + 0.55 * y * y,
        ][: 1 + (epsilons[0] < 0.6)],  # above log 2 the mean alone, eps, is always enough
    )


EXPONENTIAL = (lambda e: e * expm1(e), composition.kl_from_pure_exponential)
QUADRATIC = (lambda e: e * e / 2, quadratic)
UP_TO_LOG_2 = (lambda e: e * expm1(e), composition.kl_from_pure_piecewise), (0.05, 0.6931)
FROM_LOG_2 = (lambda e: e, composition.kl_from_pure_piecewise), (0.6932, 5)


@claim("A-advanced-pure", "A-advanced-approx")
def test_the_tail_of_a_round_with_half_epsilon_squared_everywhere():
    says = r"$\ln\E e^{y\loss/\eps} \le \frac{y\eps}2 + \frac{y^2}2$"
    chernoff_of_a_round(says, QUADRATIC, (0.5, 10))


def approximate_checks(bound, total, seed):
    rng = np.random.default_rng(seed)
    for epsilon in (0.0, 0.05, 0.3):
        for delta in (1e-3, 0.05, 0.3):
            tree = approximate_tree(rng, [epsilon] * 3, [delta] * 3, (3, 4, 3), 40)
            p, q = map(joint, tree)
            for beta in (0.3, 0.6, 0.95):
                deltas = (
                    dp.hockey_stick(*pair, bound(epsilon, 3, beta)) for pair in ((p, q), (q, p))
                )
                at_most(np.maximum(*deltas), total(delta, 3, beta))
    epsilon, k, beta = random_rounds(np.random.default_rng(seed), 300)
    for e, n, b, d in zip(epsilon, k, beta, rng.random(300) ** 8 / k, strict=True):
        least = composition.optimal_delta(e, n, float(bound(e, n, b)), d)
        at_most(least, total(d, n, b), rtol=1e-9)


def composed_delta(delta, k, beta):
    """One event of a round, or the theorem's own, is enough."""
    return -np.expm1(k * np.log1p(-delta) + np.log1p(-beta))


def sum_of_deltas(delta, k, beta):
    return k * delta + beta


def independent_bound(epsilon, k, beta):
    return composition.advanced(epsilon, k, beta, mean=composition.kl_from_pure_piecewise)


@claim("T-17", "T-eight-cases")
def test_advanced_independent_approximate():
    approximate_checks(independent_bound, composed_delta, 16)
    delta, k, beta = np.random.default_rng(17).random((3, 2000))
    k = np.ceil(50 * k)
    at_most(composed_delta(delta, k, beta), sum_of_deltas(delta, k, beta))
    must_fail(approximate_checks, independent_bound, lambda d, k, b: b, 16)
    must_fail(approximate_checks, independent_bound, lambda d, k, b: (k - 1) * d, 16)


@claim("T-17")
def test_shrinking_an_event_needs_a_coin():
    fair = np.array([0.5, 0.5])  # p = q; E always happens, F by a coin of its own

    def check(kept):  # P(E and xi = y), after shrinking E to the probability of F
        equal(kept.sum(), 0.5)
        at_most(dp.max_divergence(kept / kept.sum(), fair), 0.0, atol=1e-15)

    check(0.5 * fair)  # by an independent coin
    subset = np.array([0.5, 0.0])  # the subset {xi = 0}
    must_fail(check, subset)
    slip(
        "T-17",
        "p = q the fair coin, ε = 0, P(E) = 1, F an independent event of probability 1/2: the "
        "subset {ξ = 0} of E is as likely as F, but given it ξ is a constant, and the largest loss "
        f"of q given F against it is {dp.max_divergence(fair, subset / 0.5)}, not 0",
    )


@pytest.mark.slow
@claim("T-18", "A-advanced-approx", "T-eight-cases")
def test_advanced_adaptive_approximate():
    approximate_checks(composition.advanced, composed_delta, 18)
    must_fail(approximate_checks, composition.advanced, lambda d, k, b: b, 18)
    must_fail(approximate_checks, lambda e, k, b: 0.0 * e * k, sum_of_deltas, 18)


@claim("T-18")
def test_conditioning_on_all_events_changes_the_rounds_before():
    epsilon, delta = 0.5, 0.2
    p1 = np.array([np.exp(epsilon), 1.0]) / (1 + np.exp(epsilon))
    q1 = p1[::-1]
    leak = dp.dominating_pair(epsilon, delta)
    same = np.full(4, 0.25)
    p2, q2 = (np.stack([same, law]) for law in leak)  # round 2 leaks only after output 1
    e, f = approximate_dp.conditioning_events(p2, q2, epsilon)  # events E_2, F_2 of claim 5
    mass = e.sum(-1)
    equal(mass, f.sum(-1))
    holds(mass >= 1 - delta - 1e-12)
    ratio = np.abs(np.log(p1 * mass / (p1 @ mass) / (q1 * mass / (q1 @ mass)))).max()
    holds(ratio > epsilon + 0.04)
    for scaled in approximate_dp.conditioning_events(p2, q2, epsilon, delta):
        equal(scaled.sum(-1), 1 - delta)  # the repair: equal masses
    slip(
        "T-18",
        f"ε = 0.5, δ = 0.2, round 1 a coin, round 2 leaks with probability δ after one of its "
        f"sides only: given E = E₁ ∩ E₂ and F = F₁ ∩ F₂ the laws of round 1 are {ratio:.4f}-, not "
        "0.5-indistinguishable",
    )


def book_bound(epsilon, k, delta_prime):
    return composition.advanced(epsilon, k, delta_prime, mean=composition.kl_from_pure_exponential)


@claim("F-3.20")
def test_the_books_theorem_and_its_misprint():
    def printed(epsilon, k, delta_prime):
        return np.sqrt(2 * k * np.log(1 / delta_prime)) + k * epsilon * np.expm1(epsilon)

    small = np.linspace(0.001, np.log(2), 500)
    equal(book_bound(small, 50, 1e-5), independent_bound(small, 50, 1e-5))  # T-14 up to log 2
    epsilon, k, beta = random_rounds(np.random.default_rng(20), 3000)
    true = np.minimum(composition.advanced(epsilon, k, beta), k * epsilon)
    at_most(true, printed(epsilon, k, beta))  # what is printed is not false ...
    at_most(np.log(2) * k, printed(np.log(2), k, beta))  # ... but useless
    slip(
        "F-3.20",
        f"k = 100 rounds of ε = 0.01, δ' = 1e-6: printed {printed(0.01, 100, 1e-6):.2f}, right "
        f"{book_bound(0.01, 100, 1e-6):.4f}, basic composition 1; at ε = 0 it is still "
        f"{printed(0.0, 100, 1e-6):.2f}",
    )


@claim("U-advanced")
def test_slides_theorem_and_the_promised_half():
    values = [
        composition.advanced(0.1, 1000, 1e-6, mean=lambda e: 2 * e**2),
        composition.advanced(0.1, 1000, 1e-6, mean=quadratic),
        composition.optimal(0.1, 1000, 1e-6),
    ]
    at_most(values[1:], values[:-1])
    slip(
        "U-advanced",
        f"k = 1000, ε = 0.1, δ' = 1e-6: ε' = {values[0]:.2f} with the constant 2, {values[1]:.2f} "
        f"with 1/2, and {values[2]:.2f} is the best possible",
    )


@pytest.mark.slow
@claim(
    "A-advanced-pure",
    of=composition.advanced_heterogeneous,
    wrong=[
        # safe, but it pays for the largest epsilon in every round
        lambda e, b: composition.kl_from_pure(e).sum() + e.max() * np.sqrt(-2 * e.size * np.log(b)),
        lambda e, b: 0.4 * composition.advanced_heterogeneous(e, b),
    ],
)
def test_different_rounds(bound, rng):
    for _ in range(300):
        epsilons = rng.exponential(0.3, rng.integers(1, 9))
        for beta in (1e-3, 0.1, 0.7):
            target = bound(epsilons, beta)
            at_most(optimal_of_different(epsilons, target), beta)
            squares, means = (epsilons**2).sum(), (epsilons * np.tanh(epsilons / 2)).sum()
            equal(target, means + math.sqrt(2 * math.log(1 / beta) * squares))
    same = composition.advanced_heterogeneous([0.2] * 50, 1e-4)
    equal(same, composition.advanced(0.2, 50, 1e-4))


@claim("A-advanced-approx")
def test_half_of_epsilon_before_the_root_is_not_enough():
    transcribed = 1000 * 0.1**2 / 2 + 0.1 / 2 * math.sqrt(2000 * math.log(1e6))
    least = composition.optimal_delta(0.1, 1000, transcribed)
    holds(least > 1e-6)
    slip(
        "A-advanced-approx",
        f"k = 1000 rounds of randomized response with ε = 0.1, δ' = 1e-6: with ε/2 before the root "
        f"ε' = {transcribed:.2f}, where the exact δ is {least:.1e}",
    )


@claim("T-eight-cases")
def test_the_map_of_eight_cases():
    """Each general case contains the special one; the corners are T-10, T-17 and T-18."""
    epsilon, k, beta = random_rounds(np.random.default_rng(30), 3000)
    at_most(independent_bound(epsilon, k, beta), composition.advanced_azuma(epsilon, k, beta))
    equal(composed_delta(0.0, k, beta), beta)


def best_beta(target, epsilon, k, mean):
    """The least delta' at which the theorem reaches the target."""
    return np.exp(-((np.maximum(target - k * mean(epsilon), 0) / epsilon) ** 2) / (2 * k))


@claim(
    "T-beta-choice",
    of=best_beta,
    wrong=[
        lambda t, e, k, m: best_beta(t, e, k, m) ** 1.01,
        lambda t, e, k, m: np.exp(-((t / e) ** 2) / (2 * k)),
    ],
)
def test_every_beta_holds_at_once(best, rng):
    for mean in MEANS:
        epsilon, k, beta = random_rounds(rng, 1500)
        target = composition.advanced(epsilon, k, beta, mean=mean)
        betas = best(target, epsilon, k, mean)
        close = np.abs(np.log(beta)) > 1e-3
        equal(betas[close], beta[close], rtol=1e-5)  # the inverse: no better beta gives this target
    epsilon, k, _ = random_rounds(rng, 300)
    target = k * epsilon * rng.random(300)
    at_most(optimal(epsilon, k, target), best(target, epsilon, k, composition.kl_from_pure))


@claim(
    "T-beta-choice",
    of=lambda total, delta, k: -np.expm1(np.log1p(-total) - k * np.log1p(-delta)),
    wrong=[
        lambda total, delta, k: total - k * delta,  # safe, not the best
        lambda total, delta, k: total,
    ],
)
def test_the_best_beta_for_a_total_delta(choose, rng):
    epsilon, k, _ = random_rounds(rng, 2000)
    total = np.exp(rng.uniform(np.log(1e-6), np.log(0.5), 2000))
    delta = total * rng.uniform(0.0, 0.9, 2000) / k  # some of the total is left for beta
    beta = choose(total, delta, k)
    equal(composed_delta(delta, k, beta), total, rtol=1e-8)  # all of it is spent
    for share in (0.5, 0.9, 0.999):  # a smaller beta is allowed, and costs more epsilon
        at_most(composed_delta(delta, k, share * beta), total)
        dearer = composition.advanced(epsilon, k, share * beta)
        at_most(composition.advanced(epsilon, k, beta), dearer)
    holds(composed_delta(delta, k, np.minimum(1.001 * beta, 1.0)) > total)  # a larger is not


@claim("T-beta-choice")
def test_where_advanced_overtakes_basic(rng):
    epsilon, beta = np.exp(rng.uniform(-6, 0.5, 1000)), np.exp(rng.uniform(-25, -0.1, 1000))

    def first(mean, width):  # in units of epsilon
        k = -2 * np.log(beta) * (width / np.maximum(1 - mean, 1e-9)) ** 2
        return np.where(mean < 1, np.floor(k) + 1, np.inf)

    cases = [
        (lambda e, k, b, m=m: composition.advanced(e, k, b, m), first(m(epsilon) / epsilon, 1))
        for m in MEANS
    ]
    a = composition.kl_from_pure_piecewise(epsilon) / epsilon
    cases.append((composition.advanced_azuma, first(a, 1 + a)))
    for bound, first_k in cases:
        never = np.isinf(first_k)
        k = np.where(never, 1e9, first_k)
        holds((bound(epsilon, k, beta) < k * epsilon) == ~never)
        late = k > 1
        before = bound(epsilon, np.maximum(k - 1, 1), beta)
        at_most((k * epsilon - epsilon)[late], before[late])


@claim("T-14", "T-17")
def test_the_tail_of_a_round_with_the_piecewise_mean_everywhere():
    for mean, epsilons in (UP_TO_LOG_2, FROM_LOG_2):
        says = r"$\ln\E e^{y\loss/\eps} \le \frac y\eps a(\eps) + \frac{y^2}2$"
        chernoff_of_a_round(says, mean, epsilons)


@claim("T-16", "T-18")
def test_the_tail_of_a_round_by_azuma_everywhere():
    for mean, epsilons in (UP_TO_LOG_2, FROM_LOG_2):
        says = r"$\ln\E e^{y\loss/b} \le \frac yb a(\eps) + \frac{y^2}2$, $b = \eps + a(\eps)$,"
        chernoff_of_a_round(says, mean, epsilons, azuma=True)


@claim("F-3.20", "S-0.3")
def test_the_tail_of_a_round_with_the_exponential_mean_everywhere():
    says = r"$\ln\E e^{y\loss/\eps} \le y(e^\eps - 1) + \frac{y^2}2$"
    chernoff_of_a_round(says, EXPONENTIAL, (0.01, 10))


@claim("U-advanced")
def test_the_tail_of_a_round_with_twice_epsilon_squared_everywhere():
    says = r"$\ln\E e^{y\loss/\eps} \le 2y\eps + \frac{y^2}2$"
    chernoff_of_a_round(says, (lambda e: 2 * e * e, lambda e: 2 * e**2), (0.01, 10))
    says = r"$\ln\E e^{y\loss/\eps} \le y\tanh\frac\eps2 + \frac{y^2}2$"
    chernoff_of_a_round(
        says, (lambda e: e * tanh(e / 2), composition.kl_from_pure), (0.5, 10), touch=(0, 0)
    )


@claim("A-basic-vs-advanced")
def test_half_of_epsilon_for_the_root_is_enough_everywhere():
    """k = 1 and log(1/delta) = 1: both variances are multiples, in u = epsilon/log(1/delta)."""

    def variance(u):
        return 1 / (root(1 + u) - 1) ** 2

    for_all(
        r"$\frac{1}{(\sqrt{1 + u} - 1)^2} \le \frac{16}{u^2}$, $u = \eps/\ln\frac1\delta$",
        (lambda u: 2 / composition.per_query_epsilon(u, 1, np.exp(-1)) ** 2, variance),
        lambda u: 16 / u**2,
        {"u": (1e-6, 8)},
        touch=(8,),
        too_low=[lambda u: 15.9 / u**2],
    )
