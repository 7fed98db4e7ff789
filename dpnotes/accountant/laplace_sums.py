"""Few Laplace steps, of any scales, beside finite losses: an exact sum in rational numbers.

A step of scale 1/a has P(L = a) = 1/2, P(L = -a) = exp(-a)/2 and the density exp((L - a)/2)/4
between, so exp(-L/2) P is exp(-a/2) times a symmetric law with the transform

    (e^{as} (1 + 1/2s) + e^{-as} (1 - 1/2s)) / 2.

In the product over K steps every vertex v (the sum of all a with signs, j of them plus) has
(1 + y)^j (1 - y)^{K-j} = sum_m c_m y^m, y = 1/2s: an atom at v and truncated powers (v - l)^{m-1}
to its left. Their integrals against 1 - exp(e - l) are sums of x^n/n!, x = (v - e)/2, and all but
one of the exponentials are the same at every vertex. With A the sum of all a, for -A <= e < A,

    1 - delta(e) = 2^-K exp((e - A)/2) sum over v > e of sum_{n<K} u_n x^n / n!,
    u_n = 2 sum of c_m over m > n with m + n odd.

The sum is taken in decimals; what cancels is measured, and the digits raised until it is harmless.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import comb, exp, factorial, inf, log, log10, nextafter, prod

from . import finite_sums
from .kept import Kept
from .laplace import Laplace
from .law import EPS
from .step import Finite
from .work import spend

__all__ = []

MOST_WORK = 15_000  # vertices times (steps + 30), and LOSS, times finite losses
LOSS, UNIT = 150, 700  # work beside the vertices, in those units; and in nanoseconds
DIGITS = 22  # of the result that are right
MOST_DIGITS = 4000  # in between


def sums(parts):
    """The Exact sum of few unsampled Laplace steps and finite ones, or None."""
    noise = [(step, k) for step, k in parts if isinstance(step, Laplace) and step.rate == 1]
    rest = tuple((step, k) for step, k in parts if isinstance(step, Finite))
    if not noise or len(noise) + len(rest) < len(parts):
        return None
    work = prod(k + 1 for _, k in noise) * (30 + sum(k for _, k in noise)) + LOSS
    if work > MOST_WORK:
        return None
    atoms = finite_sums.enumerated(rest)
    if atoms is None or work * len(atoms.loss) > MOST_WORK:
        return None
    return LaplaceSum(parts, noise, atoms, work * len(atoms.loss))


@lru_cache(maxsize=1000)
def coefficients(j, k):
    """u_0, u_1, ... of a vertex with j of k signs plus, divided by n! as numerator and n!."""
    c = [comb(j, m) for m in range(j + 1)]
    for _ in range(k - j):  # times 1 - y
        c = [one - other for one, other in zip([*c, 0], [0, *c], strict=True)]
    sums, found = [0, 0], []  # of c_m over m > n of either parity
    for n in range(k - 1, -1, -1):
        sums[(n + 1) % 2] += c[n + 1]
        found.append((2 * sums[(n + 1) % 2], factorial(n)))
    return found  # n descending


class LaplaceSum(Kept):
    """r(e) of the Laplace steps to ``DIGITS`` digits, averaged over the finite losses."""

    def __init__(self, parts, noise, atoms, work=MOST_WORK):
        super().__init__(parts)
        self.work, self.atoms, self.steps = work, atoms, sum(k for _, k in noise)
        scales = [1 / Fraction(step.scale) for step, _ in noise]
        found = []
        for plus in product(*(range(k + 1) for _, k in noise)):
            v = sum((2 * j - k) * a for j, (_, k), a in zip(plus, noise, scales, strict=True))
            ways = prod(comb(k, j) for j, (_, k) in zip(plus, noise, strict=True))
            found.append((v, ways, sum(plus)))
        self.vertices = sorted(found, reverse=True)
        self.end = self.vertices[0][0]
        exact = [self.end + Fraction(top) for top in atoms.top]
        bottom, top = map(float, exact)
        self.top = (
            bottom if Fraction(bottom) <= exact[0] else nextafter(bottom, -inf),
            top if Fraction(top) >= exact[1] else nextafter(top, inf),
        )

    @property
    def kinks(self):
        """Where the atoms are."""
        return {float(v) + loss for v, _, _ in self.vertices for loss in self.atoms.loss.tolist()}

    def _noise_rest(self, e):
        """(t, r) of the Laplace steps at a rational e, rounded to floats."""
        if e >= self.end:
            return 0.0, 1.0
        if e < -self.end:
            with localcontext(prec=50):
                rest = _decimal(e).exp()
                return float(1 - rest), float(rest)
        corners = [(v - e, ways, j) for v, ways, j in self.vertices if v > e]
        size = max(map(self._size, corners)) + log10(40 * self.steps * len(corners))
        digits = 40 + self.steps
        while digits < MOST_DIGITS:
            with localcontext(prec=digits):
                total = sum(self._corner(*corner) for corner in corners)
                front = (_decimal((e - self.end) / 2)).exp() / 2**self.steps
                rest = front * total
                least = min(total, (1 - rest) / front)
                if least > 0:
                    need = int(DIGITS + 1 + size) - int(least.log10())
                    if digits >= need:
                        return float(1 - rest), float(rest)
                    digits = max(need, digits + 1)
                else:
                    digits *= 2
        return None

    def _size(self, corner):
        """log10 of a bound on the sum of the sizes of its terms: u_n <= 2^(K+1), and
        x^n/n! adds up to at most e^x, or (x/K)^K e^K if x > K."""
        gap, ways, _ = corner
        x, k = float(gap) / 2, self.steps
        power = x if x < k else k * (1 + log(x / k))
        return log10(ways) + (k + 1) * log10(2) + power / log(10)

    def _corner(self, gap, ways, j):
        x, total = _decimal(gap / 2), Decimal(0)
        for u, n in coefficients(j, self.steps):
            total = total * x + Decimal(u) / n
        return ways * total

    @lru_cache(maxsize=2)  # noqa: B019 (both sums of one epsilon)
    def _moved(self, epsilon):
        """(log_p, noise, (t, r) below and above) of each finite loss."""
        spend(UNIT * self.work)
        atoms, e, found = self.atoms, Fraction(epsilon), []
        for loss, fine, shift, log_p, noise in zip(
            atoms.loss, atoms.fine, atoms.shift, atoms.log_p, atoms.noise, strict=True
        ):
            at, shift = e - Fraction(loss) - Fraction(fine), Fraction(shift)
            ends = [self._noise_rest(at + way * shift) for way in ((1, -1) if shift else (1,))]
            if None in ends:
                ends = [(0.0, 0.0), (1.0, 1.0)]
            found.append((log_p, noise, ends[0], ends[-1]))
        return found

    def tail(self, epsilon):
        return self._mean(epsilon, 0)

    def rest(self, epsilon):
        return self._mean(epsilon, 1)

    def _mean(self, epsilon, which):
        """From below and above: t falls and r rises with e."""
        low = high = 0.0
        for log_p, noise, right, left in self._moved(epsilon):
            ends = sorted((right[which], left[which]))
            low += exp(log_p - noise) * nextafter(ends[0], 0.0)
            high += exp(log_p + noise) * nextafter(ends[1], inf) if ends[1] else 0.0
        pad = EPS * (len(self.atoms.loss) + 8) * (len(self.atoms.loss) > 1)
        return max(0.0, low * (1 - pad)), min(1.0, high * (1 + pad))


def _decimal(fraction):
    return Decimal(fraction.numerator) / fraction.denominator
