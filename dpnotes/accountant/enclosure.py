"""Enclosures (low, value, high) of one number, and how two of them are joined.

Several methods may enclose the same delta or epsilon. Each is right on its own, so the truth lies
in all of them, and the best that is known is their intersection. If that is empty, at least one of
them is wrong: this is never hidden by a merge, it raises.
"""

from math import inf

from .law import EPS

__all__ = []

TOUCHING = 64 * EPS  # by which ends that ought to meet may miss each other


def is_wide(found, share):
    """Whether an enclosure is missing, or wider than this share of its value."""
    return found is None or not found[2] - found[0] <= share * found[1]


def safe(found, tight=0.0):
    """The high end as the value; the value itself where the enclosure is ``tight`` relative to it
    (a closed form, right to the last digits) or has no finite high end."""
    low, value, high = found
    return low, value if high == inf or high - low <= tight * value else high, high


def intersected(first, second):
    """The intersection of two enclosures of the same number; None says nothing."""
    if first is None or second is None:
        return second if first is None else first
    low, high = max(first[0], second[0]), min(first[2], second[2])
    if not low <= high:
        if not low - high <= TOUCHING * abs(low):
            raise ArithmeticError(
                f"the bounds {first[::2]} and {second[::2]} of one number contradict each other:"
                " please report this composition and this query as a fault of the accountant"
            )
        low, high = high, low
    narrower = first if first[2] - first[0] <= second[2] - second[0] else second
    return low, min(max(narrower[1], low), high), high
