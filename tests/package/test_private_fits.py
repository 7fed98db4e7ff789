"""The private fits: the noise that they add seed by seed, against scikit-learn, refusals."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import dpnotes as dp
from dpnotes.chapters import erm
from dpnotes.chapters.erm import surveys
from machine import module_at


def breast_cancer():
    x, target = load_breast_cancer(return_X_y=True)
    return dp.clip_rows((x - x.mean(0)) / x.std(0)), 2.0 * target - 1


@pytest.mark.parametrize("ridge", [1e-3, 0.1])
def test_optima_agree_with_scikit_learn(ridge):
    x, y = breast_cancer()
    n = len(y)
    exact = dict(fit_intercept=False, tol=1e-10)
    theirs = LogisticRegression(C=1 / (n * ridge), **exact, max_iter=10_000)
    ours = erm.risk_minimum(x, y, regularization=ridge)
    assert ours == pytest.approx(theirs.fit(x, y).coef_[0], rel=1e-5, abs=1e-6)
    theirs = Ridge(alpha=n * ridge / 2, fit_intercept=False).fit(x, y)
    ours = erm.risk_minimum(x, y, loss=erm.squared_loss, regularization=ridge)
    assert ours == pytest.approx(theirs.coef_, rel=1e-6, abs=1e-9)
    theirs = LinearSVC(C=1 / (n * ridge), loss="hinge", **exact, max_iter=10**6, random_state=0)
    ours, alpha = erm.svm_minimum(x, y, regularization=ridge)
    assert ours == pytest.approx(theirs.fit(x, y).coef_[0], rel=1e-3, abs=1e-3)
    assert ours == pytest.approx(alpha * y @ x / (n * ridge), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    "loss",
    [
        erm.squared_loss,
        erm.hinge_loss,
        erm.distance_loss,
        replace(erm.logistic_loss, smoothness=0.1),
    ],
    ids=["not a function of the margin", "no curvature", "no label", "half of its curvature"],
)
def test_objective_perturbation_refuses_a_loss_outside_its_proof(loss):
    options = dict(epsilon=1.0, regularization=1.0, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="loss must"):
        erm.objective_perturbation(np.eye(2), np.ones(2), **options, loss=loss)


def test_the_solver_always_certifies():
    """Where it once raised an exception that depended on the data: weak ridges, large epsilon."""
    rng = np.random.default_rng(42)
    for k in range(400):
        n, d = int(rng.choice([1, 2, 5, 50])), int(rng.choice([1, 2, 5, 30]))
        x = dp.clip_rows(rng.normal(size=(n, d)) * rng.choice([0.01, 1, 10]))
        y, lam = rng.choice([-1.0, 1.0], n), 10 ** rng.uniform(-7, 2)
        loss = (erm.logistic_loss, erm.huber_loss, erm.squared_loss)[k % 3]
        centre = rng.normal(size=d) * 10 ** rng.uniform(-3, 4) * rng.integers(2)
        start = np.zeros(d)
        theta, size = erm.optima.descend(x, y, loss, lam, centre, start, tolerance=erm.fits.AIM)
        assert size <= erm.fits.RESIDUAL
        residual = loss.gradient(theta, x, y).mean(0) + lam * (theta - centre)
        assert np.linalg.norm(residual) <= erm.fits.RESIDUAL


def test_nesterov_arrives_where_newton_is_not_allowed_to(monkeypatch):
    rng = np.random.default_rng(43)
    x, y = dp.clip_rows(rng.normal(size=(40, 3))), rng.choice([-1.0, 1.0], 40)

    def creep(gradient, phi, here, step):
        return phi + 1e-3, gradient(phi + 1e-3)

    monkeypatch.setattr(erm.optima, "_line_search", creep)
    for loss in (erm.logistic_loss, erm.huber_loss, erm.squared_loss):
        for lam in (1e-3, 0.1, 3.0):
            nothing = np.zeros(3)
            arrived = erm.optima.descend(x, y, loss, lam, nothing, nothing, tolerance=1e-11)
            assert arrived[1] <= 1e-11


def test_a_ridge_too_weak_for_the_noise_is_refused_before_the_rows_are_looked_at():
    rng = np.random.default_rng(44)
    options = dict(epsilon=20.0, delta=1e-300, regularization=1e-8, rng=rng)
    for scale in (1.0, 1e-9):
        with pytest.raises(ValueError, match="regularization must be larger"):
            erm.objective_perturbation(scale * np.eye(2), np.ones(2), **options)


def test_what_output_perturbation_adds_to_the_optimum():
    rng = np.random.default_rng(45)
    x, y, lam = dp.clip_rows(rng.normal(size=(40, 3))), rng.choice([-1.0, 1.0], 40), 0.02
    optimum = erm.risk_minimum(x, y, regularization=lam)
    moves = erm.output_sensitivity(40, lam) + 2e-9 / lam  # and what the solver may leave
    for delta in (0.0, 1e-5):
        options = dict(epsilon=0.7, delta=delta, regularization=lam)
        fit = erm.output_perturbation(x, y, **options, rng=np.random.default_rng(1))
        same = np.random.default_rng(1)
        if delta:
            assert fit.scale == pytest.approx(dp.gaussian_sigma(0.7, delta) * moves, rel=1e-13)
            noise = same.normal(0, fit.scale, 3)
        else:
            assert fit.scale == pytest.approx(moves / 0.7, rel=1e-13)
            noise = erm.spherical_laplace(3, fit.scale, rng=same)
        assert fit.theta == pytest.approx(optimum + noise, rel=1e-9)
        assert (fit.epsilon, fit.delta) == (0.7, delta)


def test_what_objective_perturbation_adds_to_the_optimum():
    rng = np.random.default_rng(46)
    x, y, lam, n = dp.clip_rows(rng.normal(size=(40, 3))), rng.choice([-1.0, 1.0], 40), 0.02, 40
    for delta, loss in ((0.0, erm.logistic_loss), (1e-5, erm.huber_loss)):
        options = dict(epsilon=1.7, delta=delta, regularization=lam, loss=loss)
        fit = erm.objective_perturbation(x, y, **options, rng=np.random.default_rng(1))
        left = 1.7 * 0.99 - np.log1p(loss.smoothness / (n * lam))  # one percent for the solver
        same = np.random.default_rng(1)
        if delta:
            at = erm.objective_perturbation_delta(left, fit.scale)
            assert delta * (1 - 1e-6) < at <= delta
            b = same.normal(0, fit.scale, 3)
            assert fit.delta_at(1.7) == pytest.approx(at, rel=1e-9)
        else:
            assert fit.scale == pytest.approx(2 / left, rel=1e-13)
            b = erm.spherical_laplace(3, fit.scale, rng=same)
        hidden = erm.spherical_laplace(3, 2e-9 / (lam * 0.017), rng=same)
        theta = fit.theta - hidden
        gradient = loss.gradient(theta, x, y).mean(0) + lam * theta + b / n
        assert np.linalg.norm(gradient) < 1e-11


def test_gradient_descent_is_its_three_lines():
    rng = np.random.default_rng(47)
    x, y = dp.clip_rows(rng.normal(size=(4, 2))), rng.choice([-1.0, 1.0], 4)
    epsilon, delta, steps, radius = 0.9, 1e-4, 5, 0.4
    fit = erm.noisy_gradient_descent(
        x, y, epsilon=epsilon, delta=delta, steps=steps, radius=radius, loss=erm.squared_loss,
        rng=np.random.default_rng(8),
    )  # fmt: skip
    slope = 2 * (1 + radius)
    scale = dp.gaussian_sigma(epsilon, delta) * steps**0.5 * 2 * slope / 4
    assert fit.scale == pytest.approx(scale, rel=1e-13)
    rate = radius / (steps * (slope**2 + 2 * scale**2)) ** 0.5
    same, theta, seen = np.random.default_rng(8), np.zeros(2), []
    for _ in range(steps):
        gradient = (-2 * (y - x @ theta)) @ x / 4 + same.normal(0, scale, 2)
        theta = theta - rate * gradient
        theta = theta / max(1.0, np.linalg.norm(theta) / radius)
        seen.append(theta)
    assert np.linalg.norm(seen, axis=1).max() == pytest.approx(radius)  # the ball was left
    assert fit.theta == pytest.approx(np.mean(seen, axis=0), rel=1e-12)
    assert fit.delta_at(epsilon) == pytest.approx(delta, rel=1e-9)


def test_public_numbers_of_the_fits():
    sigma = dp.gaussian_sigma(0.5, 1e-5)
    ridge = erm.best_regularization(100, 3, epsilon=0.5, delta=1e-5, radius=2.0)
    assert ridge == pytest.approx(2 * 3**0.5 * sigma / 200, rel=1e-14)
    ridge = erm.best_regularization(100, 3, epsilon=0.5, radius=2.0)
    assert ridge == pytest.approx(2 * 12**0.5 / 0.5 / 200, rel=1e-14)
    budget = dict(epsilon=0.5, delta=1e-5)
    for fit in (erm.objective_perturbation, erm.output_perturbation):
        ridge = erm.best_regularization(100, 3, **budget)
        assert erm.public_options(fit, 100, 3, **budget) == budget | {"regularization": ridge}
    options = (
        erm.public_options(erm.noisy_gradient_descent, n, 3, **budget) for n in (10, 100, 10**6)
    )
    steps = [each["steps"] for each in options]
    assert steps == [1, int(np.ceil(10**4 / (12 * sigma**2))), 100] and 1 < steps[1] < 100
    assert erm.output_sensitivity(50, 0.02, erm.hinge_loss) == pytest.approx(2.0, rel=1e-14)


def test_a_ridge_is_from_a_billionth_and_not_below_what_epsilon_allows():
    x, y, rng = np.eye(2), np.ones(2), np.random.default_rng(48)
    for fit, epsilon in ((erm.output_perturbation, 1.0), (erm.objective_perturbation, 30.0)):
        assert np.isfinite(fit(x, y, epsilon=epsilon, regularization=1e-3, rng=rng).theta).all()
        for ridge in (0.99e-9, 1.01e50):
            with pytest.raises(ValueError, match="regularization must be in"):
                fit(x, y, epsilon=epsilon, regularization=ridge, rng=rng)
    wide = np.full((1, 400), 0.05)  # Gaussian b: of length sqrt(400) scale, 400 scale were too much
    options = dict(epsilon=3.0, delta=1e-5, regularization=0.05, rng=rng)
    assert np.isfinite(erm.objective_perturbation(wide, [1.0], **options).theta).all()
    least = 0.25 / (2 * np.expm1(0.99))  # kappa takes all but the solver's share
    erm.objective_perturbation(x, y, epsilon=1.0, regularization=1.01 * least, rng=rng)
    with pytest.raises(ValueError, match=f"^regularization must be above {least:.4g} here"):
        erm.objective_perturbation(x, y, epsilon=1.0, regularization=0.999 * least, rng=rng)
    for left, wide in ((4.04e-5, False), (3.96e-5, True)):  # b/(n lambda) of mean length 10,000
        options = dict(epsilon=(left + np.log1p(0.025)) / 0.99, regularization=5.0, rng=rng)
        if wide:
            with pytest.raises(ValueError, match="^regularization must be larger"):
                erm.objective_perturbation(x, y, **options)
        else:
            erm.objective_perturbation(x, y, **options)


def test_extreme_budgets_give_finite_fits():
    rng = np.random.default_rng(1)
    x, y = dp.clip_rows(rng.normal(size=(50, 3))), np.ones(50)
    for epsilon in (1e-8, 1e-3, 1e2, 1e4):
        for delta in (0.0, 1e-300, 1e-10):
            ridge = erm.best_regularization(50, 3, epsilon=epsilon, delta=delta)
            for fit in (erm.output_perturbation, erm.objective_perturbation):
                fitted = fit(x, y, epsilon=epsilon, delta=delta, regularization=ridge, rng=rng)
                assert np.isfinite(fitted.theta).all()
                assert fitted.delta_at(epsilon) <= delta * (1 + 1e-6)


def test_codes_reach_from_one_end_to_the_other_and_no_row_beyond():
    from statsmodels.datasets import fair

    for (x, y), codes, counts in (
        (surveys.voters(), surveys.VOTERS, (944, 393)),  # Dole's voters
        (surveys.readers(), surveys.READERS, (6366, 2053)),  # Fair 1978: readers with any affair
    ):
        assert x.shape == (len(y), len(codes) + 1) and set(y) == {-1.0, 1.0}
        assert x[:, -1] == pytest.approx(x.shape[1] ** -0.5)
        coded = x[:, :-1] * np.sqrt(x.shape[1])
        assert coded.min(0) == pytest.approx(-np.ones(len(codes)), abs=1e-12)
        assert coded.max(0) == pytest.approx(np.ones(len(codes)), abs=1e-12)
        assert (len(y), np.count_nonzero(y == 1)) == counts
    answers = fair.load_pandas().data.head(4).assign(educ=[-90, 9, 12, 90])
    rows = surveys._scale(answers, {"educ": (9, 20)}) * np.sqrt(2)  # a slip of the pen is no code
    assert rows[:, 0] == pytest.approx([-1, -1, -5 / 11, 1], abs=1e-12)


def test_the_page_shows_what_the_bench_measures(monkeypatch):
    """Two numbers of the page's table once more, by the functions that wrote them."""
    bench = module_at("bench/erm.py")
    monkeypatch.setattr(bench, "BUDGETS", ((1.0, 0.0),))
    splits = list(bench.split(*surveys.voters()))
    for name, results in islice(bench.ours(dp, splits), 2):
        mean, _, _, error = results[1.0, 0.0]
        kept = erm.bench_results()["voters", bench.SHOWN[name]][1.0]
        assert np.allclose(kept, (mean, error), atol=3e-4)  # a dozen of 47,200 votes
