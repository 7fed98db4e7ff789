"""The Poisson-subsampled Gaussian step: rate N(1, sigma^2) + (1 - rate) N(0, sigma^2) against
N(0, sigma^2), where L = log(1 + rate (e^u - 1)) at the outcome x, u = (x - 1/2) / sigma^2.

M(z) is the integral of phi(x/sigma) e^(aL) over x, with a = 1 + z (or -z with the laws exchanged).
The integrand is analytic in a strip. One number says all that is needed: N(d), the integral of its
absolute value along x + id.

- The trapezoid rule with nodes h apart is off by at most 2 N(d) / (exp(2 pi d/h) - 1) on a line at
  height y. N is taken on the side on which abs(e^(iyL)) grows. This chooses h.
- On the other side the phase shrinks, and abs(M) <= N(d): that is how M falls with y (jumps-lift).

With t(x) the share of the sampled law in the density at x, and the angle d/sigma^2, the integrand
at x + id has, relative to that at x, the absolute value exp(growth - y phase):

    growth = a/2 log(1 - 4 t (1 - t) sin^2(angle/2)) + (sigma angle)^2 / 2,
    phase = arg(1 + t (e^(i angle) - 1)).

Steps that differ in sigma alone are summed together. In terms of u the loss is the same at every
sigma, and with tau = 1/sigma^2, q is N(-tau/2, tau): a row of probabilities for each step, and one
mesh for all. It is right for each row by the bounds that hold for a single one.

- Its window is that of the least sigma. Let f = q e^(aL) be the integrand there, f' that of a
  smaller tau', and M' its integral. f'/f is a constant times exp(-(1/tau' - 1/tau) u^2/2).
  If a >= 0, let u* be the peak of f. Above the upper end abs(u) >= abs(u*), so f'(u)/f'(u*) is at
  most f(u)/f(u*); and M' >= f'(u*) sqrt(2 pi tau'), as log f' + u^2/(2 tau') is convex. Below the
  lower end, 11 deviations of the widest q from its mean or more, f' <= q; and M' >= 1 - rate.
  If a < 0, log f' + u^2/(2 tau') is concave, and the one peak of f' lies between that of f and 0.
  Both ends are 11 such deviations from it or more, so f' is below e^-60 of its peak.
- Its spacing is the least that a row asks for. Where y = 0 that is the spacing of the largest
  sigma: in terms of u, ``_real_spacing`` falls with sigma. Else N(d) is summed for each row: at the
  same angle the rows differ in the law of u, and in (sigma angle)^2 / 2.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import ceil, exp, expm1, floor, inf, log, log1p, pi, sqrt

import numpy as np

from .curves import OneStep, gaussian_log_delta, log_share, mixed_loss
from .law import EPS, UNDERFLOW, Rule, Step, kept, ratios_to_first

WIDE = 11.0  # standard deviations: what is beyond has 4e-28
LEFT_OUT = 60.0  # a window ends at exp(-60) of the peak
QUADRATURE = 60.0  # exp(-60) of M is the error of the mesh: times 1e12 rounds, 1e-14
WIDEST, FLAT = 2.33, 0.2  # angle, analytic below pi; spacing of u for a negative power
KEPT = 2**15  # numbers that are cached
LARGEST, RATIO = 0.5, 4.0  # of the thresholds of bands: the first at most; of two neighbours


@dataclass(frozen=True)
class SampledGaussian(Step):
    """The mixture against N(0, sigma^2), or with ``side`` -1 the reverse. Or several of them: rows
    of these ``sigmas``, in ascending order, each run so often. ``sigma`` is the least; an outcome
    x is told as that of the least, too."""

    sigma: float
    rate: float
    side: int = 1
    sigmas: tuple = field(default=(), repr=False)
    counts: tuple = field(default=(1,), repr=False)

    empty = inf  # -log of the law of a row that is as good as nothing
    digits, smooth = QUADRATURE, True
    sorts = property(lambda self: self.side > 0)
    kin = property(lambda self: (self.rate, self.side))

    def curve(self):
        size = 1 / self.sigma
        return OneStep(partial(gaussian_log_delta, size), size, size**2, self.rate, self.side)

    def sampled(self, rate):
        return replace(self, rate=self.rate * rate)

    def weaker(self, other):
        """It may have more noise, on a smaller sample (X-counting-filter)."""
        alone = type(self) is type(other) and self.sigmas == other.sigmas == ()
        alone = alone and self.side == other.side and self.sigma >= other.sigma
        return self == other or (alone and self.rate <= other.rate)

    @kept(64)  # neighbouring bands share a threshold
    def part(self, tau, lower=0.0):
        """The step with the weight s_tau - s_lower; itself, if that is 1."""
        from .cut import Cut  # which is made of this class

        given = self.sigma, self.rate, self.side, self.sigmas, self.counts
        return Cut(*given, tau, lower) if tau < inf or lower else self

    def thresholds(self):
        """The largest threshold: RATIO times what nobody loses in one round, or LARGEST; and a
        bound on the least, below which are most losses. Both are well within the window."""
        odds = np.add.outer([-8.0, 13.0], 0.5 / self.each) / self.each
        ends = np.logaddexp(0, odds + log(self.rate) - log1p(-self.rate))
        first, last, least = float(ends[0].min()), float(ends[1].max()), self.rate / 12
        return min(LARGEST, RATIO * last), max(least, first)

    @cached_property
    def times(self):
        return np.array(self.counts, float)

    @cached_property
    def each(self):
        """All sigmas."""
        return np.array(self.sigmas or [self.sigma])

    @cached_property
    def angles(self):
        """Those that are tried, down to the small ones that a tiny loss needs."""
        return WIDEST * 2 ** -np.arange(18 + 2 * max(0.0, np.log2(self.each[-1] / 64)))[:, None]

    def flipped(self):
        return replace(self, side=-self.side)

    def top(self):
        top = inf if self.side > 0 else -log1p(-self.rate) * (1 + 4 * EPS)
        return top * (1 - 16 * EPS), top, -inf

    def tilt_limit(self):
        """From here on the tilted law lies about 40 deviations out: past 2 far sigma its peak is at
        the power; for sigma above 20 each peak is at power times rate or beyond. With the laws
        exchanged it lies 15 deviations out, or its loss is three quarters of the largest.

        Or here a peak far out begins to count for M. At x0 = 1/2 + sigma^2 odds a row was as likely
        taken as not. By symmetry the height at x0 + w is s w/sigma^2 below that at x0 - w, with the
        power 2 x0 - s. The far peak has w >= 2 sigma^2 sqrt(1.5 (odds - 2)) if s is small, by tanh
        y >= y/(1 + y^2/3): about e^-70 of the near one. Bands of losses see what is between."""
        if self.side < 0:
            return (300 + 41 * self.sigma) / self.rate
        odds, far = log1p(-self.rate) - log(self.rate), -self.sigma * log(self.rate)
        limit = min((40 + 2 * far) * self.sigma, 40 * self.sigma / self.rate) + 1
        if self.sigma * (odds - 2) > 20:
            limit = min(limit, 2 * self.sigma**2 * odds - 35 / sqrt(1.5 * (odds - 2)))
        return limit

    def spread(self):
        """The lesser of two estimates: of rate (e^u - 1), and of 1/sigma^2 with this rate."""
        far = self.each**-2.0
        near = np.sqrt(self.rate * np.expm1(np.minimum(far, 700.0)))
        return sqrt(self.rate * float(self.times @ np.minimum(far, near) ** 2))

    def _pull(self, x, power):
        """sigma^2 times the slope of power L at x; the peaks are its fixed points."""
        odds = (x - 0.5) / self.sigma**2 + log(self.rate) - log1p(-self.rate)
        return power / (1 + exp(min(-odds, 700.0)))

    def _height(self, x, power):
        """log of the integrand."""
        u = (x - 0.5) / self.sigma**2
        loss = log1p(self.rate * expm1(u)) if u < 500 else u + log(self.rate)
        return power * loss - 0.5 * (x / self.sigma) ** 2

    def _next_peak(self, x, power):
        """From x to the next peak of a positive power: the pull increases with x."""
        for _ in range(200):
            old, x = x, self._pull(x, power)
            if abs(x - old) <= 0.1 * self.sigma:
                break
        return x

    def _bisect(self, holds, x, beyond):
        """Bisection: the end of the range around x where ``holds`` is true, towards ``beyond``."""
        while abs(x - beyond) > 0.2 * self.sigma + 1e-12 * abs(beyond):
            middle = 0.5 * (x + beyond)
            x, beyond = (middle, beyond) if holds(middle) else (x, middle)
        return beyond

    def _peak(self, power):
        """The one peak of a negative power, between the pull at 0 and 0; for others 0."""
        return self._bisect(lambda x: x > self._pull(x, power), 0.0, min(self._pull(0, power), 0.0))

    @kept(KEPT)
    def _window(self, c):
        """An interval of x for both laws and all that are tilted by at most c. Beyond the limit of
        the tables, where Rényi orders may be, it holds only the law tilted by c. With a positive
        power the integrand has one or two peaks, between 0 and the power; so far out that its
        logarithm loses LEFT_OUT to round-off, it is a normal density."""
        power, wide = self._power(c), WIDE * self.sigma
        if power <= 1:
            return self._peak(power) - wide, 1 + wide
        near, far = self._next_peak(0.0, power), self._next_peak(power, power)
        low, top = self._height(near, power), self._height(far, power)
        alone = c > 1.01 * self.tilt_limit() and (top > low + LEFT_OUT or far - near < wide)
        if alone and top * EPS > 1:
            return far - wide, far + wide
        least = max(low, top) - LEFT_OUT
        end = partial(self._bisect, lambda x: self._height(x, power) > least)
        peak = far if top > least else near
        return end(peak, -wide) if alone else -wide, max(end(peak, power + wide), 1 + wide)

    def _far_window(self, c):
        """The window of ``_log_size``; with the laws exchanged, far enough out for what grows."""
        first, last = self._window(c)
        return (first, last) if self.side > 0 else (first - 20 * self.sigma, 1 + 36 * self.sigma)

    def _lift(self, x):
        """At all angles: log of abs(e^L) at x + id over e^L at x, the phase, and log of a bound on
        the weight of an outcome; and log of that weight at x."""
        share = np.exp(log_share((x - 0.5) / self.sigma**2, self.rate))
        turned = 2 * np.sin(self.angles / 2) ** 2
        grown = 0.5 * np.log1p(-2 * turned * share * (1 - share))
        phase = np.arctan2(share * np.sin(self.angles), 1 - turned * share)
        return grown, phase, 0.0, 0.0

    @kept(4)
    def _log_size(self, c):
        """A function of y, > 0 where the phase shrinks: for each row bounds on log N(d) / M(c) at
        all angles, by sums on the mesh of ``_real_spacing``. And one of a height: the largest
        spacing of nodes for which no side, at any angle up to each, is above exp(-digits), or what
        stands at its foot. And which rows are more than nothing.

        The law is that of the window. So the way along x + id has two sides, from the ends of the
        window up to it. There all angles up to its own are passed, and each factor is at most its
        largest one. But where nodes are h apart, a side counts exp(-2 pi d/h) at its own d only."""
        spacing = self._real_spacing(c)
        x, loss, log_p = self._nodes(self._far_window(c), spacing)
        grown, phase, most, log_weight = self._lift(x)
        terms, growth = log_p + c * loss, self._power(c) * grown
        weighted = terms + log_weight
        top = weighted.max(axis=1)
        terms -= (top + np.log(np.exp(weighted - top[:, None]).sum(axis=1)))[:, None]
        front, ratios = ratios_to_first(terms)
        cost = 0.5 * np.multiply.outer(self.each, self.angles[:, 0]) ** 2
        exponents, foot = terms[0] + growth + most, terms[:, None, [0, -1]]
        ends = foot + (np.maximum(growth, 0.0) + most)[:, [0, -1]] + cost[:, :, None]
        sides = np.maximum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
        sides = sides + np.log(self.angles * self.sigma**2 / spacing)
        still = np.logaddexp.reduce(sides, axis=2)  # what both add where the phase shrinks
        turn, rise = phase[:, [0, -1]], ends + np.minimum(self.digits, -foot)
        strip = 2 * pi * self.sigma**2 * self.angles[:, 0]

        def largest(height):
            steep = np.maximum((rise + height * turn).max(axis=2) / strip, 1e-300)
            return 1 / np.maximum.accumulate(steep[:, ::-1], axis=1)[:, ::-1]

        def log_size(y):
            turned = exponents - y * phase
            top = turned.max(axis=1)
            sums = ratios @ np.exp(turned - top[:, None]).T + UNDERFLOW
            grown = np.logaddexp.reduce(sides - y * turn, axis=2) if y < 0 else still
            return np.logaddexp(np.log(sums) + front + top + cost, grown)

        return log_size, largest, top >= min(-self.empty, float(top.max()))

    def _real_spacing(self, c):
        """Spacing of nodes where y = 0: from N(d), by which growth is bounded, at the best angle.
        For a negative power it is a first guess: right to e^(-WIDE^2/2) for a normal density of the
        width of the peak, and to e^-60 for a strip up to the angle 1.9 (FLAT). N(d) has the say."""
        if self.sigmas:
            last = SampledGaussian(self.sigmas[-1], self.rate, self.side)
            return last._real_spacing(c) * (self.sigma / last.sigma) ** 2
        power = self._power(c)
        angle = min(WIDEST, sqrt(2 * QUADRATURE) / self.sigma)
        if power >= 0:
            return 2 * pi * self.sigma**2 * angle / (QUADRATURE + 0.5 * (self.sigma * angle) ** 2)
        sharp = sqrt(1 - self._peak(power) / self.sigma**2) / self.sigma
        return 2 * pi / max(WIDE * sharp, 2 * pi / (FLAT * self.sigma**2))

    @kept(KEPT)
    def _spacing(self, c, band):
        """Spacing of nodes for heights up to the band."""
        plain, positive = self._real_spacing(c), self._power(c) >= 0
        return plain if positive and not band else min(plain, self._spacing_of_strip(c, band))

    def _spacing_of_strip(self, c, band):
        """That at which the best of all strips has an error of exp(-digits), in each row."""
        log_size, largest, felt = self._log_size(c)
        strip = 2 * pi * self.sigma**2 * self.angles[:, 0]
        spacing = strip / (self.digits + np.maximum(log_size(-band), 0.0))
        return float(np.minimum(spacing, largest(band)).max(axis=1)[felt].min())

    def fallings(self, c):
        log_size = self._log_size(c)[0]
        return lambda height: np.minimum(log_size(height).min(axis=1), 0.0)

    def size(self, c, band):
        (first, last), spacing = self._window(c), self._spacing(c, band)
        return (last - first) / spacing + 2 if spacing else inf

    def _nodes(self, window, spacing):
        """Nodes at multiples of the spacing, their losses, and a row of log probabilities of each
        step, of which they are the outcomes x + more."""
        x = spacing * np.arange(floor(window[0] / spacing), ceil(window[1] / spacing) + 1.0)
        u, sigma = (x - 0.5) / self.sigma**2, self.each[:, None]
        wider = (sigma / self.sigma) ** 2
        each, unit = x + (wider - 1) * (x - 0.5), np.log(spacing * wider / (sigma * sqrt(2 * pi)))
        loss = mixed_loss(u, self.rate)
        log_p = unit - 0.5 * (each / sigma) ** 2
        if self.side < 0:
            return x, -loss, log_p
        log_p += loss
        # where the row was probably taken, log q and the loss nearly cancel
        if (first := int(np.searchsorted(u, 1 - log(self.rate)))) < len(u):
            square, taken = ((each[:, first:] - 1) / sigma) ** 2, log_share(u[first:], self.rate)
            log_p[:, first:] = unit - 0.5 * square + log(self.rate) - taken
        return x, loss, log_p

    @kept(4)
    def rule(self, c, band):
        return Rule(*self._nodes(self._window(c), self._spacing(c, band))[1:])
