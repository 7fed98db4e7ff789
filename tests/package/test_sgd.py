"""DP-SGD: its gradients, its privacy object beside dp-accounting, its batches, its refusals."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.special import logsumexp
from scipy.stats import binom

import dpnotes as dp
from dpnotes import sgd


@pytest.fixture
def problem():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((200, 4))
    return x, (x[:, 0] > 0).astype(int)


SETTINGS = dict(rate=0.1, sigma=1.5, steps=30, batch_size=20, learning_rate=0.5)


def run(problem, seed=3, **changes):
    options = SETTINGS | dict(start=np.zeros((4, 2)), rng=np.random.default_rng(seed)) | changes
    return dp.dp_sgd(*problem, **options)


def numerical_gradients(value, theta, step=1e-6):
    found = np.zeros(theta.shape)
    for index in np.ndindex(theta.shape):
        move = np.zeros(theta.shape)
        move[index] = step
        found[index] = (value(theta + move) - value(theta - move)) / (2 * step)
    return found


@pytest.mark.parametrize("clip", [0.3, 1e9])
def test_gradient_sums_are_the_clipped_derivatives(problem, clip):
    x, y = problem[0][:7], problem[1][:7]
    theta = np.random.default_rng(2).standard_normal((4, 2))
    each = [
        numerical_gradients(lambda t, i=i: logsumexp(x[i] @ t) - (x[i] @ t)[y[i]], theta)
        for i in range(7)
    ]
    found = dp.softmax_clipped_sum(theta, x, y, clip)
    np.testing.assert_allclose(found, dp.clipped_sum(each, clip), rtol=1e-7, atol=1e-8)
    signs = 2 * y - 1
    each = [
        numerical_gradients(lambda t, i=i: np.logaddexp(0, -signs[i] * (x[i] @ t)), theta[:, 0])
        for i in range(7)
    ]
    found = dp.logistic_clipped_sum(theta[:, 0], x, signs, clip)
    np.testing.assert_allclose(found, dp.clipped_sum(each, clip), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "rate, sigma, steps", [(0.25, 9.47, 100), (0.01, 1.0, 1000), (256 / 60_000, 1.1, 14_100)]
)
def test_privacy_of_a_run_agrees_with_dp_accounting(rate, sigma, steps):
    x, y = np.zeros((1, 1)), np.zeros(1, dtype=int)
    loss = dp.subsample(dp.gaussian(sigma), rate).compose(steps)
    short = dp.dp_sgd(
        x,
        y,
        np.zeros((1, 2)),
        rate=rate,
        sigma=sigma,
        steps=3,
        batch_size=1,
        learning_rate=1,
        rng=np.random.default_rng(1),
    )
    assert short.loss.compose(2).epsilon(1e-5) == pytest.approx(
        dp.subsample(dp.gaussian(sigma), rate).compose(6).epsilon(1e-5), rel=1e-9
    )
    gaussian = dp_accounting.GaussianDpEvent(sigma)
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(rate, gaussian), steps
    )
    pld = PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(1e-5)
    rdp = RdpAccountant().compose(event).get_epsilon(1e-5)
    assert loss.epsilon(1e-5) == pytest.approx(pld, rel=2e-2)
    assert loss.epsilon(1e-5) < pld * (1 + 1e-6) and loss.epsilon(1e-5) < rdp


@pytest.mark.slow
def test_privacy_object_of_the_run_itself_agrees_with_dp_accounting(problem):
    loss = run(problem).loss
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.5)), 30
    )
    pld = PLDAccountant(value_discretization_interval=1e-4).compose(event)
    for delta in (1e-3, 1e-5, 1e-8):
        assert loss.epsilon(delta) == pytest.approx(pld.get_epsilon(delta), rel=3e-3)


def test_batches_are_poisson():
    """Each index with the rate, independently: counts are binomial. False alarm below 1e-6."""
    batches = []

    def watch(theta, x, y, clip):
        batches.append(np.bincount(y, minlength=6))
        return np.zeros_like(theta)

    options = dict(rate=0.3, steps=4000, start=np.zeros(1), gradient_sum=watch)
    run((np.zeros((6, 1)), np.arange(6)), **options)
    laws = [4000, 4000, 24_000], [0.3, 0.09, 0.3]  # of an index, of a pair, of all six together
    low, high = binom.ppf(1e-9, *laws), binom.isf(1e-9, *laws)

    def check(sampled):
        both = (sampled.T @ sampled)[~np.eye(6, dtype=bool)]
        assert ((low[0] <= sampled.sum(0)) & (sampled.sum(0) <= high[0])).all()
        assert ((low[1] <= both) & (both <= high[1])).all()
        assert low[2] <= sampled.sum() <= high[2]

    check(np.array(batches))
    rng = np.random.default_rng(5)
    with pytest.raises(AssertionError):
        check((rng.random((4000, 6)) < 0.33).astype(int))  # a rate that is a tenth too large
    planted = np.zeros((4000, 6), dtype=int)  # fixed size 2 of 6: right rate 1/3, not independent
    for row in planted:
        row[rng.choice(6, 2, replace=False)] = 1
    with pytest.raises(AssertionError):
        check(planted)


@pytest.mark.parametrize(
    "gradient_sum, start",
    [(dp.softmax_clipped_sum, np.zeros((3, 2))), (dp.logistic_clipped_sum, np.zeros(3))],
)
@pytest.mark.parametrize("y", [[], np.zeros(0), np.zeros(0, dtype=int)])
def test_no_rows_at_all_are_steps_of_pure_noise(gradient_sum, start, y):
    """The add/remove neighbour of one row: same noise, same cost as with one row never drawn."""
    options = dict(start=start, gradient_sum=gradient_sum, steps=50)
    nobody = run((np.zeros((0, 3)), y), **options)
    assert nobody.loss.epsilon(1e-5) == run((np.ones((1, 3)), [1]), **options).loss.epsilon(1e-5)
    assert not nobody.batch_sizes.any() and nobody.theta.shape == start.shape
    rng, theta = np.random.default_rng(3), start
    for _ in range(50):
        rng.random(0)
        theta = theta - 0.5 / 20 * rng.normal(0, 1.5, start.shape)
    np.testing.assert_allclose(nobody.theta, theta, rtol=1e-12)


def test_noise_has_the_promised_size():
    """No data: the updates are the noise alone. 40,000 values; false alarm below 1e-6."""
    found = dp.dp_sgd(
        np.zeros((1, 1)),
        np.zeros(1, dtype=int),
        np.zeros(40_000),
        rate=1e-9,
        sigma=3.0,
        clip=0.5,
        steps=1,
        batch_size=10,
        learning_rate=2.0,
        rng=np.random.default_rng(6),
        gradient_sum=lambda theta, x, y, clip: np.zeros_like(theta),
    ).theta
    assert found.std() == pytest.approx(2.0 / 10 * 3.0 * 0.5, rel=0.018)  # five sigma
    assert found.std() != pytest.approx(2.0 / 10 * 3.0, rel=0.018)


def test_same_seed_same_run_and_it_learns(problem):
    one, two, other = run(problem), run(problem), run(problem, seed=4)
    assert np.array_equal(one.theta, two.theta) and not np.array_equal(one.theta, other.theta)
    found = run(problem, sigma=0.1, steps=200).average
    assert ((problem[0] @ found).argmax(1) == problem[1]).mean() > 0.9
    assert one.batch_sizes.shape == (30,) and 5 < one.batch_sizes.mean() < 40
    theta = run(problem, steps=1)
    assert np.array_equal(theta.theta, theta.average)


def test_the_divisor_is_public_and_not_the_size_of_the_batch(problem):
    double = run(problem, batch_size=40, learning_rate=1.0)
    np.testing.assert_allclose(double.theta, run(problem).theta, rtol=1e-12)


@pytest.mark.parametrize(
    "name, value",
    [
        ("rate", 0.0),
        ("rate", 1.5),
        ("rate", [0.1, 0.2]),
        ("sigma", 0.0),
        ("sigma", -1),
        ("sigma", np.nan),
        ("steps", 0),
        ("steps", 2.5),
        ("batch_size", 0),
        ("learning_rate", -1.0),
        ("clip", 0.0),
        ("clip", np.inf),
        ("rng", 7),
        ("rng", None),
        ("gradient_sum", "softmax"),
        ("start", np.array([[np.nan]])),
        ("start", None),
    ],
)
def test_bad_settings_are_refused_by_name(problem, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        run(problem, **{name: value})


def test_so_many_steps_are_served_and_no_more(problem):
    for steps, name in ((10**8 + 1, "steps"), (10**8, "gradient_sum")):  # what is refused first
        with pytest.raises(ValueError, match=f"^{name} must be"):
            run(problem, steps=steps, gradient_sum=None)
    assert run(problem).batch_sizes.dtype.kind == "i"


@pytest.mark.parametrize("label", [-1, 2, 0.5])
def test_labels_the_loss_does_not_know_are_refused(label):
    with pytest.raises(ValueError, match="^y must hold"):
        dp.softmax_clipped_sum(np.zeros((1, 2)), np.ones((2, 1)), np.array([0, label]), 1.0)
    with pytest.raises(ValueError, match="^y must hold"):
        dp.logistic_clipped_sum(np.zeros(1), np.ones((2, 1)), np.array([1, 2 * label + 4]), 1.0)


def test_each_row_has_one_label():
    for few in ([], [0], [0, 1, 1]):
        with pytest.raises(ValueError, match="^y must be one whole number a row"):
            dp.softmax_clipped_sum(np.zeros((1, 2)), np.ones((2, 1)), few, 1.0)
        with pytest.raises(ValueError, match="^y must hold"):
            dp.logistic_clipped_sum(np.zeros(1), np.ones((2, 1)), np.ones(len(few)), 1.0)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (2, 1, 3, 2)])
def test_the_norm_of_a_gradient_is_taken_over_all_its_entries(shape):
    """One number a row, up to the kernels of a convolution (out, in, height, width)."""
    size = np.array([5.0, 0.5, 0.0])[(...,) + (None,) * len(shape)]  # norms 5, 0.5 and 0
    gradients = size * np.ones(shape) / np.sqrt(np.ones(shape).size)
    found = dp.clipped_sum(gradients, 2.0)
    assert found.shape == shape
    np.testing.assert_allclose(np.linalg.norm(found), 2.5, rtol=1e-14)


@pytest.mark.parametrize("wrong", [3.0, np.zeros((1,) * 6), [[1.0], [1.0, 2.0]]])
def test_gradients_of_no_rows_or_of_too_many_axes_are_refused(wrong):
    with pytest.raises(ValueError, match="^gradients must be"):
        dp.clipped_sum(wrong, 1.0)


@pytest.mark.parametrize(
    "x, y, name",
    [
        (np.zeros(3), np.zeros(3), "x"),
        (np.full((3, 1), np.nan), np.zeros(3), "x"),
        (np.zeros((3, 1)), np.zeros(2), "y"),
        (np.zeros((3, 1)), np.array(["a", "b", "c"]), "y"),
    ],
)
def test_bad_data_are_refused_by_name(x, y, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        run((x, y))


def test_progress_shows_on_stderr_of_long_runs_only(problem, capsys, monkeypatch):
    run(problem)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sgd, "PATIENCE", 0.0)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    run(problem)
    out, err = capsys.readouterr()
    assert out == "" and "dp_sgd" in err and "step" in err
    assert err.endswith("\r")  # nothing of the bar is left on the line
