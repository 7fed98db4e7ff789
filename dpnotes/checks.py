"""Checks of arguments: a check belongs to the parameter, and its annotation names it.

``@checked def f(t: Positive, k: Count)`` gets `t` as a float array and `k` as an int, or raises one
``ValueError`` that says which argument is wrong and what is allowed. An exception is an output, so
it shows what was given only if that is one number or word and no data (DATA).

Kinds that end in Number take one number and give a float; the others take arrays of any shape too.
Booleans, strings, bytes, None and complex numbers are refused: they are mistakes here. So are
masked arrays, whose masks would be lost. Numbers are at most MOST in size (or infinite, where that
makes sense), those by which formulas divide at least LEAST. Whole numbers fit into 63 bits.
"""

import sys
from collections.abc import Callable
from functools import partial, wraps
from inspect import Parameter, signature
from math import inf
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import ArrayLike as ArrayLike  # rooms take it from here

from .refusals import DATA as DATA, SHOWN as SHOWN, plain as plain, refusal as refusal

Array = np.ndarray
LEAST, MOST = 1e-100, 1e100
P = ParamSpec("P")
R = TypeVar("R")
NOT_NUMBERS = (bytearray, memoryview)


def as_array(value):
    """The value as an array, or None: for ragged sequences, bytes, and masked arrays.

    Whoever has a masked array has imported numpy.ma, which is slow.
    """
    rows = value if isinstance(value, (list, tuple)) else (value,)
    if "numpy.ma" in sys.modules and any(isinstance(row, np.ma.MaskedArray) for row in rows):
        return None
    try:
        return None if isinstance(value, NOT_NUMBERS) else np.asarray(value)
    except Exception:  # of an object in it too, whose message may show data
        return None


def _numbers(name, value, allowed):
    """``value`` as a float or a float array; NaN and non-numbers are refused."""
    if type(value) is float and value == value:  # the common case, without NumPy's overhead
        return value
    array = as_array(value)
    if array is None or array.dtype.kind not in "iuf" or array.size == 0 or np.isnan(array).any():
        raise refusal(name, value, allowed)
    return float(array) if array.ndim == 0 else array.astype(float)


def _check(name, value, holds, allowed):
    """The numbers, if all of them hold and are of a size that formulas can square, or infinite."""
    numbers = _numbers(name, value, allowed)
    if not np.all(holds(numbers)):
        raise refusal(name, value, allowed)
    size = abs(numbers)
    if not np.all((size <= MOST) | (size == inf)):
        raise refusal(name, value, f"at most {MOST:g} in size")
    return numbers


def _range(holds, allowed):
    """The check that all numbers hold; `allowed` says it in words."""
    return lambda name, value: _check(name, value, holds, allowed)


real = _range(lambda x: (-inf < x) & (x < inf), "a finite real number")
nonnegative = _range(lambda x: (0 <= x) & (x < inf), "a finite number >= 0")
nonnegative_or_inf = _range(lambda x: 0 <= x, "a number >= 0")
probability = _range(lambda x: (0 <= x) & (x <= 1), "a number in [0, 1]")
positive_probability = _range(lambda x: (0 < x) & (x <= 1), "a number in (0, 1]")
open_probability = _range(lambda x: (0 < x) & (x < 1), "a number in (0, 1)")
below_one = _range(lambda x: (0 <= x) & (x < 1), "a number in [0, 1)")  # a delta that may be 0
order = _range(lambda x: 1 <= x, "a number >= 1 (infinity allowed)")  # of a Rényi divergence
order_above_one = _range(lambda x: (1 < x) & (x < inf), "a finite number > 1")


def positive(name, value):
    """A finite number > 0, at least LEAST if it is a single number; entries of arrays may be
    smaller."""
    numbers = _check(name, value, lambda x: (0 < x) & (x < inf), "a finite number > 0")
    if type(numbers) is float and numbers < LEAST:
        raise refusal(name, value, f"at least {LEAST:g}")
    return numbers


def within(name, value, low, high):
    """A number in [low, high], the range that is computed."""
    return _check(name, value, lambda x: (low <= x) & (x <= high), f"in [{low:g}, {high:g}]")


def number_within(low, high):
    """Check of one number in [low, high], for a kind: ``Annotated[float, number_within(0, 9)]``."""
    return lambda name, value: within(name, scalar(name, value), low, high)


def scalar(name, value):
    """Refuses arrays and sequences, ragged ones included."""
    entries = as_array(value)
    if entries is None or entries.ndim:
        raise refusal(name, value, "a single number")
    return value


def count(name, value, least=1):
    """A whole number >= `least`, as an int (1e6 is accepted, 1.5 is not)."""
    allowed, value = f"a whole number >= {least}", scalar(name, value)
    if not isinstance(value, int) or isinstance(value, bool):  # an int beyond 2**53 stays exact
        value = _check(name, value, lambda x: (x >= least) & (x == np.floor(x)), allowed)
    if least <= value < 2**63:
        return int(value)
    raise refusal(name, value, f"{allowed}, below 2**63")


def count_up_to(name, value, most):
    """A whole number from 1 to `most`, as an int: for what takes time or memory."""
    return also(count, lambda number: number <= most, f"at most {most:g}")(name, value)


def counts(name, value, most=MOST):
    """Whole numbers from 1 to `most`, of any shape."""
    numbers = positive(name, value)
    if np.any((numbers != np.floor(numbers)) | (numbers > most)):
        raise refusal(name, value, f"a whole number from 1 to {most:g}")
    return numbers


def also(check, holds, allowed):
    """The check, and one condition more on what it returns."""

    def both(name, value):
        result = check(name, value)
        if not holds(result):
            raise refusal(name, value, allowed)
        return result

    return both


def array(name, value, *dimensions):
    """A finite float array with one of these numbers of dimensions; it may be empty."""
    allowed = f"a {' or '.join(map(str, dimensions))}-dimensional array of numbers up to {MOST:g}"
    entries = as_array(value)
    numbers = entries is not None and entries.dtype.kind in "iuf" and entries.ndim in dimensions
    if not numbers or not (np.abs(entries) <= MOST).all():
        raise refusal(name, value, allowed)
    return entries.astype(float, copy=False)


def vector(name, value):
    """A one-dimensional array, which may be empty."""
    return array(name, value, 1)


def choice(name, value, allowed):
    """One of a few strings or numbers."""
    known = isinstance(value, (str, int, float, np.number)) and not isinstance(value, bool)
    if not known or value not in allowed:
        raise refusal(name, value, " or ".join(map(repr, allowed)))
    return value


class Unique:
    """An object that spends a budget: its copies are itself, for a second one would spend the
    budget again."""

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __getstate__(self):
        raise TypeError("what spends a budget is not pickled: a copy would spend the budget again")


def instance(name: str, value: Any, kind: Any, words: str | None = None) -> Any:
    """An object of a class; `words` say what that is."""
    if not isinstance(value, kind):
        raise refusal(name, value, words or f"a {kind.__name__}")
    return value


def generator(name, value):
    """A NumPy Generator, and none of a subclass: a method that it changes would serve only those
    mechanisms that call it, and the others would go on with the stream inside."""
    if type(value) is not np.random.Generator:
        raise refusal(name, value, GENERATOR)
    return value


def checked(call: Callable[P, R]) -> Callable[P, R]:
    """The function, with each argument checked as its annotation says.

    An annotation is a kind of those below, a class of `dpnotes` or `Anything`; what is annotated
    ``... | None`` may be None. One without a check is a TypeError when the function is defined.
    An answer without dimensions is returned as a Python number.
    """
    names, hints = signature(call), get_type_hints(call, include_extras=True)
    taken = names.parameters
    kinds = {n: _check_of(call, n, hints.get(n)) for n in taken if n != "self"}

    @wraps(call)
    def with_checks(*arguments, **options):
        try:
            bound = names.bind(*arguments, **options)
        except TypeError as error:
            unknown = [name for name in options if name not in kinds]
            said = f"no argument {unknown[0]!r}, but {', '.join(kinds)}" if unknown else error
            raise TypeError(f"{call.__name__}(): {said}") from None
        bound.apply_defaults()
        given = bound.arguments
        for name, check in kinds.items():
            if taken[name].kind is Parameter.VAR_POSITIONAL:
                given[name] = tuple(check(name, value) for value in given[name])
            elif given[name] is not None or taken[name].default is not None:
                given[name] = check(name, given[name])
        return plain(call(*bound.args, **bound.kwargs))

    return with_checks


def _check_of(call, name, hint):
    """The check that an annotation names."""
    hint = next((one for one in get_args(hint) if type(None) in get_args(hint)), hint)
    if hasattr(hint, "__metadata__"):
        return hint.__metadata__[0]
    if isinstance(hint, type) and hint.__module__.startswith("dpnotes."):
        return partial(instance, kind=hint)
    raise TypeError(f"{call.__qualname__}: {name} has no check, but the annotation {hint!r}")


def _array(check):
    return lambda name, value: np.asarray(check(name, value))


def _number(check):
    return lambda name, value: check(name, scalar(name, value))


real_array = _array(real)
Anything = Annotated[Any, lambda name, value: value]  # looked at by the function itself
Real = Annotated[ArrayLike, real_array]
RealNumber = Annotated[float, _number(real)]
Positive = Annotated[ArrayLike, _array(positive)]
PositiveNumber = Annotated[float, _number(positive)]
Nonnegative = Annotated[ArrayLike, _array(nonnegative)]
NonnegativeNumber = Annotated[float, _number(nonnegative)]
NonnegativeOrInf = Annotated[ArrayLike, _array(nonnegative_or_inf)]
NonnegativeOrInfNumber = Annotated[float, _number(nonnegative_or_inf)]
Probability = Annotated[ArrayLike, _array(probability)]
ProbabilityNumber = Annotated[float, _number(probability)]
PositiveProbability = Annotated[ArrayLike, _array(positive_probability)]
PositiveProbabilityNumber = Annotated[float, _number(positive_probability)]
OpenProbability = Annotated[ArrayLike, _array(open_probability)]
OpenProbabilityNumber = Annotated[float, _number(open_probability)]
BelowOneNumber = Annotated[float, _number(below_one)]
Order = Annotated[ArrayLike, _array(order)]
OrderNumber = Annotated[float, _number(order)]
OrderAboveOne = Annotated[ArrayLike, _array(order_above_one)]
Count = Annotated[int, count]
CountOrZero = Annotated[int, partial(count, least=0)]
Few = Annotated[int, partial(count_up_to, most=10_000)]
Many = Annotated[int, partial(count_up_to, most=10_000_000)]
Counts = Annotated[ArrayLike, _array(counts)]
_masses = _range(lambda x: 0 <= x, "probabilities that sum to 1")
_laws = also(
    _masses,
    lambda p: np.ndim(p) and (np.abs(p.sum(-1) - 1) <= 1e-9).all(),  # along the last axis
    "probabilities that sum to 1",
)
Laws = Annotated[ArrayLike, _laws]
Distribution = Annotated[ArrayLike, also(_laws, lambda p: p.ndim == 1, "one list of probabilities")]
Vector = Annotated[ArrayLike, vector]
Matrix = Annotated[ArrayLike, lambda name, value: array(name, value, 2)]
Function = Annotated[Callable[..., Any], partial(instance, kind=Callable, words="a function")]
GENERATOR = "a NumPy Generator itself: secure_rng() to publish, default_rng(seed) for study"
Generator = Annotated[np.random.Generator, generator]
