"""The experiments of the page on private learning, on fits whose result is known beforehand."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

import dpnotes as dp
from dpnotes.chapters import erm
from dpnotes.chapters.erm import experiments
from evidence import equal, holds, must_fail


def rows(n, d, seed=3):
    rng = np.random.default_rng(seed)
    x = dp.clip_rows(rng.normal(size=(n, d)))
    return x, np.where(x @ np.ones(d) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


class Fit:
    """Publishes what `theta` makes of what it is given, and remembers that."""

    def __init__(self, theta):
        self.theta, self.given = theta, []

    def __call__(self, x, y, *, epsilon, delta, rng, **more):
        self.given.append(SimpleNamespace(x=x, y=y, epsilon=epsilon, delta=delta, **more))
        return erm.PrivateFit(self.theta(self.given[-1]), epsilon, delta, 0.0, None)


def test_regrets_of_fits_that_publish_the_optimum_and_zero():
    x, y = rows(200, 3)

    def regrets(theta):
        rng, fit = np.random.default_rng(5), Fit(theta)
        regret = erm.regrets(fit, x, y, (40, 200), epsilon=1.0, runs=3000, rng=rng)
        assert [len(g.y) for g in fit.given] == [40] * 75 + [200] * 25  # 3000/40, and at least 25
        return regret

    best = regrets(lambda g: erm.risk_minimum(g.x, g.y, regularization=g.regularization))
    holds(np.abs(best) < 1e-12)

    def check(least):
        order = np.random.default_rng(5).permutation(200)
        for n, regret in zip((40, 200), regrets(lambda g: np.zeros(3)), strict=True):
            a, b = x[order[:n]], y[order[:n]]
            lam = erm.best_regularization(n, 3, epsilon=1.0)
            equal(regret, np.log(2) - least(a, b, lam), rtol=1e-6)

    def oracle(a, b, lam):
        def risk(theta):
            return np.logaddexp(0, -b * (a @ theta)).mean() + lam / 2 * theta @ theta

        return minimize(risk, np.zeros(3), tol=1e-12).fun

    check(oracle)
    must_fail(check, lambda a, b, lam: oracle(a, b, 2 * lam))


@pytest.mark.slow
def test_the_line_up_of_two_on_a_line_is_right_as_often_as_laplace_noise_lets_it():
    """Right with probability 1 - exp(-D/2s)/2; within 6 standard errors, 2e-9 a comparison."""
    x, y = rows(30, 1)
    x[:2], y[:2] = [[0.9], [-0.8]], 1.0
    first, second = (
        erm.risk_minimum(np.delete(x, out, 0), np.delete(y, out), regularization=0.5)
        for out in (1, 0)
    )
    apart = np.abs(first - second).item()
    scale = erm.output_sensitivity(29, 0.5)
    epsilons, trials = scale / apart * np.array([0.2, 2.0, 6.0, 200.0]), 5_000
    shares = erm.line_up(
        x, y, [0, 1], epsilons, regularization=0.5, trials=trials, rng=np.random.default_rng(6)
    )

    def check(stretch):
        right = 1 - np.exp(-epsilons * apart / (2 * stretch * scale)) / 2
        room = 6 * np.sqrt(right * (1 - right) / trials) + 1e-12
        holds(np.abs(np.array(shares) - right) <= room)

    check(1.0)
    must_fail(check, 1.3)
    must_fail(check, 0.75)


def test_rows_that_are_held_out_are_not_learnt_from():
    """The fit says in which direction one row lies that it saw; a quarter was not shown to it."""
    x, y = rows(41, 2)
    fit, ridge = Fit(lambda g: [1.0, -0.3]), erm.best_regularization(30, 2, epsilon=0.5, delta=1e-6)
    options = dict(loss=erm.logistic_loss, epsilon=0.5, delta=1e-6)
    accuracies = erm.held_out(fit, x, y, **options, rng=None)
    assert len(accuracies) == len(fit.given) == 20 and len({tuple(g.y) for g in fit.given}) > 10
    for right, g in zip(accuracies, fit.given, strict=True):
        assert g.loss is erm.logistic_loss and g.regularization == ridge
        out = [i for i in range(41) if not (x[i] == g.x).all(1).any()]
        assert len(g.x) == len(g.y) == 30 and len(out) == 11
        places = [np.argmax((x == row).all(1)) for row in g.x]
        holds(y[places] == g.y)
        equal(right, np.mean([(x[i] @ [1.0, -0.3] > 0) == (y[i] > 0) for i in out]))
    equal(erm.held_out(fit, x, y, **options, splits=3, rng=None), accuracies[:3])


def test_the_distance_gets_the_points_and_no_labels(monkeypatch):
    x, y = rows(20, 3)
    fit = Fit(lambda g: g.x.mean(0))
    monkeypatch.setattr(experiments, "noisy_gradient_descent", fit)
    options = dict(loss=erm.distance_loss, epsilon=1.0, delta=1e-6)
    assert erm.held_out(fit, x, y, **options, splits=2, rng=None).shape == (2,)
    for g in fit.given:
        assert g.y is None and len(g.x) == 15 and g.steps >= 1
        assert all(((x * y[:, None]) == row).all(1).any() for row in g.x)


def test_as_many_trials_and_fits_as_the_page_says():
    x, y = rows(12, 1)
    rng, fit = np.random.default_rng(1), Fit(lambda g: np.zeros(1))
    (rate,) = erm.line_up(x, y, [0, 1, 2], [1e-3], regularization=0.5, rng=rng)
    assert 0 < rate < 1 and rate * 400 == round(rate * 400)
    erm.regrets(fit, x, y, (3, 8), epsilon=1.0, rng=rng)
    assert [len(g.y) for g in fit.given] == [3] * 2666 + [8] * 1000  # 8,000 rows in all


def test_the_noise_of_the_line_up_is_that_of_all_rows_with_the_candidate(monkeypatch):
    x, y = rows(12, 2)
    drawn = []

    def noise(dimension, scale, *, rng):
        drawn.append(scale)
        return np.zeros(dimension)

    monkeypatch.setattr(experiments, "spherical_laplace", noise)
    shares = erm.line_up(
        x, y, [0, 5, 7], [0.1, 4.0], regularization=0.5, trials=3, rng=np.random.default_rng(1)
    )
    assert shares == [1.0, 1.0]  # without noise the optimum names who is in
    scale = erm.output_sensitivity(10, 0.5)  # nine others, and the candidate
    equal(drawn, [scale / 0.1] * 3 + [scale / 4.0] * 3)


def test_who_is_on_the_boundary_is_not_classified():
    x, y = rows(20, 3)
    fit = Fit(lambda g: np.zeros(3))
    equal(erm.held_out(fit, x, y, loss=erm.logistic_loss, epsilon=1.0, rng=None), 0.0)
    assert {(g.epsilon, g.delta) for g in fit.given} == {(1.0, 0.0)}  # pure, unless delta is given
