"""DP-SGD: its gradients, its noise without rows, its refusals."""

import numpy as np
import pytest
from scipy.special import logsumexp

from dpnotes.chapters import subsampling


@pytest.fixture
def problem():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((200, 4))
    return x, (x[:, 0] > 0).astype(int)


SETTINGS = dict(rate=0.1, sigma=1.5, steps=30, batch_size=20, learning_rate=0.5)


def run(problem, seed=3, **changes):
    options = SETTINGS | dict(start=np.zeros((4, 2)), rng=np.random.default_rng(seed)) | changes
    return subsampling.dp_sgd(*problem, **options)


def numerical_gradients(value, theta, step=1e-6):
    gradient = np.zeros(theta.shape)
    for index in np.ndindex(theta.shape):
        move = np.zeros(theta.shape)
        move[index] = step
        gradient[index] = (value(theta + move) - value(theta - move)) / (2 * step)
    return gradient


@pytest.mark.parametrize("clip", [0.3, 1e9])
def test_gradient_sums_are_the_clipped_derivatives(problem, clip):
    x, y = problem[0][:7], problem[1][:7]
    theta = np.random.default_rng(2).standard_normal((4, 2))
    each = [
        numerical_gradients(lambda t, i=i: logsumexp(x[i] @ t) - (x[i] @ t)[y[i]], theta)
        for i in range(7)
    ]
    gradient = subsampling.softmax_clipped_sum(theta, x, y, clip)
    np.testing.assert_allclose(gradient, subsampling.clipped_sum(each, clip), rtol=1e-7, atol=1e-8)
    signs = 2 * y - 1
    each = [
        numerical_gradients(lambda t, i=i: np.logaddexp(0, -signs[i] * (x[i] @ t)), theta[:, 0])
        for i in range(7)
    ]
    gradient = subsampling.logistic_clipped_sum(theta[:, 0], x, signs, clip)
    np.testing.assert_allclose(gradient, subsampling.clipped_sum(each, clip), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "gradient_sum, start",
    [
        (subsampling.softmax_clipped_sum, np.zeros((3, 2))),
        (subsampling.logistic_clipped_sum, np.zeros(3)),
    ],
)
@pytest.mark.parametrize("y", [[], np.zeros(0), np.zeros(0, dtype=int)])
def test_no_rows_at_all_are_steps_of_pure_noise(gradient_sum, start, y):
    """The add/remove neighbour of one row: same noise, same cost as with one row never drawn."""
    options = dict(start=start, gradient_sum=gradient_sum, steps=50)
    nobody = run((np.zeros((0, 3)), y), **options)
    assert nobody.loss.epsilon(1e-5) == run((np.ones((1, 3)), [1]), **options).loss.epsilon(1e-5)
    assert nobody.theta.shape == start.shape
    rng, theta = np.random.default_rng(3), start
    for _ in range(50):
        rng.random(0)
        theta = theta - 0.5 / 20 * rng.normal(0, 1.5, start.shape)
    np.testing.assert_allclose(nobody.theta, theta, rtol=1e-12)


def test_so_many_steps_are_served_and_no_more(problem):
    with pytest.raises(ValueError, match="^steps must be at most 1e\\+07"):
        run(problem, steps=10**7 + 1)


def test_each_row_has_one_label_that_the_loss_knows():
    for wrong in ([], [0], [0, 1, 1], [0, -1], [0, 2], [0, 0.5]):
        with pytest.raises(ValueError, match="^y must"):
            subsampling.softmax_clipped_sum(np.zeros((1, 2)), np.ones((2, 1)), wrong, 1.0)
    for wrong in ([], [1], [1, 1, 1], [1, 2], [1, 0], [1, 0.5]):
        with pytest.raises(ValueError, match="^y must hold"):
            subsampling.logistic_clipped_sum(np.zeros(1), np.ones((2, 1)), wrong, 1.0)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (2, 1, 3, 2)])
def test_the_norm_of_a_gradient_is_taken_over_all_its_entries(shape):
    """One number a row, up to the kernels of a convolution (out, in, height, width)."""
    size = np.array([5.0, 0.5, 0.0])[(...,) + (None,) * len(shape)]  # norms 5, 0.5 and 0
    gradients = size * np.ones(shape) / np.sqrt(np.ones(shape).size)
    clipped = subsampling.clipped_sum(gradients, 2.0)
    assert np.shape(clipped) == shape
    np.testing.assert_allclose(np.linalg.norm(clipped), 2.5, rtol=1e-14)


def test_progress_shows_on_stderr_of_long_runs_only(problem, capsys, monkeypatch):
    run(problem)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(subsampling, "PATIENCE", 0.0)
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    run(problem)
    out, err = capsys.readouterr()
    assert out == "" and "dp_sgd" in err and "step" in err
    assert err.endswith("\r")  # nothing of the bar is left on the line
