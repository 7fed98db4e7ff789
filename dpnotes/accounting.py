"""The exact accountant: delta(epsilon) and epsilon(delta) of any composition, with error bounds.

A :class:`PrivacyLoss` is a list of steps and how often each is run. Both directions of every pair
of neighbours (a person added, a person removed) are computed, and the worse one is reported. For
each direction the cheapest exact method answers:

1. one step: a closed form (``closed``);
2. few finite losses: the exact sum (``discrete``);
3. anything else: the contour integral (``contour``), in time independent of the number of rounds;
4. where a few rare large losses spoil that: one such integral for each number of them (``jumps``);
5. where all of these decay too slowly: a fine lattice, on the safe side (``lattice``).
"""

from math import exp, inf, log

import numpy as np

from . import neyman_pearson
from ._validate import count, nonnegative, open_probability, order, probability, scalar
from .directions import Direction
from .steps import Finite, Gaussian

__all__ = ["PrivacyLoss", "calibrate"]

MOST_ROUNDS = 10**12


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
        self._directions = [Direction(parts) for parts in directions]

    def __add__(self, other):
        """Both mechanisms, each with its own randomness."""
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        return PrivacyLoss(self._parts + other._parts)

    def compose(self, k):
        """The mechanism k times in a row (adaptively or not: the bound is the same). k >= 1, and
        at most 1e12 rounds in all."""
        k = count("k", k)
        if k * max(times for _, times in self._parts) > MOST_ROUNDS:
            raise ValueError(f"k must give at most {MOST_ROUNDS:.0e} rounds in all, got {k!r}")
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
        (the trade-off function of Dong, Roth and Su 2022), in the worse of the two directions:
        min of T(p, q) and T(q, p) at each alpha, which need not be convex where they cross."""
        return _each(self._tradeoff, probability("alpha", alpha))

    def _tradeoff(self, alpha):
        return neyman_pearson.worst(self._directions, alpha)

    def __repr__(self):
        return "PrivacyLoss(" + " + ".join(f"{k} x {step}" for step, k in self._parts) + ")"


def calibrate(family, epsilon, delta):
    """The smallest noise s > 0 for which ``family(s)`` is (epsilon, delta)-DP.

    ``family`` maps a number to a PrivacyLoss and must lose less privacy for larger numbers:
    ``calibrate(lambda s: gaussian(sigma=s), epsilon=1.0, delta=1e-5)``. Relative error 1e-12 for
    smooth families; the answer itself meets the target.
    """
    epsilon = nonnegative("epsilon", scalar("epsilon", epsilon))
    delta = open_probability("delta", scalar("delta", delta))
    if not callable(family):
        raise ValueError(f"family must be a function of the noise, got {family!r}")

    def excess(t):
        loss = family(exp(t))
        if not isinstance(loss, PrivacyLoss):
            raise ValueError(f"family must return a PrivacyLoss, got {loss!r} at {exp(t)!r}")
        found = loss._delta(epsilon)
        return (log(found) if found > 0 else -inf) - log(delta)

    return exp(_root(excess))


def _root(excess):
    """The t >= the root of a decreasing function, to 1e-13: secants kept inside a bracket."""
    low, high = _bracket(excess)
    points = [low, high]
    for _ in range(80):
        width = high[0] - low[0]
        if width <= 1e-13 * (1 + abs(high[0])) or high[1] == 0:
            break
        finite = all(abs(value) < inf for _, value in points[-3:])
        t = _interpolate(points[-3:]) if finite else 0.5 * (low[0] + high[0])
        margin = min(2e-14 * (1 + abs(t)), width / 3)
        t = min(max(t, low[0] + margin), high[0] - margin)
        if len(points) % 6 == 0:
            t = 0.5 * (low[0] + high[0])
        found = (t, excess(t))
        points.append(found)
        low, high = (found, high) if found[1] > 0 else (low, found)
    return high[0]


def _bracket(excess):
    """Two points (t, excess) around the root; where excess refuses t, a shorter step is tried."""
    last = (0.0, excess(0.0))
    way, step = (1 if last[1] > 0 else -1), 1.0
    while abs(last[0]) <= 50:
        t = last[0] + way * step
        try:
            found = (t, excess(t))
        except ValueError:
            if step < 0.05:
                raise
            step /= 3
            continue
        if (found[1] > 0) != (way > 0):
            return (last, found) if way > 0 else (found, last)
        last, step = found, 1.5 * step
    which = "no" if way > 0 else "every"
    raise ValueError(f"family must have a noise that meets the target, but {which} noise does")


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


def _merged(parts):
    """Equal steps counted together, Gaussians as one (mu^2 adds up), lossless steps left out."""
    counts, squares, nothing = {}, 0.0, Finite((0.0,), (0.0,))
    for step, k in parts:
        if step == nothing:
            continue
        if isinstance(step, Gaussian):
            squares += k * step.mu**2
        else:
            counts[step] = counts.get(step, 0) + k
    if squares:
        counts[Gaussian(squares**0.5)] = 1
    return tuple(counts.items()) or ((nothing, 1),)


def _each(answer, values):
    if isinstance(values, float):
        return float(answer(values))
    return np.array([float(answer(v)) for v in values.ravel().tolist()]).reshape(values.shape)


def _each_pair(answer, values):
    if isinstance(values, float):
        return tuple(float(v) for v in answer(values))
    pairs = np.array([answer(v) for v in values.ravel().tolist()]).reshape(*values.shape, 2)
    return pairs[..., 0], pairs[..., 1]
