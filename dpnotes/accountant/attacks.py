"""What attacks find: the least error and the most power of a test, and the mu of Gaussian noise.

``best_attack`` looks at the directions of a pair, ``mu_interval`` at the curve delta(epsilon) of a
run.
"""

from math import inf, log, pi, sqrt

import numpy as np

from ..numerics import erfinv, ndtri, ndtri_exp
from .curves import gaussian_log_delta
from .law import EPS

GRID, ROUNDS = np.linspace(0, 1, 17), 20  # each grid lies between the neighbours of the last peak
PLACES, SPLIT = 129, 9  # epsilon at which mu is computed; and between two of them, where it matters
CLOSE, LOOKS = 1e-6, 3  # how far a bound on mu may lie beyond what was seen; how often to look
FLOOR = 1e-10  # the delta below which mu does not look, unless another is given
FAR = 50.0  # epsilon, if delta never falls below what is asked
MU_ERROR = 1e-12  # of a mu that is computed from delta


def best_attack(ways, alpha):
    """(error, power) of the best test at each level, in the worse of the directions of a pair: the
    least type-II error rounded down, the largest power rounded up.

    What bounds the other direction at the place where the first has its peak is a bound on it
    everywhere: it is looked at by itself only where this does not settle which is worse."""
    first, other = ways[0], ways[-1]
    error, power, places = _peaks(first, other, alpha)
    if len(ways) > 1:
        seen = np.flatnonzero(places > -inf)
        least, most, _ = _bounds(other, first, places[seen], alpha[seen])
        asked = np.ones(len(alpha), dtype=bool)
        asked[seen] = (most > power[seen]) | (least < error[seen])
        found = _peaks(other, first, alpha[asked])
        error[asked] = np.minimum(error[asked], found[0])
        power[asked] = np.maximum(power[asked], found[1])
    return error, power


def _peaks(first, second, alpha):
    """The errors and the powers of tests of the null hypothesis q, where ``first`` is p against q,
    and the s where the bound has its peak (-inf where none was looked for).

    A test of level a for q has power at most e^s a + delta(s) under p, for every real s. So its
    type-II error is at least 1 - delta(s) - e^s a, and the largest of these bounds is attained
    (U-privacy-profile). The bound is concave in e^s: it has one peak, around which a grid gets ever
    finer, until less is to be gained than an eighth of what delta is known to. Each s gives a
    bound. Where delta is sharp the largest is right to about 1e-13."""
    error = np.where(alpha == 0, 1 - first.infinite, 0.0)
    power, tops = np.where(alpha == 0, first.infinite, 1.0), np.full(alpha.shape, -inf)
    asked = np.flatnonzero((alpha > 0) & (alpha < 1) & (first.infinite < 1))
    if not len(asked):
        return error, power, tops
    # a first guess of the peak: the quantile of the loss, as if it were normal under q
    spread, mean = sqrt(second.total.variance()), -second.total.mean()
    middle, width = mean - spread * ndtri(alpha), max(spread, abs(mean), 1e-12)
    low, high = (middle - width)[:, None], (middle + width)[:, None]
    for _ in range(ROUNDS):
        if not len(asked):
            break
        before, after = low[asked], high[asked]
        places = before + (after - before) * GRID
        least, most, room = _bounds(first, second, places, alpha[asked, None])
        at = np.where(most.min(axis=1) < 0.5, most.argmin(axis=1), least.argmax(axis=1))
        row, last = np.arange(len(asked)), len(GRID) - 1
        tops[asked] = np.where(least[row, at] > error[asked], places[row, at], tops[asked])
        error[asked] = np.maximum(error[asked], least[row, at])
        power[asked] = np.minimum(power[asked], most[row, at])
        wide = 2 * (after - before)[:, 0]
        nearer = places[row, np.maximum(at - 1, 0)], places[row, np.minimum(at + 1, last)]
        low[asked, 0] = np.where(at == 0, before[:, 0] - wide, nearer[0])
        high[asked, 0] = np.where(at == last, after[:, 0] + wide, nearer[1])
        height = np.where(most.min(axis=1)[:, None] < 0.5, -most, least)
        left = _to_gain(places, height, at) > room[row, at] / 8 + EPS / 4 * abs(height[row, at])
        asked = asked[left]
    return np.clip(error, 0.0, 1 - alpha), np.clip(power * (1 + 4 * EPS), alpha, 1.0), tops


def _to_gain(places, height, at):
    """How much higher than the highest place of each row its peak may be: on either side it is
    below the lines through the two places before it, and through the two places after it."""
    row, last = np.arange(len(at)), len(GRID) - 1
    grown, gain = np.exp(places - places[row, at][:, None]), np.full(len(at), inf)
    inside = (at >= 2) & (at <= last - 2)
    row, at = row[inside], at[inside]
    t, h = ([x[row, at + n] - x[row, at] for n in range(-2, 3)] for x in (grown, height))
    right = np.minimum(-h[1] / -t[1] * t[3], h[3] + (h[3] - h[4]) / (t[4] - t[3]) * t[3])
    left = np.minimum(h[3] / t[3] * t[1], h[1] + (h[1] - h[0]) / (t[1] - t[0]) * -t[1])
    gain[inside] = np.fmax(left, right)
    gain[height.max(axis=1) == 0] = 0.0  # e^abs(s) is infinite, and so is it further out
    return gain


def _bounds(first, second, places, alpha):
    """For places s and levels: 1 - delta(s) - e^s alpha from below, which is an error of attacks,
    delta(s) + e^s alpha from above, which is a power, and how far apart the ends of delta(s) are.

    For s < 0 it is 1 - delta(s) = e^s (1 - delta'(-s)), with delta' of the other direction."""
    curve, right = np.empty((3, *places.shape)), places >= 0
    if right.any():
        curve[:, right] = first.curve(places[right], EPS / 2 * min(1.0, alpha.min()))
    if not right.all():
        curve[:, ~right] = second.curve(-places[~right], EPS / 2)
    low, high, not_delta = curve  # the last is 1 - delta, from below
    slope, level = np.exp(np.abs(places)), alpha * (1 + 8 * EPS)
    error = np.where(right, not_delta - slope * level, (not_delta - level) / slope * (1 - 4 * EPS))
    error = np.nan_to_num(error, nan=-inf, neginf=-inf)
    power = np.where(right, np.fmin(high + slope * level, 1 - error), 1 - error)  # more digits
    return error, power, np.where(right, high - low, (high - low) / slope)


def mu_of(epsilon, delta):
    """The mu at which N(mu, 1) against N(0, 1) has this delta at epsilon, for arrays: 0 at delta =
    0, infinite at delta = 1.

    Newton on ln delta against ln mu, whose slope is mu phi(t)/delta with t = epsilon/mu - mu/2,
    from the larger of two lower bounds on mu: the tail's, and that of epsilon = 0."""
    epsilon, delta = np.broadcast_arrays(epsilon, delta)
    at_zero = 2 * sqrt(2) * erfinv(delta)
    target, mu = np.log(delta), np.maximum(at_zero, 1 / tail_sigma(epsilon, delta))
    for _ in range(60):
        log_delta = gaussian_log_delta(mu, epsilon)
        t = epsilon / mu - mu / 2
        slope = np.exp(np.log(mu) - t * t / 2 - log(2 * pi) / 2 - log_delta)
        step = np.exp(np.clip((target - log_delta) / slope, -1, 1))
        mu = mu * np.where(np.isnan(step), 1.0, step)
        if not (np.abs(step - 1) >= 1e-14).any():
            break
    return np.where((epsilon == 0) | (delta <= 0) | (delta >= 1), at_zero, mu)


def tail_sigma(epsilon, delta):
    """The least sigma with P(L > epsilon) <= delta: epsilon sigma - 1/(2 sigma) >= t, where Q(t) =
    delta, without cancellation."""
    t, epsilon = -ndtri(delta), np.maximum(epsilon, 1e-300)
    root = np.hypot(t, np.sqrt(2 * epsilon))
    return np.where(t > 0, (t + root) / (2 * epsilon), 1 / np.where(t > 0, 1.0, root - t))


@np.errstate(all="ignore")
def mu_interval(run, delta):
    """(low, high) of the mu of a run, over all epsilon where its delta is at least this one.

    Between two epsilon that were asked, delta as a function of e^epsilon is convex. So it is below
    the line between its upper ends there, and above the lines on through the points before and
    after. The curve of Gaussian noise is convex, too: both bounds on mu are attained at one point
    (X-regret)."""
    if (mu := run.gaussian_mu) is not None:
        return mu * (1 - 4 * EPS), mu * (1 + 4 * EPS)
    last = run.epsilon_interval(delta)[1]
    if last == 0:
        return 0.0, 0.0
    places, ends = np.empty(0), np.empty((2, 0))
    reach = FAR if last == inf else last
    more = reach * np.sin(np.linspace(0.0, pi / 2, PLACES)) ** 2  # close at the ends
    more = np.append(more, 2 * more[-1] - more[-2])
    for _ in range(LOOKS):
        ends = np.concatenate([ends, run.delta_interval(more)], axis=1)
        places = np.concatenate([places, more])
        order = np.argsort(places)
        places, ends = places[order], ends[:, order]
        low, high = (mu_of(places, end) for end in ends)
        least, most = _least_mu(places, ends, low), _most_mu(places, ends[1], high)
        open_ = (least < low[:-1].min() * (1 - CLOSE)) | (most > high[:-1].max() * (1 + CLOSE))
        if not open_.any():
            break
        parts = places[:-2, None] + np.diff(places)[:-1, None] * np.linspace(0, 1, SPLIT)[1:-1]
        more = np.unique(parts[open_])
    low, high = np.nan_to_num(least.min()), np.nan_to_num(most.max(), nan=inf)
    if last == inf:  # beyond FAR delta stays above what was asked
        low, high = min(low, mu_of(FAR, delta)), inf
    return float(low * (1 - MU_ERROR)), float(high * (1 + MU_ERROR))


def _most_mu(places, upper, mu):
    """For each cell between two places: a mu whose curve is above the line between the upper ends.

    The curve minus the line is least where the slopes are equal, at t. So the mu sought is the
    largest of those that belong to the points of the line. From any point on, t of its mu is a
    better one."""
    places, upper = places[:-1], upper[:-1]
    start, width, fall = places[:-1], np.diff(places), upper[:-1] - upper[1:]
    log_slope = np.log(np.maximum(fall, 0.0)) - start - np.log(np.expm1(width))
    quantile, found = ndtri_exp(np.minimum(log_slope, 0.0)), np.maximum(mu[:-2], mu[1:-1])
    for _ in range(3):
        t = np.clip(-found * (quantile + found / 2) - start, 0.0, width)
        share = np.expm1(t) / np.expm1(width)
        line = upper[:-1] * (np.expm1(t - width) / np.expm1(-width)) + upper[1:] * share
        found = np.fmax(found, mu_of(start + t, np.where(share < 1, line, upper[1:])))
    return found


def _least_mu(places, ends, mu):
    """For each cell: a mu whose curve is below both lines that come from outside. The larger of
    the two has its kink inside, or none. The place before 0 is -h, for the first cell's width h:
    there delta is at most 1 - e^-h (1 - delta(h)), by the other direction of the pair."""
    (low, high), width = ends, np.diff(places)
    first = 1 - np.exp(-width[0]) * (1 - high[1])
    before = np.append(first, high[:-3]), np.append(width[0], width[:-2])
    before = (low[:-2] - before[0]) / -np.expm1(-before[1])
    rise = np.expm1(width[:-1])
    after = (high[2:] - low[1:-1]) / (np.exp(width[:-1]) * np.expm1(width[1:]))
    kink = np.clip((low[1:-1] - low[:-2] - after * rise) / (before - after), 0.0, rise)
    kink = np.where(np.isnan(kink), 0.0, kink)
    lines = np.maximum(low[:-2] + before * kink, low[1:-1] - after * (rise - kink))
    inside = mu_of(places[:-2] + np.log1p(kink), np.maximum(lines, 0.0))
    return np.minimum(np.minimum(mu[:-2], mu[1:-1]), inside)
