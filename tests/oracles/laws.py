"""Mechanisms as plain data, and the laws of their privacy loss from the definitions.

A law is given in one `way`: 1 is the person's law p first, -1 the pair exchanged. Numbers are balls
of python-flint: they carry a bound on their own error.
"""

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil

from flint import arb, ctx, fmpq

ctx.prec = 200  # bits of every ball
ZERO, ONE = arb(0), arb(1)
CALLED = {  # kinds that dpnotes calls otherwise
    "response": "randomized_response",
    "best_of_loss": "chapters.stopping.best_of_loss",
}
# with a law in `_unsampled`, in `contour.Moments.at` and in `truth._moment`
DENSITIES = ("gaussian", "laplace")
FAR = 30  # standard deviations of integer noise: beyond is exp(-450)


class TooLongError(Exception):
    """This method can't answer in the time it is given."""


@dataclass(frozen=True)
class Part:
    """k rounds of a step: "gaussian" (sigma), "laplace" (scale), "response" (epsilon), "finite"
    (p, q), "discrete_gaussian" or "discrete_laplace" (sigma or scale, sensitivity),
    "bounded_range" (epsilon, points), "best_of_loss" (p, q, mean). A rate below 1: on a Poisson
    sample; with the sampler "subsample_substitution" on any sample, under substitution."""

    kind: str
    value: tuple
    k: int = 1
    rate: float = 1.0
    sampler: str = "subsample"

    def __post_init__(self):
        assert self.kind in {*DENSITIES, *LAWS}, f"no law of {self.kind}"

    def code(self):
        values = [repr(x) for x in self.value]
        if self.kind == "best_of_loss":
            values[-1] = f"dp.chapters.stopping.geometric_runs({values[-1]})"
        text = f"dp.{CALLED.get(self.kind, self.kind)}({', '.join(values)})"
        if self.rate < 1:
            text = f"dp.{self.sampler}({text}, {self.rate!r})"
        return text if self.k == 1 else f"{text}.compose({self.k})"

    @property
    def swapped(self):
        return self.rate < 1 and self.sampler == "subsample_substitution"

    @property
    def counted(self):
        """Whether the loss takes finitely many values."""
        return self.kind in LAWS

    @property
    def symmetric(self):
        """Whether both ways have the same law."""
        return self.swapped or (self.rate == 1 and self.kind not in ("finite", "best_of_loss"))

    def is_plain(self, kind):
        return self.kind == kind and self.rate == 1

    def as_one(self):
        """All rounds of an unsampled Gaussian are one round of another."""
        return replace(self, value=(arb(self.value[0]) / arb(self.k).sqrt(),), k=1)


def code(parts):
    """The line of Python that dpnotes is given."""
    return " + ".join(part.code() for part in parts)


# ------------------------------------------------------------------ finitely many outcomes


def rational(x):
    exact = Fraction(x)
    return fmpq(exact.numerator, exact.denominator)


def _response(epsilon):
    odds = arb(epsilon).exp()
    up, down = odds / (1 + odds), 1 / (1 + odds)
    return [(up, down), (down, up)]


def _finite(*laws):
    p, q = ([rational(x) / sum(map(rational, law)) for x in law] for law in laws)
    return list(zip(p, q, strict=True))


def _discrete_laplace(scale, s):
    """Outcomes up to 0, those between, and those from the sensitivity s on: geometric series."""
    t = (-1 / arb(scale)).exp()
    low, high, step = t**s / (1 + t), 1 / (1 + t), (1 - t) / (1 + t)
    between = [(step * t ** (s - x), step * t**x) for x in range(1, s)]
    return [(low, high), *between, (high, low)]


def _discrete_gaussian(sigma, s):
    """The outcomes within FAR deviations."""
    far = ceil(FAR * sigma) + 20
    if far > 20_000:
        raise TooLongError
    weights = [(-arb(z * z) / (2 * arb(sigma) ** 2)).exp() for z in range(-far - s, far + s + 1)]
    total = sum(weights, ZERO)
    return [(a / total, b / total) for a, b in zip(weights[:-s], weights[s:], strict=True)]


def _bounded_range(epsilon, n):
    weights = [(arb(epsilon) * fmpq(2 * j - n, 2 * n)).exp() for j in range(n + 1)]
    weights = [w / 2 if j in (0, n) else w for j, w in enumerate(weights)]
    total = sum(weights, ZERO)
    return [(a / total, b / total) for a, b in zip(weights, weights[::-1], strict=True)]


def _best_of_loss(p, q, mean):
    """The highest outcome of K runs, K geometric with this mean: the generating function of K is
    chance x / (1 - (1 - chance) x)."""
    chance, columns = 1 / rational(mean), []
    for law in (p, q):
        total, upto, chances = sum(map(rational, law)), fmpq(0), [fmpq(0)]
        for x in law:
            upto += rational(x) / total
            chances.append(chance * upto / (1 - (1 - chance) * upto))
        columns.append([b - a for a, b in itertools.pairwise(chances)])
    return list(zip(*columns, strict=True))


LAWS = {
    "response": _response,
    "finite": _finite,
    "discrete_laplace": _discrete_laplace,
    "discrete_gaussian": _discrete_gaussian,
    "bounded_range": _bounded_range,
    "best_of_loss": _best_of_loss,
}


@lru_cache(maxsize=64)
def finite_law(part, way):
    """[(p, q)] of each outcome, sampling included."""
    pairs, rate = LAWS[part.kind](*part.value), rational(part.rate)
    rate = rate if isinstance(pairs[0][0], fmpq) else arb(rate)
    mixed = [(rate * p + (1 - rate) * q, q) for p, q in pairs]
    if part.swapped:  # positive losses with both signs; what is left has loss 0
        up = [pair for pair, (p, q) in zip(mixed, pairs, strict=True) if p > q]
        rest = 1 - sum((p + q for p, q in up), ZERO)
        mixed = [*up, *(pair[::-1] for pair in up), (rest, rest)]
    return [(arb(p), arb(q))[::way] for p, q in mixed]


def finite_losses(part, way):
    """([(loss, p)] of the finite losses, the probability that the loss is infinite)."""
    law = [(p, q) for p, q in finite_law(part, way) if not p == 0]
    infinite = sum((p for p, q in law if q == 0), ZERO)
    return [((p / q).log(), p) for p, q in law if not q == 0], infinite


# ------------------------------------------------------------------ continuous noise


def _unsampled(kind, unit, t):
    if kind == "gaussian":
        root = arb(2).sqrt()
        return tuple(((t / unit - s * unit / 2) / root).erfc() / 2 for s in (1, -1))
    if abs(t.mid()) >= unit:
        return (ZERO, ZERO) if t.mid() > 0 else (ONE, ONE)
    return 1 - ((t - unit) / 2).exp() / 2, (-(t + unit) / 2).exp() / 2


def above(part, way, t):
    """P and Q of one loss above the real t."""
    unit, rate = 1 / arb(part.value[0]), arb(part.rate)
    if part.rate == 1:
        return _unsampled(part.kind, unit, t)
    if part.swapped and t.mid() < 0:
        p, q = above(part, way, -t)
        return 1 - q, 1 - p
    sign = 1 if way > 0 or part.swapped else -1  # exchanged: above t where the other is below -t
    odds = 1 + (sign * t).expm1() / rate  # exp(u) of the loss u before sampling
    least = (-20 * unit - unit**2 / 2).exp() if part.kind == "gaussian" else (-unit).exp() / 2
    if odds.mid() <= least:  # below all losses; of a Gaussian, 20 deviations down
        return (ONE, ONE) if sign > 0 else (ZERO, ZERO)
    p, q = _unsampled(part.kind, unit, sign * odds.log())
    return (rate * p + (1 - rate) * q, q) if sign > 0 else (p, rate * q + (1 - rate) * p)


def one_step_delta(part, way, t):
    """E_P (1 - exp(t - L))_+ of one round, at any real t."""
    if part.counted:
        losses, infinite = finite_losses(part, way)
        gains = (p * -(t - loss).expm1() for loss, p in losses if loss > t)
        return sum(gains, infinite)
    p, q = above(part, way, t)
    return p - t.exp() * q
