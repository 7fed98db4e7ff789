"""The exact accountant: delta(epsilon) and epsilon(delta) of any composition, with error bounds.

A :class:`PrivacyLoss` is a list of steps and how often each is run. Both directions of every pair
of neighbours (a person added, a person removed) are computed, and the worse one is reported. For
each direction the cheapest exact method answers:

1. one step: a closed form (``closed``);
2. few finite losses: the exact sum (``lattice``);
3. anything else: the contour integral (``contour``), in time independent of the number of rounds;
4. where that decays too slowly: losses moved to a fine lattice, on the safe side (``lattice``).
"""

from math import exp, expm1, inf, log, log1p

import numpy as np
from scipy.special import ndtr, ndtri

from . import closed, contour, lattice
from ._validate import count, nonnegative, order, positive, positive_probability, probability
from .steps import Finite, Gaussian

__all__ = ["PrivacyLoss", "calibrate"]


TRUSTED = 1e-6  # relative error of a tail beyond which a new line is drawn


class PrivacyLoss:
    """The privacy loss of a mechanism, or of several run one after the other.

    Made by ``randomized_response``, ``laplace``, ``gaussian``, ``finite`` and ``subsample``;
    ``a + b`` runs both, ``a.compose(k)`` runs one k times. All losses are in nats. Every query
    takes a number (and returns a float) or an array (and returns an array of its shape), and
    reports the worse of the two directions of the pair.
    """

    def __init__(self, parts):
        self._parts = _merged(parts)
        other = _merged([(step.flipped(), k) for step, k in self._parts])
        directions = [self._parts] if other == self._parts else [self._parts, other]
        self._directions = [_Direction(parts) for parts in directions]

    def __add__(self, other):
        """Both mechanisms, each with its own randomness."""
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        return PrivacyLoss(self._parts + other._parts)

    def compose(self, k):
        """The mechanism k times in a row (adaptively or not: the bound is the same). k >= 1."""
        k = count("k", k)
        return PrivacyLoss([(step, k * times) for step, times in self._parts])

    def delta(self, epsilon):
        """The least delta for which the mechanism is (epsilon, delta)-DP; epsilon >= 0."""
        return _each(self._delta, nonnegative("epsilon", epsilon))

    def _delta(self, epsilon):
        return max(way.delta(epsilon)[1] for way in self._directions)

    def delta_interval(self, epsilon):
        """(low, high) that hold the true delta(epsilon)."""
        return _each_pair(self._delta_interval, nonnegative("epsilon", epsilon))

    def _delta_interval(self, epsilon):
        found = [way.delta(epsilon) for way in self._directions]
        return max(f[0] for f in found), max(f[2] for f in found)

    def epsilon(self, delta):
        """The least epsilon >= 0 for which the mechanism is (epsilon, delta)-DP; 0 <= delta <= 1.

        Infinite where no epsilon does (Gaussian noise at delta = 0, say).
        """
        return _each(self._epsilon, probability("delta", delta))

    def _epsilon(self, delta):
        return self._worst_epsilon(delta)[1]

    def _worst_epsilon(self, delta):
        """(low, value, high); a direction that Chernoff's bound rules out is not computed."""
        found = self._directions[0].epsilon(delta)
        for way in self._directions[1:]:
            if not way.certainly_meets(found[0], delta):
                found = tuple(map(max, found, way.epsilon(delta)))
        return found

    def epsilon_interval(self, delta):
        """(low, high) that hold the true epsilon(delta): certified, aliases, cut and round-off."""
        return _each_pair(self._epsilon_interval, probability("delta", delta))

    def _epsilon_interval(self, delta):
        low, _, high = self._worst_epsilon(delta)
        return low, high

    def renyi(self, alpha):
        """The Rényi divergence of order alpha >= 1, K(alpha-1)/(alpha-1) with K = log E exp(zL).

        alpha = 1 gives the Kullback-Leibler divergence, alpha = inf the largest loss.
        """
        return _each(self._renyi, order("alpha", alpha))

    def _renyi(self, alpha):
        return max(way.renyi(alpha) for way in self._directions)

    def mean(self):
        """The expected privacy loss: the Kullback-Leibler divergence, ``renyi(1)``."""
        return self._renyi(1.0)

    def tradeoff(self, alpha):
        """The least type-II error of any test of level alpha between the two laws, 0 <= alpha <= 1
        (the trade-off function of Dong, Roth and Su 2022), in the worse of the two directions."""
        return _each(self._tradeoff, probability("alpha", alpha))

    def _tradeoff(self, alpha):
        if len(self._parts) == 1 and isinstance(self._parts[0][0], Gaussian):
            mu = self._parts[0][0].mu * self._parts[0][1] ** 0.5
            return float(ndtr(-ndtri(alpha) - mu))
        first, second = self._directions[0], self._directions[-1]
        return min(_least_error(first, second, alpha), _least_error(second, first, alpha))

    def __repr__(self):
        return "PrivacyLoss(" + " + ".join(f"{k} x {step}" for step, k in self._parts) + ")"


def calibrate(family, epsilon, delta):
    """The smallest noise s > 0 for which ``family(s)`` is (epsilon, delta)-DP.

    ``family`` maps a number to a PrivacyLoss and must lose less privacy for larger numbers:
    ``calibrate(lambda s: gaussian(sigma=s), epsilon=1.0, delta=1e-5)``. Relative error 1e-12 for
    smooth families; the answer itself meets the target.
    """
    epsilon, delta = nonnegative("epsilon", epsilon), positive_probability("delta", delta)
    if np.ndim(epsilon) or np.ndim(delta):
        raise ValueError(f"epsilon and delta must be single numbers, got {epsilon!r}, {delta!r}")
    if delta == 1:
        raise ValueError("delta must be a number in (0, 1): every noise meets 1, got 1.0")

    def excess(t):
        found = family(exp(t))._delta(epsilon)
        return (log(found) if found > 0 else -1000.0) - log(delta)

    return exp(_root(excess))


def _root(excess):
    """The t >= the root of a decreasing function, to 1e-13: secants kept inside a bracket."""
    low = high = (0.0, excess(0.0))
    step = 1.0
    while high[1] > 0 or low[1] <= 0:
        if abs(low[0]) > 50 or abs(high[0]) > 50:
            raise ValueError("no noise between e^-50 and e^50 meets the target")
        if high[1] > 0:
            low, t = high, high[0] + step
            high = (t, excess(t))
        else:
            high, t = low, low[0] - step
            low = (t, excess(t))
        step *= 1.5
    points = [low, high]
    for _ in range(80):
        width = high[0] - low[0]
        if width <= 1e-13 * (1 + abs(high[0])) or high[1] == 0:
            break
        t = _interpolate(points[-3:])
        margin = min(2e-14 * (1 + abs(t)), width / 3)
        t = min(max(t, low[0] + margin), high[0] - margin)
        if len(points) % 6 == 0:
            t = 0.5 * (low[0] + high[0])
        found = (t, excess(t))
        points.append(found)
        low, high = (found, high) if found[1] > 0 else (low, found)
    return high[0]


def _interpolate(points):
    """Where the inverse interpolation polynomial of the points vanishes."""
    total = 0.0
    for i, (t, value) in enumerate(points):
        others = [v for j, (_, v) in enumerate(points) if j != i]
        if value in others:
            return 0.5 * (points[-1][0] + points[-2][0])
        for other in others:
            t *= other / (other - value)
        total += t
    return total


class _Direction:
    """One direction of the pair: every answer is (low, value, high)."""

    def __init__(self, parts):
        self.parts = parts
        self.infinite = -expm1(sum(k * log1p(-step.infinite) for step, k in parts if step.infinite < 1)) if all(step.infinite < 1 for step, _ in parts) else 1.0

    def delta(self, epsilon):
        if self.infinite == 1:
            return 1.0, 1.0, 1.0
        found = _method(self.parts).delta(epsilon)
        return tuple(min(1.0, self.infinite + f) for f in found)

    def epsilon(self, delta):
        if delta == 1:
            return 0.0, 0.0, 0.0
        if delta < self.infinite:
            return inf, inf, inf
        if delta == self.infinite:
            top = max(0.0, sum(k * max(step.losses) if isinstance(step, Finite) else k * step.top() for step, k in self.parts))
            return top, top, top
        found = _method(self.parts).epsilon(delta - self.infinite)
        return tuple(max(0.0, f) for f in found)

    def certainly_meets(self, epsilon, delta):
        """Whether Chernoff's bound (the best RDP bound) shows (epsilon, delta)-DP."""
        if self.infinite or not 0 < delta < 1 or not 0 < epsilon < inf:
            return False
        return contour.log_chernoff(self.parts, epsilon, log(delta)) < log(delta)

    def renyi(self, alpha):
        if alpha == 1:
            return sum(k * step.mean() for step, k in self.parts)
        if self.infinite:
            return inf
        if alpha == inf:
            return sum(k * step.top() for step, k in self.parts)
        return float(contour.total(self.parts, np.array([alpha - 1]))[0]) / (alpha - 1)


def _method(parts):
    step, k = parts[0]
    if len(parts) == 1 and k == 1 and closed.has_closed_form(step):
        return closed.Single(step)
    if all(isinstance(step, Finite) for step, _ in parts):
        if len(parts) == 1 and len(step.losses) == 2:
            return Binomial(step, k)
        exact = lattice.enumerated(parts)
        if exact is not None:
            return Exact(exact)
    return Integral(parts)


class Exact:
    """A Curve without any error but round-off."""

    def __init__(self, curve, rounding=1e-12):
        self.curve, self.rounding = curve, rounding

    def delta(self, epsilon):
        value = exp(self.curve.log_delta(epsilon))
        return value * (1 - self.rounding), value, min(1.0, value * (1 + self.rounding))

    def epsilon(self, delta):
        value = self.curve.epsilon(log(delta))
        pad = self.rounding * abs(value)
        return value - pad, value, value + pad


class Binomial:
    """Two losses, k rounds: the window of the binomial law that the query needs."""

    def __init__(self, step, k):
        self.step, self.k = step, k

    def _curve(self, find, value):
        start = find([(self.step, self.k)], 1, value) if self.k > 20_000 else (0.0,)
        return Exact(lattice.two_point(self.step, self.k, start[0]))

    def delta(self, epsilon):
        return self._curve(contour.saddle_at, epsilon).delta(epsilon)

    def epsilon(self, delta):
        return self._curve(contour.saddle_for, log(delta)).epsilon(delta)


class Integral:
    """The contour integral, or the lattice where the integrand decays too slowly."""

    def __init__(self, parts):
        self.parts = parts

    def delta(self, epsilon):
        side = 1 if epsilon >= contour.derivatives(self.parts, np.zeros(1))[1][0] else -1
        start = contour.saddle_at(self.parts, side, epsilon)
        if start[2] < -800:
            return 0.0, 0.0, 0.0
        line = contour.line(self.parts, side, start)
        if line is None:
            return tuple(exp(f) for f in lattice.spread(self.parts, start).log_bounds(epsilon))
        log_tail, _, above, below = contour.sums(line, epsilon)
        tail = exp(log_tail)
        found = tail * max(0.0, 1 - below), tail, min(1.0, tail * (1 + above))
        return found if side > 0 else tuple(1 - f for f in reversed(found))

    def epsilon(self, delta):
        side = 1 if delta <= 0.5 else -1
        target = log(delta) if side > 0 else log1p(-delta)
        start = contour.saddle_for(self.parts, side, target)
        for _ in range(20):
            start = (start[0], max(0.0, start[1]), start[2])
            line = contour.line(self.parts, side, start)
            if line is None:
                return self._lattice_epsilon(start, target)
            value, done = _newton(line, side, start[1], target)
            if done:
                break
            start = contour.saddle_at(self.parts, side, value)
        return _certify(line, side, value, target)

    def _lattice_epsilon(self, start, target):
        for _ in range(3):
            spread = lattice.spread(self.parts, start)
            value = spread.curve.epsilon(target)
            if spread.curve.loss[0] + 0.01 * np.ptp(spread.curve.loss) < value:
                break
            start = (start[0], value, target)
        return self._enclose(spread, value, target)

    def _enclose(self, spread, value, target):
        """Widen until the bounds on delta agree, or fall back on 0 and on Chernoff's bound."""
        low, high = 0.0, contour.chernoff_epsilon(self.parts, target)
        for width in 1e-13 * abs(value) * 4.0 ** np.arange(24):
            if spread.log_bounds(value + width)[2] <= target:
                high = min(high, value + width)
                break
        for width in 1e-12 * abs(value) * 2.0 ** np.arange(40):
            if spread.log_bounds(value - width)[0] >= target:
                low = value - width
                break
        return low, min(value, high), high


def _newton(line, side, epsilon, target):
    """Solve log tail(e) = target, e >= 0, on one line: the values of K serve all iterations.

    Returns e and whether it is the answer; if not, e is where a new line is needed.
    """
    for _ in range(50):
        value, slope, above, below = contour.sums(line, epsilon)
        if max(above, below) > TRUSTED:
            return epsilon, False
        step = side * (value - target) / exp(slope - value)
        limit = 0.25 * line.period
        old, epsilon = epsilon, max(0.0, epsilon + min(max(step, -limit), limit))
        if abs(epsilon - old) <= 2e-16 * epsilon:
            break
    return epsilon, True


def _certify(line, side, epsilon, target):
    """(low, e, high): at high the upper bound of delta is below the target, at low the lower."""
    value, slope, above, below = contour.sums(line, epsilon)
    pad = 1e-15 * abs(epsilon) + 1e-300
    ends = []
    for way in (-1, 1):
        width = pad + 1.01 * max(above, below) / exp(slope - value)
        for _ in range(60):
            end = epsilon + way * width
            value_end, _, up, down = contour.sums(line, end)
            error = log1p(up) if way * side > 0 else (log1p(-down) if down < 1 else -inf)
            if way * side * (value_end + error - target) <= 0:
                break
            width *= 2
        ends.append(end)
    return ends[0], epsilon, ends[1]


def _least_error(first, second, alpha):
    """max over real e of 1 - delta_second(e) - alpha e^e and its mirror image: the lower
    boundary of all tests, one supporting line a value of e; unimodal in e."""

    def line(e):
        if e >= 0:
            return 1 - second.delta(e)[1] - alpha * exp(min(e, 700.0))
        return exp(e) * (1 - first.delta(-e)[1] - alpha)

    ratio = 0.5 * (5**0.5 - 1)
    low, high = -_span(first), _span(second)
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = line(a), line(b)
    best = max(0.0, line(0.0))
    while high - low > 1e-9:
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = line(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = line(b)
        best = max(best, at_a, at_b)
    return best


def _span(way):
    return way.epsilon(way.infinite + (1 - way.infinite) * 1e-18)[2] + 1e-9


def _merged(parts):
    """Equal steps counted together, Gaussians as one: mu^2 adds up."""
    counts, squares = {}, 0.0
    for step, k in parts:
        if isinstance(step, Gaussian):
            squares += k * step.mu**2
        else:
            counts[step] = counts.get(step, 0) + k
    if squares:
        counts[Gaussian(squares**0.5)] = 1
    return tuple(counts.items())


def _each(answer, values):
    if isinstance(values, float):
        return float(answer(values))
    return np.array([float(answer(v)) for v in values.ravel().tolist()]).reshape(values.shape)


def _each_pair(answer, values):
    if isinstance(values, float):
        return tuple(float(v) for v in answer(values))
    pairs = np.array([answer(v) for v in values.ravel().tolist()]).reshape(*values.shape, 2)
    return pairs[..., 0], pairs[..., 1]
