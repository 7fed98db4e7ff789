"""The claims of `stopping` about choices: losses in one interval of length epsilon."""

from itertools import product

import numpy as np
import pytest

import dpnotes as dp
from dpnotes.chapters import selection, stopping
from evidence import at_most, claim, equal, must_fail
from rounds import joint
from strategies import score_pairs


def coin(epsilon, t):
    """The two-point pair with losses t and t - epsilon: laws p, q of (high, low)."""
    high = np.expm1(t - epsilon) / np.expm1(-epsilon)
    p = np.stack([high, 1 - high], -1)
    return p, np.stack([high * np.exp(-t), 1 - high * np.exp(-t)], -1)


@claim(
    "X-bounded-range",
    of=(1.0, selection.exponential_law),
    wrong=[(1.1, selection.exponential_law), (1.0, selection.permute_and_flip_law)],
)
def test_the_range_of_the_exponential_mechanism_and_its_coins(factor, law, rng):
    s = np.linspace(-3, 3, 61)
    for epsilon in (0.1, 1.0, 2.5):
        x, y = score_pairs(rng, 300, 4, 2.0)
        p, q = law(x, 1.0, factor * epsilon), law(y, 1.0, factor * epsilon)
        loss = np.log(p / q)
        at_most(np.ptp(loss, axis=1), epsilon, rtol=1e-9)
        t = loss.max(1)
        at_most(np.abs(t - epsilon / 2), epsilon / 2, rtol=1e-9)
        worst = coin(epsilon, np.clip(t, 0, epsilon))
        for at in s:
            at_most(dp.hockey_stick(p, q, at), dp.hockey_stick(*worst, at), atol=1e-12)
    # two candidates attain each coin
    epsilon, t = 0.7, np.linspace(0.01, 0.69, 50)
    p, q = coin(epsilon, t)
    score = np.stack([np.log(p[:, 0] / p[:, 1]) * 2 / epsilon, 0 * t], -1)
    equal(selection.exponential_law(score, 1.0, epsilon), p, rtol=1e-9)
    moved = selection.exponential_law(score + [-1.0, 1.0], 1.0, epsilon)
    equal(moved, q, rtol=1e-9)


@pytest.mark.slow
@claim("X-bounded-range")
def test_the_worst_rounds_fixed_beforehand(rng):
    faces = {k: np.array(list(product((0, 1), repeat=k))) for k in (1, 2, 3, 4, 5)}

    def of_coins(epsilon, shifts, target):
        """delta of independent coins with these shifts (count, k), by all 2^k outcomes."""
        p, q = coin(epsilon, shifts)
        face = faces[shifts.shape[1]][:, None, :]
        one = np.where(face == 1, p[..., 0], p[..., 1]).prod(-1)
        two = np.where(face == 1, q[..., 0], q[..., 1]).prod(-1)
        return np.maximum(one - np.exp(target) * two, 0).sum(0)

    def check(worst):
        for k, epsilon in product(faces, (0.1, 1.0, 3.0)):
            shifts = rng.random((4000, k)) * epsilon  # any shifts: never more
            shifts[:1000] = np.where(rng.random((1000, k)) < 0.5, 0.5, shifts[:1000])
            shifts[:1000] = np.clip(shifts[:1000], 0, epsilon)
            common = np.linspace(0, epsilon, 2001)[:, None] + np.zeros(k)  # equal ones: reached
            for target in np.array([0.0, 0.2, 0.5, 0.9]) * k * epsilon:
                bound = worst(epsilon, k, target)
                at_most(of_coins(epsilon, shifts, target), bound, rtol=1e-9, atol=1e-15)
                best = of_coins(epsilon, common, target).max()
                equal(best, bound, rtol=2e-3)
                at_most(best, bound, rtol=1e-9)

    check(stopping.bounded_range_delta)
    must_fail(check, lambda e, k, target: 0.99 * stopping.bounded_range_delta(e, k, target))
    must_fail(check, lambda e, k, s: of_coins(e, np.full((1, k), e / 2), s)[0])  # t = epsilon/2
    # through the accountant: the k-fold coin at the best of many shifts
    epsilon, k, target = 0.3, 40, 2.0
    t = np.clip((target + np.arange(1, k + 2) * epsilon) / (k + 1), 1e-9, epsilon - 1e-9)
    t = t[np.abs(t - epsilon / 2) < 0.1]
    worst = max(dp.finite(*coin(epsilon, v)).compose(k).delta(target) for v in t)
    equal(worst, stopping.bounded_range_delta(epsilon, k, target), rtol=1e-8)


@claim("X-bounded-range", of=1.0, wrong=[0.99])
def test_one_pair_dominates_and_is_the_least(factor):
    def envelope(epsilon, s):
        return (1 - np.exp((s - epsilon) / 2)) ** 2 / -np.expm1(-epsilon)

    for epsilon in (0.05, 1.0, 4.0):
        s, t = np.linspace(-epsilon, epsilon, 81), np.linspace(0, epsilon, 801)
        worst = np.array([dp.hockey_stick(*coin(epsilon, t), v).max() for v in s])
        at_most(worst, factor * envelope(epsilon, s), atol=1e-12)
        equal(worst, envelope(epsilon, s), rtol=1e-9, atol=1e-12)  # v's best t is on the grid
        loss = dp.bounded_range(epsilon, points=8)
        equal(loss.delta(s[40::10]), envelope(epsilon, s[40::10]), rtol=1e-9, atol=1e-12)
        at_most(envelope(epsilon, s[40:]), factor * loss.delta(s[40:]), atol=1e-12)
        at_most(loss.delta(s[40:]), dp.randomized_response(epsilon).delta(s[40:]), atol=1e-12)
    coarse = dp.bounded_range(0.8, points=1)  # one panel: randomized response
    equal(coarse.delta([0.0, 0.3]), dp.randomized_response(0.8).delta([0.0, 0.3]), rtol=1e-12)


@claim("X-bounded-range", of=(8, 1.0), wrong=[(40, 0.9)])
def test_adaptive_rounds_stay_below_the_pair(points, factor, rng):
    for epsilon in (0.3, 1.5):
        total = dp.bounded_range(factor * epsilon, points).compose(2)
        target = np.array([0.0, 0.4, 1.0, 1.6]) * epsilon
        p, q = coin(epsilon, rng.random((3000, 1)) * epsilon)
        # the second coin depends on how the first one fell
        after = coin(epsilon, rng.random((3000, 2)) * epsilon)
        one, two = joint([p[:, 0], after[0]]), joint([q[:, 0], after[1]])
        for s, most in zip(target, total.delta(target), strict=True):
            at_most(dp.hockey_stick(one, two, s), most, atol=1e-13)
            at_most(dp.hockey_stick(two, one, s), most, atol=1e-13)
            at_most(stopping.bounded_range_delta(epsilon, 2, s), most, atol=1e-13)

    def adapts(rise):  # a second coin that depends on the first does more harm than fixed ones
        epsilon = 1.0
        t = np.linspace(0.0, epsilon, 101)[1:-1]
        first = coin(epsilon, t)
        # the best second coin at v has the shift (v + epsilon)/2, v = -loss of the first
        second = [coin(epsilon, np.clip((v + epsilon) / 2, 0, epsilon)) for v in (-t, epsilon - t)]
        second = np.stack(second, axis=2)
        one, two = (joint([first[i], second[i]]) for i in (0, 1))
        most = dp.hockey_stick(one, two, 0.0).max()
        at_most(rise * stopping.bounded_range_delta(epsilon, 2, 0.0), most)

    adapts(1.05)
    must_fail(adapts, 1.06)


@claim("X-bounded-range", of=8.0, wrong=[8.5])
def test_the_divergence_of_a_bounded_range(constant, rng):
    for epsilon in (0.01, 0.5, 3.0):
        p, q = coin(epsilon, rng.uniform(0, epsilon, 2000))
        x, y = score_pairs(rng, 1000, 5, 2.0)
        laws = [selection.exponential_law(u, 1.0, epsilon) for u in (x, y)]
        for alpha in (1.001, 1.5, 2.0, 5.0, 40.0):
            most = alpha * epsilon**2 / constant
            for one, two in ((p, q), (q, p), laws):
                at_most(dp.renyi_divergence(one, two, alpha), most, atol=1e-12)
