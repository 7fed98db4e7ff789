"""The trade-off function f(alpha) of a composition: the least type-II error at level alpha.

With delta of q against p, f(alpha) >= 1 - delta(e) - alpha exp(e) for all real e, and f is the
highest of these lines (Dong, Roth and Su 2022, Proposition 6). Below 0 the exchanged pair says the
same: delta_qp(-x) = 1 - exp(-x) + exp(-x) delta_pq(x). So a line from a delta that is rounded up is
a lower bound of f, and an e that is a little off costs accuracy and not safety. The height of the
line is concave in exp(e): one search finds the best.
"""

from math import exp, log, sqrt

import numpy as np
from scipy.special import ndtri

from . import one_step
from .law import EPS

__all__ = []

ENOUGH = 1e-6  # widths of the loss, to which the best e is found: the loss is of second order


def worst(directions, alpha):
    """min of T(p, q) and T(q, p) at alpha, never above the truth."""
    first, second = directions[0], directions[-1]
    step, k = first.parts[0]
    if alpha == 1:
        return 0.0
    if alpha > 0 and len(first.parts) == 1 and k == 1 and one_step.has_closed_form(step):
        return one_step.least_error(step, alpha)
    found = min(1 - alpha, least_error(first, second, alpha))
    return found if first is second else min(found, least_error(second, first, alpha))


def least_error(first, second, alpha):
    """T(p, q)(alpha) from the directions p against q and q against p."""
    if second.infinite == 1 or first.infinite == 1:
        return 0.0
    if alpha == 0:
        return max(0.0, 1 - second.infinite * (1 + 16 * EPS) - EPS * (second.infinite > 0))

    def height(e):
        if e >= 0:
            cost = exp(min(log(alpha) + e, 700.0))
            return _missed(second, e) - cost * (1 + 4 * EPS * (1 + e)) - EPS
        room = 1 - alpha - (EPS if alpha < 0.5 else 0.0)  # exact from a half on
        return exp(e) * (room - first.delta(-e)[2]) * (1 - 4 * EPS)

    if second.exact and hasattr(second.exact, "loss"):
        found = max(map(height, _vertices(second.exact, alpha)))
    else:
        e, found = _highest(height, *_guess(first, alpha))
        kinks = sorted(getattr(second.exact, "kinks", ()), key=lambda kink: abs(kink - e))
        found = max([found, *map(height, kinks[:2])])
    return max(0.0, found, height(0.0))


def _missed(way, e):
    """1 - delta(e), from below."""
    if way.exact:
        return way.exact.kept[0] * way.exact.rest(e)[0]
    return 1 - way.delta(e)[2]


def _vertices(exact, alpha):
    """The values of the loss at which the level of the test passes alpha."""
    level = np.cumsum(np.exp(exact.log_p + exact.log_kept - exact.loss)[::-1])[::-1]
    j = int(np.searchsorted(-level, -alpha, "right"))
    return [float(e) for e in exact.loss[max(j - 2, 0) : j + 2]]


def _guess(first, alpha):
    """Where level = alpha if the loss were normal, and its width, roughly."""
    given = [(step, k) for step, k in first.given]
    mean = sum(k * step.mean() for step, k in given)
    width = sqrt(sum(k * step.spread() ** 2 for step, k in given))
    return first.log_kept - mean - width * float(ndtri(alpha)), max(width, 1e-14)


def _highest(height, middle, step):
    """Where a function with one peak is greatest, and its value there: outward steps that double,
    then Brent's."""
    from scipy.optimize import fminbound  # slow to import

    best, width = height(middle), step
    ends = []
    for way in (-1, 1):
        at, reach = middle, 0.5 * step
        while reach < 1e12:
            at, reach = at + way * reach, 2 * reach
            found = height(at)
            if found <= best:
                break
            best, middle = found, at
        ends.append(at)
    found = float(fminbound(lambda e: -height(float(e)), *ends, xtol=ENOUGH * width, maxfun=60))
    value = height(found)
    return (found, value) if value > best else (middle, best)
