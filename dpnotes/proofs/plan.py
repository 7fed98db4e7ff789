"""Chooses the line of a proof in floating point. Nothing here needs to be right: what it finds is
proved by ``checker``, or not.

The tilt c is the saddle point, or left of it where that costs less. The period makes what aliases
add a small part of the room that there is; what is left of a left alias belongs to the other
direction (X-left-aliases). The height is that from which the lifted sums are as small.
"""

from dataclasses import dataclass
from math import ceil, inf, log, log1p, pi, sqrt

import numpy as np

from .checker import Line
from .sampled import ANGLES, Unproved, surely

LIFTS = np.array([1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1, 1.2, 1.4])
MOST, CHEAP = 2e8, 3e4  # products of a line: more are not tried; so few are as good as none
FARTHEST = 4e5  # the widest window of outcomes, in standard deviations
TILTS = np.geomspace(0.05, 2e6, 50)
PARTS = (1.0, 0.93, 0.85, 0.75, 0.65, 0.5, 0.35, 0.2, 0.1, 0.05, 0.02, 0.01)  # of the saddle point


class Far(Unproved):
    """This line would be too long."""


def chernoff(c):
    return c * log(c) - (c + 1) * log(c + 1)


@dataclass
class Kind:
    """A kind of sampled Gaussian step, in one direction."""

    sigma: float
    rate: float
    times: int
    way: int

    def power(self, c):
        return 1 + c if self.way > 0 else -c

    def terms(self, c):
        """Outcomes, the losses of w, and log of the terms of M(c)."""
        n, s, r = self.power(c), self.sigma, self.rate
        low = 0.0 if n >= 0 else max(n, -s * s * np.log1p(-n * r / (s * s * (1 - r))))
        low, high = low - 12 * s, max(1.0, n) + 12 * s
        if (high - low) / s > FARTHEST:
            raise Far("the tilt is too large")
        x = np.linspace(low, high, int(max(12 * (high - low) / s, 400)))
        u = (x - 0.5) / s**2
        loss = np.logaddexp(np.log1p(-r), log(r) + u)
        unit = log((x[1] - x[0]) / (s * sqrt(2 * pi)))
        return u, loss, n * loss - 0.5 * (x / s) ** 2 + unit

    def spacing(self, c, y, need):
        """That at which jumps-quadrature bounds the error by e^-need."""
        n, s = self.power(c), self.sigma
        most = 0.0
        for a in ANGLES:
            more = 0.0 if n >= 0 else n * log(np.cos(a / 2))
            most = max(most, 2 * pi * s**2 * a / ((s * a) ** 2 / 2 + y * a + need + more))
        return float(most)

    def lifts(self, c):
        """A function of a height: log of the lifted sums at all angles."""
        u, loss, terms = self.terms(c)
        share, angle = np.exp(log(self.rate) + u - loss), LIFTS[:, None]
        turned = np.log1p(-4 * np.sin(angle / 2) ** 2 * share * (1 - share))
        body = terms + self.power(c) / 2 * turned + (self.sigma * angle) ** 2 / 2
        phase = np.arctan2(share * np.sin(angle), 1 - share * (1 - np.cos(angle)))
        return lambda y: self.times * np.logaddexp.reduce(body - y * phase, axis=1)


class Plan:
    """What is planned in one direction of a run; ``room`` is how much of delta may be added."""

    def __init__(self, run, epsilon, delta, room):
        """``run`` is that of the checker, whose balls are taken as numbers."""
        self.kinds = [Kind(float(s), float(r), k, run.way) for s, r, k in run.sampled]
        self.square = float(run.square)
        self.laplace = [(float(a), k) for a, k in run.laplace]
        self.laws = [(np.array([[float(x) for x in one] for one in law]), k)
                     for (law, _), k in run.laws]  # fmt: skip
        self.epsilon, self.delta = epsilon, delta - float(run.infinite)  # of finite losses
        surely(self.delta > 0, "losses are infinite with a probability of delta or more")
        self.goal = log(delta) + log(0.1 * room)
        self.known = {}

    def cumulant(self, c):
        """K(c) of all steps."""
        if c not in self.known:
            value = self.square * c * (c + 1) / 2
            value += sum(x.times * np.logaddexp.reduce(x.terms(c)[2]) for x in self.kinds)
            for a, k in self.laplace:
                far = abs(c + 0.5)
                small = np.exp(-2 * far * a)
                inner = (1 - small) / (4 * far) if far else a / 2
                value += k * (far * a - a / 2 + np.log((1 + small) / 2 + inner))
            value += sum(
                k * np.logaddexp.reduce(np.log(x[:, 1]) + c * x[:, 0]) for x, k in self.laws
            )
            self.known[c] = float(value)
        return self.known[c]

    def alias(self, a):
        """log of the factor of e^(-abs(c-a) period) in the bound on an alias; left of -1 it is
        that of the other direction."""
        return self.cumulant(a) + chernoff(max(a, -1 - a)) - a * self.epsilon

    def height_of_integrand(self, c):
        return self.cumulant(c) - c * self.epsilon - log(c * (c + 1))

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
        for a in np.geomspace(0.3, 1e5, 20):
            try:
                other = (self.alias(-1 - a) - self.goal) / (c + 1 + a)
            except Far:
                break
            own = min(own, max(other, self.epsilon))
        return float(max(own, right))

    def line(self, c, most):
        """The line at this tilt, and its cost; or Far."""
        period, lifts = self.period(c), [kind.lifts(c) for kind in self.kinds]
        smooth = self.cumulant(c) - sum(
            x.times * np.logaddexp.reduce(x.terms(c)[2]) for x in self.kinds
        )

        def cut(y):
            if not self.kinds and not self.square:
                return self.ends_alone(c, y), 1.0
            sizes = sum((lift(y) for lift in lifts), np.zeros(len(LIFTS)))
            sizes = sizes + smooth - self.square * y * y / 2 - c * self.epsilon - log(pi * y)
            return float(sizes.min()), float(LIFTS[sizes.argmin()])

        def cost(y):
            widths = [(max(x.power(c), 1.0) + 20 * x.sigma) / d
                      for x, d in zip(self.kinds, self.inside(c, y)[0], strict=True)]  # fmt: skip
            return y * period / 6 * (1 + sum(widths))

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
        spacings, bits = self.inside(c, y)
        return Line(c, period, count, cut(y)[1], bits, spacings), cost(y)

    def ends_alone(self, c, y):
        """log of the cut of X-proof-atoms."""
        rounds = sum(k for _, k in self.laplace)
        ends = sum(k * (np.logaddexp(c * a, -(1 + c) * a) - log(2)) for a, k in self.laplace)
        ends += sum(k * np.logaddexp.reduce(np.log(x[:, 1]) + c * x[:, 0]) for x, k in self.laws)
        power = rounds * log1p(1 / (2 * y))
        return float(ends + power + log(-np.expm1(-power) / (2 * pi * y)) - c * self.epsilon)

    def inside(self, c, y):
        """Spacings of outcomes for heights up to y, and bits."""
        excess = self.cumulant(c) - c * self.epsilon
        spacings, needs = [], [max(excess - self.goal, 0.0)]
        for x in self.kinds:
            one = np.logaddexp.reduce(x.terms(c)[2])
            needs.append(needs[0] + log(4 * x.times * len(self.kinds)) + 3)
            spacings.append(x.spacing(c, y, needs[-1]))
            left = x.power(c) * np.log1p(-x.rate) - one if x.way < 0 else 0.0
            needs[-1] += max(-one, left, 0.0)
        bits = 80 + ceil(1.45 * (max(needs) + max(excess - log(self.delta), 0.0)))
        return tuple(spacings), bits

    def best(self):
        """The cheapest line that was found."""
        saddle = self.saddle()
        if self.alias(saddle) < log(self.delta) - 0.01:  # Chernoff's bound will do
            self.goal = log(self.delta) - 15
            spacings, bits = self.inside(saddle, 0.0)
            return Line(saddle, 1.0, 0, 1.0, bits, spacings)
        found, price, why = None, MOST, Far("no line was found")
        for part in PARTS:
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
        return found
