"""Losses of empirical risk minimisation, their constants, their optima, and what an optimum leaks.

Every loss but the distance is a function of the prediction z = <theta, x> and of y: its gradient is
slope(z, y) * x, its Hessian curvature(z, y) * x x^T. A classifier's loss is a `MarginLoss`: it
depends on m = y z alone. The constants hold for rows with ||x|| <= 1 and |y| <= 1 (y = -1 or 1 for
a MarginLoss). Risks are means over the n rows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, sqrt

import numpy as np

from ._scipy import expit
from ._types import Array, ArrayLike
from ._validate import array, instance, positive, real, scalar
from .minimise import descend

__all__ = [
    "RowLoss",
    "MarginLoss",
    "squared_loss",
    "logistic_loss",
    "zero_one_loss",
    "hinge_loss",
    "huber_loss",
    "distance_loss",
    "clip_rows",
    "risk_minimum",
    "optimum_radius",
    "svm_minimum",
    "invert_model",
]


@dataclass(frozen=True)
class RowLoss:
    """What one row loses, its derivatives in z = <theta, x>, its constants; call it for values.

    ``lipschitz(radius)``: largest gradient norm over ||theta|| <= radius, ||x|| <= 1 (inf allowed).
    ``smoothness``: largest curvature, inf if there is none. ``at_zero``: largest loss at theta = 0.
    """

    name: str
    value: Callable
    slope: Callable
    curvature: Callable
    lipschitz: Callable
    smoothness: float
    at_zero: float

    def __call__(self, theta: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each row: x (n, d), y (n,), theta (d,) or (k, d); result (n,) or (k, n)."""
        return self.value(theta @ np.transpose(x), y)

    def gradient(self, theta: Array, x: Array, y: ArrayLike) -> Array:
        """Gradient in theta of each row's loss, (n, d); at a kink a subgradient."""
        return self.slope(x @ theta, y)[:, None] * x


def _not_smooth(z, y=None):
    raise ValueError("loss must be smooth here: zero-one has no slope, a kink no curvature")


class MarginLoss(RowLoss):
    """A loss f(m) of the margin m = y z alone, y = -1 or 1; all three functions are of m.

    `curvature` is f'' where it exists. `objective_perturbation` takes a MarginLoss only.
    """

    def __init__(
        self,
        name: str,
        value: Callable,
        slope: Callable,
        curvature: Callable,
        *,
        lipschitz: float,
        smoothness: float,
    ) -> None:
        super().__init__(
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

    return MarginLoss(
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
logistic_loss = MarginLoss(  # A-logistic: log(1 + exp(-m))
    "logistic",
    value=lambda m: np.logaddexp(0, -m),
    slope=lambda m: -expit(-m),
    curvature=lambda m: expit(m) * expit(-m),
    lipschitz=lambda radius: float(expit(radius)),
    smoothness=0.25,
)
zero_one_loss = MarginLoss(  # A-svm: a point on the boundary is not classified
    "zero-one",
    value=lambda m: (m <= 0).astype(float),
    slope=_not_smooth,
    curvature=_not_smooth,
    lipschitz=lambda radius: inf,
    smoothness=inf,
)
hinge_loss = MarginLoss(  # A-svm: max(0, 1 - m)
    "hinge",
    value=lambda m: np.maximum(0, 1 - m),
    slope=lambda m: np.where(m < 1, -1.0, 0.0),
    curvature=_not_smooth,
    lipschitz=lambda radius: 1.0,
    smoothness=inf,
)
huber_loss = _huber(0.5)  # Chaudhuri, Monteleoni, Sarwate 2011, (7)


class _Distance(RowLoss):
    """||theta - x||_2: a loss of the point itself, without a label (A-geometric-median)."""

    def __call__(self, theta: ArrayLike, x: ArrayLike, y: ArrayLike | None = None) -> Array:
        return np.linalg.norm(np.asarray(theta)[..., None, :] - x, axis=-1)

    def gradient(self, theta, x, y=None):
        away = theta - x
        size = np.linalg.norm(away, axis=1, keepdims=True)
        return np.divide(away, size, out=np.zeros_like(away), where=size > 0)


distance_loss = _Distance("distance", None, None, _not_smooth, lambda radius: 1.0, inf, inf)


def clip_rows(x: ArrayLike, bound: float = 1.0) -> Array:
    """Scale every row of x longer than `bound` (l2) back to it: row by row, so privacy is free."""
    x = real("x", x)
    size = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * np.minimum(1.0, positive("bound", bound) / np.maximum(size, 1e-300))


def known(loss):
    """Refuses what is not a RowLoss."""
    return instance("loss", loss, RowLoss, "a RowLoss, such as logistic_loss")


def checked_rows(x, y, loss):
    """x and y as float arrays. Rows with ||x|| > 1 and labels unknown to the loss are refused."""
    x, loss = real("x", x), known(loss)
    if np.ndim(x) != 2 or np.linalg.norm(x, axis=1).max() > 1 + 1e-9:
        raise ValueError("x must be a matrix of rows of l2 norm at most 1: use clip_rows first")
    if loss is distance_loss:
        return x, None
    y = np.asarray(real("y", y))
    if y.shape != x.shape[:1]:
        raise ValueError(f"y must have one label a row of x, got shape {y.shape} for {x.shape}")
    if np.abs(y).max() > 1 or (loss is not squared_loss and (np.abs(y) != 1).any()):
        raise ValueError("y must be -1 or 1 in every row (in [-1, 1] for squared_loss)")
    return x, y


@lru_cache(maxsize=64)
def for_objective_perturbation(loss):
    """Refuses a loss outside X-objective-perturbation; its numbers are tried at 4,001 margins."""
    if not isinstance(loss, MarginLoss) or loss.lipschitz(inf) > 1 or loss.smoothness == inf:
        raise ValueError(f"loss must be a smooth MarginLoss of slopes in [-1, 0], got {loss.name}")
    m = np.linspace(-50, 50, 4001)
    slope, curve = loss.slope(m, 1.0), loss.curvature(m, 1.0)
    rise, most = np.diff(slope), loss.smoothness * (1 + 1e-9)
    if slope.min() < -1 or slope.max() > 0 or rise.min() < 0 or curve.min() < 0:
        raise ValueError(f"loss must be convex with slopes in [-1, 0] in m, got {loss.name}")
    if rise.max() > most * (m[1] - m[0]) or curve.max() > most:
        raise ValueError(f"loss must not bend more than its smoothness says, got {loss.name}")


def risk_minimum(
    x: ArrayLike,
    y: ArrayLike,
    *,
    loss: RowLoss = logistic_loss,
    regularization: float,
    centre: ArrayLike = 0.0,
    start: ArrayLike = 0.0,
    tolerance: float = 1e-10,
) -> Array:
    """theta that minimises mean loss + regularization/2 ||theta - centre||^2.

    x (n, d), y (n,), regularization > 0; the loss must have a curvature (squared, logistic, Huber).
    The result's gradient norm is at most `tolerance`, so it is within tolerance/regularization of
    the exact minimiser (A-erm, X-strong-convexity); where rounding is larger than that: ValueError.
    """
    if known(loss).smoothness == inf:
        raise ValueError(f"loss must be squared, logistic or Huber here, got {loss.name}")
    x, y = array("x", x, 2), array("y", y, 1)
    centre, start = real("centre", centre), real("start", start)
    tolerance = scalar("tolerance", positive("tolerance", tolerance))
    lam = scalar("regularization", positive("regularization", regularization))
    n, d = x.shape
    if y.shape != (n,) or n == 0:
        raise ValueError(f"y must have one label a row of x, got shape {y.shape} for {x.shape}")
    for name, value in (("centre", centre), ("start", start)):
        if np.shape(value) not in ((), (d,)):
            raise ValueError(f"{name} must be a number or have {d} entries, got {value!r}")
    centre = np.broadcast_to(centre, d)
    theta, residual = descend(x, y, loss, lam, centre, start - centre, tolerance=tolerance)
    if residual > tolerance:
        raise ValueError(f"tolerance must be larger here, got {tolerance!r}: rounding {residual!r}")
    return theta


def optimum_radius(loss: RowLoss, regularization: float) -> float:
    """A bound on the norm of the regularised optimum that needs no data (X-output-perturbation).

    From J(theta*) <= J(0): r <= sqrt(2 loss(0)/lambda); then, as the gradient vanishes,
    lambda r <= lipschitz(r), as often as it helps.
    """
    lam = scalar("regularization", positive("regularization", regularization))
    radius = sqrt(2 * known(loss).at_zero / lam)
    for _ in range(100):
        radius = min(radius, loss.lipschitz(radius) / lam)
    return radius


def svm_minimum(x: ArrayLike, y: ArrayLike, *, regularization: float) -> tuple[Array, Array]:
    """(theta, alpha): the SVM's optimum and each row's weight in it.

    Minimises mean hinge + regularization/2 ||theta||^2; theta = sum alpha y x/(n lambda) with alpha
    in [0, 1]^n, and rows with alpha > 0 are the support vectors (A-svm, A-erm-leaks). The hinge's
    kink is rounded over 1e-6, so the objective is within 1e-6 of its least value.
    """
    x, y = checked_rows(x, y, hinge_loss)
    lam, theta = positive("regularization", regularization), np.zeros(x.shape[1])
    for width in 0.5 ** np.arange(1, 21):  # the kink, ever sharper; each optimum starts the next
        bent = _huber(width)
        theta = risk_minimum(x, y, loss=bent, regularization=lam, start=theta)
    return theta, -y * bent.slope(x @ theta, y)


def invert_model(
    theta: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    *,
    regularization: float,
    loss: RowLoss = logistic_loss,
) -> Array:
    """The one row missing from (x, y), divided by its last feature, from the exact optimum `theta`.

    The optimum's equation n lambda theta + sum slope(z_i, y_i) x_i = 0 has one unknown: the missing
    row's slope times its x. If the last feature is a known constant, the ratio is the row
    (A-erm-leaks; Balle, Cherubin, Hayes 2022). `theta` is the optimum on all n = len(x) + 1 rows.
    """
    theta, x, y = array("theta", theta, 1), array("x", x, 2), array("y", y, 1)
    if x.shape != (len(y), len(theta)) or len(theta) == 0:
        shapes = f"theta {theta.shape}, x {x.shape}, y {y.shape}"
        raise ValueError(f"x must have a row a label and a column an entry of theta, got {shapes}")
    n = len(x) + 1
    others = known(loss).slope(x @ theta, y) @ x
    missing = -(n * positive("regularization", regularization) * theta + others)
    return missing / missing[-1]
