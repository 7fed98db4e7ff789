"""Whole curves: delta of many epsilons, epsilon of many deltas.

One line through the plane serves a whole range of e around its saddle point: the values of K are
computed once, and ``array_sums`` turns them into tails for all e by two matrix products. A line
answers where its own error bound, which is computed for each e, stays below ``SHARP``; for the rest
another one is drawn. What no line serves is asked alone, as a single query.
"""

import numpy as np

from . import contour, jumps
from .array_sums import own_error, sums
from .direction import method
from .inversion import Integral
from .law import EPS
from .work import QUERY, limited, within

__all__ = []

SHARP = 2e-11  # relative error of a tail up to which a line is shared,
DULL = 1e-10  # or this, if it is not much better at its own query
FEW = 8  # queries that are asked one by one
MOST_LINES = 60
TRIES = 0.5, 0.2, 0.8, 0.05, 0.95, 0.35, 0.65  # where among the open queries a line is drawn next
REACH = 8.0  # log of how much smaller a tail a line is drawn for than its own query needs
TABLE = 129  # epsilons at which a line is inverted
FLOOR = -690.0  # log delta below which a single query knows more


def deltas(directions, epsilon):
    """(low, value, high), each an array: the worse direction at each epsilon, a flat array."""
    found = _deltas(directions[0], epsilon)
    for way in directions[1:]:
        with np.errstate(divide="ignore"):
            better = ~_is_below(way, epsilon, np.log(found[0]))
        found[:, better] = np.maximum(found[:, better], _deltas(way, epsilon[better]))
    return found


def epsilons(directions, delta):
    """The same for delta -> epsilon."""
    found = _epsilons(directions[0], delta)
    for way in directions[1:]:
        with np.errstate(divide="ignore"):
            better = ~_is_below(way, found[0], np.log(delta))
        found[:, better] = np.maximum(found[:, better], _epsilons(way, delta[better]))
    return found


def _is_below(way, epsilon, log_delta):
    """Where Chernoff's bound, the best over a table of c, shows that delta(epsilon) is below."""
    shown = np.zeros(len(epsilon), dtype=bool)
    if way.infinite or way.exact:
        return shown
    c = contour.abscissa(1, contour.scale(way.parts, 1) - np.arange(0.0, 9.0, 0.2))
    bound = contour.total(way.parts, c) + contour.chernoff(c)
    bound += 1e-12 * np.abs(bound) + 1e-12
    on = np.isfinite(epsilon) & (epsilon > 0) & np.isfinite(log_delta)
    exponent = bound - (1 - 4 * EPS) * np.outer(epsilon[on], c)
    shown[on] = exponent.min(axis=1) < log_delta[on] * (1 + 4 * EPS)
    return shown


def served(directions, values):
    """Whether the queries are many, and a line may serve them."""
    ways = [way for way in directions if not way.infinite and not way.exact]
    return values.size >= FEW and all(isinstance(method(way.parts), Integral) for way in ways)


def _deltas(way, epsilon):
    found = np.full((3, epsilon.size), np.nan)
    if not way.infinite and not way.exact:
        inside = np.flatnonzero(epsilon < way.top)
        _along(_delta_line, way.parts, epsilon, inside, found)
    return _alone(way.delta, epsilon, found)


def _epsilons(way, delta):
    found = np.full((3, delta.size), np.nan)
    if not way.infinite and not way.exact:
        found[:, delta >= max(way.delta(0.0)[2], EPS)] = 0.0
        inside = np.flatnonzero((delta > 0) & np.isnan(found[0]))
        _along(_epsilon_line, way.parts, delta, inside, found)
        np.minimum(found, max(way.top, 0.0), out=found)
    return _alone(way.epsilon, delta, found)


def _alone(query, values, found):
    """Single queries for what is not found yet."""
    for i in np.flatnonzero(np.isnan(found[0])):
        with limited(QUERY / 2):
            found[:, i] = query(float(values[i]))
    return found


def _along(draw, parts, values, left, found):
    """Draw lines until all queries are served; one that not even its own line serves stays."""
    left, failed = left[np.argsort(values[left], kind="stable")], 0
    for _ in range(MOST_LINES):
        if left.size == 0 or failed == len(TRIES):
            return
        at = int(len(left) * TRIES[failed])
        answer = within(QUERY / 2, draw, parts, float(values[left[at]]))
        served = np.zeros(left.size, dtype=bool)
        if answer is not None:
            ends = answer(values[left])
            served = ~np.isnan(ends[0])
            found[:, left[served]] = ends[:, served]
        failed = 0 if served.sum() > 1 else failed + 1
        served[at] = True
        left = left[~served]


def _delta_line(parts, epsilon):
    """Epsilons to enclosures of delta (nan where dull), from the line of this one; or None."""
    start = contour.saddle_at(parts, 1, epsilon)
    guess, side = start[2], 1 if start[2] < np.log(0.5) else -1
    if side < 0:
        start = contour.saddle_at(parts, side, epsilon)
    line, limit = _limited(_plain(parts, side, start), epsilon)
    if side > 0 and line is None:
        line, limit = _limited(*_jumping(parts, epsilon, guess))
    return line and (lambda epsilon: _enclosures(side, sums(line, epsilon), limit))


def _plain(parts, side, start):
    """The line for a saddle point (c, e, log tail), asked for a tail less by exp(-REACH), so that
    it serves others around; or for this one alone, where that is sharper."""
    c, epsilon, log_tail = start
    wide = contour.line(parts, side, (c, epsilon, log_tail - REACH))
    if wide is not None and own_error(wide, epsilon) <= SHARP:
        return wide
    alone = contour.line(parts, side, start)
    return min(
        (line for line in (wide, alone) if line),
        key=lambda line: own_error(line, epsilon),
        default=None,
    )


def _jumping(parts, epsilon, guess):
    """(lines, epsilon) of ``jumps``, drawn again where delta was not what was guessed."""
    for _ in range(4):
        lines = jumps.draw(parts, epsilon, guess - REACH)
        if lines is None:
            return jumps.draw(parts, epsilon, guess), epsilon
        old, guess = guess, float(sums(lines, np.array([epsilon]))[0][0])
        if guess > old - REACH:
            break
    return lines, epsilon


def _limited(line, epsilon):
    """The line, and the error up to which it is shared; or None where it is too dull at its own
    query."""
    if line is None:
        return None, 0.0
    error = own_error(line, epsilon)
    return (line, min(max(SHARP, 8 * error), DULL)) if error <= DULL else (None, 0.0)


def _enclosures(side, found, limit):
    """Like those of a single query: the value is the safe end."""
    log_tail, _, above, below = found
    sharp = (np.maximum(above, below) <= limit) & (log_tail < 0) & (log_tail > FLOOR)
    tail = np.exp(np.where(sharp, log_tail, np.nan))
    low, high = tail * (1 - below) * (1 - EPS), np.minimum(1.0, tail * (1 + above) * (1 + EPS))
    if side > 0:
        return np.array([low, high, high])
    return np.array([1 - high - EPS, 1 - low + EPS, 1 - low + EPS])


def _epsilon_line(parts, delta):
    """Deltas to enclosures of epsilon, by Newton's method on the line of this one; or None."""
    side = 1 if delta <= 0.5 else -1
    target = float(np.log(delta) if side > 0 else np.log1p(-delta))
    c, first, _ = contour.saddle_for(parts, side, target)
    first = max(0.0, first)
    line, limit = _limited(_plain(parts, side, (c, first, target)), first)
    if side > 0 and line is None:
        first = jumps.first_epsilon(parts, target)
        if first > 0:
            line, limit = _limited(*_jumping(parts, first, target))
    if line is None:
        return None

    def answer(deltas):
        targets = np.log(deltas) if side > 0 else np.log1p(-deltas)
        found = np.full((3, len(targets)), np.nan)
        epsilon = _inverted(line, first, limit, targets)
        on = np.isfinite(epsilon) & (targets <= np.log(0.5))  # the other side is sharper beyond
        if on.any():
            epsilon = _newton(line, side, epsilon[on], targets[on])
            found[:, on] = _certified(line, side, epsilon, targets[on], limit)
        return found

    return answer


def _inverted(line, first, limit, target):
    """Epsilons with log tail = target, roughly: Hermite's cubics through the values and slopes at
    ``TABLE`` epsilons around the first, as far as the line is sharp; nan beyond."""
    epsilon = np.unique(np.maximum(0.0, first + line.period * np.linspace(-1, 1, TABLE)))
    value, slope, above, below = sums(line, epsilon)
    dull = np.flatnonzero(~(np.maximum(above, below) <= 4 * limit))
    at = int(np.argmin(np.abs(epsilon - first)))
    low = dull[dull < at].max(initial=-1) + 1
    high = dull[dull >= at].min(initial=len(epsilon))
    if high - low < 2:
        return np.full(len(target), np.nan)
    order = np.argsort(value[low:high], kind="stable")
    e, y = (x[low:high][order] for x in (epsilon, value))
    rise = np.exp(np.clip(value - slope, -700, 700))[low:high][order]
    rise = rise * np.sign(e[-1] - e[0])
    i = np.clip(np.searchsorted(y, target), 1, len(y) - 1)
    gap = y[i] - y[i - 1]
    t = (target - y[i - 1]) / gap
    start, end = rise[i - 1] * gap, rise[i] * gap
    move = e[i] - e[i - 1]
    found = e[i - 1] + t * (start + t * (3 * move - 2 * start - end + t * (start + end - 2 * move)))
    inside = (t >= -1) & (t <= 2) & (gap > 0)
    return np.where(inside, np.maximum(found, 0.0), np.nan)


def _newton(line, side, epsilon, target):
    """Epsilons with log tail = target, from some near them on."""
    near, most = np.arange(len(target)), 0.25 * line.period
    for _ in range(8):
        value, slope = sums(line, epsilon[near])[:2]
        step = side * (value - target[near]) * np.exp(np.clip(value - slope, -700, 700))
        epsilon[near] = np.maximum(0.0, epsilon[near] + np.clip(step, -most, most))
        near = near[np.abs(step) > 1e-8 * epsilon[near]]  # of second order is what is left
        if near.size == 0:
            break
    return epsilon


def _certified(line, side, epsilon, target, limit):
    """(low, e, high) with the bounds of delta at both ends on the right side of the target; nan
    where that fails, or where the line is dull."""
    value, slope, above, below = sums(line, epsilon)
    error, tilt = np.maximum(above, below), np.exp(np.clip(value - slope, -700, 700))
    width = 4 * EPS * epsilon + 1e-300 + 1.01 * (error + np.abs(value - target)) * tilt
    ends = np.maximum(0.0, np.array([epsilon - width, epsilon + width]))
    at_ends, _, up, down = (x.reshape(ends.shape) for x in sums(line, ends.ravel()))
    first, last = np.log1p(up), np.log1p(-np.minimum(down, 0.5))
    upper, lower = (first, last) if side > 0 else (last, first)
    good = (error <= limit) & ((width <= 1e-9 * epsilon) | (error <= limit / 4))
    good &= (down < 0.5).all(axis=0)
    good &= (side * (at_ends + lower - target)[0] >= 0) | (ends[0] == 0)
    good &= side * (at_ends + upper - target)[1] <= 0
    return np.where(good, np.array([ends[0], ends[1], ends[1]]), np.nan)
