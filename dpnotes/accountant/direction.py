"""One direction of a pair of neighbours: p against q for a composition, as (low, high).

delta(e) = P(L = infinity) + t(e), where t counts the finite losses. One step has a closed form, and
a few losses are written out (``written``). For the rest of an array of queries one line is computed
for the middle one (``line``), or several where rare losses spoil it (``bands``). It also answers
neighbours where its error is small; what is left on both sides is asked anew. All answer with log
of a tail, its slope and its error. The tail is t (side 1), or 1 - delta (side -1) if that is small.

A direction is the same for all who ask, and never changes. A question is asked to a copy of it,
which remembers its last line, and is then forgotten: no answer depends on an earlier question.
"""

from copy import copy
from math import exp, expm1, inf, log, log1p

import numpy as np

from .bands import gathered
from .finite import Sums, is_short
from .law import EPS
from .line import beside
from .roots import SHARP, WORSE, certain_ends, solve
from .tilts import Saddle, Tilts
from .total import Total
from .ways import tail_near

TRUSTED = 0.5  # above this error Chernoff's bounds may say more
FAIR, PINCHED = 1e-9, 1e-7  # errors (with a pinch) that may ask for a new line
FAR, LOWER = 0.3, 2.0  # distances from the start, in log t, that do
DEEP = 1e-39  # lower tails of rare losses have no lines
LEAST = 1e-290  # what upper ends have above, and lower ends below, what may have underflowed


class Direction:
    """p against q for a composition, a tuple of (step, rounds)."""

    def __init__(self, parts):
        self.total, self._known, self.last = Total(parts), None, None
        self.disjoint = any(step.infinite >= 1 for step, _ in parts)
        summed, sides = Total(gathered(parts)), () if self.disjoint else (1, -1)
        self.tilts = {side: Tilts(summed, side) for side in sides}
        self.one = len(parts) == 1 and parts[0][1] == 1
        kept = -inf if self.disjoint else sum(k * log1p(-step.infinite) for step, k in parts)
        self.infinite = parts[0][0].infinite if self.one else 0.0 - expm1(kept)  # not -0.0
        self.surely_infinite = self.infinite * (self.infinite > LEAST)  # less may be cut-off noise
        tops = [] if self.disjoint else [(k, *step.top()) for step, k in parts]
        self.top = sum(k * top for k, _, top, _ in tops)  # the largest finite loss
        error = 8 * EPS * sum(k * abs(top) for k, _, top, _ in tops)
        self.top_error = 0.0 if self.one or self.top == inf else error
        self.low_top = sum(k * low for k, low, *_ in tops) - self.top_error
        noise = self.top_error + 4 * EPS * sum(k * (2 - log_p) for k, *_, log_p in tops)
        chance = sum(k * log_p for k, *_, log_p in tops) - noise  # log, or a little less
        self.log_top_chance = -inf if self.disjoint else chance
        few = Sums(parts) if is_short(parts) and not self.disjoint else None
        self.written = (self.one and parts[0][0].curve()) or few

    def roughly(self, epsilon):
        """log delta(e), by the saddle point, or of one large loss if a row is seldom taken."""
        if self.infinite or self.written or epsilon >= self.top:
            return float(np.log(copy(self).delta(np.array([epsilon]))[1, 0]))
        if self.top == inf and sum(k * step.rate for step, k in self.total.parts) <= 1:
            place, parts = np.array([epsilon]), self.total.parts
            alone = [log(k) + step.curve().log_delta(place)[0] for step, k in parts]
            return min(float(np.logaddexp.reduce(alone)), 0.0)
        return min(self.tilts[1].saddle(epsilon=epsilon).log_tail, 0.0)

    def chernoff_delta(self, epsilon):
        """Chernoff's bound on delta for an array of e; 1 where the answer costs no more."""
        if self.disjoint or self.written:
            return np.ones(len(epsilon))
        return self._chernoff(1, epsilon) + self.infinite + LEAST

    def may_exceed(self, delta, epsilon, other):
        """Where more than these deltas may be lost at an array of e, by Chernoff's bound; a single
        one is first asked where the other direction found its answer."""
        few = (1 - 1e-12) * delta
        if len(epsilon) == 1 and other.last and not (self.disjoint or self.written):
            room = np.log(few[0] - self.infinite - LEAST)
            if any(bound <= room for bound in beside(other.last, self.tilts[1], epsilon)):
                return np.zeros(1, bool)
        return self.chernoff_delta(epsilon) > few

    def _chernoff(self, side, epsilon):
        return np.exp(np.fmin(self.tilts[side].log_bounds(epsilon), 0.0))

    def delta(self, epsilon):
        """(low, high) for an array of e >= 0."""
        return self.curve(epsilon, LEAST)[:2]

    def curve(self, epsilon, least):
        """(low, high) of delta(e), and 1 - delta(e) from below, without cancellation where it is
        small. A tail below ``least`` asks no line."""
        ends = [self.surely_infinite, self.infinite + least, 1 - self.infinite - least]
        bounds = np.outer(ends, np.ones(len(epsilon)))
        if not self.disjoint:
            inside = epsilon < self.top + self.top_error
            inside[inside] = self.chernoff_delta(epsilon[inside]) > self.infinite + least
            bounds[:, inside] = share_lines(epsilon[inside], self._deltas)
            if (wide := (bounds[0] < DEEP) & (bounds[1] > DEEP) & inside).any():
                past = self.epsilon(np.array([DEEP]))[1, 0]  # what holds here holds further out
                bounds[1, wide & (epsilon >= past)] = DEEP
            bounds[:2] = self._below_top(epsilon, bounds[:2])
        bounds *= np.array([[1 - 4 * EPS], [1 + 4 * EPS], [1 - 4 * EPS]])
        bounds = np.clip(bounds, 0.0, 1.0)
        bounds[1] = np.maximum(bounds[1], bounds[0])
        return bounds

    def _below_top(self, epsilon, bounds):
        """What the largest loss and its probability say of (low, high)."""
        (low, high), tops = bounds, np.array([[self.low_top], [self.top + self.top_error]])
        share = -np.expm1(np.minimum(epsilon - tops, 0.0))
        least = self.surely_infinite + exp(self.log_top_chance) * share[0] - LEAST
        most = self.infinite + share[1] + LEAST * (share[1] > 0)
        high = np.where(epsilon < self.top - self.top_error, np.minimum(high, most), most)
        return np.maximum(low - LEAST, least), high

    def _deltas(self, epsilon, middle):
        """One tail, made for the middle e: which e it answers well enough; low and high of delta
        there, and a lower bound on 1 - delta."""
        side, tail, limit = self._tail_for(epsilon, middle)
        answer = np.outer([0.0, 1.0, 0.0], np.ones(len(epsilon)))
        error = np.full(len(epsilon), inf)
        if tail is not None:
            log_tail, _, error = tail.sums(epsilon)
            low = np.exp(np.minimum(log_tail, 0.0)) * (1 - np.minimum(error, 1.0))
            high = np.exp(np.minimum(log_tail + np.log1p(error), 0.0))
            if side > 0:
                most = high + self.infinite + LEAST
                answer = np.array([low + self.surely_infinite, most, 1 - most - EPS])
            else:
                answer = np.array([1 - high - EPS, 1 - low + EPS, low])
        answer = np.where(np.isfinite(answer), answer, [[0.0], [1.0], [0.0]])
        if not error[middle] < TRUSTED:  # Chernoff's bounds may say more
            answer[0] = np.maximum(answer[0], 1 - self._chernoff(-1, epsilon) - EPS)
            answer[1] = np.minimum(answer[1], self.chernoff_delta(epsilon))
        if limit == 0:  # a new line
            limit = _limit(error[middle])
            known = side, tail, WORSE * error[middle], epsilon[middle]
            self._known = known if tail is not None else None
            self.last = tail
        return error <= limit, answer

    def _tail_for(self, epsilon, middle):
        """(side, tail, the largest error accepted): the last line, if it serves, or a new one."""
        if self.written:
            return 1, self.written, 0.0
        if self._known:
            side, tail, limit, place = self._known
            _, (slope,), (error,) = tail.sums(epsilon[[middle]])
            far = abs(epsilon[middle] - place)
            beside = far <= max(tail.pinch, 0.1 / slope if limit < TRUSTED else 0.0)
            if error <= SHARP or (error <= limit and beside):
                return side, tail, max(SHARP, min(limit, WORSE * TRUSTED))
        near, side = float(epsilon[middle]), 1
        start = self.tilts[1].saddle(epsilon=near)
        if start.log_tail > log(0.5):
            side, start = -1, self.tilts[-1].saddle(epsilon=near)

        def asked(tail, start):
            answer = (log_tail,), _, (error,) = tail.sums(epsilon[[middle]])
            log_tail += log1p(error)
            better = start._replace(log_tail=log_tail)
            return better, error, log_tail < start.log_tail - LOWER, answer

        return side, tail_near(self.tilts[side], start._replace(epsilon=near), asked, False)[0], 0.0

    def epsilon(self, delta):
        """(low, high) for an array of 0 <= delta <= 1."""
        rest, room = delta - self.infinite, 4 * EPS * delta * (self.infinite > 0 and not self.one)
        at_top, most = np.abs(rest) <= room, self.top + self.top_error
        ends = np.outer([0.0, most], np.ones(len(delta)))
        ends[1, rest < -room] = inf
        ends[0, delta < self.surely_infinite - room] = inf
        ends[:, delta == 1] = 0.0
        asked = (rest > room) & (delta < 1)
        if asked.any():
            ends[:, asked] = share_lines(delta[asked], self._epsilons)[:2]
            ends[1, asked] = np.minimum(ends[1, asked], most)
        if self.top < inf and self.surely_infinite == self.infinite < 1:  # no noise was cut off
            share = np.exp(np.log(np.maximum(rest + room, 0.0)) - self.log_top_chance)
            share = np.where(delta == 0, 0.0, np.minimum(share, 1.0))
            ends[0] = np.maximum(ends[0], self.low_top + np.log1p(-share) * (1 + 1e-9))
        elif self.infinite == 0:
            ends[0, at_top] = inf
        ends[1, at_top & (room > 0) & (delta < 1)] = inf  # delta may be less than that chance
        return np.maximum(ends, np.maximum(ends[0], 0.0))

    def _epsilons(self, delta, middle):
        """Which delta the tail near the middle one serves, and its answers."""
        answer, rest = np.outer([0.0, inf], np.ones(len(delta))), delta - self.infinite
        side = 1 if self.written or rest[middle] <= 0.5 else -1
        target = np.log(rest) if side > 0 else np.log1p(-delta)
        self.last, root = self._roots(target, middle, side)
        error = root[2] if root else np.full(len(delta), inf)
        good = error <= _limit(error[middle])
        good[middle] = True
        if root:
            rounding = 4 * EPS * (np.abs(target) + (self.infinite + delta) / rest)[good]
            most = np.log(delta - self.surely_infinite) if side > 0 else target
            targets = np.array([most[good] + side * rounding, target[good] - side * rounding])
            epsilon, slope = (x[good] for x in root[:2])
            answer[:, good] = certain_ends(self.last, targets, epsilon, slope, error[good], side)
        if not error[middle] < TRUSTED:
            answer[1] = np.minimum(answer[1], self.tilts[1].epsilon_bounds(np.log(rest)))
        answer = np.where(np.isnan(answer), [[0.0], [inf]], answer)
        return good, np.maximum(answer, 0.0)

    def _roots(self, target, middle, side):
        """The tail near the middle log tail, and of all of them e, slope and error; or no tail."""
        tilts, log_tail = self.tilts[side], float(target[middle])
        start = tilts.saddle(log_tail=log_tail)._replace(log_tail=log_tail)
        last = self.top + self.top_error

        def asked(tail, start):
            root = solve(tail, target[[middle]], start.epsilon, side, 0, last)
            (e,), (slope,), (error,) = root
            sure = error < (PINCHED if tail.pinch else FAIR)
            far = not sure and abs(e - start.epsilon) * slope > FAR
            return Saddle(tilts.saddle(epsilon=e).c, float(e), log_tail), float(error), far, root

        tail, root = (self.written, None) if self.written else tail_near(tilts, start, asked, True)
        if tail and (root is None or len(target) > 1):
            place = root[0][0] if root else start.epsilon
            root = solve(tail, target, place, side, middle, last)
        return tail, root

    def renyi(self, alpha):
        """The Rényi divergence of order alpha >= 1."""
        if self.infinite > LEAST or alpha == inf:
            return inf if self.infinite else self.top
        return self.total.renyi(alpha)


def _limit(error):
    """The largest error of a neighbour that a line serves: none if it errs by TRUSTED itself."""
    return max(SHARP, WORSE * error) if error < TRUSTED / WORSE else SHARP


def share_lines(queries, answers):
    """Answer the middle query and the neighbours that its line serves; then the left and the right
    rest in the same way."""
    together = np.empty((3, len(queries)))
    left = [np.argsort(queries)]
    while left:
        order = left.pop()
        if not len(order):
            continue
        middle = len(order) // 2
        good, answer = answers(queries[order], middle)
        ends = np.concatenate([[-1], np.flatnonzero(~good), [len(order)]])
        at = int(np.searchsorted(ends, middle))
        first, last = ends[at - 1] + 1, max(ends[at], middle + 1)
        together[: len(answer), order[first:last]] = answer[:, first:last]
        left += [order[:first], order[last:]]
    return together
