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
SLACK = 4e-13, 1e-6  # the least and the largest tolerance of log delta
LEAST, FAR = 1e-16, 1e3  # the least excess; and what stands for -log 0


@checked
def calibrate(family: Function, epsilon: NonnegativeNumber, delta: OpenProbabilityNumber) -> float:
    """The parameter x at which ``family(x)`` just is (epsilon, delta)-DP.

    ``family`` maps a number x > 0 to a PrivacyLoss, and is monotone. The answer meets the target.
    To 1e-12, or to the width of the interval of delta, it is the smallest such x if more of it
    costs less (noise: ``lambda s: gaussian(sigma=s)``), and the largest if more of it costs more (a
    rate: ``lambda r: subsample(gaussian(1.0), r).compose(1000)``). It is the largest whole number,
    an int, if the family refuses fractions (steps: ``lambda k: gaussian(9.0).compose(k)``).
    """
    within("epsilon", epsilon, 0.0, 1e9)

    def asked(x):
        return instance("family", family(x), PrivacyLoss, "a function that returns a PrivacyLoss")

    def served(x):  # None where the family refuses it
        with suppress(ValueError):
            return asked(x)

    @cache
    def interval(x):
        return asked(x).delta_interval(epsilon)

    @cache
    def rough(x):
        return max(asked(x)._roughly(epsilon), -FAR) - log(delta)

    steps = served(1.5) is None and served(2) is not None  # only whole numbers are served
    most = SLACK[0] if steps else SLACK[1]

    def root(place):
        def met(t):
            return _excess(*interval(place(t)), delta, most)

        return place(_root_near(met, lambda t: rough(place(t))))

    if steps:
        return root(lambda t: round(exp(-t)))
    with suppress(ValueError):  # noise: more of it costs less
        return root(exp)
    return root(lambda t: exp(-t))


def _excess(low, high, delta, most):
    """log of the upper end of an interval over delta; and half of its width, between bounds."""
    share = (log(high) if high > 0 else -FAR) - log(delta)
    share = max(share, LEAST) if high > delta else min(share, 0.0)  # logarithms are rounded
    return share, min(max(SLACK[0], log(high / low) / 2), most) if low > 0 else most


def _root_near(met, rough):
    """The root of what ``met`` says first, to within the second; from that of ``rough`` on."""
    try:
        near = optimize().brentq(rough, *_bracket(rough, 0.0, log(2)), xtol=NEAR)
        fall = max(rough(near) - rough(near + NEAR), LEAST)  # says how far the root may be
        step = NEAR * min(1.5, 1.2 * abs(met(near)[0]) / min(fall, 4.0)) + 1e-9
    except ValueError:  # the saddle point is of no help
        near, step = 0.0, 1.0
    low, high = _bracket(lambda t: met(t)[0], near, step)

    def beyond(t):  # 0 where delta is met, but by no more than the width of its interval
        found, slack = met(t)
        return min(max(found + slack, -1.0), 1.0) if abs(found + slack) > slack else 0.0

    at, step = optimize().brentq(beyond, low, high, xtol=SAME), SAME
    while met(at)[0] > 0 and at < high:
        at, step = at + step * (1 + abs(at)), 2 * step
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
