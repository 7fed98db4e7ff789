"""How large the integrand of a sampled Gaussian's moment is beside the real line: bounds on it,
which give the mesh for a line and a bound on the integral itself.

Any angle gives a bound. By the three lines theorem (for integrals of absolute values), the log of
the integral is convex in the angle, so on a grid of angles the best one is found from a guess on:
by the first two moments of ``share`` under the tilted law, the log of the integral is about
bend a^2/2 -+ y pull a + y^2 turn a^2/2.
"""

from functools import cached_property
from math import inf, log, pi, sqrt
from typing import NamedTuple

import numpy as np

from .work import spend

__all__ = []

ANGLE = 2.33  # the largest (the tangent of its half is less, and the integrand analytic below pi)
RATIO = 1.5  # of two angles
LAST = 70  # of the grid: 1e-12
STEP = 10.0  # log of how much more a step down may add than a strip
QUADRATURE = 60.0  # exp(-60) of the moment is the error of the mesh: times 1e12 rounds, 1e-14
SHIFT, BOUND = 150, 15  # work of the density beside a node, of a bound on it
NEAR = 2  # angles on either side of a guess
RAISED = range(2, 20)  # of the grid: angles to which a line is lifted
TURNS = (42.0, 12.0)  # heights times the angle, from which on
NOISY = 0.5  # log of the sum of moduli, from which on a line is not lifted: round-off grows by it
ANGLES, LOG_RATIO = ANGLE * RATIO ** -np.arange(float(LAST)), log(RATIO)


def beside(share, both, angle, power, cost):
    """(growth, phase) at these angles, see ``Shifted``; the last argument is cost angle^2."""
    turned = 2 * np.sin(angle / 2) ** 2
    growth = np.log1p(-np.minimum(2 * turned * both, 1 - 1e-15))
    growth *= 0.5 * power
    growth += cost
    return growth, np.arctan2(share * np.sin(angle), 1 - turned * share)


def coming_down(share, both, angle, power, cost):
    """(growth, phase), no less than those of ``beside``, where a line comes down to the real one:
    over the angle they do not decrease, up to ANGLE, so that growth + y phase - allowed is at most
    X b/angle at each b < angle if it is at most X at the angle.

    The phase is convex in the angle if the share is above a half, else concave, with the tangent
    share * angle at 0. Growth is cost, which is quadratic, and for a negative power -log(1 - 4 both
    q) times a constant, q = sin^2(angle/2): over q that increases as q does, and q over the angle
    as long as the tangent of its half is less than it. For a positive power that is at most 0."""
    growth, phase = beside(share, both, angle, min(power, 0.0), cost)
    return growth, np.maximum(share * angle, phase)


def shares(x, loss, sigma, rate):
    """The share that the sampled Gaussian has in the density at x, whose log over that of the other
    is ``loss``; and that times 1 less it."""
    odds = (x - 0.5) / sigma**2 - loss
    share = np.exp(np.minimum(odds + np.log(rate), 0.0))
    return share, share * np.exp(np.log1p(-rate) - loss)


def moments(weights, share, both, power, cost):
    """(pull, turn, bend): the mean and the variance of the share, and minus the second derivative
    of growth, no less than a little; of each row."""
    pull, mixed = (weights * share).sum(axis=-1), (weights * both).sum(axis=-1)
    turn = (weights * (share - pull[..., None]) ** 2).sum(axis=-1)
    return pull, turn, np.maximum(2 * cost - power * mixed, 0.1 * cost)


def log_mean(exponent, mean):
    """log of the mean of exp of each row, inf where that may overflow; ``mean(values, rows)`` are
    the means of values in these rows."""
    known = exponent.max(axis=-1) < 700
    np.minimum(exponent, 700.0, out=exponent)
    excess = mean(np.expm1(exponent), ...)
    size = np.log1p(np.maximum(excess, -0.5))
    if (small := excess < -0.5).any():
        size[small] = np.log(np.maximum(mean(np.exp(exponent[small]), small), 1e-300))
    return np.where(known, size, inf)


class Lift(NamedTuple):
    """Spacing of nodes, and for heights from ``edge`` on the angle of their line."""

    spacing: float
    edge: float = inf
    angle: float = 0.0


class Shifted:
    """The integrand of E exp((c+iy)L) along x + i sigma^2 angle. Relative to the tilted law at x
    (``weights``, which sum to 1) it is exp(growth - y phase) in absolute value. With t(x) the share
    that the sampled Gaussian has in the density at x, 1 + rate (e^(u + i angle) - 1) is
    1 + t (e^(i angle) - 1) times what it is at x, so

        growth = power/2 log(1 - 4 t (1 - t) sin^2(angle/2)) + cost angle^2,
        phase = arg(1 + t (e^(i angle) - 1)),

    in which nothing cancels at small angles; cost angle^2 is a bound on what the rest of the
    integrand grows by. At ``ends``, the nodes at which the windows end, the line comes down to the
    real one."""

    def __init__(self, weights, share, both, power, cost, ends):
        self.weights, self.share, self.both = weights, share, both
        self.power, self.cost, self.ends = power, cost, ends
        self._known, self._shifts = None, np.empty((2, 0, len(share)))

    @cached_property
    def moments(self):
        return moments(self.weights, self.share, self.both, self.power, self.cost)

    def _rows(self, first, last):
        """Growth and phase at the angles from number ``first`` to before ``last``; those known
        are a block without gaps."""
        low, high = self._known or (first, first)
        below = [self._shift(first, low)] if first < low else []
        above = [self._shift(high, last)] if last > high else []
        if below or above:
            self._shifts = np.concatenate([*below, self._shifts, *above], axis=1)
            low, high = self._known = min(first, low), max(last, high)
        return self._shifts[:, first - low : last - low]

    def _shift(self, first, last):
        spend(SHIFT * (last - first) * self.share.size)
        angle = ANGLES[first:last, None]
        return beside(self.share, self.both, angle, self.power, self.cost * angle**2)

    def log_bounds(self, y, first, last, way=1):
        """log of bounds on its integral along these lines (or at minus the angles), for heights
        from y on (or up to y)."""
        spend(BOUND * (last - first) * self.share.size)
        growth, phase = self._rows(first, last)
        exponent = growth - (way * y) * phase
        return log_mean(exponent, lambda values, _: values @ self.weights)

    def _best(self, guess, measure):
        """The largest of ``measure(first, last)`` over the grid, which has one peak."""
        guess = min(max(int(log(ANGLE / max(guess, 1e-300)) / LOG_RATIO), 0), LAST - 1)
        best, low, high = -inf, max(guess - NEAR, 0), min(guess + NEAR + 1, LAST)
        while True:
            found = measure(low, high)
            at = int(np.argmax(found))
            best, old = max(best, float(found[at])), best
            if at == 0 and low > 0 and best > old:
                low, high = max(low - 2 * NEAR, 0), low
            elif at == len(found) - 1 and high < LAST and best > old:
                low, high = high, min(high + 2 * NEAR, LAST)
            else:
                return best

    def ceiling(self, height):
        """log of a bound on the integral for heights from this one on: the least that is found."""
        pull, turn, bend = self.moments
        guess = height * pull / (bend + height**2 * turn)
        return -max(self._best(guess, lambda *some: -self.log_bounds(height, *some)), 0.0)

    def mesh(self, band, sigma, plain):
        """The widest spacing of nodes, at most ``plain``, for which a strip bounds the error by
        exp(-QUADRATURE), for heights up to ``band``. Its line comes down where the windows end,
        and there it adds at most what they leave out, or exp(STEP - QUADRATURE)."""
        _, turn, bend = self.moments
        guess = sqrt(2 * QUADRATURE / (bend + band**2 * turn))
        still, steep = self._down
        down, strip = (still + band * steep).max(axis=1), 2 * pi * sigma**2 * ANGLES

        def widths(first, last):
            size = np.maximum(self.log_bounds(band, first, last, -1), 0.0)
            return strip[first:last] / np.maximum(QUADRATURE + size, down[first:last])

        return min(plain, self._best(guess, widths))

    @cached_property
    def _down(self):
        """At minus each angle of the grid, log of how much larger an end of the windows is than on
        the real line, or than what is allowed: two terms, the second for each unit of height."""
        share, both = self.share[self.ends], self.both[self.ends]
        cost = self.cost * ANGLES[:, None] ** 2
        growth, phase = coming_down(share, both, ANGLES[:, None], self.power, cost)
        small = np.log(np.maximum(self.weights[self.ends], 1e-300)) + QUADRATURE - STEP
        return growth + np.minimum(small, 0.0), phase

    def lifted(self, edge, number, sigma, plain):
        """The same for the line at this angle of the grid, for heights from ``edge`` on. The strip
        below it ends at the real line, where the integral is 1. It is 0 where round-off grows."""
        first = max(number - 3, 0)
        size = np.maximum(self.log_bounds(edge, first, number + 1), 0.0)
        if not size[-1] < NOISY:
            return 0.0
        rooms = (ANGLES[first:number] - ANGLES[number]) / (QUADRATURE + size[:-1])
        room = min(ANGLES[number] / QUADRATURE, float(rooms.max()))
        return min(plain, 2 * pi * sigma**2 * room)

    def best_lift(self, band, sigma, plain, found):
        """A ``Lift`` with a wider spacing than ``found``, or that."""
        for number in RAISED:
            angle = float(ANGLES[number])
            if 2 * pi * sigma**2 * angle <= QUADRATURE * found.spacing:
                break
            for edge in (turn / angle for turn in TURNS if turn / angle < band):
                wide = self.lifted(edge, number, sigma, plain)
                if wide > found.spacing:
                    wide = min(wide, self.mesh(edge, sigma, plain))
                if wide > found.spacing:
                    found = Lift(wide, edge, angle)
        return found
