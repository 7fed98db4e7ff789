"""What (epsilon, delta) means: tails of the privacy loss, conditioning events, unknown keys.

Laws are finite and lie along the last axis; natural logarithms throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ..checks import (
    Array, ArrayLike, Count, Counts, Laws, Nonnegative, Positive, Probability, Real, checked,
    refusal,
)  # fmt: skip
from ..divergences import _same_outcomes, _with_outcome_axis, loss_of


@overload
def privacy_loss_tail(p: Sequence[float], q: Sequence[float], epsilon: float) -> float: ...
@overload
def privacy_loss_tail(p: ArrayLike, q: ArrayLike, epsilon: ArrayLike) -> Any: ...
@checked
def privacy_loss_tail(p: Laws, q: Laws, epsilon: Real) -> float | Array:
    """P(L > epsilon), L = ln p(X)/q(X), X ~ p, of finite laws; L may be infinite.

    If it and its mirror image are at most delta, the pair is (epsilon, delta)-indistinguishable
    (T-1, U-lemma-1, T-6).

    >>> approximate_dp.privacy_loss_tail([0.75, 0.25], [0.25, 0.75], epsilon=1.0)
    0.75
    """
    p, q = _same_outcomes(p, q)
    epsilon, _ = _with_outcome_axis(epsilon, p)
    return (p * (loss_of(p, q) > epsilon)).sum(-1)


@checked
def conditioning_events(
    p: Laws, q: Laws, epsilon: Nonnegative, delta: Probability = None
) -> tuple[Array, Array]:
    """Densities e <= p, f <= q of events E, F given which the laws are epsilon-close (T-4, T-5).

    e <= e^epsilon f and f <= e^epsilon e at every outcome. Both have the same mass: the largest
    possible, or 1 - delta if `delta` is given. P(E | X = y) = e(y)/p(y).

    >>> approximate_dp.conditioning_events([0.6, 0.4], [0.4, 0.6], 0.0)[0].round(4)
    array([0.4, 0.4])
    """
    p, q = _same_outcomes(p, q)
    epsilon, _ = _with_outcome_axis(epsilon, p)
    e = p * np.exp(np.minimum(epsilon - loss_of(p, q), 0.0))  # the smaller of p and e^epsilon q
    f = q * np.exp(np.minimum(epsilon - loss_of(q, p), 0.0))
    least = np.minimum(p, q)
    mass = np.minimum(e.sum(-1), f.sum(-1))[..., None]
    e, f = _shrink(e, least, mass), _shrink(f, least, mass)
    if delta is None:
        return e, f
    keep = 1 - _with_outcome_axis(delta, p)[0]
    if (keep > mass * (1 + 1e-12)).any():
        raise refusal("delta", delta, f"at least {(1 - mass).max():.4g}")
    scale = np.divide(np.minimum(keep, mass), mass, out=np.zeros_like(mass), where=mass > 0)
    return e * scale, f * scale


def _shrink(density, least, mass):
    """The mixture of `density` and `least` <= `density` that has total `mass`."""
    above = density.sum(-1, keepdims=True) - least.sum(-1, keepdims=True)
    spare = mass - least.sum(-1, keepdims=True)
    share = np.clip(np.divide(spare, above, out=np.ones_like(above), where=above > 0), 0.0, 1.0)
    return least + share * (density - least)


@overload
def threshold_delta(threshold: float, epsilon: float = ..., keys: int = ...) -> float: ...
@overload
def threshold_delta(threshold: ArrayLike, epsilon: ArrayLike = ..., keys: int = ...) -> Array: ...
@checked
def threshold_delta(threshold: Counts, epsilon: Positive = 1.0, keys: Count = 1) -> float | Array:
    """The delta of publishing only the keys whose noisy count is at least `threshold`.

    A person has at most `keys` keys and is counted once for each; add/remove. The noise is discrete
    Laplace, P(z) proportional to exp(-epsilon |z| / keys). The delta is exact for this epsilon:
    1 - (1 - P(1 + Z >= threshold))^keys (X-unknown-keys).

    >>> round(approximate_dp.threshold_delta(20, epsilon=1.0), 12)
    4.096e-09
    """
    step = epsilon / keys
    shown = np.exp(-step * (threshold - 1)) / (1 + np.exp(-step))
    with np.errstate(divide="ignore"):  # shown for certain
        return -np.expm1(keys * np.log1p(-shown))
