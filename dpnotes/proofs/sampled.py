"""A kind of sampled Gaussian step in ball arithmetic: M at the nodes of a line, and how it falls.

Used: jumps-lift, jumps-quadrature, X-lifted-sum. Every number is a ball that surely contains the
true one; ``surely`` asks for each comparison, and ``least`` takes the best of upper bounds.
"""

from math import ceil, floor, log1p, sqrt

from flint import acb, acb_mat, arb

ANGLES = [
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.35,
    0.5,
    0.75,
    1,
    1.25,
    1.5,
    1.75,
    2,
    2.25,
    2.5,
    2.75,
    3,
    3.1,
]
MANY = 2_000_000  # most outcomes of a window


class Unproved(ValueError):
    """No proof was found, or what was said to be one is none."""


def surely(statement, what):
    """A comparison of balls is True only if it holds for all their points; of nan it is False."""
    if not statement:
        raise Unproved(what)


def least(bounds):
    """The best of several upper bounds, an exact number; those that are not finite do not count."""
    best = None
    for bound in bounds:
        if bound.is_finite() and (best is None or bound.upper() < best):
            best = bound.upper()
    surely(best is not None, "no bound is finite")
    return best


def beyond(x):
    """The probability that a standard normal number is above x."""
    return (x / arb(2).sqrt()).erfc() / 2


def sampled_step(sigma, rate, epsilon, way):
    """delta of one sampled Gaussian step: of the outcomes that lose more than epsilon."""
    odds = (way * epsilon).exp() - 1 + rate
    if way < 0 and odds <= 0:
        return arb(0)
    surely(odds > 0, "the outcome where the loss is epsilon is not known")
    x = 1 / (2 * sigma) + sigma * (odds / rate).log()  # in standard deviations
    if way > 0:
        return rate * beyond(x - 1 / sigma) - odds * beyond(x)
    lost = 1 - epsilon.exp() * (1 - rate)
    return beyond(-x) * lost - epsilon.exp() * rate * beyond(1 / sigma - x)


class Sampled:
    """M of one kind of sampled Gaussian step: sums over outcomes x, a spacing apart, of
    phi(x) w^n e^(iy log w), w = 1 - rate + rate e^((x - 1/2)/sigma^2), n = 1 + c (or -c, and -y).
    """

    def __init__(self, sigma, rate, c, way, spacing, bits):
        self.s, self.r, self.n, self.way = sigma, rate, c + 1 if way > 0 else -c, way
        self.spacing = arb(spacing)
        surely(self.spacing > 0, "a spacing is positive")
        s, r, n = float(sigma), float(rate), float(self.n)
        wide = s * sqrt(1.4 * bits)  # only a guess: all bounds are of the window as it is
        low = 0.0 if n >= 0 else max(n, -s * s * log1p(-n * r / (s * s * (1 - r))))
        first, last = floor((low - wide) / spacing), ceil((max(1.0, n) + wide) / spacing)
        surely(last - first <= MANY, "too many outcomes")
        outcomes = [self.spacing * i for i in range(first, last + 1)]
        self.front = self.spacing / (sigma * (2 * arb.pi()).sqrt())
        self.odd = [rate * self.ratio(x) for x in outcomes]
        self.w = [1 - rate + v for v in self.odd]
        self.loss = [w.log() for w in self.w]
        square = [(x / sigma) ** 2 / 2 for x in outcomes]
        terms = zip(self.loss, square, strict=True)
        self.base = [self.front * (self.n * loss - half).exp() for loss, half in terms]
        self.tails = least([self.outside(outcomes[0] - self.spacing, outcomes[-1] + self.spacing)])

    def ratio(self, x):
        return ((x - arb("0.5")) / self.s**2).exp()

    def half_line(self, x):
        """At least spacing times the sum of phi at x, x + spacing, ...: phi falls from 0 on."""
        surely(x >= 0, "the window is too narrow")
        return self.front * (-((x / self.s) ** 2) / 2).exp() + beyond(x / self.s)

    def outside(self, low, high):
        """At least the sum of phi w^n over what is left and right of the window. As w increases
        and w e^-u decreases, u = (x - 1/2)/sigma^2: for n > 0, w^n is at most its value at the
        left end, and (w e^-u)^n e^(nu) with the first factor of the right end; phi e^(nu) is
        e^(n(n-1)/(2 sigma^2)) phi(x - n). For n < 0 w >= 1 - rate serves on the left."""
        s, r, n = self.s, self.r, self.n
        if self.way > 0:
            gain = (n * (n - 1) / (2 * s**2)).exp() * (r + (1 - r) / self.ratio(high)) ** n
            left = (1 - r + r * self.ratio(low)) ** n
            return gain * self.half_line(high - n) + left * self.half_line(-low)
        right = (1 - r + r * self.ratio(high)) ** n
        return right * self.half_line(high) + (1 - r) ** n * self.half_line(-low)

    def shrink(self, angle):
        """kappa of jumps-quadrature."""
        return arb(1) if self.way > 0 else (angle / 2).cos() ** self.n

    def off(self, angle, kappa, rise):
        gain = 2 * arb.pi() * self.s**2 * angle / self.spacing
        return 2 * kappa * ((self.s * angle) ** 2 / 2 + rise).exp() / (gain.exp() - 1)

    def measure(self, height):
        """M(c), and by how much a sum is off up to this height (jumps-quadrature)."""
        angles = [arb(a) for a in ANGLES]
        share = least(self.off(a, self.shrink(a), height * a) for a in angles)
        surely(share < 1, "the spacing of outcomes is too large")
        self.real = least([(sum(self.base, arb(0)) + self.tails) / (1 - share)])
        self.error = least([self.tails + share * self.real])

    def values(self, h, count):
        """M at the nodes: all powers of the turns e^(ih log w) by products of small matrices."""
        many = min(int(sqrt(count)) + 1, 32)
        total = [acb(0)] * (count + 1)
        for start in range(0, len(self.base), 128):
            some = slice(start, start + 128)
            turns = [acb(0, self.way * h * loss).exp() for loss in self.loss[some]]
            fine = powers([acb(b) for b in self.base[some]], turns, many)
            leaps = [turn**many for turn in turns]
            coarse = powers([acb(1)] * len(turns), leaps, count // many + 1)
            both = (acb_mat(coarse) * acb_mat(fine).transpose()).entries()
            total = [old + new for old, new in zip(total, both, strict=False)]
        ball = acb(arb(0, self.error), arb(0, self.error))
        return [value + ball for value in total]

    def lifted(self, height, angle):
        """At least abs(M(c + iy)) for all y from there on (jumps-lift, X-lifted-sum)."""
        surely((angle > 0) & (angle < arb.pi() / 2), "the angle of the lift")
        turned, total = 4 * (angle / 2).sin() ** 2, arb(0)
        for base, v, w in zip(self.base, self.odd, self.w, strict=True):
            size = (1 - turned * (v / w) * (1 - v / w)) ** (self.n / 2)
            phase = (v * angle.sin() / (1 - self.r + v * angle.cos())).atan()
            total += base * size * (-height * phase).exp()
        spread = []
        for a in map(arb, ANGLES):
            if a + angle < arb.pi() / 2 or (a <= angle and a + angle < arb.pi()):
                both = ((angle + a) / 2).cos() * ((angle - a) / 2).cos()
                kappa = arb(1) if self.way > 0 else both ** (self.n / 2)
                spread.append(self.off(a, kappa, arb(0)))
        total += self.shrink(angle) * self.tails + least(spread) * self.real
        return least([((self.s * angle) ** 2 / 2).exp() * total, self.real])


def powers(rows, turns, count):
    """`rows` times the powers 0, ..., count - 1 of the turns."""
    table = []
    for _ in range(count):
        table.append(rows)
        rows = [row * turn for row, turn in zip(rows, turns, strict=True)]
    return table
