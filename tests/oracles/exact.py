"""delta(epsilon) of one `way` exactly: sums over all outcomes, and integrals over one step."""

from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import comb, inf

from flint import acb, arb, arb_poly

from .laws import ONE, ZERO, TooLongError, finite_law, finite_losses, kinks, one_step_delta, piece

MOST_TERMS = 4000


def _multinomial(losses, k):
    """[(loss, probability)] of k rounds."""
    found = [(ZERO, ONE, k)]
    for i, (loss, p) in enumerate(losses):
        last, spread = i == len(losses) - 1, []
        for total, weight, left in found:
            for n in [left] if last else range(left + 1):
                spread.append((total + n * loss, weight * comb(left, n) * p**n, left - n))
        found = spread
    return [(total, weight) for total, weight, _ in found]


def terms(parts):
    """How many terms the exact sum has; inf where another kind of step takes part."""
    total = 1
    for part in parts:
        if not (part.is_plain("laplace") or part.counted and part.k < 10_000):
            return inf
        size = len(finite_law(part, 1)) if part.counted else 2
        total *= comb(part.k + size - 1, size - 1)
    return total if sum(part.k for part in parts if not part.counted) <= 60 else inf


@lru_cache(maxsize=16)
def masses(parts, way):
    """[(loss, probability)] of the counted parts together, and P(the loss is infinite)."""
    found, kept = [(ZERO, ONE)], ONE
    for part in (part for part in parts if part.counted):
        losses, infinite = finite_losses(part, way)
        kept *= (1 - infinite) ** part.k
        more = _multinomial(losses, part.k) if losses else []
        found = [(a + b, u * v) for a, u in found for b, v in more]
    return found, 1 - kept if not kept == 1 else ZERO


# --------------------------------------------- finite pairs and unsampled Laplace steps


@lru_cache(maxsize=16)
def _laplace_terms(parts):
    """[(shift, weight, n, j)]: the transform of all Laplace steps is the sum of
    weight exp(z shift) (1+z)^(n-j) z^j / (1+2z)^n."""
    n, found = sum(part.k for part in parts), []
    for counts in product(*(range(part.k + 1) for part in parts)):
        shift, weight = ZERO, ONE
        for part, j in zip(parts, counts, strict=True):
            unit = 1 / arb(part.value[0])
            shift += unit * (part.k - 2 * j)
            weight *= comb(part.k, j) * (-unit * j).exp()
        found.append((shift, weight, n, sum(counts)))
    return found


@lru_cache(maxsize=4096)
def _residue(n, j):
    """[w^(n-1)] exp(sw) (1/2+w)^(n-j-1) (w-1/2)^(j-1) / 2^n, a polynomial in s."""

    def power(base, exponent):
        if exponent >= 0:
            return arb_poly([base, 1]) ** exponent
        return arb_poly([(-1) ** m / arb(base) ** (m + 1) for m in range(n)])

    series = power(arb(1) / 2, n - j - 1) * power(arb(-1) / 2, j - 1)
    factorial, out = ONE, []
    for d in range(n):  # the power s^d meets w^(n-1-d)
        factorial = factorial * d if d else factorial
        at = n - 1 - d
        coefficient = series[at] if at <= series.degree() else ZERO
        out.append(coefficient / factorial / arb(2) ** n)
    return arb_poly(out)


def _inverse(s, n, j):
    """The inverse Laplace transform at s of (1+z)^(n-j-1) z^(j-1) / (1+2z)^n on Re z > 0."""
    if s < 0:
        return ZERO
    if n == 0:
        value = 1 - (-s).exp()
    else:
        value = (-s / 2).exp() * _residue(n, j)(s)
        value += ONE if j == 0 else ZERO
        value -= (-s).exp() if j == n else ZERO
    return value if s > 0 else value.union(ZERO)


def sum_delta(parts, way, e):
    """Finite pairs and unsampled Laplace steps: every outcome and every piece."""
    losses, total = masses(parts, way)
    smooth = _laplace_terms(tuple(part for part in parts if not part.counted))
    for loss, p in losses:
        for shift, weight, n, j in smooth:
            total += p * weight * _inverse(loss + shift - e, n, j)
    return total


def binomial_delta(part, way, e):
    """k rounds of a pair of two outcomes, both possible under both laws."""
    (p1, q1), (p0, q0) = finite_law(part, way)
    up, down = (p1 / q1).log(), (p0 / q0).log()
    if up < down:
        p1, q1, up, down = p0, q0, down, up
    edge = (e - part.k * down) / (up - down)  # the loss exceeds e for more ups than this
    j = int(edge.mid().floor().fmpz()) + 1
    if j > part.k:
        return ZERO
    a, b = arb(max(j, 1)), arb(part.k - max(j, 1) + 1)
    p, q = (x.beta_lower(a, b, True) if j > 0 else ONE for x in (p1, q1))
    return p - e.exp() * q


# --------------------------------------------- one step beside another: one integral


def pair(parts):
    """The two single continuous steps of these parts, or None if there are others."""
    smooth = [part for part in parts if not part.counted]
    if any(part.swapped or part.k > 2 and not part.is_plain("gaussian") for part in smooth):
        return None
    steps = []
    for part in smooth:
        plain = part.is_plain("gaussian")
        steps += [part.as_one()] if plain else [replace(part, k=1)] * part.k
    counted = [part for part in parts if part.counted]
    return steps if len(steps) == 2 and terms(counted) <= 60 else None


def pair_delta(parts, way, e):
    """E over the first step's loss of what the others leave."""
    first, second = pair(parts)
    losses, infinite = masses(parts, way)
    rate, unit = arb(first.rate), 1 / arb(first.value[0])

    def loss(u, analytic=False):
        inner = 1 + rate * (u.exp() - 1)
        return way * (inner.log(analytic) if analytic else inner.log())

    def rest(t):
        return sum((p * one_step_delta(second, way, t - a) for a, p in losses), infinite)

    def weight(u):  # of the loss u before sampling
        if first.kind == "laplace":
            q = (-(u + unit) / 2).exp() / 4
        else:
            q = (-((u / unit + unit / 2) ** 2) / 2).exp() / unit / (2 * arb.pi()).sqrt()
        return q * (1 + rate * (u.exp() - 1)) if way > 0 else q

    total, (low, high) = ZERO, (-unit, unit)
    if first.kind == "laplace":
        for u, q in ((-unit, arb(0.5)), (unit, (-unit).exp() / 2)):
            p = q * (1 + rate * (u.exp() - 1)) if way > 0 else q
            total += p * rest(e - loss(u))
    else:
        low, high = (s * unit * 40 + s * unit**2 / 2 for s in (-1, 1))
    cuts = [low + (high - low) * i / 60 for i in range(61)]
    for edge in (e - a - kink for a, _ in losses for kink in kinks(second, way)):
        inner = 1 + ((way * edge).exp() - 1) / rate
        if inner > 0 and low < inner.log() < high:
            cuts.append(inner.log())
    cuts = sorted((arb(cut.mid()) for cut in cuts), key=float)
    for a, b in zip(cuts, cuts[1:], strict=False):
        middle = e - loss((a + b) / 2)
        tails = [(x, p, piece(second, way, middle - x)) for x, p in losses]

        def integrand(u, analytic, tails=tails):
            t, found = e - loss(u, analytic), infinite
            for x, mass, tail in tails:
                p, q = tail(t - x, analytic)
                found = found + mass * (p - (t - x).exp() * q)
            return weight(u) * found

        total += integral(integrand, a, b)
    return total


def integral(f, low, high):
    """Of an analytic function, proved to 2^-70 of its panels."""
    if not high - low > 1e-30:
        return ZERO
    tiny = arb(2) ** -1100
    found = acb.integral(f, low, high, rel_tol=arb(2) ** -70, abs_tol=tiny, eval_limit=20_000).real
    if not found.is_finite():
        raise TooLongError
    return found
