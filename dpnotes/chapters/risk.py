"""What a run lets others find out: who was in the data, how sure they are, what they reconstruct.

Each number is an upper bound, whatever the attacker knows and however he computes. It is about one
person, who is added or removed as the loss of the run says.
"""

from __future__ import annotations

import numpy as np

from ..checks import (
    Array, OpenProbability, OpenProbabilityNumber, PositiveProbability, Probability, checked,
)  # fmt: skip
from ..accountant import PrivacyLoss
from ..numerics import softmax

UP = 1 + 2.0**-50  # what a few roundings may take away


@checked
def success(run: PrivacyLoss, prior: OpenProbability) -> float | Array:
    """The largest probability with which an attacker says rightly whether a person was in the data,
    if she was in it with probability ``prior``, 0 < prior < 1 (X-attack-success).

    With m the larger of prior and 1 - prior it is m + (1 - m) delta(ln(m/(1 - m))). Without the
    release it is m.

    >>> round(risk.success(dp.gaussian(sigma=2.0), prior=0.5), 4)
    0.5987
    """
    larger = np.maximum(prior, 1 - prior)
    smaller = np.minimum(prior, 1 - prior)
    delta = run.delta(np.maximum(np.log(larger) - np.log(smaller), 0.0) * (2 - UP))
    return np.minimum((larger + smaller * delta) * UP, 1.0)


@checked
def precision(
    run: PrivacyLoss, fpr: PositiveProbability, base_rate: OpenProbabilityNumber
) -> float | Array:
    """The largest share of people who were in the data among those of whom an attacker says so, if
    his rate of false alarms is ``fpr``, 0 < fpr <= 1 (X-attack-rates).

    ``base_rate`` is the share of members among those whom he looks at, between 0 and 1.

    >>> round(risk.precision(dp.gaussian(sigma=2.0), fpr=0.01, base_rate=0.1), 4)
    0.2736
    """
    others = (1 - base_rate) / base_rate * (fpr / run.tpr(fpr))
    return np.minimum(UP / (1 + others), 1.0)


@checked
def reconstruction(run: PrivacyLoss, baseline: Probability) -> float | Array:
    """The largest probability with which an attacker reconstructs a person's row well enough, if
    without the release he does so with probability at most ``baseline`` (X-reconstruction).

    That is ``run.tpr(baseline)``. The row is drawn independently of all others, and what is well
    enough is said beforehand: the right one of ten values (baseline 0.1, if they are equally
    likely), or a picture within some distance.

    >>> round(risk.reconstruction(dp.gaussian(sigma=2.0), baseline=0.1), 4)
    0.2172
    """
    return run.tpr(baseline)


def train(
    x: Array, y: Array, *, runs: int, sigma: float, steps: int, rng: np.random.Generator
) -> Array:
    """The page's experiment: softmax regression on images x (n, d) of norm at most 1 with labels y
    in 0, ..., 9, trained ``runs`` times with noise. Returns weights of shape (runs, d, 10).

    Each step adds up the gradients of all images, cut to norm 1 (an image's gradient is the outer
    product of x and p - e_y, where p holds the model's ten probabilities), adds N(0, sigma^2), and
    moves the weights by a hundredth of the sum. For study: floats leak (X-low-bits).

    >>> x, y, rng = np.eye(3), np.arange(3), np.random.default_rng(1)
    >>> risk.train(x, y, runs=2, sigma=1.0, steps=4, rng=rng).shape
    (2, 3, 10)
    """
    weights, truth = np.zeros((runs, x.shape[1], 10)), np.eye(10)[y]
    length = np.linalg.norm(x, axis=1)[:, None]
    for _ in range(steps):
        wrong = softmax(x @ weights, axis=-1) - truth
        size = np.linalg.norm(wrong, axis=-1, keepdims=True) * length
        total = x.T @ (wrong / np.maximum(size, 1.0))
        weights -= (total + sigma * rng.normal(size=total.shape)) / 100
    return weights
