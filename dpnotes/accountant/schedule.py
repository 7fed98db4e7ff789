"""Many sampled Gaussian steps that differ in sigma alone: one mesh of outcomes serves all of them.

In terms of u = (x - 1/2) / sigma^2 the loss log(1 + rate (e^u - 1)) is the same at every sigma.
Only the law of u changes: with tau = 1/sigma^2, q is N(-tau/2, tau). So what is asked of all steps
is a product of two matrices: the probabilities, a row for each step, and what depends on the loss.

The mesh is right for each step by the bounds that hold for a single one.

- Its window is that of the least sigma. Let f = q e^(aL) be the integrand there, f' that of a
  smaller tau', and M' its integral. f'/f is a constant times exp(-(1/tau' - 1/tau) u^2/2).
  If a >= 0, let u* be the peak of f. Above the upper end abs(u) >= abs(u*), so f'(u)/f'(u*) is at
  most f(u)/f(u*); and M' >= f'(u*) sqrt(2 pi tau'), as log f' + u^2/(2 tau') is convex. Below the
  lower end, which is 11 deviations of q from its mean or more, f' <= q; and M' >= 1 - rate.
  If a < 0, log f' + u^2/(2 tau') is concave, and the one peak of f' lies between that of f and 0.
  Both ends are 11 deviations of q from it or more, so f' is below e^-60 of its peak.
- Its spacing is the least that a step asks for. Where y = 0 that is the spacing of the largest
  sigma: in terms of u, ``SampledGaussian._real_spacing`` falls with sigma. Else it is chosen from
  N(d), which is summed for each step.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from math import ceil, floor, log, pi

import numpy as np

from ..numerics import log1p_complex, mean_excess
from .law import EPS, TERM
from .sampled_gaussian import SampledGaussian, log_share, mixed_loss

MANY = 21  # steps that differ: fewer are sorted by their losses where one line is not enough
LEAST, MOST = 8, 512  # steps that share a mesh
APART = 1.5  # the ratio of their sigmas is at most this
ENTRIES = 200_000  # of a matrix of steps and nodes
UNDERFLOW = 1e-300  # more than what is lost in a sum of a few thousand terms


@dataclass(frozen=True)
class Schedule(SampledGaussian):
    """Steps of these sigmas, in ascending order, each run so often; ``sigma`` is the least, and an
    outcome is told as its x."""

    sigmas: tuple = ()
    counts: tuple = ()

    rounds = property(lambda self: sum(self.counts))

    @cached_property
    def _steps(self):
        return [SampledGaussian(sigma, self.rate, self.side) for sigma in self.sigmas]

    @cached_property
    def _times(self):
        return np.array(self.counts, float)

    @cached_property
    def _tau(self):
        return np.array(self.sigmas)[:, None] ** -2.0

    angles = property(lambda self: self._steps[-1].angles)

    def spread(self):
        return sum(k * step.spread() ** 2 for step, k in self._apart()) ** 0.5

    def _window(self, c):
        return self._steps[0]._window(c)

    def _real_spacing(self, c):
        last = self._steps[-1]
        return last._real_spacing(c) * (self.sigma / last.sigma) ** 2

    def _nodes(self, window, spacing):
        """As for one step, with a row of log probabilities for each."""
        unit = spacing / self.sigma**2
        ends = [(x - 0.5) / self.sigma**2 / unit for x in window]
        u = unit * np.arange(floor(ends[0]), ceil(ends[1]) + 1.0)
        loss, tau = mixed_loss(u, self.rate), self._tau
        front = log(unit) - 0.5 * np.log(2 * pi * tau)
        log_q = front - (u + tau / 2) ** 2 / (2 * tau)
        if self.side < 0:
            return 0.5 + self.sigma**2 * u, -loss, log_q
        taken = front - (u - tau / 2) ** 2 / (2 * tau) + log(self.rate) - log_share(u, self.rate)
        return 0.5 + self.sigma**2 * u, loss, np.where(u > 1 - log(self.rate), taken, log_q + loss)

    def cumulant(self, c):
        if c > 1.01 * self.tilt_limit():  # far out each step has its own window
            found = [k * np.array(step.cumulant(c)) for step, k in self._apart()]
            return tuple(np.sum(found, axis=0).tolist())
        loss, log_p, *_ = self.rule(c, 0.0)
        tilted, sizes = c * loss, TERM + abs(log_p)
        terms, first = mean_excess(log_p, tilted), mean_excess(log_p, -loss)
        rise = terms.sum(axis=1) + c * first.sum(axis=1)
        noise = (terms * (sizes + abs(tilted))).sum(axis=1) + TERM * abs(rise)
        noise += abs(c) * (first * (sizes + abs(loss))).sum(axis=1)
        exponents = log_p + tilted
        top = exponents.max(axis=1)
        near = (top < 20) & (rise > -0.5) & (rise < 1e9)
        terms = np.exp(exponents - top[:, None])
        mass, off = terms.sum(axis=1), (terms * (sizes + abs(tilted))).sum(axis=1)
        value = np.where(near, np.log1p(np.where(near, rise, 0.0)), top + np.log(mass))
        noise = np.where(near, noise / np.where(near, 1 + rise, 1.0), off / mass)
        return float(self._times @ value), EPS * float(self._times @ noise)

    def _apart(self):
        return zip(self._steps, self.counts, strict=True)

    def table(self, c):
        """As bounds, where numbers underflow: K is not below its value."""
        loss, log_p = self.rule(float(c.max()), 0.0)[:2]
        tilted = log_p[0] + np.multiply.outer(c, loss)  # of the least sigma
        top = tilted.max(axis=1)
        tilted = np.exp(tilted - top[:, None])
        other = log_p - log_p[0]  # falls with abs(u)
        most = other.max(axis=1)
        other = np.exp(other - most[:, None])
        mass = other @ tilted.T + UNDERFLOW
        mean, square = (other @ (tilted * loss**n).T / mass for n in (1, 2))
        value = top + np.log(mass) + most[:, None]
        return np.array([self._times @ x for x in (value, mean, np.maximum(square - mean**2, 0.0))])

    def work(self, c, h, count, _room):
        return len(self.sigmas) * count * (200 + self.size(c, h * (count - 1)))

    def along(self, c, h, count, _room=0.0):
        loss, log_p, *_ = self.rule(c, h * (count - 1))
        exponents = log_p + c * loss
        weights = np.exp(exponents - exponents.max(axis=1)[:, None])
        weights /= weights.sum(axis=1)[:, None]
        sizes = weights * (TERM + abs(log_p) + abs(c * loss))
        first, whole, turn = sizes @ abs(loss), 2 * sizes.sum(axis=1), 5 * (weights @ abs(loss))
        value, noise = np.empty(count, complex), np.empty(count)
        block = max(1, ENTRIES // max(log_p.shape))
        for at in range(0, count, block):
            y = h * np.arange(at, min(at + block, count))
            angle = np.multiply.outer(loss, y)
            moved = np.empty((len(weights), len(y)), complex)
            moved.real, moved.imag = (
                weights @ (-2 * np.sin(angle / 2) ** 2),
                weights @ np.sin(angle),
            )
            moved = log1p_complex(moved)
            value[at : at + block] = self._times @ moved
            most = np.minimum(first[:, None] * y, whole[:, None] + turn[:, None] * y)
            error = EPS * most * np.exp(-np.maximum(moved.real, -700.0))
            noise[at : at + block] = self._times @ np.log1p(error)
        return value, np.expm1(np.minimum(noise, 700.0))

    @lru_cache(maxsize=2)  # noqa: B019
    def _log_size(self, c):
        """As for one step, with a row for each: at the same angles their sums differ in the law of
        u, and in (sigma angle)^2 / 2."""
        spacing = self._real_spacing(c)
        x, loss, log_p = self._nodes(self._far_window(c), spacing)
        grown, phase, _ = self._lift(x)
        terms, growth = log_p + c * loss, self._power(c) * grown
        terms -= terms.max(axis=1)[:, None]
        terms -= np.log(np.exp(terms).sum(axis=1))[:, None]
        weights, cost = np.exp(terms), 0.5 * self.angles[:, 0] ** 2 / self._tau
        foot = terms[:, None, [0, -1]]
        ends = foot + np.maximum(growth, 0.0)[:, [0, -1]] + cost[:, :, None]
        sides = np.maximum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        sides = sides + np.log(self.angles * self.sigma**2 / spacing)
        turn, rise = phase[:, [0, -1]], ends + np.minimum(self._digits(), -foot)
        strip = 2 * pi * self.sigma**2 * self.angles[:, 0]

        def largest(height):
            steep = np.maximum((rise + height * turn).max(axis=2) / strip, 1e-300)
            return 1 / np.maximum.accumulate(steep[:, ::-1], axis=1)[:, ::-1]

        def log_size(y):
            found = growth - y * phase
            top = found.max(axis=1)
            size = np.log(weights @ np.exp(found - top[:, None]).T + UNDERFLOW) + top + cost
            return np.logaddexp(size, np.logaddexp.reduce(sides - min(y, 0.0) * turn, axis=2))

        return log_size, largest

    def falls(self, c):
        log_size, _ = self._log_size(c)
        return lambda height: float(self._times @ np.minimum(log_size(height).min(axis=1), 0.0))


def gathered(parts):
    """The parts of a composition, where many sampled Gaussian steps are a few schedules."""
    steps = [part for part in parts if type(part[0]) is SampledGaussian]
    if len(steps) < MANY:
        return parts
    found = [part for part in parts if type(part[0]) is not SampledGaussian]
    steps.sort(key=lambda part: (part[0].rate, part[0].side, part[0].sigma))
    for _, alike in groupby(steps, lambda part: (part[0].rate, part[0].side)):
        left = list(alike)
        while left:
            most = APART * left[0][0].sigma
            near = [part for part in left[:MOST] if part[0].sigma <= most]
            left = left[len(near) :]
            if len(near) < LEAST:
                found += near
                continue
            (first, _), sigmas = near[0], tuple(step.sigma for step, _ in near)
            counts = tuple(k for _, k in near)
            found.append((Schedule(first.sigma, first.rate, first.side, sigmas, counts), 1))
    return tuple(found)
