"""The trade-off function: never above the best test, and close to it."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import dpnotes as dp
from evidence import at_most, must_fail


def best_test(p, q, alpha):
    """The likelihood-ratio test at this level, at random on the boundary."""
    order = np.argsort(p / np.maximum(q, 1e-300))
    level, power = np.append(0, np.cumsum(p[order])), np.append(0, np.cumsum(q[order]))
    return 1 - np.interp(alpha, level, power)


def product(p, q, k):
    one, other = np.ones(1), np.ones(1)
    for _ in range(k):
        one, other = np.multiply.outer(one, p).ravel(), np.multiply.outer(other, q).ravel()
    return one, other


def test_finite_losses_against_the_best_test():
    rng = np.random.default_rng(11)

    def check(found):
        for _ in range(40):
            p, q = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
            k, alpha = int(rng.integers(1, 5)), float(rng.choice([1e-6, 0.01, rng.random()]))
            one, other = product(p, q, k)
            exact = min(best_test(one, other, alpha), best_test(other, one, alpha))
            value = found(dp.finite(p, q).compose(k), alpha)
            at_most(value, exact, rtol=1e-13, atol=3e-16)
            at_most(exact, value, rtol=1e-11, atol=1e-14)

    check(lambda run, alpha: run.tradeoff(alpha))
    must_fail(check, lambda run, alpha: run.tradeoff(alpha * (1 - 1e-9)))
    must_fail(check, lambda run, alpha: run.tradeoff(alpha) * (1 - 1e-9))


def test_lines_of_a_smooth_loss():
    """Through delta alone, for a Gaussian that the closed form is kept from."""
    alpha = np.array([1e-9, 0.01, 0.3, 0.9, 1 - 1e-9])
    exact = ndtr(-ndtri(alpha) - 0.5)

    def check(sigma):
        found = (dp.gaussian(sigma) + dp.randomized_response(1e-13)).tradeoff(alpha)
        at_most(found, exact, rtol=1e-14)
        at_most(exact, found, rtol=1e-10, atol=1e-15)  # 1 - delta of one step cancels

    check(2.0)
    must_fail(check, 2.0 * (1 + 1e-8))
    must_fail(check, 2.0 * (1 - 1e-8))


def test_many_coins_meet_their_gaussian_limit():
    alpha = np.array([0.01, 0.5])
    found = dp.randomized_response(1e-6).compose(10**12).tradeoff(alpha)
    np.testing.assert_allclose(found, ndtr(-ndtri(alpha) - 1.0), rtol=1e-7)


@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_one_step_is_not_above_the_truth(scale):
    """Laplace noise: three pieces, by hand."""
    shift, alpha = 1 / scale, np.array([1e-12, 0.02, 0.4, 0.97])
    tail = np.where(alpha < 0.5, alpha * np.exp(shift), 1.0)
    below = np.where(tail <= 0.5, 1 - tail, np.exp(-shift) / (4 * alpha))
    exact = np.where(alpha < 0.5, below, np.exp(-shift) * (1 - alpha))
    found = dp.laplace(scale).tradeoff(alpha)
    at_most(found, exact, rtol=1e-16)
    at_most(exact, found, rtol=1e-13)


def test_extremes_are_answered():
    for run in (
        dp.finite([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]).compose(3),
        dp.randomized_response(1e5).compose(10),
        dp.gaussian(0.05) + dp.laplace(1.0),
    ):
        values = run.tradeoff(np.array([0.0, 1e-30, 0.5, 1.0]))
        assert np.all((0 <= values) & (values <= 1)) and values[-1] == 0
    seen = dp.finite([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]).compose(2)  # for certain, but one time in 4
    assert seen.tradeoff(0.0) == 0.25
