"""Samplers: the mechanisms themselves. Each takes the exact value, what sets its noise and an
explicit random generator, and returns what may be published. `sigma` is always the standard
deviation of the noise that is drawn; no sensitivity multiplies it.

For what is published in earnest: `safe_sum`, `discrete_laplace_mechanism` and
`discrete_gaussian_mechanism`, which compute with integers and draw from exactly the stated law
(`discrete`). `laplace_mechanism` and `gaussian_mechanism` are the theorems' mechanisms in floating
point, for study and simulation: their low bits can tell the value (X-low-bits).
"""

from fractions import Fraction
from functools import partial

import numpy as np

from ._scipy import expit
from ._types import Answer, Array, ArrayLike, Generator
from ._validate import count, generator, plain, positive, real, scalar, within
from .discrete import discrete_gaussian_noise, discrete_laplace_noise

__all__ = [
    "safe_sum",
    "to_grid",
    "discrete_laplace_mechanism",
    "discrete_gaussian_mechanism",
    "laplace_mechanism",
    "gaussian_mechanism",
    "randomized_response_mechanism",
    "randomized_response_estimate",
]


def laplace_mechanism(
    value: ArrayLike, sensitivity: ArrayLike = 1.0, epsilon: ArrayLike = 1.0, *, rng: Generator
) -> Answer:
    """Add independent Laplace noise of scale sensitivity/epsilon to each entry of `value`.

    epsilon-DP when `sensitivity` is the l1 sensitivity of the whole of `value` (T-laplace, F-3.6).
    `value`: a number or an array of any shape; the result has the same shape. For study: the proof
    is about real numbers, and floats leak (X-low-bits). Publish with `discrete_laplace_mechanism`.
    """
    value = real("value", value)
    scale = positive("sensitivity", sensitivity) / positive("epsilon", epsilon)
    noise = generator("rng", rng).laplace(0.0, scale, np.shape(value))
    return plain(value + noise)


def gaussian_mechanism(value: ArrayLike, *, sigma: ArrayLike = 1.0, rng: Generator) -> Answer:
    """Add independent Gaussian noise of standard deviation `sigma` to each entry of `value`.

    What `gaussian_sigma(epsilon, delta, sensitivity)` returns is what is drawn, and what
    `dpnotes.gaussian(sigma, sensitivity)` accounts for, `sensitivity` being the l2 sensitivity of
    the whole of `value` (T-def-gaussian). The result has the shape of `value`. For study, as above:
    publish with `discrete_gaussian_mechanism`.
    """
    value = real("value", value)
    noise = generator("rng", rng).normal(0.0, positive("sigma", sigma), np.shape(value))
    return plain(value + noise)


def randomized_response_mechanism(
    bits: ArrayLike, epsilon: ArrayLike = 1.0, *, rng: Generator
) -> Array:
    """Report each bit truly with probability e^epsilon/(1+e^epsilon), else its opposite.

    epsilon-DP for each respondent (F-randomized-response). `bits`: 0/1 or booleans of any shape;
    the result is a boolean array of that shape.
    """
    bits = _bits("bits", bits)
    lie = expit(-positive("epsilon", epsilon))
    return bits ^ (generator("rng", rng).random(bits.shape) < lie)


def randomized_response_estimate(answers: ArrayLike, epsilon: ArrayLike = 1.0) -> Answer:
    """Unbiased estimate of the proportion of ones behind randomized `answers` (last axis).

    (mean - lie)/(1 - 2 lie) with lie = 1/(1+e^epsilon); it may leave [0, 1]. Its standard deviation
    is `randomized_response_error` (F-randomized-response).
    """
    answers = np.atleast_1d(_bits("answers", answers))
    epsilon = positive("epsilon", epsilon)
    return plain(0.5 + (answers.mean(-1) - 0.5) / np.tanh(epsilon / 2))


def discrete_laplace_mechanism(
    value: ArrayLike, sensitivity: int = 1, epsilon: float = 1.0, *, rng: Generator
) -> Answer:
    """Add integer noise with P(z) proportional to exp(-epsilon |z| / sensitivity), exactly.

    epsilon-DP for an integer `value` (or array of them) of l1 sensitivity `sensitivity`, a whole
    number; the float `epsilon` is taken as the fraction it is (X-discrete-laplace). A Python int,
    or an int64 array (of Python ints where these do not fit).
    """
    rate = _fraction("epsilon", epsilon) / count("sensitivity", sensitivity)
    return _add_noise(value, partial(discrete_laplace_noise, rate), rng)


def discrete_gaussian_mechanism(value: ArrayLike, *, sigma: float = 1.0, rng: Generator) -> Answer:
    """Add integer noise with P(z) proportional to exp(-z^2 / (2 sigma^2)), exactly.

    For an integer `value` (or array of them) of l2 sensitivity s: concentrated DP with rho =
    s^2/(2 sigma^2), as for the Gaussian (X-discrete-gaussian). The float `sigma`, from 1e-100 to
    1e100, is taken as the fraction it is. Returns what `discrete_laplace_mechanism` does.
    """
    variance = Fraction(within("sigma", scalar("sigma", sigma), 1e-100, 1e100)) ** 2
    return _add_noise(value, partial(discrete_gaussian_noise, variance), rng)


def to_grid(values: ArrayLike, *, lower: float, upper: float, grid: float) -> Answer:
    """Each value as a whole number of grid steps, kept within those of `lower` and `upper`.

    round(value/grid), clipped to round(lower/grid)..round(upper/grid); NaN counts as `lower`, for
    a refusal would tell. Entry by entry, so one row moves one integer (X-safe-sum). An int64 array.
    """
    least, most = _grid_ends(lower, upper, grid)
    values = _floats(values)
    with np.errstate(over="ignore"):  # a warning would tell, too
        steps = np.rint(np.where(np.isnan(values), lower, values) / grid)
    return np.clip(steps, least, most).astype(np.int64)


def safe_sum(
    values: ArrayLike,
    *,
    lower: float,
    upper: float,
    grid: float,
    epsilon: float = 1.0,
    rng: Generator,
) -> float:
    """The sum of `values`, epsilon-DP if a row is added or removed: integers until the noise is in.

    Each value is clipped and rounded to a multiple of `grid` (`to_grid`), the integers are summed
    without rounding, discrete Laplace noise of their sensitivity max(abs(lower), abs(upper))/grid,
    in whole steps, is added, and only then is the sum multiplied by `grid` (X-safe-sum). `values`
    may be empty. Rounding costs at most grid/2 a row.
    """
    least, most = _grid_ends(lower, upper, grid)
    total = sum(to_grid(values, lower=lower, upper=upper, grid=grid).ravel().tolist())
    sensitivity = max(abs(least), abs(most), 1)
    return float(grid) * discrete_laplace_mechanism(total, sensitivity, epsilon, rng=rng)


def _floats(values):
    """Each value as the float next to it, infinite beyond them; no value depends on another."""
    try:
        try:
            return np.asarray(values, dtype=float)
        except OverflowError:  # a whole number among them is no float
            return np.vectorize(_float, otypes=[float])(np.asarray(values, dtype=object))
    except (TypeError, ValueError):
        raise ValueError(f"values must be numbers, got {values!r}") from None


def _float(value):
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def _grid_ends(lower, upper, grid):
    """The clipping bounds as whole numbers of grid steps."""
    lower, upper = (scalar(n, real(n, v)) for n, v in (("lower", lower), ("upper", upper)))
    grid = scalar("grid", positive("grid", grid))
    if not lower <= upper:
        raise ValueError(f"upper must be at least lower = {lower!r}, got {upper!r}")
    if not max(abs(lower), abs(upper)) / grid < 2**53:
        raise ValueError(f"grid must be at least 2^-53 of lower and upper, got {grid!r}")
    return round(lower / grid), round(upper / grid)


def _add_noise(value, noise, rng):
    """`value` plus one draw an entry: a Python int, or an integer array."""
    try:
        value = np.asarray(value)
    except ValueError:  # ragged sequences
        value = np.zeros(0)
    if value.dtype.kind not in "iu" and not _whole_objects(value):
        raise ValueError(f"value must be an integer or an array of integers, got {value!r}")
    noise = noise(value.size, generator("rng", rng)).reshape(value.shape)
    total = value.astype(object) + noise
    if value.ndim == 0:
        return int(total)
    small = all(-(2**63) <= t < 2**63 for t in total.flat)
    return total.astype(np.int64) if small else total


def _whole_objects(value):
    return value.dtype == object and value.size and all(type(v) is int for v in value.flat)


def _fraction(name, value):
    return Fraction(scalar(name, positive(name, value)))


def _bits(name, value):
    """Booleans, or numbers that are all 0 or 1, as a boolean array."""
    try:
        array = np.asarray(value)
    except ValueError:  # ragged sequences
        array = np.zeros(0)
    if array.size == 0 or array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name} must hold only 0 and 1, got {value!r}")
    return array.astype(bool)
