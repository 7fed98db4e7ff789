"""The sparse vector technique: which of many answers exceed a threshold, paying for those only.

An answer is reported "above" if answer + query noise >= threshold + threshold noise. All noise is
Laplace noise; every answer changes by at most `sensitivity` between neighbours, in either
direction. `lyu_variants` lists the six published algorithms that Lyu, Su and Li (2017) compare,
four of which are broken and say so in their names. Samplers draw floating-point noise and are for
study.
"""

from typing import NamedTuple

import numpy as np

from . import _validate as check
from ._scipy import logsumexp
from ._types import Answer, Array, ArrayLike, Generator
from .accountant.law import gauss
from .composition import round_epsilon

__all__ = [
    "SparseVector",
    "above_threshold",
    "sparse",
    "numeric_sparse",
    "sparse_rounds",
    "sparse_accuracy",
    "sparse_epsilon",
    "sparse_runs",
    "sparse_log_law",
    "lyu_variants",
]


class SparseVector(NamedTuple):
    """A sparse vector mechanism: the scales of its noise, and what it shows and when it stops."""

    threshold_scale: float  # noise on the threshold
    query_scale: float  # fresh noise on each answer; 0: none
    refresh_scale: float | None = None  # threshold noise drawn anew after each "above"; None: kept
    count: float = 1  # stops after so many "above"; inf: never
    shows_answer: bool = False  # shows the noisy answer that was compared (never private)


def above_threshold(
    answers: ArrayLike,
    threshold: ArrayLike = 0.0,
    *,
    epsilon: float,
    sensitivity: float = 1.0,
    rng: Generator,
) -> int:
    """Index of the first answer reported above the threshold, or their number if there is none.

    epsilon-DP with scales 2 s/epsilon for the threshold and 4 s/epsilon for each answer, also if
    the answers are chosen one by one in view of the reports before (F-svt, 1).
    """
    report = sparse(answers, threshold, epsilon=epsilon, sensitivity=sensitivity, rng=rng)
    return int(np.argmax(report)) if report.any() else len(report)


def sparse(
    answers: ArrayLike,
    threshold: ArrayLike = 0.0,
    *,
    count: int = 1,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    rng: Generator,
) -> Array:
    """Which answers are above: a boolean array that ends with the `count`-th True (F-svt, 3).

    `count` rounds of AboveThreshold; (epsilon, delta)-DP together, by basic composition or, if
    delta > 0 and it is better, by advanced composition.
    """
    noise = sparse_rounds(epsilon, count, delta, sensitivity)
    reports = sparse_runs(noise, answers, threshold, runs=1, rng=rng)[0]
    return reports[~np.isnan(reports)].astype(bool)


def numeric_sparse(
    answers: ArrayLike,
    threshold: ArrayLike = 0.0,
    *,
    count: int = 1,
    epsilon: float,
    delta: float = 0.0,
    sensitivity: float = 1.0,
    rng: Generator,
) -> Array:
    """As `sparse`, but with a noisy value for each answer above, and NaN for each below (F-svt, 4).

    Half of each round's budget buys the comparison, the other half fresh noise for the value.
    """
    answers = _answers(answers)
    each = round_epsilon(epsilon, count, delta) / 2
    noise = sparse_rounds(count * each, count, 0.0, sensitivity)
    reports = sparse_runs(noise, answers, threshold, runs=1, rng=rng)[0]
    reports = reports[~np.isnan(reports)]
    values = answers[: len(reports)] + rng.laplace(0.0, sensitivity / each, len(reports))
    return np.where(reports == 1, values, np.nan)


def sparse_rounds(
    epsilon: float, count: int = 1, delta: float = 0.0, sensitivity: float = 1.0
) -> SparseVector:
    """The `SparseVector` of `sparse`: scales 2 s/e and 4 s/e, e = epsilon of one round."""
    each = round_epsilon(epsilon, count, delta)
    scale = 2 * check.positive("sensitivity", check.scalar("sensitivity", sensitivity)) / each
    return SparseVector(scale, 2 * scale, scale, check.count("count", count))


def sparse_accuracy(noise: SparseVector, queries: int, beta: float = 0.05) -> float:
    """alpha such that, but for chance beta, no report about `queries` answers is off by more.

    All "above" are >= threshold - alpha and all "below" <= threshold + alpha (F-svt, 2). With c
    noises of the threshold: b1 log(2c/beta) + b2 log(2 queries/beta).
    """
    noise, queries = _noise(noise), check.count("queries", queries)
    beta = check.open_probability("beta", check.scalar("beta", beta))
    drawn = 1 if noise.refresh_scale is None else min(noise.count, queries)
    widest = max(noise.threshold_scale, noise.refresh_scale or 0.0)
    return float(widest * np.log(2 * drawn / beta) + noise.query_scale * np.log(2 * queries / beta))


def sparse_epsilon(noise: SparseVector, sensitivity: float = 1.0) -> float:
    """Least epsilon of a `SparseVector` over streams of any length; inf if there is none.

    Threshold noise kept: s/b1 + 2 c s/b2. Drawn anew: (s/b1 + 2 s/b2) for the first round and the
    same for each of c - 1 more, by adding up (F-svt).
    """
    noise = _noise(noise)
    s = check.positive("sensitivity", check.scalar("sensitivity", sensitivity))
    if noise.query_scale == 0 or noise.shows_answer or np.isinf(noise.count):
        return np.inf
    per_above = 2 * noise.count * s / noise.query_scale
    if noise.refresh_scale is None:
        return s / noise.threshold_scale + per_above
    return s / noise.threshold_scale + (noise.count - 1) * s / noise.refresh_scale + per_above


def lyu_variants(epsilon: float, count: int, sensitivity: float = 1.0) -> dict[str, SparseVector]:
    """The six algorithms of Lyu, Su and Li (2017), Figure 1, by name, as `SparseVector`s.

    Each was published as epsilon-DP. `sparse_epsilon` gives what they are: the first two keep
    their promise, the fourth is (1 + 6 count)/4 epsilon-DP, the others are not private at all.
    """
    epsilon = check.positive("epsilon", check.scalar("epsilon", epsilon))
    s = check.positive("sensitivity", check.scalar("sensitivity", sensitivity))
    count = check.count("count", count)
    half = 2 * s / epsilon
    return {
        "1: Lyu, Su & Li": SparseVector(half, 2 * count * half, None, count),
        "2: Dwork & Roth": SparseVector(count * half, 2 * count * half, count * half, count),
        "3: Roth (broken)": SparseVector(half, count * half, None, count, shows_answer=True),
        "4: Lee & Clifton (broken)": SparseVector(2 * half, 2 * half / 3, None, count),
        "5: Stoddard et al. (broken)": SparseVector(half, 0.0, None, np.inf),
        "6: Chen et al. (broken)": SparseVector(half, half, None, np.inf),
    }


def _noise(noise):
    """Refuses what is no mechanism: scales below 0 would look like privacy for free."""
    check.instance("noise", noise, SparseVector, "a SparseVector")
    checks = {"threshold_scale": check.positive, "query_scale": check.nonnegative}
    if noise.refresh_scale is not None:
        checks["refresh_scale"] = check.positive
    for name, refuse in checks.items():
        refuse(f"noise.{name}", check.scalar(f"noise.{name}", getattr(noise, name)))
    if noise.count != np.inf:
        check.count("noise.count", noise.count)
    return noise


def _answers(answers):
    found = check.array("answers", answers, 1)
    if found.size == 0:
        raise ValueError(f"answers must not be empty, got {answers!r}")
    return found


def _threshold(threshold, answers):
    found = check.real("threshold", threshold)
    if np.shape(found) not in ((), answers.shape):
        raise ValueError(f"threshold must be one number, or one for each answer, got {threshold!r}")
    return found


def _reports(reports, answers):
    """As floats; NaN and -inf have their meanings."""
    try:
        found = np.asarray(reports)
    except ValueError:  # ragged sequences
        found = np.zeros(())
    if found.dtype.kind not in "biuf" or found.ndim not in (1, 2) or not found.size:
        raise ValueError(f"reports must be one or several rows of reports, got {reports!r}")
    if found.shape[-1] != len(answers):
        raise ValueError(f"reports must have {len(answers)} entries a row, got {reports!r}")
    return found.astype(float)


def sparse_runs(
    noise: SparseVector,
    answers: ArrayLike,
    threshold: ArrayLike = 0.0,
    *,
    runs: int = 1,
    rng: Generator,
) -> Array:
    """Reports of many independent runs of a `SparseVector` on the same answers: (runs, answers).

    1 is "above", 0 "below", NaN "not asked any more"; a mechanism that shows its answers has -inf
    for "below" and the noisy answer for "above". `threshold`: a number, or one for each answer.
    """
    noise, answers = _noise(noise), _answers(answers)
    rng, runs = check.generator("rng", rng), check.count_up_to("runs", runs, 10**8)
    noisy = answers + rng.laplace(0.0, 1.0, (runs, len(answers))) * noise.query_scale
    noisy = np.ascontiguousarray(noisy.T)  # a row for each question: quicker to go through
    reports = np.empty(noisy.shape)
    level, above = rng.laplace(0.0, noise.threshold_scale, runs), np.zeros(runs, dtype=int)
    lifted = noisy - np.reshape(_threshold(threshold, answers), (-1, 1))
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


def sparse_log_law(
    noise: SparseVector, answers: ArrayLike, reports: ArrayLike, threshold: ArrayLike = 0.0
) -> Answer:
    """log P(reports), by quadrature over the threshold noise; for `shows_answer` a log density.

    `reports` as `sparse_runs` writes them (True/False will do), one row or several: (n, answers).
    Given the threshold noise z the reports are independent, so that P is an integral over z of a
    product. The integrand is smooth between the kinks of its factors, and Gauss's rule with 20
    nodes on each of many panels is exact to about 1e-12, relatively, and to the rounding of log P.
    """
    noise, answers = _noise(noise), _answers(answers)
    threshold = _threshold(threshold, answers)
    rows = np.atleast_2d(_reports(reports, answers) - (threshold if noise.shows_answer else 0.0))
    answers = answers - threshold
    law = np.array([_log_probability(noise, answers, row) for row in rows])
    return float(law[0]) if np.ndim(reports) == 1 else law


def _log_probability(noise, answers, row):
    """Sum over the rounds between two refreshes of the log of one integral each."""
    asked = ~np.isnan(row)
    above = asked & (row > -np.inf if noise.shows_answer else row > 0)
    before = np.cumsum(above) - above  # how many "above" came earlier
    if (asked != (before < noise.count)).any():
        return -np.inf
    if noise.refresh_scale is None:
        return _round(noise, noise.threshold_scale, answers[asked], row[asked], above[asked])
    total = 0.0
    for number in range(int(before[asked].max(initial=-1)) + 1):
        at = asked & (before == number)
        scale = noise.refresh_scale if number else noise.threshold_scale
        total += _round(noise, scale, answers[at], row[at], above[at])
    return total


def _round(noise, scale, answers, row, above):
    """log of the integral over z of Laplace(z) prod P(this report | z), for one threshold noise."""
    b, shows = noise.query_scale, noise.shows_answer
    kinks = np.concatenate([[0.0], answers, row[above] if shows else []])
    z, weights = _panels(kinks, scale, b, len(answers))
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
                factor = _log_tail((z - answer) / b if over else (answer - z) / b)
            else:
                factor = np.log((z <= answer) if over else (z > answer))
            value = value + repeats * factor
        return float(logsumexp(value))


def _panels(kinks, scale, b, length):
    """Nodes and weights on panels that end at the kinks and are no longer than either scale, nor
    than 8 widths b/sqrt(length) of the peak that so many factors can make."""
    unit = min(scale, b) if b else scale
    reach = 45 * max(scale, b) + b * np.log1p(length)
    low, high = kinks.min() - reach, kinks.max() + reach
    if high - low > 1e5 * unit:
        raise ValueError(f"answers and threshold must lie within 10^5 noise scales of {unit:g}")
    unit *= min(1.0, 8 / np.sqrt(length))
    ends = np.unique(np.concatenate([np.arange(low, high, unit), [high], kinks]))
    return gauss(ends, order=20)


def _log_tail(u):
    """log P(noise >= u) of the standard Laplace law."""
    return np.where(u > 0, -np.abs(u) - np.log(2.0), np.log1p(-np.exp(-np.abs(u)) / 2))
