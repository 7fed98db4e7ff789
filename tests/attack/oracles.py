"""Which oracle answers for which mechanism: all in ball arithmetic, none with code of `dpnotes`.

==========  ====================================================================================
closed      one step: Gaussian (any k), Laplace, both sampled
exact       finite pairs and plain Laplace steps: every outcome, every polynomial piece
binomial    a pair of two outcomes, any k: incomplete beta integrals
rounds      rounds of one discrete Gaussian: the law of the sum of the noise
table       few rounds of few outcomes: all pairs
pair        one step beside a closed form: one integral over that step
contour     anything whose transform decays: Laplace inversion on two lines
plain       the same in doubles, of what ball arithmetic has no time for
lattice     the rest: losses rounded to lattices that bracket the truth
==========  ====================================================================================
"""

from dataclasses import replace
from functools import lru_cache
from math import inf, log, log1p

from flint import arb, ctx

from . import closed, pairs
from .contours import SHORT, contour_delta, saddle
from .lattices import lattice_delta
from .mechanisms import finite_law
from .moments import moments as moments_of
from .plain import MANY, plain_delta, transform
from .quadrature import TooLongError
from .tables import rounds_delta, table_delta, table_size

__all__ = ["Oracle"]

INVERSIONS = {"contour": contour_delta, "plain": plain_delta, "lattice": lattice_delta}
MOST_PAIRS = 4e8  # of outcomes, in tables whose root is at most this
GOOD = 1e-7  # relative error of an answer after which no other method is asked
VAST = 20_000  # rounds
FARTHEST = 60.0  # loss at which a line may touch
SHARED = 16  # stretches between two points of a search, each of which shares its lines


def _normal(parts):
    """Equal steps counted together; Gaussians of one sigma only (the others stay apart)."""
    counts = {}
    for part in parts:
        single = replace(part, k=1)
        counts[single] = counts.get(single, 0) + part.k
    parts = tuple(replace(part, k=k) for part, k in counts.items())
    return tuple(p for p in parts if not (p.counted and _trivial(p)))


def _trivial(part):
    if part.kind == "finite":
        return all(p == q for p, q in zip(*part.value, strict=True))
    return part.kind == "response" and part.value[0] == 0


class Oracle:
    """The truth about one mechanism."""

    def __init__(self, parts):
        self.parts = _normal(parts)
        self.shape, self.methods = pairs.split(self.parts), ()
        self.name, self._one = self._choose()
        self.ways = (1,) if all(p.symmetric for p in self.parts) else (1, -1)
        self.doubt, self._failed = 0.0, set()  # relative, the largest so far; (method, way)
        self.rounded = any(p.kind == "best_of_loss" for p in self.parts)

    def _choose(self):
        parts = self.parts
        single = parts[0] if len(parts) == 1 else None
        if single and not single.counted and (single.k == 1 or single.plain_gaussian):
            return "closed", lambda way, e, near: closed.one_step_delta(single, way, e)
        if closed.exact_terms(parts) <= 4000:
            return "exact", lambda way, e, near: closed.exact_delta(parts, way, e, ctx.prec)
        if single and single.kind == "discrete_gaussian" and single.rate == 1 and single.k < 10**9:
            return "rounds", lambda way, e, near: rounds_delta(single, float(e))
        if single and single.counted and self._two_sided(single):
            return "binomial", lambda way, e, near: closed.binomial_delta(single, way, e)
        if table_size(parts) <= MOST_PAIRS:
            return "table", lambda way, e, near: table_delta(parts, way, float(e))
        if self.shape:
            return "pair", lambda way, e, near: pairs.pair_delta(self.shape, way, e)
        vast = sum(part.k for part in parts) > VAST or len(parts) > 3
        self.methods = ("plain", "contour", "lattice") if vast else ("contour", "plain", "lattice")
        if len(parts) > MANY:
            self.methods = ("plain", "lattice") if len(parts) < 40 else ("plain",)
        return "contour", self._inverted

    def _inverted(self, way, e, near):
        """By the first method that answers to GOOD; else the best answer of all."""
        bounds = [self._chernoff(w, float(near if near is not None else e)) for w in self.ways]
        mine = self._chernoff(way, float(near if near is not None else e))
        if mine < max(bounds) - 60:
            return arb(0).union(arb(mine).exp())
        best = None
        for name in self.methods:
            if (name, way) in self._failed:
                continue
            try:
                found = INVERSIONS[name](self.parts, way, e, near)
            except TooLongError:
                self._failed.add((name, way))
                continue
            if best is None or found.rad() < best.rad():
                best, self.name = found, name
            if found.rad() <= GOOD * abs(found.mid()):
                break
        if best is None:
            raise TooLongError
        return best

    @lru_cache(maxsize=8)  # noqa: B019
    def _chernoff(self, way, e):
        """log of a bound on delta, if no loss is infinite (0 otherwise): the largest value of
        (1 - exp(-x)) exp(-cx) is c^c / (1 + c)^(1 + c)."""
        law = transform(self.parts, way)
        if law.kept() < 1 or e <= 0:
            return 0.0
        c, least = saddle(law, 1, e)  # divided by c (1 + c)
        return least + (1 + c) * log(c) - c * log1p(c)

    @staticmethod
    def _two_sided(part):
        return part.size == 2 and all(p > 0 < q for p, q in finite_law(part, 1))

    def one_way(self, way, e, near=None):
        """delta of one direction as a ball, e a double."""
        if not self.parts:
            return arb(0)
        found = arb(0)
        for prec in (300, 900, 2700) if self.name in ("closed", "exact") else (256,):
            ctx.prec = prec
            found = self._one(way, arb(e), near)
            if found.is_finite() and found.rad() <= abs(found.mid()) * arb(2) ** -80:
                break
        if not found.is_finite():
            raise TooLongError
        if self.rounded:  # dpnotes is given the same law as doubles
            found *= arb(1, 1e-12)
        zero = arb(0)
        return found if found >= zero else found.union(zero) if found > -1e-15 else found

    def delta(self, e, near=None):
        """(low, high) as balls' ends around delta(e). A direction that is not known still has the
        bounds 0 and Chernoff's: then delta is known from below."""
        found, unknown = [], 0
        for way in self.ways:
            try:
                found.append(self.one_way(way, e, near))
            except TooLongError:
                unknown += 1
                found.append(arb(0).union(arb(self._chernoff(way, float(e))).exp()))
        if unknown == len(self.ways):
            raise TooLongError
        low, high = _most(x.lower() for x in found), _most(x.upper() for x in found)
        self.doubt = max(self.doubt, float((high - low) / high) if high > 1e-300 else 0.0)
        return low, high

    def renyi(self, alpha):
        """A ball of the divergence of this order > 1, a finite double."""
        best = None
        for way in self.ways:
            moments = moments_of(self.parts, way)
            ctx.prec = 256
            if moments.kept() < 1:
                return inf
            c = arb(alpha) - 1
            for part in self.parts:
                moments.widen(part, float(c))
            value = next(moments.on_line(c, arb(1), 0.0))[0][1]
            found = value.real.log() / c
            best = found if best is None or found > best else best
        return best

    def missed(self, alpha):
        """The trade-off function at alpha, the lesser of both directions: the highest of its
        lines; each is a lower bound, and near the best one they differ to second order."""
        found = []
        for way in self.ways:
            try:
                found.append(self._missed(way, alpha))
            except TooLongError:
                continue
        if not found:
            raise TooLongError
        return min(found)  # of one direction, if the other is not known: an upper bound

    def _missed(self, way, alpha):
        bounded = set()

        def line(t, near):
            e, near = abs(t), abs(near)
            most = 1 - alpha * arb(e).exp() if t >= 0 else (-arb(e)).exp() * (1 - arb(alpha))
            if most < 0:
                return most
            try:
                d = self.one_way(-way if t >= 0 else way, e, near)  # q against p for t >= 0
            except TooLongError:
                bounded.add(t)
                return most
            return most - d if t >= 0 else most - (-arb(e)).exp() * d

        if self.name not in ("pair", *INVERSIONS):
            best, t = _highest(line, [2.0**j * self._scale() for j in range(-10, 16)], 80)
        else:
            if "plain" in self.methods:  # cheaper, and sharp enough
                self.methods = ("plain", *(m for m in self.methods if m != "plain"))
            best, t = _highest(line, [s * self._scale() for s in (0.4, 1.3, 4, 12, 40)], 34)
        if t in bounded:
            raise TooLongError
        return best

    def _scale(self):
        """A loss of the size of the standard deviation, or where some are infinite, of all."""
        moments, ctx.prec = moments_of(self.parts, 1), 256
        value = next(moments.on_line(arb(-0.499), arb(1), 0.0))[0][1].real
        if moments.kept() < 1:
            return sum(part.k * moments.widest(part) ** 2 for part in self.parts) ** 0.5
        return max(float(-8 * value.log()), 1e-30) ** 0.5


def _highest(line, sizes, steps):
    """(maximum, place) of a unimodal function, from 0 outwards, then by golden section; the second
    argument of ``line`` is a point near the first whose work it may share. The last value, where
    the maximum was found, shares nothing; it may fall short by what the others are not known to."""
    points = [*(-size for size in reversed(sizes)), 0.0, *sizes]
    values = [line(t, t) for t in points]
    while True:  # further out, until it falls
        i = max(range(len(points)), key=lambda i: values[i].mid())
        if 0 < i < len(points) - 1 or abs(points[i]) > FARTHEST:
            break
        t = points[i] * sizes[-1] / sizes[-2]
        at = len(points) if i else 0
        points.insert(at, t)
        values.insert(at, line(t, t))
    low, high = points[max(i - 1, 0)], points[min(i + 1, len(points) - 1)]
    doubt = _most([v.rad() for v in values if not v < values[i]])
    best, unit = (values[i], points[i]), (high - low) / SHARED

    def at(t):
        near = unit * round(t / unit)
        return line(t, near if near * t > 0 else t)

    a, b = low + SHORT * (high - low), high - SHORT * (high - low)
    fa, fb = at(a), at(b)
    for _ in range(steps):
        best = max(best, (fa, a), (fb, b), key=lambda found: found[0].mid())
        doubt = _most([doubt, fa.rad(), fb.rad()])
        if fa > fb:
            high, b, fb = b, a, fa
            a = low + SHORT * (high - low)
            fa = at(a)
        else:
            low, a, fa = a, b, fb
            b = high - SHORT * (high - low)
            fb = at(b)
    return line(best[1], best[1]) + arb(0, doubt), best[1]


def _most(values):
    best = None
    for value in values:
        best = value if best is None or value > best else best
    return best
