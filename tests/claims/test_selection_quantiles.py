"""The claims of the chapter `selection` about private quantiles, and how they are drawn.

Seeds are fixed; a correct sampler fails one comparison with probability 1e-8, and there are fewer
than twenty. A planted broken one fails for certain.
"""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
from scipy.special import softmax

import dpnotes as dp
from dpnotes import integer_noise
from dpnotes.chapters import auditing, selection
from evidence import at_most, claim, holds
from strategies import Scripted, follows


def rank_errors(rows, candidates, quantile):
    """How far the rank `quantile` n is from the ranks of each candidate, one by one."""
    below = (candidates[:, None] > rows).sum(1)
    upto = (candidates[:, None] >= rows).sum(1)
    aim = quantile * len(rows)
    return np.maximum(np.maximum(below - aim, aim - upto), 0.0)


def quantile_law(rows, candidates, quantile, epsilon):
    return softmax(-epsilon / 2 * rank_errors(rows, candidates, quantile))


SETTINGS = list(product((0, 1, 2, 7, 20), (0.0, 0.1, 0.5, 1.0), (0.1, 1.0, 4.0)))


def neighbours(rows, rng, top):
    """One row replaced, removed and added."""
    row = rng.integers(0, top + 1, 1)
    return [np.append(rows[1:], row)] * (len(rows) > 0) + [rows[1:], np.append(rows, row)]


@claim("X-private-median", of=1.0, wrong=[2.2, 1.1])
def test_private_quantiles_are_private(factor, rng):
    candidates = np.arange(31)
    for n, quantile, epsilon in SETTINGS:
        for _ in range(20):
            rows = rng.integers(0, 31, n)
            law = quantile_law(rows, candidates, quantile, factor * epsilon)
            for other in neighbours(rows, rng, 30):
                there = quantile_law(other, candidates, quantile, factor * epsilon)
                at_most(np.abs(np.log(law / there)), epsilon, rtol=1e-9)
    # two medians of many candidates, then nearly all are: the loss comes close to epsilon
    law, there = (
        quantile_law(np.array(rows), np.arange(10**5), 0.5, factor) for rows in ([0, 1], [1, 10**5])
    )
    at_most(0.999, np.abs(np.log(law / there)).max())


@claim("X-private-median", of=1.0, wrong=[0.3])
def test_private_quantiles_are_near(share, rng):
    beta, candidates = np.logspace(-6, 0, 30), np.arange(-20, 500)
    for n, epsilon, quantile in ((11, 1.0, 0.5), (51, 0.5, 0.9), (200, 2.0, 0.5), (9, 3.0, 0.0)):
        for _ in range(20):
            rows = rng.integers(0, 480, n) // 9 * 9
            law = quantile_law(rows, candidates, quantile, epsilon)
            off = rank_errors(rows, candidates, quantile)
            assert off.min() == 0
            bound = 1 + 2 / epsilon * np.log(candidates.size / ((off <= 1).sum() * beta))
            at_most((off > share * bound[:, None]) @ law, beta)


@claim("X-private-median", of=1.0, wrong=[1.25])
def test_drawn_quantiles_follow_their_law(factor, rng):
    cases = [
        ([1, 4, 4, 7, 9], 0.5, 1.0),
        ([3, 3, 3], 0.9, 0.7),
        ([0, 10, 11, 2], 0.25, 2.0),
        ([], 0.5, 1.0),
        ([5], 1.0, 3.0),
    ]
    for rows, quantile, epsilon in cases:
        options = {"lower": -0.5, "upper": 5.0, "grid": 0.5, "epsilon": epsilon, "rng": rng}
        drawn = [dp.safe_quantile(np.array(rows) / 2, quantile, **options) for _ in range(6000)]
        law = quantile_law(np.clip(rows, -1, 10), np.arange(-1, 11), quantile, factor * epsilon)
        follows(np.round(np.array(drawn) * 2).astype(int) + 1, law)


def test_the_grid_of_a_quantile_is_public():
    """A power of two, whatever the bounds; each answer is one of its multiples, or a bound."""
    ends = [(0, 1), (-3, 1e4), (1e16, 1e16 + 4), (0, 5e-324), (-1e100, 1e100), (0.1, 0.3)]
    for lower, upper in ends:
        for seed in range(30):
            made = [np.random.default_rng(seed) for _ in range(2)]
            rows = [lower, upper, np.nan, np.inf, None, -np.inf]
            a = selection.private_median(rows, epsilon=0.1, lower=lower, upper=upper, rng=made[0])
            assert lower <= a <= upper and type(a) is float
            wide = max(upper - lower, max(abs(lower), abs(upper)) * 2.0**-30, 1e-93)
            unit = 2.0 ** (math.frexp(wide)[1] - 1 - 20 - 3)
            assert a in (lower, upper) or a / unit % 1 == 0 or wide > upper - lower
            b = dp.safe_quantile(rows, lower=lower, upper=upper, epsilon=0.1, rng=made[1])
            assert a == b


def between_two_rows(values, *, epsilon, lower, upper, rng):
    """How the median was drawn until the fourth edition: in floating point, between two rows."""
    knots = np.concatenate([[lower], np.sort(values), [upper]])
    n, width = len(knots) - 2, np.diff(knots)
    with np.errstate(divide="ignore"):
        weight = np.log(width) - epsilon / 2 * np.abs(np.arange(n + 1) - n / 2)
    chosen = int(np.argmax(weight + rng.gumbel(size=n + 1)))
    return float(rng.uniform(knots[chosen], knots[chosen + 1]))


def impossible_below(y, top):
    """Whether `rng.uniform(0, top)`, top m 2^-53 for a whole m, is never y."""
    near = np.rint(np.asarray(y) / top * 2.0**53)[:, None] + np.arange(-3, 4)
    return (top * (near * 2.0**-53) != np.asarray(y)[:, None]).all(1)


@claim("X-private-median", of=selection.private_median, wrong=[between_two_rows])
def test_the_last_bits_of_a_median_do_not_tell_the_row(median, rng):
    """One row, .3 or .7: an output between them that no number below .7 gives comes from .3. The
    event is fixed; a private median fails with probability 1e-8."""
    runs = 4000
    options = {"epsilon": 1.0, "lower": 0.0, "upper": 1.0, "rng": rng}
    seen = []
    for row in (0.3, 0.7):
        y = np.array([median([row], **options) for _ in range(runs)])
        seen.append(int((impossible_below(y, 0.7) & (0.3 < y) & (y < 0.7)).sum()))
    assert auditing.epsilon_from_counts(*seen, runs, false_alarm=1e-8) <= 1.0


def weights_in_turn(middle, sides, rate):
    """The classes of a choice with their weights, from the middle outwards."""
    yield (None, 0), mpmath.mpf(middle)
    for i in range(max(len(counts) for _, counts in sides)):
        for side, (first, counts) in enumerate(sides):
            if i < len(counts) and counts[i]:
                far = rate * (first + i)
                weight = mpmath.exp(-mpmath.mpf(far.numerator) / far.denominator)
                yield (side, i), int(counts[i]) * weight


def some_choice(rng):
    sides = [
        (Fraction(int(rng.integers(1, 9)), 8), rng.integers(0, 4, rng.integers(0, 6)) ** 9)
        for _ in range(2)
    ]
    return int(10 ** rng.uniform(0, 15)), sides, Fraction(float(10 ** rng.uniform(-3, 1)))


@claim("X-exact-choice", of=Fraction(1), wrong=[1 + Fraction(1, 10**14), 1 - Fraction(1, 10**14)])
def test_a_choice_changes_exactly_where_the_weights_say(factor, rng):
    """Next to each boundary that 64 bits can tell; and where these tie, the next 64."""
    with mpmath.workdps(80):
        for _ in range(60):
            middle, sides, rate = some_choice(rng)
            names, weights = zip(*weights_in_turn(middle, sides, factor * rate), strict=True)
            shares = [weight / mpmath.fsum(weights) for weight in weights]
            for j in range(len(names) - 1):
                if min(shares[j : j + 2]) < 2.0**-60:
                    continue
                end = mpmath.fsum(shares[: j + 1])
                first, more = int(end * 2**64), int(end * 2**128) % 2**64
                for off, chosen in ((-1, names[j]), (1, names[j + 1])):
                    for words in ([first + off], [first, more + off]):
                        drawn = integer_noise.choice_around(middle, sides, rate, Scripted(*words))
                        holds(np.array(drawn == chosen))


@claim("X-exact-choice", of=1.0, wrong=[0.1])
def test_how_often_a_choice_needs_more_bits(share, rng):
    """All 2^12 beginnings, with enclosures as wide as a share eta of the whole."""
    bits, unit = 12, 10**6
    for k in (2, 3, 8):
        for eta in (0.0, 1e-3, 1e-2):
            weights = rng.dirichlet(np.ones(k)) * unit // 1 + 1
            room = int(eta * weights.sum() / k)
            below = rng.integers(0, room + 1, k)
            classes = [
                (j, int(weights[j] - below[j]), int(weights[j] + room - below[j])) for j in range(k)
            ]
            found = [integer_noise._class_of(u, bits, classes) for u in range(2**bits)]
            ends = np.cumsum(weights) / weights.sum()
            for u, answer in enumerate(found):
                if answer is not None:
                    first, last = (np.searchsorted(ends, (u + o) / 2**bits) for o in (0.0, 1.0))
                    assert first == last == answer
            undecided = np.mean([answer is None for answer in found])
            at_most(undecided, share * (k - 1) * (5 * eta + 2.0 ** (1 - bits)))


@claim("X-exact-choice", of=1, wrong=[0])
def test_products_of_enclosures_enclose(up, rng):
    p = 40
    with mpmath.workdps(60):
        for _ in range(500):
            a, b = (Fraction(float(10 ** rng.uniform(-6, 1.3))) for _ in range(2))
            (low, high), (less, more) = (integer_noise._enclosed(x, p) for x in (a, b))
            truth = 2**p * mpmath.exp(-mpmath.mpf((a + b).numerator) / (a + b).denominator)
            holds(np.array([low * less >> p <= truth, truth <= (high * more >> p) + up]))
