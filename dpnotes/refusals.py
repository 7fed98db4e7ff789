"""What is said of an argument that is refused: its name, what is allowed, and what to write."""

import numpy as np

SHOWN = (int, float, complex, str, type(None))
DATA = set(
    "answers bits data gradients histogram holdout points scores"
    " training utility value values x y".split()
)


def refusal(name, value, allowed):
    """The error: with the value if that is one number or word, and no data.

    Its attribute `refused` is the name: so a refusal is told from a ValueError of a bug.
    """
    value = plain(value)
    shown = f", got {value!r}" if isinstance(value, SHOWN) else _what_to_write(value)
    error = ValueError(f"{name} must be {allowed}{'' if name in DATA else shown}")
    vars(error)["refused"] = name
    return error


def _what_to_write(value):
    """For what is a number, but none of NumPy's, and for what holds none."""
    if type(value).__name__ in ("Fraction", "Decimal"):
        return f", got a {type(value).__name__}: write float(...)"
    if hasattr(value, "detach"):
        return ", got a tensor: write ....detach().numpy()"
    empty = isinstance(value, (list, tuple, np.ndarray)) and len(value) == 0
    return ", got nothing: it is empty" if empty else ""


def plain(answer):
    """An answer as it is returned: numbers as Python's own, arrays as they are."""
    if type(answer) is tuple:
        return tuple(map(plain, answer))
    if isinstance(answer, np.generic | np.ndarray) and answer.ndim == 0:
        return answer.item()
    return answer
