"""Many different sampled Gaussian steps as one: the schedules of noise and of rates.

All that ``sampled_gaussian`` computes for one step is computed here for all of them at once, as
arrays of (steps, nodes) on the same meshes, with the same bounds on their error; steps with about
as many nodes share a block. K, its round-off and the bounds on a line of the composition are the
sums over its steps that ``contour`` takes of single ones.

What differs: how far into the plane a strip is moved is not read from a table for all steps but
found for each one (any angle gives a bound); the turns exp(iyL) of a line come from two of them by
products; what only plans a line, and the sums that bound moduli, have coarser meshes; and so have
lines, where other steps make an error of one step small.

With T_i of step i on a line in place of f_i = E exp((c+iy)L)/E exp(cL), let abs(f_i) <= exp(-b_i)
at this height, and D = sum k_i b_i, R = sum k_i. If abs(T_i - f_i) <= e_i <= exp(-b_i)/R and
e_i <= exp(D - b_i - ROOM)/R, then, changing one factor after another,

    abs(prod T^k - prod f^k) <= sum_i k_i e_i exp(b_i - D) (1 + 1/R)^R <= exp(1 - ROOM).
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil, inf, log, pi, sqrt

import numpy as np

from . import rows
from .sampled_gaussian import VALUE, SampledGaussian, mixture
from .shifted import moments, shares
from .step import Step
from .strips import Tilted
from .windows import WIDE, Mesh, Windows, blocks, hull, mesh
from .work import spend

__all__ = []

LEAST = 8  # different steps, from which on they are one
TURNS = 40_000  # exp(iyL) of a block at a time: larger arrays are new pages each time
LONG = 3000  # nodes along a line, beyond which a step has one of its own
FAR = 16  # times the nodes that one tilt needs: beyond, it has its own
AGAIN = 16  # times the largest tilt asked for, up to which a table's nodes are used again,
KEPT = 300_000  # if there are no more of them than this
ALLOWED = 0.01  # for what coarser meshes leave in sums over all rounds
ROOM = 42.0  # exp(1 - ROOM) is the error of a line's mesh
HEIGHTS = np.array([0.0, 0.4, 0.6, 0.75, 0.9, 1.0])  # where moduli are bounded to choose it


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


@dataclass(frozen=True, eq=False)
class Schedule(Step):
    """rate * N(1, sigma^2) + (1 - rate) * N(0, sigma^2) against N(0, sigma^2), or with the two
    exchanged (side -1), k times, for each entry of these arrays; one step of a composition."""

    steps: tuple
    sigma: np.ndarray
    rate: np.ndarray
    k: np.ndarray
    side: int
    _kept: dict = field(default_factory=dict)

    def spread(self):
        return sqrt(sum(k * step.spread() ** 2 for step, k in zip(self.steps, self.k, strict=True)))

    @lru_cache(maxsize=4)  # noqa: B019 (few, and each is kept by ``_grouped`` anyway)
    def tilt_limit(self, log_delta):
        return min(step.tilt_limit(log_delta) for step in self.steps)

    # ------------------------------------------------------------ meshes

    def _power(self, c):
        return 1 + c if self.side > 0 else -c

    @cached_property
    def _rough(self):
        """The share of the digits of a mesh that leaves an error below 1e-3 in K, or in K over the
        variance of the loss if that is small."""
        size = min(1.0, self.spread() ** 2) + 1e-300
        return min(1.0, (9 + log(self.k.sum() / size)) / 40)

    @lru_cache(maxsize=4)  # noqa: B019
    def _spans(self, c, share=1.0):
        spend(2000 * len(self.sigma))
        return Windows(self.sigma, self.rate, self._power(c), share).spans()

    def _spacing(self, c, share=1.0):
        """``SampledGaussian._spacing``."""
        sharp, strip = 1 / self.sigma, 0.42 * self.sigma**2
        if self._power(c) < 0:
            off = np.maximum(0.0, -self._spans(c)[0].min(axis=0) - WIDE * self.sigma)
            sharp, strip = sharp * np.sqrt(1 + off / self.sigma**2), 0.23 * self.sigma**2
        return 2 * pi / np.maximum(9 * sqrt(share) * sharp, 2 * pi * share / strip)

    def _mesh(self, c, spacing=None, share=1.0):
        spacing = self._spacing(c, share) if spacing is None else spacing
        return mesh(self._spans(c, share), spacing, self.side)

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

    def _table(self, z, measure, share):
        """The sums over steps of k times what ``measure(law)`` finds at each z. Nodes for the
        largest z serve all, as far as each needs them; unless that is FAR more than its own."""
        order, left = np.argsort(-z), len(z)
        found = None
        while left:
            at = order[len(z) - left :]
            wide, rows_of, alone = self._hull(float(z[at[0]]), measure, share)
            at = at[:1] if alone else at
            for steps, sums in rows_of:
                lengths = self._lengths(wide, steps, z[at], share)
                each = [sums(float(z[j]), n) for j, n in zip(at, lengths, strict=True)]
                each = np.array(each).reshape(len(at), -1, len(steps)) @ self.k[steps]
                found = np.zeros((len(z), each.shape[1])) if found is None else found
                found[at] += each
            left -= len(at)
        return found.T

    def _hull(self, c, measure, share):
        """A Mesh for all tilts up to c, what ``measure`` finds of the law there, block by block,
        and whether it serves c only. The last one is kept, and used again."""
        top, *kept = self._kept.get(measure, (-inf,))
        if c <= top <= AGAIN * max(c, 1.0):
            return kept
        own = self._mesh(c, share=share)
        wide = mesh(hull(self._spans(c, share)), self._spacing(c, share), self.side)
        count = wide.count.sum()
        if alone := count > FAR * own.count.sum():
            wide = own
        found = ((some, measure(self._law(wide, some))) for some in blocks(wide.count))
        if not alone and count <= KEPT:
            found = list(found)
            self._kept[measure] = c, wide, found, False
        return wide, found, alone

    def _lengths(self, wide, steps, z, share):
        """How many nodes of a hull each z needs: beyond max(1, 1 + z), or min(0, -z) on the other
        side, the tilted integrand falls at least as fast as the Gaussian."""
        most = int(wide.count[steps].max())
        if len(z) == 1:
            return [most]
        end = np.maximum(1.0, 1 + z) if self.side > 0 else np.maximum(0.0, z)
        end = np.add.outer(end, WIDE * sqrt(share) * self.sigma[steps]) / wide.spacing[steps]
        found = np.max(np.ceil(end) - wide.first[steps] + 1, axis=1)
        return np.minimum(found, most).astype(int).tolist()

    def cumulant(self, z):
        z = np.asarray(z, dtype=float)
        return self._table(z, rows.cumulants, 1.0)[0]

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
        """K, K' and K'' to 1e-3 (see ``_rough``): enough to plan with."""
        return tuple(self._table(np.asarray(z, dtype=float), rows.derivatives, self._rough))

    def mean(self):
        return sum(k * step.mean() for step, k in zip(self.steps, self.k, strict=True))

    # ------------------------------------------------------------ along a line

    @lru_cache(maxsize=2)  # noqa: B019
    def _tilted(self, c):
        """The Tilted blocks of all steps."""
        found, mesh_of = [], self._mesh(c, self._spacing(c, self._rough))
        for steps in blocks(mesh_of.count):
            law, rate = self._law(mesh_of, steps), self.rate[steps, None]
            weights = rows.tilted(law, c)
            sigma, x = self.sigma[steps], mesh_of.points(steps)[0]
            parts = weights, *shares(x, self.side * law.loss, sigma[:, None], rate)
            known = moments(*parts, self._power(c), 0.5 * sigma**2)
            found.append(Tilted(steps, *parts, sigma, *known, mesh_of.ends(steps)))
        return found

    @lru_cache(maxsize=64)  # noqa: B019
    def _falls(self, c, height):
        """``Tilted.falls`` of all steps."""
        found = np.zeros(len(self.k))
        for block in self._tilted(c) if height else ():
            found[block.steps] = block.falls(self._power(c), height)
        return found

    def ceiling(self, c):
        return lambda height: min(0.0, ALLOWED - float(self._falls(c, height) @ self.k))

    @lru_cache(maxsize=4)  # noqa: B019
    def _line_mesh(self, c, band):
        """The Mesh for heights up to ``band``, and which steps need one of their own, for theirs is
        LONG."""
        plain = self._spacing(c)
        if not band:
            return self._mesh(c), np.zeros(len(plain), dtype=bool)
        heights, spacing = band * HEIGHTS, np.zeros(len(plain))
        falls = np.array([self._falls(c, height) for height in heights[:-1].tolist()])
        rest = np.maximum(ROOM + ALLOWED - (falls @ self.k)[:, None], 0.0)
        need = log(2 * self.k.sum()) + falls + rest
        for block in self._tilted(c):
            found = block.spacing(self._power(c), heights[1:], need[:, block.steps])
            spacing[block.steps] = found
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
        noise += np.exp(np.minimum(1 - ROOM - value.real, 700.0))
        for i in np.flatnonzero(alone):
            each, error = self.steps[i].line(c, y)
            value += self.k[i] * each
            noise += self.k[i] * error
        return value, noise
