"""Densities between atoms: Laplace noise, sampled or not; Gaussian noise under substitution.

In terms of u, the loss of the step without sampling, q has the density exp(-(u + a)/2) / 4 on
(-a, a) for Laplace noise (a = 1/scale), and a normal one for Gaussian noise. The sampled loss is
m(u) = log G, G = 1 + rate (e^u - 1). Gauss-Legendre panels over u are the rule.

Along a line the outcome of Laplace noise is lifted, from -a to a through Im u > 0 (< 0 if p and q
are exchanged). Where abs(Im u) < pi, G has no zero, so by Cauchy's theorem M is the same; and arg G
has the sign of Im u, so exp(iyL) shrinks: a few hundred nodes serve all heights.

How M falls for Laplace noise: for a density g of the loss, integrating by parts once shows that
abs(int g(L) e^(iyL) dL) is at most 2/y times the sum of the local maxima of g, ends included. Under
a tilt g has no maximum but at its ends.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil, erf, exp, expm1, inf, log, pi, sqrt

import numpy as np

from ..numerics import expm1_complex, gauss, log1p_complex, quotient
from .cut import ANGLES, log_weights, most_weight
from .curves import OneStep, inverse_mixed_loss, log_share, mixed_loss
from .law import EPS, Rule, Step, kept, phase_sums
from .sampled_gaussian import LARGEST, RATIO, SampledGaussian

LATE = 64.0  # above this height, in units of 1/a, the closed form of M is used
STEEPEST, REACH = 80.0, 9.0  # times a threshold: the largest tilt, and where weights have fallen
LEVELS = np.exp(0.4 * np.arange(-6, 7))  # panels around a threshold


def laplace_log_delta(end, epsilon):
    """log delta of Laplace noise whose largest loss is `end`: 1 - exp((epsilon - end)/2), or 0."""
    return np.log(-np.expm1(np.minimum((epsilon - end) / 2, 0.0)))


def turned_loss(u, rate):
    """m(u) off the real line, abs(Im u) < pi."""
    if rate == 1:
        return u
    rise = rate * expm1_complex(np.minimum(u.real, 700.0) + 1j * u.imag)
    right = u.real > 0
    one, other = np.where(right, [[rate], [1 - rate]], [[1 - rate], [rate]])
    far = np.where(right, u, 0.0) + np.log(one + other * np.exp(np.where(right, -u, u)))
    return np.where(abs(rise) < 0.5, log1p_complex(rise), far)


@dataclass(frozen=True)
class Laplace(Step):
    """The mixture rate Lap(1, scale) + (1 - rate) Lap(0, scale) against Lap(0, scale), or with
    ``side`` -1 the reverse: atoms at u = -a and a."""

    scale: float
    rate: float = 1.0
    side: int = 1

    @cached_property
    def end(self):
        """1/scale, rounded up: the largest loss of a step is told as its epsilon."""
        return quotient(1, self.scale, inf)

    def curve(self):
        log_delta = partial(laplace_log_delta, self.end)
        return OneStep(log_delta, self.end, self.end, self.rate, self.side)

    def sampled(self, rate):
        return replace(self, rate=self.rate * rate)

    def flipped(self):
        return self if self.rate == 1 else replace(self, side=-self.side)

    def top(self):
        mixed = float(abs(mixed_loss(self.side * self.end, self.rate))) * (1 + 4 * EPS)
        top = self.end if self.rate == 1 else mixed
        log_p = log(self.rate + (1 - self.rate) * exp(-self.end)) if self.side > 0 else 0.0
        return top * (1 - 16 * EPS), top, log_p - log(2)

    def tilt_limit(self):
        return 4e3 / self.top()[1]

    def log_q(self, u):
        return -(u + self.end) / 2 - log(4)

    def _share(self, u):
        """The slope of m."""
        return float(self.rate * np.exp(u - mixed_loss(u, self.rate)))

    def _height(self, c):
        """How far u is lifted. A negative power of G grows, but by less than 3 near u = -a, and
        further on by less than it has fallen."""
        power, share = self._power(c), min(self._share(min(1 - self.end, self.end)), 0.5)
        return 1.5 if power >= 0 else sqrt(2 / max(2.0, -power * share * (1 - share)))

    @kept(16)
    def edges(self, c, band):
        """Ends of panels of 16 nodes, ever shorter ones next to both ends, and where u turns."""
        width = self._height(c) / 2
        ends = [np.linspace(-self.end, self.end, ceil(2 * self.end / width) + 1)]
        for sign in (-1, 1):
            steep = (abs(self._power(c)) + band) * self._share(min(sign * self.end + 1, self.end))
            count = ceil(max(log(width / 2 * (1 + steep)) / log(1.8), 0.0))
            steps = width * 1.8 ** -np.arange(count + 1.0)
            ends.append(sign * (self.end - np.minimum(steps, self.end)))
        return np.unique(np.concatenate(ends))

    def _late(self, height):
        return self.rate == 1 and height * self.end > LATE

    def work(self, c, h, count):
        late = self._late(h * count)
        return 60 * count if late else 4 * len(self.edges(c, h * (count - 1))) * count

    @kept(4)
    def rule(self, c, band):
        """With a band u is lifted, so that exp(iyL) shrinks."""
        u, weight = gauss(self.edges(c, band))
        if band:
            up, height = 2 * (self.end - abs(u)), self._height(c)
            weight = weight * np.where(up < height, 1 - 2j * self.side * np.sign(u), 1.0)
            u = u + 1j * self.side * np.minimum(up, height)
        log_q = self.log_q(u) + np.log(weight)
        log_q = np.concatenate([[-log(2)], log_q, [-log(2) - self.end]])
        u = np.concatenate([[-self.end], u, [self.end]])
        loss = turned_loss(u, self.rate) if band else mixed_loss(u, self.rate)
        return Rule(self.side * loss, log_q + loss if self.side > 0 else log_q)

    def rows_along(self, c, h, count):
        """Unsampled, M(z) = e^(-a/2) (cosh s + (a/2) (sinh s)/s), s = (z + 1/2) a, is even in s."""
        if not self._late(h * count):
            yield from super().rows_along(c, h, count)
            return
        far, sign = abs(c + 0.5) * self.end or 1e-300, 1.0 if c >= -0.5 else -1.0
        angle, turn = h * self.end * np.arange(count), np.array([-2 * sign * self.end])
        s, (rise,) = far + 1j * sign * angle, phase_sums(np.ones((1, 1)), turn, h, count)[0]
        rise *= exp(-2 * far)
        rise += expm1(-2 * far)  # e^(-2s) - 1
        rise *= 0.5 - self.end / 4 / s  # M e^-s - 1, up to a constant
        s += log1p_complex(rise)
        s -= s[0].real
        noise = EPS * (4 + 2 * (far + angle)) / np.clip(abs(1 + rise), 1e-300, 1.0)
        noise = np.log1p(noise) + 2 * EPS * (abs(s.real) + abs(s.imag))
        yield slice(None), s[None], noise[None]

    def fallings(self, c):
        loss, log_p, *_ = self.rule(c, 0.0)
        log_mass = float(self.cumulants(c)[0][0])
        tilted = log_p + c * loss - log_mass
        u = np.linspace(-self.end, self.end, 3)
        power = 1 + self._power(c)
        density = self.log_q(u) - u + power * mixed_loss(u, self.rate) - log(self.rate)
        peak = float(np.max(density)) - log_mass + 0.1 + log(4)
        atoms = float(np.logaddexp(*tilted[[0, -1]])) + 1e-12
        return lambda height: np.fmin([np.logaddexp(atoms, peak - np.log(height))], 0.0)


@dataclass(frozen=True)
class Symmetrised(SampledGaussian):
    """Gaussian noise sampled under substitution: N(1, sigma^2) and N(0, sigma^2) at the outcome
    x = 1/2 + sigma^2 u. Outcomes of u > 0 have the loss m(u), with the mass of the mixture, or
    -m(u), with that of q; what is left loses nothing. It is its own reverse (Balle, Barthe and
    Gaboardi 2018, Theorem 2; Lebeda et al. 2024).

    Of a part of it, as of a ``Cut``, only the losses of a size between two thresholds count."""

    tau: float = field(default=inf, repr=False)
    lower: float = field(default=0.0, repr=False)

    kin = None

    def sampled(self, _rate):
        raise ValueError(f"loss must not be sampled under substitution already, got {self!r}")

    @kept(64)
    def part(self, tau, lower=0.0):
        return replace(self, tau=tau, lower=lower)

    def thresholds(self):
        last = float(mixed_loss((0.5 + 13 * self.sigma) / self.sigma**2, self.rate))
        return min(LARGEST, RATIO * last), self.rate / 12 / max(1.0, self.sigma)

    def flipped(self):
        return self

    def tilt_limit(self):
        return super().tilt_limit() if self.tau == inf else STEEPEST / self.tau

    def log_rest(self):
        """log of the mass of what loses nothing."""
        return log((1 - self.rate) * erf(sqrt(0.125) / self.sigma))

    def log_q(self, u):
        return log(self.sigma / sqrt(2 * pi)) - 0.5 * (0.5 / self.sigma + self.sigma * u) ** 2

    def _panels(self, c, band):
        """Where u begins and ends, how many panels the density needs, and how many the loss."""
        whole = self.tau == inf
        first, last = self._window(abs(c)) if whole else (0.0, 0.0)  # outcomes
        if not whole or self.lower:
            last = max(last, 0.5 + 40 * self.sigma)
        first, last = (max(x - 0.5, 0.0) / self.sigma**2 for x in (first, last))
        if not whole:  # beyond, the weight is nothing
            last = min(last, float(inverse_mixed_loss(REACH * self.tau, self.rate)))
        if self.lower:
            least = float(inverse_mixed_loss(self.lower / REACH, self.rate))
            first = max(first, min(least, 0.9 * last))
        panel = min(0.6 / self.sigma, 2.4)  # the density is 1/sigma wide, the odds grow by e^u
        turns = max(band / 8, 0.0 if whole else (1 + abs(c)) / 6)  # panels for a loss of 1
        return first, last, (last - first) / panel, turns * float(mixed_loss(last, self.rate))

    @kept(16)
    def edges(self, c, band):
        """Ends of panels of 16 nodes: for the density, for the loss, and for the weight."""
        first, last, count, more = self._panels(c, band)
        ends = mixed_loss(np.array([first, last]), self.rate)
        known = [x for x in (self.tau, self.lower) if 0 < x < inf]
        losses = [np.linspace(ends[0], ends[1], int(more) + 2), *np.multiply.outer(known, LEVELS)]
        marks = inverse_mixed_loss(np.concatenate(losses), self.rate)
        marks = np.concatenate([np.linspace(first, last, int(count) + 2), marks])
        return np.unique(np.clip(marks, first, last))

    def size(self, c, band):
        return 32 * (sum(self._panels(c, band)[2:]) + 30)

    def _nodes(self, edges):
        """Nodes u, their losses, and log of the masses of q and of the mixture there. Where the row
        was probably taken, log q and the loss nearly cancel."""
        u, weight = gauss(edges)
        loss, log_q = mixed_loss(u, self.rate), self.log_q(u) + np.log(weight)
        taken = self.log_q(-u) + np.log(weight) + log(self.rate) - log_share(u, self.rate)
        return u, loss, log_q, np.where(u > 1 - log(self.rate), taken, log_q + loss)

    @kept(4)
    def rule(self, c, band):
        _, loss, *both = self._nodes(self.edges(c, band))
        log_q, log_p = both + log_weights(loss, self.tau, self.lower)[0]
        rest = [] if self.lower else [self.log_rest()]
        losses = np.concatenate([-loss, np.zeros(len(rest)), loss])
        return Rule(losses, np.concatenate([log_q, rest, log_p]), **self._left_out)

    @cached_property
    def _left_out(self):
        """The mass of p that does not count; that of q is the same."""
        if self.tau == inf and not self.lower:
            return {}
        whole = replace(self, tau=inf, lower=0.0)
        near = np.concatenate([whole.edges(0.0, 0.0), self.edges(0.0, 0.0)])
        _, loss, *both = self._nodes(np.unique(near))
        out = np.exp(both + log_weights(loss, self.tau, self.lower)[1])
        rest = exp(self.log_rest()) if self.lower else 0.0
        return {"infinite": float(out.sum()) + rest, "gap": 0.0}

    def fallings(self, c):
        """u > 0 is turned to u e^(i angle/(1 + bend u)), for -L to the conjugate of it, and the
        phase shrinks. A side, from an end of the window up to it, is at most its length times what
        is largest there. What loses nothing stays."""
        u, _, log_q, _ = self._nodes(self.edges(c, 0.0))
        turned = [self._turned(u, log_q, c, *way) for way in self._turns()]
        log_terms, phases, sides = map(np.array, zip(*turned, strict=True))
        log_mass = float(self.cumulants(c)[0][0])
        terms, rest = log_terms - log_mass, -inf if self.lower else self.log_rest()
        still = np.logaddexp(np.logaddexp.accumulate(sides), rest) - log_mass

        def bound(height):
            turned = terms - height * phases
            top = turned.max(axis=1)
            sums = top + np.log(np.exp(turned - top[:, None]).sum(axis=1))
            return np.array([min(0.0, float(np.logaddexp(sums, still).min()))])

        return bound

    def _turns(self):
        """Small angles show how many rounds fall together."""
        if self.lower:
            return [(angle, bend) for angle in ANGLES[::-1, 0] for bend in (1.0, 1 + self.sigma)]
        return [(ANGLES[0, 0] / 2**n, 1 + self.sigma) for n in range(17, -1, -1)]

    def _turned(self, t, log_q, c, angle, bend):
        """On one way: log of the terms of both signs, the phase, and log of the side."""
        turn = angle / (1 + bend * t)
        u = t * np.exp(1j * turn)
        loss = turned_loss(u, self.rate)
        moved = (self.log_q(u) - self.log_q(t)).real + most_weight(loss[None], self)[0]
        moved += np.logaddexp((1 + c) * loss.real, -c * loss.real)
        longer = 0.5 * np.log1p((t * turn * bend / (1 + bend * t)) ** 2)
        # along a side Re l falls from the loss at its foot, all else grows
        ends = [0, -1] if self.lower else [-1]
        fall = mixed_loss(t[ends], self.rate) - loss.real[ends]
        side = moved[ends] + max(1 + c, -c) * fall + self.log_q(t[ends])
        side = np.logaddexp.reduce(side + np.log(t[ends] * turn[ends]))
        return log_q + moved + longer, loss.imag, side
