"""One direction of a pair of neighbours: infinite losses set apart, and how to compute the rest.

Every answer is an enclosure (low, value, high).
"""

from functools import cached_property, lru_cache
from math import exp, expm1, inf, log, log1p

from . import contour, discrete_gaussian, finite_sums, laplace_sums, one_step
from .enclosure import intersected, safe
from .inversion import Integral, followed
from .law import EPS
from .step import Finite
from .two_losses import ALL, Binomial
from .work import LINES, within

__all__ = []

KEPT = 8  # answers of a direction
LEAST = 1e-299  # the chance of an infinite loss, below which it may be what a law was cut off


class Direction:
    """P against Q for a composition: a tuple of (step, rounds).

    With probability kept = prod (1 - infinite) no loss is infinite. Given that, each loss follows
    a probability law again, that of log (P/kept)/Q, so

        delta(e) = 1 - kept + kept delta'(e - log kept),

    where delta' is that of the composition of the conditional laws, whose losses are finite.
    """

    def __init__(self, parts):
        self.each = parts
        self.parts = parts = discrete_gaussian.alone_or_finite(parts)
        self.top = sum(k * step.top() for step, k in parts)
        certain = any(step.infinite >= 1 for step, _ in parts)
        self.log_kept = -inf if certain else sum(k * log1p(-step.infinite) for step, k in parts)
        self.infinite = 0.0 - expm1(self.log_kept)  # P(L = inf); not -0.0
        # what a law was cut off counts from above only: its losses are large, and finite
        self.cut = 1.001 * sum(k * step.infinite for step, k in parts if step.infinite < LEAST)
        self.given = () if certain else tuple((step.given_finite(), k) for step, k in parts)
        self._known = {}

    @cached_property
    def exact(self):
        """The method that sums infinite losses, too, exactly; or None."""
        return exact_sum(self.parts) if self.given else None

    @cached_property
    def finite_top(self):
        """The largest finite loss, and by how much that sum of rounded logarithms may be off."""
        most = [step.extent(1.0)[1] if step.infinite else step.top() for step, _ in self.parts]
        tops = [k * top for top, (_, k) in zip(most, self.parts, strict=True)]
        return sum(tops), 8 * EPS * sum(map(abs, tops)) if sum(tops) < inf else 0.0

    @cached_property
    def end(self):
        """No more than that; finite losses beyond have less than EPS of all probability, for those
        of one step beyond its extent have less than 2e-28."""
        if self.finite_top[0] == inf:
            return inf
        return sum(k * step.extent(1.0)[1] for step, k in self.parts)

    def delta(self, epsilon):
        """(low, value, high) that hold delta(epsilon), the value on the safe side."""
        low, value, high = self._once(self._delta, epsilon)
        return max(0.0, low - self.cut), value, high

    def _once(self, answer, at):
        """The last answers are kept: a value and its interval are asked for one after the other."""
        key = answer.__name__, at
        if key not in self._known:
            if len(self._known) == KEPT:
                self._known.clear()
            self._known[key] = answer(at)
        return self._known[key]

    def _delta(self, epsilon):
        if self.exact and (found := within(inf, self.exact.delta, epsilon)):
            return found
        if self.infinite == 1:
            return 1.0, 1.0, 1.0
        if epsilon >= sum(self.finite_top):
            return self._rounded((self.infinite,) * 3)
        if not self.infinite:
            curve = method(self.parts)
            return safe(curve.delta(epsilon), curve.tight)
        curve = method(self.given)
        found = curve.delta(epsilon - self.log_kept)
        # delta' falls no faster than 1, so its shift's round-off moves it no more than that
        kept = exp(self.log_kept)
        pad = EPS * (epsilon - 8 * self.log_kept)
        found = [max(0.0, found[0] - pad), *(f + pad for f in found[1:])]
        found = self._rounded([self.infinite + kept * f for f in found])
        return safe(found, curve.tight)

    def _rounded(self, found):
        """With the round-off of ``infinite``, and of a sum with it."""
        low, value, high = found
        return low * (1 - 4 * EPS), min(1.0, value), min(1.0, high * (1 + 4 * EPS))

    def roughly(self, epsilon):
        """log delta(epsilon), by the saddle point where no exact method serves."""
        closed = self.exact or self.infinite == 1 or epsilon >= self.top
        if closed or not isinstance(method(self.given), Integral):
            found = self.delta(epsilon)[1]
            return log(found) if found > 0 else -inf
        tail = min(contour.saddle_at(self.given, 1, epsilon - self.log_kept)[2], 0.0)
        return log(self.infinite + exp(self.log_kept + tail) + 1e-300)

    def followed(self, epsilon):
        """A function of directions near this one that finds their log delta(epsilon), nearly
        right but without a bound; or None where no line serves."""
        closed = self.exact or self.infinite or epsilon >= self.top
        if closed or not isinstance(method(self.parts), Integral):
            return None
        log_delta = within(LINES // 4, followed, self.parts, epsilon)
        return log_delta and (lambda way: within(LINES // 4, log_delta, way.parts))

    def epsilon(self, delta):
        """(low, value, high) that hold epsilon(delta), the value on the safe side."""
        if 0 < delta <= self.cut:
            return 0.0, inf, inf
        return self._once(self._epsilon, delta)

    def _epsilon(self, delta):
        if delta == 1:
            return 0.0, 0.0, 0.0
        if self.exact and (found := within(inf, self.exact.epsilon, delta)):
            return found
        room = 4 * EPS * delta if self.infinite else 0.0  # the round-off of delta - infinite
        if delta < self.infinite - room or self.infinite == 1:
            return inf, inf, inf
        top, pad = self.finite_top
        if delta == 0:
            return max(0.0, top - pad), max(0.0, top), max(0.0, top + pad)
        if self.infinite:
            found = self._given_epsilon(delta - self.infinite, room, top)
        else:
            found = method(self.parts).epsilon(delta)
        least = max(0.0, self._least_epsilon(delta, top, pad))
        most = max(0.0, top + pad) if delta - self.infinite > room else inf
        return safe(intersected(found, (least, most, most)), method(self.given).tight)

    def _given_epsilon(self, rest, room, top):
        """With probability rest - room to rest + room beyond the infinite losses."""
        curve, kept = method(self.given), exp(self.log_kept)
        pad = 4 * EPS * self.log_kept
        low = curve.epsilon(min(1.0, (rest + room) / kept))[0] + self.log_kept + pad
        value = high = inf
        if rest > 0:
            value = curve.epsilon(min(1.0, rest / kept))[1] + self.log_kept
        if rest == 0:
            value = top
        if rest > room:
            high = curve.epsilon(min(1.0, (rest - room) / kept))[2] + self.log_kept - pad
        low, high = max(0.0, low), max(0.0, high)
        return low, min(max(value, low), high), high

    def _least_epsilon(self, delta, top, pad):
        """Below epsilon: delta(e) >= infinite + w (1 - exp(e - top)), w the probability of top.

        Where delta is near that the last digit of w decides, so w is taken low by its round-off:
        a logarithm is off by EPS of itself and of the loss it was found from (``flipped``).
        """
        weights = [(k, step.log_at_top()) for step, k in self.parts]
        rounding = 4 * EPS * (abs(top) + sum(k * (2 - log_p) for k, log_p in weights))
        weight = exp(sum(k * log_p for k, log_p in weights) - rounding)
        rest = delta - self.infinite * (1 - 4 * EPS)
        if not rest < weight:
            return 0.0
        return top - pad + log1p(-rest / weight) * (1 + 1e-9)

    def certainly_meets(self, epsilon, delta):
        """Whether the closed form, Chernoff's bound (the best RDP bound) or one line shows
        (epsilon, delta)-DP with room for its round-off, and for that of log delta < 0."""
        if self.infinite or not 0 < delta < 1 or not 0 < epsilon < inf:
            return False
        if self.exact:
            return bool(within(inf, self.exact.meets, epsilon, delta, 1))
        curve = method(self.parts)
        if isinstance(curve, one_step.Single):
            return curve.log_bound(epsilon, 1) < (1 + EPS) * log(delta)
        return self.certainly_below(epsilon, delta) or curve.is_below(epsilon, delta)

    def certainly_below(self, epsilon, delta):
        """Whether Chernoff's bound shows delta(epsilon) < delta, at little cost."""
        if self.infinite or self.exact or not 0 < delta < 1 or not 0 < epsilon < inf:
            return False
        if epsilon >= sum(self.finite_top):
            return True
        target = (1 + EPS) * log(delta)
        bound = within(LINES // 4, contour.rough_bound, self.parts, epsilon)
        return bound is not None and bound < target

    def renyi(self, alpha):
        if any(step.infinite for step, _ in self.each):
            return inf
        if alpha == 1:
            return sum(k * step.mean() for step, k in self.each)
        if alpha == inf:
            return self.top
        return contour.total_at(self.each, alpha - 1) / (alpha - 1)


def method(parts):
    """The way to compute this composition of finite losses."""
    step, k = parts[0]
    if len(parts) == 1 and k == 1 and one_step.has_closed_form(step):
        return one_step.Single(step)
    return Integral(parts)


@lru_cache(maxsize=8)
def exact_sum(parts):
    """The exact sum of this composition, infinite losses and all, or None."""
    if isinstance(parts[0][0], discrete_gaussian.DiscreteGaussian):
        return discrete_gaussian.exact(parts)
    if all(isinstance(step, Finite) for step, _ in parts):
        step, k = parts[0]
        if len(parts) == 1 and len(step.losses) == 2 and k > ALL:
            return Binomial(step, k)
        return finite_sums.enumerated(parts)
    return laplace_sums.sums(parts)
