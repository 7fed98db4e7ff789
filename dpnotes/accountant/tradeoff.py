"""The trade-off function f(alpha) of a composition: the least type-II error at level alpha.

With delta of q against p, f(alpha) >= 1 - delta(e) - alpha exp(e) for all real e, and f is the
highest of these lines (Dong, Roth and Su 2022, Proposition 6). Below 0 the exchanged pair says the
same: delta_qp(-x) = 1 - exp(-x) + exp(-x) delta_pq(x). So a line from a delta that is rounded up is
a lower bound of f, and an e that is a little off costs accuracy and not safety. The height of the
line is concave in exp(e): one search finds the best. Where no exact sum serves, what is drawn for
one e (``near``) answers for those around it, and for many alphas.
"""

from contextlib import suppress
from math import exp, inf, isfinite, sqrt

import numpy as np

from .._scipy import ndtri, optimize
from . import near, one_step
from .law import EPS
from .work import DRAWN, QUERY, ExhaustedError, limited, within

__all__ = []

ENOUGH = 1e-6  # widths of the loss, to which the best e is found: the loss is of second order
GRID = np.linspace(-12, 12, 97)  # widths, at which a drawn curve is asked
TURNS = 6  # drawings for one alpha


def worst(directions, alpha):
    """min of T(p, q) and T(q, p) at an array alpha, never above the truth."""
    first, second = directions[0], directions[-1]
    step, k = first.parts[0]
    if len(first.parts) == 1 and k == 1 and one_step.has_closed_form(step):
        inside = (alpha > 0) & (alpha < 1)
        found = 1 - alpha
        found[inside] = [one_step.least_error(step, a) for a in alpha[inside].tolist()]
        return found
    found = np.minimum(1 - alpha, _least_errors(first, second, alpha))
    return found if first is second else np.minimum(found, _least_errors(second, first, alpha))


def _least_errors(first, second, alpha):
    """T(p, q) from the directions p against q and q against p."""
    found = np.zeros(len(alpha))
    if second.infinite == 1 or first.infinite == 1:
        return found
    found[alpha == 0] = 1 - second.infinite * (1 + 16 * EPS) - EPS * (second.infinite > 0)
    inside = np.flatnonzero((alpha > 0) & (alpha < 1))
    if second.exact:
        found[inside] = [least_error(first, second, float(a)) for a in alpha[inside]]
    elif inside.size:
        with limited(2 * DRAWN + DRAWN * inside.size):
            found[inside] = _drawn(first, second, alpha[inside])
    return np.maximum(found, 0.0)


def least_error(first, second, alpha):
    """The same at one alpha, 0 < alpha < 1, by single queries: the best of the lines that are found
    with the work of one query."""
    found = [0.0]

    def height(e):
        if e >= 0:
            found.append(float(_above(_missed(second, e), e, alpha)))
        else:
            room = 1 - alpha - (EPS if alpha < 0.5 else 0.0)  # exact from a half on
            found.append(exp(e) * (room - first.delta(-e)[2]) * (1 - 4 * EPS))
        return found[-1]

    with limited(QUERY / 2), suppress(ExhaustedError):
        height(0.0)
        if hasattr(second.exact, "loss"):
            at = _vertices(second.exact, alpha)
        elif second.exact:
            e = _highest(height, *_guess(first, alpha))
            kinks = getattr(second.exact, "kinks", ())
            at = sorted(kinks, key=lambda kink: abs(kink - e))[:2]
        else:
            at = _guess(first, alpha)[:1]
        for e in at:
            height(e)
    return max(found)


def _above(missed, e, alpha):
    """missed - alpha exp(e), rounded down."""
    cost = np.exp(np.minimum(np.log(alpha) + e, 700.0))
    return missed - cost * (1 + 4 * EPS * (1 + e)) - EPS


def _drawn(first, second, alpha):
    """The best line for each alpha: drawings are made for the middle one of those that are left."""
    found = _at_tops(first, second, alpha)
    left = np.argsort(alpha, kind="stable")
    while left.size:
        target = left[left.size // 2]
        if (guess := within(DRAWN, _guess, first, float(alpha[target]))) is None:
            return found
        at, width = guess
        tried = {at}
        for _ in range(TURNS):
            drawn = within(2 * DRAWN, _around, first, second, alpha[left], at, width)
            if drawn is None:
                break
            heights, e, settled = drawn
            found[left] = np.fmax(found[left], heights)
            moved = float(e[left == target][0])
            left = left[~settled]
            if target not in left or not isfinite(moved) or moved in tried:
                break
            at = moved
            tried.add(at)
        if target in left and found[target] <= 0:
            alone = within(DRAWN, least_error, first, second, float(alpha[target])) or 0.0
            found[target] = max(found[target], alone)
        left = left[left != target]
    return found


def _at_tops(first, second, alpha):
    """The lines at both ends, where delta is the probability of infinite losses."""
    found = np.zeros(len(alpha))
    for way, sign in ((second, 1), (first, -1)):
        if 0 <= way.end < inf:
            e = way.end + way.finite_top[1]
            rest = 1 - way.infinite * (1 + 16 * EPS) if way.infinite else 1.0
            if sign > 0:
                found = np.maximum(found, _above(rest, e, alpha))
            else:
                found = np.maximum(found, exp(-e) * (rest - alpha - EPS) * (1 - 4 * EPS))
    return found


def _around(first, second, alpha, at, width):
    """The best line for each alpha among those that a drawing at e = ``at`` knows: its height, its
    e, and whether a drawing elsewhere would not do better; or None."""
    sign = 1.0 if at >= 0 else -1.0
    drawn = near.missed(second if sign > 0 else first, abs(at))
    if drawn is None:
        return None

    def heights(e, tails, alpha):
        size = sign * e
        if sign > 0:
            return _above(drawn.rest(tails, 1.0, 0.0), size, alpha)
        room = 1 - alpha - np.where(alpha < 0.5, EPS, 0.0)
        return np.exp(e) * drawn.rest(tails, room, alpha) * (1 - 4 * EPS)

    def roughly(e):
        return heights(e, drawn.at(sign * e, drawn.tails), alpha)

    def clipped(e):
        return sign * np.maximum(sign * e, 0.0)

    grid = np.unique(clipped(at + width * GRID))
    table = heights(grid, drawn.at(sign * grid, drawn.tails), alpha[:, None])
    table = np.where(np.isfinite(table), table, -inf)
    highest = table.argmax(axis=1)
    e, step = grid[highest], 0.25 * width
    for _ in range(6):
        three = np.array([roughly(clipped(e + s)) for s in (-step, 0.0, step)]).T
        e, step = clipped(_peak(e, three, step)), step / 3
    sure = heights(e, drawn.at(sign * e, drawn.bounds), alpha)
    inside = _is_inside(table, highest) & np.isfinite(three).all(axis=1)
    settled = inside & (roughly(e) - sure <= 1e-7 * sure)
    return sure, np.where(grid[highest] == 0, -sign * 1e-300, e), settled


def _is_inside(table, highest):
    """Whether both neighbours of the highest entry of each row are known."""
    rows, last = np.arange(len(table)), table.shape[1] - 1
    near = [table[rows, np.clip(highest + way, 0, last)] for way in (-1, 1)]
    return (highest > 0) & (highest < last) & np.isfinite(near).all(axis=0)


def _peak(middle, three, step):
    """The vertex of the parabola through three points a step apart, at most a step away; the
    highest of them where there is none."""
    left, at, right = three.T
    with np.errstate(invalid="ignore", divide="ignore"):
        bend = left + right - 2 * at
        move = np.where(bend < 0, 0.5 * (left - right) / bend, np.nan)
    steepest = np.nan_to_num(three, nan=-inf).argmax(axis=1) - 1.0
    return middle + step * np.clip(np.where(np.isfinite(move), move, steepest), -1, 1)


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
    """Where a function with one peak is greatest: outward steps that double, then Brent's."""
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
    found = float(
        optimize().fminbound(lambda e: -height(float(e)), *ends, xtol=ENOUGH * width, maxfun=60)
    )
    return found if height(found) > best else middle
