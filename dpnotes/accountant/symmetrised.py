"""Steps on a random sample under substitution: the symmetrised pair.

Let (P, Q) be its own reverse, H_a(P||Q) = H_a(Q||P), and M = (1 - rate) Q + rate P. Whoever
replaces one person's value sees at most h(a) = H_a(M||Q) for a >= 1, and, since the relation is
symmetric, at most a h(1/a) + 1 - a for a < 1. That is the profile of one pair (P', Q'): each
outcome x with M > Q is split in (x, +), of densities M under P' and Q under Q', and (x, -), with
the two exchanged; what mass is left is one outcome of loss 0. The pair is its own reverse, so its
powers bound every composition, also where the direction is chosen anew in each round; the two
directions of (M, Q), composed one by one, do not (Lebeda et al. 2024).

With u = log P/Q the loss at (x, +-) is +-log(1 + rate (e^u - 1)), over u > 0. Its density is smooth
but for a kink at 0 and an atom there, so its Fourier transform falls to the atom.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import erf, expm1, log, log1p, pi, sqrt

import numpy as np

from .laplace import Laplace
from .law import (
    Law,
    gauss,
    gauss_between,
    inverse_mixed_loss,
    mixed_loss,
    multiples,
)
from .phases import expm1_i
from .sampled_gaussian import SampledGaussian
from .step import Step
from .tilted import Tilted
from .work import spend

__all__ = []

FAST = 3000.0  # of a phase, up to which moduli are computed
VALUE = 40  # work of the density at one node
PHASE = 8.0  # of exp(iyL), that a panel of 16 nodes takes
MANY = 20_000  # nodes, beyond which each real z has a quadrature of its own
SLACK = 1.1  # for integrals of absolute values, which have kinks
HEIGHTS = np.append(1.4 ** np.arange(-48.0, 0.0), np.linspace(1.0, 12.0, 45))  # in 1/sd(L)


class Symmetrised(Step):
    """What all kinds of noise share. A kind gives, over u > 0: ``_panels(reach)``, edges for
    quadrature; ``_log_q(u)``, the log density under Q; ``_bend``, minus the second derivative of
    that, which is -1/2 at u = 0; ``_last()``, an atom at the largest u and the log of its weight.
    """

    side = 1  # of the closed form of one step, which is that of M against Q

    def flipped(self):
        return self

    def _loss(self, u):
        return mixed_loss(u, self.rate)

    # ------------------------------------------------------------ the law and its moments

    def _law(self, u, weight):
        spend(VALUE * len(u))
        last, log_last = self._last()
        log_q = np.concatenate([self._log_q(u) + np.log(weight), log_last])
        loss = self._loss(np.concatenate([u, last]))
        log_rest = [log1p(-self.rate) + log(self._undecided())]
        return Law(
            np.concatenate([-loss, [0.0], loss]), np.concatenate([log_q, log_rest, log_q + loss])
        )

    @lru_cache(maxsize=3)  # noqa: B019 (of a frozen value, and few)
    def law(self, reach, band):
        return self._of(self._panels(reach), band)

    def _of(self, panels, band=0.0):
        nodes = [gauss(self._turning(edges, band)) for edges in panels]
        return self._law(*(np.concatenate(x) for x in zip(*nodes, strict=True)))

    def _turning(self, edges, band):
        """These edges, and more, so that no panel has more than ``PHASE`` of exp(i band L)."""
        if not band:
            return edges
        low, high = self._loss(edges[[0, -1]])
        spend(200 * high * band)
        turns = inverse_mixed_loss(multiples(PHASE / band, low, high), self.rate)
        return np.union1d(edges, np.clip(turns, edges[0], edges[-1]))

    def _law_up_to(self, reach):
        panels = self._panels(reach)
        first, last = panels[0], panels[-1]
        if len(panels) > 1:
            count = (last[-1] - first[0]) / (last[1] - last[0])
            if count * 32 > MANY:
                return None
            panels = [np.linspace(first[0], last[-1], int(count) + 2)]
        elif len(first) * 32 > MANY:
            return None
        return self._of(panels)

    @lru_cache(maxsize=64)  # noqa: B019
    def cumulant_at(self, c):
        return float(self.cumulant(np.array([c]))[0])

    def work(self, c, band):
        return 32 * sum(len(edges) for edges in self._panels(c))

    def extent(self, reach):
        low, high = (float(self._loss(self._panels(c)[-1][-1])) for c in (0.0, reach))
        return -low, high

    def cells(self, spacing, reach, least):
        found = []
        for edges in self._panels(reach):
            low, high = self._loss(edges[[0, -1]])
            grid = multiples(spacing, max(low, least), high)
            found.append(gauss_between(edges, inverse_mixed_loss(grid, self.rate)))
        law = self._law(*(np.concatenate(x) for x in zip(*found, strict=True)))
        held = law.loss >= least - spacing
        return Law(law.loss[held], law.log_p[held])

    # ------------------------------------------------------------ its Fourier transform

    @lru_cache(maxsize=16)  # noqa: B019
    def _falling(self, c):
        """(atoms, a, b): the transform of the tilted law is at most atoms + min(a/y, b/y^2).

        Its density f in the loss l is f(+-l) = q(u) e^((1/2 +- (c + 1/2)) l + l/2) du/dl, with
        du/dl = G/(rate e^u) =: 1/s, G = 1 + rate (e^u - 1). So (log f)' by u is
        t = n s + (log q)' - 1 with n = 2 + c, or 1 - c on the left, and s' = s (1 - s). One
        integration by parts gives a, the variation of f, the integral of abs(f t) du (and f at the
        ends, if there are atoms); two give b, that of df/dl = f t/s, which is the integral of
        abs(f/s (t^2 + t' - t (1 - s))) du and the kink at 0.
        """
        law = self.law(c, 0.0)
        half = len(law.loss) // 2
        with np.errstate(over="ignore"):
            weights = np.exp(law.log_p + c * law.loss - self.cumulant_at(c))
        last = len(self._last()[0])
        atoms = weights[half] + (weights[half - 1] + weights[-1] if last else 0.0)
        first = second = 0.0
        loss = law.loss[half + 1 :]
        u = inverse_mixed_loss(loss, self.rate)[: len(loss) - last]
        s = np.exp(log(self.rate) + u - loss[: len(u)])
        at_zero = _exp_or_inf(self._log_q(0.0) - self.cumulant_at(c) - log(self.rate))
        for n, w in ((2 + c, weights[half + 1 :]), (1 - c, weights[:half])):
            w = w[: len(u)]
            t = n * s - self._bend * u - 1.5
            first += w @ (np.abs(t) / s)
            bent = t * t + n * s * (1 - s) - self._bend - t * (1 - s)
            second += w @ (np.abs(bent) / s**2)
        kink = at_zero * abs(((2 + c) + (1 - c)) * self.rate - 3.0) / self.rate
        if last:
            end = self._last()[0][0]
            log_f = self._log_q(end) - log(self.rate) - end - self.cumulant_at(c)
            ends = [n * float(self._loss(end)) + log_f for n in (2 + c, 1 - c)]
            return atoms, SLACK * (first + sum(map(_exp_or_inf, ends))), np.inf
        return atoms, SLACK * first, SLACK * (second + kink)

    def ceiling(self, c):
        """Low down the modulus is computed at some heights: between two of them, abs(E exp(iyL))^2
        = E cos(y(L - L')), whose second derivative is at most 2 Var L, is off the chord by their
        distance squared times Var L / 4. Beyond, ``_falling``."""
        atoms, first, second = self._falling(c)
        heights, within = self._moduli(c)

        def far(height):
            with np.errstate(over="ignore"):
                return float(np.log(atoms + min(first / height, second / height / height)))

        beyond = far(heights[-1])

        def bound(height):
            at = int(np.searchsorted(heights, height, side="right")) - 1
            near = within[at] if 0 <= at < len(within) else 0.0 if at < 0 else np.inf
            return min(0.0, far(height), max(near, beyond))

        return bound

    @lru_cache(maxsize=16)  # noqa: B019
    def _moduli(self, c):
        """Heights, and for each but the last a bound on log abs(E exp(iyL)), under the tilted law,
        for y from there to the last."""
        law, top = self.law(c, 0.0), self.extent(c)[1]
        weights = np.exp(law.log_p + c * law.loss - self.cumulant_at(c))
        variance = float(weights @ (law.loss - weights @ law.loss) ** 2) + 1e-16 * top**2
        heights = HEIGHTS / sqrt(variance)
        heights = heights[: max(2, int(np.searchsorted(heights, FAST / top)))]
        law = self.law(c, float(heights[-1]))
        weights = np.exp(law.log_p + c * law.loss - self.cumulant_at(c))
        heavy = weights > 1e-18 / len(weights)
        loss, weights = law.loss[heavy], weights[heavy] / weights[heavy].sum()
        spend(20 * len(loss) * len(heights))
        rise = np.array([expm1_i(y * loss) @ weights for y in heights.tolist()])
        lost = -2 * rise.real - np.abs(rise) ** 2
        lost = np.minimum(lost[1:], lost[:-1]) - 0.26 * variance * np.diff(heights) ** 2 - 1e-18
        log_size = 0.5 * np.log1p(-np.clip(lost, 0.0, 1 - 1e-15))
        return heights, np.maximum.accumulate(log_size[::-1])[::-1]


def _exp_or_inf(x):
    return float(np.exp(x)) if x < 700 else np.inf


@dataclass(frozen=True)
class SymmetrisedGaussian(Symmetrised):
    """From P = N(1, sigma^2) and Q = N(0, sigma^2): x = 1/2 + sigma^2 u."""

    sigma: float
    rate: float
    top, tilt_limit = SampledGaussian.top, SampledGaussian.tilt_limit
    spread = SampledGaussian.spread

    @property
    def _bend(self):
        return self.sigma**2

    def _undecided(self):
        """1 - 2 Q(u > 0)."""
        return erf(sqrt(0.125) / self.sigma)

    def _last(self):
        return np.zeros(0), np.zeros(0)

    def _log_q(self, u):
        return log(self.sigma / sqrt(2 * pi)) - 0.5 * (0.5 / self.sigma + self.sigma * u) ** 2

    @lru_cache(maxsize=64)  # noqa: B019
    def _panels(self, reach):
        unit, found = 0.6 * min(1 / self.sigma, 4.0), []
        for a, b in Tilted(self.sigma, self.rate, 1 + reach).spans():
            low, high = (max((x - 0.5) / self.sigma**2, 0.0) for x in (a, b))
            if high > low:
                found.append(np.unique(np.linspace(low, high, int((high - low) / unit) + 2)))
        return found


@dataclass(frozen=True)
class SymmetrisedLaplace(Symmetrised):
    """From Laplace noise of this scale, at 1 and at 0: u = (2x - 1)/scale, up to 1/scale, where
    there is an atom."""

    scale: float
    rate: float
    _bend = 0.0
    top, log_at_top, extent = Laplace.top, Laplace.log_at_top, Laplace.extent
    tilt_limit = Laplace.tilt_limit

    def _undecided(self):
        return -expm1(-0.5 / self.scale)

    def _last(self):
        end = 1 / self.scale
        return np.array([end]), np.array([-end - np.log(2)])

    def _log_q(self, u):
        return -(u + 1 / self.scale) / 2 - np.log(4)

    @lru_cache(maxsize=64)  # noqa: B019
    def _panels(self, reach):
        edges = Laplace(self.scale, self.rate)._edges(reach, 0.0)
        return [np.append(0.0, edges[edges > 1e-9 / self.scale])]
