"""Experiments of the page on private learning: repeated fits whose every option is public.

Imported by the page and by bench/erm.py, not by `dpnotes` itself.
"""

import csv
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from math import ceil

import numpy as np

from ...numerics import matrix_product
from ...checks import Array
from ..gaussian import gaussian_sigma
from .fits import (
    PrivateFit, best_regularization, noisy_gradient_descent, output_sensitivity, spherical_laplace,
)  # fmt: skip
from .losses import RowLoss, distance_loss, logistic_loss, risk_minimum


def public_options(
    fit: Callable[..., PrivateFit], n: int, dimension: int, *, epsilon: float, delta: float = 0.0
) -> dict[str, float]:
    """What else `fit` takes, from public numbers alone: the ridge, or the steps, for radius 1.

    After n^2/(4 d sigma^2) steps the noise rules the proved regret (X-noisy-gradient-descent).

    >>> erm.public_options(erm.noisy_gradient_descent, 1000, 5, epsilon=1.0, delta=1e-6)
    {'epsilon': 1.0, 'delta': 1e-06, 'steps': 100}
    """
    public = {"epsilon": epsilon, "delta": delta}
    if fit is noisy_gradient_descent:
        steps = (n / gaussian_sigma(**public)) ** 2 / (4 * dimension)
        return public | {"steps": min(100, ceil(steps))}
    return public | {"regularization": best_regularization(n, dimension, **public)}


def held_out(
    fit: Callable[..., PrivateFit], x: Array, y: Array, *, loss: RowLoss, epsilon: float,
    delta: float = 0.0, splits: int = 20, rng: np.random.Generator,
) -> Array:  # fmt: skip
    """Accuracy on a quarter of the rows that a fit to the others has not seen, for each split.

    x (n, d), y (n,) of -1 and 1. `distance_loss` gets the points y x.

    >>> x, y, rng = np.eye(2)[[0, 1] * 500], np.array([1, -1] * 500), np.random.default_rng(1)
    >>> options = {"loss": erm.logistic_loss, "epsilon": 1.0, "splits": 2, "rng": rng}
    >>> erm.held_out(erm.output_perturbation, x, y, **options)
    array([1., 1.])
    """
    learn = 3 * len(y) // 4
    options = public_options(fit, learn, x.shape[1], epsilon=epsilon, delta=delta)
    right = np.empty(splits)
    for k in range(splits):
        order = np.random.default_rng(k).permutation(len(y))  # the same splits for every fit
        a, b = order[:learn], order[learn:]
        data = (x[a] * y[a, None], None) if loss is distance_loss else (x[a], y[a])
        theta = fit(*data, loss=loss, rng=rng, **options).theta
        right[k] = np.mean(matrix_product(x[b], theta) * y[b] > 0)
    return right


def regrets(
    fit: Callable[..., PrivateFit], x: Array, y: Array, sizes: Iterable[int], *, epsilon: float,
    runs: int = 8_000, rng: np.random.Generator,
) -> list[float]:  # fmt: skip
    """Mean regret J(theta) - J(theta*) of logistic fits to n of the rows, for each n in `sizes`.

    J is the ridged risk with the ridge that `fit` uses; about runs/n fits, at least 25.

    >>> x, y, rng = np.eye(2)[[0, 1] * 50], np.array([1, -1] * 50), np.random.default_rng(1)
    >>> np.round(erm.regrets(erm.output_perturbation, x, y, [50, 100], epsilon=9.0, rng=rng), 2)
    array([0.02, 0.01])
    """
    means, order = [], rng.permutation(len(y))
    for n in sizes:
        rows, labels = x[order[:n]], y[order[:n]]
        options = public_options(fit, n, x.shape[1], epsilon=epsilon)
        lam = options["regularization"]
        best = risk_minimum(rows, labels, regularization=lam)
        fits = [fit(rows, labels, rng=rng, **options).theta for _ in range(max(25, runs // n))]
        theta = np.array([best, *fits])
        value = logistic_loss(theta, rows, labels).mean(1) + lam / 2 * (theta**2).sum(1)
        means.append(float((value[1:] - value[0]).mean()))
    return means


def line_up(
    x: Array, y: Array, candidates: Sequence[int], epsilons: Iterable[float], *,
    regularization: float, trials: int = 400, rng: np.random.Generator,
) -> list[float]:  # fmt: skip
    """How often the nearest optimum names the one of `candidates` who is in the data.

    The rows outside of `candidates` are known, one candidate was added, and the optimum was
    published by output perturbation with each epsilon.

    >>> x, y, rng = np.eye(2)[[0, 1] * 50], np.array([1, -1] * 50), np.random.default_rng(1)
    >>> erm.line_up(x, y, [0, 1], [0.1, 100.0], regularization=0.1, rng=rng)
    [0.515, 0.9825]
    """
    rest = np.setdiff1d(np.arange(len(y)), candidates)
    studies = [np.append(rest, candidate) for candidate in candidates]
    optima = np.array([risk_minimum(x[s], y[s], regularization=regularization) for s in studies])
    sensitivity, rates = output_sensitivity(len(rest) + 1, regularization), []
    for epsilon in epsilons:
        true = rng.integers(len(optima), size=trials)
        scale = sensitivity / epsilon
        noise = [spherical_laplace(x.shape[1], scale, rng=rng) for _ in range(trials)]
        away = np.linalg.norm((optima[true] + noise)[:, None] - optima, axis=2)
        rates.append(float(np.mean(away.argmin(1) == true)))
    return rates


def bench_results() -> dict[tuple[str, str], dict[float, tuple[float, float]]]:
    """What bench/erm.py measured: (data, fit) -> epsilon -> (mean accuracy, its standard error).

    >>> erm.bench_results()["voters", "diffprivlib"][1.0]
    (0.8101, 0.0042)
    """
    results: dict[tuple[str, str], dict[float, tuple[float, float]]] = {}
    with files(__package__).joinpath("bench.csv").open(encoding="utf8") as file:
        for data, fit, *numbers in list(csv.reader(file))[1:]:
            epsilon, mean, error = map(float, numbers)
            results.setdefault((data, fit), {})[epsilon] = (mean, error)
    return results
