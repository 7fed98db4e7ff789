"""A kind of sampled Gaussian step in ball arithmetic: M at the nodes of a line, and how it falls.

Used: jumps-lift, jumps-quadrature, X-lifted-sum, and for bands X-smooth-weights. Every number is a
ball that surely contains the true one; ``surely`` asks for each comparison, and ``least`` takes the
best of upper bounds.
"""

from math import ceil, floor, log1p, sqrt

from flint import acb, acb_mat, arb, arb_poly, ctx

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
LONG_LINE, TURN = 200, 4  # nodes from which on terms that turn by less are summed by a series
MANY, LONG = 2_000_000, 5 * 10**8  # most outcomes of a window; products with the nodes of a line


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

    Of a band the outcomes have weights. A cut (t, width) keeps Pr[x + width Z <= t], Z normal.
    ``above`` is the cut that all rounds pass, ``below`` the one that a round of the band fails; so
    M of the band has the powers of ``high`` less those of ``low``, and ``part`` is between both."""

    def __init__(self, step, c, way, line, cuts):
        (self.s, self.r), self.way, self.bits = step, way, line.bits
        self.n, (spacing, self.above, self.below) = c + 1 if way > 0 else -c, cuts
        self.spacing = arb(spacing)
        surely(self.spacing > 0, "a spacing is positive")
        self.steep = arb(1)  # X-smooth-weights
        for cut in filter(None, (self.above, self.below)):
            surely(way > 0 and arb(cut[1]) > 0, "only the mixture against q has bands")
            self.steep = 1 + (self.s / arb(cut[1])) ** 2
        outcomes = self.window(spacing, line)
        self.front = self.spacing / (self.s * (2 * arb.pi()).sqrt())
        self.odd = [self.r * self.ratio(x) for x in outcomes]
        self.w = [1 - self.r + v for v in self.odd]
        self.loss = [w.log() for w in self.w]
        square = [(x / self.s) ** 2 / 2 for x in outcomes]
        terms = zip(self.loss, square, strict=True)
        base = [self.front * (self.n * loss - half).exp() for loss, half in terms]
        over = [self.kept(self.above, x) for x in outcomes]
        under = [self.kept(self.below, x) if self.below else arb(0) for x in outcomes]
        self.high = [b * a for b, a in zip(base, over, strict=True)]
        self.low = [b * a for b, a in zip(base, under, strict=True)]
        self.part = [b * (a - o) for b, a, o in zip(base, over, under, strict=True)]
        ends = self.outside(outcomes[0] - self.spacing, outcomes[-1] + self.spacing)
        self.beyond, self.tails = ends[1], least([sum(ends)])

    def window(self, spacing, line):
        """The outcomes of the sums: only a guess, as all bounds are of the window as it is."""
        s, r, n = float(self.s), float(self.r), float(self.n)
        wide = sqrt(1.4 * self.bits)
        low = 0.0 if n >= 0 else max(n, -s * s * log1p(-n * r / (s * s * (1 - r))))
        high = max(1.0, n) + s * wide
        if self.above:
            t, width = self.above
            narrow = 1 / (1 / s**2 + 1 / width**2)
            far = sqrt(narrow * (1.4 * self.bits + 1.3 * line.nodes / line.period))
            high = min(high, narrow * (n / s**2 + t / width**2) + far)
        self.first, last = floor((low - s * wide) / spacing), ceil(max(high, 1.0) / spacing)
        few = 10 if self.above or self.below else 1  # of each of several bands
        limit_work(last - self.first, line, few)
        return [self.spacing * i for i in range(self.first, last + 1)]

    def kept(self, cut, x):
        return beyond((x - arb(cut[0])) / arb(cut[1])) if cut else arb(1)

    def ratio(self, x):
        return ((x - arb("0.5")) / self.s**2).exp()

    def half_line(self, x):
        """At least spacing times the sum of phi at x, x + spacing, ...: phi falls from 0 on."""
        surely(x >= 0, "the window is too narrow")
        return self.front * (-((x / self.s) ** 2) / 2).exp() + beyond(x / self.s)

    def outside(self, low, high):
        """At least the sums of phi w^n over what is left and right of the window. As w increases
        and w e^-u decreases, u = (x - 1/2)/sigma^2: for n > 0, w^n is at most its value at the
        left end, and (w e^-u)^n e^(nu) with the first factor of the right end; phi e^(nu) is
        e^(n(n-1)/(2 sigma^2)) phi(x - n). For n < 0 w >= 1 - rate serves on the left. A weight is
        at most 1, and right of t at most e^(-((x - t)/width)^2/2): if the product falls at the
        end, it falls from there like a normal density of at most this width, or faster."""
        s, r, n = self.s, self.r, self.n
        if self.way > 0:
            first = (r + (1 - r) / self.ratio(high)) ** n
            left = (1 - r + r * self.ratio(low)) ** n * self.half_line(-low)
            if not self.above:
                gain = (n * (n - 1) / (2 * s**2)).exp()
                return left, first * gain * self.half_line(high - n)
            t, width = map(arb, self.above)
            falls = (high - n) / s**2 + (high - t) / width**2
            surely((high >= t) & (falls >= 0), "the window is too narrow")
            power = n * (high - arb("0.5")) / s**2 - (high / s) ** 2 / 2
            power -= ((high - t) / width) ** 2 / 2
            area = 1 + width * (arb.pi() / 2).sqrt() / self.spacing
            return left, first * self.front * power.exp() * area
        right = (1 - r + r * self.ratio(high)) ** n
        return (1 - r) ** n * self.half_line(-low), right * self.half_line(high)

    def shrink(self, angle):
        """kappa of jumps-quadrature."""
        return arb(1) if self.way > 0 else (angle / 2).cos() ** self.n

    def off(self, angle, kappa, rise):
        gain = 2 * arb.pi() * self.s**2 * angle / self.spacing
        return 2 * kappa * (self.lift(angle) + rise).exp() / (gain.exp() - 1)

    def lift(self, angle):
        return self.steep * (self.s * angle) ** 2 / 2

    def measure(self, height):
        """M(c), and by how much a sum is off up to this height (jumps-quadrature): by a share of
        M(c), and a rest."""
        rough, ways = sum(self.high, arb(0)) + self.tails, []
        far = self.far() if self.way > 0 else ()
        for a in map(arb, ANGLES):
            unit = self.off(a, self.shrink(a), arb(0))
            most = unit * (height * a).exp()
            ways.append((most, arb(0)))
            for v, beyond_it in far if a < arb.pi() / 2 else ():
                phase = (v * a.sin() / (1 - self.r + v * a.cos())).atan()
                ways.append((unit * (height * phase).exp(), most * beyond_it))
        sums = [(share * rough + rest, share, rest) for share, rest in ways]
        best = least(one for one, *_ in sums)
        share, rest = next(two for one, *two in sums if one.upper() <= best)
        surely(share < 1, "the spacing of outcomes is too large")
        self.real = least([(rough + rest) / (1 - share)])
        self.error = least([self.tails + share * self.real + rest])

    def far(self):
        """Places x, by their v, where a phase is not yet large, and at least the integral of all
        beyond x: from one outcome to the next phi and the weight fall, and w rises by at most
        e^(spacing/sigma^2)."""
        step, found, rest = (self.n * self.spacing / self.s**2).exp(), [], self.beyond
        every = len(self.high) // 100 + 1
        for at in range(len(self.high) - 1, max(-self.first, 0), -1):
            rest += step * self.high[at]
            if at % every == 0:
                found.append((self.odd[at], rest))
        return found

    def values(self, h, count):
        """M at the nodes: of ``high``, and of ``low`` where the band ends."""
        if not self.below:
            return self.turned(self.high, h, count), None
        low, part = (self.turned(terms, h, count) for terms in (self.low, self.part))
        return [a + b for a, b in zip(low, part, strict=True)], low

    def turned(self, terms, h, count):
        return at_nodes(self, terms, self.way * h, count)

    def lifted(self, height, angle):
        """At least abs(M(c + iy)) for all y from there on (jumps-lift, X-lifted-sum); where the
        band ends, also at least that of ``part``."""
        surely((angle > 0) & (angle < arb.pi() / 2), "the angle of the lift")
        turned, factors, spread = 4 * (angle / 2).sin() ** 2, [], []
        for v, w in zip(self.odd, self.w, strict=True):
            size = (1 - turned * (v / w) * (1 - v / w)) ** (self.n / 2)
            phase = (v * angle.sin() / (1 - self.r + v * angle.cos())).atan()
            factors.append(size * (-height * phase).exp())
        for a in map(arb, ANGLES):
            if a + angle < arb.pi() / 2 or (a <= angle and a + angle < arb.pi()):
                both = ((angle + a) / 2).cos() * ((angle - a) / 2).cos()
                kappa = arb(1) if self.way > 0 else both ** (self.n / 2)
                spread.append(self.off(a, kappa, arb(0)))
        rest, found = self.shrink(angle) * self.tails + least(spread) * self.real, []
        for terms in (self.high, self.part) if self.below else (self.high,):
            total = sum((a * b for a, b in zip(terms, factors, strict=True)), rest)
            found.append(least([self.lift(angle).exp() * total, self.real]))
        return found


def limit_work(outcomes, line, windows=1):
    """Refuse so many outcomes, in each of several windows, on this line."""
    many = windows * outcomes
    surely(many <= MANY and many * line.bits <= 400 * MANY, "too many outcomes")
    surely(line.nodes * outcomes <= LONG, "the line is too long")


def at_nodes(one, terms, h, count):
    """The integrals at the nodes of a line: ``terms`` turned by the losses of ``one``, and its
    error."""
    small = (one.real * arb(2) ** -one.bits).lower()
    total, rest = turned(terms, one.loss, h, count, small)
    error = least([one.error + rest])
    return [value + acb(arb(0, error), arb(0, error)) for value in total]


def turned(terms, losses, h, count, small):
    """Sums of terms times all powers of the turns e^(ih loss), and what they leave out: terms below
    ``small``. By products of small matrices, or on a long line by a series if they hardly turn."""
    many = min(int(sqrt(count)) + 1, 32)
    rest, slow, kept, end = arb(0), [], [], h * count
    for term, loss in zip(terms, losses, strict=True):
        if abs(term) < small:
            rest += abs(term)
        elif count >= LONG_LINE and abs(end * loss) < TURN:
            slow.append((term, end * loss))
        else:
            kept.append((acb(term), acb(0, h * loss).exp()))
    total, more = series(slow, count)
    for start in range(0, len(kept), 128):
        some, turns = zip(*kept[start : start + 128], strict=True)
        fine = powers(some, turns, many)
        leaps = [turn**many for turn in turns]
        coarse = powers([acb(1)] * len(turns), leaps, count // many + 1)
        both = (acb_mat(coarse) * acb_mat(fine).transpose()).entries()
        total = [old + new for old, new in zip(total, both, strict=False)]
    return total, rest + more


def series(slow, count):
    """The sums of terms that turn by less than TURN on the whole line, by the series of e^(ix), and
    at least what it leaves out: of e^(ix) the next term."""
    if not slow:
        return [acb(0)] * (count + 1), arb(0)
    rows, angles = map(list, zip(*slow, strict=True))
    next_term = sum(map(abs, rows), arb(0))
    parts: tuple[list, list] = ([], [])
    goal = next_term * arb(2) ** -ctx.prec
    while next_term > goal:  # of nan it ends, and all is nan
        n = len(parts[0]) + len(parts[1])
        parts[n % 2].append(sum(rows, arb(0)) * (-1) ** (n // 2))
        rows = [row * angle / (n + 1) for row, angle in zip(rows, angles, strict=True)]
        next_term *= arb(TURN) / (n + 1)
    even, odd = map(arb_poly, parts)
    places = [arb(j) / count for j in range(count + 1)]
    return [acb(even(x * x), x * odd(x * x)) for x in places], next_term


def powers(rows, turns, count):
    """`rows` times the powers 0, ..., count - 1 of the turns."""
    table = []
    for _ in range(count):
        table.append(rows)
        rows = [row * turn for row, turn in zip(rows, turns, strict=True)]
    return table
