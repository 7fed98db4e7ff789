"""The e at which a tail has a given value, log t(e) = target, and points surely on either side."""

from math import inf

import numpy as np

from .law import EPS

SHARP, WORSE = 1e-12, 10.0  # a line serves below SHARP, or below WORSE times the middle's error


def solve(tail, target, start, side, middle, last):
    """The e in [0, last] with log t(e) = target, its slope and its error: by Newton's method, kept
    between e that are known to be on either side. Where the error exceeds t, e is too far out. A
    target that this tail does not serve may stop unconverged."""
    epsilon = np.full(len(target), min(max(float(start), 0.0), last))
    low, high = np.zeros(len(target)), np.full(len(target), last)
    slope, error = np.empty((2, len(target)))
    left, sums = np.arange(len(target)), np.array(tail.sums(np.append(epsilon, 0.0)))
    none = (sums[2, -1] < 1) & (side * (sums[0, -1] - target) <= 0)  # no e > 0 is needed
    for _ in range(100):
        e = epsilon[left]
        log_tail, slope[left], error[left] = sums[:, : len(left)]
        off = np.where(error[left] < 1, side * (log_tail - target[left]), -side * inf)
        low[left] = np.where(off >= 0, e, low[left])  # off > 0: e is too small
        high[left] = np.where(off <= 0, e, high[left])
        steep, first, past = slope[left], low[left], high[left]
        step = off / np.maximum(steep, 1e-300)
        moved, half = e + step, np.where(past < inf, (first + past) / 2, 4 * e + 1)
        inside = (moved > first) & (moved < past) & (steep > 0) & np.isfinite(moved)
        done = np.abs(step) <= 4 * EPS * e + 0.02 * error[left] / steep
        done &= (steep > 0) & (error[left] < 1)
        done |= (past < inf) & (past - first <= 4 * EPS * past)
        epsilon[left] = np.where(done, e, np.where(inside, moved, half))
        left = left[~done]
        if middle not in left:
            left = left[error[left] <= WORSE * max(error[middle], SHARP)]
            if not len(left):
                break
        sums = np.array(tail.sums(epsilon[left]))
    return np.where(none, 0.0, epsilon), slope, error


def certain_ends(tail, targets, epsilon, slope, error, side):
    """Points certainly before the roots of the first targets, and beyond those of the second; 0 or
    inf where none is found."""
    way = np.array([[-1.0], [1.0]])
    least = np.minimum(1.1 * error / np.maximum(slope, 1e-300), 1 + np.abs(epsilon))
    least += 8 * EPS * np.abs(epsilon) + 1e-300
    pad = np.where(epsilon > 0, least, 0.0) * np.ones((2, 1))
    for _ in range(60):
        end = epsilon + way * pad
        log_tail, _, off = np.reshape(tail.sums(end.ravel()), (3, *end.shape))
        less = log_tail + np.log1p(-np.minimum(off, 1.0)) >= targets
        sure = np.where(way * side > 0, log_tail + np.log1p(off) <= targets, less)
        unsure = ~sure & ((end > 0) | (way > 0))
        if not unsure.any():
            break
        pad = np.where(unsure, np.maximum(2 * pad, least), pad)
    return np.where(sure, end, [[0.0], [inf]])
