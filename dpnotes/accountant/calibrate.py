"""The other way round: the least noise, rate or number of steps for a target, by root finding."""

from math import exp, inf, log

from .._validate import nonnegative, open_probability, scalar
from .privacy_loss import PrivacyLoss

__all__ = ["calibrate"]


def calibrate(family, epsilon, delta):
    """The smallest noise s > 0 for which ``family(s)`` is (epsilon, delta)-DP.

    ``family`` maps a number to a PrivacyLoss and must lose less privacy for larger numbers:
    ``calibrate(lambda s: gaussian(sigma=s), epsilon=1.0, delta=1e-5)``. Relative error 1e-12 for
    smooth families; the answer itself meets the target.
    """
    epsilon = nonnegative("epsilon", scalar("epsilon", epsilon))
    delta = open_probability("delta", scalar("delta", delta))
    if not callable(family):
        raise ValueError(f"family must be a function of the noise, got {family!r}")

    def excess(t):
        loss = family(exp(t))
        if not isinstance(loss, PrivacyLoss):
            raise ValueError(f"family must return a PrivacyLoss, got {loss!r} at {exp(t)!r}")
        found = loss._delta(epsilon)
        return (log(found) if found > 0 else -inf) - log(delta)

    return exp(_root(excess))


def _root(excess):
    """The t >= the root of a decreasing function, to 1e-13: secants kept inside a bracket."""
    low, high = _bracket(excess)
    points = [low, high]
    for _ in range(80):
        width = high[0] - low[0]
        if width <= 1e-13 * (1 + abs(high[0])) or high[1] == 0:
            break
        finite = all(abs(value) < inf for _, value in points[-3:])
        t = _interpolate(points[-3:]) if finite else 0.5 * (low[0] + high[0])
        margin = min(2e-14 * (1 + abs(t)), width / 3)
        t = min(max(t, low[0] + margin), high[0] - margin)
        if len(points) % 6 == 0:
            t = 0.5 * (low[0] + high[0])
        found = (t, excess(t))
        points.append(found)
        low, high = (found, high) if found[1] > 0 else (low, found)
    return high[0]


def _bracket(excess):
    """Two points (t, excess) around the root; where excess refuses t, a shorter step is tried."""
    last = (0.0, excess(0.0))
    way, step = (1 if last[1] > 0 else -1), 1.0
    while abs(last[0]) <= 50:
        t = last[0] + way * step
        try:
            found = (t, excess(t))
        except ValueError:
            if step < 0.05:
                raise
            step /= 3
            continue
        if (found[1] > 0) != (way > 0):
            return (last, found) if way > 0 else (found, last)
        last, step = found, 1.5 * step
    which = "no" if way > 0 else "every"
    raise ValueError(f"family must have a noise that meets the target, but {which} noise does")


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
