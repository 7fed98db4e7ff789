"""The constructors: what they refuse, and that each describes the pair it says."""

import math
from fractions import Fraction

import numpy as np
import pytest

import dpnotes as dp


@pytest.mark.slow
def test_rate_one_is_the_step_and_rate_zero_is_nothing():
    for step in (dp.gaussian(0.8), dp.laplace(2.0), dp.finite([0.2, 0.8], [0.5, 0.5])):
        assert dp.subsample(step, 1.0).delta(0.2) == step.delta(0.2)
        assert dp.subsample(step, 1 - 1e-12).compose(3).epsilon(1e-3) == pytest.approx(
            step.compose(3).epsilon(1e-3), rel=1e-6
        )
        nothing = dp.subsample(step, 0.0).compose(1000)
        assert (
            nothing.epsilon(0.0) == nothing.delta(0.0) == nothing.renyi(2.0) == nothing.mean() == 0
        )
        assert (nothing + step).epsilon(1e-3) == step.epsilon(1e-3)


def test_a_sample_of_a_sample_has_the_product_of_the_rates():
    for step in (dp.gaussian(0.8), dp.laplace(2.0), dp.randomized_response(1.0)):
        twice, once = dp.subsample(dp.subsample(step, 0.5), 0.2), dp.subsample(step, 0.1)
        assert twice.compose(5).epsilon(1e-4) == pytest.approx(
            once.compose(5).epsilon(1e-4), rel=1e-9
        )


def test_an_infinite_loss_has_infinite_moments():
    loss = dp.finite([0.5, 0.4, 0.1], [0.5, 0.5, 0.0])
    assert loss.renyi(2.0) == loss.mean() == math.inf


def test_the_ends_of_what_is_served_are_answered():
    mixture = dp.subsample(dp.gaussian(1.0), 0.1)
    for loss in (
        dp.gaussian(1e-6),
        dp.gaussian(1e15),
        dp.gaussian(1e-6) + dp.laplace(1.0),
        dp.gaussian(1e15) + mixture,
        dp.laplace(1e-4),
        dp.laplace(1e8).compose(1000),
        dp.randomized_response(1e5).compose(10**9),
        dp.randomized_response(1e-15).compose(10**9),
        dp.randomized_response(0.0),
        dp.subsample(dp.gaussian(0.01), 0.1),
        dp.subsample(dp.gaussian(1.0), 1e-10).compose(2),
    ):
        for query, at in (("epsilon", 1e-6), ("delta", 0.3)):
            low, high = getattr(loss, f"{query}_interval")(at)
            assert 0 <= low <= getattr(loss, query)(at) <= high < math.inf
        assert 0 <= loss.mean() < math.inf and 0 <= loss.renyi(1e4) < math.inf


def test_calibration_stays_inside_what_is_served():
    """The target is met at sigma = 0.012, near the least sigma that is served."""
    target = dp.subsample(dp.gaussian(0.012), 0.1)
    epsilon = target.epsilon(1e-5)
    sigma = dp.calibrate(lambda s: dp.subsample(dp.gaussian(s), 0.1), epsilon, 1e-5)
    assert sigma == pytest.approx(0.012, rel=1e-10)


def test_a_pair_is_the_one_given_and_not_its_rounded_copy():
    """Losses of nearly equal laws, to all digits: their ratio is formed before any logarithm."""
    rare = 1.00002152e-09, 1.00011886e-09
    p, q = ([1 - x, x] for x in rare)
    exact = [Fraction(1 - x) / (Fraction(1 - x) + Fraction(x)) for x in rare]

    def check(delta):
        gap = float(exact[0] - exact[1])  # the value is the safe end of its interval
        assert gap <= delta <= gap * (1 + 4e-14)

    check(dp.finite(p, q).delta(0.0))
    with pytest.raises(AssertionError):
        check(float(exact[0] - exact[1]) + 1e-24)


@pytest.mark.parametrize("sigma, k", [(0.25, 100), (1000.0, 3), (30.0, 100_000)])
def test_discrete_gaussian_rounds_answer_at_the_ends_of_what_is_served(sigma, k):
    loss = dp.discrete_gaussian(sigma).compose(k)
    assert loss.renyi(2.0) == pytest.approx(k / sigma**2, rel=1e-12)
    assert loss.mean() == pytest.approx(k / (2 * sigma**2), rel=1e-12)
    assert loss.epsilon(0.0) == np.inf and loss.epsilon(1.0) == 0.0
    low, high = loss.epsilon_interval(1e-6)
    assert low <= loss.epsilon(1e-6) <= high <= low * (1 + 1e-9)
    if sigma > 10:
        assert loss.epsilon(1e-6) == pytest.approx(
            dp.gaussian(sigma).compose(k).epsilon(1e-6), rel=1e-5
        )


def test_wide_discrete_gaussian_can_be_sampled():
    """Its law has 150,000 losses: what compares each with each does not end."""
    loss = dp.subsample(dp.discrete_gaussian(2000.0), 0.5)
    assert loss.epsilon(1e-6) == pytest.approx(
        dp.subsample(dp.gaussian(2000.0), 0.5).epsilon(1e-6), rel=1e-2
    )


def test_only_losses_add_up():
    steps = [dp.laplace(2.0), dp.gaussian(1.0), dp.laplace(2.0)]
    assert sum(steps).delta(1.0) == (dp.laplace(2.0).compose(2) + dp.gaussian(1.0)).delta(1.0)
    for other in (1, 0.0, False, None):
        with pytest.raises(TypeError):
            other + dp.gaussian(1.0)
        with pytest.raises(TypeError):
            dp.gaussian(1.0) + other


def test_a_law_of_a_mechanism_that_does_not_sum_to_one_is_refused(monkeypatch):
    from dpnotes.accountant import losses

    def short(make):
        def forgotten(loss, log_p, *rest, **more):  # the most likely loss counts half
            less = np.log(2) * (np.array(log_p) == max(log_p))
            return make(loss, np.array(log_p) - less, *rest, **more)

        return forgotten

    for name in ("Finite", "finite_step"):
        monkeypatch.setattr(losses, name, short(getattr(losses, name)))
    for made in (
        lambda: dp.discrete_gaussian(2.0),
        lambda: dp.finite([0.3, 0.7], [0.6, 0.4]),
        lambda: dp.discrete_laplace(2.0, 3),
        lambda: dp.randomized_response(1.0),
    ):
        with pytest.raises(ValueError, match="probabilities of [pq] must sum to 1"):
            made()


def test_a_loss_is_told_on_one_line():
    schedule = sum((dp.subsample(dp.gaussian(1 + i / 1e4), 0.01) for i in range(2000)), start=0)
    assert repr(schedule).count("\n") == 0 and len(repr(schedule)) < 400
    assert "... (2000 kinds, 2000 steps) + 1 x SampledGaussian(sigma=1.1999" in repr(schedule)
    assert len(repr(dp.discrete_gaussian(100.0).compose(3))) < 130
    assert repr(dp.gaussian(2.0)) == "PrivacyLoss(1 x Gaussian(mu=0.5))"
