"""The other way round: the least noise, the largest rate or the most steps for a target.

What a family costs is monotone in its number, so calibration is root finding, in the logarithm of
the number. Two cheap looks say which way it goes. The saddle point alone leads near the root, at
little cost. The upper bound is then computed at the answer, and at a number beyond it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from math import exp, inf, log
from typing import Annotated, Any

from ..numerics import optimize
from ..checks import (
    BelowOneNumber, NonnegativeNumber, OpenProbabilityNumber, PositiveNumber, checked,
    instance,
)  # fmt: skip
from .privacy_loss import PrivacyLoss
from .targets import target_of

NEAR, SAME = 0.02, 1e-13  # tolerances of log x: of the rough root, and of the root
SLACK = 4e-13, 1e-6  # the least and the largest tolerance of log delta
LEAST, FAR = 1e-16, 1e3  # the least excess; and what stands for -log 0
LOST = 50  # times 1 + epsilon: a divergence of order 2 that is far from any target
ADDED = 1e-12  # ten steps of 0.1 are 1: sums of largest losses are right to about this
WIDEST, END = 45.0, 1e-6  # log x goes so far; and how closely the end of what is served is found

_function = partial(instance, kind=Callable, words="a function")
Family = Annotated[Callable[[Any], PrivacyLoss], _function]  # some take whole numbers only


@checked
def calibrate(
    family: Family,
    epsilon: NonnegativeNumber | None = None,
    delta: BelowOneNumber | None = None,
    *,
    tpr: OpenProbabilityNumber | None = None,
    fpr: OpenProbabilityNumber | None = None,
    advantage: OpenProbabilityNumber | None = None,
    mu: PositiveNumber | None = None,
) -> float:
    """The number x at which ``family(x)`` just meets one target: ``epsilon`` and ``delta``, or the
    ``tpr`` of attacks whose rate of false alarms is ``fpr``, or their ``advantage``, or ``mu``.

    ``family`` maps a number x > 0 to a PrivacyLoss and is monotone; it may refuse an x by a
    ValueError. Whether more of x costs less (noise) or more (a rate, steps) is seen from two of its
    losses. delta = 0 is for losses that are bounded, as that of Laplace noise is. A target ``mu``
    is for the upper end of ``family(x).mu()``.

    The answer meets the target. To 1e-12, or to the width of the interval of delta (1e-6 for
    ``mu``), it is the smallest such x of noise (``lambda s: gaussian(sigma=s)``), and the largest
    of a rate (``lambda r: subsample(gaussian(1.0), r).compose(1000)``). It is a whole number, an
    int, if the family refuses fractions (``lambda k: gaussian(9.0).compose(k)``; at delta = 0 ten
    steps of 0.1 meet epsilon = 1, as if sums had no round-off). If no x just meets the
    target, a ValueError says what the last x costs, and why the family has none beyond it.

    >>> round(dp.calibrate(lambda s: dp.gaussian(sigma=s), epsilon=1.0, delta=1e-6), 4)
    4.2247
    >>> round(dp.calibrate(lambda s: dp.gaussian(sigma=s), tpr=0.03, fpr=0.01), 4)
    2.2444
    """
    search = _Search(family, target_of(epsilon, delta, tpr, fpr, advantage, mu))
    return search.place(_root_near(search))


class _Refused(Exception):
    """The family refuses a number."""


class _Search:
    """A family and a target, asked at t: log x if more of x costs less, else -log x."""

    def __init__(self, family, target):
        self.family, self.target = family, target
        self.member, self.interval = lru_cache(2)(self._member), cache(self._interval)
        self.start = x = next(filter(self.serves, _powers()), None) or family(1)  # says why not
        cost = _cost(self.member(x))
        other = next((y for y in (2 * x, x / 2, 1.01 * x, x / 1.01) if self.serves(y)), x)
        self.way = 1 if (cost > _cost(self.member(other))) == (x < other) else -1
        self.whole = x >= 1 and self.serves(x + 1) and not self.serves(x + 0.5)
        for _ in range(30):  # where nearly all is lost, the saddle point is slow
            farther = self.start * 4.0**self.way
            if not LOST * (1 + target.epsilon) < cost[0] < inf or not self.serves(farther):
                break
            self.start, cost = farther, _cost(self.member(farther))

    def _member(self, x):
        try:
            loss = self.family(x)
        except ValueError as error:
            raise _Refused(str(error)) from error
        return instance("family", loss, PrivacyLoss, "a function that returns a PrivacyLoss")

    def serves(self, x):
        try:
            return bool(self.member(x))
        except _Refused:
            return False

    def place(self, t):
        x = exp(self.way * t)
        return round(x) if self.whole else x

    def _interval(self, x):
        """What is bounded by the target, where sums of whole numbers have no round-off."""
        low, high = self.target.bound(self.member(x))
        most = 1 - ADDED * (self.whole and self.target.adds)
        return low * most, high * most

    def rough(self, t):
        """About the logarithm of what is bounded over its target."""
        if self.target.adds:
            return self.met(t)[0]
        return max(self.target.rough(self.member(self.place(t))), -FAR)

    def met(self, t):
        """The same by the upper end of the interval; and half of its width, between bounds."""
        (low, high), target = self.interval(self.place(t)), self.target.most
        share = (log(high) if high > 0 else -FAR) - log(target)
        share = max(share, LEAST) if high > target else min(share, 0.0)  # logarithms are rounded
        most = SLACK[0] if self.whole else SLACK[1]
        return share, min(max(SLACK[0], log(high / low) / 2), most) if low > 0 else most

    def end(self, served, refused):
        """The last place that the family serves between one that it serves and one that it does
        not."""
        while abs(refused - served) > END:
            middle = (served + refused) / 2
            if self.serves(self.place(middle)):
                served = middle
            else:
                refused = middle
        return served


def _powers():
    """1, and the powers of two around it, from the nearest to the farthest."""
    yield 1
    for n in range(1, int(WIDEST / log(2))):
        yield from (2**n, 2.0**-n)


def _cost(loss):
    """Grows with the loss: a divergence, and where it is infinite the log of the distance."""
    divergence = loss.renyi(2.0)
    return divergence, loss._roughly(0.0) if divergence == inf else 0.0


def _root_near(search):
    """The root of what ``met`` says first, to within the second; from that of ``rough`` on."""
    near, other = _bracket(search, search.rough, search.way * log(search.start), log(2))
    step = NEAR
    if near < other:
        near = optimize().brentq(search.rough, near, other, xtol=NEAR)
        fall = max(search.rough(near) - search.rough(near + NEAR), LEAST)  # how far may the root be
        step *= min(1.5, 1.2 * abs(search.met(near)[0]) / min(fall, 4.0)) + 1e-7
    low, high = _bracket(search, lambda t: search.met(t)[0], near, step)
    if low == high:
        raise _none_just_meets(search, low)

    def beyond(t):  # 0 where the target is met, but by no more than the width of its interval
        over, slack = search.met(t)
        return min(max(over + slack, -1.0), 1.0) if abs(over + slack) > slack else 0.0

    at, step = optimize().brentq(beyond, low, high, xtol=SAME), SAME
    while search.met(at)[0] > 0 and at < high:
        at, step = at + step * (1 + abs(at)), 2 * step
    return min(at, high)


def _bracket(search, excess, t, step):
    """(low, high) around the root of a decreasing function, from t on, in growing steps. Where the
    family refuses a place, the last one that it serves is the last to be tried. If there is no
    root, both are this one."""
    last, way, ended = t, 1 if excess(t) > 0 else -1, False
    while abs(last) < WIDEST and not ended:
        t = last + way * step
        try:
            over = excess(t)
        except _Refused:
            t, ended = search.end(last, t), True
            over = excess(t)
        if (over > 0) != (way > 0):
            return (last, t) if way > 0 else (t, last)
        last, step = t, 2 * step
    return last, last


def _none_just_meets(search, end):
    """The error, with what the last number costs and why the family has none beyond it."""
    x, met = search.place(end), search.met(end)[0] <= 0
    alone = search.whole and x == 1  # one step, and no less
    which = "x = 1 alone" if alone else f"x = {x:.7g}, the last one,"
    cost, most = search.interval(x)[1], search.target.most
    side = "not more" if met else "more"
    words = f"{which} has {search.target.name} = {cost:.4g}, {side} than {most:.4g}"
    beyond = end + (-1 if met else 1) * (log(2) if search.whole else 2 * END)
    try:
        if not alone:
            search.member(search.place(beyond))
    except _Refused as refused:  # without the number that the search happened to try
        words += f" ({str(refused).split(', got')[0]})"
    error = ValueError(f"family must have an x that just meets the target: {words}")
    vars(error)["end"] = x
    return error
