"""A kind of Gaussian step on a sample, under substitution, in ball arithmetic: as ``sampled``.

By X-substitution-sampling M(z) is the chance that nothing is lost, and for n = 1 + z and n = -z the
integral over l > 0 of phi(l + m) w^n, m = 1/(2 sigma), w = 1 - rate + rate e^(l/sigma). With l =
log(1 + e^t) both are sums over nodes t on the whole line. Used: X-proof-substitution.
"""

from math import ceil, floor, sqrt

from flint import acb, arb

from .sampled import ANGLES, at_nodes, beyond, least, limit_work, surely


def normal(x):
    return (-(x**2) / 2).exp() / (2 * arb.pi()).sqrt()


class Half:
    """The integral of phi(l + m) w^(n + iy): n > 0, or n < 0, where w^n is at most 1."""

    def __init__(self, step, n, spacing, line):
        (self.s, self.r), self.n, self.bits = step, n, line.bits
        self.m, self.unit, self.spacing = 1 / (2 * self.s), self.s.min(arb(1)), arb(spacing)
        surely(self.spacing > 0, "a spacing is positive")
        wide = max(float(n / self.s - self.m), 0.0) + sqrt(1.4 * self.bits)
        first, last = floor(-0.7 * self.bits / spacing), ceil(wide / spacing)
        limit_work(last - first, line)
        self.places = [self.spacing * i for i in range(first, last + 1)]
        at = [self.outcome(t) for t in self.places]
        self.loss = [self.ratio(el).log() for el in at]
        whole = zip(self.places, at, self.loss, strict=True)
        self.terms = [
            self.spacing * normal(el + self.m) * (t - el + n * loss).exp() for t, el, loss in whole
        ]
        ends = self.places[0] - self.spacing, self.places[-1] + self.spacing
        self.tails = least([self.outside(*ends)])

    def outcome(self, t):
        return t.exp().log1p()

    def ratio(self, el):
        return 1 - self.r + self.r * (el / self.s).exp()

    def outside(self, low, high):
        """At least the sums over what is left and right of the window, as l is at least t and w
        increases, while w e^(-l/sigma) decreases: phi(l + m) e^(nl/sigma) is e^(n(n-1)/(2 sigma^2))
        phi(l + m - n/sigma)."""
        n = self.n if self.n > 0 else arb(0)
        most = self.ratio(self.outcome(low)) ** n * normal(self.m)
        left = self.spacing * most * low.exp() / (1 - (-self.spacing).exp())
        far = high + self.m - n / self.s
        surely((high >= 0) & (far >= 0), "the window is too narrow")
        share = self.r + (1 - self.r) * (-self.outcome(high) / self.s).exp()
        gain = share**n * (n * (n - 1) / (2 * self.s**2)).exp()
        return left + gain * (self.spacing * normal(far) + beyond(far))

    def lift(self, angle):
        """K of X-proof-substitution."""
        half = angle / 2
        more = angle**2 / 2 + 2 * half.tan() ** 2 / arb(1).exp()
        return more.exp() / half.cos() ** (1 + self.m)

    def off(self, angle, lift):
        return 2 * lift / ((2 * arb.pi() * angle / self.spacing).exp() - 1)

    def measure(self, height):
        """The integral at y = 0, and by how much a sum is off up to this height."""
        angles = [arb(a) / 2 * self.unit for a in ANGLES]
        share = least(self.off(a, self.lift(a) * (height * a / self.s).exp()) for a in angles)
        total = sum(self.terms, arb(0)) + self.tails
        if self.n > 0:
            surely(share < 1, "the spacing of outcomes is too large")
            self.real = self.whole = least([total / (1 - share)])
        else:
            self.whole = beyond(self.m)  # G of X-proof-substitution
            self.real = least([total + share * self.whole])
        self.error = least([self.tails + share * self.whole])

    def values(self, h, count):
        """At the nodes of a line."""
        return at_nodes(self, self.terms, h, count)

    def lifted(self, height, angle):
        """At least its size for all y from this height on."""
        theta = angle * self.unit
        turn, power, total = acb(0, theta), acb(self.n, height), arb(0)
        for t in self.places:
            el = (1 + (t + turn).exp()).log()
            loss = (1 - self.r + self.r * (el / self.s).exp()).log()
            term = t + turn - el - (el + self.m) ** 2 / 2 + power * loss
            total += term.real.exp()
        spread = []
        for a in (arb(x) / 2 * self.unit for x in ANGLES):
            if a + theta < self.unit * arb.pi() / 2:
                spread.append(self.off(a, self.lift(a + theta)))
        total *= self.spacing / (2 * arb.pi()).sqrt()
        total += self.lift(theta) * self.tails + least(spread) * self.whole
        return least([total, self.real])


class Replaced:
    """M of one kind of step, with the names of ``Sampled``."""

    below = ()

    def __init__(self, step, c, line, cuts):
        spacing, *bands = cuts
        surely(not any(bands), "only steps where a person is added or removed have bands")
        self.halves = [Half(step, n, spacing, line) for n in (c + 1, -c)]
        sigma, rate = step
        self.still = (1 - rate) * (1 / (arb(8).sqrt() * sigma)).erf()

    def measure(self, height):
        for half in self.halves:
            half.measure(height)
        self.real = least([self.still + sum(half.real for half in self.halves)])

    def values(self, h, count):
        up, down = (half.values(h, count) for half in self.halves)
        pairs = zip(up, down, strict=True)
        return [self.still + one + other.conjugate() for one, other in pairs], None

    def lifted(self, height, angle):
        surely((angle > 0) & (angle < arb.pi() / 2), "the angle of the lift")
        return [least([self.still + sum(x.lifted(height, angle) for x in self.halves)])]
