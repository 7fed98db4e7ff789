"""The finite laws that steps have, from their definitions, in ball arithmetic."""

from fractions import Fraction
from functools import lru_cache
from math import ceil

from flint import arb, ctx, fmpq

from .quadrature import TooLongError

__all__ = ["LAWS", "finite_law"]

MOST = 100_000  # outcomes
FAR = 60  # standard deviations of integer noise: beyond is exp(-1800)


def _rational(x):
    exact = Fraction(x)
    return fmpq(exact.numerator, exact.denominator)


def _response(part):
    odds = arb(part.value[0]).exp()
    up, down = odds / (1 + odds), 1 / (1 + odds)
    return [(up, down), (down, up)]


def _finite(part):
    p, q = ([_rational(x) / sum(map(_rational, law)) for x in law] for law in part.value)
    return list(zip(p, q, strict=True))


def _discrete_laplace(part):
    """Outcomes up to 0, between, and from the sensitivity on: geometric series."""
    s, t = part.sensitivity, (-1 / arb(part.value[0])).exp()
    low, high = t**s / (1 + t), 1 / (1 + t)
    step = (1 - t) / (1 + t)
    between = [(step * t ** (s - x), step * t**x) for x in range(1, s)]
    return [(low, high), *between, (high, low)]


def integers(part, low, high):
    """The discrete Gaussian's weights exp(-z^2/(2 sigma^2)) for z = low..high, over their sum."""
    variance = arb(part.value[0]) ** 2
    total = arb(1)
    for z in range(1, ceil(FAR * part.value[0]) + 20):
        total += 2 * (-arb(z * z) / (2 * variance)).exp()
    return [(-arb(z * z) / (2 * variance)).exp() / total for z in range(low, high + 1)]


def _discrete_gaussian(part, reach=0):
    """The outcomes within FAR deviations, and as far as an order of Renyi's divergence looks."""
    s, far = part.sensitivity, ceil(FAR * part.value[0]) + 20 + reach
    if far > MOST:
        raise TooLongError
    mass = integers(part, -far - s, far + s)
    return list(zip(mass[:-s], mass[s:], strict=True))


def _bounded_range(part):
    epsilon, n = arb(part.value[0]), part.value[1]
    weights = [(epsilon * fmpq(2 * j - n, 2 * n)).exp() for j in range(n + 1)]
    weights = [w / 2 if j in (0, n) else w for j, w in enumerate(weights)]
    total = sum(weights, arb(0))
    p = [w / total for w in weights]
    return list(zip(p, p[::-1], strict=True))


def _best_of_loss(part):
    """The last of the outcomes of K runs, K geometric: P(K = n) = chance (1 - chance)^(n-1), whose
    generating function is chance x / (1 - (1 - chance) x)."""
    *laws, mean = part.value
    chance, columns = 1 / _rational(mean), []
    for law in laws:
        total, below, found = sum(map(_rational, law)), fmpq(0), []
        for x in law:
            upto = below + _rational(x) / total
            found.append(chance * upto / (1 - (1 - chance) * upto))
            found[-1] -= chance * below / (1 - (1 - chance) * below)
            below = upto
        columns.append(found)
    return list(zip(*columns, strict=True))


LAWS = {
    "response": _response,
    "finite": _finite,
    "discrete_laplace": _discrete_laplace,
    "discrete_gaussian": _discrete_gaussian,
    "bounded_range": _bounded_range,
    "best_of_loss": _best_of_loss,
}


def finite_law(part, way, reach=0):
    """[(p, q)] of each outcome as balls, p the law of the direction: way 1 is the person's."""
    return _finite_law(part, way, reach, ctx.prec)


@lru_cache(maxsize=64)
def _finite_law(part, way, reach, prec):
    del prec  # the working precision, part of the key
    pairs = LAWS[part.kind](part, reach) if reach else LAWS[part.kind](part)
    rate = _rational(part.rate)
    if not isinstance(pairs[0][0], fmpq):
        rate = arb(rate)
    if part.swapped:  # the positive losses with both signs, and what is left
        up = [(rate * p + (1 - rate) * q, q) for p, q in pairs if p > q]
        rest = 1 - sum((mixed + q for mixed, q in up), arb(0))
        return [*up, *(pair[::-1] for pair in up), (rest, rest)]
    pairs = [(rate * p + (1 - rate) * q, q) for p, q in pairs]
    pairs = [pair if way > 0 else pair[::-1] for pair in pairs]
    return [(arb(p), arb(q)) for p, q in pairs]
