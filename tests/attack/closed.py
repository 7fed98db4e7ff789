"""delta(epsilon) of one step in closed form, and exact sums, in ball arithmetic.

E_P (1 - exp(e - L))_+ for any real e; `way` 1 is the pair as given, -1 the pair exchanged.
"""

from functools import lru_cache
from itertools import product
from math import comb, inf

from flint import arb, arb_poly

from .mechanisms import finite_law
from .quadrature import panels

__all__ = ["binomial_delta", "exact_delta", "exact_terms", "one_step_delta"]

ZERO = arb(0)


def normal(x):
    return (-x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(mu, e):
    return normal(mu / 2 - e / mu) - e.exp() * normal(-mu / 2 - e / mu)


def laplace_delta(a, e):
    if e >= a:
        return ZERO
    return 1 - ((e - a) / 2).exp() if e > -a else 1 - e.exp()


def one_step_delta(part, way, e):
    """Of a Gaussian (k of them are one) or one Laplace step, sampled or not."""
    unit = 1 / arb(part.value[0])
    if part.kind == "gaussian":
        unit = unit * arb(part.k).sqrt() if part.rate == 1 else unit
    base = gaussian_delta if part.kind == "gaussian" else laplace_delta
    if part.rate == 1:
        return base(unit, e)
    rate = arb(part.rate)
    if part.swapped and e < 0:  # its own reverse
        return 1 - e.exp() + e.exp() * one_step_delta(part, way, -e)
    if way > 0 or part.swapped:
        inner = 1 + (e.exp() - 1) / rate
        return rate * base(unit, inner.log()) if inner > 0 else 1 - e.exp()
    left = 1 - e.exp() * (1 - rate)
    return left * base(unit, e + (rate / left).log()) if left > 0 else ZERO


# ------------------------------------------------- sums over all outcomes: finite and Laplace


def _multinomial(law, k):
    """(loss, probability) of k rounds of a finite law, losses still as counts folded in."""
    losses = [(p / q).log() for p, q in law]
    found = [(ZERO, arb(1), k)]
    for i, (p, _) in enumerate(law):
        last, spread = i == len(law) - 1, []
        for loss, weight, left in found:
            for n in [left] if last else range(left + 1):
                spread.append((loss + n * losses[i], weight * comb(left, n) * p**n, left - n))
        found = spread
    return [(loss, weight) for loss, weight, _ in found]


def outcomes(part):
    """How many terms the exact sum needs."""
    if part.plain_laplace:
        return part.k + 1
    if not part.counted:
        return inf
    return comb(part.k + part.size - 1, part.size - 1) if part.k < 10**4 else inf


def exact_terms(parts):
    """The number of terms, inf where another kind of step takes part."""
    total = 1
    for part in parts:
        total *= outcomes(part)
    laplaces = sum(part.k for part in parts if part.plain_laplace)
    return total if laplaces <= 60 else inf


@lru_cache(maxsize=16)
def atoms(parts, way, prec):
    """(losses with probabilities, probability of an infinite loss) of the finite parts."""
    del prec  # the working precision, part of the key
    found, kept = [(ZERO, arb(1))], arb(1)
    for part in parts:
        law = [(p, q) for p, q in finite_law(part, way) if p > 0]
        finite = [(p, q) for p, q in law if q > 0]
        kept *= sum((p for p, _ in finite), ZERO) ** part.k
        if finite:
            more = _multinomial(finite, part.k)
            found = [(a + b, u * v) for a, u in found for b, v in more]
        else:
            found = []
    infinite = 1 - kept if any(_has_infinite(part, way) for part in parts) else ZERO
    return found, infinite


def _has_infinite(part, way):
    return any(p > 0 and q == 0 for p, q in finite_law(part, way))


@lru_cache(maxsize=16)
def laplace_terms(parts, prec):
    """[(shift, weight, n, J)]: the transform of all Laplace steps is the sum of
    weight exp(z shift) (1+z)^(n-J) z^J / (1+2z)^n."""
    del prec
    n, found = sum(part.k for part in parts), []
    for counts in product(*(range(part.k + 1) for part in parts)):
        shift, weight = ZERO, arb(1)
        for part, j in zip(parts, counts, strict=True):
            a = 1 / arb(part.value[0])
            shift += a * (part.k - 2 * j)
            weight *= comb(part.k, j) * (-a * j).exp()
        found.append((shift, weight, n, sum(counts)))
    return found


@lru_cache(maxsize=4096)
def _residue(n, j, prec):
    """[w^(n-1)] exp(sw) (1/2+w)^(n-j-1) (w-1/2)^(j-1) / 2^n, a polynomial in s."""
    del prec

    def power(base, exponent):
        if exponent >= 0:
            return arb_poly([base, 1]) ** exponent
        return arb_poly([(-1) ** m / arb(base) ** (m + 1) for m in range(n)])

    series = power(arb(1) / 2, n - j - 1) * power(arb(-1) / 2, j - 1)
    coefficients = [series[m] if m <= series.degree() else ZERO for m in range(n)]
    factorial, out = arb(1), []
    for d in range(n):  # the power s^d meets w^(n-1-d)
        factorial = factorial * d if d else factorial
        out.append(coefficients[n - 1 - d] / factorial / arb(2) ** n)
    return arb_poly(out)


def _inverse(s, n, j, prec):
    """The inverse Laplace transform at s of (1+z)^(n-j-1) z^(j-1) / (1+2z)^n on Re z > 0."""
    if s < 0:
        return ZERO
    if n == 0:
        value = 1 - (-s).exp()
    else:
        value = (-s / 2).exp() * _residue(n, j, prec)(s)
        value += 1 if j == 0 else ZERO
        value -= (-s).exp() if j == n else ZERO
    return value if s > 0 else value.union(ZERO)


def exact_delta(parts, way, e, prec):
    """Finite pairs and plain Laplace steps: every outcome and every piece, exactly."""
    counted = tuple(part for part in parts if part.counted)
    smooth = tuple(part for part in parts if not part.counted)
    masses, infinite = atoms(counted, way, prec)
    total = infinite
    for loss, p in masses:
        for shift, weight, n, j in laplace_terms(smooth, prec):
            total += p * weight * _inverse(loss + shift - e, n, j, prec)
    return total


# ------------------------------------------------- two outcomes, any number of rounds


def _upper(j, k, p, rest):
    """P(Bin(k, p) >= j) as an incomplete beta integral in t = log x/(1-x)."""
    if j <= 0:
        return arb(1)
    if j > k:
        return ZERO
    a, b = arb(j), arb(k - j + 1)
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    end, mode, sd = (p / rest).log(), (a / b).log(), ((a + b) / (a * b)).sqrt()

    def log_density(t):
        return a * t - (a + b) * (1 + t.exp()).log() - log_beta

    high = end if end < mode + 60 * sd else mode + 60 * sd
    edges = [high]
    # left of the mode the density may fall steeply: panels as long as it takes to fall by e^2
    start = mode if mode < high else high
    while edges[-1] > start + sd:
        edges.append(edges[-1] - sd)
    peak = log_density(start)
    while log_density(edges[-1]) > peak - 250:
        slope = abs(a - (a + b) / (1 + (-edges[-1]).exp())) + 1 / sd
        edges.append((edges[-1] - 2 / slope).mid())
    found = panels(lambda t: (log_density(t) - peak).exp(), edges[::-1])
    return peak.exp() * found * arb(1, arb(10) ** -60)


def binomial_delta(part, way, e):
    """k rounds of a pair of two outcomes, both possible under both laws."""
    (p1, q1), (p0, q0) = finite_law(part, way)
    up, down = (p1 / q1).log(), (p0 / q0).log()
    if up < down:
        (p1, q1, up), (p0, q0, down) = (p0, q0, down), (p1, q1, up)
    k = part.k
    edge = (e - k * down) / (up - down)  # the loss exceeds e for more ups than this
    floor = edge.floor()
    j = int(floor.mid().fmpz()) + 1 if floor.rad() == 0 else int(edge.mid().ceil().fmpz())
    return _upper(j, k, p1, p0) - e.exp() * _upper(j, k, q1, q0)
