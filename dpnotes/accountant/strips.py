"""Many sampled Gaussians along lines beside the real one, each at its own angle: bounds on moduli,
and on the spacing of a mesh. What ``shifted.Shifted`` says of one, at nodes a row a step.
"""

from math import pi
from typing import NamedTuple

import numpy as np

from .shifted import ANGLE, BOUND, QUADRATURE, SHIFT, STEP, beside, log_mean
from .work import spend

__all__ = []

TRIES = 4  # angles for a strip,
LIFT = 2.3  # and how far apart two are, for a modulus


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

    def _end(self, power):
        """Of the last node: a bound on its phase over the angle, for the phase is concave up to a
        share of a half; and log of how much less than allowed its weight is, with what it may grow
        by where the power is negative."""
        rows = np.arange(len(self.weights))
        last = self.weights.shape[1] - 1 - np.argmax(self.weights[:, ::-1] > 0, axis=1)
        weight, share, both = (x[rows, last] for x in (self.weights, self.share, self.both))
        growth = 0.5 * min(power, 0.0) * np.log1p(-np.minimum(4 * both, 1 - 1e-15))
        small = np.minimum(np.log(weight) + QUADRATURE - STEP, 0.0)
        return np.where(share > 0.5, 1.0, share), small + growth

    def spacing(self, power, heights, need):
        """The widest found for which a strip bounds the error of the mesh, for heights up to each
        of these, by 2 exp(-need): rows of the steps' need; with the step down where the nodes end
        (``shifted.Shifted.mesh``), whose phase is at most the angle times ``slope``."""
        slope, small = self._end(power)
        room = need.max(axis=0)
        angle = np.sqrt(room / (self.bend + heights[-1] ** 2 * self.turn))
        angle = np.minimum(np.maximum(angle, 0.6 * room / heights[-1]), 0.5 * ANGLE)
        best, at = np.zeros(need.shape), np.arange(need.shape[1])
        for _ in range(TRIES):
            size = np.maximum(self.log_bounds(power, heights, angle, -1), 0.0)
            step = heights[:, None] * slope * angle + 0.5 * (self.sigma * angle) ** 2 + small
            best = np.maximum(best, 2 * pi * self.sigma**2 * angle / np.maximum(need + size, step))
            tight = best.argmin(axis=0), at
            bent = size[tight] - heights[tight[0]] * self.pull * angle
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = np.sqrt(need[tight] / bent)  # where bent is quadratic
            angle = np.minimum(np.clip(np.nan_to_num(factor, nan=3.0), 0.3, 3.0) * angle, ANGLE)
        return best.min(axis=0)
