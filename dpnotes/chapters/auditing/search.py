"""An audit: run a mechanism on two neighbours many times, and bound its epsilon from below.

Nothing is known of the mechanism but its outputs. An audit can refute a claim of privacy, with
a stated probability of a false alarm; it can never confirm one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ...checks import (
    Anything, Function, Generator, NonnegativeNumber, OpenProbabilityNumber, ProbabilityNumber,
    checked, count, instance, within,
)  # fmt: skip
from .bounds import log_ratio_bound
from .classes import classes_of, counts_of, log_ratio

_BATCH = 2**16  # runs that a batched mechanism is asked for at a time


@dataclass(frozen=True)
class Audit:
    """What an audit found. `print` it for a sentence.

    >>> auditing.Audit(0.9, 0.5, 0.0, 0.999, "output 1", "x", (30, 9), 100).refuted
    True
    """

    epsilon: float  # the lower bound: a mechanism with less, at this delta, is ruled out
    claimed: float  # the epsilon that was asked about
    delta: float
    confidence: float  # the bound holds with at least this probability
    event: str  # the set A of outputs, in words
    likelier: str  # "x" or "x_neighbour": where A is the likelier
    counts: tuple  # how often A was seen in the second half: (where it is likelier, on the other)
    runs: int  # of the second half, on each of the two

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted: the lower bound exceeds it."""
        return self.epsilon > self.claimed

    def __str__(self):
        verdict = "refuted" if self.refuted else "not refuted"
        other = {"x": "x_neighbour", "x_neighbour": "x"}[self.likelier]
        return (
            f"epsilon >= {self.epsilon:.4g} at delta = {self.delta:.4g} with confidence "
            f"1 - {1 - self.confidence:.2g}; the claim {self.claimed:.4g} is {verdict}. Event: "
            f"{self.event}; seen {self.counts[0]} times on {self.likelier}, {self.counts[1]} "
            f"times on {other}, of {self.runs} runs each."
        )


@dataclass(frozen=True)
class _Batched:
    draw: Callable[..., Any]


@checked
def in_batches(draw: Function) -> _Batched:
    """Mark a mechanism that makes many runs in one call, for `audit`: much quicker with arrays.

    ``draw(x, runs, rng=rng)`` must return the outputs of `runs` independent runs on `x`, one
    along the first axis for each.

    >>> draw = auditing.in_batches(lambda x, runs, rng: x + rng.laplace(size=runs))
    >>> auditing.audit(draw, 0.0, 2.0, epsilon=1.0, runs=2000, rng=np.random.default_rng(1)).refuted
    True
    """
    return _Batched(draw)


def _drawer(name, mechanism):
    """A function of (x, runs, rng): that of `in_batches`, or one call a run."""
    if isinstance(mechanism, _Batched):
        return mechanism.draw
    instance(name, mechanism, Callable, "a function")
    return lambda x, runs, rng: [mechanism(x, rng=rng) for _ in range(runs)]


Mechanism = Annotated[Callable[..., Any], _drawer]
Runs = Annotated[int, lambda name, value: int(within(name, count(name, value), 2, 2**31))]


@checked
def audit(
    mechanism: Mechanism,
    x: Anything,
    x_neighbour: Anything,
    epsilon: NonnegativeNumber,
    delta: ProbabilityNumber = 0.0,
    *,
    runs: Runs = 100_000,
    false_alarm: OpenProbabilityNumber = 1e-6,
    rng: Generator,
) -> Audit:
    """A lower bound on the epsilon (at `delta`) of a mechanism, from runs on two neighbours.

    ``mechanism(x, rng=rng)`` returns the output of one run: a number, a string, a tuple or an array
    of them (None and NaN are outputs too). `in_batches` marks one that makes many runs a call. It
    is run `runs` times on each of `x` and `x_neighbour`. The claim is ``.refuted`` if the bound
    exceeds `epsilon`; a true claim is refuted with probability at most `false_alarm`.

    The first half of the runs chooses an event A: a union of classes of outputs. The second half
    counts it on both inputs. Given the first half A is fixed and the counts are binomial, so
    `epsilon_from_counts` is valid, however A was chosen (X-audit).

    >>> rng = np.random.default_rng(1)
    >>> result = auditing.audit(lambda x, rng: x, 0, 1, epsilon=1.0, runs=200, rng=rng)
    >>> result.refuted, round(result.epsilon, 2)
    (True, 1.86)
    """
    half = runs // 2
    first = [_join(_batches(mechanism, at, half, rng)) for at in (x, x_neighbour)]
    likelier, members, classes = _choose_event(first, delta, false_alarm)
    inside = np.append(members, False)  # an output of no class is not in the event
    counts = [
        sum(int(inside[classes.label(y)].sum()) for y in _batches(mechanism, at, half, rng))
        for at in (x, x_neighbour)
    ]
    seen, on_other = counts if likelier == "x" else counts[::-1]
    bound = float(log_ratio_bound(seen, on_other, half, delta, false_alarm))
    event, both = classes.words(members), (seen, on_other)
    return Audit(bound, epsilon, delta, 1 - false_alarm, event, likelier, both, half)


def _choose_event(halves, delta, alarm):
    """(where it is likelier, which classes, the system of classes) of the most promising event."""
    promises = []
    for classes in classes_of(*halves):
        labels = [classes.label(outputs) for outputs in halves]
        first, second = ([counts_of(at[i::2], classes.size) for at in labels] for i in (0, 1))
        # half as many runs, so the level sqrt(alarm): bounds about as tight as the final ones
        promises.append((*_best_event(first, second, delta, math.sqrt(alarm)), classes))
    return max(promises, key=lambda promise: promise[0])[1:]


def _best_event(ordering, choosing, delta, alarm):
    """(bound, where it is likelier, which classes) of the event of largest bound in `choosing`.

    Both are pairs of counts of the classes, on x and on its neighbour.
    """
    by_ratio = np.argsort(-log_ratio(*ordering), kind="stable")
    n = choosing[0].sum()
    natural = np.arange(len(by_ratio))  # its beginnings and ends are thresholds
    best = (-1.0, "x", by_ratio[:0])
    for order in (by_ratio, by_ratio[::-1], natural, natural[::-1]):
        in_x, in_y = (np.cumsum(seen[order]) for seen in choosing)
        for likelier, pair in (("x", (in_x, in_y)), ("x_neighbour", (in_y, in_x))):
            bounds = log_ratio_bound(*pair, n, delta, alarm)
            size = int(np.argmax(bounds))
            if bounds[size] > best[0]:
                best = (bounds[size], likelier, order[: size + 1])
    members = np.zeros(len(by_ratio), dtype=bool)
    members[best[2]] = True
    return best[0], best[1], members


def _batches(draw, x, runs, rng):
    """The outputs of so many runs on x, piece by piece."""
    for start in range(0, runs, _BATCH):
        size = min(_BATCH, runs - start)
        outputs = draw(x, size, rng=rng)
        if not hasattr(outputs, "__len__") or len(outputs) != size:
            raise ValueError(f"mechanism must return {size} outputs")
        yield outputs


def _join(batches):
    pieces = list(batches)
    if all(isinstance(piece, np.ndarray) for piece in pieces):
        return np.concatenate(pieces)
    return [output for piece in pieces for output in piece]
