"""Many different sampled Gaussian steps as one: the schedules of noise and of rates.

All that ``sampled_gaussian`` computes for one step is computed here for all of them at once, as
arrays of (steps, nodes) on the same meshes, with the same bounds on their error; steps with about
as many nodes share a block. K, its round-off and the bounds on a line of the composition are the
sums over its steps that ``contour`` takes of single ones.

What differs: how far into the plane a strip is moved is not read from a table for all steps but
found for each one (any angle gives a bound), and the turns exp(iyL) of a line come from two of
them by products.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from . import rows
from .sampled_gaussian import VALUE, SampledGaussian, mixture
from .shifted import BOUND, QUADRATURE, SHIFT
from .step import Step
from .windows import WIDE, Mesh, Windows, blocks, hull, mesh
from .work import spend

__all__ = []

LEAST = 8  # different steps, from which on they are one
TURNS = 100_000  # exp(iyL) of a block at a time
LONG = 3000  # nodes along a line, beyond which a step has one of its own
ANGLE = 2.4  # the largest; the integrand is analytic below pi
FAR = 16  # times the nodes that one tilt needs: beyond, it has its own
LIFTS = (0.6, 1.1, 2.0, 5.0)  # angles, relative to the best one by the first two moments
STRIPS, FINER = np.linspace(0.0, 1.0, 6), (-0.45, 0.45)


def grouped(parts):
    """The parts of a composition, many sampled Gaussians as one."""
    return parts if len(parts) < LEAST else _grouped(parts)


@lru_cache(maxsize=8)
def _grouped(parts):
    found = [part for part in parts if type(part[0]) is not SampledGaussian]
    for side in (1, -1):
        some = [(s, k) for s, k in parts if type(s) is SampledGaussian and s.side == side]
        found += [(schedule(some), 1)] if len(some) >= LEAST else some
    return tuple(found)


def schedule(parts):
    """These sampled Gaussians and how often each is run, all of one side, as a Schedule."""
    steps, counts = zip(*parts, strict=True)
    sigma, rate = (np.array(x) for x in zip(*((s.sigma, s.rate) for s in steps), strict=True))
    return Schedule(steps, sigma, rate, np.array(counts, dtype=float), steps[0].side)


class Tilted(NamedTuple):
    """A block of steps tilted by exp(cL): their weights at the nodes, which sum to 1, the share of
    the density that is that of the sampled Gaussian, times 1 less it, and moments of that."""

    steps: np.ndarray
    weights: np.ndarray
    share: np.ndarray
    both: np.ndarray
    sigma: np.ndarray
    pull: np.ndarray  # the mean of the share
    turn: np.ndarray  # its variance
    bend: np.ndarray  # and minus the second derivative of log abs(integrand) across the line

    def log_bound(self, power, y, angle, way=1):
        """``sampled_gaussian.Shifted.log_bound``, for each step at its own angle."""
        spend((BOUND + SHIFT // 2) * self.weights.size)
        a = angle[:, None]
        turned = 2 * np.sin(a / 2) ** 2
        exponent = np.log1p(-np.minimum(2 * turned * self.both, 1 - 1e-15))
        exponent *= 0.5 * power
        phase = np.arctan2(self.share * np.sin(a), 1 - turned * self.share)
        exponent -= way * y * phase
        exponent += 0.5 * (self.sigma[:, None] * a) ** 2
        known = exponent.max(axis=-1) < 700
        exponent = np.minimum(exponent, 700.0)
        excess = np.sum(np.expm1(exponent) * self.weights, axis=-1)
        size = np.log1p(np.maximum(excess, -0.5))
        if (small := excess < -0.5).any():
            mass = np.sum(np.exp(exponent[small]) * self.weights[small], axis=-1)
            size[small] = np.log(np.maximum(mass, 1e-300))
        return np.where(known, size, np.inf)


@dataclass(frozen=True, eq=False)
class Schedule(Step):
    """rate * N(1, sigma^2) + (1 - rate) * N(0, sigma^2) against N(0, sigma^2), or with the two
    exchanged (side -1), k times, for each entry of these arrays; one step of a composition."""

    steps: tuple
    sigma: np.ndarray
    rate: np.ndarray
    k: np.ndarray
    side: int

    def spread(self):
        return sqrt(sum(k * step.spread() ** 2 for step, k in zip(self.steps, self.k, strict=True)))

    @lru_cache(maxsize=4)  # noqa: B019 (few, and each is kept by ``_grouped`` anyway)
    def tilt_limit(self, log_delta):
        return min(step.tilt_limit(log_delta) for step in self.steps)

    # ------------------------------------------------------------ meshes

    def _power(self, c):
        return 1 + c if self.side > 0 else -c

    @lru_cache(maxsize=4)  # noqa: B019
    def _spans(self, c):
        spend(2000 * len(self.sigma))
        return Windows(self.sigma, self.rate, self._power(c)).spans()

    def _spacing(self, c):
        """``SampledGaussian._spacing``."""
        sharp, strip = 1 / self.sigma, 0.42 * self.sigma**2
        if self._power(c) < 0:
            off = np.maximum(0.0, -self._spans(c)[0].min(axis=0) - WIDE * self.sigma)
            sharp, strip = sharp * np.sqrt(1 + off / self.sigma**2), 0.23 * self.sigma**2
        return 2 * pi / np.maximum(9 * sharp, 2 * pi / strip)

    def _mesh(self, c, spacing=None):
        return mesh(self._spans(c), self._spacing(c) if spacing is None else spacing, self.side)

    def _law(self, found: Mesh, steps):
        """The loss and log p at the nodes of these steps, log p = -inf at what is none."""
        spend(VALUE * len(steps) * int(found.count[steps].max()))
        x, inside = found.points(steps)
        sigma, rate = self.sigma[steps, None], self.rate[steps, None]
        unit = np.where(
            inside, np.log(found.spacing[steps, None] / (sigma * sqrt(2 * pi))), -np.inf
        )
        return mixture(x, unit, sigma, rate, self.side)

    # ------------------------------------------------------------ moments

    def _table(self, z, measure):
        """The sums over steps of k times what ``measure(law)`` finds at each z. Nodes for the
        largest z serve all, as far as each needs them; unless that is FAR more than its own."""
        order, left = np.argsort(-z), len(z)
        found = None
        while left:
            at = order[len(z) - left :]
            c = float(z[at[0]])
            own, wide = self._mesh(c), mesh(hull(self._spans(c)), self._spacing(c), self.side)
            if left > 1 and wide.count.sum() > FAR * own.count.sum():
                wide, at = own, at[:1]
            for steps in blocks(wide.count):
                law, lengths = self._law(wide, steps), self._lengths(wide, steps, z[at])
                sums = measure(law)
                each = [sums(float(z[j]), n) for j, n in zip(at, lengths, strict=True)]
                each = np.array(each).reshape(len(at), -1, len(steps)) @ self.k[steps]
                found = np.zeros((len(z), each.shape[1])) if found is None else found
                found[at] += each
            left -= len(at)
        return found.T

    def _lengths(self, wide, steps, z):
        """How many nodes of a hull each z needs: beyond max(1, 1 + z), or min(0, -z) on the other
        side, the tilted integrand falls at least as fast as the Gaussian."""
        if len(z) == 1:
            return [int(wide.count[steps].max())]
        end = np.maximum(1.0, 1 + z) if self.side > 0 else np.maximum(0.0, z)
        end = np.add.outer(end, WIDE * self.sigma[steps]) / wide.spacing[steps]
        return np.max(np.ceil(end) - wide.first[steps] + 1, axis=1).astype(int).tolist()

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        return self._table(z, rows.cumulants)[0]

    @lru_cache(maxsize=64)  # noqa: B019
    def cumulant_at(self, c):
        return self._at_one(c)[0]

    def cumulant_noise(self, c):
        return self._at_one(c)[1]

    @lru_cache(maxsize=8)  # noqa: B019
    def _at_one(self, c):
        """K(c), and the bound on its round-off that ``law.moment_noise`` is for one step."""
        found, total, noise = self._mesh(c), 0.0, 0.0
        for steps in blocks(found.count):
            law = self._law(found, steps)
            cumulant = rows.cumulants(law)(c, law.loss.shape[1])
            total += float(cumulant @ self.k[steps])
            noise += float(rows.moment_noise(law, c, cumulant) @ self.k[steps])
        return total, noise

    def derivatives(self, z):
        return tuple(self._table(np.asarray(z, dtype=float), rows.derivatives))

    def mean(self):
        return sum(k * step.mean() for step, k in zip(self.steps, self.k, strict=True))

    # ------------------------------------------------------------ along a line

    @lru_cache(maxsize=2)  # noqa: B019
    def _tilted(self, c):
        """The Tilted blocks of all steps."""
        found, mesh_of = [], self._mesh(c)
        for steps in blocks(mesh_of.count):
            law, rate = self._law(mesh_of, steps), self.rate[steps, None]
            weights = rows.tilted(law, c)
            mixed = self.side * law.loss
            x = mesh_of.points(steps)[0]
            u = (x - 0.5) / self.sigma[steps, None] ** 2
            share = np.exp(np.minimum(u + np.log(rate) - mixed, 0.0))
            both = share * np.exp(np.log1p(-rate) - mixed)
            pull, bend = ((part * weights).sum(axis=-1) for part in (share, both))
            turn = ((share - pull[:, None]) ** 2 * weights).sum(axis=-1)
            bend = self.sigma[steps] ** 2 - self._power(c) * bend
            bend = np.maximum(bend, 0.05 * self.sigma[steps] ** 2)
            found.append(Tilted(steps, weights, share, both, self.sigma[steps], pull, turn, bend))
        return found

    def ceiling(self, c):
        blocks_of, power = self._tilted(c), self._power(c)

        def bound(height):
            total = 0.0
            for block in blocks_of:
                best = height * block.pull / (block.bend + height**2 * block.turn)
                angles = [np.minimum(lift * np.minimum(best, 1.5), ANGLE) for lift in LIFTS]
                sizes = [block.log_bound(power, height, angle) for angle in angles]
                total += float(np.minimum(np.min(sizes, axis=0), 0.0) @ self.k[block.steps])
            return total

        return bound

    @lru_cache(maxsize=4)  # noqa: B019
    def _line_mesh(self, c, band):
        """The Mesh for heights up to ``band``, by the bounds of ``SampledGaussian._nodes``, without
        its lift; and which steps need that, for theirs is LONG."""
        plain, power = self._spacing(c), self._power(c)
        if not band:
            return self._mesh(c), np.zeros(len(plain), dtype=bool)
        spacing = np.zeros(len(plain))
        for block in self._tilted(c):
            bend = block.bend + band**2 * block.turn
            linear = band * block.pull
            high = 2 * QUADRATURE / (linear + np.sqrt(linear**2 + 2 * QUADRATURE * bend))
            low = np.log(np.minimum(0.6 * QUADRATURE / band, 0.5 * ANGLE))
            high = np.maximum(np.log(np.minimum(1.5 * high, ANGLE)), low + 0.1)

            def widest(place, low=low, high=high, block=block):
                angle = np.exp(np.minimum(low + place * (high - low), log(ANGLE)))
                size = np.maximum(block.log_bound(power, band, angle, -1), 0.0)
                return 2 * pi * block.sigma**2 * angle / (QUADRATURE + size)

            found = np.array([widest(place) for place in STRIPS])
            best = STRIPS[np.argmax(found, axis=0)]
            near = [widest(best + way / (len(STRIPS) - 1)) for way in FINER]
            spacing[block.steps] = np.maximum(found.max(axis=0), np.max(near, axis=0))
        fine = self._mesh(c, np.maximum(np.minimum(spacing, plain), 1e-300))
        return fine, fine.count > LONG

    def work(self, c, band):
        found, alone = self._line_mesh(c, band)
        own = sum(self.steps[i].work(c, band) for i in np.flatnonzero(alone))
        return float(found.count[~alone].sum()) + own

    def line(self, c, y):
        found, alone = self._line_mesh(c, float(y[-1]))
        value, noise = np.zeros(len(y), dtype=complex), np.zeros(len(y))
        rest, turns = np.flatnonzero(~alone), ceil(sqrt(len(y))) + 2
        for some in blocks(found.count[rest], TURNS // turns):
            steps = rest[some]
            each, error = rows.line(self._law(found, steps), c, y)
            value += self.k[steps] @ each
            noise += self.k[steps] @ error
        for i in np.flatnonzero(alone):
            each, error = self.steps[i].line(c, y)
            value += self.k[i] * each
            noise += self.k[i] * error
        return value, noise
