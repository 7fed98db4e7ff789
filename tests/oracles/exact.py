"""delta(epsilon) of one `way` exactly: sums over all outcomes."""

from functools import lru_cache
from itertools import product
from math import comb, inf

from flint import acb, arb, arb_poly

from .laws import ONE, ZERO, TooLongError, finite_law, finite_losses

MOST_TERMS = 4000


def _multinomial(losses, k):
    """[(loss, probability)] of k rounds."""
    sums = [(ZERO, ONE, k)]
    for i, (loss, p) in enumerate(losses):
        last, spread = i == len(losses) - 1, []
        for total, weight, left in sums:
            for n in [left] if last else range(left + 1):
                spread.append((total + n * loss, weight * comb(left, n) * p**n, left - n))
        sums = spread
    return [(total, weight) for total, weight, _ in sums]


def terms(parts):
    """How many terms the exact sum has; inf where another kind of step takes part."""
    total = 1
    for part in parts:
        if not (part.is_plain("laplace") or (part.counted and part.k < 10_000)):
            return inf
        size = len(finite_law(part, 1)) if part.counted else 2
        total *= comb(part.k + size - 1, size - 1)
    return total if sum(part.k for part in parts if not part.counted) <= 60 else inf


@lru_cache(maxsize=16)
def masses(parts, way):
    """[(loss, probability)] of the counted parts together, and P(the loss is infinite)."""
    sums, kept = [(ZERO, ONE)], ONE
    for part in (part for part in parts if part.counted):
        losses, infinite = finite_losses(part, way)
        kept *= (1 - infinite) ** part.k
        more = _multinomial(losses, part.k) if losses else []
        sums = [(a + b, u * v) for a, u in sums for b, v in more]
    return sums, 1 - kept if not kept == 1 else ZERO


# --------------------------------------------- finite pairs and unsampled Laplace steps


@lru_cache(maxsize=16)
def _laplace_terms(parts):
    """[(shift, weight, n, j)]: the transform of all Laplace steps is the sum of
    weight exp(z shift) (1+z)^(n-j) z^j / (1+2z)^n."""
    n, listed = sum(part.k for part in parts), []
    for counts in product(*(range(part.k + 1) for part in parts)):
        shift, weight = ZERO, ONE
        for part, j in zip(parts, counts, strict=True):
            unit = 1 / arb(part.value[0])
            shift += unit * (part.k - 2 * j)
            weight *= comb(part.k, j) * (-unit * j).exp()
        listed.append((shift, weight, n, sum(counts)))
    return listed


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


def integral(f, low, high):
    """Of an analytic function, proved to 2^-70 of its panels."""
    if not high - low > 1e-30:
        return ZERO
    tiny = arb(2) ** -1100
    value = acb.integral(f, low, high, rel_tol=arb(2) ** -70, abs_tol=tiny, eval_limit=20_000).real
    if not value.is_finite():
        raise TooLongError
    return value
