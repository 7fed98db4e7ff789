"""The other way round: the least noise, the largest rate or the most steps for a target.

delta(epsilon) is monotone in each of them, so calibration is root finding, in the logarithm of the
number. The saddle point alone leads near the root, at little cost. The upper bound on delta is then
computed at the answer, and at a number beyond it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from math import exp, log

from ..numerics import optimize
from ..checks import Function, NonnegativeNumber, OpenProbabilityNumber, checked, instance, within
from .privacy_loss import PrivacyLoss

NEAR, SAME = 0.02, 1e-13  # tolerances of log x: of the rough root, and of the root
LEAST, FAR = 1e-16, 1e3  # the least excess; and what stands for -log 0


@checked
def calibrate(family: Function, epsilon: NonnegativeNumber, delta: OpenProbabilityNumber) -> float:
    """The parameter x at which ``family(x)`` just is (epsilon, delta)-DP.

    ``family`` maps a number x > 0 to a PrivacyLoss, and is monotone. The answer meets the target.
    To 1e-12, for smooth families, it is the smallest such x if more of it costs less (noise:
    ``lambda s: gaussian(sigma=s)``), and the largest if more of it costs more (a rate:
    ``lambda r: subsample(gaussian(1.0), r).compose(1000)``). It is the largest whole number, an
    int, if the family refuses fractions (steps: ``lambda k: gaussian(9.0).compose(k)``).
    """
    within("epsilon", epsilon, 0.0, 1e9)
    target = log(delta)

    @cache
    def asked(x):
        return instance("family", family(x), PrivacyLoss, "a function that returns a PrivacyLoss")

    def served(x):  # None where the family refuses it
        with suppress(ValueError):
            return asked(x)

    @cache
    def excess(x):
        found = asked(x).delta_interval(epsilon)[1]
        share = (log(found) if found > 0 else -FAR) - target
        return max(share, LEAST) if found > delta else min(share, 0.0)  # logarithms are rounded

    @cache
    def rough(x):
        return max(asked(x)._roughly(epsilon), -FAR) - target

    def root(place):
        return place(_root_near(lambda t: excess(place(t)), lambda t: rough(place(t))))

    if served(1.5) is None and served(2) is not None:  # a number of steps
        return root(lambda t: round(exp(-t)))
    with suppress(ValueError):  # noise: more of it costs less
        return root(exp)
    return root(lambda t: exp(-t))


def _root_near(excess, rough):
    """The root of ``excess``, from that of ``rough`` on."""
    try:
        near = optimize().brentq(rough, *_bracket(rough, 0.0, log(2)), xtol=NEAR)
        fall = rough(near) - rough(near + NEAR)  # says how far the root of ``excess`` may be
        step = min(1.5 * NEAR, 1.2 * NEAR * abs(excess(near)) / max(fall, LEAST) + 1e-9)
    except ValueError:  # the saddle point is of no help
        near, step = 0.0, 1.0
    low, high = _bracket(excess, near, step)

    def beyond(t):  # 0 where delta is met to within SAME
        found = excess(t) + SAME
        return found if abs(found) > SAME else 0.0

    at = optimize().brentq(beyond, low, high, xtol=SAME)
    while excess(at) > 0:
        at += SAME * (1 + abs(at))
    return min(at, high)


def _bracket(excess, t, step):
    """(low, high) around the root of a decreasing function, from t on; where it refuses a place, a
    shorter step is tried."""
    last, way = t, 1 if excess(t) > 0 else -1
    while abs(last) <= 50:
        t = last + way * step
        try:
            found = excess(t)
        except ValueError:
            if step < 1e-4:
                break
            step /= 3
            continue
        if (found > 0) != (way > 0):
            return (last, t) if way > 0 else (t, last)
        last, step = t, 2 * step
    which = "no" if way > 0 else "every"
    raise ValueError(
        f"family must have a noise, rate or number that just meets the target, but {which} one does"
    )
