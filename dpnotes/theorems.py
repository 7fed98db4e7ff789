"""The bounds of the notes, each as one function named by what it is, with its hypotheses.

Natural logarithms throughout. `sensitivity` is that of the query under the adjacency in use, in
the norm that the docstring names. What the bounds are compared with is exact: `accounting`.
"""

import numpy as np

from . import calibration as _calibration
from ._validate import (
    choice,
    count,
    nonnegative,
    positive,
    positive_probability,
    probability,
    real,
    scalar,
)
from .calibration import *  # noqa: F403
from .divergences import _laws, _log_ratio, _spread

__all__ = [
    "laplace_scale",
    "laplace_accuracy",
    "laplace_quantile",
    "randomized_response_epsilon",
    "two_coin_epsilon",
    "randomized_response_error",
    "histogram_sensitivity",
    "ballot_sensitivity",
    "gram_sensitivity",
    "privacy_loss_tail",
    "loss_tail_from_dp",
    "largest_tail_pair",
    "conditioning_events",
    "tradeoff_from_profile",
    "profile_from_tradeoff",
]
__all__ += _calibration.__all__  # the Gaussian formulas have a room of their own

# ---------------------------------------------------------------- pure differential privacy


def laplace_scale(sensitivity=1.0, epsilon=1.0):
    """Least scale of Laplace noise for epsilon-DP: l1 sensitivity/epsilon (T-laplace, F-3.6)."""
    return positive("sensitivity", sensitivity) / positive("epsilon", epsilon)


def laplace_accuracy(beta, entries=1, sensitivity=1.0, epsilon=1.0):
    """Error that `entries` Laplace answers all keep, except with probability <= beta (F-3.8).

    ln(entries/beta) sensitivity/epsilon: a union bound over the entries, no independence needed.
    """
    beta = positive_probability("beta", beta)
    wide = np.log(count("entries", entries)) - np.log(beta)
    return _plain(wide * laplace_scale(sensitivity, epsilon))


def laplace_quantile(beta, entries=1, sensitivity=1.0, epsilon=1.0):
    """Error that the largest of `entries` independent Laplace errors exceeds with probability beta.

    Exactly: -ln(1 - (1-beta)^(1/entries)) sensitivity/epsilon, which `laplace_accuracy` rounds up.
    """
    beta, entries = positive_probability("beta", beta), count("entries", entries)
    with np.errstate(divide="ignore", invalid="ignore"):
        all_small = -np.log1p(-np.asarray(beta))  # minus the log probability of no excess
        each = all_small / entries
        tail = np.where(
            each < 1e-8,
            np.log(all_small) - np.log(entries) - each / 2,
            np.log(-np.expm1(-each)),
        )
    return _plain((0.0 - tail) * laplace_scale(sensitivity, epsilon))


def randomized_response_epsilon(truth):
    """Epsilon of answering truly with probability `truth`, else falsely: |ln(truth/(1-truth))|.

    Infinite at 0 and 1 (F-randomized-response, U-rdp-rr).
    """
    truth = np.asarray(probability("truth", truth))
    with np.errstate(divide="ignore"):
        return _plain(np.abs(np.log(truth) - np.log1p(-truth)))


def two_coin_epsilon(truth=0.5, heads=0.5):
    """Epsilon of answering truly with probability `truth`, else "yes" with probability `heads`.

    The larger of ln(1 + truth/((1-truth) heads)) and the same with 1-heads; fair coins give ln 3
    (F-randomized-response).
    """
    truth, heads = np.asarray(probability("truth", truth)), np.asarray(probability("heads", heads))
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = truth / ((1 - truth) * np.minimum(heads, 1 - heads))
    return _plain(np.where(truth == 0, 0.0, np.log1p(odds)))


def randomized_response_error(epsilon=1.0, respondents=1):
    """Standard deviation of the randomized-response estimate of a proportion, over the coins.

    1/(2 sinh(epsilon/2) sqrt(respondents)), whatever the proportion is (F-randomized-response).
    """
    half = np.asarray(positive("epsilon", epsilon)) / 2
    with np.errstate(under="ignore"):
        value = np.exp(-half) / -np.expm1(-2 * half)
    return _plain(value / np.sqrt(count("respondents", respondents)))


def histogram_sensitivity(order=1, adjacency="add-remove"):
    """l1 (`order` 1) or l2 (2) sensitivity of a histogram, each person in one bin.

    1 under "add-remove"; under "replace" 2 in l1, sqrt 2 in l2 (U-sensitivity-examples).
    """
    return ballot_sensitivity(1, order, adjacency)


def ballot_sensitivity(ballots, order=1, adjacency="add-remove"):
    """l1 or l2 sensitivity of vote counts, each person voting for up to `ballots` candidates.

    At most one vote a candidate. k and sqrt k under "add-remove"; under "replace" 2k and sqrt(2k),
    attained when there are at least 2k candidates (U-sensitivity-examples).
    """
    moved = count("ballots", ballots) * _rows(adjacency)
    return float(moved ** (1 / choice("order", order, (1, 2))))


def gram_sensitivity(adjacency="add-remove"):
    """Frobenius sensitivity of the Gram matrix X^T X whose rows have l2 norm at most 1.

    1 under "add-remove", sqrt 2 under "replace" (from two columns on; U-sensitivity-examples).
    """
    return float(_rows(adjacency) ** 0.5)


# -------------------------------------------------------- approximate differential privacy


def privacy_loss_tail(p, q, epsilon):
    """P(L > epsilon), L = log p(X)/q(X), X ~ p, of finite laws along the last axis; L may be inf.

    If it and its mirror image are at most delta, the pair is (epsilon, delta)-indistinguishable
    (T-1, U-lemma-1, T-6).
    """
    p, q = _laws(p, q)
    epsilon, _ = _spread(real("epsilon", epsilon), p)
    return _plain((p * (_log_ratio(p, q) > epsilon)).sum(-1))


def loss_tail_from_dp(epsilon, delta, threshold):
    """Bound on P(L >= threshold) under (epsilon, delta)-DP, for any threshold > epsilon (T-3).

    delta / (1 - exp(epsilon - threshold)), at most 1. It is attained.
    """
    epsilon, delta = nonnegative("epsilon", epsilon), probability("delta", delta)
    gap = np.asarray(real("threshold", threshold)) - epsilon
    if (gap <= 0).any():
        raise ValueError(f"threshold must be above epsilon = {epsilon}, got {threshold}")
    return _plain(np.minimum(delta / -np.expm1(-gap), 1.0))


def largest_tail_pair(epsilon, delta):
    """The (epsilon, delta)-indistinguishable pair whose losses exceed epsilon most often (T-2).

    p = (u, v) and q = (v, u) with u = (e^epsilon + delta)/(1 + e^epsilon), for 0 < delta <= 1: both
    P(L > epsilon) are u, above 1/2 however small delta is. Scalars only.
    """
    epsilon = scalar("epsilon", nonnegative("epsilon", epsilon))
    delta = scalar("delta", positive_probability("delta", delta))
    odds = np.exp(-epsilon)
    p = np.array([1 + delta * odds, (1 - delta) * odds]) / (1 + odds)
    return p, p[::-1].copy()


def conditioning_events(p, q, epsilon, delta=None):
    """Densities e <= p, f <= q of events E, F given which the laws are epsilon-close (T-4, T-5).

    e <= e^epsilon f and f <= e^epsilon e at every outcome, and both have the same mass: the largest
    possible, 1 - max(hockey_stick(p, q), hockey_stick(q, p)), or 1 - delta if `delta` is given.
    P(E | X = y) = e(y)/p(y). Leading axes hold many pairs (conditional laws).
    """
    p, q = _laws(p, q)
    epsilon, _ = _spread(nonnegative("epsilon", epsilon), p)
    e = p * np.exp(np.minimum(epsilon - _log_ratio(p, q), 0.0))  # the smaller of p and e^epsilon q
    f = q * np.exp(np.minimum(epsilon - _log_ratio(q, p), 0.0))
    least = np.minimum(p, q)
    mass = np.minimum(e.sum(-1), f.sum(-1))[..., None]
    e, f = _shrunk(e, least, mass), _shrunk(f, least, mass)
    if delta is None:
        return e, f
    keep = 1 - _spread(probability("delta", delta), p)[0]
    if (keep > mass * (1 + 1e-12)).any():
        raise ValueError(f"delta must be at least {1 - mass[..., 0]}, got {delta}")
    scale = np.divide(np.minimum(keep, mass), mass, out=np.zeros_like(mass), where=mass > 0)
    return e * scale, f * scale


def tradeoff_from_profile(epsilons, deltas, alpha):
    """Least type-II error at level `alpha` that points delta(epsilon) of a privacy profile allow.

    max over the points of 1 - delta - e^epsilon alpha, and 0: each point is a line below the
    trade-off function, which is the envelope of all of them (U-privacy-profile).
    """
    epsilons = np.atleast_1d(real("epsilons", epsilons))
    deltas = np.atleast_1d(nonnegative("deltas", deltas))
    alpha = np.asarray(probability("alpha", alpha))[..., None]
    with np.errstate(over="ignore", divide="ignore"):
        steep = np.exp(epsilons + np.log(alpha))
    return _plain(np.maximum((1 - deltas - steep).max(-1), 0.0))


def profile_from_tradeoff(alphas, errors, epsilon):
    """delta(epsilon) of the trade-off function through the points (alphas, errors), epsilon real.

    max over the points of 1 - error - e^epsilon alpha: exact if the points are the vertices of a
    piecewise linear trade-off function, else a bound from below (U-privacy-profile).
    """
    alphas = np.atleast_1d(probability("alphas", alphas))
    errors = np.atleast_1d(nonnegative("errors", errors))
    epsilon = np.asarray(real("epsilon", epsilon))[..., None]
    with np.errstate(over="ignore", divide="ignore"):
        steep = np.exp(epsilon + np.log(alphas))
    return _plain(np.maximum((1 - errors - steep).max(-1), 0.0))


def _shrunk(density, least, mass):
    """The mixture of `density` and `least` <= `density` that has total `mass`."""
    above = density.sum(-1, keepdims=True) - least.sum(-1, keepdims=True)
    spare = mass - least.sum(-1, keepdims=True)
    share = np.clip(np.divide(spare, above, out=np.ones_like(above), where=above > 0), 0.0, 1.0)
    return least + share * (density - least)


def _rows(adjacency):
    """How many rows a neighbour adds or takes away: replacing one does both."""
    return 1 if choice("adjacency", adjacency, ("add-remove", "replace")) == "add-remove" else 2


def _plain(value):
    """Scalars as Python floats, arrays as they are."""
    return float(value) if np.ndim(value) == 0 else value
