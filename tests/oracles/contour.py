"""delta(epsilon) as a Laplace inversion in ball arithmetic, on two lines that must agree.

M(z) = E exp(zL). For c > 0 the integral of M(z) exp(-ez) / (z (z+1)) over Re z = c is
2 pi i E(1 - exp(e-L))_+; for -1 < c < 0 it is -2 pi i E min(1, exp(e-L)). The trapezoid rule's
aliases and the cut are bounded only roughly: the error reported is the difference of two lines with
other abscissas, periods and nodes, which would have to be wrong by the same amount.
"""

from functools import lru_cache
from math import ceil, exp, frexp, inf, log, log1p, pi, sqrt

import numpy as np
from flint import acb, arb
from scipy.optimize import minimize_scalar

from .laws import ONE, ZERO, TooLongError, finite_losses

NATS = 60.0  # what is left out is exp(-NATS) of the answer
MOST_NODES, MOST_WORK = 3000, 3e6


class Moments:
    """E exp(zL; L finite) of parts in one way: in doubles at real z, as balls along a line."""

    def __init__(self, parts, way):
        self.parts, self.way, self.known = parts, way, {}
        if any(p.rate < 1 and (p.swapped or p.kind == "laplace") for p in parts):
            raise TooLongError  # atoms, and only a slow decay of what lies between
        self.losses = {p: finite_losses(p, way) for p in parts if p.counted}
        self.kept = ONE
        for part, (_, infinite) in self.losses.items():
            self.kept *= (1 - infinite) ** part.k

    def real(self, c):
        """log E exp(cL) in doubles; inf where that takes too many nodes."""
        if c not in self.known:
            try:
                self.known[c] = sum(part.k * self._real(part, c) for part in self.parts)
            except TooLongError:
                self.known[c] = inf
        return self.known[c]

    def _real(self, part, c):
        if part.kind == "gaussian" and part.rate < 1:
            x, log_g, _ = self.nodes(part, c, 0.0, 1.0)
            terms = -0.5 * (x / part.value[0]) ** 2 + self.power(c) * log_g
            step = (x[1] - x[0]) / part.value[0] / sqrt(2 * pi)
            return float(np.logaddexp.reduce(terms)) + log(step)
        return float(self.at(part, arb(c)).real.log())

    def bend(self, c):
        """The second derivative of the logarithm."""
        d = 1e-3 * min(abs(c), 1 + c)
        return (self.real(c - d) - 2 * self.real(c) + self.real(c + d)) / d**2

    def power(self, z):
        return z + 1 if self.way > 0 else -z

    def at(self, part, z):
        """The moment of one part with a closed form."""
        z = acb(z)
        if part.counted:
            return sum((p * (z * loss).exp() for loss, p in self.losses[part][0]), acb(0))
        unit = 1 / arb(part.value[0])
        if part.kind == "gaussian":
            return (z * (z + 1) * unit**2 / 2).exp()
        if (1 + 2 * z).contains(0):
            z += acb(arb(2) ** -100)
        both = (unit * z).exp() * (1 + z) + (-unit * (1 + z)).exp() * z
        return both / (1 + 2 * z)

    def nodes(self, part, c, height, finer):
        """(x, log G(x), step) of the trapezoid rule for E_q G^n, G the ratio of the mixture to q,
        up to this height of the line."""
        sigma, n = part.value[0], self.power(c)
        widest = sigma * sqrt(2 * 75.0)
        step = finer * min(
            2 * pi**2 * sigma**2 / 90, 2 * pi / (1.2 * height / sigma**2 + 13 / sigma)
        )
        unit = 2.0 ** (5 - frexp(step)[1])
        step = round(step * unit) / unit  # so x is exact
        first, last = min(0.0, n) - widest, max(1.0, n) + widest
        if (last - first) / step > 20_000:
            raise TooLongError
        x = step * np.arange(ceil(first / step), ceil(last / step))
        log_g = np.logaddexp(log1p(-part.rate), log(part.rate) + (x - 0.5) / sigma**2)
        weight = -0.5 * (x / sigma) ** 2 + n * log_g
        loud = np.flatnonzero(weight > weight.max() - 75.0)
        inside = slice(loud[0], loud[-1] + 1)
        return x[inside], log_g[inside], step

    def column(self, part, c, h, height, finer):
        """The moment of a sampled Gaussian at c + i h m, m = 0, 1, ...; of other parts too."""
        if part.kind != "gaussian" or part.rate == 1:
            m = 0
            while True:
                yield self.at(part, acb(c, h * m))
                m += 1
        x, _, step = self.nodes(part, c, height, finer)
        if len(x) * height / float(h) > MOST_WORK:
            raise TooLongError
        sigma, rate, n = arb(part.value[0]), arb(part.rate), self.power(arb(c))
        front = arb(step) / sigma / (2 * arb.pi()).sqrt()
        balls = [arb(each) for each in x.tolist()]
        logs = [(1 + rate * (((t - 0.5) / sigma**2).exp() - 1)).log() for t in balls]
        row = [
            acb(front * (n * g - (t / sigma) ** 2 / 2).exp())
            for t, g in zip(balls, logs, strict=True)
        ]
        turns = [acb(0, g * (h if self.way > 0 else -h)).exp() for g in logs]
        while True:
            yield sum(row, acb(0))
            row = [(a * b).mid() for a, b in zip(row, turns, strict=True)]  # balls would blow up


class Line:
    """The terms of the trapezoid sum on one line, without exp(-ez)."""

    def __init__(self, moments, side, c, period, e, log_tail, finer):
        self.side, self.kept, self.h = side, moments.kept, 2 * arb.pi() / arb(period)
        height = 1.3 * sqrt(2 * NATS / max(moments.bend(c), 1e-300)) + 3 * abs(c)
        rough = sum(p.k * moments._real(p, c) for p in moments.parts if p.counted)
        for _ in range(7):
            if height / float(self.h) > 4 * MOST_NODES:
                raise TooLongError
            if self._fill(moments, arb(c), height, finer, rough, log_tail + c * e - NATS):
                return
            height *= 2.5
        raise TooLongError

    def _fill(self, moments, c, height, finer, rough, enough):
        """All terms until they are negligible; False if that is beyond this height."""
        columns = [(p, moments.column(p, float(c), self.h, height, finer)) for p in moments.parts]
        self.terms, quiet = [], 0
        while len(self.terms) * float(self.h) < height:
            z, value, smooth = acb(c, self.h * len(self.terms)), acb(1), acb(1)
            for part, column in columns:
                one = next(column) ** part.k
                value *= one
                smooth *= 1 if part.counted else one
            self.terms.append((z, value / (z * (z + 1)) / (1 if self.terms else 2)))
            loud = float(smooth.abs_upper().log()) + rough - log(max(float(z.imag), 1e-300))
            quiet = quiet + 1 if loud < enough else 0
            if quiet > max(16, len(self.terms) // 5):
                return True
            if len(self.terms) > MOST_NODES:
                raise TooLongError
        return False

    def at(self, e):
        total = sum((term * (-z * e).exp() for z, term in self.terms), acb(0)).real
        tail = self.side * total * self.h / arb.pi()
        return 1 - self.kept + tail if self.side > 0 else 1 - tail


def saddle(moments, side, e):
    """(c, the logarithm there) where exp(K(c) - ce)/|c(c+1)| is least."""

    def place(t):
        return exp(t) if side > 0 else -1 / (1 + exp(t))

    def value(t):
        c = place(t)
        size = moments.real(c) - c * e - log(abs(c)) - log1p(c) if -1 < c < 1e6 else inf
        return min(size, 1e300)  # SciPy subtracts values

    starts = np.linspace(-14, 12, 27)
    best = min(starts, key=value)
    least = minimize_scalar(value, bounds=(best - 1, best + 1), method="bounded")
    return place(least.x), float(least.fun)


def lines(moments, side, c, e, log_tail):
    """[(period, abscissa)], the shortest first: by Chernoff's bounds at other abscissas the aliases
    are below exp(-NATS) of the answer; the terms are at most exp(40) times those at the saddle."""
    steps = np.concatenate([np.geomspace(0.05, 0.8, 6), [1.0], np.geomspace(1.2, 6.0, 6)])
    table = c * steps if side > 0 else -1 / (1 + (-1 / c - 1) / steps)
    value = np.array([moments.real(x) for x in table.tolist()])
    ends = [0.0] if side > 0 else [-1.0, 0.0]
    rivals = np.concatenate([ends, table])
    need = np.concatenate([np.zeros(len(ends)), value]) - rivals * e - log_tail + NATS
    gap = rivals[None, :] - table[:, None]
    with np.errstate(divide="ignore"):
        period = np.maximum(need, 1.0)[None, :] / np.abs(gap)
    above, below = (np.where(side, period, inf).min(axis=1) for side in (gap > 0, gap < 0))
    size = value - table * e - np.log(np.abs(table)) - np.log1p(table)
    period = np.where(size < size.min() + 40, np.maximum(above, below), inf)
    order = np.argsort(period)[:2].tolist()
    return [(float(period[i]), float(table[i])) for i in order]


@lru_cache(maxsize=64)
def _lines(parts, way, e):
    moments = Moments(parts, way)
    mean = (moments.real(1e-4) - moments.real(0.0)) / 1e-4
    side = 1 if e >= mean else -1
    c, log_tail = saddle(moments, side, e)
    bend = moments.bend(c) + 1 / c**2 + 1 / (1 + c) ** 2
    log_tail -= 0.5 * log(2 * pi * max(bend, 1e-300)) + 3
    (one, c), (two, other) = lines(moments, side, c, e, log_tail)
    if not max(one, two) < inf:
        raise TooLongError
    return (
        Line(moments, side, c, one, e, log_tail, 1.0),
        Line(moments, side, other, 1.13 * two, e, log_tail, 0.81),
    )


def contour_delta(parts, way, e, near=None):
    """A ball of delta in one way; the lines drawn for `near` serve its neighbours."""
    first, second = (line.at(e) for line in _lines(parts, way, float(near or e)))
    gap = abs(first - second).upper()
    return arb(first.mid(), (first.rad() + 4 * gap).upper()) + ZERO
