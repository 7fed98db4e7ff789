"""Samplers: the mechanisms themselves. Each takes the exact value, what sets its noise and an
explicit random generator, and returns what may be published. `sigma` is always the standard
deviation of the noise that is drawn; no sensitivity multiplies it.

For what is published in earnest: `discrete_laplace_mechanism`, `discrete_gaussian_mechanism` and
`randomized_response_mechanism`, which draw from exactly the stated law (`integer_noise`), and what
`safe` makes of them. `laplace_mechanism` and `gaussian_mechanism` are the theorems' mechanisms in
floating point, for study and simulation: their low bits can tell the value (X-low-bits).
"""

from __future__ import annotations

from fractions import Fraction
from collections.abc import Sequence
from typing import Annotated, Any, overload

import numpy as np

from .checks import (
    Array, ArrayLike, Count, Generator, Positive, PositiveNumber, Real, as_array, checked, refusal,
)  # fmt: skip
from .integer_noise import discrete_gaussian_noise, discrete_laplace_noise, odds_coins


def _bits(name, value):
    """Booleans, or numbers that are all 0 or 1, as a boolean array."""
    array = as_array(value)
    numbers = array is not None and array.size and array.dtype.kind in "biuf"
    if not numbers or not np.isin(array, (0, 1)).all():
        raise ValueError(f"{name} must hold only 0 and 1")
    return array.astype(bool)


def _integers(name, value):
    """Integers of any size, as an array: of objects where they do not fit into 64 bits."""
    array = as_array(value)
    kind = "none" if array is None else array.dtype.kind
    if kind in "iu" or (kind == "O" and array.size and all(type(v) is int for v in array.flat)):
        return array
    raise refusal(name, value, "an integer or an array of integers")


Bits = Annotated[ArrayLike, _bits]
Integers = Annotated[ArrayLike, _integers]


@overload
def laplace_mechanism(
    value: float, sensitivity: float = ..., epsilon: float = ..., *, rng: Generator
) -> float: ...
@overload
def laplace_mechanism(
    value: ArrayLike, sensitivity: ArrayLike = ..., epsilon: ArrayLike = ..., *, rng: Generator
) -> Array: ...
@checked
def laplace_mechanism(
    value: Real, sensitivity: Positive = 1.0, epsilon: Positive = 1.0, *, rng: Generator
) -> float | Array:
    """Add independent Laplace noise of scale sensitivity/epsilon to each entry of `value`.

    epsilon-DP when `sensitivity` is the l1 sensitivity of the whole of `value` (T-laplace, F-3.6).
    The result has the shape of `value`. For study: floats leak (X-low-bits).

    >>> round(dp.laplace_mechanism(100, epsilon=0.25, rng=np.random.default_rng(1)), 4)
    100.0957
    """
    scale = sensitivity / epsilon
    noise = rng.laplace(0.0, scale, np.shape(value))
    return value + noise


@overload
def gaussian_mechanism(value: float, *, sigma: float = ..., rng: Generator) -> float: ...
@overload
def gaussian_mechanism(value: ArrayLike, *, sigma: ArrayLike = ..., rng: Generator) -> Array: ...
@checked
def gaussian_mechanism(value: Real, *, sigma: Positive = 1.0, rng: Generator) -> float | Array:
    """Add independent Gaussian noise of standard deviation `sigma` to each entry of `value`.

    What `gaussian_sigma(epsilon, delta, sensitivity)` returns is what is drawn, and what
    `dpnotes.gaussian(sigma, sensitivity)` accounts for, `sensitivity` being the l2 sensitivity of
    the whole of `value` (T-def-gaussian). For study: floats leak (X-low-bits).

    >>> round(dp.gaussian_mechanism(100, sigma=4.0, rng=np.random.default_rng(1)), 4)
    101.3823
    """
    noise = rng.normal(0.0, sigma, np.shape(value))
    return value + noise


@checked
def randomized_response_mechanism(bits: Bits, epsilon: Positive = 1.0, *, rng: Generator) -> Array:
    """Report each bit truly with probability e^epsilon/(1+e^epsilon), else its opposite, exactly.

    epsilon-DP for each respondent (F-randomized-response). `bits`: 0/1 or booleans of any shape;
    the result is a boolean array of that shape. The float `epsilon` is taken as the fraction it is.

    >>> dp.randomized_response_mechanism([1, 0, 1], epsilon=2.0, rng=np.random.default_rng(1))
    array([ True, False,  True])
    """
    bits, epsilon = np.broadcast_arrays(bits, epsilon)
    lies = np.zeros(bits.shape, dtype=bool)
    for one in np.unique(epsilon):
        same = epsilon == one
        lies[same] = odds_coins(Fraction(one), int(same.sum()), rng)
    return bits ^ lies


@overload
def randomized_response_estimate(answers: Sequence[float], epsilon: float = ...) -> float: ...
@overload
def randomized_response_estimate(answers: ArrayLike, epsilon: ArrayLike = ...) -> Any: ...
@checked
def randomized_response_estimate(answers: Bits, epsilon: Positive = 1.0) -> float | Array:
    """Unbiased estimate of the proportion of ones behind randomized `answers` (last axis).

    (mean - lie)/(1 - 2 lie) with lie = 1/(1+e^epsilon); it may leave [0, 1]. Its standard deviation
    is `randomized_response_error` (F-randomized-response).

    >>> round(dp.randomized_response_estimate([1, 0, 1, 1], epsilon=2.0), 4)
    0.8283
    """
    return 0.5 + (np.atleast_1d(answers).mean(-1) - 0.5) / np.tanh(epsilon / 2)


@overload
def discrete_laplace_mechanism(
    value: int, sensitivity: int = ..., epsilon: float = ..., *, rng: Generator
) -> int: ...
@overload
def discrete_laplace_mechanism(
    value: ArrayLike, sensitivity: int = ..., epsilon: float = ..., *, rng: Generator
) -> Array: ...
@checked
def discrete_laplace_mechanism(
    value: Integers, sensitivity: Count = 1, epsilon: PositiveNumber = 1.0, *, rng: Generator
) -> int | Array:
    """Add integer noise with P(z) proportional to exp(-epsilon |z| / sensitivity), exactly.

    epsilon-DP for an integer `value` (or array of them) of l1 sensitivity `sensitivity`, a whole
    number; the float `epsilon` is taken as the fraction it is (X-discrete-laplace). Returns a
    Python int, or an int64 array (of Python ints where these do not fit).

    >>> dp.discrete_laplace_mechanism(100, epsilon=0.25, rng=np.random.default_rng(1))
    102
    """
    rate = Fraction(epsilon) / sensitivity
    return _sum_of_integers(value, discrete_laplace_noise(rate, value.size, rng))


@overload
def discrete_gaussian_mechanism(value: int, *, sigma: float = ..., rng: Generator) -> int: ...
@overload
def discrete_gaussian_mechanism(
    value: ArrayLike, *, sigma: float = ..., rng: Generator
) -> Array: ...
@checked
def discrete_gaussian_mechanism(
    value: Integers, *, sigma: PositiveNumber = 1.0, rng: Generator
) -> int | Array:
    """Add integer noise with P(z) proportional to exp(-z^2 / (2 sigma^2)), exactly.

    For an integer `value` (or array of them) of l2 sensitivity s: concentrated DP with rho =
    s^2/(2 sigma^2), as for the Gaussian (X-discrete-gaussian). The float `sigma` is taken as the
    fraction it is. Returns a Python int or an array, as `discrete_laplace_mechanism` does.

    >>> dp.discrete_gaussian_mechanism(100, sigma=4.0, rng=np.random.default_rng(1))
    103
    """
    return _sum_of_integers(value, discrete_gaussian_noise(Fraction(sigma) ** 2, value.size, rng))


def _sum_of_integers(value, noise):
    """A Python int, or an array: of 64-bit integers if all fit, else of Python ints."""
    total = value.astype(object) + noise.reshape(value.shape)
    if value.ndim == 0:
        return int(total)
    small = all(-(2**63) <= t < 2**63 for t in total.flat)
    return total.astype(np.int64) if small else total
