"""The claims of the chapter `in-practice`.

Mechanisms are given as the exact masses of cells of their outputs. To look at cells only is
post-processing, so the curve of the masses is at most the mechanism's: no quadrature, no tolerance.
Pairs whose density ratio rises with the outcome have a closed curve, P(z > t) - a Q(z > t).
"""

from fractions import Fraction
from functools import reduce
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from scipy.stats import binom, norm

import dpnotes as dp
from boxes import exp, for_all, normal_tail
from dpnotes.chapters import in_practice
from evidence import at_most, claim, equal, holds

A = np.exp([-0.5, -0.1, 0.0, 0.05, 0.3, 1.0, 2.0])  # e^epsilon


def sticks(p, q, a=A):
    """max(p - a q, 0) summed over the last axis, for each a: shape (..., len(a))."""
    p, q = np.asarray(p)[..., None, :], np.asarray(q)[..., None, :]
    return np.maximum(p - np.asarray(a)[:, None] * q, 0).sum(-1)


def cells(mean, sigma, edges):
    """Masses of the cells between `edges` under N(mean, sigma^2); a last axis is added."""
    cdf = norm.cdf((edges - np.asarray(mean)[..., None]) / sigma)
    ends = np.broadcast_to([0.0, 1.0], (*cdf.shape[:-1], 2))
    return np.diff(np.concatenate([ends[..., :1], cdf, ends[..., 1:]], axis=-1))


def plane(mean, sigma, edges):
    """The same in the plane: `mean` (..., 2), masses (..., cells)."""
    x, y = cells(mean[..., 0], sigma, edges), cells(mean[..., 1], sigma, edges)
    return (x[..., :, None] * y[..., None, :]).reshape(*x.shape[:-1], -1)


def rising(weights_p, means_p, weights_q, means_q, sigma, a=A):
    """The curve of two mixtures of Gaussians whose ratio rises with z, by bisection."""
    wp, mp, wq, mq = map(np.asarray, (weights_p, means_p, weights_q, means_q))

    def tilted(z, w, m):
        return (w * np.exp((z[:, None] * m - m**2 / 2) / sigma**2)).sum(-1)

    low, high = np.full(len(a), -40.0 * sigma), np.full(len(a), 40.0 * sigma + mp.max())
    for _ in range(100):
        z = (low + high) / 2
        over = tilted(z, wp, mp) > a * tilted(z, wq, mq)
        low, high = np.where(over, low, z), np.where(over, z, high)

    def tail(w, m):
        return (w * norm.sf((low[:, None] - m) / sigma)).sum(-1)

    return np.maximum(tail(wp, mp) - a * tail(wq, mq), np.maximum(1 - a, 0))


def inside(rng, count, most=1.0):
    """Vectors of the plane of norm at most `most`, half of them on the rim."""
    angle, size = rng.uniform(0, 2 * np.pi, count), most * np.minimum(1, 2 * rng.random(count))
    return (size * np.array([np.cos(angle), np.sin(angle)])).T


@claim("X-poisson-substitution", of=-1.0, wrong=[0.0, -1.3])  # 0: as if it were removed
def test_poisson_sampling_under_replace(other, rng):
    edges = np.linspace(-5, 5, 31)
    for sigma, rate in ((0.5, 0.1), (1.0, 0.5), (2.0, 0.02), (0.8, 0.9)):
        g, h = inside(rng, 60), inside(rng, 60)
        g[:9], h[:9] = [1, 0], [-1, 0]  # the attained values
        none = plane(np.zeros(2), sigma, sigma * edges)
        p, q = ((1 - rate) * none + rate * plane(v, sigma, sigma * edges) for v in (g, h))
        w = [1 - rate, rate]
        deltas, bound = sticks(p, q), rising(w, [0.0, 1.0], w, [0.0, other], sigma)
        at_most(deltas, bound)
        at_most(0.9 * bound, deltas[0], atol=1e-4)  # attained, up to the width of the cells


def enclosed(bounds, law_p, means_p, law_q, means_q, sigma):
    """Both losses lie on their sides of the curve of two mixtures, the worse of both directions."""
    a = np.exp([0.0, 1e-3, 0.1, 1.0, 2.0])
    pair = law_p, means_p, law_q, means_q, sigma
    truth = np.maximum(rising(*pair, a), 1 - a * (1 - rising(*pair, 1 / a)))
    low, high = (bound.delta(np.log(a)) for bound in bounds)
    at_most(low, truth, rtol=1e-9, atol=1e-14)
    at_most(truth, high, rtol=1e-9, atol=1e-14)


@claim(
    "X-poisson-substitution",
    of=in_practice.sampled_substitution,
    wrong=[lambda s, r, n: in_practice.sampled_substitution(s, 1.1 * r, n)],
)
def test_one_step_is_enclosed_where_cells_have_one_ratio(family):
    """Little noise or a tiny rate: neighbouring cells have ratios that are the same double."""
    for sigma, rate in ((0.1, 1e-5), (0.17, 3e-9), (0.5, 0.3), (2.0, 1.0), (300.0, 1e-4)):
        w = [1 - rate, rate]
        enclosed(family(sigma, rate, 200), w, [0.0, 1.0], w, [0.0, -1.0], sigma)


def sums(rows, size, sigma, edges, extra=0.0):
    """Masses of the noisy sum over a uniform subset of `size` of the last axis of `rows`."""
    subsets = np.array(list(combinations(range(rows.shape[-1]), size)), dtype=int)
    return cells(rows[..., subsets].sum(-1) + extra, sigma, edges).mean(-2)


def data(rng, rows, count=25):
    """Values in [-1, 1], many of them -1 and 1."""
    return np.clip(rng.uniform(-1.6, 1.6, (count, rows)), -1, 1)


@claim("X-fixed-size", of=2.0, wrong=[1.0])  # the clipping norm is not the sensitivity
def test_fixed_size_with_one_row_more(sensitivity, rng):
    edges = np.linspace(-9, 9, 200)
    for n, m, sigma in ((1, 2, 1.0), (2, 5, 0.7), (3, 4, 2.0), (2, 6, 1.5)):
        x = data(rng, m)
        x[0], x[0, -1] = -1.0, 1.0  # attained
        p, q = sums(x, n, sigma, edges), sums(x[:, :-1], n, sigma, edges)
        r = n / m
        pair = ([1 - r, r], [0.0, sensitivity], [1.0], [0.0], sigma)
        at_most(sticks(p, q), rising(*pair))
        equal(sticks(p, q)[0], rising(*pair), rtol=1e-3)  # cells
        both = 1 - A * (1 - rising(*pair, 1 / A))
        at_most(sticks(q, p), both)
        worse = dp.subsample(dp.gaussian(sigma, sensitivity=sensitivity), r)
        a = A[A >= 1]
        at_most(np.maximum(sticks(p, q, a), sticks(q, p, a)), worse.delta(np.log(a)))


def cut_sums(rows, rate, most, sigma, edges):
    """Masses of the noisy sum over a Poisson sample, cut to a uniform subset of `most` rows."""
    total = 0.0
    for kept in range(most + 1):
        taken = binom.pmf(kept, rows.shape[-1], rate)
        if kept == most:
            taken += binom.sf(most, rows.shape[-1], rate)
        total = total + taken * sums(rows, kept, sigma, edges)
    return total


@claim("X-truncated", of=(2.0, 1), wrong=[(1.0, 1), (2.0, 0)])  # no more than a Poisson sample
def test_poisson_samples_with_a_largest_size(sensitivity, counted, rng):
    edges, epsilon = np.linspace(-7, 7, 60), np.log(A[A >= 1])
    for rows, rate, most, sigma in ((2, 0.5, 1, 1.0), (4, 0.3, 2, 0.7), (3, 0.8, 1, 2.0)):
        x = data(rng, rows)
        x[0], x[0, -1] = -1.0, 1.0
        p, q = (cut_sums(d, rate, most, sigma, edges) for d in (x, x[:, :-1]))
        full = binom.sf(most - 1, rows - 1, rate)
        usual = dp.subsample(dp.gaussian(sigma), rate)
        cut = dp.subsample(dp.gaussian(sigma, sensitivity=sensitivity), rate)
        for steps in ([usual, cut], [usual.compose(2), usual + cut, cut.compose(2)]):
            k = len(steps) - 1
            chance = binom.pmf(np.arange(k + 1), k, counted * full)
            bound = chance @ [loss.delta(epsilon) for loss in steps]
            two = [
                law if k == 1 else np.einsum("di,dj->dij", law, law).reshape(len(law), -1)
                for law in (p, q)
            ]
            for first, second in (two, two[::-1]):
                at_most(sticks(first, second, np.exp(epsilon)), bound, rtol=1e-9)


@claim(
    "X-substitution-sampling",
    of=(2, 1.0),
    wrong=[(1, 1.0), (2, 0.95)],  # the clipping norm is not the sensitivity
)
def test_samples_under_replace_in_one_step(sensitivity, share, rng):
    edges, a = np.linspace(-9, 9, 200), A[A >= 1]

    def stated(sigma, rate):
        step = dp.gaussian(sigma, sensitivity=sensitivity)
        return dp.subsample_substitution(step, share * rate).delta(np.log(a))

    for n, m, sigma in ((1, 2, 1.0), (2, 5, 0.7), (3, 4, 2.0)):
        x = data(rng, m)
        y = np.append(x[:, :-1], data(rng, 1), axis=1)
        x[0], y[0], x[0, -1] = -1.0, -1.0, 1.0
        p, q = sums(x, n, sigma, edges), sums(y, n, sigma, edges)
        bound = stated(sigma, n / m)
        at_most(sticks(p, q, a), bound)
        at_most(sticks(q, p, a), bound)
        equal(sticks(p, q, a)[0], bound, rtol=1e-3)
    for rate, sigma in ((0.3, 1.0), (0.05, 0.6)):  # Poisson
        w = [1 - rate, rate]
        at_most(rising(w, [0.0, 1.0], w, [0.0, -1.0], sigma, a), stated(sigma, rate))


def adaptive(odds, rate, a):
    """The largest delta of two rounds of a sampled coin, the second direction chosen after the
    first outcome; all eight adversaries."""
    b = np.array([1, odds]) / (1 + odds)
    mixed = (1 - rate) * b + rate * b[::-1]
    pairs = ((mixed, b), (b, mixed))
    deltas = []
    for first, *second in product(pairs, repeat=3):
        p, q = (np.concatenate([first[i][y] * second[y][i] for y in (0, 1)]) for i in (0, 1))
        deltas.append(sticks(p, q, a))
    return np.max(deltas, axis=0)


def symmetrised_coin(odds, rate):
    """The pair of the claim for a coin, as two laws on (y, +), (y, -) and the rest."""
    c, b = (1 - rate + rate * odds) / (1 + odds), 1 / (1 + odds)
    return dp.finite([c, b, 1 - c - b], [b, c, 1 - c - b])


@claim(
    "X-substitution-sampling",
    of=symmetrised_coin,
    wrong=[  # each direction by itself, and the worse of them
        lambda odds, rate: dp.subsample(dp.randomized_response(np.log(odds)), rate)
    ],
)
def test_adversaries_that_turn_the_direction_are_covered(family):
    a = np.exp(np.linspace(0, 2.5, 60))
    for odds, rate in ((3.0, 0.5), (1.5, 0.2), (20.0, 0.7), (50.0, 0.1)):
        loss = family(odds, rate).compose(2)
        at_most(adaptive(odds, rate, a), loss.delta(np.log(a)), atol=1e-15)
    equal(adaptive(3.0, 0.5, np.array([5 / 3])), 1 / 6)


@claim(
    "X-direction-pitfall",
    of=(1, 5 / 3, 3 / 2),
    wrong=[(1, 7 / 4, 3 / 2), (1, 5 / 3, 4 / 3)],
)
def test_worst_direction_changes(one, two, mixed):
    b, a = np.array([0.25, 0.75]), np.arange(48, 145) / 48
    c = (b + b[::-1]) / 2
    removal, addition = (c, b), (b, c)

    def stick(*rounds):
        return sticks(*(reduce(np.outer, laws).ravel() for laws in zip(*rounds, strict=True)), a)

    at_most(stick(addition)[a >= one], stick(removal)[a >= one], atol=1e-15)
    added, removed = stick(addition, addition), stick(removal, removal)
    holds((added > removed + 1e-12) == ((1 < a) & (a < two)))
    both = stick(removal, addition)
    equal(both, np.maximum(3 / 8 - a / 8, 0), atol=1e-15)
    holds((both > np.maximum(added, removed) + 1e-12)[(mixed < a) & (a < 2)])
    equal([added[a == 4 / 3], removed[a == 4 / 3]], [[11 / 48], [1 / 6]])
    pair, reverse = dp.finite([0.5, 0.5], [0.25, 0.75]), dp.finite([0.25, 0.75], [0.5, 0.5])
    equal((pair + reverse).delta(np.log(5 / 3)), 1 / 6)
    equal(pair.compose(2).delta(np.log(4 / 3)), 11 / 48)


def threshold(sigma, steps, epsilon, upper=2.0):
    """The best event max > c, on a fine grid of c."""
    c = np.linspace(0, 3 + 10 * sigma, 20_001)
    mass = [
        -np.expm1(norm.logcdf((c - s) / sigma) + (steps - 1) * norm.logcdf(c / sigma))
        for s in (upper, 1.0)
    ]
    return max((mass[0] - np.exp(epsilon) * mass[1]).max(), 0.0)


@claim("X-shuffling", of=2.0, wrong=[2.5])
def test_shuffled_batches_cost_at_least_and_at_most(upper):
    """The mechanism itself: all shuffles of four rows into two batches."""
    edges, a = np.linspace(-5, 8, 60), A[A >= 1]
    for sigma in (0.6, 1.0, 2.0):
        laws = []
        for value in (1.0, 0.0):
            rows = np.array([value, -1.0, -1.0, -1.0])
            batches = np.array(list(combinations(range(4), 2)))
            first = rows[batches].sum(-1)
            both = np.stack([first, rows.sum() - first], axis=-1) + 2  # shifted by b
            laws.append(plane(both, sigma, sigma * edges).mean(0))
        above = dp.gaussian(sigma).delta(np.log(a))
        at_most(sticks(*laws, a), above)
        floor = [threshold(sigma, 2, np.log(v), upper) for v in a]
        at_most(floor, sticks(*laws, a), atol=5e-3)  # the cells
        at_most(floor, above)


@claim(
    "X-shuffling",
    of=in_practice.shuffled_floor,
    wrong=[lambda sigma, steps: in_practice.shuffled_floor(sigma, 2 * steps)],
)
def test_the_floor_is_the_best_event(family):
    e = np.array([0.0, 0.2, 1.0])
    for sigma, steps in ((0.5, 100), (1.0, 10_000), (2.0, 30)):
        best = [threshold(sigma, steps, epsilon) for epsilon in e]
        equal(family(sigma, steps).delta(e), best, rtol=2e-3, atol=1e-12)


PUBLISHED = (  # sigma, epochs, ends of the floor, Poisson at most, known batches at most
    (1.0, 1, 5.106, 5.107, 0.306, 5.77610),
    (1.0, 5, 6.423, 6.426, 0.507, 14.55021),
    (2.0, 1, 0.257, 0.259, 0.081, None),
    (2.0, 20, 0.438, 0.449, 0.372, None),
)


@pytest.mark.slow
@claim(
    "X-shuffling",
    of=(in_practice.shuffled_floor, 1e-3),
    wrong=[
        (lambda sigma, steps: in_practice.shuffled_floor(sigma, steps + 10), 1e-3),
        (in_practice.shuffled_floor, 1.02e-3),
    ],
)
def test_published_ends_of_many_epochs_hold_ours(floor, rate):
    """T = 1000, delta = 1e-8, by interval arithmetic: `pair_maximum.log`, `poisson.log` and
    `comparison_sigma1.dat` of the certificates of Mausberg (2026)."""
    for sigma, epochs, low, high, most, known in PUBLISHED:
        step = dp.gaussian(sigma)
        holds(low < floor(sigma, 1000).compose(epochs).epsilon(1e-8) <= high)
        reported = dp.subsample(step, rate).compose(1000 * epochs).epsilon(1e-8)
        at_most(reported, most)
        at_most(most, reported + 0.002)
        if known:
            equal(step.compose(epochs).epsilon(1e-8), known, rtol=0, atol=1e-5)


@pytest.mark.slow
@claim("X-shuffling", of=lambda r: r > 0, wrong=[lambda r: r < 0])
def test_a_query_that_adapts_does_more_than_the_pair(turns):
    """Two batches of one row: the last query turns where the first sum speaks for the row."""
    for sigma in (0.5, 1.0, 2.0):
        y = np.linspace(-9 * sigma, 2 + 9 * sigma, 1601)
        zero, one, two = (norm.pdf(y, s, sigma) * (y[1] - y[0]) for s in (0.0, 1.0, 2.0))
        absent = (np.outer(one, zero) + np.outer(zero, one)) / 2
        for epsilon in (-0.5, 0.0, 0.5, 2.0):
            k = np.exp(epsilon)
            last = np.where(turns(two - k * one)[:, None], zero, two)
            fixed, adapted = (
                np.maximum((np.outer(two, zero) + zero[:, None] * end) / 2 - k * absent, 0).sum()
                for end in (two, last)
            )
            at_most(fixed * (1 + 1e-5), adapted)
            at_most(adapted, dp.gaussian_delta(sigma, epsilon) + 1e-6)


def two_steps(sigma, a):
    """E ((Y_1 + Y_2)/2 - a)_+ by one integral."""
    z = np.linspace(-12, 12, 20_001)
    y = np.exp(z / sigma - 1 / (2 * sigma**2))
    rest = 2 * np.asarray(a)[:, None] - y
    inner = np.where(rest > 0, dp.gaussian_delta(sigma, np.log(np.maximum(rest, 1e-300))), 1 - rest)
    return (inner * norm.pdf(z)).sum(-1) * (z[1] - z[0]) / 2


@claim("X-allocation", of=two_steps, wrong=[lambda sigma, a: two_steps(1.2 * sigma, a)])
def test_adaptive_allocation_in_two_steps_is_dominated(curve, rng):
    edges = np.linspace(-5, 6, 45)
    for sigma in (0.5, 1.0, 2.5):
        deltas, other = [], []
        for _ in range(60):
            first = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)])
            then = rng.choice([-1.0, 0.2, 1.0], len(edges) + 1)  # by the first output
            shift = rng.choice([-2.0, 0.0, 2.0], len(edges) + 1)  # the others' rows
            x0, x1 = (cells(v, sigma, sigma * edges) for v in (0.0, first))
            y0, y1 = (cells(v, sigma, 3 * sigma * edges) for v in (shift, shift + then))
            p = (x1[:, None] * y0 + x0[:, None] * y1).ravel() / 2
            q = (x0[:, None] * y0).ravel()
            deltas.append(sticks(p, q))
            other.append(sticks(q, p))
        at_most(deltas, curve(sigma, A), atol=1e-12)
        at_most(other, 1 - A * (1 - curve(sigma, 1 / A)), atol=1e-12)


@claim(
    "X-allocation",
    of=in_practice.random_allocation,
    wrong=[lambda s, t, cells: in_practice.random_allocation(1.05 * s, t, cells=cells)],
)
def test_random_allocation_is_enclosed(family):
    e = np.array([0.0, 0.1, 0.7])
    for sigma in (0.4, 1.0, 3.0):
        for steps, curve in ((1, lambda s, a: dp.gaussian_delta(s, np.log(a))), (2, two_steps)):
            back = 1 - np.exp(e) * (1 - curve(sigma, np.exp(-e)))
            truth = np.maximum(curve(sigma, np.exp(e)), back)
            low, high = (bound.delta(e) for bound in family(sigma, steps, cells=300))
            at_most(low, truth, atol=1e-10)
            at_most(truth, high, atol=1e-10)
            at_most(high, low, rtol=0.02, atol=1e-6)
    for steps in (1000, 10**7):  # the round-off of many means is small
        low, high = in_practice.random_allocation(0.5, steps, cells=80)
        at_most(low.delta(0.0), np.sqrt(np.expm1(4.0) / steps) / 2)
        at_most(low.delta(e), high.delta(e))
    # intervals of `PLD_accounting` 2.0 (M. Shenfeld) at delta = 1e-6: one row in one of T steps
    others = {(0.5, 10_000): (1.92917, 1.95699), (2.0, 100): (0.20049, 0.21002)}
    for (sigma, steps), (least, most) in others.items():
        low, high = (bound.epsilon(1e-6) for bound in family(sigma, steps, cells=200))
        at_most(low, most)
        at_most(least, high)
        at_most(high, 1.12 * low)


@claim("X-group-curve")
def test_the_curve_of_two_rows_everywhere():
    def curve(mu, e):
        return normal_tail(e / mu - mu / 2) - exp(e) * normal_tail(e / mu + mu / 2)

    for_all(
        r"Gaussian noise: $\delta_{2\mu}(2\eps) \le (1 + e^\eps)\delta_\mu(\eps)$",
        (lambda mu, e: dp.gaussian_delta(1 / mu, 2 * e, 2.0), lambda mu, e: curve(2 * mu, 2 * e)),
        (
            lambda mu, e: (1 + np.exp(e)) * dp.gaussian_delta(1 / mu, e),
            lambda mu, e: (1 + exp(e)) * curve(mu, e),
        ),
        {r"\mu": (0.5, 2), r"\eps": (0.2, 2)},
        too_low=[lambda mu, e: 1.5 * curve(mu, e)],
    )


@claim(
    "X-group-curve",
    of=(lambda u: u, 3.0),
    wrong=[(lambda u: 0.7 * u, 3.0), (lambda u: u, 2.0)],
)
def test_groups_by_the_curve_and_exactly(weight, rows, rng):
    laws = rng.dirichlet(np.full(5, 0.6), (3, 2000)) + 1e-9
    p, m, q = laws / laws.sum(-1, keepdims=True)
    a = np.exp([-0.4, 0.0, 0.3, 1.0])
    first, then = sticks(p, m, a), sticks(m, q, a)
    for i, j in product(range(4), repeat=2):
        most = first[:, i] + weight(a[i]) * then[:, j]
        at_most(sticks(p, q, [a[i] * a[j]])[:, 0], most, atol=1e-14)
    epsilon = np.array([0.0, 0.2, 1.0, 2.5])
    for sigma in (0.7, 2.0):  # rows of the plane; two rounds are one with sigma / sqrt(2)
        v = np.concatenate([[[3.0, 0.0]], inside(rng, 60, most=3.0)])
        s = sigma / np.sqrt(2)
        p, q = (plane(mean, s, s * np.linspace(-6, 11, 70)) for mean in (v, np.zeros(2)))
        deltas = sticks(p, q, np.exp(epsilon))
        bound = dp.gaussian(sigma, sensitivity=rows).compose(2).delta(epsilon)
        at_most(deltas, bound)
        at_most(0.95 * bound, deltas[0])


@claim(
    "X-group-curve",
    of=in_practice.group_privacy,
    wrong=[
        lambda e, d, rows: (rows * e, rows * d),
        lambda e, d, rows: in_practice.group_privacy(e, 0.99 * d, rows),
        lambda e, d, rows: in_practice.group_privacy(e, d, rows - 1),
    ],
)
def test_groups_of_a_black_box(bound, rng):
    for rows in (2, 3, 7):
        laws = rng.dirichlet(np.full(4, 0.8), (rows + 1, 500))
        for epsilon in (0.0, 0.4, 1.3):
            steps = [sticks(laws[i], laws[j], [np.exp(epsilon)]) for i, j in zip_both(rows)]
            least = np.max(steps, axis=0)[:, 0]
            ends = np.array([bound(epsilon, d, rows) for d in least])
            for p, q in ((laws[0], laws[-1]), (laws[-1], laws[0])):
                far = [
                    sticks(x, y, [np.exp(e)])[0] for x, y, e in zip(p, q, ends[:, 0], strict=True)
                ]
                at_most(np.ravel(far), ends[:, 1])
            worst, d = [0.0], 1e-4  # two outcomes, by which it is attained
            for _ in range(rows):
                worst.append(np.exp(epsilon) * worst[-1] + d)
            chain = np.transpose([worst, 1 - np.array(worst)])
            near = [sticks(chain[i], chain[j], [np.exp(epsilon)]) for i, j in zip_both(rows)]
            at_most(np.ravel(near), d, rtol=1e-9)
            far, most = bound(epsilon, d, rows)
            attained = sticks(chain[-1], chain[0], [np.exp(far)])[0]
            at_most(attained, most)
            at_most(most, attained, rtol=1e-9)


def zip_both(rows):
    """Neighbours along a chain, in both orders."""
    return [pair for i in range(rows) for pair in ((i, i + 1), (i + 1, i))]


def test_groups_are_rounded_up_and_end_at_one():
    assert in_practice.group_privacy(800.0, 1e-300, rows=4) == (3200.0, 1.0)
    assert in_practice.group_privacy(2.0, 0.0, rows=3) == (6.0, 0.0)
    for epsilon, rows in ((0.1, 3), (0.7, 11), (1e-320, 7), (0.0, 5), (0.1, 7010)):
        far, delta = in_practice.group_privacy(epsilon, 1e-310, rows)
        exact = Fraction(epsilon) * rows
        with mpmath.workdps(40):
            terms = (mpmath.exp(mpmath.mpf(epsilon) * j) for j in range(rows))
            sure = mpmath.mpf(1e-310) * mpmath.fsum(terms)
            assert exact <= far <= exact * (1 + 2**-52) and sure <= delta <= sure * (1 + 1e-11)


@claim("X-group-sampled", of=3, wrong=[2, 4])
def test_rows_of_a_user_in_a_poisson_sample(count, rng):
    edges = np.linspace(-5, 8, 45)
    subsets = np.array(list(product([0, 1], repeat=3)))
    for sigma, rate in ((0.8, 0.3), (1.5, 0.05), (1.0, 0.8)):
        rows = inside(rng, 3 * 40).reshape(40, 3, 2)
        rows[0] = [1, 0]
        taken = rate ** subsets.sum(-1) * (1 - rate) ** (3 - subsets.sum(-1))
        masses = plane(np.einsum("sj,njd->nsd", subsets, rows), sigma, sigma * edges)
        p, q = np.einsum("nsc,s->nc", masses, taken), plane(np.zeros(2), sigma, sigma * edges)
        j = np.arange(count + 1)
        bound = rising(binom.pmf(j, count, rate), j, [1.0], [0.0], sigma)
        at_most(sticks(p, q), bound)
        at_most(0.93 * bound, sticks(p[0], q), atol=1e-5)


@claim(
    "X-group-sampled",
    of=in_practice.sampled_group,
    wrong=[lambda s, r, n, cells: in_practice.sampled_group(s, 0.9 * r, n, cells)],
)
def test_rows_of_a_user_are_enclosed(family):
    little = (0.12, 0.03, 2), (0.3, 1e-3, 5), (0.39, 8e-5, 1), (0.25, 0.4, 6)  # noise
    for sigma, rate, rows in (*little, (1.0, 0.2, 3), (3.0, 0.05, 20)):
        j = np.arange(rows + 1)
        enclosed(family(sigma, rate, rows, 200), binom.pmf(j, rows, rate), j, [1.0], [0.0], sigma)
