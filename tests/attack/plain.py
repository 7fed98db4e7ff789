"""delta(epsilon) by Laplace inversion in doubles: what ball arithmetic has no time for, vast rounds
and schedules of hundreds of steps.

On a line through the saddle point, as in ``contours``. A step is an array of losses and weights
(its atoms, or nodes of quadrature), and log of its transform is summed about 1, so that k rounds
cost sqrt(k) units of round-off, not k. Where the line is cut, what is left is bounded: by the
variance, abs(phi(y))^2 <= 1 - (2 y/pi)^2 Var L while y (max L - min L) <= pi; by atoms and the
variation of a density; and by the factor 1/y^2, which all have. Two lines must agree.
"""

from functools import lru_cache
from math import ceil, exp, inf, log, pi, sqrt

import numpy as np
from flint import arb

from .contours import lines, saddle
from .moments import moments as moments_of
from .nodes import (
    gaussian_nodes,
    laplace_nodes,
    legendre,
    log_ratio,
    log_sum,
    near_one,
    spread,
    swapped_edges,
    turned_mean,
)
from .quadrature import TooLongError

__all__ = ["MANY", "plain_delta", "transform"]

EPS = 2.0**-52
NATS = 36.0
MOST_NODES, MOST_WORK = 20_000, 2e7
FEW_ROUNDS = 1000  # of one step, for which absolute accuracy does
MANY = 8  # sampled Gaussians, from which on the choice of a line looks at all together
FURTHER = 12  # times the height of a line, up to which its transform is looked at
LOOSE = 0.02  # of an answer that is worth nothing


class Plain:
    """The transform of a composition in one direction."""

    def __init__(self, parts, way):
        self.parts, self.way = parts, way
        self.moments = moments_of(tuple(p for p in parts if p.counted), way)
        self._known, self._rough = {}, {}
        kind = [p for p in parts if p.kind == "gaussian" and p.rate < 1 and not p.swapped]
        self.many = set(kind)
        self._columns = list(zip(*((p.value[0], p.rate, float(p.k)) for p in kind), strict=True))

    def kept(self):
        return self.moments.kept()

    @lru_cache(maxsize=2048)  # noqa: B019
    def law(self, part, c, height):
        """(losses, log p) that serve exp(zL) for Re z = c and abs(Im z) <= height."""
        if part.counted:
            pairs = [(p, q) for p, q in self.moments.laws[part] if p > 0 < q]
            both = [(float((p / q).log()), float(p.log())) for p, q in pairs]
            return tuple(np.array(column) for column in zip(*both, strict=True))
        if part.swapped:
            return self._swapped(part, c, height)
        power, unit = c + 1 if self.way > 0 else -c, 1 / part.value[0]
        if part.kind == "laplace":
            x, w = laplace_nodes(unit, abs(power) + height, 4.0)
            log_q = np.concatenate([np.log(w / 4) - (x + unit) / 2, [log(0.5), log(0.5) - unit]])
            x = np.concatenate([x, [-unit, unit]])
            log_g = log_ratio(x, part.rate) if part.rate < 1 else x
        else:
            x, log_g, h = gaussian_nodes(part, power, height, 42.0 + log(part.k))
            log_q = -0.5 * (x * unit) ** 2 + log(h * unit / sqrt(2 * pi))
        if self.way > 0:
            return log_g, log_q + log_g
        return -log_g, log_q

    def _swapped(self, part, c, height):
        x, w = legendre(12)
        edges = np.array(swapped_edges(part, c, height, 4.0, 20_000))
        half, unit = np.diff(edges)[:, None] / 2, 1 / part.value[0]
        u, log_w = (edges[:-1, None] + half + half * x).ravel(), np.log((half * w).ravel())
        if part.kind == "laplace":
            log_w = np.append(log_w - (u + unit) / 2 - log(4), -unit - log(2))
            u = np.append(u, unit)
        else:
            log_w -= (unit / 2 + u / unit) ** 2 / 2 + log(unit * sqrt(2 * pi))
        loss = log_ratio(u, part.rate)
        log_p = np.concatenate([log_w, [self.moments.log_rest(part)], log_w + loss])
        return np.concatenate([-loss, [0.0], loss]), log_p

    # ------------------------------------------------------------ at real arguments

    def log_real(self, c):
        """log E exp(cL; L finite); of schedules only as precisely as the choice of a line needs."""
        if len(self.many) < MANY:
            return self.real(c)[0]
        if c not in self._rough:
            rest = sum(p.k * self._real(p, c)[0] for p in self.parts if p not in self.many)
            self._rough[c] = rest + self._together(c)
        return self._rough[c]

    def _together(self, c):
        """K(c) of many sampled Gaussians on one mesh of x/sigma."""
        sigma, rate, k = (np.array(x)[:, None] for x in self._columns)
        power = c + 1 if self.way > 0 else -c
        low, high = -9 * sigma + min(power, 0.0), 9 * sigma + max(power, 0.0)
        count = ceil(float(np.max((high - low) / sigma)) / 0.4)
        if count * len(k) > 2e6:
            raise TooLongError
        x = low + (high - low) * np.linspace(0, 1, count)
        log_w = -0.5 * (x / sigma) ** 2 + power * log_ratio((x - 0.5) / sigma**2, rate)
        top = log_w.max(axis=1, keepdims=True)
        size = top + np.log(np.exp(log_w - top).sum(axis=1, keepdims=True))
        return float((k * (size + np.log((x[:, 1:2] - low) / sigma / sqrt(2 * pi)))).sum())

    def real(self, c):
        """(log E exp(cL), its round-off, mean and variance of L under that tilt)."""
        if c not in self._known:
            found = [self._real(part, c) for part in self.parts]
            k = np.array([part.k for part in self.parts], dtype=float)
            self._known[c] = tuple((k @ np.array(found)).tolist())
        return self._known[c]

    def _real(self, part, c):
        if part.plain_gaussian:
            unit = 1 / part.value[0] ** 2
            return c * (c + 1) * unit / 2, 4 * EPS * abs(c * (c + 1)) * unit, (c + 0.5) * unit, unit
        loss, log_p = self.law(part, c, 0.0)
        log_w = log_p + c * loss
        size = log_sum(log_w)
        weight = np.exp(log_w - size)
        mean = float(weight @ loss)
        noise = EPS * (4 + 2 * abs(size))
        if abs(size) < 0.1 and not _lossy(part):  # E exp(-L) = 1: second order terms only
            p = np.exp(log_p)
            size = np.log1p(p @ (np.expm1(c * loss) + c * np.expm1(-loss)))
            terms = np.abs(np.expm1(c * loss)) + np.abs(c * np.expm1(-loss))
            noise = EPS * float(p @ (terms * (4 + np.abs(log_p) + 2 * np.abs(loss))))
        return size, noise, mean, float(weight @ (loss - mean) ** 2)

    # ------------------------------------------------------------ along a line

    def fits(self, c, height, count):
        """Whether there is time for so many nodes."""
        smooth = [p for p in self.parts if not p.plain_gaussian]
        work = count * sum(len(self.law(part, c, height)[0]) for part in smooth)
        if work > MOST_WORK * (10 if max(p.k for p in self.parts) < FEW_ROUNDS else 1):
            raise TooLongError

    def along(self, c, y):
        """log of E exp((c+iy)L)/E exp(cL), a bound on its round-off, and the real part of what the
        sampled Gaussians are of it, which falls."""
        total, noise, falling = np.zeros(len(y), dtype=complex), np.zeros(len(y)), np.zeros(len(y))
        for part in self.parts:
            if part.plain_gaussian:
                total += part.k / part.value[0] ** 2 * (1j * y * (c + 0.5) - y * y / 2)
                continue
            loss, log_p = self.law(part, c, float(y[-1]))
            weight = np.exp(log_p + c * loss - log_sum(log_p + c * loss))
            mean_of = turned_mean if part.k < FEW_ROUNDS and len(y) > 1 else near_one
            lost, shift = mean_of(loss, weight, y)
            lost = np.maximum(lost, -2.0)  # log(1 + lost + i shift), not through abs
            square = np.maximum(lost * (2 + lost) + shift**2, -0.9)
            near = np.hypot(1 + lost, shift)  # of small numbers the square has half the digits
            size = np.where(near < 0.5, np.log(np.maximum(near, 1e-14)), 0.5 * np.log1p(square))
            total += part.k * (size + 1j * np.arctan2(shift, 1 + lost))
            falling += part.k * size if _falls(part) else 0.0
            lift = (
                2.0 if mean_of is turned_mean else np.minimum(y * float(weight @ np.abs(loss)), 2.0)
            )
            noise += part.k * 8 * EPS * lift / np.maximum(near, 1e-14)
        return total, noise, falling

    def ceiling(self, c, measured):
        """bound(y, end): of log abs(transform / that at c) between two heights; ``measured`` is
        the last value seen of the sampled Gaussians, which bounds what follows of them."""
        found, falling = [], []
        for part in self.parts:
            if part.plain_gaussian:
                found.append((part.k, inf, 0.5 / part.value[0] ** 2, 0.0, -inf))
                continue
            loss, log_p = self.law(part, c, 0.0)
            log_w = log_p + c * loss
            weight = np.exp(log_w - log_sum(log_w))
            atoms, rest = (0.0, -inf)
            if not part.counted:
                whole, atoms, rest = moments_of((part,), self.way)._atoms_and_rest(part, c)
                atoms, rest = atoms - whole, rest - whole
            if _falls(part):
                atoms, rest = 0.0, -inf
            (falling if _falls(part) else found).append(
                (part.k, *spread(loss, weight), atoms, rest)
            )

        def sum_of(some, y, end):
            total = 0.0
            for k, limit, bend, atoms, rest in some:
                one = -bend * y * y if end <= limit else 0.0
                total += k * min(0.0, one, np.logaddexp(atoms, rest - log(y)))
            return total

        def bound(y, end):
            return sum_of(found, y, end) + min(sum_of(falling, y, end), measured)

        return bound


def _falls(part):
    """Whether the transform decays all the way: no atoms, no edges."""
    return part.kind == "gaussian" and not part.swapped and part.rate < 1


def _lossy(part):
    return part.kind == "finite" and 0.0 in part.value[0] + part.value[1]


class Line:
    """The terms of the trapezoid sum on one line, and bounds on what is not among them."""

    def __init__(self, law, side, c, period, e, log_tail):
        self.law, self.side, self.c, self.h = law, side, c, 2 * pi / period
        if abs(c) < 1e-100 or period == inf:
            raise TooLongError
        self.size, self.noise, self.mean, variance = law.real(c)
        variance += 1 / c**2 + 1 / (1 + c) ** 2
        count = max(64, ceil(12 / sqrt(variance) / self.h))
        if count > MOST_NODES:
            raise TooLongError
        law.fits(c, self.h * count, count)
        while True:
            self._fill(count)
            if self.log_cut + self.size - c * e < log_tail - NATS or 2 * count > MOST_NODES:
                break
            count *= 2
            try:
                law.fits(c, self.h * count, count)
            except TooLongError:
                break

    def _fill(self, count):
        self.y = self.h * np.arange(count)
        self.log_phi, self.log_noise, falling = self.law.along(self.c, self.y)
        z = self.c + 1j * self.y
        self.kernel = 1 / (z * (z + 1))
        self.kernel[0] /= 2
        measured = float(falling[-(count // 4) :].max())
        if measured < 0:
            measured = max(measured, self._revived())
        bound, y = self.law.ceiling(self.c, measured), self.y[-1]
        pieces = 60 if len(self.law.parts) > MANY else 400
        ends = y * np.append(np.geomspace(1, 1e4, pieces), 1e300)
        pieces = [
            bound(a, b) + log(max(1 / a - 1 / b, 1e-300))
            for a, b in zip(ends.tolist(), ends[1:].tolist(), strict=False)
        ]
        self.log_cut = log_sum(np.array(pieces)) - log(pi)

    def _revived(self):
        """The largest of what the sampled Gaussians are further up: jumps that lose about as much
        each turn together, and come back."""
        further = self.y[-1] * np.geomspace(1, FURTHER, 300)
        self.law.fits(self.c, float(further[-1]), len(further))
        return float(self.law.along(self.c, further)[2].max())

    def at(self, e):
        """(delta, error), without infinite losses on the upper side."""
        front = exp(min(self.size - self.c * e, 700.0)) * self.h / pi
        terms = np.exp(self.log_phi - 1j * self.y * e) * self.kernel
        total = front * float(terms.real.sum())
        noise = self.noise + self.log_noise + 4 * EPS * (self.y * abs(e) + abs(self.size) + 10)
        error = front * float(np.abs(terms) @ np.expm1(np.minimum(noise, 50.0)))
        error += 2 * EPS * abs(self.c * e) * abs(total)
        error += exp(min(self.log_cut + self.size - self.c * e, 700.0))
        return self.side * total, error


@lru_cache(maxsize=8)
def transform(parts, way):
    """The Plain of these parts, with what it has computed so far."""
    return Plain(parts, way)


@lru_cache(maxsize=64)
def _lines(parts, way, e):
    law = transform(parts, way)
    mean, variance = law.real(-1e-9)[2:]
    side = 1 if e >= mean - sqrt(variance) else -1
    c, log_tail = saddle(law, side, e)
    if log_tail < -745:
        return side, log_tail, None
    variance = law.real(c)[3] + 1 / max(abs(c), 1e-100) ** 2 + 1 / (1 + c) ** 2
    bound, log_tail = log_tail, log_tail - 0.5 * log(2 * pi * variance) - 3
    (one, c), (two, other), *_ = lines(law, side, c, e, log_tail, NATS, 25.0)
    found = Line(law, side, c, one, e, log_tail), Line(law, side, other, 1.13 * two, e, log_tail)
    return side, bound, found


def plain_delta(parts, way, e, near=None):
    """A ball of delta in one direction; lines drawn for `near` are reused."""
    law, e = transform(parts, way), float(e)
    kept = law.kept()
    if kept < 1e-16:
        return arb(1).union(1 - kept)
    side, bound, found = _lines(parts, way, e if near is None else float(near))
    if found is None:
        if near is not None and float(near) != e:
            return plain_delta(parts, way, e)
        rest = arb(0).union(arb(bound).exp())
        return 1 - kept + rest if side > 0 else 1 - rest
    (first, error), (second, other) = (line.at(e) for line in found)
    best, error = (second, other) if other < error else (first, error)
    error += abs(first - second) + 1e-14 * abs(best)
    if not error <= LOOSE * abs(best):
        raise TooLongError
    ball = arb(best, error)
    return 1 - kept + ball if side > 0 else 1 - ball
