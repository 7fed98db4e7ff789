"""Proves an upper bound on delta(epsilon) in ball arithmetic, without code of the accountant.

Every number is a ball that surely contains the true one. So a comparison that is true is proved;
``surely`` asks for each. By X-proof, for c > 0, z_j = c + ihj, h = 2 pi / period,

    delta(e) <= P(L = infinity) + (h/2pi) sum over abs(j) <= J of M(z_j) e^(-e z_j)/(z_j (z_j + 1))
                - (what the left aliases add at least, X-left-aliases)
                + sup over y >= h (J+1) of abs(M(c + iy)), times e^(-ce) / (pi h J).

M is the product over all steps: sampled Gaussian ones by ``Sampled``, under substitution by
``Replaced`` (X-proof-substitution), the rest in closed form. With J = 0 it is Chernoff's bound
(X-alias-bound, part 1). Of Laplace noise alone M does not fall: its atoms are listed, and the line
is of the rest (X-proof-atoms). Where sampling is rare the runs are sorted by their largest outcome,
and each band has a line (X-proof-bands). Both directions: ``way`` 1 is p against q, -1 the reverse,
where M(z) is the M of p against q at -1 - z (X-two-directions).
"""

from itertools import combinations, pairwise, product
from math import ceil, comb, inf, nextafter, prod
from typing import NamedTuple

from flint import acb, arb, ctx, fmpz

from .replaced import Replaced
from .sampled import Sampled, beyond, least, sampled_step, surely

FEW, ROUNDS = 2_000_000, 20_000  # outcomes of all sums that are listed, and rounds of one law
LONGEST = 10**8  # nodes of a line, times their bits


class Line(NamedTuple):
    """Where a direction is proved: the tilt c, the period, the number J of nodes, the angle of the
    lift, bits of the balls, and the spacing of outcomes of each kind of sampled step. Of a band
    also the cut (place, width) of each kind below which all runs belong to the next line."""

    c: float
    period: float
    nodes: int
    angle: float
    bits: int
    spacings: tuple
    cuts: tuple = ()


def gaussian(mu, epsilon):
    """delta of Gaussian noise; beyond(-x) keeps its digits."""
    return beyond(epsilon / mu - mu / 2) - epsilon.exp() * beyond(epsilon / mu + mu / 2)


class Run:
    """The steps of a run as balls, in one direction: what is known of M and of the largest loss."""

    def __init__(self, steps, way):
        self.way, self.square = way, arb(0)  # mu^2 of all Gaussian noise
        self.sampled, self.replaced, self.laplace, self.laws = [], [], [], []
        for step in steps:
            k = step["times"]
            if step["kind"] == "gaussian":
                self.square += k / arb(step["sigma"]) ** 2
            elif step["kind"] == "laplace":
                self.laplace.append((1 / arb(step["scale"]), k))
            elif step["kind"] == "finite":
                self.laws.append((law(step["p"], step["q"], way), k))
            elif step["kind"] == "sampled gaussian":
                self.sampled.append((arb(step["sigma"]), arb(step["rate"]), k))
            else:
                self.replaced.append((arb(step["sigma"]), arb(step["rate"]), k))
        self.smooth = self.sampled or self.replaced or self.square > 0
        self.symmetric = not self.sampled and not self.laws  # both directions are the same
        self.finite = [(outcomes, k) for (outcomes, _), k in self.laws]
        # a round of Laplace noise loses all or gains all with these probabilities
        self.ends = [([(a, 1 / arb(2)), (-a, (-a).exp() / 2)], k) for a, k in self.laplace]
        kept = [(1 - infinite) ** k for (_, infinite), k in self.laws]
        self.infinite = 1 - prod(kept, start=arb(1))

    def top(self):
        """The largest finite loss, or None."""
        if self.square > 0 or self.replaced or (self.way > 0 and self.sampled):
            return None
        ends = [k * a for a, k in self.laplace]
        ends += [-k * (1 - rate).log() for _, rate, k in self.sampled]
        for (outcomes, _), k in self.laws:
            most = arb("-inf")
            for loss, _ in outcomes:
                most = most.max(loss)
            ends.append(k * most)
        return sum(ends, arb(0))

    def written(self, epsilon):
        """delta in closed form, without infinite losses, or None."""
        top = self.top()
        if top is not None and epsilon >= top:
            return arb(0)
        if not self.smooth:
            return None if self.laplace else self.listed(epsilon)
        steps = [*self.sampled, *self.replaced]
        if self.laplace or self.laws or (steps and self.square > 0):
            return None
        if not steps:
            return gaussian(self.square.sqrt(), epsilon)
        (sigma, rate, k), way = steps[0], 1 if self.replaced else self.way
        return sampled_step(sigma, rate, epsilon, way) if len(steps) == k == 1 else None

    def listed(self, epsilon):
        """The mean of (1 - e^(epsilon - L))_+ over all sums L of losses of finite laws, and of the
        ends of Laplace noise: by how often each outcome occurs."""
        laws = self.finite + self.ends
        known = "too many sums of losses to list"
        surely(all(k <= ROUNDS or len(law) == 1 for law, k in laws), known)
        many = prod(comb(k + len(law) - 1, k) for law, k in laws if len(law) > 1)
        surely(many * sum(len(law) for law, _ in laws) <= FEW, known)
        counts = [list(partitions(k, len(law))) for law, k in laws]
        total = arb(0)
        for chosen in product(*counts):
            loss, chance = arb(0), arb(1)
            for times, (outcomes, _) in zip(chosen, laws, strict=True):
                chance *= arb(ways(times))
                for n, (one, p) in zip(times, outcomes, strict=True):
                    loss, chance = loss + n * one, chance * p**n
            total += chance * (1 - (epsilon - loss).exp()).max(arb(0))
        return total

    def rest(self, z):
        """(M of all steps in closed form, the part of it of which each round of Laplace noise is at
        an end), at a complex z: both are the same in both directions of Gaussian and Laplace
        noise."""
        whole = (self.square * z * (z + 1) / 2).exp()
        for outcomes, k in self.finite:
            whole *= sum((p * (z * loss).exp() for loss, p in outcomes), acb(0)) ** k
        ends = whole
        for a, k in self.laplace:
            up, down = (a * z).exp(), (-a * (1 + z)).exp()
            both = (up + down) / 2
            whole, ends = whole * (both + (up - down) / (2 * (1 + 2 * z))) ** k, ends * both**k
        return whole, ends


def law(p, q, way):
    """Losses with their probabilities, and the probability of an infinite one; p and q are divided
    by their sums. Every probability is 0 or surely above it."""
    first, second = ([arb(x) for x in side] for side in ((p, q) if way > 0 else (q, p)))
    one, other = sum(first, arb(0)), sum(second, arb(0))
    surely((one > 0) & (other > 0), "a law has mass")
    first, second = [x / one for x in first], [x / other for x in second]
    surely(all(x > 0 or x == 0 for x in first + second), "probabilities are not negative")
    pairs = list(zip(first, second, strict=True))
    losses = [((a / b).log(), a) for a, b in pairs if a > 0 and b > 0]
    return losses, sum((a for a, b in pairs if b == 0), arb(0))


def partitions(total, parts):
    """All ways to write a total as a sum of so many counts: bars stand between them."""
    if parts <= 1:
        yield (total,) * parts
        return
    for bars in combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield tuple(end - start - 1 for start, end in pairwise(ends))


def ways(times):
    """The multinomial coefficient."""
    number, left = fmpz(1), sum(times)
    for n in times:
        number *= fmpz.bin_uiui(left, n)
        left -= n
    return number


def bound(steps, epsilon, way, *lines):
    """An upper bound on delta(epsilon) in one direction: of one line, or of one for each band. A
    band is above the cuts of its line, and below those of the line before (X-proof-bands)."""
    ctx.prec = lines[0].bits
    run = Run(steps, way)
    surely(arb(epsilon) >= 0, "epsilon is at least 0")
    written = run.written(arb(epsilon))
    if written is not None:
        return least([written + run.infinite])
    outcomes = sum(len(law) for law, _ in run.finite)
    work = sum(line.nodes * line.bits for line in lines) * max(1, outcomes / 10)
    surely(work <= LONGEST, "the line is too long")
    none: tuple = ((),) * len(run.sampled + run.replaced)
    bands, above = [], none
    for line in lines:
        below = line.cuts or none
        surely(len(below) == len(line.spacings) == len(none), "the line is of other kinds of steps")
        surely(all(below) or not any(below), "a band ends for all kinds of steps")
        for one, other in zip(above, below, strict=True):
            nested = one[1] == other[1] and one[0] > other[0] if one and other else True
            surely(nested, "each cut is as soft as the one before, and lower")
        bands.append((line, above, below))
        above = below
    surely(above == none, "the last band has no end")
    return least([run.infinite + sum(band(steps, epsilon, way, *one) for one in bands)])


def band(steps, epsilon, way, line, above, below):
    """What a band adds to delta, without infinite losses."""
    ctx.prec = line.bits
    run, c, epsilon = Run(steps, way), arb(line.c), arb(epsilon)
    kinds: list[tuple[Sampled | Replaced, int]] = []
    surely((c > 0) & (arb(line.period) > 0) & (line.nodes >= 0), "the line")
    h = 2 * arb.pi() / arb(line.period)
    height = h * (line.nodes + 1) if line.nodes else arb(0)
    places = zip(line.spacings, above, below, strict=True)
    for (sigma, rate, k), cuts in zip(run.sampled + run.replaced, places, strict=True):
        is_sampled, step = len(kinds) < len(run.sampled), (sigma, rate)
        kind = Sampled(step, c, way, line, cuts) if is_sampled else Replaced(step, c, line, cuts)
        kind.measure(height)
        kinds.append((kind, k))
    front, ends = (x.real * (-c * epsilon).exp() for x in run.rest(acb(c)))
    if not line.nodes:
        chernoff = (c * c.log() - (c + 1) * (c + 1).log()).exp()
        return least(
            [most(kinds, [(kind.real, kind.real) for kind, _ in kinds]) * front * chernoff]
        )
    aliases = arb(0) if any(above) or any(below) else left_aliases(run, steps, epsilon, line)
    if run.smooth:
        fallen = (-run.square * height**2 / 2).exp() / (arb.pi() * h * line.nodes)
        falls = [kind.lifted(height, arb(line.angle)) for kind, _ in kinds]
        cut, listed = front * fallen * most(kinds, falls), arb(0)
    else:
        rounds = sum(k for _, k in run.ends)
        fallen = ((1 + 1 / (2 * height)) ** rounds - 1) * height / (2 * arb.pi() * h**2)
        cut, listed = ends * fallen / line.nodes**2, run.listed(epsilon)
        aliases *= 1 - prod(sum(p for _, p in law) ** k for law, k in run.ends)
    total = trapezoid(run, kinds, epsilon, c, h, line.nodes)
    surely(total.is_finite() and aliases.is_finite() and cut.is_finite(), "overflow")
    return least([listed + total - aliases + cut])


def most(kinds, falls):
    """At least abs(M) of a band, from bounds on ``high`` (which serve for ``low``) and ``part``."""
    whole = prod((high**k for (_, k), (high, *_) in zip(kinds, falls, strict=True)), start=arb(1))
    if not any(kind.below for kind, _ in kinds):
        return whole
    share = (k * f[-1] / f[0] for (kind, k), f in zip(kinds, falls, strict=True) if kind.below)
    return whole * sum(share, arb(0))


def left_aliases(run, steps, epsilon, line):
    """What they add at least (X-left-aliases)."""
    c, period = arb(line.c), arb(line.period)
    m = max(1, ceil(min(float(epsilon) / line.period, 1e15)))
    aliases = (1 - run.infinite) * (-c * m * period).exp() / (1 - (-c * period).exp())
    other = (epsilon - (c + 1) * m * period).exp() / (1 - (-(c + 1) * period).exp())
    return aliases - (1 - Run(steps, -run.way).infinite) * other


def trapezoid(run, kinds, epsilon, c, h, count):
    """(h/2pi) times the sum over all nodes: those below the axis are conjugates. What was listed
    is left out, and of a band the runs that lose less."""
    values, total = [(*kind.values(h, count), k) for kind, k in kinds], arb(0)
    ends = any(kind.below for kind, _ in kinds)
    for j in range(count + 1):
        z = acb(c, h * j)
        whole, listed = run.rest(z)
        if run.smooth:
            listed = prod((low[j] ** k for _, low, k in values), start=whole) if ends else acb(0)
            whole = prod((high[j] ** k for high, _, k in values), start=whole)
        value = (whole - listed) * (-z * epsilon).exp() / (z * (z + 1))
        total += value.real if j == 0 else 2 * value.real
    return total * h / (2 * arb.pi())


def rounded_up(number):
    """A float that is surely not below an exact number."""
    close = float(number)
    while not arb(close) >= number:
        close = nextafter(close, inf)
    return close
