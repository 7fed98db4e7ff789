"""The exact accountant: delta(epsilon) and epsilon(delta) of any composition, with error bounds.

A :class:`PrivacyLoss` is a list of steps and how often each is run. Both directions of every pair
of neighbours (a person added, a person removed) are computed, and the worse one is reported. For
each direction the cheapest exact method answers (``direction``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validate import count, nonnegative, order, probability, within
from . import many, tradeoff
from .direction import Direction
from .enclosure import intersected, is_wide
from .inversion import GOOD
from .step import Finite, Gaussian, Step
from .work import QUERY, ExhaustedError, limited, shared

__all__ = ["PrivacyLoss"]

MOST_ROUNDS = 10**12
MOST_ORDER = 1e15
Answer = Any  # a float for a number, an array of its shape for an array


class PrivacyLoss:
    """The privacy loss of a mechanism, or of several run one after the other.

    Made by ``randomized_response``, ``laplace``, ``gaussian``, ``finite`` and ``subsample``;
    ``a + b`` runs both, ``a.compose(k)`` runs one k times. All losses are in nats. Every query
    takes a number (and returns a float) or an array (and returns an array of its shape), and
    reports the worse of the two directions of the pair.
    """

    def __init__(self, parts: Iterable[tuple[Step, int]]) -> None:
        self._parts = _merged(parts)

    @cached_property
    def _directions(self):
        other = _merged([(step.flipped(), k) for step, k in self._parts])
        directions = [self._parts] if other == self._parts else [self._parts, other]
        return [Direction(parts) for parts in directions]

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        """Both mechanisms, each with its own randomness."""
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        return PrivacyLoss(self._parts + other._parts)

    def compose(self, k: int) -> PrivacyLoss:
        """The mechanism k times in a row (adaptively or not: the bound is the same). k >= 1, and
        at most 1e12 rounds in all."""
        k = count("k", k)
        if k * max(times for _, times in self._parts) > MOST_ROUNDS:
            raise ValueError(f"k must give at most {MOST_ROUNDS:.0e} rounds in all, got {k!r}")
        return PrivacyLoss([(step, k * times) for step, times in self._parts])

    def delta(self, epsilon: ArrayLike) -> Answer:
        """The least delta for which the mechanism is (epsilon, delta)-DP; epsilon >= 0."""
        epsilon = nonnegative("epsilon", epsilon)
        return self._many(many.deltas, self._worst_delta, epsilon)[1]

    def _worst(self, answer, needless, joined=lambda one, other: tuple(map(max, one, other))):
        """The largest (low, value, high) of the directions, within the work of one query; one that
        is ``needless`` beside what is found is not computed."""
        first, *others = self._directions
        with limited(QUERY):
            with shared(len(self._directions)):
                found = answer(first)
            for way in others:
                if not needless(way, found):
                    found = joined(found, answer(way))
        return found

    def _worst_delta(self, epsilon, enough=np.inf):
        """(low, value, high); a direction that Chernoff's bound rules out is not computed, nor one
        that would only make an upper end larger that is more than ``enough``: then the upper end
        is a number in between."""

        def needless(way, found):
            return found[2] > enough or way.certainly_below(epsilon, found[0])

        if epsilon == 0:  # the total variation, which is the same both ways
            return self._worst(
                lambda way: way.delta(0.0), lambda _, found: not is_wide(found, GOOD), intersected
            )
        return self._worst(lambda way: way.delta(epsilon), needless)

    def _roughly(self, epsilon):
        """log delta(epsilon) of one direction, for the searches of ``calibrate``."""
        return self._directions[0].roughly(epsilon)

    def _followed(self, epsilon):
        """A function of losses near this one that finds their log delta(epsilon) in that direction,
        nearly right but without a bound; or None."""
        log_delta = self._directions[0].followed(epsilon)
        return log_delta and (lambda loss: log_delta(loss._directions[0]))

    def delta_interval(self, epsilon: ArrayLike) -> tuple[Answer, Answer]:
        """(low, high) around delta(epsilon): an enclosure under the error model of
        ``dpnotes.accountant``."""
        epsilon = nonnegative("epsilon", epsilon)
        return self._many(many.deltas, self._worst_delta, epsilon)[::2]

    def epsilon(self, delta: ArrayLike) -> Answer:
        """The least epsilon >= 0 for which the mechanism is (epsilon, delta)-DP; 0 <= delta <= 1.

        Infinite where no epsilon does (Gaussian noise at delta = 0, say).
        """
        delta = probability("delta", delta)
        return self._many(many.epsilons, self._worst_epsilon, delta)[1]

    def _worst_epsilon(self, delta):
        """(low, value, high); a direction that Chernoff's bound rules out is not computed."""
        return self._worst(
            lambda way: way.epsilon(delta),
            lambda way, found: way.certainly_meets(found[0], delta),
        )

    def epsilon_interval(self, delta: ArrayLike) -> tuple[Answer, Answer]:
        """(low, high) around epsilon(delta): an enclosure under the error model of
        ``dpnotes.accountant``."""
        delta = probability("delta", delta)
        return self._many(many.epsilons, self._worst_epsilon, delta)[::2]

    def renyi(self, alpha: ArrayLike) -> Answer:
        """The Rényi divergence of order alpha >= 1, K(alpha-1)/(alpha-1) with K = log E exp(zL).

        alpha = 1 gives the Kullback-Leibler divergence, alpha = inf the largest loss; between
        1e15 and infinity nothing is served.
        """
        alpha = order("alpha", alpha)
        finite = np.isfinite(alpha)
        within("alpha", np.where(finite, alpha, 1.0), 1.0, MOST_ORDER)
        found = [float(self._renyi(a)) for a in np.ravel(alpha).tolist()]
        return found[0] if isinstance(alpha, float) else np.reshape(found, alpha.shape)

    def _renyi(self, alpha):
        try:
            with limited(QUERY):
                return max(way.renyi(alpha) for way in self._directions)
        except ExhaustedError:
            raise ValueError(
                f"alpha {alpha!r} takes more work than a query may cost: so many kinds of steps"
            ) from None

    def mean(self) -> float:
        """The expected privacy loss: the Kullback-Leibler divergence, ``renyi(1)``."""
        return self._renyi(1.0)

    def tradeoff(self, alpha: ArrayLike) -> Answer:
        """The least type-II error of any test of level alpha between the two laws, 0 <= alpha <= 1
        (the trade-off function of Dong, Roth and Su 2022), in the worse of the two directions:
        min of T(p, q) and T(q, p) at each alpha, which need not be convex where they cross."""
        alpha = probability("alpha", alpha)
        found = tradeoff.worst(self._directions, np.atleast_1d(alpha).ravel())
        return float(found[0]) if isinstance(alpha, float) else found.reshape(alpha.shape)

    def _many(self, at_once, alone, values):
        """(low, value, high), each a float or an array like ``values``; many queries share lines
        where lines serve, see ``many``."""
        if isinstance(values, float):
            return tuple(float(end) for end in alone(values))
        flat = values.ravel()
        if many.served(self._directions, flat):
            found = at_once(self._directions, flat)
        else:
            found = np.array([alone(v) for v in flat.tolist()]).T
        return tuple(found.reshape(3, *values.shape))

    def __repr__(self) -> str:
        return "PrivacyLoss(" + " + ".join(f"{k} x {step}" for step, k in self._parts) + ")"


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
