"""Losses of empirical risk minimisation, their constants, their optima, and what an optimum leaks.

Every loss but the distance is a function of the prediction z = <theta, x> and of y: its gradient is
slope(z, y) * x, its Hessian curvature(z, y) * x x^T. That of a classifier depends on the margin
m = y z alone. The constants hold for rows with ||x|| <= 1 and |y| <= 1 (y = -1 or 1 for a
classifier). Risks are means over the n rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, sqrt
from typing import Annotated, Any

import numpy as np

from ...numerics import expit, matrix_product
from ...checks import (
    Anything, Array, ArrayLike, Matrix, Positive, PositiveNumber, Real, Vector, also, checked,
    real, real_array, refusal,
)  # fmt: skip
from .optima import descend


@dataclass(frozen=True)
class RowLoss:
    """What one row loses, its derivatives in z = <theta, x>, its constants; call it for values.

    ``lipschitz(radius)``: largest gradient norm over ||theta|| <= radius, ||x|| <= 1 (inf allowed).
    ``smoothness``: largest curvature, inf if there is none. ``at_zero``: largest loss at theta = 0.

    >>> round(float(erm.logistic_loss([2.0], [[0.5]], [1])[0]), 4)
    0.3133
    """

    name: str
    value: Callable[..., Any]
    slope: Callable[..., Any]
    curvature: Callable[..., Any]
    lipschitz: Callable[..., Any]
    smoothness: float
    at_zero: float

    def __reduce__(self):  # by its name: lambdas cannot be pickled
        return next(name for name, loss in globals().items() if loss is self)

    def __call__(self, theta: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each row: x (n, d), y (n,), theta (d,) or (k, d); result (n,) or (k, n)."""
        return self.value(matrix_product(theta, np.transpose(x)), y)

    def gradient(self, theta: Array, x: Array, y: ArrayLike) -> Array:
        """Gradient in theta of each row's loss, (n, d); at a kink a subgradient."""
        return self.slope(matrix_product(x, theta), y)[:, None] * x


def _not_smooth(z, y=None):
    raise ValueError("loss must be smooth here: a kink has no curvature")


def _margin_loss(name, value, slope, curvature, lipschitz, smoothness):
    """A classifier's loss: a function of the margin m = y z, as are its two derivatives."""
    return RowLoss(
        name,
        value=lambda z, y: value(y * z),
        slope=lambda z, y: y * slope(y * z),
        curvature=lambda z, y: curvature(y * z),
        lipschitz=lipschitz,
        smoothness=smoothness,
        at_zero=float(value(np.zeros(1))[0]),
    )


def _huber(width):
    """The hinge with its kink replaced by a parabola over |1 - m| <= width."""

    def value(m):
        bend = (1 + width - m) ** 2 / (4 * width)
        return np.where(m < 1 - width, 1 - m, np.where(m > 1 + width, 0.0, bend))

    return _margin_loss(
        "Huber hinge",
        value,
        slope=lambda m: -np.clip((1 + width - m) / (2 * width), 0, 1),
        curvature=lambda m: (np.abs(1 - m) <= width) / (2 * width),
        lipschitz=lambda radius: 1.0,
        smoothness=1 / (2 * width),
    )


squared_loss = RowLoss(  # A-linear: (y - z)^2
    "squared",
    value=lambda z, y: (y - z) ** 2,
    slope=lambda z, y: -2 * (y - z),
    curvature=lambda z, y: np.full(np.shape(z), 2.0),
    lipschitz=lambda radius: 2 * (1 + radius),
    smoothness=2.0,
    at_zero=1.0,
)
logistic_loss = _margin_loss(  # A-logistic: ln(1 + exp(-m))
    "logistic",
    value=lambda m: np.logaddexp(0, -m),
    slope=lambda m: -expit(-m),
    curvature=lambda m: expit(m) * expit(-m),
    lipschitz=lambda radius: float(expit(radius)),
    smoothness=0.25,
)
hinge_loss = _margin_loss(  # A-svm: max(0, 1 - m)
    "hinge",
    value=lambda m: np.maximum(0, 1 - m),
    slope=lambda m: np.where(m < 1, -1.0, 0.0),
    curvature=_not_smooth,
    lipschitz=lambda radius: 1.0,
    smoothness=inf,
)
huber_loss = _huber(0.5)  # Chaudhuri, Monteleoni, Sarwate 2011, (7)


class _Distance(RowLoss):
    """||theta - x||_2: a loss of the point itself, without a label (A-geometric-median).

    >>> erm.distance_loss([0.0, 0.0], [[3.0, 4.0]])
    array([5.])
    """

    def __call__(self, theta: ArrayLike, x: ArrayLike, y: ArrayLike | None = None) -> Array:
        return np.linalg.norm(np.asarray(theta)[..., None, :] - x, axis=-1)

    def gradient(self, theta, x, y=None):
        away = theta - x
        size = np.linalg.norm(away, axis=1, keepdims=True)
        return np.divide(away, size, out=np.zeros_like(away), where=size > 0)


distance_loss = _Distance(
    "distance", _not_smooth, _not_smooth, _not_smooth, lambda radius: 1.0, inf, inf
)


def _are_unit_rows(rows):
    return rows.ndim == 2 and np.linalg.norm(rows, axis=1).max() <= 1 + 1e-9


UnitRows = Annotated[
    ArrayLike, also(real_array, _are_unit_rows, "rows of l2 norm at most 1: use clip_rows first")
]


def checked_labels(loss, x, y):
    """The labels as floats, one a row of x; those that the loss does not know are refused."""
    if loss is distance_loss:
        return None
    y = np.asarray(real("y", y))
    if y.shape != x.shape[:1]:
        raise ValueError(f"y must have one label a row of x, got shape {y.shape} for {x.shape}")
    if np.abs(y).max() > 1 or (loss is not squared_loss and (np.abs(y) != 1).any()):
        raise ValueError("y must be -1 or 1 in every row (in [-1, 1] for squared_loss)")
    return y


def refuse_without_curvature(loss):
    """Refuses a loss that has no curvature."""
    if loss.smoothness == inf:
        raise refusal("loss", loss.name, "squared, logistic or Huber here")


@checked
def risk_minimum(
    x: Matrix,
    y: Vector,
    *,
    loss: RowLoss = logistic_loss,
    regularization: PositiveNumber,
    centre: Real = 0.0,
    start: Real = 0.0,
    tolerance: PositiveNumber = 1e-10,
) -> Array:
    """theta that minimises mean loss + regularization/2 ||theta - centre||^2.

    x (n, d), y (n,); the loss must have a curvature (squared, logistic, Huber). The gradient's norm
    is at most `tolerance`, so theta is within tolerance/regularization of the exact minimiser
    (A-erm, X-strong-convexity); ValueError where rounding is larger than that.

    >>> erm.risk_minimum([[1.0, 0.0], [0.0, 1.0]], [1, -1], regularization=0.1).round(4)
    array([ 1.1775, -1.1775])
    """
    refuse_without_curvature(loss)
    lam = regularization
    n, d = x.shape
    if y.shape != (n,) or n == 0:
        raise ValueError(f"y must have one label a row of x, got shape {y.shape} for {x.shape}")
    for name, value in (("centre", centre), ("start", start)):
        if np.shape(value) not in ((), (d,)):
            raise ValueError(f"{name} must be a number or have {d} entries")
    centre = np.broadcast_to(centre, d)
    theta, residual = descend(x, y, loss, lam, centre, start - centre, tolerance=tolerance)
    if residual > tolerance:
        raise refusal("tolerance", tolerance, "larger here")
    return theta


@checked
def optimum_radius(loss: RowLoss, regularization: PositiveNumber) -> float:
    """A bound on the norm of the regularised optimum that needs no data (X-output-perturbation).

    r <= sqrt(2 loss(0)/lambda); then lambda r <= lipschitz(r), repeated.

    >>> round(erm.optimum_radius(erm.logistic_loss, regularization=0.1), 4)
    3.7233
    """
    lam = regularization
    radius = sqrt(2 * loss.at_zero / lam)
    for _ in range(100):
        radius = min(radius, loss.lipschitz(radius) / lam)
    return radius


@checked
def svm_minimum(x: UnitRows, y: Anything, *, regularization: Positive) -> tuple[Array, Array]:
    """(theta, alpha): the SVM's optimum and each row's weight in it.

    Minimises mean hinge + regularization/2 ||theta||^2; theta = sum alpha y x/(n lambda), alpha in
    [0, 1]^n (A-svm, A-erm-leaks). The objective is within 1e-6 of its least value: the hinge's kink
    is rounded over 1e-6.

    >>> erm.svm_minimum([[1.0, 0.0], [0.0, 1.0]], [1, -1], regularization=1.0)[0].round(4)
    array([ 0.5, -0.5])
    """
    y = checked_labels(hinge_loss, x, y)
    lam, theta = regularization, np.zeros(x.shape[1])
    for width in 0.5 ** np.arange(1, 21):  # the kink, ever sharper; each optimum starts the next
        rounded = _huber(width)
        theta = risk_minimum(x, y, loss=rounded, regularization=lam, start=theta)
    return theta, -y * rounded.slope(matrix_product(x, theta), y)


@checked
def invert_model(
    theta: Vector, x: Matrix, y: Vector, *, regularization: Positive, loss: RowLoss = logistic_loss
) -> Array:
    """The one row missing from (x, y), divided by its last feature, from the exact optimum `theta`.

    n lambda theta + sum slope(z_i, y_i) x_i = 0 has one unknown: the missing row's slope times its
    x, n = len(x) + 1 (A-erm-leaks; Balle, Cherubin, Hayes 2022).

    >>> theta = erm.risk_minimum([[0.6, 0.8], [0.8, 0.6]], [1, -1], regularization=0.1)
    >>> erm.invert_model(theta, [[0.6, 0.8]], [1], regularization=0.1).round(4)
    array([1.3333, 1.    ])
    """
    if x.shape != (len(y), len(theta)) or len(theta) == 0:
        shapes = f"theta {theta.shape}, x {x.shape}, y {y.shape}"
        raise ValueError(f"x must have a row a label and a column an entry of theta, got {shapes}")
    n = len(x) + 1
    others = matrix_product(loss.slope(matrix_product(x, theta), y), x)
    missing = -(n * regularization * theta + others)
    return missing / missing[-1]
