"""Proofs that an inequality holds for every parameter of a box, by interval arithmetic.

A ball of Arb (python-flint) is a number with an error bound, and arithmetic on balls loses no true
value. A formula on a ball that covers an interval gives a ball that covers its values there. So
right - left >= 0 is proved on a box if that ball has no number below 0, for the box or for each
part of it. These ways are tried, and then the box is split:

- the formula on the whole box;
- where it only rises, or only falls, in a parameter: the side where it is least;
- its Taylor polynomial about the middle; the remainder's coefficient is taken over the whole box;
- near x = c, where both sides touch in m orders: the same of (right - left) / (x - c)^m, whose
  polynomial is that of right - left about c without the first m terms. That these vanish is
  checked at 20 points of the other parameters, exactly or, with irrational numbers, to 900 digits.

A formula takes a power series of flint for each parameter. It uses + - * / **, whole numbers and
the functions below.
"""

from collections import Counter
from functools import reduce
from math import isfinite, log10, sqrt

import numpy as np
from flint import arb, arb_series, ctx, fmpq, fmpq_series

import evidence

DIGITS, TAYLOR, PARTS = 50, 8, 20_000


class Counterexample(AssertionError):
    """A point of the box where the inequality is false."""


class Undecided(Exception):
    """Neither a proof nor a counterexample was found: a fault of the test (no AssertionError)."""


with ctx.workdps(1000):
    PI = arb.pi()


def root(x):
    """The square root of a series or of a number."""
    return x.sqrt() if hasattr(x, "sqrt") else arb(x).sqrt()


def exp(x):
    return x.exp()


def log(x):
    return x.log()


def expm1(x):
    return x.exp() - 1


def log1p(x):
    return (1 + x).log()


def exprel(x):
    """(exp(x) - 1)/x, whose Taylor coefficients rise with x; also about 0."""
    if not isinstance(x, arb_series):
        return (x.exp() - 1) / x
    ends, terms = (x[0].lower(), x[0].upper()), []
    for n in range(x.prec):
        low, high = (end.hypgeom_1f1(n + 1, n + 2) / arb(n + 1).gamma() / (n + 1) for end in ends)
        terms.append(low.union(high))
    step = arb_series([0, *x.coeffs()[1:]], x.prec)
    return reduce(lambda rest, term: term + step * rest, reversed(terms), step * 0)


def normal_tail(t):
    return (t / root(2)).erfc() / 2


def tanh(x):
    return 1 - 2 / (1 + (2 * x).exp())


def cosh(x):
    return (x.exp() + (-x).exp()) / 2


def sinh(x):
    return (x.exp() - (-x).exp()) / 2


def for_all(says, left, right, box, *, touch=(), too_high=(), too_low=()):
    """Prove left <= right for every point of `box`, and note it as `says` for the claims page.

    `box` maps names, as printed, to (low, high), in the order of the formulas' parameters. A side
    is a formula, or (function of the package, its formula): these two are compared at 500 points.
    `touch` lists the places where the sides meet in the first parameter, each as often as they
    have orders in common there. With a left side of `too_high`, or a right one of `too_low`, a
    counterexample must be found among the 500 points.
    """
    sides = [tuple(map(float, side)) for side in box.values()]
    left, right = (side if isinstance(side, tuple) else (None, side) for side in (left, right))
    pairs = [(high, right[1]) for high in too_high] + [(left[1], low) for low in too_low]
    assert pairs, "a check without a planted mistake shows nothing"
    with ctx.workdps(DIGITS):
        points = _points(sides)
        for function, formula in (left, right):
            if function is not None:
                exact = [float(_series(formula, point)[0]) for point in points]
                evidence.equal(function(*np.transpose(points)), exact, rtol=1e-11)
        prove(_difference(left[1], right[1]), sides, touch)
        for wrong in pairs:
            evidence.must_fail(_refute, _difference(*wrong), *points)
    evidence.proved(f"{says} for all {', '.join(map(_printed, box, sides))}")


def prove(f, sides, touch=()):
    """Prove f >= 0 on the box whose `sides` are (low, high); f touches 0 as `for_all` says."""
    _refute(f, *_points(sides))
    for place, order in Counter(touch).items():
        _check_contact(f, place, order, sides[1:])
    left = [tuple(sides)]
    for turn in range(PARTS):
        if not left:
            return
        left += _parts(f, left.pop(), sides, touch, turn % 2)
    raise Undecided(f"not within {PARTS} parts; the next is {left[-1]}")


def _parts(f, box, whole, touch, by_share=False):
    """[] if f >= 0 on the box is proved; else smaller boxes that are left to prove.

    What is cut is the side that matters most to first order, or the widest.
    """
    free = [i for i, (low, high) in enumerate(box) if low < high]
    middle = [_middle(*side) for side in box]
    balls = [arb(low).union(arb(high)) for low, high in box]
    if touch and 0 not in free and middle[0] in touch:
        return []
    value, slopes, steps = _series(f, balls)[0], {}, {}
    for i in free:
        value, slopes[i] = _series(f, balls, i, 2)
        steps[i] = balls[i] - middle[i]
    if value >= 0:
        return []
    onto = {i: box[i][slope <= 0] for i, slope in slopes.items() if slope >= 0 or slope <= 0}
    if onto:
        return [tuple((onto.get(i, low), onto.get(i, high)) for i, (low, high) in enumerate(box))]
    if len(free) == 1:
        [i] = free
        terms = _series(f, middle, i, TAYLOR) + _series(f, balls, i, TAYLOR + 1)[-1:]
        value = _polynomial(terms, steps[i])
    else:
        value = _series(f, middle)[0] + sum(slopes[i] * steps[i] for i in free)
    if value >= 0:
        return []
    _refute(f, middle)
    if 0 in free and _beyond_contact(f, box[0], whole[0], balls, touch):
        return []
    if not free:
        raise Undecided(f"neither sign can be told at {box}")
    effects = {i: float(slopes[i].abs_upper() * steps[i].abs_upper()) for i in free}
    if by_share or not all(map(isfinite, effects.values())):
        effects = {i: _share(*box[i], *whole[i]) for i in free}
    widest = max(free, key=effects.get)
    low, high = box[widest]
    halves = ((low, middle[widest]), (middle[widest], high))
    return [(*box[:widest], half, *box[widest + 1 :]) for half in halves]


def _beyond_contact(f, side, whole, balls, touch):
    """Whether f / (product of x - place) has the sign of that product, so that f >= 0.

    That quotient is a Taylor coefficient somewhere on the whole side; and about one place alone
    it is a Taylor polynomial, with the remainder's coefficient taken from there to the far end.
    """
    low, high = side
    orders = Counter(touch)
    if any(orders[place] % 2 for place in orders if low < place < high):
        return False
    for place, order in orders.items():
        if abs(2 * place - low - high) > 9 * (high - low):  # far off nothing is gained
            continue
        hull = [arb(min(low, place)).union(arb(max(high, place))), *balls[1:]]
        terms = _series(f, [arb(place), *balls[1:]], 0, TAYLOR)[order:]
        terms += _series(f, hull, 0, TAYLOR + 1)[-1:]
        if _polynomial(terms, balls[0] - place) * (-1) ** (order * (place > low)) >= 0:
            return True
    hull = [arb(whole[0]).union(arb(whole[1])), *balls[1:]]
    sign = (-1) ** sum(place > low for place in touch)
    return len(orders) > 1 and sign * _series(f, hull, 0, len(touch) + 1)[-1] >= 0


def _polynomial(terms, x):
    return reduce(lambda rest, term: term + x * rest, reversed(terms))


def _check_contact(f, place, order, others):
    """Refuse unless the first `order` terms of f at `place` vanish, at 20 points of the others.

    In rational arithmetic, so exactly; where f leaves the rational numbers, to 900 digits.
    """
    for n in range(1, 21 if others else 2):
        at = [fmpq(*(low + (high - low) * n / 21).as_integer_ratio()) for low, high in others]
        try:
            terms = f(fmpq_series([place, 1]), *(fmpq_series([x]) for x in at))
            zero = all(terms[n] == 0 for n in range(order))
        except (TypeError, ValueError):
            with ctx.workdps(1000):
                terms = _series(f, [arb(place), *map(arb, at)], 0, order)
                zero = all(term.abs_upper() < arb("1e-900") for term in terms)
        if not zero:
            raise Undecided(f"no contact of order {order} at {place}, {at}")


def _refute(f, *points):
    for point in points:
        if _series(f, point)[0] < 0:
            raise Counterexample(f"fails at {point}")


def _difference(left, right):
    return lambda *at: right(*at) - left(*at)


def _series(f, at, i=None, order=1):
    """The first terms of f as a power series in parameter i about `at`, numbers or balls."""
    try:
        terms = f(*(arb_series([x, 1][: 1 + (j == i)], order) for j, x in enumerate(at)))
    except ValueError:  # a quotient whose denominator may be 0
        return [arb.nan()] * order
    return [terms[n] for n in range(order)]


def _middle(low, high):
    """The middle; of the logarithms where the ends are far apart."""
    return float(np.float32(sqrt(low * high))) if 0 < 4 * low < high else (low + high) / 2


def _share(low, high, least, most):
    """How much of the whole side this is; of its logarithms where they are far apart."""
    if 0 < 4 * least < most:
        return log10(high / low) / log10(most / least)
    return (high - low) / (most - least)


def _points(sides, count=500):
    """The upper corner, and points inside, half of them even in logarithms."""
    rng = np.random.default_rng(0)
    share = rng.random((count, len(sides)))
    low, high = np.transpose(sides)
    even = low + share * (high - low)
    least = np.where(low > 0, low, np.where(high > 0, 1e-4 * high, 1))
    ratio = np.where((low >= 0) & (high > 0), np.abs(high) / least, 1)
    logs = np.where(low >= 0, least * ratio**share, even)
    return [[float(high) for _, high in sides], *even[::2].tolist(), *logs[1::2].tolist()]


def _printed(name, side):
    low, high = map(_number, side)
    return rf"${name} \in [{low}, {high}]$"


def _number(x):
    exponent = round(log10(abs(x))) if x else 0
    if abs(exponent) > 2 and abs(x) == float(f"1e{exponent}"):
        return rf"{'-' * (x < 0)}10^{{{exponent}}}"
    assert float(f"{x:g}") == x, f"a side ends at {x!r}, which is not what would be printed"
    return f"{x:g}"
