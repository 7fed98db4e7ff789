"""The Poisson-subsampled Gaussian step, whose law is a smooth integral over the outcome x.

Its moments E exp(zL) have no closed form, but their integrand is analytic in a strip around the
real x, where the trapezoid rule with nodes a distance h apart is off by at most
(N(d) + N(-d)) / (exp(2 pi d/h) - 1), N(d) the integral of the absolute integrand along x + id
(jumps-quadrature). How large that is is computed (``_shifted``), and gives both the mesh for a
line (``_nodes``) and a bound on the integral itself, for the line may be moved to where it is
smallest (``ceiling``, jumps-lift).
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, expm1, floor, frexp, log, log1p, pi, sqrt

import numpy as np

from .._scipy import ndtri_exp
from .law import (
    EPS,
    Law,
    exact_step,
    gauss_between,
    inverse_mixed_loss,
    line_of_law,
    mean_phase,
    mixed_loss,
    mixed_loss_complex,
    multiples,
)
from .moments import Moments
from .shifted import SHIFT, Lift, Shifted, shares
from .step import Step
from .tilted import Tilted
from .work import spend

__all__ = []

VALUE = 40  # work of the density at a node
SHORT = 400  # nodes, below which no line is lifted to save some
KNOWN = 2048  # small answers that are kept: a schedule has hundreds of steps
FEW = 300  # nodes, up to which several tilts share an interval
MANY = 20_000  # nodes, beyond which each real z has a quadrature of its own


def mixture(x, unit, sigma, rate, side):
    """The Law of the loss at the outcomes x, the log of whose weights over that of the density's
    constant is ``unit``; sigma and rate are numbers, or a column with a row of x for each."""
    u = (x - 0.5) / sigma**2
    log_q, loss = unit - 0.5 * (x / sigma) ** 2, mixed_loss(u, rate)
    if side < 0:
        return Law(-loss, log_q)
    # around 1 log q and the loss nearly cancel: there the density of rate p comes first
    odds = u + np.log(rate) - np.log1p(-rate)
    log_p = unit - 0.5 * ((x - 1) / sigma) ** 2 + np.log(rate)
    log_p += np.log1p(np.exp(-np.maximum(odds, 0.0)))
    return Law(loss, np.where(odds > 0, log_p, log_q + loss))


def _next_power(c):
    """The least power of 4 that is no less than c and 1."""
    mantissa, exponent = frexp(max(c, 1.0))
    exponent -= mantissa == 0.5
    return 2.0 ** (exponent + exponent % 2)


@dataclass(frozen=True)
class SampledGaussian(Step):
    """rate * N(1, sigma^2) + (1 - rate) * N(0, sigma^2) against N(0, sigma^2).

    With u(x) = (x - 1/2)/sigma^2 the loss at x is log(1 + rate (e^u - 1)).
    """

    sigma: float
    rate: float
    side: int = 1

    def flipped(self):
        return replace(self, side=-self.side)

    def loss(self, x):
        """The loss at x of p against q (of the mixture, whatever the side)."""
        return mixed_loss((x - 0.5) / self.sigma**2, self.rate)

    def outcome(self, loss):
        """The x with this loss."""
        return 0.5 + self.sigma**2 * inverse_mixed_loss(loss, self.rate)

    def top(self):
        return np.inf if self.side > 0 else -log1p(-self.rate)

    def far_end(self, log_mass):
        """An x beyond which p has a probability of at most exp(log_mass)."""
        sampled = 1 - self.sigma * ndtri_exp(min(log_mass - log(2 * self.rate), 0.0))
        return float(max(sampled, -self.sigma * ndtri_exp(log_mass - log(2))))

    def spread(self):
        """That of rate (e^u - 1), or of a loss of 1/sigma^2 at this rate, if that is less."""
        far = self.sigma**-2
        return sqrt(self.rate) * min(far, sqrt(self.rate * expm1(min(far, 700.0))))

    def tilt_limit(self, log_delta):
        """Beyond this c, the tilted law costs more than log_delta: cK' - K > log_delta."""
        tail = self.sigma * np.sqrt(2 * log_delta) - 2 * self.sigma**2 * np.log(self.rate) + 1
        return tail if self.side > 0 else np.inf

    # ------------------------------------------------------------ where the integrand is

    def _power(self, c):
        """E_p exp(zL) = E_q (1 + rate (e^u - 1))^a with a = 1 + z, or -z with p and q exchanged."""
        return 1 + c if self.side > 0 else -c

    @lru_cache(maxsize=KNOWN)  # noqa: B019 (of a frozen value, and few)
    def _spans(self, c):
        """Intervals of x, in ascending order, that hold all of q, of p and of the law tilted by
        exp(cL): between them there is nothing. Where ``FEW`` nodes do, one interval for all tilts
        up to the next power of 4, so that the nodes are found once."""
        for most in (_next_power(c), c):
            power = self._power(most)
            hull = (Tilted(self.sigma, self.rate, power).hull(),)
            if hull[0][1] - hull[0][0] <= FEW * self._mesh(power, hull):
                return hull
        return self._windows(c)

    @lru_cache(maxsize=KNOWN)  # noqa: B019
    def _windows(self, c):
        """As narrow as they can be: a lattice is as fine as its range is short, and beside the real
        line what has no weight at an outcome far out may grow."""
        return Tilted(self.sigma, self.rate, self._power(c)).spans()

    # ------------------------------------------------------------ the mesh

    def _sharpness(self):
        """1/width of the narrowest Gaussian in the integrand."""
        return 1 / self.sigma

    def _log_weight(self, x):
        """log of the share of the outcome x that this law has (see ``jumps``)."""
        return 0.0

    def _lift_cost(self, height):
        """log of a bound on what moving x to x + i height does to abs(density), beside the loss."""
        return 0.5 * (height / self.sigma) ** 2

    def _spacing(self, c):
        """Of nodes for a real tilt: a strip of 0.42 sigma^2, and a Gaussian of width 1/sharp."""
        return self._mesh(self._power(c), self._spans(c))

    def _mesh(self, power, spans):
        sharp, strip = self._sharpness(), 0.42 * self.sigma**2
        if power < 0:  # the tilted peak is narrower than sigma,
            off = max(0.0, -spans[0][0] - 11 * self.sigma)
            sharp *= sqrt(1 + off / self.sigma**2)
            strip = 0.23 * self.sigma**2  # and exp(-A e^u) only decays for |Im u| < pi/2
        return 2 * pi / max(9 * sharp, 2 * pi / strip)

    @lru_cache(maxsize=16)  # noqa: B019
    def _shifted(self, c):
        """The integrand along lines beside the real one, at the nodes for a real tilt."""
        real = self._real(self._windows(c), self._spacing(c))
        log_w = real.law.log_p + c * real.law.loss
        heavy = log_w > log_w.max() - 400
        spend(SHIFT * len(real.x))
        weights = np.exp(log_w[heavy] - log_w.max())
        loss = self.side * real.law.loss[heavy]
        share, both = shares(real.x[heavy], loss, self.sigma, self.rate)
        cost = self._lift_cost(self.sigma**2)
        gaps = np.flatnonzero(np.diff(real.x[heavy]) > 1.5 * self._spacing(c))
        ends = np.concatenate([[0, -1], gaps, gaps + 1])
        return Shifted(weights / weights.sum(), share, both, self._power(c), cost, ends)

    @lru_cache(maxsize=KNOWN)  # noqa: B019
    def _nodes(self, c, band):
        """The Lift for heights up to ``band``: for those beyond its edge the integral is taken
        along x + i sigma^2 angle, where a fast phase is a small modulus."""
        plain = self._spacing(c)
        if not band:
            return Lift(plain)
        shifted = self._shifted(c)
        best = Lift(shifted.mesh(band, self.sigma, plain))
        length = sum(b - a for a, b in self._windows(c))
        if best.spacing > 0.7 * plain or length < SHORT * best.spacing:
            return best
        return shifted.best_lift(band, self.sigma, plain, best)

    def _points(self, spans, spacing):
        """Nodes at whole multiples of a number of 16 bits near this spacing, so that they are
        floats without rounding, and the log of the weight of each."""
        spacing = exact_step(spacing, 16)
        ends = [(floor(a / spacing), ceil(b / spacing)) for a, b in spans]
        x = spacing * np.concatenate([np.arange(float(a), b + 1.0) for a, b in ends])
        return x, log(spacing)

    def work(self, c, band):
        spacing = self._nodes(c, band).spacing
        return sum(b - a for a, b in self._windows(c)) / spacing if spacing else np.inf

    # ------------------------------------------------------------ the law and its moments

    def _at(self, x, log_weight):
        spend(VALUE * len(x))
        unit = log_weight - np.log(self.sigma * np.sqrt(2 * np.pi))
        return mixture(x, unit, self.sigma, self.rate, self.side)

    @lru_cache(maxsize=8)  # noqa: B019
    def _real(self, spans, spacing):
        x, log_weight = self._points(spans, spacing)
        return Moments(x, self._at(x, log_weight))

    def law(self, reach, band):
        spacing = self._nodes(reach, band).spacing
        spans = self._windows if spacing < self._spacing(reach) else self._spans
        return self._real(spans(reach), spacing).law

    def _law_up_to(self, reach):
        spans, spacing = self._spans(reach), self._spacing(reach)
        hull = (spans[0][0], spans[-1][1])
        if hull[1] - hull[0] > MANY * spacing:
            return None
        return self._real((hull,), spacing).law

    @lru_cache(maxsize=KNOWN)  # noqa: B019
    def _moment(self, c):
        """K at one c, and a bound on its round-off."""
        return self._real(self._spans(c), self._spacing(c)).at(c)

    def cumulant_at(self, c):
        return self._moment(c)[0]

    def cumulant_noise(self, c):
        return self._moment(c)[1]

    def extent(self, reach):
        spans = self._windows(reach)
        ends = self._at(np.array([spans[0][0], spans[-1][1]]), 0.0).loss
        return tuple(np.sort(ends))

    def cells(self, spacing, reach, least):
        unit, found = 0.6 * min(self.sigma, 4 * self.sigma**2), []
        for low, high in self._windows(reach):
            first, last = np.sort(self.side * self.loss(np.array([low, high])))
            inside = self.outcome(self.side * multiples(spacing, max(first, least), last))
            edges = np.linspace(low, high, int((high - low) / unit) + 2)
            found.append(gauss_between(edges, inside))
        x, weight = (np.concatenate(part) for part in zip(*found, strict=True))
        return self._at(x, np.log(weight))

    def line(self, c, y):
        _, edge, angle = self._nodes(c, float(y[-1]))
        far = int(np.searchsorted(y, edge, side="right"))
        value, noise = line_of_law(self.law(c, float(y[-1])), c, y[:far])
        if far == len(y):
            return value, noise
        lifted, error = self._lifted_line(c, y[far:], angle, float(y[-1]))
        return np.concatenate([value, lifted]), np.concatenate([noise, error])

    def _lifted_line(self, c, y, angle, band):
        """K(c+iy) - K(c) from the integral along x + i sigma^2 angle: at the lowest of these y,
        where it is small already, and what follows relative to that."""
        x, log_weight = self._points(self._windows(c), self._nodes(c, band).spacing)
        angle *= self.side
        loss = mixed_loss_complex((x - 0.5) / self.sigma**2, angle, self.rate)
        terms = self._power(c) * loss - 0.5 * (x / self.sigma + 1j * self.sigma * angle) ** 2
        terms += self._log_weight(x + 1j * self.sigma**2 * angle)
        terms += log_weight - log(self.sigma * sqrt(2 * pi)) - self.cumulant_at(c)
        loss = self.side * loss
        sizes = np.abs(terms) + y[0] * np.abs(loss) + 20
        weights = np.exp(terms + 1j * y[0] * loss)
        first = weights.sum()
        value, noise = mean_phase(weights / first, loss, sizes, y - y[0])
        noise += 4 * EPS * np.linalg.norm(weights * sizes) / abs(first) * np.exp(-value.real)
        value += np.log(first)
        return value - 2j * pi * np.round(value.imag / (2 * pi)), noise

    def ceiling(self, c):
        """The least of the bounds along x + i sigma^2 angle: the phase exp(iyL) becomes
        exp(-y arg), where arg is that of 1 + rate (e^u - 1), which decreases in y."""
        return self._shifted(c).ceiling
