"""Chooses the line of a proof in floating point. Nothing here needs to be right: what it finds is
proved by ``checker``, or not.

The tilt c is the saddle point, or left of it where that costs less. The period makes what aliases
add a small part of the room that there is; what is left of a left alias belongs to the other
direction (X-left-aliases). The height is that from which the lifted sums are as small. Where a line
would be long, bands of outcomes get a line each.
"""

from copy import copy
from dataclasses import replace
from math import ceil, inf, log, log1p, pi

import numpy as np

from .checker import Line
from .kind import LIFTS, Far, Kind, Swapped, total
from .sampled import surely

MOST, CHEAP = 2e8, 3e4  # products of a line: more are not tried; so few are as good as none
DEAR = 2e6  # from when on bands are tried
SOFT, APART, PART = 0.07, 4.0, 0.7  # of cuts in units of sigma^2, ratio of losses, of the saddle
TILTS = np.geomspace(0.05, 2e6, 50)
PARTS = (1.0, 0.1, 0.05, 0.35)  # of the saddle point; left of it balls lose no digits


def chernoff(c):
    return c * log(c) - (c + 1) * log(c + 1)


class Plan:
    """What is planned in one direction of a run; ``room`` is how much of delta may be added."""

    def __init__(self, run, epsilon, delta, room):
        """``run`` is that of the checker, whose balls are taken as numbers."""
        self.kinds: list = [Kind(float(s), float(r), k, run.way) for s, r, k in run.sampled]
        self.kinds += [Swapped(float(s), float(r), k) for s, r, k in run.replaced]
        self.square = float(run.square)
        self.laplace = [(float(a), k) for a, k in run.laplace]
        self.laws = [(np.array([[float(x) for x in one] for one in law]), k)
                     for (law, _), k in run.laws]  # fmt: skip
        self.epsilon, self.delta = epsilon, delta - float(run.infinite)  # of finite losses
        surely(self.delta > 0, "losses are infinite with a probability of delta or more")
        self.goal = log(delta) + log(0.1 * room)
        self.known, self.enough = {}, log(self.delta) - 0.01  # for which Chernoff's bound will do

    def cumulant(self, c):
        """K(c) of all steps; of a band, log of the difference."""
        if c not in self.known:
            value = self.rest(c) + sum(x.times * x.real(c) for x in self.kinds)
            if self.ends():
                lost = sum(x.times * np.log1p(-min(np.exp(x.part(c)), 0.999)) for x in self.kinds)
                value += np.log(-np.expm1(min(lost, -1e-300)))
            self.known[c] = float(value)
        return self.known[c]

    def ends(self):
        return any(kind.below for kind in self.kinds)

    def rest(self, c):
        """K(c) of all that is not sampled."""
        value = self.square * c * (c + 1) / 2
        for a, k in self.laplace:
            far = abs(c + 0.5)
            small = np.exp(-2 * far * a)
            inner = (1 - small) / (4 * far) if far else a / 2
            value += k * (far * a - a / 2 + np.log((1 + small) / 2 + inner))
        return value + sum(k * total(np.log(x[:, 1]) + c * x[:, 0]) for x, k in self.laws)

    def fallen(self, lifts, y):
        """log of the bound on abs(M) of sampled steps from a height on, at all angles."""
        both, times = [lift(y) for lift in lifts], [kind.times for kind in self.kinds]
        whole = sum((k * m for k, (m, _) in zip(times, both, strict=True)), np.zeros(len(LIFTS)))
        if self.ends():
            shares = [log(k) + j - m for k, (m, j) in zip(times, both, strict=True)]
            whole = whole + np.logaddexp.reduce(shares, axis=0)
        return whole

    def alias(self, a):
        """log of the factor of e^(-abs(c-a) period) in the bound on an alias; left of -1 it is
        that of the other direction."""
        return self.cumulant(a) + chernoff(max(a, -1 - a)) - a * self.epsilon

    def height_of_integrand(self, c):
        return self.cumulant(c) - c * self.epsilon - log(c * (c + 1))

    def of(self, above, below):
        """The plan of a band; it has a part of the room."""
        one = copy(self)
        cuts = zip(self.kinds, above, below, strict=True)
        one.kinds = [replace(kind, above=a, below=b) for kind, a, b in cuts]
        one.known, one.goal = {}, self.goal - 2
        one.enough = one.goal
        return one

    def is_little(self):
        return self.alias(self.saddle()) < self.goal

    def saddle(self):
        heights = []
        for c in TILTS:
            try:
                heights.append(self.height_of_integrand(c))
            except Far:
                break
            if not heights[-1] <= min(heights) + 60:
                break
        if len(heights) < 2:
            raise Far("no tilt is served")
        at = int(np.nanargmin(heights))
        low, high = np.log(TILTS[[max(at - 1, 0), min(at + 1, len(heights) - 1)]])
        for _ in range(30):
            one, other = low + 0.382 * (high - low), low + 0.618 * (high - low)
            if self.height_of_integrand(np.exp(one)) < self.height_of_integrand(np.exp(other)):
                high = other
            else:
                low = one
        return float(np.exp((low + high) / 2))

    def period(self, c):
        """The shortest one: of a rival on either side, or of the other direction on the left."""
        own = min(
            (self.alias(f * c) - self.goal) / ((1 - f) * c) for f in np.linspace(0.02, 0.95, 24)
        )
        right = inf
        for f in np.geomspace(1.05, 20, 24):
            try:
                right = min(right, (self.alias(f * c) - self.goal) / ((f - 1) * c))
            except Far:
                break
        for a in () if any(kind.steep > 1 for kind in self.kinds) else np.geomspace(0.3, 1e5, 20):
            try:
                other = (self.alias(-1 - a) - self.goal) / (c + 1 + a)
            except Far:
                break
            own = min(own, max(other, self.epsilon))
        return float(max(own, right, 1 / c))

    def line(self, c, most):
        """The line at this tilt, and its cost; or Far."""
        period, lifts = self.period(c), [kind.lifts(c) for kind in self.kinds]
        rest = self.rest(c) - c * self.epsilon

        def cut(y):
            if not self.kinds and not self.square:
                return self.ends_alone(c, y), 1.0
            sizes = self.fallen(lifts, y) + rest - self.square * y * y / 2 - log(pi * y)
            return float(sizes.min()), float(LIFTS[sizes.argmin()])

        def cost(y):
            return y * period / 6 * (1 + self.inside(c, y)[2])

        low = y = 0.01
        while cut(y)[0] > self.goal:
            low, y = y, 1.5 * y
            if cost(y) > most:
                raise Far("few rounds of rare sampling, or atoms: the line would be too long")
        for _ in range(12):
            middle = (low + y) / 2
            low, y = (low, middle) if cut(middle)[0] <= self.goal else (middle, y)
        count = max(ceil(1.02 * y * period / (2 * pi)), 2)
        y = (count + 1) * 2 * pi / period
        angle = cut(y)[1]
        spacings, bits, _ = self.inside(c, y, angle)
        return Line(c, period, count, angle, bits, spacings), cost(y)

    def ends_alone(self, c, y):
        """log of the cut of X-proof-atoms."""
        rounds = sum(k for _, k in self.laplace)
        ends = sum(k * (np.logaddexp(c * a, -(1 + c) * a) - log(2)) for a, k in self.laplace)
        ends += sum(k * np.logaddexp.reduce(np.log(x[:, 1]) + c * x[:, 0]) for x, k in self.laws)
        power = rounds * log1p(1 / (2 * y))
        return float(ends + power + log(-np.expm1(-power) / (2 * pi * y)) - c * self.epsilon)

    def inside(self, c, y, angle=0.0):
        """Spacings of outcomes for heights up to y, bits for this lift, and how many outcomes."""
        excess = self.rest(c) + sum(x.times * x.real(c) for x in self.kinds) - c * self.epsilon
        spacings: list[float] = []
        many, needs = 0.0, [max(excess - self.goal, 0.0)]
        for x in self.kinds:
            one = x.real(c)
            near = 8 if self.ends() or x.above else 3  # what two bands share is counted twice
            needs.append(needs[0] + log(4 * x.times * len(self.kinds)) + near)
            spacing, more = x.spacing(c, y, needs[-1])
            spacings, many = [*spacings, spacing], many + more
            needs[-1] += max(-one, x.left(c), 0.0) + x.turned(c, angle)
        powers = log(1 + sum(k for _, k in self.laplace + self.laws))
        bits = 80 + ceil(1.45 * (max(needs) + powers + max(excess - log(self.delta), 0.0)))
        return tuple(spacings), bits, many

    def best(self, parts=PARTS, price=MOST):
        """The cheapest line that was found, and its cost."""
        saddle = self.saddle()
        if not self.ends() and self.alias(saddle) < self.enough:  # Chernoff's bound will do
            self.goal = log(self.delta) - 15
            spacings, bits, _ = self.inside(saddle, 0.0)
            return Line(saddle, 1.0, 0, 1.0, bits, spacings), 0.0
        found, why = None, Far("no line was found")
        for part in parts:
            try:
                line, cost = self.line(part * saddle, price)
            except Far as far:
                why = far
                continue
            if cost < price:
                found, price = line, cost
            if cost < CHEAP:
                break
        if found is None:
            raise why
        return found, price


def lines(run, epsilon, delta, room):
    """The lines of a direction: one, or one for each band where sampling is rare."""
    plan, found, price = Plan(run, epsilon, delta, room), None, MOST
    why = Far("no line was found")
    try:
        line, price = plan.best()
        found = [line]
    except Far as far:
        why = far
    if run.way > 0 and run.sampled and not run.replaced and epsilon > 0 and price > DEAR:
        found = bands(plan, price) or found
    if found is None:
        raise why
    return found


def bands(plan, price):
    """Lines for bands of outcomes, where they cost less: from losses far above epsilon down to
    those of which no number of rounds adds up to it."""
    ends, above, none = [], [()] * len(plan.kinds), [()] * len(plan.kinds)
    for loss in plan.epsilon * 8.0 / APART ** np.arange(9):
        below = [kind.cut(loss, SOFT) for kind in plan.kinds]
        try:
            if plan.of(above, below).is_little():
                continue
            line, cost = plan.of(above, below).best((PART,), price)
        except Far:
            return None
        ends.append(line._replace(cuts=tuple(below)))
        above, price = below, price - cost
        try:
            return [*ends, plan.of(above, none).best((PART,), min(price, CHEAP))[0]]
        except Far:
            continue
    return None
