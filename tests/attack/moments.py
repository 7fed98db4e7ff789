"""E exp(zL; L finite) of a composition: in doubles at real z, to find a line, and in ball
arithmetic at equally spaced points of that line.

A sampled step is E_q G^n with n = z+1 (the person's law first) or -z, G the ratio of the mixture
to q; its quadrature nodes are few-digit dyadic numbers, so they are exact in both.
"""

from functools import lru_cache
from itertools import pairwise
from math import erf, expm1, log, pi, sqrt

import numpy as np
from flint import acb, acb_mat, arb, ctx

from .mechanisms import finite_law
from .nodes import (
    DIGITS,
    gaussian_nodes,
    laplace_edges,
    laplace_nodes,
    log_ratio,
    log_sum,
    swapped_edges,
    swapped_nodes,
)
from .quadrature import TooLongError, rule

__all__ = ["Moments", "moments"]


@lru_cache(maxsize=16)
def moments(parts, way):
    """The Moments of these parts, with what they have computed so far."""
    return Moments(parts, way)


class Moments:
    """The transform of parts in one direction."""

    def __init__(self, parts, way):
        self.parts, self.way, self._known = parts, way, {}
        self.laws = {part: finite_law(part, way) for part in parts if part.counted}

    def widen(self, part, c):
        """As many outcomes of integer noise as E exp(cL) needs."""
        if part.kind == "discrete_gaussian":
            self.laws[part] = finite_law(part, self.way, int((abs(c) + 1) * part.sensitivity))

    def kept(self):
        """P(L finite)."""
        total = arb(1)
        for part, law in self.laws.items():
            if any(p > 0 and q == 0 for p, q in law):
                total *= sum((p for p, q in law if q > 0), arb(0)) ** part.k
        return total

    def widest(self, part):
        """The size of its largest finite loss, or of a deviation of it."""
        if part.counted:
            logs = [abs(_float_log(p / q)) for p, q in self.laws[part] if p > 0 < q]
            return max(logs, default=1.0) or 1.0
        return part.rate / part.value[0]

    def log_real(self, c):
        """log E exp(cL) in doubles."""
        if c not in self._known:
            self._known[c] = sum(part.k * self._log_real(part, c) for part in self.parts)
        return self._known[c]

    def _log_real(self, part, c):
        if part.counted:
            logs = [_float_log(p) + c * _float_log(p / q) for p, q in self.laws[part] if p > 0 < q]
            return log_sum(np.array(logs))
        if part.plain_gaussian:
            return c * (c + 1) / part.value[0] ** 2 / 2
        if part.plain_laplace:
            return float(_laplace(1 / arb(part.value[0]), arb(c)).log())
        if part.swapped:
            u, log_w = swapped_nodes(part, c)
            log_g = log_ratio(u, part.rate)
            sides = log_w + (1 + c) * log_g, log_w - c * log_g
            return log_sum(np.concatenate([*sides, [self.log_rest(part)]]))
        log_g, log_w = self._coarse(part, c)
        return log_sum(log_w + self._power(c) * log_g)

    def smooth(self, part, c):
        """Whether its transform decays far enough."""
        if not part.swapped:
            return part.kind == "gaussian"
        return (
            part.kind == "gaussian"
            and part.k * (self.log_rest(part) - self._log_real(part, c)) < -120
        )

    @staticmethod
    def log_rest(part):
        """log of the probability of the loss 0 under substitution, (1 - rate)(1 - 2 Q(u > 0))."""
        unit = 1 / part.value[0]
        equal = -expm1(-unit / 2) if part.kind == "laplace" else erf(unit / sqrt(8))
        return log(1 - part.rate) + log(equal)

    def _power(self, c):
        return c + 1 if self.way > 0 else -c

    def _coarse(self, part, c):
        if part.kind == "laplace":
            u, w = laplace_nodes(1 / part.value[0], abs(self._power(c)), 2.0)
            end = 1 / part.value[0]
            log_w = np.log(w / 4) - (u + end) / 2
            u = np.concatenate([u, [-end, end]])
            log_w = np.concatenate([log_w, [log(0.5), log(0.5) - end]])
            return log_ratio(u, part.rate), log_w
        x, log_g, h = gaussian_nodes(part, self._power(c), 0.0, 40.0)
        sigma = part.value[0]
        return log_g, -0.5 * (x / sigma) ** 2 + log(h / sigma / sqrt(2 * pi))

    def loudness(self, c, y):
        """log abs of the Gaussian parts at c + iy for each of a few y, in doubles; -inf where
        round-off hides it, or where it needs too many nodes."""
        total = np.zeros(len(y))
        for part in self.parts:
            if part.kind == "gaussian":
                total += part.k * self._loudness(part, c, y)
        return total

    def _loudness(self, part, c, y):
        if part.swapped:
            return np.full(len(y), -np.inf)
        if part.rate == 1:
            return (c * (c + 1) - y * y) / part.value[0] ** 2 / 2
        try:
            x, log_g, h = gaussian_nodes(part, self._power(c), float(y.max()), 40.0)
        except TooLongError:
            return np.full(len(y), -np.inf)
        if len(x) > 20_000:
            return np.full(len(y), -np.inf)
        log_w = -0.5 * (x / part.value[0]) ** 2 + log(h / part.value[0] / sqrt(2 * pi))
        log_w += self._power(c) * log_g
        top = log_w.max()
        found = np.abs(np.exp(1j * np.multiply.outer(y, log_g)) @ np.exp(log_w - top))
        seen = found > 1e-11 * np.exp(log_w - top).sum()
        return np.where(seen, top + np.log(np.where(seen, found, 1.0)), -np.inf)

    # ---------------------------------------------------------------- balls on the line

    def on_line(self, c, h, height):
        """A generator of blocks of the transform at c + i h m, m = 0, 1, 2, ...; each sampled
        step's nodes serve up to this height."""
        sources = [self._source(part, c, h, height) for part in self.parts]
        m = 0
        while True:
            zs = [acb(c, h * arb(m + i)) for i in range(BLOCK)]
            columns = [next(source) if source else None for source in sources]
            block = []
            for i, z in enumerate(zs):
                value, smooth = acb(1), acb(1)
                for part, column in zip(self.parts, columns, strict=True):
                    one = (column[i] if column else self._closed(part, z)) ** part.k
                    value *= one
                    smooth *= one if self.smooth(part, float(c)) else 1
                block.append((z, value, smooth))
            yield block
            m += BLOCK

    def log_ceiling(self, c):
        """A bound on the logarithm of the finite and Laplace parts at any c + iy as a function of
        y: atoms do not decay, what lies between does as 1/y, by one integration by parts."""
        bounds = [(part.k, *self._atoms_and_rest(part, c)) for part in self.parts]

        def bound(y):
            return sum(k * min(whole, np.logaddexp(a, b - log(y))) for k, whole, a, b in bounds)

        return bound

    def _atoms_and_rest(self, part, c):
        if self.smooth(part, c):
            return 0.0, 0.0, -np.inf
        whole = self._log_real(part, c)
        if part.counted:
            return whole, whole, -np.inf
        if part.swapped:  # an atom at 0, Laplace's at both ends, and the variation of the rest
            return whole, *self._swapped_atoms(part, c)
        a, n = 1 / part.value[0], self._power(c)
        u = np.linspace(-a, a, 4001)
        log_g = log_ratio(u, part.rate) if part.rate < 1 else u
        ends = np.logaddexp(n * log_g[0], n * log_g[-1] - a) - log(2)
        g = -(u + a) / 2 - log(4) + (n + 1) * log_g - u - log(part.rate)
        top = g.max()
        rest = np.exp(g - top)
        return whole, ends, top + log(1.05 * (np.abs(np.diff(rest)).sum() + rest[0] + rest[-1]))

    def _swapped_atoms(self, part, c):
        u, log_w = swapped_nodes(part, c)
        log_g, unit = log_ratio(u, part.rate), 1 / part.value[0]
        atoms = self.log_rest(part)
        log_f = -((unit / 2 + u / unit) ** 2) / 2 - log(unit * sqrt(2 * pi))
        if part.kind == "laplace":
            both = log_w[-1] + np.array([1 + c, -c]) * log_g[-1]
            atoms, log_f = log_sum(np.array([atoms, *both])), -(u + unit) / 2 - log(4)
        log_f = log_f + log_g - u - log(part.rate)  # by the loss
        log_f = np.concatenate([log_f - c * log_g, log_f + (1 + c) * log_g])
        top = log_f.max()
        rest = np.exp(log_f - top)
        return atoms, top + log(1.1 * np.abs(np.diff(rest)).sum() + 4.0)

    def _closed(self, part, z):
        if part.plain_gaussian:
            return (z * (z + 1) / arb(part.value[0]) ** 2 / 2).exp()
        if part.plain_laplace:
            return _laplace(1 / arb(part.value[0]), z)
        return sum((p * ((p / q).log() * z).exp() for p, q in self.laws[part] if p > 0 < q), acb(0))

    def _source(self, part, c, h, height):
        if part.counted or part.rate == 1:
            return None
        rate, n = arb(part.rate), self._power(arb(c))
        if part.swapped:
            return self._swapped(part, c, h, height)
        if part.kind == "laplace":
            end = 1 / arb(part.value[0])
            edges = laplace_edges(1 / part.value[0], abs(float(n)) + height, 14.0)
            if len(edges) > 600:
                raise TooLongError
            edges = [-end, *map(arb, edges[1:-1]), end]
            us, ws = [-end, end], [arb(0.5), (-end).exp() / 2]
            for a, b in zip(edges, edges[1:], strict=False):
                for x, w in rule(40, ctx.prec):
                    us.append((a + b) / 2 + (b - a) / 2 * x)
                    ws.append((b - a) / 8 * w * (-(us[-1] + end) / 2).exp())
        else:
            sigma = arb(part.value[0])
            xs, _, step = gaussian_nodes(part, float(n), height, DIGITS)
            if len(xs) > 20_000:
                raise TooLongError
            us = [(arb(x) - arb(0.5)) / sigma**2 for x in xs.tolist()]
            front = arb(step) / sigma / (2 * arb.pi()).sqrt()
            ws = [front * (-((arb(x) / sigma) ** 2) / 2).exp() for x in xs.tolist()]
        if len(us) * height / float(h) > MOST_WORK:
            raise TooLongError
        logs = [(1 + rate * (u.exp() - 1)).log() for u in us]
        weights = [w * (n * g).exp() for w, g in zip(ws, logs, strict=True)]
        turn = h if self.way > 0 else -h
        return _powers(weights, [acb(0, g * turn).exp() for g in logs])

    def _swapped(self, part, c, h, height):
        """Both signs of u > 0, and the rest."""
        unit, rate, c = 1 / arb(part.value[0]), arb(part.rate), arb(c)
        us, ws = [], []
        edges = [arb(x) for x in swapped_edges(part, float(c), height, 14.0, 600)]
        if part.kind == "laplace":
            edges[-1] = unit
        for a, b in pairwise(edges):
            for x, w in rule(40, ctx.prec):
                us.append((a + b) / 2 + (b - a) / 2 * x)
                ws.append((b - a) / 2 * w)
        if len(us) * height / float(h) > MOST_WORK:
            raise TooLongError
        if part.kind == "laplace":
            ws = [w * (-(u + unit) / 2).exp() / 4 for u, w in zip(us, ws, strict=True)]
            us, ws = [*us, unit], [*ws, (-unit).exp() / 2]
            rest = (1 - rate) * (1 - (-unit / 2).exp())
        else:
            front = 1 / unit / (2 * arb.pi()).sqrt()
            xs = [unit / 2 + u / unit for u in us]
            ws = [w * front * (-x * x / 2).exp() for x, w in zip(xs, ws, strict=True)]
            rest = (1 - rate) * (unit / arb(8).sqrt()).erf()
        logs = [(1 + rate * (u.exp() - 1)).log() for u in us]
        logs = [*logs, *(-g for g in logs), arb(0)]
        n = len(us)
        weights = [w * ((1 + c) * g).exp() for w, g in zip(ws, logs[:n], strict=True)]
        weights += [w * (c * g).exp() for w, g in zip(ws, logs[n:-1], strict=True)]
        return _powers([*weights, rest], [acb(0, g * h).exp() for g in logs])


BLOCK, MOST_WORK = 16, 4e6


def _powers(weights, turns):
    """Blocks of sum_i weight_i turn_i^m."""
    columns, column = [], [acb(1)] * len(turns)
    for _ in range(BLOCK):
        columns.append(column)
        column = [a * b for a, b in zip(column, turns, strict=True)]
    table = acb_mat(
        len(turns), BLOCK, [columns[j][i] for i in range(len(turns)) for j in range(BLOCK)]
    )
    row = [acb(w) for w in weights]
    while True:
        out = acb_mat(1, len(row), row) * table
        yield [out[0, j] for j in range(BLOCK)]
        row = [a * b for a, b in zip(row, column, strict=True)]


def _laplace(a, z):
    """Of plain Laplace noise; the removable point z = -1/2 is not met."""
    return ((a * z).exp() * (1 + z) + (-a * (1 + z)).exp() * z) / (1 + 2 * z)


def _float_log(x):
    return float(x.log())
