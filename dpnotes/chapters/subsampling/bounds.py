"""Privacy amplification by subsampling: a mechanism that sees a random part of the data.

Two theorems share one formula and differ in the adjacency. Uniform subsets of n out of m rows
(rate r = n/m, both public) are for substitution of a row (T-19); Poisson sampling, where every row
takes part independently with rate r, is for adding or removing one (X-poisson-amplification).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Annotated

import numpy as np

from ...accountant.sampled_gaussian import mixed_loss
from ...checks import (
    Array, Function, Nonnegative, NonnegativeNumber, OpenProbability,
    Positive, PositiveNumber, PositiveProbability, PositiveProbabilityNumber, Probability,
    ProbabilityNumber, checked,
)  # fmt: skip
from ..composition import dominating_pair

_mixed = np.vectorize(lambda loss, rate: mixed_loss(loss, rate) if rate else 0.0, otypes=[float])


def _rows(name, data):
    """Rows of any form, as a tuple."""
    if isinstance(data, (list, tuple, range)) or (isinstance(data, np.ndarray) and data.ndim):
        return tuple(data)
    raise ValueError(f"{name} must be a list of rows")


Rows = Annotated[Sequence, _rows]


@checked
def amplification(epsilon: Nonnegative, rate: Probability, delta: Probability = 0.0):
    """(ln(1 + rate (e^epsilon - 1)), rate delta): what subsampling makes of (epsilon, delta)-DP.

    T-19: uniform subsets, substitution. X-poisson-amplification: Poisson sampling, add/remove.
    """
    return _mixed(epsilon, rate), rate * delta


@checked
def minibatch_epsilon(
    epsilon: Nonnegative, rate: PositiveProbability, passes: Positive, delta_prime: OpenProbability
) -> float | Array:
    """epsilon of passes/rate minibatches of an epsilon-DP step: T-19, then advanced composition.

    (e^eps - 1) sqrt(2 k r ln(1/delta')) + k r (e^eps - 1)^2/2 with k passes (T-19-minibatch). With
    (epsilon, delta)-DP steps it holds at k delta + delta'.
    """
    volume = rate * passes
    log_inverse = -np.log(delta_prime)
    with np.errstate(over="ignore"):
        gain = np.expm1(epsilon)
        return gain * np.sqrt(2 * volume * log_inverse) + volume * gain**2 / 2


@checked
def poisson_subsample_law(mechanism: Function, data: Rows, rate: ProbabilityNumber) -> Array:
    """The law of mechanism(random part of the rows), each row in it independently with `rate`."""
    total = 0.0
    for taken in product((0, 1), repeat=len(data)):
        weight = rate ** sum(taken) * (1 - rate) ** (len(data) - sum(taken))
        rows = tuple(row for row, t in zip(data, taken, strict=True) if t)
        total = total + weight * np.asarray(mechanism(rows))
    return total


@checked
def substitution_pair(epsilon: PositiveNumber, rate: ProbabilityNumber) -> tuple[Array, Array]:
    """A second bad pair under substitution, on three outcomes. Over many rounds it needs more
    epsilon than a leaky coin that is sampled at large delta, less at tiny delta (T-19-minibatch).

    Batches with the special row a, with b, and with neither have the laws A, B, R; any two of
    them are epsilon-indistinguishable. Returns r A + (1-r) R and r B + (1-r) R.
    """
    up, down = np.exp(min(epsilon, 700.0)), np.exp(-epsilon)
    w = -np.expm1(-epsilon) / (up + 1 - 2 * down)
    middle = np.array([w, w, 1 - 2 * w])
    a, b = middle * [up, 1, down], middle * [1, up, down]
    return rate * a + (1 - rate) * middle, rate * b + (1 - rate) * middle


@checked
def subsampled_dominating_pair(
    epsilon: NonnegativeNumber, rate: PositiveProbabilityNumber, delta: ProbabilityNumber = 0.0
) -> tuple[Array, Array]:
    """A pair on five outcomes that no subsampled (epsilon, delta)-DP mechanism exceeds.

    Its hockey-stick curve is rate * delta(ln(1 + (e^t - 1)/rate)) in both directions, delta() that
    of the leaky coin; so it bounds every composition of such rounds (X-subsampled-pair). Losses:
    inf, e', 0, -e', -inf with e' the amplified epsilon.
    """
    p, _ = dominating_pair(epsilon, delta)
    bound, leak = amplification(epsilon, rate, delta)
    low = p[2]
    high = low + rate * (p[1] - p[2])  # e^bound * low
    none = (1 - rate) * (p[0] + p[1] - p[2])
    law = np.array([leak, high, none, low, 0.0])
    return law, law[::-1].copy()
