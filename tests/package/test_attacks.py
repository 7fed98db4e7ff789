"""TPR, advantage and mu: what no attack exceeds, and close to it. The truth is enumerated, or that
of normal laws by SciPy."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from test_tradeoff import best_test, product

import dpnotes as dp
from dpnotes.accountant.direction import Direction
from evidence import at_most, equal, must_fail

FLAT = 1e-12  # how far 1 - (an error) may be off


def random_run(rng):
    """(run, p, q) of up to four rounds of a random pair of laws, all outcomes written out."""
    p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
    k = int(rng.integers(1, 5))
    return dp.finite(p, q).compose(k), *product(p, q, k)


def gaussian_delta(mu, epsilon):
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


def test_no_attack_finds_more_and_one_finds_as_much():
    rng = np.random.default_rng(52)

    def check(found):
        for _ in range(40):
            run, p, q = random_run(rng)
            fpr = float(rng.choice([0.0, 1e-9, 0.01, rng.random(), 1.0]))
            exact = max(1 - best_test(q, p, fpr), 1 - best_test(p, q, fpr))
            at_most(exact, found(run, fpr), rtol=1e-15, atol=2e-16)  # sums of the enumeration
            at_most(found(run, fpr), exact, rtol=1e-11, atol=FLAT)

    check(lambda run, fpr: run.tpr(fpr))
    must_fail(check, lambda run, fpr: run.tpr(fpr) * (1 - 1e-9))
    must_fail(check, lambda run, fpr: run.tpr(fpr) * (1 + 1e-9))
    must_fail(check, lambda run, fpr: 1 - run.tradeoff(1 - fpr))


def test_small_rates_keep_their_digits():
    """Through delta alone, for a Gaussian that the closed form is kept from."""
    fpr = np.array([1e-12, 1e-9, 1e-6, 0.01, 0.3])
    exact = ndtr(ndtri(fpr) + 0.5)

    def check(sigma):
        run = dp.gaussian(sigma) + dp.randomized_response(1e-13)
        at_most(exact, run.tpr(fpr), rtol=1e-12)
        at_most(run.tpr(fpr), exact, rtol=1e-6)

    check(2.0)
    must_fail(check, 2.0 * (1 + 1e-6))
    must_fail(check, 2.0 * (1 - 1e-6))


def test_few_places_are_asked(monkeypatch):
    """Each asks for a line, or reads one: there are no more because a second direction is bounded,
    or because a curve has a kink, or is known to few digits."""
    asked, curve = [], Direction.curve
    monkeypatch.setattr(Direction, "curve", lambda *given: asked.append(1) or curve(*given))
    training = dp.subsample(dp.gaussian(1.1), 256 / 60_000).compose(14_100)
    atoms = dp.subsample(dp.laplace(0.001), 0.5).compose(10)
    for run, most in ((training, 12), (atoms, 12), (dp.randomized_response(1.0), 24)):
        asked.clear()
        run.tpr(0.01)
        assert 2 <= len(asked) - 1 <= most  # one is the advantage


def test_an_answer_has_the_shape_of_the_question():
    run = dp.subsample(dp.gaussian(1.0), 0.01).compose(100)
    fpr = np.array([[0.0, 0.01], [0.5, 1.0]])
    both = run.tpr(fpr)
    assert both.shape == (2, 2) and type(run.tpr(0.01)) is float
    equal(both[0, 1], run.tpr(0.01), rtol=1e-11)
    assert np.all(both >= fpr) and both[1, 1] == 1.0
    assert run.advantage() == run.delta(0.0)
    leak = dp.finite([1e-20, 1 - 1e-20], [0.0, 1.0])
    at_most(1e-20, leak.tpr(0.0), rtol=1e-15)


def test_the_advantage_is_the_total_variation():
    rng = np.random.default_rng(53)

    def check(found):
        for _ in range(20):
            run, p, q = random_run(rng)
            exact = np.abs(p - q).sum() / 2
            at_most(exact, found(run), rtol=1e-15, atol=2e-16)
            at_most(found(run), exact, rtol=1e-11)

    check(lambda run: run.advantage())
    must_fail(check, lambda run: run.advantage() * (1 - 1e-9))
    must_fail(check, lambda run: run.advantage() * (1 + 1e-9))


def enumerated_mu(p, q, delta):
    """The least and the greatest mu on a fine grid of epsilon, by SciPy."""

    def curve(epsilon):
        return max(np.maximum(a - np.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))

    if curve(0.0) <= delta:
        return 0.0, 0.0
    end = brentq(lambda e: curve(e) - delta, 0.0, 60.0, xtol=1e-14)
    deltas = {e: curve(e) for e in np.linspace(0, end, 400)}
    found = [brentq(lambda mu: gaussian_delta(mu, e) - d, 1e-3, 40) for e, d in deltas.items()]  # noqa: B023
    return min(found), max(found)


def test_mu_holds_all_that_belong_to_the_curve():
    rng, cases = np.random.default_rng(54), []
    for _ in range(12):
        run, p, q = random_run(rng)
        delta = float(10 ** rng.uniform(-4, -1))
        cases.append((run, delta, *enumerated_mu(p, q, delta)))

    def check(found):
        for run, delta, low, high in cases:
            least, most = found(run, delta)
            at_most(least, low, rtol=1e-9)
            at_most(high, most, rtol=1e-9)
            at_most(low, least, rtol=0.01)  # atoms make kinks, which the grid may miss
            at_most(most, high, rtol=0.01)

    check(lambda run, delta: run.mu(delta))
    for shares in (1.011, 1.0), (1.0, 0.989), (0.989, 1.0), (1.0, 1.011):
        must_fail(check, lambda run, delta, shares=shares: np.multiply(run.mu(delta), shares))
    must_fail(check, lambda run, delta: run.mu(delta * 0.5))


RUNS = [
    dp.subsample(dp.gaussian(1.1), 256 / 60_000).compose(14_100),
    dp.subsample(dp.gaussian(1.5), 0.3).compose(30),
    dp.laplace(2.0).compose(20),
    dp.randomized_response(0.1).compose(500) + dp.gaussian(3.0),
    dp.finite([0.7, 0.2, 0.1], [0.3, 0.3, 0.4]).compose(2),
]


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_a_run_tells_no_more_than_gaussian_noise_with_its_high_mu(run):
    fpr = np.array([1e-6, 1e-3, 0.05, 0.5, 0.95])
    low, high = run.mu(1e-6)
    at_most(run.tpr(fpr), ndtr(ndtri(fpr) + high) + 1e-6, atol=1e-13)
    epsilon = np.linspace(0, run.epsilon(1e-6), 2000)
    delta = run.delta(epsilon)

    def check(least, most):
        at_most(delta, gaussian_delta(most, epsilon), rtol=1e-8)
        at_most(gaussian_delta(least, epsilon), delta, rtol=1e-8)

    check(low, high)
    must_fail(check, low, high * (1 - 1e-3))
    must_fail(check, low * (1 + 1e-3), high)


def test_mu_of_gaussian_noise_and_of_what_has_no_mu():
    low, high = (dp.gaussian(2.0).compose(9)).mu()
    assert low < 1.5 < high < 1.5 + 1e-14
    assert dp.finite([1.0], [1.0]).mu() == (0.0, 0.0) == dp.laplace(1e3).mu(0.01)
    leak = dp.finite([0.5, 0.499, 0.001], [0.5, 0.5, 0.0])  # delta never falls below 0.001
    low, high = leak.mu()
    at_most(low, brentq(lambda mu: gaussian_delta(mu, 0.0) - 0.001, 1e-6, 1), rtol=1e-9)
    assert high == np.inf
    all_told = dp.gaussian(0.05) + dp.laplace(30.0)
    assert 10 < all_told.mu()[0] < np.inf == all_told.mu()[1]


def test_without_a_floor_mu_tends_to_that_of_a_run_without_sampling():
    """The greatest mu grows as the floor falls, towards sqrt(k)/sigma; of a bounded loss the least
    one falls."""
    run = dp.subsample(dp.gaussian(1.1), 0.1).compose(4)
    high = [run.mu(delta)[1] for delta in (1e-3, 1e-10, 1e-60, 1e-250)]
    assert high == sorted(high) and 1.2 < high[-1] < 2 / 1.1
    low = [dp.laplace(1.0).mu(delta)[0] for delta in (1e-2, 1e-5, 1e-10)]
    assert low == sorted(low, reverse=True) and low[-1] < 0.2


def test_the_same_question_gives_the_same_digits():
    run = dp.subsample(dp.gaussian(1.0), 0.01).compose(1000)
    before = run.tpr(0.01), run.mu()
    run.delta([0.1, 3.0]), run.mu(1e-5), run.tpr([0.5, 0.9])
    assert (run.tpr(0.01), run.mu()) == before


def test_no_rate_is_above_that_of_the_false_alarms_and_the_advantage():
    far = dp.subsample(dp.gaussian(0.0395), 0.000531).compose(656)
    for run in (far, dp.gaussian(1.0), dp.laplace(0.5).compose(3)):
        assert run.tpr(0.000147) <= 0.000147 * (1 + 1e-12) + run.advantage()
    assert far.tpr(0.000147) < 0.2945
