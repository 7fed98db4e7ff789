"""Reconstruction: secrets from counts, how many are found, and the error that stops it.

A count asks "how many of these people": a row of zeros and ones, one entry a person. Everything
here is about counts of secrets that are 0 or 1.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from scipy.optimize import linprog
from scipy import special
from scipy.stats import binom

from ..checks import (
    Array, ArrayLike, Count, Generator, Nonnegative, NonnegativeNumber, OpenProbabilityNumber,
    Positive, PositiveNumber, Probability, Vector, also, array, checked, count_up_to, refusal,
    vector,
)  # fmt: skip

CELLS = 10_000_000  # entries of a matrix of counts, 80 MB
PEOPLE = 20  # of whom all tables can be tried


def _only_bits(check):
    return also(check, lambda found: found.size and np.isin(found, (0, 1)).all(), "zeros and ones")


Bits = Annotated[ArrayLike, _only_bits(vector)]
Subsets = Annotated[ArrayLike, _only_bits(lambda name, value: array(name, value, 2))]
People = Annotated[int, partial(count_up_to, most=PEOPLE)]
Thousands = Annotated[int, partial(count_up_to, most=100_000)]


def _fits(name, array, length):
    if len(array) != length:
        raise refusal(name, array, f"of length {length}, as the subsets ask")


@checked
def random_subsets(count: Count, people: Count, *, rng: Generator) -> Array:
    """So many random subsets: a row of zeros and ones each, each person in it with a coin.

    >>> reconstruction.random_subsets(2, 5, rng=np.random.default_rng(1)).shape
    (2, 5)
    """
    if count * people > CELLS:
        raise refusal("count", count, f"at most {CELLS // people:,} for so many people")
    return rng.integers(0, 2, (count, people)).astype(float)


@checked
def all_subsets(people: People) -> Array:
    """All 2^people subsets of at most 20 people, a row each.

    >>> reconstruction.all_subsets(2)
    array([[0., 0.],
           [1., 0.],
           [0., 1.],
           [1., 1.]])
    """
    return (np.arange(2**people)[:, None] >> np.arange(people) & 1).astype(float)


@checked
def count_subsets(subsets: Subsets, bits: Bits) -> Array:
    """The exact counts: how many of each subset have the secret bit 1.

    >>> reconstruction.count_subsets([[1, 1, 0], [0, 1, 1]], [1, 1, 0])
    array([2., 1.])
    """
    _fits("bits", bits, subsets.shape[1])
    return subsets @ bits


@checked
def fitting_tables(subsets: Subsets, answers: Vector, error: NonnegativeNumber) -> Array:
    """All tables of zeros and ones whose counts are within `error` of all answers, a row each.

    Every table is tried, so at most 20 people (X-all-subsets, X-random-subsets).

    >>> reconstruction.fitting_tables([[1, 1], [1, 0]], [1.4, 0.4], error=0.5)
    array([[0., 1.]])
    """
    _fits("answers", answers, len(subsets))
    if subsets.shape[1] > PEOPLE:
        raise refusal("subsets", subsets, f"about at most {PEOPLE} people")
    tables, fit = all_subsets(subsets.shape[1]), []
    step = max(1, CELLS // len(subsets))
    for some in np.split(tables, range(step, len(tables), step)):
        near = np.abs(some @ subsets.T - answers) <= error + 1e-9 * (1 + error)
        fit.append(some[near.all(1)])
    return np.concatenate(fit)


@checked
def least_squares(subsets: Subsets, answers: Vector) -> Array:
    """The attack: the real numbers that fit the answers best, and 1 where they are above 1/2.

    The subsets must tell people apart: one of rank below the number of people is refused
    (X-least-squares).

    >>> reconstruction.least_squares([[1, 1], [1, 0], [0, 1]], [1.2, 0.9, 0.1])
    array([1., 0.])
    """
    _fits("answers", answers, len(subsets))
    found, _, rank, _ = np.linalg.lstsq(subsets, answers, rcond=None)
    if rank < subsets.shape[1]:
        raise refusal("subsets", subsets, "such that no two tables have the same counts")
    return (found > 0.5).astype(float)


@checked
def linear_program(subsets: Subsets, answers: Vector) -> Array:
    """The attack: numbers in [0, 1] whose largest error is least, and 1 where they are above 1/2.

    SciPy's solver does it; 400 counts of 100 people take a second (X-least-squares, part 3).

    >>> reconstruction.linear_program([[1, 1], [1, 0], [0, 1]], [1.2, 0.9, 0.1])
    array([1., 0.])
    """
    _fits("answers", answers, len(subsets))
    one, people = np.ones((len(subsets), 1)), subsets.shape[1]
    above, below = np.hstack([subsets, -one]), np.hstack([-subsets, -one])
    done = linprog(
        np.r_[np.zeros(people), 1.0],
        A_ub=np.vstack([above, below]),
        b_ub=np.r_[answers, -answers],
        bounds=[(0, 1)] * people + [(0, None)],
    )
    return (done.x[:people] > 0.5).astype(float)


@checked
def most_wrong(subsets: Subsets, error: Nonnegative) -> float | Array:
    """So many secrets least squares gets wrong at most, if no answer is off by more than `error`.

    4 m error^2 / s^2 for m subsets with least singular value s (X-least-squares, part 1).

    >>> round(reconstruction.most_wrong(np.eye(3), 0.1), 4)
    0.12
    """
    least = np.linalg.svd(subsets, compute_uv=False)[-1] if len(subsets) >= len(subsets.T) else 0
    if least <= 1e-9 * np.sqrt(subsets.size):
        raise refusal("subsets", subsets, "such that no two tables have the same counts")
    return 4 * len(subsets) * error**2 / least**2


@checked
def expected_wrong(subsets: Subsets, sigma: Positive) -> float | Array:
    """The mean number of secrets that least squares gets wrong under Gaussian noise.

    `sigma` is the standard deviation of the noise on each count. The sum of
    Phi(-1/(2 sigma sqrt(d_i))), d_i the diagonal of (A^T A)^-1 (X-least-squares, part 2).

    >>> round(reconstruction.expected_wrong(np.eye(3), 1.0), 4)
    0.9256
    """
    most_wrong(subsets, 0.0)  # refuses what is singular
    spread = np.sqrt(np.diag(np.linalg.inv(subsets.T @ subsets)))
    return special.ndtr(-0.5 / (sigma[..., None] * spread)).sum(-1)


def _same_answers(distance, error):
    """The largest chance that a random subset has counts within 2 error for two tables that differ
    in so many places: the middle values of a binomial law."""
    half = np.floor(2 * error * (1 + 1e-12))
    middle = distance // 2
    high = binom.cdf(middle + half, distance, 0.5)
    return np.minimum(high - binom.cdf(middle - half - 1, distance, 0.5), 1.0)


@checked
def furthest_fit(
    people: Thousands, count: Count, error: NonnegativeNumber,
    failure: OpenProbabilityNumber = 1e-6,
) -> int:  # fmt: skip
    """Every table that fits random subsets differs from the truth in at most so many places.

    But for probability `failure`, if no answer is off by more than `error`: the least D with
    sum over d > D of C(people, d) p(d)^count <= failure, p(d) the largest probability of d fair
    coins to come within 2 error of a point (X-random-subsets, part 1).

    >>> reconstruction.furthest_fit(1000, 2000, error=1.0)
    4
    """
    distance = np.arange(1, people + 1)
    with np.errstate(divide="ignore"):
        terms = count * np.log(_same_answers(distance, error))
    terms += (
        special.gammaln(people + 1)
        - special.gammaln(distance + 1)
        - special.gammaln(people - distance + 1)
    )
    tails = np.logaddexp.accumulate(terms[::-1])[::-1]  # of D = 0, 1, ..., people - 1
    return int(np.count_nonzero(tails > np.log(failure)))


@checked
def most_right(epsilon: Nonnegative, guess: Probability = 0.5) -> float | Array:
    """The largest share of secrets that any attack finds in an epsilon-DP output, on average.

    `guess` is the share that is right without the output, at least 1/2; replace-neighbours,
    independent secrets (X-reconstruction-limit).

    >>> round(reconstruction.most_right(1.0), 4)
    0.7311
    """
    if np.any(guess < 0.5):
        raise refusal("guess", guess, "at least 1/2, since the opposite guess is right otherwise")
    return guess / (guess + (1 - guess) * np.exp(-epsilon))


@checked
def least_error(
    dimension: Thousands, epsilon: PositiveNumber, people: Count = 2**62,
    failure: OpenProbabilityNumber = 0.5,
) -> float:  # fmt: skip
    """No epsilon-DP mechanism publishes so many counts with all errors below this, on all data.

    Half of the largest number of people k with k epsilon < ln((2^d - 1)(1 - failure)/failure);
    some count is off by so much with a probability above `failure` (X-packing).

    >>> reconstruction.least_error(10, epsilon=1.0)
    3.0
    """
    room = dimension * np.log(2) + np.log1p(-(2.0**-dimension))
    room += np.log1p(-failure) - np.log(failure)
    return min(people, max(0.0, np.ceil(room / epsilon * (1 - 1e-12)) - 1)) / 2


@checked
def cube_noise(dimension: Thousands, epsilon: PositiveNumber = 1.0, *, rng: Generator) -> Array:
    """Noise with density proportional to exp(-epsilon max |z_i|), for counts of sensitivity 1 each.

    A radius with law Gamma(d + 1, 1/epsilon) times a point of the cube (X-cube-noise). For study:
    floats leak (X-low-bits).

    >>> reconstruction.cube_noise(3, rng=np.random.default_rng(1)).shape
    (3,)
    """
    radius = rng.gamma(dimension + 1) / epsilon
    return radius * rng.uniform(-1, 1, dimension)
