"""Runs sorted by their largest loss: where sampling is rare, one line does not see the few rounds
that lose much beside the many that lose almost nothing.

With thresholds tau_0 = infinity > tau_1 > ... > tau_m, a_i(z) = E[s_i e^(zL)] of one round, where
s_i is a smooth 'loses at most tau_i' (``cut``), and the powers of all rounds,

    M = (A_0 - A_1) + ... + (A_(m-1) - A_m) + A_m,   A_i = prod over rounds of a_i.

Each term is E[w e^(zL)] of the total loss with a weight w >= 0: of the runs whose largest loss is
in band i. So each has a line of its own (telescope). Other kinds of steps are factors of all terms.

- How a band falls: abs(A_i - A_(i+1)) is at most the sum over rounds of abs(a_i - a_(i+1)) times
  the greater of the two for each other round.
- Digits: J = a_i - a_(i+1) is summed by itself, and A_i - A_(i+1) = -A_i expm1(sum of log1p(-J/a)).
"""

from dataclasses import replace
from itertools import groupby, pairwise, repeat
from math import exp, expm1, inf, log

import numpy as np

from ..numerics import expm1_complex, log1p_complex
from .law import EPS, kept
from .line import SumOfLines, line
from .sampled_gaussian import RATIO
from .tilts import TOLERANCE, Saddle, Tilts
from .total import Total

NOTHING = -690.0  # the least log J/a
NONE, LEAST = exp(NOTHING), 1e-170  # J/a of a kind that J says nothing of; of a band with a line
SMALL, APART, MOST = 0.1, 1.5, 128  # sigmas of rows: the least, ratio of two; how many rows
SEEN = 1e-9  # share of the tail above which a band that does not fall gets a pinch


class Band(Total):
    """All rounds of sampled Gaussian steps whose largest loss is in one band, and all rounds of the
    ``others``: the difference A_i - A_(i+1) of two totals.

    ``cuts`` has (rounds of each row, a_i, a_(i+1), J) of each kind."""

    lattice = None

    def __init__(self, kinds, tau, low, others):
        super().__init__(others)
        self.cuts = [(k * x.times, x.part(tau), x.part(low), x.part(tau, low)) for x, k in kinds]
        self.rounds += sum(k.sum() for k, *_ in self.cuts)

    @kept(4)
    def _shares(self, c):
        """J/a of each row at the tilt c, less than 1, and its relative round-off."""
        cumulants = [(*a.cumulants(c), *j.cumulants(c)) for _, a, _, j in self.cuts]
        return [
            (np.exp(np.clip(part - one, NOTHING, -EPS)), slip + other + 4 * EPS)
            for one, slip, part, other in cumulants
        ]

    def _limit(self):
        return min(one.tilt_limit() for _, *cuts in self.cuts for one in cuts)

    def tilt_limit(self):
        return min(self._limit(), super().tilt_limit())

    def variance(self):
        return (40 / self._limit()) ** 2 + super().variance()

    def table(self, c):
        """K = sum of k log a + log(1 - e^d), d = sum of k log(1 - J/a): by d', d''."""
        whole, d, d1, d2 = np.zeros((3, len(c))), 0.0, 0.0, 0.0
        for k, a, _, j in self.cuts:
            one, part = a.tables(c), j.tables(c)
            ratio = np.exp(np.clip(part[0] - one[0], NOTHING, -EPS))
            odds = ratio / (1 - ratio)
            mean, variance = (part - one)[1:]
            whole += k @ one
            d, d1 = d + k @ np.log1p(-ratio), d1 - k @ (odds * mean)
            d2 = d2 - k @ (odds * ((1 + odds) * mean**2 + variance))
        e = 1 / np.expm1(-d)
        whole += [np.log(-np.expm1(d)), -e * d1, -e * (d2 + (1 + e) * d1**2)]
        whole[2] = np.maximum(whole[2], 0.0)
        return whole + super().table(c)

    def _rest(self, c):
        """d = log of the product of all 1 - J/a at the tilt c, and a bound on its round-off."""
        each = [(k, *shares) for (k, *_), shares in zip(self.cuts, self._shares(c), strict=True)]
        off = sum(k @ (share / (1 - share) * error) for k, share, error in each)
        return sum(k @ np.log1p(-share) for k, share, _ in each), off

    def cumulant(self, c):
        (d, off), (value, slip) = self._rest(c), super().cumulant(c)
        each = [(k, *a.cumulants(c)) for k, a, *_ in self.cuts]
        noise = float(sum(k @ slip for k, _, slip in each) + off / np.expm1(-d) + 4 * EPS)
        return float(sum(k @ one for k, one, _ in each)) + log(-expm1(d)) + value, noise + slip

    def _ratios_along(self, c, h, count):
        """For some rows, for the next, and so on, along the line: how often each is run, log a less
        that at c, J/a, and bounds on the round-off of log a and of log(1 - J/a)."""
        for (k, a, _, j), (share, error) in zip(self.cuts, self._shares(c), strict=True):
            none = repeat((0, 0j, 0.0))
            parts = j.rows_along(c, h, count) if np.any(share > NONE) else none
            both = zip(a.rows_along(c, h, count), parts, strict=False)
            for (rows, log_a, off), (_, log_j, more) in both:
                start, sure = share[rows, None], error[rows, None]
                ratio = start * np.exp(log_j - log_a)
                size = start * np.exp(np.real(log_j) - log_a.real)
                size /= np.maximum(abs(1 - ratio), EPS)
                noise = np.expm1(off) + np.expm1(more) + sure + 8 * EPS
                yield k[rows], log_a, ratio, off, size * noise

    def along(self, c, h, count):
        """A_i - A_(i+1) is -A_i expm1(d), or A_(i+1) expm1(-d) where that is the larger."""
        whole, d = np.zeros((2, count), complex)
        noise, off = np.zeros((2, count))
        for times, log_a, ratio, off_a, off_d in self._ratios_along(c, h, count):
            whole, d = whole + times @ log_a, d + times @ log1p_complex(-ratio)
            noise, off = noise + times @ off_a, off + times @ off_d
        still, first = self._rest(c)
        up = d.real > 0
        rise = np.where(up, 1.0, -1.0) * expm1_complex(np.where(up, -d, d))
        rise = np.where(abs(rise) > 1e-200, rise, 1e-200)  # more than nothing: LEAST is 1e-170
        value = whole + np.where(up, d, 0.0) + np.log(rise) - log(-expm1(still))
        value[0] = 0.0
        # (1 - J/a)^k is off by e^off - 1 of itself; below EPS, by so much of 1
        off = np.expm1(off) * np.maximum(np.exp(np.where(up, 0.0, d.real)), EPS) / abs(rise)
        noise = noise + np.log1p(off) + first / np.expm1(-still) + 8 * EPS
        more, off = super().along(c, h, count)
        return value + more, noise + off

    def falls(self, c):
        rounds = np.concatenate([k for k, *_ in self.cuts])
        shares = np.concatenate([share for share, _ in self._shares(c)])
        below = np.concatenate([b.cumulants(c)[0] - a.cumulants(c)[0] for _, a, b, _ in self.cuts])
        norm = log(-expm1(rounds @ np.log1p(-shares)))
        kinds = [[a.fallings(c), b.fallings(c)] for _, a, b, _ in self.cuts]
        for kind, (share, _), (*_, j) in zip(kinds, self._shares(c), self.cuts, strict=True):
            kind += [j.fallings(c)] if any(share > NONE) else [lambda _, x=0 * share: x]

        def bound(height):
            each = [[fallings(height) for fallings in kind] for kind in kinds]
            a, b, j = (np.concatenate(x) for x in zip(*each, strict=True))
            most = np.minimum(np.maximum(a, b + below), 0.0)
            first = np.log(rounds * shares) + np.where(shares > NONE, j, 0.0) - most
            return float(min(np.logaddexp.reduce(first), log(2)) + rounds @ most - norm)

        others = super().falls(c)
        return lambda height: min(0.0, bound(height)) + others(height)

    def work(self, c, h, count):
        """Without end where a line would have lost its digits; a bound says enough there."""
        shares = [share for share, _ in self._shares(c)]
        if sum(k @ share for (k, *_), share in zip(self.cuts, shares, strict=True)) < LEAST:
            return inf
        felt = [j for share, (*_, j) in zip(shares, self.cuts, strict=True) if any(share > NONE)]
        summed = [*felt, *(a for _, a, *_ in self.cuts)]
        return sum(step.work(c, h, count) for step in summed) + super().work(c, h, count)


class Bands:
    """The tables of all terms of a composition."""

    def __init__(self, parts):
        kinds = tuple((step, k) for step, k in parts if step.sorts)
        others = tuple((step, k) for step, k in parts if not step.sorts)
        tops, least = zip(*(step.thresholds() for step, _ in kinds), strict=True)
        ends = [inf, max(tops)]
        while ends[-1] > RATIO * min(least):
            ends.append(ends[-1] / RATIO)
        totals = [Band(kinds, *pair, others) for pair in pairwise(ends)]
        rest = [(step.part(ends[-1]), k) for step, k in kinds]
        self.tilts = [Tilts(total, 1) for total in (*totals, Total((*rest, *others)))]

    def place(self, log_tail):
        """About the e of this tail: no band has more of it, and one has nearly all."""
        some = [tilts for tilts in self.tilts if tilts.log_bounds(np.zeros(1))[0] > log_tail]
        return max([1e-300, *(tilts.saddle(log_tail=log_tail).epsilon for tilts in some)])

    def lines(self, place, nodes, pinched):
        """A line for each term that matters at this e; the others are bounded. Those that do not
        fall get a pinch with so many nodes, or none. None for tails so small that their tilts lead
        out of the windows."""
        epsilon = place.epsilon
        bounds = [float(tilts.log_bounds(np.array([epsilon]))[0]) for tilts in self.tilts]
        saddles = np.array([tilts.saddle(epsilon=epsilon)[::2] for tilts in self.tilts])
        log_tail = min(float(np.logaddexp.reduce(np.fmin(saddles[:, 1], bounds))), 0.0)
        if log_tail < -92:  # 1e-40
            return None
        lines, rest = [], []
        for tilts, (c, _), most in zip(self.tilts, saddles, bounds, strict=True):
            start = Saddle(float(c), epsilon, log_tail)
            pinched_nodes = pinched if most > log_tail + log(SEEN) else 0
            one = most > log_tail + log(TOLERANCE) and line(tilts, start, nodes, pinched_nodes)
            lines += [one] if one else []
            rest += [] if one else [tilts]
        return SumOfLines(lines, rest) if lines else None


def gathered(parts):
    """The parts of a composition, where sampled Gaussian steps of similar sigmas are one."""
    steps = [part for part in parts if part[0].kin]
    merged = [part for part in parts if not part[0].kin]
    steps.sort(key=lambda part: (*part[0].kin, part[0].sigma))
    for _, alike in groupby(steps, lambda part: part[0].kin):
        left = list(alike)
        while left:
            (first, _), most = left[0], APART * left[0][0].sigma
            near = [part for part in left[:MOST] if part[0].sigma <= most]
            near = near if first.sigma >= SMALL else left[:1]
            left = left[len(near) :]
            sigmas, counts = zip(*((step.sigma, k) for step, k in near), strict=True)
            together = replace(first, sigmas=sigmas, counts=counts)
            merged.append((together, 1) if len(near) > 1 else near[0])
    return tuple(merged)
