"""The sparse vector technique: which of many answers exceed a threshold, paying for those only.

An answer is reported "above" if answer + query noise >= threshold + threshold noise. All noise is
Laplace noise; every answer changes by at most `sensitivity` between neighbours, in either
direction. `lyu_variants` lists the six published algorithms that Lyu, Su and Li (2017) compare,
four of which are broken and say so in their names. Samplers draw floating-point noise and are for
study.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ...numerics import gauss, logsumexp
from ...checks import (
    Array, ArrayLike, BelowOneNumber, Count, Generator, Many, PositiveNumber, Real, also,
    as_array, checked, count_up_to, instance, nonnegative, positive, refusal, scalar, vector,
)  # fmt: skip
from ..composition import round_epsilon


@dataclass(frozen=True)
class SparseVector:
    """A sparse vector mechanism: the scales of its noise, and what it shows and when it stops.

    >>> noise = query_release.SparseVector(threshold_scale=2.0, query_scale=4.0)
    >>> query_release.sparse_epsilon(noise)
    1.0
    """

    threshold_scale: float  # noise on the threshold
    query_scale: float  # fresh noise on each answer; 0: none
    refresh_scale: float | None = None  # threshold noise drawn anew after each "above"; None: kept
    count: float = 1  # stops after so many "above"; inf: never
    shows_answer: bool = False  # shows the noisy answer that was compared (never private)


def _noise(name, noise):
    """Refuses what is no mechanism: scales below 0 would look like privacy for free."""
    instance(name, noise, SparseVector)
    checks = {"threshold_scale": positive, "query_scale": nonnegative}
    if noise.refresh_scale is not None:
        checks["refresh_scale"] = positive
    for field, check in checks.items():
        check(f"{name}.{field}", scalar(f"{name}.{field}", getattr(noise, field)))
    if noise.count != np.inf:
        count_up_to(f"{name}.count", noise.count, 2**62)
    return noise


def _reports(name, value):
    """One or several rows, as floats; NaN and -inf have their meanings."""
    rows = as_array(value)
    numbers = rows is not None and rows.size and rows.dtype.kind in "biuf"
    if not numbers or rows.ndim not in (1, 2):
        raise refusal(name, value, "one or several rows of reports")
    return rows.astype(float)


Noise = Annotated[SparseVector, _noise]
Answers = Annotated[ArrayLike, also(vector, np.size, "at least one number")]
Reports = Annotated[ArrayLike, _reports]


def _for_each(threshold, answers):
    """A threshold for each answer."""
    if threshold.shape not in ((), answers.shape):
        raise ValueError("threshold must be one number, or one for each answer")
    return np.broadcast_to(threshold, answers.shape)


@checked
def sparse_rounds(
    epsilon: PositiveNumber,
    count: Count = 1,
    delta: BelowOneNumber = 0.0,
    sensitivity: PositiveNumber = 1.0,
) -> SparseVector:
    """`count` rounds of AboveThreshold: scales 2 s/e and 4 s/e, e = epsilon of one round.

    (epsilon, delta)-DP together, also if the answers are chosen one by one, after the reports
    before (F-svt, 1 and 3): by basic composition or, if delta > 0 and it is better, advanced.

    >>> query_release.sparse_rounds(1.0, count=2).query_scale
    8.0
    """
    each = round_epsilon(epsilon, count, delta)
    scale = 2 * sensitivity / each
    return SparseVector(scale, 2 * scale, scale, count)


@checked
def sparse_epsilon(noise: Noise, sensitivity: PositiveNumber = 1.0) -> float:
    """Least epsilon of a `SparseVector` over streams of any length; inf if there is none (F-svt).

    Threshold noise kept: s/b1 + 2 c s/b2. Drawn anew: (s/b1 + 2 s/b2) for each of c rounds.

    >>> query_release.sparse_epsilon(query_release.sparse_rounds(0.5))
    0.5
    """
    s = sensitivity
    if noise.query_scale == 0 or noise.shows_answer or np.isinf(noise.count):
        return np.inf
    per_above = 2 * noise.count * s / noise.query_scale
    if noise.refresh_scale is None:
        return s / noise.threshold_scale + per_above
    return s / noise.threshold_scale + (noise.count - 1) * s / noise.refresh_scale + per_above


@checked
def lyu_variants(
    epsilon: PositiveNumber, count: Count, sensitivity: PositiveNumber = 1.0
) -> dict[str, SparseVector]:
    """The six algorithms of Lyu, Su and Li (2017), Figure 1, by name, as `SparseVector`s.

    Each was published as epsilon-DP. `sparse_epsilon` gives what they are.

    >>> query_release.lyu_variants(1.0, count=2)["1: Lyu, Su & Li"].query_scale
    8.0
    """
    s = sensitivity
    half = 2 * s / epsilon
    return {
        "1: Lyu, Su & Li": SparseVector(half, 2 * count * half, None, count),
        "2: Dwork & Roth": SparseVector(count * half, 2 * count * half, count * half, count),
        "3: Roth (broken)": SparseVector(half, count * half, None, count, shows_answer=True),
        "4: Lee & Clifton (broken)": SparseVector(2 * half, 2 * half / 3, None, count),
        "5: Stoddard et al. (broken)": SparseVector(half, 0.0, None, np.inf),
        "6: Chen et al. (broken)": SparseVector(half, half, None, np.inf),
    }


@checked
def sparse_runs(
    noise: Noise, answers: Answers, threshold: Real = 0.0, *, runs: Many = 1, rng: Generator
) -> Array:
    """Reports of many independent runs of a `SparseVector` on the same answers: (runs, answers).

    1 is "above", 0 "below", NaN "not asked any more"; a mechanism that shows its answers has -inf
    for "below" and the noisy answer for "above". `threshold`: a number, or one for each answer.
    For study: floats leak (X-low-bits).

    >>> noise = query_release.sparse_rounds(9.0)
    >>> query_release.sparse_runs(noise, [-9, 9, 9], rng=np.random.default_rng(1))
    array([[ 0.,  1., nan]])
    """
    threshold = _for_each(threshold, answers)
    noisy = answers + rng.laplace(0.0, 1.0, (runs, len(answers))) * noise.query_scale
    noisy = np.ascontiguousarray(noisy.T)  # a row for each question: quicker to go through
    reports = np.empty(noisy.shape)
    level, above = rng.laplace(0.0, noise.threshold_scale, runs), np.zeros(runs, dtype=int)
    lifted = noisy - threshold[:, None]
    for question, (value, margin) in enumerate(zip(noisy, lifted, strict=True)):
        over, stopped = margin >= level, above >= noise.count
        over &= ~stopped
        below, shown = (-np.inf, value) if noise.shows_answer else (0.0, 1.0)
        reports[question] = np.where(over, shown, below)
        reports[question, stopped] = np.nan
        above += over
        if noise.refresh_scale is not None:
            level[over] = rng.laplace(0.0, noise.refresh_scale, over.sum())
    return reports.T


@checked
def sparse_log_law(
    noise: Noise, answers: Answers, reports: Reports, threshold: Real = 0.0
) -> float | Array:
    """ln P(reports), by quadrature over the threshold noise; for `shows_answer` a log density.

    `reports` as `sparse_runs` writes them (True/False will do), one row or several: (n, answers).
    Given the threshold noise z the reports are independent, so P is an integral of a product.
    Gauss's rule with 20 nodes on each of many panels is right to about 1e-12, relatively.

    >>> noise = query_release.SparseVector(1.0, 1.0)
    >>> round(query_release.sparse_log_law(noise, answers=[0.0], reports=[1]), 4)
    -0.6931
    """
    if reports.shape[-1] != len(answers):
        raise ValueError(f"reports must have {len(answers)} entries a row")
    threshold = _for_each(threshold, answers)
    rows = np.atleast_2d(reports - (threshold if noise.shows_answer else 0.0))
    answers = answers - threshold
    law = np.array([_log_probability(noise, answers, row) for row in rows])
    return float(law[0]) if reports.ndim == 1 else law


def _log_probability(noise, answers, row):
    """Sum over the rounds between two refreshes of the log of one integral each."""
    asked = ~np.isnan(row)
    above = asked & (row > -np.inf if noise.shows_answer else row > 0)
    before = np.cumsum(above) - above  # how many "above" came earlier
    if (asked != (before < noise.count)).any():
        return -np.inf
    rounds = before if noise.refresh_scale is not None else 0 * before
    total, scale = 0.0, noise.threshold_scale
    for number in range(int(rounds[asked].max(initial=-1)) + 1):
        at = asked & (rounds == number)
        total += _log_round_probability(noise, scale, answers[at], row[at], above[at])
        scale = noise.refresh_scale
    return total


def _log_round_probability(noise, scale, answers, row, above):
    """log of the integral over z of Laplace(z) prod P(this report | z), for one threshold noise."""
    b, shows = noise.query_scale, noise.shows_answer
    kinks = np.concatenate([[0.0], answers, row[above] if shows else []])
    z, weights = _threshold_nodes(kinks, scale, b, len(answers))
    with np.errstate(divide="ignore"):  # two kinks in one place
        value = np.log(weights) - np.abs(z) / scale - np.log(2 * scale)
    patterns, times = np.unique(
        np.stack([answers, above, np.where(above & shows, row, 0.0)]), axis=1, return_counts=True
    )
    with np.errstate(divide="ignore"):
        for (answer, over, shown), repeats in zip(patterns.T, times, strict=True):
            if over and shows:  # the noisy answer is known: compare it
                factor = np.where(z <= shown, 0.0, -np.inf)
                factor = factor - np.abs(shown - answer) / b - np.log(2 * b)
            elif b:
                u = (z - answer) / b if over else (answer - z) / b
                tail = np.exp(-np.abs(u)) / 2  # P(noise >= abs(u)) of the standard Laplace law
                factor = np.where(u > 0, -np.abs(u) - np.log(2.0), np.log1p(-tail))
            else:
                factor = np.log((z <= answer) if over else (z > answer))
            value = value + repeats * factor
        return float(logsumexp(value))


def _threshold_nodes(kinks, scale, b, length):
    """Nodes and weights on panels that end at the kinks and are no longer than either scale, nor
    than 8 times the width b/sqrt(length) of the narrowest possible peak.
    """
    unit = min(scale, b) if b else scale
    reach = 45 * max(scale, b) + b * np.log1p(length)
    low, high = kinks.min() - reach, kinks.max() + reach
    if high - low > 1e5 * unit:
        raise ValueError(f"answers and threshold must lie within 10^5 noise scales of {unit:g}")
    unit *= min(1.0, 8 / np.sqrt(length))
    ends = np.unique(np.concatenate([np.arange(low, high, unit), [high], kinks]))
    return gauss(ends, order=20)
