"""Which method answers for which mechanism.

==========  ====================================================================================
one step    closed forms: one round, or any number of Gaussian ones
sum         finite pairs and unsampled Laplace steps: every outcome, every polynomial piece
binomial    rounds of a pair of two outcomes: incomplete beta integrals
contour     what has a transform that decays: Laplace inversion on two lines
lattice     the rest: losses moved to lattices
==========  ====================================================================================
"""

from dataclasses import replace
from functools import reduce
from math import ceil, inf

from flint import arb
from scipy.optimize import minimize_scalar

from . import exact
from .contour import contour_delta
from .lattice import gap, lattice_delta
from .laws import FAR, ZERO, TooLongError, finite_law, finite_losses, one_step_delta

QUICK = ("one step", "sum", "binomial")


def merged(parts):
    """Equal steps counted together; those that lose nothing left out."""
    counts = {}
    for part in parts:
        single = replace(part, k=1)
        counts[single] = counts.get(single, 0) + part.k
    singles = (replace(part, k=k) for part, k in counts.items())
    return tuple(p for p in singles if not (p.kind == "finite" and p.value[0] == p.value[1]))


class Truth:
    """The truth about one composition; every answer is a ball."""

    def __init__(self, parts):
        self.parts = merged(parts)
        self.ways = (1,) if all(part.symmetric for part in self.parts) else (1, -1)
        self.name, self._one_way = self._choose()

    def _choose(self):
        parts = self.parts
        if len(parts) == 1:
            (part,) = parts
            if part.is_plain("gaussian"):
                part = part.as_one()
            if part.k == 1:
                return "one step", lambda way, e, near: one_step_delta(part, way, e)
            if part.counted and len(finite_law(part, 1)) == 2 and not _vanishes(part):
                return "binomial", lambda way, e, near: exact.binomial_delta(part, way, e)
        if exact.terms(parts) <= exact.MOST_TERMS:
            return "sum", lambda way, e, near: exact.sum_delta(parts, way, e)
        return "contour", self._inverted

    def _inverted(self, way, e, near):
        if gap(self.parts, way) is None:
            try:
                return contour_delta(self.parts, way, e, near)
            except TooLongError:
                self.name = "lattice"
        return lattice_delta(self.parts, way, e, near)

    def one_way(self, way, epsilon, near=None):
        """delta of the pair as given (1) or exchanged (-1); work for `near` is used again."""
        delta = self._one_way(way, arb(epsilon), near)
        if not delta.is_finite():
            raise TooLongError
        return delta

    def delta(self, epsilon, near=None):
        """The larger of both ways."""
        return reduce(arb.max, [self.one_way(way, epsilon, near) for way in self.ways])

    def missed(self, alpha):
        """The least type-II error at this level: the highest of the lines through (0, 1 - delta) of
        slope -exp(epsilon), and of those mirrored. A value that is too low by little."""
        return min((self._missed(way, alpha) for way in self.ways), key=lambda b: float(b.mid()))

    def _missed(self, way, alpha):
        slow = self.name not in QUICK

        def delta(way, e):
            if slow:
                return lattice_delta(self.parts, way, e, 0.0)
            return self.one_way(way, e)

        def line(t):
            e = abs(arb(t))
            if t >= 0:  # q against p
                return 1 - arb(alpha) * e.exp() - delta(-way, e)
            return (-e).exp() * (1 - arb(alpha) - delta(way, e))

        def height(t):
            return -float(line(t).mid())

        size = max(self._deviation(), 1e-12)
        places = [s * size * 2.0**j for s in (-1, 1) for j in range(-6, 6)] + [0.0]
        best = min(places, key=height)
        reach = max(abs(best), size / 64)
        peak = minimize_scalar(
            height, bounds=(best - reach, best + reach), method="bounded", options={"xatol": 1e-13}
        )
        top = max(line(peak.x), line(best), key=lambda ball: float(ball.mid()))
        return top if top > 0 else ZERO.union(top) if not top < 0 else ZERO

    def _deviation(self):
        """The size of a sum of the losses, roughly."""
        return float(-8 * self._moment(1, arb(-0.5)).log()) ** 0.5

    def renyi(self, alpha):
        """Renyi's divergence of the worse way, at alpha > 1; inf if a loss can be infinite."""
        c, divergences = arb(alpha) - 1, []
        for way in self.ways:
            if any(p.counted and finite_losses(p, way)[1] > 0 for p in self.parts):
                return arb(inf)
            divergences.append(self._moment(way, c).log() / c)
        return max(divergences, key=lambda ball: float(ball.mid()))

    def _moment(self, way, c):
        """E exp(cL; L finite) at a real c."""
        total = arb(1)
        for part in self.parts:
            total *= _moment(part, way, c) ** part.k
        return total


def _vanishes(part):
    return any(p == 0 or q == 0 for p, q in finite_law(part, 1))


def _moment(part, way, c):
    """Of one part: sums, closed forms, and for sampled noise integrals over u > 0 and u < 0."""
    if part.kind == "discrete_gaussian" and part.rate == 1:
        return _discrete_moment(*part.value, c)
    if part.kind == "discrete_gaussian" and (c + 1) * part.value[1] > (FAR - 15) * part.value[0]:
        raise TooLongError  # of outcomes that the law leaves out
    if part.counted:
        return sum((p * (c * loss).exp() for loss, p in finite_losses(part, way)[0]), ZERO)
    unit, rate = 1 / arb(part.value[0]), arb(part.rate)
    if part.is_plain("gaussian"):
        return (c * (c + 1) * unit**2 / 2).exp()
    power = c + 1 if way > 0 else -c

    def q(u):
        if part.kind == "laplace":
            return (-(u + unit) / 2).exp() / 4
        return (-((u / unit + unit / 2) ** 2) / 2).exp() / unit / (2 * arb.pi()).sqrt()

    def ratio(u, analytic=False):
        inner = 1 + rate * (u.exp() - 1)
        return inner.log(analytic) if analytic else inner.log()

    def mixed(u, analytic=False):
        if part.swapped:
            log = ratio(u, analytic)
            return q(u) * (((c + 1) * log).exp() + (-c * log).exp())
        return q(u) * (power * ratio(u, analytic)).exp()

    if part.kind == "laplace":
        low, high = (ZERO if part.swapped else -unit), unit
        atoms = [(high, (-unit).exp() / 2)] + ([] if part.swapped else [(low, arb(0.5))])
    else:
        most = 40 * unit + unit**2 * (2 + abs(power) if power > 0 else 2 - power)
        low, high, atoms = (ZERO if part.swapped else -most), most, []
    total = sum((mass * mixed(u) / q(u) for u, mass in atoms), ZERO)
    if part.swapped:  # the loss 0: everybody, but those with positive loss and their mirror
        above = (unit / arb(8).sqrt()).erf() if part.kind == "gaussian" else 1 - (-unit / 2).exp()
        total += (1 - rate) * above
    return total + exact.integral(mixed, low, high)


def _discrete_moment(sigma, s, c):
    """Of integer noise, all of it: its law under this tilt has the mean c s."""

    def mass(mean):
        near = int(float(mean))
        places = range(near - ceil(FAR * sigma) - 9, near + ceil(FAR * sigma) + 10)
        return sum(((-((z - mean) ** 2) / (2 * arb(sigma) ** 2)).exp() for z in places), ZERO)

    return mass(c * s) / mass(ZERO) * (c * (c + 1) * s**2 / (2 * arb(sigma) ** 2)).exp()
