"""What counts of an audit prove: lower bounds on epsilon that fail as rarely as you ask.

Two ways to collect the counts. Many runs on two neighbours: how often an event A was seen on each.
One run with many canaries, each put in or left out by a coin: how many of the coins were guessed.
Everything rests on the bounds of Clopper and Pearson for the chance of a coin.
"""

from __future__ import annotations

from typing import Annotated, overload

import numpy as np

from ...numerics import betainc, betainccinv, betaincinv, expit, log_binomial, xlog1py, xlogy
from ...checks import (
    Array, ArrayLike, Count, CountOrZero, Counts, OpenProbability, Probability, Vector, also,
    checked, number_within, real_array, refusal,
)  # fmt: skip

WholeNumbers = Annotated[
    ArrayLike,
    also(real_array, lambda k: ((k >= 0) & (k == np.floor(k))).all(), "a whole number >= 0"),
]
FalseAlarm = Annotated[float, number_within(1e-100, 1 - 1e-16)]


@overload
def clopper_pearson(successes: int, trials: float, alarm: float) -> tuple[float, float]: ...
@overload
def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, alarm: ArrayLike
) -> tuple[Array, Array]: ...
@checked
def clopper_pearson(
    successes: WholeNumbers, trials: Counts, alarm: OpenProbability
) -> tuple[float | Array, float | Array]:
    """(low, high): bounds of the chance of a coin that showed so many heads in so many trials.

    Each of the two fails with probability at most `alarm` (X-clopper-pearson). Arrays broadcast.

    >>> low, high = auditing.clopper_pearson(9, trials=10, alarm=0.05)
    >>> round(low, 4), round(high, 4)
    (0.6058, 0.9949)
    """
    _none_above("successes", successes, "trials", trials)
    return _low(successes, trials, alarm), _high(successes, trials, alarm)


@overload
def epsilon_from_counts(
    k: int, other: int, runs: float, delta: float = ..., *, false_alarm: float
) -> float: ...
@overload
def epsilon_from_counts(
    k: ArrayLike, other: ArrayLike, runs: ArrayLike, delta: ArrayLike = ..., *, false_alarm: float
) -> Array: ...
@checked
def epsilon_from_counts(
    k: WholeNumbers,
    other: WholeNumbers,
    runs: Counts,
    delta: Probability = 0.0,
    *,
    false_alarm: FalseAlarm,
) -> float | Array:
    """Lower bound on epsilon at `delta` from an event seen `k` times in `runs` runs on one input
    and `other` times in `runs` runs on its neighbour (X-audit). Vectorised; at least 0.

    It exceeds the epsilon of an (epsilon, delta)-DP mechanism with probability at most
    `false_alarm`, if the event was chosen without these runs. It is ln((low - delta)/high).

    >>> round(auditing.epsilon_from_counts(900, 100, runs=1000, false_alarm=0.05), 4)
    1.9897
    """
    _none_above("k", k, "runs", runs)
    _none_above("other", other, "runs", runs)
    return log_ratio_bound(k, other, runs, delta, false_alarm)


@checked
def guess_canaries(scores: Vector, guesses: CountOrZero) -> Array:
    """Guess the coins of canaries from their scores (m,): +1 (in) for the largest, -1 (out) for
    the smallest, half of the even number `guesses` each, and 0, no guess, for those between.

    >>> auditing.guess_canaries([0.3, 2.0, -1.0, 0.1], guesses=2)
    array([ 0,  1, -1,  0])
    """
    if not len(scores):
        raise ValueError("scores must hold a number for each canary")
    if guesses % 2 or guesses > len(scores):
        raise refusal("guesses", guesses, f"even and at most {len(scores)}")
    order, signs = np.argsort(scores, kind="stable"), np.zeros(len(scores), dtype=int)
    signs[order[: guesses // 2]], signs[order[len(order) - guesses // 2 :]] = -1, 1
    return signs


@overload
def epsilon_from_guesses(
    correct: int,
    guesses: int,
    delta: float = ...,
    canaries: int | None = ...,
    *,
    false_alarm: float,
) -> float: ...
@overload
def epsilon_from_guesses(
    correct: ArrayLike,
    guesses: ArrayLike,
    delta: ArrayLike = ...,
    canaries: int | None = ...,
    *,
    false_alarm: float,
) -> Array: ...
@checked
def epsilon_from_guesses(
    correct: WholeNumbers,
    guesses: WholeNumbers,
    delta: Probability = 0.0,
    canaries: Count | None = None,
    *,
    false_alarm: FalseAlarm,
) -> float | Array:
    """Lower bound on epsilon from one run with canaries, `correct` of `guesses` right (X-one-run).

    It exceeds the epsilon of an (epsilon, delta)-DP mechanism with probability at most
    `false_alarm`. For delta > 0 the number of all `canaries`, guessed or not, must be given, and
    the number of guesses must be fixed before the run.

    >>> round(auditing.epsilon_from_guesses(90, guesses=100, false_alarm=0.05), 4)
    1.6308
    """
    _none_above("correct", correct, "guesses", guesses)
    if canaries is None and (delta > 0).any():
        raise refusal("canaries", None, "their number if delta > 0")
    if canaries is not None and (guesses > canaries).any():
        raise refusal("canaries", canaries, "at least the number of guesses")
    chance = np.maximum(_low(correct, guesses, false_alarm), 0.5)  # as no information guesses
    most, leaked = np.broadcast_arrays(np.log(chance / (1 - chance)), delta * (canaries or 0))
    given = map(np.ravel, np.broadcast_arrays(correct, guesses, leaked, most))
    each = [_less(w, r, m, e, false_alarm) for w, r, m, e in zip(*given, strict=True)]
    return np.reshape(each, most.shape)


def _less(correct, guesses, leaked, epsilon, false_alarm):
    """The largest number up to `epsilon`, that without delta, at which the chance of so many right
    guesses, with what delta adds to it, is at most the false alarm; 0 if there is none."""
    if not leaked or not epsilon:
        return epsilon

    def alarms(epsilon):
        p = expit(epsilon)
        return betainc(correct, guesses - correct + 1, p) + leaked * (1 - p) * mean_mode(guesses, p)

    tried = np.linspace(0.0, epsilon, 65)
    fits = np.flatnonzero([alarms(at) <= false_alarm for at in tried])
    if not fits.size:
        return 0.0
    low, high = tried[fits[-1]], tried[min(fits[-1] + 1, 64)]
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if alarms(middle) <= false_alarm else (low, middle)
    return low


def mean_mode(guesses, p):
    """An upper bound of the mean over n < guesses of the largest probability of Bin(n, p).

    That falls with n, so of blocks of numbers the first stands for all; exact up to 512 guesses.
    """
    edges = np.append(np.arange(512.0), np.round(np.geomspace(512, max(guesses, 512), 512)))
    edges = np.unique(np.minimum(edges, guesses))
    n = edges[:-1]
    mode = np.minimum(np.floor((n + 1) * p), n)
    largest = np.exp(log_binomial(n, mode) + xlogy(mode, p) + xlog1py(n - mode, -p))
    return np.minimum(largest, 1.0) @ np.diff(edges) / guesses


def log_ratio_bound(k, other, n, delta, alarm):
    """ln((low - delta)/high) >= 0 of Clopper and Pearson's bounds at alarm/2, unchecked."""
    k, other = np.asarray(k, float), np.asarray(other, float)
    ratio = (_low(k, n, alarm / 2) - delta) / _high(other, n, alarm / 2)
    return np.log(np.maximum(ratio, 1.0))


def _low(k, n, alarm):
    return np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, alarm), 0.0)


def _high(k, n, alarm):
    return np.where(k < n, betainccinv(k + 1, np.maximum(n - k, 1), alarm), 1.0)


def _none_above(name, k, total, n):
    if np.any(k > n):
        raise refusal(name, k, f"a whole number, none above {total}")
