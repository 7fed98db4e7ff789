"""The likelihood-ratio test with threshold e: its level, power and miss, and e for a given one."""

from math import exp, expm1, inf, log
from typing import NamedTuple

import numpy as np

from . import contour, jumps

__all__ = []

CLOSE = 1e-11  # relative error up to which a line is kept for the next threshold
TRUSTED = 1e-3  # and beyond which it is useless


class Rates(NamedTuple):
    """Of the test with threshold e: logs of level, power and miss; delta(e) from above and
    1 - delta(e) from below."""

    log_level: float
    log_power: float
    log_miss: float
    delta: float
    rest: float


def rates(side, epsilon, log_tail, log_slope, above=0.0, below=0.0):
    """From the log of the tail, delta (side 1) or 1 - delta (side -1), of its slope in e, and
    their errors: power = delta + s, miss = 1 - delta - s."""
    log_level, tail = log_slope - epsilon, exp(min(log_tail, 0.0))
    if side > 0:
        delta = min(1.0, tail * (1 + above))
        log_power = min(float(np.logaddexp(log_tail, log_slope)), -1e-16)
        return Rates(log_level, log_power, log(-expm1(log_power)), delta, 1 - delta)
    log_miss = min(log_tail + log(-expm1(min(log_slope - log_tail, -1e-16))), -1e-16)
    rest = tail * (1 - below)
    return Rates(log_level, log(-expm1(log_miss)), log_miss, 1 - rest, rest)


def centre_and_width(parts):
    """Mean and standard deviation of the loss."""
    _, mean, variance = contour.derivatives(parts, np.zeros(1))
    return float(mean[0]), float(np.sqrt(variance[0]))


NEVER = Rates(-inf, -inf, -1e-16, 0.0, 1.0)  # beyond the largest loss


def estimated(parts, epsilon):
    """The rates at the saddle point, where the slope is abs(c) times the tail."""
    if epsilon >= sum(k * step.top() for step, k in parts):
        return NEVER
    side = 1 if epsilon >= contour.derivatives(parts, np.zeros(1))[1][0] else -1
    c, _, log_tail = contour.saddle_at(parts, side, epsilon)
    log_tail = min(log_tail, 0.0)  # near the largest loss it is anything
    return rates(side, epsilon, log_tail, min(log_tail + log(abs(c)), 0.0))


class NoLineError(Exception):
    """No line in the complex plane is good here."""


def with_jumps(parts, side, start):
    """Lines for each number of rare large losses, in the place of ``contour.line``."""
    return jumps.draw(parts, *start[1:]) if side > 0 else None


class OnLines:
    """The rates of a composition: those at nearby thresholds share a line, as ``draw`` draws it."""

    def __init__(self, parts, draw):
        self.parts, self.draw, self.line, self.side, self.error = parts, draw, None, 0, 0.0
        self.mean = centre_and_width(parts)[0]
        self.top = sum(k * step.top() for step, k in parts)

    def __call__(self, epsilon):
        if self.line is not None:
            tail, slope, *errors = self.line.sums(epsilon)
            if max(errors) <= CLOSE + 2 * self.error:
                return rates(self.side, epsilon, tail, slope, *errors)
        if epsilon >= self.top:
            return NEVER
        self.side = 1 if epsilon >= self.mean else -1
        start = contour.saddle_at(self.parts, self.side, epsilon)
        if start[2] < -690:
            return estimated(self.parts, epsilon)
        self.line = self.draw(self.parts, self.side, start)
        if self.line is None:
            raise NoLineError
        tail, slope, *errors = self.line.sums(epsilon)
        self.error = max(errors)
        if not self.error <= TRUSTED:
            raise NoLineError
        return rates(self.side, epsilon, tail, slope, *errors)


def crossing(excess, start, step, least=0.0, enough=1e-12):
    """Where a falling function of e >= least passes 0, or least if it starts below: a bracket
    outward from the start, then secants with Illinois' weights and a bisection in between, until
    the function is ``enough`` near 0."""
    low = high = max(start, least)
    over = under = excess(low)
    step = max(step, 1e-9 * (1 + abs(start)))
    while under > 0 and step < 1e12:
        low, over, high = high, under, high + step
        under, step = excess(high), 2 * step
    if under > 0:  # nowhere below 0 within reach
        return high
    while over <= 0 and low > least:
        high, under, low = low, over, max(least, low - step)
        over, step = excess(low), 2 * step
    if over <= 0:
        return low
    for turn in range(90):
        if high - low <= 1e-13 * abs(high):
            break
        share = over / (over - under) if turn % 4 < 3 and abs(under) < inf else 0.5
        middle = low + share * (high - low)
        found = excess(middle)
        if abs(found) < enough or middle in (low, high):
            return middle
        if found > 0:
            low, over, under = middle, found, 0.5 * under
        else:
            high, under, over = middle, found, 0.5 * over
    return high
