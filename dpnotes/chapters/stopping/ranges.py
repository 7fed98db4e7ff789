"""Mechanisms whose losses lie in one interval of length epsilon, as the exponential mechanism's do:
their composition, and what a filter charges for one."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ...accountant import PrivacyLoss
from ...accountant.finite import Finite
from ...checks import Few, NonnegativeNumber, OrderNumber, checked, number_within, refusal
from ...numerics import log_binomial, log_softmax, matrix_product, xlog1py, xlogy

Range = Annotated[float, number_within(1e-6, 500.0)]


@checked
def bounded_range(epsilon: Range, points: Few = 40) -> PrivacyLoss:
    """A loss that dominates every mechanism whose losses stay within a range of length `epsilon`.

    The exponential mechanism is one; ``compose`` bounds any adaptive sequence (X-bounded-range). An
    even grid over [-epsilon, epsilon], masses proportional to exp(loss/2), halved at both ends.

    >>> round(dp.bounded_range(0.1).compose(50).epsilon(1e-6), 4)
    1.7696
    """
    loss = np.linspace(-epsilon, epsilon, points + 1)
    log_p = log_softmax(loss / 2 - np.log(2) * (np.abs(loss) == epsilon))
    return PrivacyLoss([(Finite(tuple(loss.tolist()), tuple(log_p.tolist())), 1)])


@checked
def bounded_range_delta(epsilon: Range, k: Few, target_epsilon: NonnegativeNumber) -> float:
    """Least delta at `target_epsilon` of k rounds of range `epsilon`, all fixed beforehand.

    The worst of k coins with losses t, t - epsilon (X-bounded-range; Dong, Durfee and Rogers
    2020). Not for adaptive rounds. Scalars, k <= 10,000.

    >>> round(stopping.bounded_range_delta(0.1, k=50, target_epsilon=1.0), 6)
    0.0004
    """
    low = np.arange(k + 1.0)  # how many rounds have the loss t - epsilon
    ways = log_binomial(k, low)
    worst = 0.0
    for t in np.unique(np.clip((target_epsilon + low[1:] * epsilon) / (k + 1), 0.0, epsilon)):
        high = np.expm1(t - epsilon) / np.expm1(-epsilon)  # chance of the loss t
        log_mass = ways + xlogy(k - low, high) + xlog1py(low, -high)
        excess = -np.expm1(np.minimum(target_epsilon - k * t + low * epsilon, 0.0))
        worst = max(worst, float(matrix_product(np.exp(log_mass), excess)))
    return worst


@checked
def bounded_range_renyi(epsilon: NonnegativeNumber, alpha: OrderNumber) -> float:
    """The largest Renyi divergence of order alpha > 1 of all mechanisms of range `epsilon`, the
    exponential mechanism among them: what a filter charges for one (X-range-charge).

    At most alpha epsilon^2/8. Rounded up by 1e-14.

    >>> round(stopping.bounded_range_renyi(1.0, alpha=2.0), 4)
    0.2402
    """
    if alpha == 1:
        raise refusal("alpha", alpha, "above 1")
    if epsilon == 0 or alpha == np.inf:
        return epsilon
    top, rest, base = (-np.expm1(-x * epsilon) for x in (alpha, alpha - 1, 1.0))
    step = epsilon + np.log(alpha - 1) - np.log(alpha) + np.log(top) - np.log(rest)
    divergence = step + (np.log(top) - np.log(alpha) - np.log(base)) / (alpha - 1)
    rounding = 1e-14 * (1 + epsilon) * (1 + 1 / (alpha - 1))
    return float(min(divergence + rounding, alpha * epsilon**2 / 8))
