"""The object that everybody asks: a list of steps, and how often each is run."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import cached_property
from typing import Self, overload

import numpy as np

from ..checks import (
    MOST, Array, ArrayLike, Count, NonnegativeOrInf, OpenProbabilityNumber, Order, Probability,
    checked, refusal, within,
)  # fmt: skip
from .attacks import FLOOR, best_attack, mu_interval
from .direction import Direction
from .finite import Finite
from .gaussian import Gaussian
from .law import EPS, Step

MOST_ROUNDS, MOST_ORDER = 10**12, 1e12
NOTHING = Finite((0.0,), (0.0,))


class PrivacyLoss:
    """The privacy loss of a mechanism, or of several run one after the other.

    Made by ``randomized_response``, ``laplace``, ``gaussian``, ``finite`` and ``subsample``;
    ``a + b`` runs both, ``a.compose(k)`` one k times. ``sum(losses, dp.PrivacyLoss())`` runs a
    list, which may be empty: ``PrivacyLoss()`` runs nothing. All losses are in nats. Every query
    takes a number (and returns a float) or an array (and returns an array of its shape). It reports
    the worse of the two directions of the pair: a person added, or removed.

    >>> run = dp.gaussian(sigma=8.0).compose(10) + dp.laplace(scale=20.0)
    >>> round(run.epsilon(delta=1e-6), 4), round(run.renyi(alpha=8.0), 4)
    (1.7572, 0.6346)
    """

    def __init__(self, parts: Iterable[tuple[Step, int]] = ()) -> None:
        try:
            self._given = tuple(parts)
            self._rounds = sum(k for _, k in self._given)
        except (TypeError, ValueError):
            raise refusal("parts", parts, "steps: dp.gaussian and the like make a loss") from None
        self._refuse_too_many()

    def _refuse_too_many(self):
        if self._rounds > MOST_ROUNDS:
            raise ValueError(f"k must be at most {MOST_ROUNDS:.0e} rounds in all")

    @cached_property
    def _parts(self):
        return _merged(self._given)

    @cached_property
    def _directions(self):
        other = _merged([(step.flipped(), k) for step, k in self._parts])
        directions = [self._parts] if other == self._parts else [self._parts, other]
        return [Direction(parts) for parts in directions]

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        """Both mechanisms, each with its own randomness."""
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        both = PrivacyLoss(())  # rounds are not counted anew, so that long sums are fast
        both._given, both._rounds = self._given + other._given, self._rounds + other._rounds
        both._refuse_too_many()
        return both

    def __radd__(self, zero: int) -> PrivacyLoss:
        """0 + loss is the loss, so that ``sum`` adds up a list of losses."""
        return self if type(zero) is int and zero == 0 else NotImplemented

    @checked
    def compose(self, k: Count) -> Self:
        """The mechanism k times in a row (adaptively or not: the bound is the same). k >= 1, and
        at most 1e12 rounds in all."""
        return type(self)([(step, k * times) for step, times in self._parts])

    @overload
    def delta(self, epsilon: float) -> float: ...

    @overload
    def delta(self, epsilon: ArrayLike) -> Array: ...

    @checked
    def delta(self, epsilon: NonnegativeOrInf) -> float | Array:
        """The least delta for which the mechanism is (epsilon, delta)-DP; epsilon >= 0.

        At infinity it is the probability of an infinite loss: 0 for most mechanisms.
        """
        return self._worse("delta", epsilon)[1]

    @overload
    def delta_interval(self, epsilon: float) -> tuple[float, float]: ...

    @overload
    def delta_interval(self, epsilon: ArrayLike) -> tuple[Array, Array]: ...

    @checked
    def delta_interval(self, epsilon: NonnegativeOrInf) -> tuple[float | Array, float | Array]:
        """(low, high) around delta(epsilon), under the error model of ``dpnotes.accountant``. Where
        sampling is rare it may be wide for delta below 1e-40, for sigma below 0.1, for more than
        1,000 steps that differ or 60 groups of one rate and similar sigma, and where epsilon is the
        largest loss of what is composed with it."""
        return self._worse("delta", epsilon)

    @overload
    def epsilon(self, delta: float) -> float: ...

    @overload
    def epsilon(self, delta: ArrayLike) -> Array: ...

    @checked
    def epsilon(self, delta: Probability) -> float | Array:
        """The least epsilon >= 0 for which the mechanism is (epsilon, delta)-DP; 0 <= delta <= 1.

        Infinite where no epsilon does (Gaussian noise at delta = 0, say).
        """
        return self._worse("epsilon", delta)[1]

    @overload
    def epsilon_interval(self, delta: float) -> tuple[float, float]: ...

    @overload
    def epsilon_interval(self, delta: ArrayLike) -> tuple[Array, Array]: ...

    @checked
    def epsilon_interval(self, delta: Probability) -> tuple[float | Array, float | Array]:
        """(low, high) around epsilon(delta), under the error model of ``dpnotes.accountant``; wide
        where ``delta_interval`` is."""
        return self._worse("epsilon", delta)

    def _worse(self, answer, queries):
        """(low, high) of the worse direction, each of the shape of the queries. The second
        direction is asked only where no bound shows that it is not the worse one."""
        flat, (first, *others) = np.minimum(queries.ravel(), MOST), map(copy, self._directions)
        with np.errstate(all="ignore"):  # infinities and underflow are intended
            ends = getattr(first, answer)(flat)
            for other in others:
                epsilon, delta = (flat, ends[0]) if answer == "delta" else (ends[0], flat)
                some = other.may_exceed(delta, epsilon, first)
                if answer == "epsilon":  # one line may show that this direction asks for less
                    some[some] = other.delta(epsilon[some])[1] > delta[some]
                if some.any():
                    ends[:, some] = np.maximum(ends[:, some], getattr(other, answer)(flat[some]))
        if answer == "delta" and (never := queries.ravel() == np.inf).any():
            chances = [(one.surely_infinite, one.infinite) for one in (first, *others)]
            chance = np.max(chances, axis=0) * (1 - 4 * EPS, 1 + 4 * EPS)  # of rounding
            ends[:, never] = np.minimum(chance, 1.0)[:, None]
        return tuple(ends.reshape(2, *queries.shape))

    @property
    def gaussian_mu(self) -> float | None:
        """mu of Gaussian noise, 0 if nothing is lost, None for any other loss."""
        steps = [step for step, _ in self._parts]
        if steps == [NOTHING]:
            return 0.0
        return steps[0].mu if len(steps) == 1 and isinstance(steps[0], Gaussian) else None

    @np.errstate(all="ignore")
    def _roughly(self, epsilon):
        """log delta(epsilon) by the saddle point, for the searches of ``calibrate``."""
        return max(way.roughly(epsilon) for way in self._directions)

    @overload
    def renyi(self, alpha: float) -> float: ...

    @overload
    def renyi(self, alpha: ArrayLike) -> Array: ...

    @checked
    def renyi(self, alpha: Order) -> float | Array:
        """The Rényi divergence of order alpha >= 1, K(alpha-1)/(alpha-1) with K = log E exp(zL).

        alpha = 1 gives the Kullback-Leibler divergence, alpha = inf the largest loss; between
        1e12 and infinity nothing is served.
        """
        within("alpha", np.where(np.isfinite(alpha), alpha, 1.0), 1.0, MOST_ORDER)
        first, *others = self._directions
        divergence = np.empty(alpha.size)
        with np.errstate(all="ignore"):
            for at, order in enumerate(alpha.ravel().tolist()):
                divergence[at] = first.renyi(order)
                worse = [other.renyi(order) for other in others if other.top > divergence[at]]
                divergence[at] = max([divergence[at], *worse])
        return divergence.reshape(alpha.shape)

    def mean(self) -> float:
        """The expected privacy loss: the Kullback-Leibler divergence, ``renyi(1)``."""
        return self.renyi(1.0)

    @overload
    def tradeoff(self, alpha: float) -> float: ...

    @overload
    def tradeoff(self, alpha: ArrayLike) -> Array: ...

    @checked
    def tradeoff(self, alpha: Probability) -> float | Array:
        """The least type-II error of any test of level alpha between the two laws, 0 <= alpha <= 1
        (the trade-off function of Dong, Roth and Su 2022), in the worse of the two directions:
        min of T(p, q) and T(q, p) at each alpha, which need not be convex where they cross."""
        return self._attacked(alpha)[0]

    @overload
    def tpr(self, fpr: float) -> float: ...

    @overload
    def tpr(self, fpr: ArrayLike) -> Array: ...

    @checked
    def tpr(self, fpr: Probability) -> float | Array:
        """The largest true positive rate of any membership attack whose false positive rate is fpr,
        0 <= fpr <= 1: 1 - ``tradeoff(fpr)``, rounded up, in the worse of the two directions.

        An upper bound, as a rule right to about 1e-13, and to more digits where it is small; never
        more than fpr + ``advantage()`` (X-attack-rates).

        >>> round(dp.gaussian(sigma=2.0).tpr(fpr=0.01), 4)
        0.0339
        """
        return np.minimum(self._attacked(fpr)[1], np.nextafter(fpr + self.advantage(), 2.0))

    def advantage(self) -> float:
        """The largest TPR - FPR of any membership attack, ``delta(0)``: also the total variation
        distance of the two laws. An upper bound (X-attack-rates).

        >>> round(dp.gaussian(sigma=2.0).advantage(), 4)
        0.1974
        """
        return self.delta(0.0)

    @checked
    def mu(self, delta: OpenProbabilityNumber = FLOOR) -> tuple[float, float]:
        """(low, high): the least and the greatest mu at which Gaussian noise N(mu, 1) against
        N(0, 1) has the delta of this run, over all epsilon >= 0 where that is at least ``delta``.

        Rounded outward. No attack on the run has a TPR above that of Gaussian noise with mu =
        ``high``, plus ``delta``; and low is what no smaller mu can be (X-regret). (0, 0) if
        delta(0) <= ``delta``; high is infinite where nearly all is lost.

        >>> low, high = dp.laplace(scale=2.0).compose(20).mu(delta=1e-6)
        >>> round(low, 3), round(high, 3)
        (1.797, 2.081)
        """
        return mu_interval(self, delta)

    def _attacked(self, levels):
        """(least error, largest power) at an array of levels, each in its shape."""
        with np.errstate(all="ignore"):
            ends = best_attack([copy(way) for way in self._directions], levels.ravel())
        return [end.reshape(levels.shape) for end in ends]

    def __reduce__(self):
        return PrivacyLoss, (self._given,)

    def __repr__(self) -> str:
        """On one line, however many kinds of steps there are."""
        told = [f"{k} x {shortened(str(step), 90)}" for step, k in self._parts]
        if len(told) > 3:
            told = [*told[:2], f"... ({len(told)} kinds, {self._rounds} steps)", told[-1]]
        return f"PrivacyLoss({' + '.join(told)})"


def shortened(text, most):
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _merged(parts):
    """Equal steps counted together, Gaussians as one (mu^2 adds up), lossless steps left out."""
    counts: dict[Step, int] = {}
    squares = 0.0
    for step, k in parts:
        if step == NOTHING:
            continue
        if isinstance(step, Gaussian):
            squares += k * step.mu**2
        else:
            counts[step] = counts.get(step, 0) + k
    if squares:
        counts[Gaussian(squares**0.5)] = 1
    return tuple(counts.items()) or ((NOTHING, 1),)
