"""The Poisson-subsampled Gaussian step, whose law is a smooth integral over the outcome x.

The moments E exp(zL) of a mixture of two Gaussians have no closed form, but their integrand is
analytic in a strip around the real x, and for such a function the trapezoid rule is nearly exact:
with nodes a distance h apart its error is at most (N(d) + N(-d)) / (exp(2 pi d/h) - 1), where N(d)
is the integral of the absolute integrand along x + id (Trefethen and Weideman 2014, Theorem 5.1).
A phase exp(iyL) makes N(d) small on one side of the real line and large on the other. How large is
computed (``_shifted``), and gives both the mesh for a line (``_nodes``) and a bound on the integral
itself, for the line may be moved to where it is smallest (``ceiling``).
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import ceil, expm1, floor, frexp, ldexp, log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np

from .._scipy import ndtri_exp
from .law import (
    EPS,
    Law,
    gauss_between,
    inverse_mixed_loss,
    line_of_law,
    mean_phase,
    mixed_loss,
    mixed_loss_complex,
    multiples,
)
from .step import Step
from .tilted import Tilted
from .work import spend

__all__ = []

TINY, SMALL = np.geomspace(1e-12, 2.5e-4, 15), np.geomspace(1e-3, 1.0, 13)
ANGLES = np.concatenate([TINY, SMALL, [1.4, 1.9, 2.4]])  # d / sigma^2 of the strips
TURNS = (42.0, 12.0)  # heights times the angle, from which on a line is lifted
QUADRATURE = 60.0  # exp(-60) of the moment is the error of the mesh: times 1e12 rounds, 1e-14
VALUE, SHIFT, BOUND = 40, 150, 15  # work of the density at a node, beside it, of a bound on it
NOISY = 3.0  # log of the sum of moduli, from which on a line is not lifted: round-off grows by it
SHORT = 400  # nodes, below which no line is lifted to save some
KNOWN = 2048  # small answers that are kept: a schedule has hundreds of steps
MANY = 20_000  # nodes, beyond which each real z has a quadrature of its own


class Shifted(NamedTuple):
    """The integrand of E exp((c+iy)L) along x + i sigma^2 angle, one row an angle: relative to the
    tilted law at x (``weights``) it is exp(growth - y phase) in absolute value."""

    weights: np.ndarray
    growth: np.ndarray
    phase: np.ndarray

    def log_bound(self, y, way=1):
        """log of a bound on its integral for each angle (or for minus each), for heights from y on
        (or up to y)."""
        spend(BOUND * self.growth.size)
        exponent = self.growth - way * y * self.phase
        known = exponent.max(axis=1) < 700
        size = np.full(len(exponent), np.inf)
        excess = np.expm1(exponent[known]) @ self.weights
        size[known] = np.log1p(np.maximum(excess, -0.5))
        small = np.flatnonzero(known)[excess < -0.5]
        if small.size:
            mass = np.exp(exponent[small]) @ self.weights
            size[small] = np.log(np.maximum(mass, 1e-300))
        return size


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
        exp(cL): between them there is nothing."""
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
        sharp, strip = self._sharpness(), 0.42 * self.sigma**2
        if self._power(c) < 0:  # the tilted peak is narrower than sigma,
            off = max(0.0, -self._spans(c)[0][0] - 11 * self.sigma)
            sharp *= sqrt(1 + off / self.sigma**2)
            strip = 0.23 * self.sigma**2  # and exp(-A e^u) only decays for |Im u| < pi/2
        return 2 * pi / max(9 * sharp, 2 * pi / strip)

    @lru_cache(maxsize=16)  # noqa: B019
    def _shifted(self, c):
        """The integrand along lines beside the real one, at the nodes for a real tilt.

        abs(1 + rate (e^(u + i angle) - 1))^2 is G^2 less 4 rate (1 - rate) e^u sin^2(angle/2), with
        G = 1 + rate (e^u - 1): in this form nothing cancels at small angles.
        """
        x, log_weight = self._points(self._spans(c), self._spacing(c))
        law = self._at(x, log_weight)
        log_w = law.log_p + c * law.loss
        heavy = log_w > log_w.max() - 400
        x, log_w = x[heavy], log_w[heavy]
        spend(SHIFT * len(x) * len(ANGLES))
        u, angle = (x - 0.5) / self.sigma**2, ANGLES[:, None]
        mixed, power = mixed_loss(u, self.rate), self._power(c)
        weights = np.exp(log_w - log_w.max())
        share = np.exp(u + log(self.rate) + log1p(-self.rate) - 2 * mixed)
        lost = np.minimum(4 * share * np.sin(angle / 2) ** 2, 1 - 1e-15)
        growth = 0.5 * power * np.log1p(-lost) + self._lift_cost(self.sigma**2 * angle)
        phase = mixed_loss_complex(u, angle, self.rate).imag
        return Shifted(weights / weights.sum(), growth, phase)

    @lru_cache(maxsize=KNOWN)  # noqa: B019
    def _nodes(self, c, band):
        """(spacing, edge, angle) of the nodes for heights up to ``band``: for those beyond ``edge``
        the integral is taken along x + i sigma^2 angle, where a fast phase is a small modulus."""
        plain = self._spacing(c)
        if not band:
            return plain, np.inf, 0.0
        shifted = self._shifted(c)
        strips = 2 * pi * self.sigma**2 * ANGLES

        def widest(room, log_size):
            """The spacing for which one of these strips bounds the error by exp(-QUADRATURE)."""
            with np.errstate(invalid="ignore", divide="ignore"):
                found = np.where(room > 0, room / (QUADRATURE + np.maximum(log_size, 0.0)), 0.0)
            return float(np.max(np.nan_to_num(found), initial=0.0))

        best = min(plain, widest(strips, shifted.log_bound(band, -1))), np.inf, 0.0
        length = sum(b - a for a, b in self._spans(c))
        if best[0] > 0.7 * plain or length < SHORT * best[0]:
            return best
        for angle, turn in product(SMALL.tolist(), TURNS):
            edge = turn / angle
            if edge >= band:
                continue
            room, size = 2 * pi * self.sigma**2 * (ANGLES - angle), shifted.log_bound(edge)
            lifted = min(plain, widest(room, size), widest(-room, size))
            if lifted > best[0] and size[ANGLES == angle] < NOISY:
                size = shifted.log_bound(edge, -1)
                best = max(best, (min(lifted, widest(strips, size)), edge, angle))
        return best

    def _points(self, spans, spacing):
        """Nodes at whole multiples of a number of 16 bits near this spacing, so that they are
        floats without rounding, and the log of the weight of each."""
        mantissa, exponent = frexp(spacing)
        spacing = ldexp(floor(ldexp(mantissa, 16)), exponent - 16)
        ends = [(floor(a / spacing), ceil(b / spacing)) for a, b in spans]
        x = spacing * np.concatenate([np.arange(a, b + 1.0) for a, b in ends])
        return x, log(spacing)

    def work(self, c, band):
        spacing = self._nodes(c, band)[0]
        return sum(b - a for a, b in self._spans(c)) / spacing if spacing else np.inf

    # ------------------------------------------------------------ the law and its moments

    def _at(self, x, log_weight):
        spend(VALUE * len(x))
        unit = log_weight - np.log(self.sigma * np.sqrt(2 * np.pi))
        return mixture(x, unit, self.sigma, self.rate, self.side)

    @lru_cache(maxsize=4)  # noqa: B019
    def law(self, reach, band):
        return self._at(*self._points(self._spans(reach), self._nodes(reach, band)[0]))

    def _law_up_to(self, reach):
        spans, spacing = self._spans(reach), self._spacing(reach)
        hull = (spans[0][0], spans[-1][1])
        if hull[1] - hull[0] > MANY * spacing:
            return None
        return self._at(*self._points((hull,), spacing))

    @lru_cache(maxsize=KNOWN)  # noqa: B019
    def cumulant_at(self, c):
        """K at one c."""
        return float(self.cumulant(np.array([c]))[0])

    def extent(self, reach):
        spans = self._spans(reach)
        ends = self._at(np.array([spans[0][0], spans[-1][1]]), 0.0).loss
        return tuple(np.sort(ends))

    def cells(self, spacing, reach, least):
        unit, found = 0.6 * min(self.sigma, 4 * self.sigma**2), []
        for low, high in self._spans(reach):
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
        x, log_weight = self._points(self._spans(c), self._nodes(c, band)[0])
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
        shifted = self._shifted(c)
        return lambda height: min(0.0, float(np.min(shifted.log_bound(height))))
