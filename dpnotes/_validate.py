"""Checks of arguments: each returns the value as a float (or float array), or raises
one ``ValueError`` that names the argument, the value given and what is allowed.

Scalars come back as Python floats, sequences as float arrays; every entry is checked.
Booleans, strings, None and complex numbers are refused: they are mistakes here, never numbers;
so are masked arrays, whose masks would be lost, and bytes.

Numbers are at most MOST in size (or infinite, where that makes sense), those by which formulas
divide at least LEAST, and whole numbers fit into 63 bits.
"""

import sys

import numpy as np

LEAST, MOST = 1e-100, 1e100
NOT_NUMBERS = (bytearray, memoryview)


def _numbers(name, value, allowed):
    """``value`` as a float or a float array; NaN and non-numbers are refused."""
    if type(value) is float:  # the common case, without NumPy's overhead
        if value == value:
            return value
        raise _error(name, value, allowed)
    try:
        array = np.asarray(value)
    except ValueError:  # ragged sequences
        raise _error(name, value, allowed) from None
    if array.dtype.kind not in "iuf" or array.size == 0 or _is_no_number(value):
        raise _error(name, value, allowed)
    array = array.astype(float)
    if np.isnan(array).any():
        raise _error(name, value, allowed)
    return float(array) if array.ndim == 0 else array


def _is_no_number(value):
    """numpy.ma takes long to import, and who has a masked array has imported it."""
    masked = "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray)
    return masked or isinstance(value, NOT_NUMBERS)


def _error(name, value, allowed):
    return ValueError(f"{name} must be {allowed}, got {value!r}")


def _check(name, value, holds, allowed):
    numbers = _numbers(name, value, allowed)
    good = holds(numbers)
    if good is True or np.all(good):
        return numbers
    raise _error(name, value, allowed)


def _sized(name, value, holds, allowed):
    """A number of a size that formulas can square; infinity where `holds` allows it."""
    numbers = _check(name, value, holds, allowed)
    size = abs(numbers)
    if np.all((size <= MOST) | (size == np.inf)):
        return numbers
    raise _error(name, value, f"at most {MOST:g} in size")


def real(name, value):
    """A finite real number."""
    return _sized(name, value, lambda x: (-np.inf < x) & (x < np.inf), "a finite real number")


def positive(name, value):
    """A finite number > 0, alone of a size by which formulas can divide; in arrays any size."""
    numbers = _sized(name, value, lambda x: (0 < x) & (x < np.inf), "a finite number > 0")
    if type(numbers) is float and numbers < LEAST:
        raise _error(name, value, f"at least {LEAST:g}")
    return numbers


def nonnegative(name, value):
    """A finite number >= 0."""
    return _sized(name, value, lambda x: (0 <= x) & (x < np.inf), "a finite number >= 0")


def nonnegative_or_inf(name, value):
    """A number >= 0; infinity is allowed."""
    return _sized(name, value, lambda x: 0 <= x, "a number >= 0")


def probability(name, value):
    """A number in [0, 1]."""
    return _check(name, value, lambda x: (0 <= x) & (x <= 1), "a number in [0, 1]")


def positive_probability(name, value):
    """A number in (0, 1]."""
    return _check(name, value, lambda x: (0 < x) & (x <= 1), "a number in (0, 1]")


def open_probability(name, value):
    """A number in (0, 1)."""
    return _check(name, value, lambda x: (0 < x) & (x < 1), "a number in (0, 1)")


def within(name, value, low, high):
    """A number in [low, high], the range that is computed."""
    return _check(name, value, lambda x: (low <= x) & (x <= high), f"in [{low:g}, {high:g}]")


def order(name, value):
    """A Rényi order: a number >= 1; infinity is allowed."""
    return _sized(name, value, lambda x: 1 <= x, "a number >= 1 (infinity allowed)")


def _listed(value):
    """Whether the value is an array or a sequence, ragged ones included."""
    try:
        return np.ndim(value) != 0
    except ValueError:
        return True


def scalar(name, value):
    """Refuses arrays: for arguments of which there is exactly one."""
    if _listed(value):
        raise _error(name, value, "a single number")
    return value


def count(name, value):
    """A whole number >= 1, as an int (1e6 is accepted, 1.5 is not)."""
    return int(_whole(name, value, 1))


def count_up_to(name, value, most):
    """A whole number from 1 to `most`, as an int: for what takes time or memory."""
    value = count(name, value)
    if value > most:
        raise _error(name, value, f"at most {most:g}")
    return value


def counts(name, value, most=MOST):
    """Whole numbers from 1 to `most`, of any shape."""
    numbers = positive(name, value)
    if np.any((numbers != np.floor(numbers)) | (numbers > most)):
        raise _error(name, value, f"a whole number from 1 to {most:g}")
    return numbers


def count_or_zero(name, value):
    """A whole number >= 0, as an int."""
    return int(_whole(name, value, 0))


def _whole(name, value, least):
    allowed = f"a whole number >= {least}"
    if _listed(value):
        raise _error(name, value, allowed)
    if not isinstance(value, int) or isinstance(value, bool):  # an int beyond 2**53 stays exact
        value = _check(name, value, lambda x: (x >= least) & (x == np.floor(x)), allowed)
    if least <= value < 2**63:
        return value
    raise _error(name, value, f"{allowed}, below 2**63")


def distribution(name, value):
    """A one-dimensional array of probabilities that sum to 1 (within 1e-9)."""
    allowed = "a list of probabilities that sum to 1"
    array = _numbers(name, value, allowed)
    if np.ndim(array) != 1 or (array < 0).any() or not abs(array.sum() - 1) <= 1e-9:
        raise _error(name, value, allowed)
    return array


def array(name, value, *dimensions):
    """A finite float array with one of these numbers of dimensions; it may be empty."""
    allowed = f"a {' or '.join(map(str, dimensions))}-dimensional array of numbers up to {MOST:g}"
    try:
        found = np.asarray(value)
    except ValueError:  # ragged sequences
        raise _error(name, value, allowed) from None
    if (
        found.dtype.kind not in "iuf"
        or isinstance(value, NOT_NUMBERS)
        or found.ndim not in dimensions
        or not (np.abs(found) <= MOST).all()
    ):
        raise _error(name, value, allowed)
    return found.astype(float, copy=False)


def function(name, value):
    """Something that can be called."""
    if not callable(value):
        raise _error(name, value, "a function")
    return value


def choice(name, value, allowed):
    """One of a few strings or numbers."""
    if isinstance(value, (str, int, float, np.number)) and not isinstance(value, bool):
        if value in allowed:
            return value
    raise _error(name, value, " or ".join(map(repr, allowed)))


def instance(name, value, kind, words):
    """An object of a class of ours, which `words` describes."""
    if not isinstance(value, kind):
        raise _error(name, value, words)
    return value


def generator(name, value):
    """A ``numpy.random.Generator``."""
    return instance(name, value, np.random.Generator, "a numpy.random.Generator")


def plain(value):
    """An answer as it is returned: scalars as Python floats, arrays as they are."""
    return float(value) if np.ndim(value) == 0 else value
