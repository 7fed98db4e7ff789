"""What may be published of numbers, and random numbers that are fit for it.

Each row is rounded to a public grid by itself. From there on all is computed in integers and drawn
from exactly the stated law (`integer_noise`): the promise holds for what the computer publishes, if
the bits of `rng` are fair, as nobody can tell from fair bits those of `secure_rng`.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from math import ceil, floor, frexp, ldexp
from typing import Annotated

import numpy as np

from .checks import (
    Array, ArrayLike, Generator, PositiveNumber, ProbabilityNumber, RealNumber, as_array, checked,
    refusal,
)  # fmt: skip
from .integer_noise import choice_around
from .mechanisms import discrete_laplace_mechanism

FINE = 20  # the grid that is taken where none is given: steps of 2^-20 of the range or less


def _data(name, value):
    """Each value as the float nearest to it, whatever the others are; NaN for what is missing."""
    array = as_array(value)
    with suppress(Exception):  # no array, or an object that is no number: its message may show it
        if array.dtype == object:
            array = np.vectorize(_nearest_float, otypes=[float])(array)
        if array.dtype.kind in "biuf":
            with np.errstate(over="ignore"):  # of floats that are longer
                return array.astype(float)
    raise refusal(name, value, "numbers")


def _nearest_float(value):
    """Infinite for a number beyond the floats; NaN for what is missing."""
    if isinstance(value, (str, bytes, bytearray, complex, np.complexfloating)):
        raise TypeError
    if value is None or type(value).__name__ == "NAType":  # of pandas
        return np.nan
    if isinstance(value, Decimal) and value.is_nan():  # a signalling one has no float
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


Data = Annotated[ArrayLike, _data]


@checked
def secure_rng() -> np.random.Generator:
    """Random numbers fit for publishing: a NumPy Generator that every mechanism takes as `rng`.

    Its bits are those of the cipher ChaCha20, with a key of 256 bits from the operating system.
    `default_rng` is not cryptographic: who sees some of its numbers can compute the others, and a
    seed repeats them. Make one in each process: a fork copies it, and the copies draw the same.
    Needs the package randomgen (`pip install "dpnotes[secure]"`), else it is an ImportError.

    >>> rng = dp.secure_rng()
    >>> abs(dp.discrete_laplace_mechanism(100, epsilon=1.0, rng=rng) - 100) < 100
    True
    """
    try:
        ciphers = import_module("randomgen")
    except ImportError:
        raise ImportError(
            'secure_rng needs the package randomgen: pip install "dpnotes[secure]". Pages that run '
            "in a browser do not have it: publish from an installed package."
        ) from None
    return np.random.Generator(ciphers.ChaCha(key=secrets.randbits(256), rounds=20))


@checked
def to_grid(values: Data, *, lower: RealNumber, upper: RealNumber, grid: PositiveNumber) -> Array:
    """Each value as a whole number of grid steps, kept within those of `lower` and `upper`.

    round(value/grid), clipped to round(lower/grid)..round(upper/grid), as an int64 array. NaN, None
    and pandas.NA count as `lower`: a refusal would reveal them. Entry by entry, so one row moves
    one integer (X-safe-sum).

    >>> dp.to_grid([0.3, 9.0], lower=0.0, upper=1.0, grid=0.25)
    array([1, 4])
    """
    least, most = _grid_ends(lower, upper, grid)
    with np.errstate(over="ignore"):  # a warning would reveal them, too
        steps = np.rint(np.where(np.isnan(values), lower, values) / grid)
    return np.clip(steps, least, most).astype(np.int64)


@checked
def safe_sum(
    values: Data, *, lower: RealNumber, upper: RealNumber, grid: PositiveNumber,
    epsilon: PositiveNumber = 1.0, rng: Generator,
) -> float:  # fmt: skip
    """The sum of `values`, epsilon-DP if a row is added or removed, with noise that is exact.

    Each value is clipped and rounded to a multiple of `grid` (`to_grid`) and the integers are
    summed without rounding. Discrete Laplace noise is added, exactly drawn, of their sensitivity
    max(abs(lower), abs(upper))/grid in whole steps. Only then is the sum multiplied by `grid`
    (X-safe-sum). `values` may be empty. Rounding costs at most grid/2 a row.

    >>> dp.safe_sum([0.3, 9.0], lower=0.0, upper=1.0, grid=0.25, rng=np.random.default_rng(1))
    1.75
    """
    least, most = _grid_ends(lower, upper, grid)
    steps = to_grid(values, lower=lower, upper=upper, grid=grid)
    total = sum(np.ravel(steps).tolist())
    sensitivity = max(abs(least), abs(most), 1)
    return float(grid * discrete_laplace_mechanism(total, sensitivity, epsilon, rng=rng))


@checked
def safe_count(values: Data, *, epsilon: PositiveNumber = 1.0, rng: Generator) -> int:
    """How many of `values` are true, epsilon-DP if a row is added, removed or replaced.

    `values` has one truth value a row, as `age >= 65` has; a number counts from 1/2 on, one that is
    missing does not. Discrete Laplace noise of scale 1/epsilon is added, exactly drawn
    (X-safe-sum), so it may be negative.

    >>> dp.safe_count([True, False, True, True], epsilon=2.0, rng=np.random.default_rng(1))
    3
    """
    steps = to_grid(values, lower=0.0, upper=1.0, grid=1.0)
    return int(discrete_laplace_mechanism(int(np.sum(steps)), epsilon=epsilon, rng=rng))


@checked
def safe_mean(
    values: Data, *, lower: RealNumber, upper: RealNumber, grid: PositiveNumber | None = None,
    epsilon: PositiveNumber = 1.0, rng: Generator,
) -> float:  # fmt: skip
    """The mean of `values`, a number of [lower, upper], epsilon-DP if a row is added or removed.

    Rows are clipped and rounded to multiples of `grid` (`to_grid`; without it as in
    `safe_quantile`). Two sums of integers get discrete Laplace noise, exactly drawn: of the steps
    from `lower` up to each row, and of those from there to `upper`. Together they have the number
    of rows, too, at no further epsilon (X-safe-mean). The middle, if their total is not above 0;
    `values` may be empty. If a row is replaced it is (2 epsilon)-DP.

    >>> values, rng = [2, 3, 4, 99], np.random.default_rng(1)
    >>> round(dp.safe_mean(values, lower=0.0, upper=10.0, epsilon=9.0, rng=rng), 2)
    4.75
    """
    if not lower < upper:
        raise refusal("upper", upper, "a number above lower")
    grid = grid or _public_grid(lower, upper)
    least, most = _grid_ends(lower, upper, grid)
    steps = np.ravel(to_grid(values, lower=lower, upper=upper, grid=grid)).tolist()
    sums = np.array([sum(x - least for x in steps), sum(most - x for x in steps)], dtype=object)
    noisy = discrete_laplace_mechanism(sums, max(most - least, 1), epsilon, rng=rng)
    below, total = int(noisy[0]), int(noisy.sum())
    share = Fraction(below, total) if total > 0 else Fraction(1, 2)
    mean = least + (most - least) * min(max(share, 0), 1)
    return min(max(float(mean) * grid, lower), upper)


@checked
def safe_quantile(
    values: Data, quantile: ProbabilityNumber = 0.5, *, lower: RealNumber, upper: RealNumber,
    grid: PositiveNumber | None = None, epsilon: PositiveNumber = 1.0, rng: Generator,
) -> float:  # fmt: skip
    """A number of [lower, upper] near the `quantile` of `values` (0.5: the median), exactly drawn.

    epsilon-DP if a row is replaced, added or removed (X-private-median): the exponential mechanism
    over the multiples of `grid` from `lower` to `upper`, whose score is minus the rank error. Rows
    are clipped and rounded to them first (`to_grid`); `values` may be empty. Without `grid` it is a
    power of two, at most 2^-20 of the range and no finer than floats are there. The promise is
    about the answer: the time depends on the rows, so let nobody measure it (X-timing).

    >>> values, rng = [1, 2, 3, 4, 99], np.random.default_rng(1)
    >>> dp.safe_quantile(values, 0.5, lower=0.0, upper=10.0, grid=0.5, epsilon=9.0, rng=rng)
    3.0
    """
    if not lower < upper:
        raise refusal("upper", upper, "a number above lower")
    grid = grid or _public_grid(lower, upper)
    least, most = _grid_ends(lower, upper, grid)
    steps = np.sort(np.ravel(to_grid(values, lower=lower, upper=upper, grid=grid)))
    knots = np.concatenate([[least], steps, [most]]).astype(np.int64)
    # from rank k to k + 1 there are counts[k] candidates, and rank `quantile` n is aimed at
    counts, aim = np.diff(knots), Fraction(quantile) * len(steps)
    first, last = ceil(aim), floor(aim) + 1  # knots between which, ends included, no rank is lost
    sides = (aim - first + 1, counts[:first][::-1]), (last - aim, counts[last:])
    middle = int(knots[last] - knots[first]) + 1
    side, i = choice_around(middle, sides, Fraction(epsilon) / 2, rng)
    if side is None:
        start, size = knots[first], middle
    else:  # a step from rank k includes the end that is nearer to the aim
        k = last + i if side else first - 1 - i
        start, size = knots[k] + side, counts[k]
    return min(max(float((int(start) + int(rng.integers(size))) * grid), lower), upper)


def _public_grid(lower, upper):
    """A power of two, of the bounds alone."""
    range_, size = (frexp(x)[1] for x in (upper - lower, max(abs(lower), abs(upper))))
    return ldexp(1.0, max(range_ - 1 - FINE, size - 52, -332))


def _grid_ends(lower, upper, grid):
    """The clipping bounds as whole numbers of grid steps."""
    if not lower <= upper:
        raise refusal("upper", upper, f"at least lower = {lower!r}")
    if not max(abs(lower), abs(upper)) / grid < 2**53:
        raise refusal("grid", grid, "at least 2^-53 of lower and upper")
    return round(lower / grid), round(upper / grid)
