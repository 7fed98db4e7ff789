"""Many sampled Gaussians along lines beside the real one, each at its own angle: bounds on moduli,
and on the spacing of a mesh. What ``shifted.Shifted`` says of one, at nodes a row a step.
"""

from math import pi
from typing import NamedTuple

import numpy as np

from .shifted import ANGLE, BOUND, SHIFT, beside, coming_down, log_mean
from .work import spend

__all__ = []

TRIES = 4  # angles for a strip,
LIFT = 2.3  # and how far apart two are, for a modulus
# log of how much less than a strip's the integrand may be where a line comes down: half a mesh (up
# to 4 nats) from a node, some 20 meshes long, at a few ends: they add up to 1 %
STEP = 12.0


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
    ends: np.ndarray  # places of the nodes where windows begin and end, a row a step

    def log_bounds(self, power, heights, angle, way=1):
        """``shifted.Shifted.log_bounds``: a row a height; each step at its own angle."""
        spend((BOUND * len(heights) + SHIFT // 2) * self.weights.size)
        a = angle[:, None]
        cost = 0.5 * (self.sigma[:, None] * a) ** 2
        growth, phase = beside(self.share, self.both, a, power, cost)

        def mean(values, rows):
            return np.sum(values * self.weights[rows], axis=-1)

        return np.array([log_mean(growth - way * y * phase, mean) for y in heights])

    def falls(self, power, height):
        """b >= 0 with abs(f) <= exp(-b) from this height on, for each step: at the best angle by
        the first two moments, at a larger one, and further that way where it is better."""
        angle = height * self.pull / (self.bend + height**2 * self.turn)
        angle = np.minimum(angle, ANGLE / LIFT)
        near, far = (self.log_bounds(power, [height], a)[0] for a in (angle, LIFT * angle))
        best = np.minimum(near, far)
        if (better := far < near).any():
            angle = np.minimum(np.where(better, LIFT**2, 0.6) * angle, ANGLE)
            best = np.minimum(best, self.log_bounds(power, [height], angle)[0])
        return -np.minimum(best, 0.0)

    def _down(self, ends, power, heights, need, angle):
        """Where the windows end, and the line comes down to the real one: no less than log of how
        much larger the integrand is at minus this angle, for heights up to each of these, than it
        is on the real line, or than exp(-need - STEP); and at the worst end, that at no height."""
        log_weight, share, both = ends
        a = angle[:, None]
        cost = 0.5 * (self.sigma[:, None] * a) ** 2
        growth, phase = coming_down(share, both, a, power, cost)
        still = np.minimum(log_weight + need[:, :, None] + STEP, 0.0)
        found = still + growth + heights[:, None, None] * phase
        worst = found.argmax(axis=-1)[..., None]
        return tuple(np.take_along_axis(x, worst, -1)[..., 0] for x in (found, still))

    def spacing(self, power, heights, need):
        """The widest found for which a strip bounds the error of the mesh, for heights up to each
        of these, by 2 exp(-need): rows of the steps' need. Where the windows end its line comes
        down, and adds little beside that, or beside what they leave out (``_down``)."""
        spend(TRIES * (SHIFT // 2 + BOUND * len(heights)) * self.ends.size)
        parts = self.weights, self.share, self.both
        weight, *others = (np.take_along_axis(x, self.ends, 1) for x in parts)
        ends = np.log(np.maximum(weight, 1e-300)), *others
        room = need.max(axis=0)
        angle = np.sqrt(room / (self.bend + heights[-1] ** 2 * self.turn))
        angle = np.minimum(np.maximum(angle, 0.6 * room / heights[-1]), 0.5 * ANGLE)
        best, at = np.zeros(need.shape), np.arange(need.shape[1])
        for _ in range(TRIES):
            size = np.maximum(self.log_bounds(power, heights, angle, -1), 0.0)
            down, still = self._down(ends, power, heights, need, angle)
            best = np.maximum(best, 2 * pi * self.sigma**2 * angle / np.maximum(need + size, down))
            tight = best.argmin(axis=0), at
            bent = size[tight] - heights[tight[0]] * self.pull * angle
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.sqrt(need[tight] / bent)  # where bent is quadratic
                level = (need + size - still)[tight] / (down - still)[tight]
                factor = np.where(down[tight] > 0, np.fmin(factor, level), factor)
            angle = np.minimum(np.clip(np.nan_to_num(factor, nan=3.0), 0.3, 3.0) * angle, ANGLE)
        return best.min(axis=0)
