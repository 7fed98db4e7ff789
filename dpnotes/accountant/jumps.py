"""Rare large losses: the contour integral, given how many of them there are.

At a tiny rate, delta is often reached by one or two rounds that lose far more than all others
together. Tilted by exp(cL) their sum has two peaks with nothing between, and no line serves both.
So call an outcome x of a sampled Gaussian a *jump* with probability Phi((x - at)/width). With
M = F + J, the moment generating functions without and with a jump,

    M(z)^k = sum_j C(k, j) F(z)^(k-j) J(z)^j,

and each term, the moments of a measure with one peak, is integrated along a line near that, which
it may share with others (``mixtures``). Phi is smooth, so J(c + iy) decays fast.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, product
from math import exp, hypot, inf, lgamma, log, pi, prod, sqrt

import numpy as np

from .._scipy import ndtr
from . import contour, one_step
from .law import TABLE, Law, gauss, log_sum_exp
from .mixtures import LEAST, Factor, Table
from .sampled_gaussian import SampledGaussian
from .tilted import Tilted
from .work import left, spend, within

__all__ = []

SHARES = (0.6, 0.06)  # of epsilon, from which on a loss is a jump
LARGE = 1.0  # and a loss that is one in any case
SPANS = (10.0, 50.0)  # of the losses of one class of jumps
NOTHING = 33  # exp(-33) of delta may be left out,
BARELY = 6  # and exp(-6) where there is no line for it, or the work is done
REACH = 24.0  # widths, beyond which a class of jumps is cut off
TERM = 20_000  # work to plan the line of one term, beside that of its values,
CHOICE = 8_000  # and to see whether it matters
WEIGHT = 120, 600  # work of the share of one outcome, real or complex
SEVERAL = 8  # terms: then delta is reached by more than one jump
MOST_TERMS, CROWDED = 120, 32
EACH = 0.85  # of the work that is left is for one attempt


def between(a, b):
    """P(a < Z < b), from the side where it is no difference from 1; analytic in a and b."""
    swap = np.real(a + b) > 0
    return ndtr(np.where(swap, -a, b)) - ndtr(np.where(swap, -b, a))


@dataclass(frozen=True)
class Between(SampledGaussian):
    """The outcomes x for which low < x + width Z < high, with Z standard normal."""

    low: float = 0.0
    high: float = 0.0
    width: float = 1.0

    def smooth_limit(self):
        """At most this c leaves exp(-80) of the tilted law at the upper end of the window."""
        end = self.high + REACH * self.width
        return (0.5 * REACH**2 - 80) / float(self.loss(end) - self.loss(self.high))

    def tilt_limit(self, log_delta):
        return self.smooth_limit()

    def masses(self):
        """The probability of these outcomes and of the others, each under p and under q."""
        spread = hypot(self.sigma, self.width)
        low, high = (np.array([edge - 1, edge]) / spread for edge in (self.low, self.high))
        mixed = np.array([[self.rate, 1 - self.rate], [0.0, 1.0]])
        return mixed @ between(low, high), mixed @ (ndtr(low) + ndtr(-high))

    def moved(self):
        """The probability of the others under p less that under q, without a difference of the two:
        rate times what the step from 0 to 1 moves over the upper edge, less over the lower one."""
        spread = hypot(self.sigma, self.width)
        moved = []
        for edge in (self.low, self.high):
            x, weight = gauss(np.linspace(edge - 1, edge, int(1 / spread) + 2) / spread)
            moved.append(weight @ np.exp(-0.5 * x * x))
        return self.rate * float(moved[1] - moved[0]) / sqrt(2 * pi)

    def _sharpness(self):
        return hypot(1 / self.sigma, 1 / self.width)

    def _log_weight(self, x):
        """log of P(low < x + width Z < high), for complex x too."""
        spend(WEIGHT[np.iscomplexobj(x)] * x.size)
        weight = between((self.low - x) / self.width, (self.high - x) / self.width)
        return np.log(np.where(weight == 0, 1e-300, weight))

    def _lift_cost(self, height):
        """The weight is an integral of Gaussians, and abs(phi(a + ib)) = exp(b^2/2) phi(a)."""
        return 0.5 * (height / self.sigma) ** 2 + 0.5 * (height / self.width) ** 2

    @lru_cache(maxsize=64)  # noqa: B019 (of a frozen value, and few)
    def _spans(self, c):
        """Up to REACH widths beyond both edges: what lies there has no weight to speak of. If a
        tilt makes it the most of all, the sum over nodes bounds it from above."""
        end = self.high + REACH * self.width
        if self.low > 0:
            return ((self.low - REACH * self.width, end),)
        return Tilted(self.sigma, self.rate, self._power(c)).spans(self.high, end)

    def _windows(self, c):
        return self._spans(c)

    def _at(self, x, log_weight):
        law = super()._at(x, log_weight + self._log_weight(x))
        return Law(law.loss, law.log_p, self.masses()[1][0], -self.moved())

    def cumulant(self, z):
        if self.low < 0:  # else the mass is small, and no difference from 1
            return super().cumulant(z)
        z = np.asarray(z, dtype=float)
        law = self.law(float(np.max(z)), 0.0)
        spend(TABLE * z.size * len(law.loss))
        return log_sum_exp(law.log_p + np.multiply.outer(z, law.loss))

    def cumulant_noise(self, c):  # K of so small a mass is a large number
        return super().cumulant_noise(c) if self.low < 0 else 0.0


def may_jump(step):
    """Whether a step has rare large losses that can be set apart."""
    return isinstance(step, SampledGaussian) and step.side > 0


def classes(step, k, loss, span, log_mass):
    """A sampled Gaussian step without its jumps, then its jumps by size, the losses of each class
    within a factor of ``span``: those over this loss, or fewer, so that only a few are expected in
    k rounds. Outcomes so far out that x + width Z is there with a probability below exp(log_mass)
    are in none."""
    share, few = (0.05, 1) if loss < LARGE else (0.2, 5)
    width = min(share * step.sigma**2, 0.25 * step.sigma)
    noisy = replace(step, sigma=hypot(step.sigma, width))  # x + width Z
    loss = np.float64(max(loss, step.rate / 3))
    first = max(float(step.outcome(loss)), step.far_end(min(log(few / k), -0.1)))
    last = max(noisy.far_end(log_mass), first + width)
    least, most = float(step.loss(first)), float(step.loss(last))
    count = 1 + max(0, int(log(min(most, LARGE) / least) / log(span)))
    between_jumps = step.outcome(np.geomspace(least, most, count + 1)[1:-1])
    edges = [-40 * noisy.sigma, first, *between_jumps.tolist(), last]
    return [
        Between(step.sigma, step.rate, low=low, high=high, width=width)
        for low, high in pairwise(edges)
    ]


def split(parts, loss, span, log_delta):
    """The terms of M(z) where losses beyond this one are jumps, each as parts, and log of the mass
    that is in none of them; or None where there are too many."""
    room, rounds = log_delta - NOTHING, sum(k for _, k in parts)
    choices, omitted = [], [room]
    for step, k in parts:
        if not may_jump(step):
            choices.append([(0.0, ((step, k),))])
            continue
        few, *jumps = classes(step, k, loss, span, room - log(rounds))
        counts = [_counts(jump, k, room) for jump in jumps]
        omitted += [mass for _, mass in counts]
        ways = prod(len(found) for found, _ in counts)
        if ways > 50 * MOST_TERMS:
            return None
        spend(CHOICE * ways)
        choices.append([_with_jumps(few, jumps, k, js) for js in product(*(c for c, _ in counts))])
    if prod(map(len, choices)) > 50 * MOST_TERMS:
        return None
    spend(CHOICE * prod(map(len, choices)))
    terms = []
    for chosen in product(*choices):
        mass = sum(mass for mass, _ in chosen)
        if mass < room:
            omitted.append(mass)
        else:
            terms.append(sum((found for _, found in chosen), ()))
    return None if len(terms) > MOST_TERMS else (terms, float(log_sum_exp(np.array(omitted))))


def _counts(jump, k, room):
    """How many such jumps to consider, [(j, log mass)], and log of the probability of more."""
    log_mean, found = log(max(k * jump.masses()[0][0], 1e-300)), []
    for j in range(k + 1):  # P(at least j jumps) <= (k p)^j / j!
        mass = j * log_mean - lgamma(j + 1)
        if mass < room or j > MOST_TERMS:
            return found, mass
        found.append((j, mass))
    return found, -inf


def _with_jumps(few, jumps, k, counts):
    """log of its probability, and the parts of k!/(...) F^(k - j1 - ...) J1^j1 ..."""
    rest, ways, found = k, 0.0, []
    for jump, (j, _) in zip(jumps, counts, strict=True):
        ways += sum(log(max(rest - i, 1e-300) / (i + 1)) for i in range(j))
        rest -= j
        found += [(jump, j)] if j else []
    found += [(few, rest)] if rest > 0 else []
    mass = sum(mass for _, mass in counts) if rest >= 0 else -inf
    return mass, tuple(found) + (((Factor(ways), 1),) if ways else ())


@dataclass(frozen=True)
class Lines:
    """A line for each term that matters, as one."""

    lines: tuple
    negligible: tuple  # (c, A) of the others: their tails are at most exp(A - c e)
    log_omitted: float

    @property
    def period(self):
        return min(line.period for line in self.lines)

    def sums(self, epsilon):
        """See ``contour.Line.sums``."""
        return tuple(map(float, self.added([line.sums(epsilon) for line in self.lines], epsilon)))

    def added(self, sums, epsilon):
        """Those of its lines added up, at an array of epsilon, too."""
        values, slopes, above, below = np.array(sums).swapaxes(0, 1)
        total, slope = log_sum_exp(values, axis=0), log_sum_exp(slopes, axis=0)
        share = np.exp(values - total)
        left_out = [a - c * epsilon for c, a in self.negligible] + [0 * total + self.log_omitted]
        missing = np.exp(np.minimum(log_sum_exp(np.array(left_out), axis=0) - total, 600.0))
        return total, slope, (share * above).sum(axis=0) + missing, (share * below).sum(axis=0)


def draw(parts, epsilon, log_delta):
    """Lines for delta near (e, delta), or None where one can't be drawn, or nothing jumps."""
    cuts = sorted({min(share * epsilon, LARGE) for share in SHARES}, reverse=True)
    attempts = list(product(SPANS, cuts))
    if not any(may_jump(step) for step, _ in parts):  # then all are the same plain line
        attempts = attempts[:1]
    best = None
    for span, cut in attempts:
        if (found := split(parts, cut, span, log_delta)) is None:
            continue
        if len(found[0]) > CROWDED:  # wider classes are fewer
            found = split(parts, cut, SPANS[1], log_delta) or found
        undrawn, lines = within(EACH * left(), _lines, *found, epsilon, log_delta) or (inf, None)
        if lines is not None and undrawn < (best[0] if best else inf):
            best = undrawn, lines
        if undrawn <= log_delta - NOTHING or left() < LEAST:
            break
    return best and best[1]


def _lines(terms, log_omitted, epsilon, log_delta):
    """Lines for all terms but those of at most exp(-NOTHING) delta, or None; and log of a bound on
    what else there is no line for, at most exp(-BARELY) delta."""
    spend(TERM * len(terms))
    table = Table(terms, epsilon)
    c, bounds = table.bounds()
    size = bounds - c * epsilon
    small = size < log_delta - NOTHING
    groups = table.shared(np.flatnonzero(~small), log_delta)
    lines, undrawn = [], -inf
    for at, members in sorted(groups, key=lambda group: -size[group[1]].max()):
        found = table.lines(at, members, log_delta)
        lines += found
        if not found:
            undrawn = float(np.logaddexp(undrawn, log_sum_exp(size[members])))
            small[members] = True
        if undrawn > log_delta - BARELY:
            return inf, None
    negligible = tuple(zip(c[small].tolist(), bounds[small].tolist(), strict=True))
    return undrawn, Lines(tuple(lines), negligible, log_omitted) if lines else None


def log_tail_of_few(parts, epsilon):
    """log delta by the saddle point of the rounds without jumps, roughly."""
    found = split(parts, min(SHARES[0] * epsilon, LARGE), SPANS[0], -60.0)
    return contour.saddle_at(found[0][0], 1, epsilon)[2] if found else -60.0


def first_epsilon(parts, log_delta):
    """Where to begin: the larger of what one jump needs and what the other rounds need."""
    alone = [one_step.epsilon(step, exp(log_delta - log(k))) for step, k in parts if may_jump(step)]
    least = max(alone, default=0.0)
    epsilon = least or contour.saddle_for(parts, 1, log_delta)[1]
    for _ in range(6):
        found = split(parts, min(SHARES[0] * epsilon, LARGE), SPANS[0], log_delta)
        others = contour.saddle_for(found[0][0], 1, log_delta)[1] if found else least
        old, epsilon = epsilon, max(least, others)
        if abs(epsilon - old) <= 0.1 * old:
            break
    crowded = epsilon > LARGE and found and len(found[0]) > SEVERAL
    return max(epsilon, contour.saddle_for(parts, 1, log_delta)[1]) if crowded else epsilon
