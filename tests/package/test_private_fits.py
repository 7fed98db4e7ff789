"""The private fits: audited on neighbours, against scikit-learn, and on what they refuse."""

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import dpnotes as dp

# Every audit below makes at most 2 one-sided Clopper-Pearson intervals at this level, and there are
# 9 audits: all together raise a false alarm with probability at most 18 * 5e-8 < 1e-6.
LEVEL = 5e-8


def least_delta(one, two, epsilon):
    """A lower bound on delta at `epsilon`, from 0/1 samples of an event under two neighbours."""
    n, a, b = len(one), np.count_nonzero(one), np.count_nonzero(two)
    low = beta.ppf(LEVEL, a, n - a + 1) if a else 0.0
    high = beta.ppf(1 - LEVEL, b + 1, n - b) if b < n else 1.0
    return low - np.exp(epsilon) * high


def audit(fit, one, two, epsilon, delta, event, *, rng, runs=3000):
    """Is the claim broken? `fit(data, rng)` runs once a sample; `event` maps a result to 0/1."""
    sampled = [[event(fit(data, rng)) for _ in range(runs)] for data in (one, two)]
    return least_delta(*sampled, epsilon) > delta


# One row on a line, once with each label: the pair on which the sensitivities are attained.
POSITIVE = (np.array([[1.0]]), np.array([1.0]))
NEGATIVE = (np.array([[1.0]]), np.array([-1.0]))
METHODS = {
    # strong ridge: the optimum stays near 0, where the slopes are as steep as the bound says
    "output, pure": (dp.output_perturbation, dict(epsilon=1.0, regularization=200.0)),
    "output, Gaussian": (
        dp.output_perturbation,
        dict(epsilon=0.2, delta=0.1, regularization=200.0),
    ),
    "objective, pure": (
        dp.objective_perturbation,
        dict(epsilon=1.0, regularization=500.0, loss=dp.huber_loss),
    ),
    "objective, Gaussian": (
        dp.objective_perturbation,
        dict(epsilon=0.2, delta=0.1, regularization=500.0, loss=dp.huber_loss),
    ),
    "gradient descent": (
        dp.noisy_gradient_descent,
        dict(epsilon=0.2, delta=0.1, steps=2, radius=0.9, loss=dp.hinge_loss),
    ),
}


def run(method, options):
    return lambda data, rng: method(*data, **options, rng=rng).theta[0]


def with_half_the_noise(patch):
    laplace, one, other = dp.erm.spherical_laplace, dp.erm._multiplier, dp.erm._objective_sigma
    halved = lambda d, scale, rng: laplace(d, scale / 2, rng=rng)  # noqa: E731
    patch.setattr(dp.erm, "spherical_laplace", halved)
    patch.setattr(dp.erm, "_multiplier", lambda *a: one(*a) / 2)
    patch.setattr(dp.erm, "_objective_sigma", lambda *a: other(*a) / 2)


@pytest.mark.parametrize("name", METHODS)
def test_audit_finds_no_violation_and_finds_half_the_noise(name, monkeypatch):
    method, options = METHODS[name]
    target = options["epsilon"], options.get("delta", 0.0)
    centre = 0.0
    if target[1] == 0:  # pure: the tail beyond the optimum of one neighbour
        centre = dp.risk_minimum(
            *POSITIVE,
            loss=options.get("loss", dp.logistic_loss),
            regularization=options["regularization"],
        )[0]
    check = dict(event=lambda theta: theta > centre, rng=np.random.default_rng(31))
    assert not audit(run(method, options), POSITIVE, NEGATIVE, *target, **check)
    with monkeypatch.context() as patch:
        with_half_the_noise(patch)
        assert audit(run(method, options), POSITIVE, NEGATIVE, *target, **check)


def test_audit_of_the_private_median():
    thin = 0.02  # a thin middle beside a wide rest: the log ratio comes close to epsilon
    one, two = [0.0, thin], [thin, 1.0]

    def median(factor):
        return lambda values, rng: dp.private_median(
            values, epsilon=factor * 2.0, lower=0.0, upper=1.0, rng=rng
        )

    check = dict(event=lambda t: t < thin, rng=np.random.default_rng(32), runs=20_000)
    assert not audit(median(1), one, two, 2.0, 0.0, **check)
    assert audit(median(2), one, two, 2.0, 0.0, **check)


def test_audit_of_the_private_geometric_median():
    candidates = np.concatenate([[[1.0, 0.0]], np.tile([[-1.0, 0.0]], (30, 1))])

    def median(factor):
        return lambda points, rng: dp.private_geometric_median(
            points, candidates, epsilon=factor * 2.0, rng=rng
        )[0]

    one, two = np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])
    check = dict(event=lambda t: t > 0, rng=np.random.default_rng(33), runs=8000)
    assert not audit(median(1), one, two, 2.0, 0.0, **check)
    assert audit(median(2), one, two, 2.0, 0.0, **check)


def breast_cancer():
    x, target = load_breast_cancer(return_X_y=True)
    return dp.clip_rows((x - x.mean(0)) / x.std(0)), 2.0 * target - 1


@pytest.mark.parametrize("ridge", [1e-3, 0.1])
def test_optima_agree_with_scikit_learn(ridge):
    x, y = breast_cancer()
    n = len(y)
    theirs = LogisticRegression(C=1 / (n * ridge), fit_intercept=False, tol=1e-10, max_iter=10_000)
    ours = dp.risk_minimum(x, y, regularization=ridge)
    assert ours == pytest.approx(theirs.fit(x, y).coef_[0], rel=1e-5, abs=1e-6)
    theirs = Ridge(alpha=n * ridge / 2, fit_intercept=False).fit(x, y)
    ours = dp.risk_minimum(x, y, loss=dp.squared_loss, regularization=ridge)
    assert ours == pytest.approx(theirs.coef_, rel=1e-6, abs=1e-9)
    theirs = LinearSVC(
        C=1 / (n * ridge),
        loss="hinge",
        fit_intercept=False,
        tol=1e-10,
        max_iter=10**6,
        random_state=0,
    )
    ours, alpha = dp.svm_minimum(x, y, regularization=ridge)
    assert ours == pytest.approx(theirs.fit(x, y).coef_[0], rel=1e-3, abs=1e-3)
    assert ours == pytest.approx(alpha * y @ x / (n * ridge), rel=1e-6, abs=1e-9)


def test_rows_and_labels_that_break_the_contract_are_refused():
    rng = np.random.default_rng(0)
    good = dict(epsilon=1.0, regularization=1.0, rng=rng)
    x, y = np.eye(2), np.ones(2)
    for fit in (dp.output_perturbation, dp.objective_perturbation):
        for wrong, word in (
            ((1.1 * x, y), "clip_rows"),
            ((x, 0 * y), "-1 or 1"),
            ((x, y[:1]), "one label"),
            ((x * np.nan, y), "x must be"),
        ):
            with pytest.raises(ValueError, match=word):
                fit(*wrong, **good)
        for name, value in (("epsilon", 0.0), ("delta", 1.0), ("delta", -1e-9), ("rng", None)):
            with pytest.raises(ValueError, match=name):
                fit(x, y, **{**good, name: value})
        with pytest.raises(ValueError, match="regularization"):
            fit(x, y, **{**good, "regularization": 0.0})
        with pytest.raises(ValueError, match="loss must be"):
            fit(x, y, **good, loss=dp.hinge_loss)
    with pytest.raises(ValueError, match="gradients of norm"):
        dp.objective_perturbation(x, y, **good, loss=dp.squared_loss)
    with pytest.raises(ValueError, match="delta"):
        dp.noisy_gradient_descent(x, y, epsilon=1.0, delta=0.0, steps=3, rng=rng)
    with pytest.raises(ValueError, match="upper"):
        dp.private_median([1.0], epsilon=1.0, lower=1.0, upper=1.0, rng=rng)
    with pytest.raises(ValueError, match="bounded"):
        dp.noisy_gradient_descent(
            x, y, epsilon=1.0, delta=0.1, steps=3, loss=dp.zero_one_loss, rng=rng
        )


def test_extreme_budgets_give_finite_fits():
    rng = np.random.default_rng(1)
    x, y = dp.clip_rows(rng.normal(size=(50, 3))), np.ones(50)
    for epsilon in (1e-8, 1e-3, 1e2, 1e4):
        for delta in (0.0, 1e-300, 1e-10):
            ridge = dp.erm_regularization(50, 3, epsilon=epsilon, delta=delta)
            for fit in (dp.output_perturbation, dp.objective_perturbation):
                found = fit(x, y, epsilon=epsilon, delta=delta, regularization=ridge, rng=rng)
                assert np.isfinite(found.theta).all()
                assert found.delta_at(epsilon) <= delta * (1 + 1e-6)


def test_accuracy_on_breast_cancer_beside_diffprivlib():
    """Mean over 40 splits; diffprivlib 0.6.6 reaches .596, .794, .893, .951 (bench/erm.py)."""
    x, target = load_breast_cancer(return_X_y=True)
    y, rng, splits = 2.0 * target - 1, np.random.default_rng(2), []
    for _ in range(40):
        order = rng.permutation(len(y))
        train, test = order[:426], order[426:]
        mean, spread = x[train].mean(0), x[train].std(0)
        rows = dp.clip_rows((x - mean) / spread)
        splits.append((rows[train], y[train], rows[test], y[test]))
    for epsilon, delta, logistic, huber in (
        (0.1, 0.0, 0.65, 0.75),
        (1.0, 0.0, 0.92, 0.93),
        (2.0, 0.0, 0.93, 0.94),
        (5.0, 0.0, 0.935, 0.955),
        (0.1, 1e-5, 0.76, 0.87),
        (1.0, 1e-5, 0.93, 0.94),
    ):
        ridge = dp.erm_regularization(426, 30, epsilon=epsilon, delta=delta)
        for loss, least in ((dp.logistic_loss, logistic), (dp.huber_loss, huber)):
            right = []
            for a, label, b, truth in splits:
                fit = dp.objective_perturbation(
                    a, label, epsilon=epsilon, delta=delta, regularization=ridge, loss=loss, rng=rng
                )
                right.append(np.mean(b @ fit.theta * truth > 0))
            assert np.mean(right) >= least, (epsilon, delta, loss.name, np.mean(right))
