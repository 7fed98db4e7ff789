"""The bounds of the notes, each as one function named by what it is, with its hypotheses.

Natural logarithms throughout. `sensitivity` is that of the query under the adjacency in use, in
the norm that the docstring names. What the bounds are compared with is exact: `accounting`.
"""

import numpy as np

from ._validate import count, positive, positive_probability, probability

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
]

# ---------------------------------------------------------------- pure differential privacy


def laplace_scale(sensitivity=1.0, epsilon=1.0):
    """Least scale b of Laplace noise that is epsilon-DP: l1 sensitivity / epsilon (T-laplace, F-3.6)."""
    return positive("sensitivity", sensitivity) / positive("epsilon", epsilon)


def laplace_accuracy(beta, entries=1, sensitivity=1.0, epsilon=1.0):
    """Error that none of `entries` Laplace answers exceeds, except with probability <= beta (F-3.8).

    ln(entries/beta) sensitivity/epsilon: a union bound over the entries, no independence needed.
    """
    beta = positive_probability("beta", beta)
    return np.log(count("entries", entries) / beta) * laplace_scale(sensitivity, epsilon)


def laplace_quantile(beta, entries=1, sensitivity=1.0, epsilon=1.0):
    """Error that the largest of `entries` independent Laplace errors exceeds with probability beta.

    Exactly: -ln(1 - (1-beta)^(1/entries)) sensitivity/epsilon, which `laplace_accuracy` rounds up.
    """
    beta = positive_probability("beta", beta)
    with np.errstate(divide="ignore"):
        each = np.log1p(-np.asarray(beta)) / count("entries", entries)
    tail = np.where(each > -np.inf, -np.expm1(each), 1.0)
    return _plain((0.0 - np.log(tail)) * laplace_scale(sensitivity, epsilon))


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
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}")
    return float(moved ** (1 / order))


def gram_sensitivity(adjacency="add-remove"):
    """Frobenius sensitivity of the Gram matrix X^T X whose rows have l2 norm at most 1.

    1 under "add-remove", sqrt 2 under "replace" (from two columns on; U-sensitivity-examples).
    """
    return float(_rows(adjacency) ** 0.5)


def _rows(adjacency):
    """How many rows a neighbour adds or takes away: replacing one does both."""
    if adjacency not in ("add-remove", "replace"):
        raise ValueError(f'adjacency must be "add-remove" or "replace", got {adjacency!r}')
    return 1 if adjacency == "add-remove" else 2


def _plain(value):
    """Scalars as Python floats, arrays as they are."""
    return float(value) if np.ndim(value) == 0 else value
