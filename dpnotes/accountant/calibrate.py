"""The other way round: the least noise, the largest rate or the most steps for a target.

delta(epsilon) is monotone in each of them, so calibration is root finding. Two evaluations say
which way: noise costs less privacy the more there is of it, a rate or a number of steps more. The
saddle point alone leads near the root, and costs little far from it; from there on one line through
the plane is kept while the parameter moves. That is nearly the root, without a bound; what is
returned was asked for its delta, upper end of both directions, and so was a number beyond it.
"""

from collections.abc import Callable
from functools import cache
from math import exp, inf, log

from .._validate import function, open_probability, scalar, within
from .privacy_loss import PrivacyLoss

__all__ = ["calibrate"]

MOST_STEPS = 10**12
NEAR, SAME = 0.03, 1e-13  # of log x: the root by the saddle point, and the root
LEAST = 1e-16  # of an excess
AWAY, ENOUGH = 0.2, 1e-8  # how far a line is followed; a step of secants after which none is needed


def calibrate(family: Callable[[float], PrivacyLoss], epsilon: float, delta: float) -> float:
    """The parameter x at which ``family(x)`` just is (epsilon, delta)-DP.

    ``family`` maps a number x > 0 to a PrivacyLoss, and is monotone. The answer meets the target,
    and is, to 1e-12 for smooth families,

    - the smallest such x if the family loses less privacy for larger ones (noise):
      ``calibrate(lambda s: gaussian(sigma=s), epsilon=1.0, delta=1e-5)``;
    - the largest if it loses more (a rate):
      ``calibrate(lambda q: subsample(gaussian(1.0), q).compose(1000), 1.0, 1e-5)``;
    - the largest whole number if it refuses fractions (steps), an int:
      ``calibrate(lambda k: subsample(gaussian(1.0), 0.01).compose(k), 1.0, 1e-5)``.
    """
    epsilon = within("epsilon", scalar("epsilon", epsilon), 0.0, 1e9)
    delta = open_probability("delta", scalar("delta", delta))
    function("family", family)

    def asked(x):
        loss = family(x)
        if not isinstance(loss, PrivacyLoss):
            raise ValueError(f"family must return a PrivacyLoss, got {loss!r} at {x!r}")
        return loss

    asked, target = cache(asked), log(delta)

    def excess(x):
        found = asked(x)._worst_delta(epsilon, delta)[2]
        share = (log(found) if found > 0 else -inf) - target
        return max(share, LEAST) if found > delta else min(share, 0.0)  # logarithms are rounded

    @cache
    def rough(x):
        return asked(x)._roughly(epsilon) - target

    sharp = _followed(asked, epsilon, target)
    if _served(asked, 1.5) is None and _served(asked, 2) is not None:
        return _most_steps(excess, *_followed_steps(sharp, _least_too_many(rough)))
    way = _direction(rough, target)
    return exp(way * _refined(*(_of_log(f, way) for f in (excess, rough, sharp))))


def _followed(asked, epsilon, target):
    """A function of a number: like excess on one side of the pair, for numbers near that one; or
    None."""

    def sharp(near):
        log_delta = asked(near)._followed(epsilon)
        return log_delta and (lambda x: _number(log_delta(asked(x))) - target)

    return sharp


def _of_log(answer, way):
    """The same of t = way log x: of a function of x, or of what gives one."""

    def at(t):
        found = answer(exp(way * t))
        return _of_log(found, way) if callable(found) else found

    return at


def _number(found):
    """A number, or a ValueError where there is none, which ends a search."""
    if found is None:
        raise ValueError("no line")
    return found


def _refined(excess, rough, sharp):
    """The root of ``excess``, from that of ``rough`` on, and of what is sharp near there."""
    try:
        points = []

        def noted(t):
            points.append((t, rough(t)))
            return points[-1][1]

        near = _root(noted, *_bracket(noted, (0.0, noted(0.0)), log(2)), NEAR)
        slope = _slope(points, near)
        near = _followed_root(sharp(near), near, slope)
        first = near, excess(near)
        tame = 0 < slope < inf and abs(first[1]) < inf  # delta may be 0 on one side
        step = 1.2 * abs(first[1]) / slope if tame else 1.0
    except ValueError:  # the saddle point is of no help
        first, step = (0.0, excess(0.0)), 1.0
    least = 0.9 * SAME * (1 + abs(first[0]))
    return _root(excess, *_bracket(excess, first, min(max(step, least), 1.0)), SAME)


def _slope(points, near):
    """Minus the slope through the two points (t, excess) nearest to here."""
    (t, value), (other, beyond) = sorted(points, key=lambda point: abs(point[0] - near))[:2]
    return (value - beyond) / (other - t)


def _followed_root(excess, near, slope):
    """The root of ``excess``, which is sharp about here, by secants; or ``near``."""
    if excess is None or not 0 < slope < inf:
        return near
    try:
        old, value = near, excess(near)
        t = near + value / slope
        for _ in range(8):
            if not abs(t - near) <= AWAY:
                return near
            last, value = value, excess(t)
            if abs(t - old) <= SAME * (1 + abs(t)) or value in (0.0, last):
                return t
            old, t = t, t - value * (t - old) / (value - last)
            if abs(t - old) <= ENOUGH * (1 + abs(t)):
                return t
    except ValueError:
        return near
    return t


def _followed_steps(sharp, near):
    """Where to look for the most steps, and how far from there: near the root of what is sharp."""
    excess, step = sharp(near), max(1, int(NEAR * near))
    try:
        return (_most_steps(excess, near, step), 1) if excess else (near, step)
    except ValueError:
        return near, step


def _served(answer, x):
    """The answer at x, or None where the family refuses x."""
    try:
        return answer(x)
    except ValueError:
        return None


def _direction(rough, target):
    """1 if the family loses less privacy for larger numbers, -1 if it loses more: from 1 outwards
    to the first number at which delta is another one, and one of both is not near 1, where the
    saddle point is only roughly right; or just another one."""
    first = rough(1.0)
    for small in (-1.0 - target, inf):
        for power in (1, 2, 4, 8, 16, 32):
            for x in (2.0**power, 2.0**-power):
                found = _served(rough, x)
                if found not in (None, first) and min(found, first) < small:
                    return 1 if (found < first) == (x > 1) else -1
    return 1


def _least_too_many(rough):
    """About the least whole number with excess > 0."""
    low, high = (0, -inf), (1, rough(1))
    while high[1] <= 0 and high[0] <= MOST_STEPS:
        low, high = high, (4 * high[0], rough(4 * high[0]))
    if high[1] <= 0 or low[0] * NEAR < 1:
        return low[0] + 1 if high[1] > 0 else high[0]
    ends = ((-log(k), excess) for k, excess in (high, low))
    return round(exp(-_root(lambda t: rough(round(exp(-t))), *ends, NEAR)))


def _most_steps(excess, near, step):
    """The largest whole number with excess <= 0: growing steps from ``near``, and then secants."""
    low, high = (0, -inf), (None, inf)
    at = min(near, MOST_STEPS)
    while high[0] is None or high[0] - low[0] > 1:
        found = at, excess(at)
        low, high = (found, high) if found[1] <= 0 else (low, found)
        if high[0] is None:
            if low[0] == MOST_STEPS:
                raise ValueError(f"family must miss the target somewhere, but {at} steps meet it")
            at = min(at + step, MOST_STEPS)
        elif low[0] == 0 and high[0] > 1:
            at = max(1, high[0] - step)
        elif high[0] - low[0] > 1:
            share = -low[1] / (high[1] - low[1]) if high[1] - low[1] < inf else 0.5
            at = low[0] + int(share * (high[0] - low[0]))
            margin = max(1, (high[0] - low[0]) // 16)
            at = min(max(at, low[0] + margin), high[0] - margin)
        step *= 4
    if low[0] == 0:
        raise ValueError("family must meet the target somewhere, but one step does not")
    return low[0]


def _root(excess, low, high, tolerance):
    """The t >= the root of a decreasing function, to this tolerance: secants kept inside a bracket
    of points (t, excess)."""
    points = [low, high]
    for _ in range(80):
        width = high[0] - low[0]
        if width <= tolerance * (1 + abs(high[0])) or high[1] == 0:
            break
        finite = all(abs(value) < inf for _, value in points[-3:])
        t = _interpolate(points[-3:]) if finite else 0.5 * (low[0] + high[0])
        margin = min(0.2 * tolerance * (1 + abs(t)), width / 3)
        t = min(max(t, low[0] + margin), high[0] - margin)
        if len(points) % 6 == 0:
            t = 0.5 * (low[0] + high[0])
        found = (t, excess(t))
        points.append(found)
        low, high = (found, high) if found[1] > 0 else (low, found)
    return high[0]


def _bracket(excess, first, step):
    """Two points (t, excess) around the root, from the first on; where excess refuses t, a shorter
    step is tried."""
    last = first
    way = 1 if last[1] > 0 else -1
    while abs(last[0]) <= 50:
        t = last[0] + way * step
        try:
            found = (t, excess(t))
        except ValueError:
            if step < 1e-4:
                raise
            step /= 3
            continue
        if (found[1] > 0) != (way > 0):
            return (last, found) if way > 0 else (found, last)
        last, step = found, min(max(1.5 * step, NEAR), 8 * step)
    which = "no" if way > 0 else "every"
    raise ValueError(
        f"family must have a noise, rate or number that just meets the target, but {which} one does"
    )


def _interpolate(points):
    """Where the inverse interpolation polynomial of the points vanishes."""
    total = 0.0
    for i, (t, value) in enumerate(points):
        others = [v for j, (_, v) in enumerate(points) if j != i]
        if value in others:
            return 0.5 * (points[-1][0] + points[-2][0])
        for other in others:
            t *= other / (other - value)
        total += t
    return total
