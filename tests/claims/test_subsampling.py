"""The claims of the chapter `subsampling`: exact laws of random mechanisms on small datasets."""

from functools import partial
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product
from math import comb

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import dpnotes as dp
from boxes import expm1, for_all, log1p
from dpnotes.chapters import composition, subsampling
from evidence import at_most, claim, equal, holds, must_fail, slip
from strategies import same_draws


def formula(r, e):
    return log1p(r * expm1(e))


@claim("T-19", "X-poisson-amplification")
def test_sampling_never_costs_and_serves_both_directions_everywhere():
    """P: the law with the row. p <= e^eps q gives rp + (1-r)q <= (1 + r(e^eps - 1)) q, and in the
    other direction q <= (rp + (1-r)q) / (1 - r(1 - e^-eps))."""
    box, low = {"r": (1e-4, 1), r"\eps": (1e-3, 50)}, {"r": (0, 1), r"\eps": (1e-3, 50)}
    computed = (lambda r, e: subsampling.amplification(e, r)[0], formula)
    for_all(
        r"$\ln(1 + r(e^\eps - 1)) \le \eps$",
        computed,
        lambda r, e: e,
        box,
        touch=(1,),
        too_high=[lambda r, e: log1p(1.01 * r * expm1(e))],
    )
    for_all(
        r"$1 \le (1 + r(e^\eps - 1))(1 - r(1 - e^{-\eps}))$",
        lambda r, e: 1 + 0 * r,
        lambda r, e: (1 + r * expm1(e)) * (1 + r * expm1(-e)),
        low,
        touch=(0, 1),
        too_low=[lambda r, e: (1 + r * e) * (1 + r * expm1(-e))],
    )


def uniform_law(mechanism, data, size):
    return np.mean([mechanism(rows) for rows in combinations(data, size)], axis=0)


def replacement_law(mechanism, data, draws):
    return np.mean([mechanism(rows) for rows in product(data, repeat=draws)], axis=0)


def amplification_pair(epsilon, rate, delta=0.0):
    """M(x) and M(x'), where M is a leaky coin that looks at one special row."""
    p, q = dp.dominating_pair(epsilon, delta)
    return rate * p + (1 - rate) * q, q


LETTERS = (0, 1, 2)


def neighbours(rows):
    """All pairs of tuples of this many letters that differ in one place."""
    for x in product(LETTERS, repeat=rows):
        for i, letter in product(range(rows), LETTERS):
            if letter != x[i]:
                yield x, x[:i] + (letter,) + x[i + 1 :]


def random_table(rng, keys, count, outcomes=4):
    """`count` random mechanisms: a law for each key, from nearly constant to very different."""
    base = rng.dirichlet(np.ones(outcomes), count)
    other = rng.dirichlet(np.ones(outcomes), (len(keys), count))
    share = rng.uniform(0.02, 0.9, (count, 1))
    return {key: (1 - share) * base + share * o for key, o in zip(keys, other, strict=True)}


def amplified(rng, amplification, rate, of_batches, table, of_data, law):
    """Each mechanism of the table has (epsilon, delta)-DP; run on a sample, what is stated.

    `of_batches`, `of_data`: the neighbours before and after sampling.
    """

    def worst(divergence):
        return np.max([divergence(table[a], table[b]) for a, b in of_batches], axis=0)

    pure = worst(dp.max_divergence)
    epsilon = pure * rng.uniform(0.1, 1.0, pure.shape)
    delta = worst(partial(dp.hockey_stick, epsilon=epsilon))
    bound, leak = amplification(epsilon, rate, delta)
    laws = {x: law(table.__getitem__, x) for pair in of_data for x in pair}
    for x, other in of_data:
        at_most(dp.hockey_stick(laws[x], laws[other], bound), leak, atol=1e-15)


def attained(amplification, rate, epsilon, delta, x, other, law):
    """By the mechanism that looks for a 1 in its batch; returns its laws."""
    coin = dp.dominating_pair(epsilon, delta)
    p, q = (law(lambda rows: coin[1 not in rows], data) for data in (x, other))
    bound, leak = amplification(epsilon, rate, delta)
    equal(dp.hockey_stick(p, q, bound), leak, rtol=1e-12, atol=1e-15)
    holds(np.array(dp.hockey_stick(p, q, 0.999 * bound) > leak))
    return p, q


@claim(
    "T-19",
    of=subsampling.amplification,
    wrong=[
        lambda e, r, d: subsampling.amplification(0.99 * np.asarray(e), r, d),
        lambda e, r, d: subsampling.amplification(e, r, 0.99 * np.asarray(d)),
        lambda e, r, d: (r * np.asarray(e), r * np.asarray(d)),
    ],
)
def test_uniform_subsets_amplify_under_substitution(amplification, rng):
    for rows, size in ((3, 1), (3, 2), (4, 2)):
        sets = combinations_with_replacement(LETTERS, size)
        unordered = random_table(rng, list(sets), count=25)
        keys = product(LETTERS, repeat=size)
        table = {key: unordered[tuple(sorted(key))] for key in keys}
        pairs, law = [list(neighbours(n)) for n in (size, rows)], partial(uniform_law, size=size)
        amplified(rng, amplification, size / rows, pairs[0], table, pairs[1], law)
    for rows, size in ((1, 1), (4, 1), (5, 3), (9, 4)):
        rate, law = size / rows, partial(uniform_law, size=size)
        x, other = (1,) + (0,) * (rows - 1), (0,) * rows
        for epsilon, delta in ((0.01, 0.0), (0.7, 1e-3), (3.0, 0.2)):
            p, _q = attained(amplification, rate, epsilon, delta, x, other, law)
            equal(p, amplification_pair(epsilon, rate, delta)[0], atol=1e-16)


@claim("T-19")
def test_the_formula_is_right_from_tiny_to_huge(rng):
    epsilon = np.exp(rng.uniform(np.log(1e-8), np.log(1e4), 400))
    rate = np.exp(rng.uniform(np.log(1e-12), 0, 400))
    found, leak = subsampling.amplification(epsilon, rate, 1e-6)
    exact = np.vectorize(lambda e, r: float(mpmath.log1p(mpmath.expm1(e) * r)))
    with mpmath.workdps(40):
        equal(found, exact(epsilon, rate), rtol=1e-13)
    equal(leak, rate * 1e-6)
    for nothing in ((5.0, 0.0), (0.0, 0.3)):
        assert subsampling.amplification(*nothing) == (0.0, 0.0)


@claim("T-19")
def test_pairing_counts_and_the_slips_of_the_printed_proof():
    for rows in range(1, 8):
        for size in range(1, rows + 1):
            for index in (0, rows - 1):
                subsets = list(combinations(range(rows), size))
                with_it = [s for s in subsets if index in s]
                without = [s for s in subsets if index not in s]
                paired = [[len({*s} & {*t}) == size - 1 for t in without] for s in with_it]
                paired = np.reshape(paired, (len(with_it), len(without)))
                equal(len(with_it) / comb(rows, size), size / rows)
                holds(paired.sum(axis=1) == rows - size)
                holds(paired.sum(axis=0) == size)
    slip(
        "T-19",
        "m = 5, n = 2: each of the 4 sets with i is paired with m - n = 3 sets without it, each of "
        "those 6 with n = 2, where the proof prints 2 and 3",
    )
    epsilon, rate, t = 1.0, 0.5, 0.0
    p, q = amplification_pair(epsilon, rate)
    factors = t * np.e, rate / (1 - rate) * (1 - t) * np.e + 1
    assert p[1] > min(factors) * q[1] and p[1] <= max(factors) * q[1]
    slip(
        "T-19",
        f"(7.5) with the printed minimum, eps = 1, r = 1/2, delta = 0, t = 0: p(S) = {p[1]:.4f} <= "
        f"{min(factors) * q[1]:.4f} is claimed; with the maximum {max(factors) * q[1]:.4f}",
    )
    # a mechanism that minds the order: odds of S double if the first row is 1, and if the last is 0
    odds = {(a, b): 0.1 * 2.0 ** ((a == 1) + (b == 0)) for a, b in product((0, 1), repeat=2)}
    minds = {z: np.array([p, 1 - p]) for z, p in odds.items()}
    close = [(z, w) for z, w in permutations(minds, 2) if z[0] == w[0] or z[1] == w[1]]
    equal(max(dp.max_divergence(minds[z], minds[w]) for z, w in close), np.log(2))
    p, q = (uniform_law(minds.__getitem__, x, 2) for x in ((1, 0, 1), (0, 0, 1)))
    bound = np.exp(subsampling.amplification(np.log(2), 2 / 3)[0])
    assert p[0] / q[0] > 1.74 and bound < 1.67
    slip(
        "T-19",
        f"an order-dependent N with eps = ln 2, m = 3, n = 2, delta = 0: p(S)/q(S) = "
        f"{p[0] / q[0]:.4f} for an event S, the claim allows {bound:.4f}",
    )
    both = comb(3, 1) / comb(5, 3)
    assert abs(both - 0.36) > 0.05
    slip(
        "T-19",
        f"m = 5, n = 3: two given indices are both picked with probability {both:.2f}, "
        "not r^2 = 0.36",
    )


@claim("T-19-linear")
def test_linear_amplification_everywhere():
    """u = r (e^eps - 1) with eps = log(1 + u/r). Up to a = 1 the factor is e - 1 < 2."""

    def before(u, r):
        return np.log1p(u / r)

    for_all(
        r"$\ln(1 + u) \le u$, $u = r(e^\eps - 1)$",
        (lambda u, r: subsampling.amplification(before(u, r), r)[0], lambda u, r: log1p(u)),
        lambda u, r: u,
        {"u": (0, 100), "r": (1e-6, 1)},
        touch=(0, 0),
        too_low=[lambda u, r: 0.9 * u, lambda u, r: r * log1p(u / r)],
    )
    for_all(
        r"$e^{sa} - 1 \le s(e^a - 1)$, so $e^\eps - 1 \le \frac{e^a - 1}a\eps$ at $\eps = sa$,",
        lambda s, a: expm1(s * a),
        lambda s, a: s * expm1(a),
        {"s": (0, 1), "a": (1e-3, 50)},
        touch=(0, 1),
        too_low=[lambda s, a: s * expm1(0.99 * a), lambda s, a: s * a],
    )


@claim(
    "X-poisson-amplification",
    of=subsampling.amplification,
    wrong=[
        lambda e, r, d: subsampling.amplification(0.99 * np.asarray(e), r, d),
        lambda e, r, d: subsampling.amplification(e, r, 0.9 * np.asarray(d)),
    ],
)
def test_poisson_sampling_amplifies_under_add_remove(amplification, rng):
    sets = [s for k in range(5) for s in combinations_with_replacement(LETTERS, k)]
    pairs = [(s, tuple(sorted(s + (z,)))) for s in sets if len(s) < 4 for z in LETTERS]
    both = pairs + [(b, a) for a, b in pairs]
    for rate in (0.05, 0.3, 0.8):
        table = random_table(rng, sets, count=30)
        law = partial(subsampling.poisson_subsample_law, rate=rate)
        amplified(rng, amplification, rate, both, table, both, law)
        for epsilon, delta in ((0.5, 0.0), (2.0, 0.01)):
            attained(amplification, rate, epsilon, delta, (1, 0, 0), (0, 0), law)


@claim(
    "X-own-rates",
    of=lambda own, others: own,
    wrong=[lambda own, others: others.min(), lambda own, others: (own + others.sum()) / 4],
)
def test_a_row_is_protected_by_its_own_rate(rate, rng):
    """Four rows, each of its own kind and rate; the first one leaves."""
    subsets = [s for k in range(5) for s in combinations(range(4), k)]
    for _ in range(40):
        rates = rng.uniform(0.02, 0.9, 4)
        kept = {
            s: np.prod(np.where(np.isin(range(1, 4), s), rates[1:], 1 - rates[1:])) for s in subsets
        }
        table = random_table(rng, subsets, count=25)
        apart = [(table[(0, *s)], table[s]) for s in subsets if 0 not in s]
        pure = np.max(
            [dp.max_divergence(*pair[::way]) for pair in apart for way in (1, -1)], axis=0
        )
        without = sum(kept[s] * table[s] for s in subsets if 0 not in s)
        joined = sum(kept[s] * table[(0, *s)] for s in subsets if 0 not in s)
        whole = rates[0] * joined + (1 - rates[0]) * without
        bound = subsampling.amplification(pure, rate(rates[0], rates[1:]))[0]
        at_most(dp.max_divergence(whole, without), bound)
        at_most(dp.max_divergence(without, whole), bound)
        # attained by a coin that looks for the row, and by steps with Gaussian noise
        p, q = dp.dominating_pair(1.0)
        largest = dp.max_divergence(rates[0] * p + (1 - rates[0]) * q, q)
        equal(largest, subsampling.amplification(1.0, rate(rates[0], rates[1:]))[0])
    small, large = (dp.subsample(dp.gaussian(1.3), r).compose(20) for r in (0.1, 0.2))
    at_most(small.delta(np.arange(4.0)), large.delta(np.arange(4.0)))


def test_sampling_with_replacement():
    """The bound of the exercise, attained by the mechanism that counts how often a row is drawn."""

    def check(bound):
        for epsilon, rows, draws in ((1.0, 4, 3), (0.3, 6, 2), (2.0, 3, 5)):

            def counts(z, epsilon=epsilon):
                yes = 1e-6 * np.exp(epsilon * sum(z))
                return np.array([yes, 1 - yes])

            p, q = (
                replacement_law(counts, (first,) + (0,) * (rows - 1), draws) for first in (1, 0)
            )
            equal(np.log(p[0] / q[0]), bound(epsilon, rows, draws), rtol=1e-9)

    check(lambda e, rows, draws: draws * subsampling.amplification(e, 1 / rows)[0])
    must_fail(check, lambda e, rows, draws: draws / 2 * subsampling.amplification(e, 1 / rows)[0])
    must_fail(check, lambda e, rows, draws: subsampling.amplification(e, min(1.0, draws / rows))[0])


@claim("T-19-minibatch")
def test_advanced_composition_of_sampled_steps_everywhere():
    """One pass, 1/r = 100 steps, u = r (e^eps - 1), delta' = exp(-50 y^2): times r."""

    def composed(u, y):
        return composition.advanced(np.log1p(u), 100, np.exp(-50 * y * y), lambda e: e**2 / 2) / 100

    def stated(u, y):
        return (
            subsampling.minibatch_epsilon(np.log1p(100 * u), 0.01, 1.0, np.exp(-50 * y * y)) / 100
        )

    for_all(
        r"$y\ln(1 + u) + \frac12\ln(1 + u)^2 \le yu + \frac12u^2$, $u = r(e^\eps - 1)$",
        (composed, lambda u, y: y * log1p(u) + log1p(u) ** 2 / 2),
        (stated, lambda u, y: y * u + u * u / 2),
        {"u": (0, 100), "y": (0.1, 3)},
        touch=(0, 0),
        too_low=[lambda u, y: 0.9 * y * u + u * u / 2, lambda u, y: y * u + u * u / 3],
    )


def printed_minibatches(epsilon, rate, passes, beta):
    """eps sqrt(2 k r log(1/beta)) + 2 k r eps^2, as the source prints it: wrong in general."""
    volume = rate * passes
    return epsilon * np.sqrt(2 * volume * np.log(1 / beta)) + 2 * volume * epsilon**2


@claim(
    "T-19-minibatch",
    of=lambda k, delta, beta: k * delta + beta,
    wrong=[lambda k, delta, beta: beta, lambda k, delta, beta: 0.9 * k * delta + beta],
)
def test_minibatches_of_approximate_steps_fail_with_k_delta_and_beta(total):
    """k/r rounds of the worst (epsilon, delta)-DP step, exactly: k delta + beta at eps'."""
    cases = ((0.5, 0.1, 40, 1e-6), (1.0, 0.02, 100, 1e-8), (0.1, 1.0, 25, 1e-4))
    for epsilon, rate, steps, delta in cases:
        step = dp.finite(*subsampling.subsampled_dominating_pair(epsilon, rate, delta))
        run, passes = step.compose(steps), steps * rate
        for beta in (1e-3, 1e-6, 1e-9):
            most = subsampling.minibatch_epsilon(epsilon, rate, passes, beta)
            at_most(run.delta(most), total(passes, delta, beta))


@claim("T-19-minibatch")
def test_the_counterexample_to_the_printed_minibatches():
    rate, n = 0.01, 100
    # any two of the three laws of `substitution_pair` are epsilon-indistinguishable
    for e in (0.01, 0.9, 3.0):
        a, b = subsampling.substitution_pair(e, 1.0)
        r = subsampling.substitution_pair(e, 0.0)[0]
        equal(max(dp.max_divergence(u, v) for u, v in permutations((a, b, r), 2)), e, rtol=1e-10)
        equal(a, b[[1, 0, 2]])  # the two swap a pair of outcomes
    for epsilon, beta in ((0.9, 1e-30), (0.999, 1e-20)):
        printed = printed_minibatches(epsilon, rate, 1, beta)
        run = dp.finite(*amplification_pair(epsilon, rate)).compose(n)
        exact, delta = run.epsilon(beta), run.delta(printed)
        with mpmath.workdps(60):  # again, from a binomial law
            other = 1 / (1 + mpmath.exp(epsilon))
            likely = other + mpmath.mpf(rate) * mpmath.expm1(epsilon) * other
            p, q = (
                [mpmath.binomial(n, i) * c**i * (1 - c) ** (n - i) for i in range(n + 1)]
                for c in (likely, other)
            )
            excess = (a - mpmath.exp(printed) * b for a, b in zip(p, q, strict=True))
            equal(delta, float(sum(max(0, gap) for gap in excess)), rtol=1e-9)
        assert exact > printed and delta > beta
        slip(
            "T-19-minibatch",
            f"eps = {epsilon}, r = 0.01, k = 1, beta = {beta:.0e}: printed {printed:.4f}; an "
            f"eps-DP mechanism whose 100 minibatches need {exact:.4f} (at {printed:.4f} its "
            f"delta is {delta:.2e})",
        )


def three_laws(rng, count, outcomes=4):
    """A, B, R and the least epsilon at which any two of them are indistinguishable."""
    laws = list(random_table(rng, "abr", count, outcomes).values())
    pairs = [(a, b) for a, b in product(laws, repeat=2) if a is not b]
    return *laws, np.max([dp.max_divergence(a, b) for a, b in pairs], axis=0), pairs


@pytest.mark.slow
@claim(
    "X-subsampled-pair",
    of=subsampling.subsampled_dominating_pair,
    wrong=[
        lambda e, r, d=0.0: subsampling.subsampled_dominating_pair(0.98 * e, r, d),
        lambda e, r, d=0.0: amplification_pair(e, r, d),
    ],
)
def test_one_pair_dominates_every_subsampled_mechanism_and_its_compositions(pair, rng):
    def outer(u, v):
        return np.multiply.outer(u, v).ravel()

    for rate in (0.02, 0.3, 0.9, 1.0):
        a, b, r, pure, pairs = three_laws(rng, 60)
        epsilon = pure * rng.uniform(0.3, 1.0, pure.shape)
        delta = np.max([dp.hockey_stick(p, q, epsilon) for p, q in pairs], axis=0)
        p, q = rate * a + (1 - rate) * r, rate * b + (1 - rate) * r
        worst_of = [pair(e, rate, d) for e, d in zip(epsilon.tolist(), delta.tolist(), strict=True)]
        # rounds i and i + 1 one after the other: different mechanisms, one target
        top = [pair(max(epsilon[i : i + 2]), rate, max(delta[i : i + 2])) for i in range(59)]
        for t in (-1.0, -0.1, -0.01, 0.0, 0.003, 0.05, 0.4, 1.5):
            bound = [dp.hockey_stick(*laws, t) for laws in worst_of]
            at_most(dp.hockey_stick(p, q, t), bound, atol=1e-15)
            two = (np.array([outer(*both) for both in pairwise(laws)]) for laws in (p, q))
            bound = [dp.hockey_stick(outer(x, x), outer(y, y), t) for x, y in top]
            at_most(dp.hockey_stick(*two, t), bound, atol=1e-15)
    # the curve is the one in the docstring, and T-19's point lies on it
    for epsilon, rate, delta in ((0.9, 0.01, 0.0), (2.0, 0.4, 1e-3), (0.1, 1.0, 0.1)):
        coin, laws = dp.dominating_pair(epsilon, delta), pair(epsilon, rate, delta)
        t = np.linspace(0, subsampling.amplification(epsilon, rate)[0] * 1.2, 50)
        before = np.log1p(np.expm1(t) / rate)
        curve = rate * dp.hockey_stick(*coin, before)
        equal(dp.hockey_stick(*laws, t), curve, rtol=1e-11, atol=1e-16)
        equal(laws[0].sum(), 1.0)
        holds(laws[0] >= 0)


@claim(
    "T-clipping",
    of=dp.clip_rows,
    wrong=[lambda y, bound: y, lambda y, bound: dp.clip_rows(y, bound) * 1.01],
)
def test_clipping_bounds_any_two_inputs(clip, rng):
    for d in (1, 2, 30):
        scale = np.exp(rng.uniform(-8, 8, (2, 2000, 1)))
        y, z = rng.standard_normal((2, 2000, d)) * scale
        for bound in (0.01, 1.0, 50.0):
            a, b = clip(y, bound), clip(z, bound)
            size = np.linalg.norm(y, axis=1, keepdims=True)
            equal(a, y / np.maximum(1, size / bound), rtol=1e-12)
            at_most(np.linalg.norm(a, axis=1), bound)
            apart = np.linalg.norm(a - b, axis=1)
            at_most(apart, np.minimum(2 * bound, np.linalg.norm(y - z, axis=1)), rtol=1e-12)
            # nearest point of the ball: no other point of it is nearer
            other = clip(rng.standard_normal((2000, d)) * bound, bound)
            at_most(np.linalg.norm(y - a, axis=1), np.linalg.norm(y - other, axis=1))
    e = np.array([[5.0, 0.0]])
    equal(np.linalg.norm(clip(e, 1.0) - clip(-e, 1.0)), 2.0)


@claim(
    "T-dpsgd",
    of=subsampling.clipped_sum,
    wrong=[lambda g, clip: g.sum(0), lambda g, clip: dp.clip_rows(g.sum(0).ravel(), clip)],
)
def test_a_row_moves_a_clipped_sum(clipped_sum, rng):
    for _ in range(300):
        clip = np.exp(rng.uniform(-3, 3))
        gradients = rng.standard_normal((6, 3, 2)) * np.exp(rng.uniform(-4, 4, (6, 1, 1)))
        full = clipped_sum(gradients, clip)
        others = [clipped_sum(np.delete(gradients, i, 0), clip) for i in range(6)]
        at_most([np.linalg.norm(full - other) for other in others], clip)
    # attained, and twice that by a replacement
    big = np.array([[[9.0, 0.0]], [[0.0, 0.0]]])
    equal(np.linalg.norm(clipped_sum(big, 2.0) - clipped_sum(big[1:], 2.0)), 2.0)
    equal(np.linalg.norm(clipped_sum(big[:1], 2.0) - clipped_sum(-big[:1], 2.0)), 4.0)


@claim("T-dpsgd")
def test_poisson_gaussian_steps_are_dominated_and_attain(rng):
    """One step of DP-SGD in one dimension, others' gradients any: mixtures over the batches."""
    y, width = np.linspace(-12, 14, 2601, retstep=True)
    t, taken = np.array([0.01, 0.1, 0.5, 1.0]), np.array(list(product((0, 1), repeat=4)))
    others, mine = rng.uniform(-1, 1, (40, 4)), rng.uniform(-1, 1, (40, 1))
    others[0], mine[0] = 0.0, 1.0  # the attained values

    def stick(a, b):
        return np.maximum(a - np.exp(t)[:, None, None] * b, 0).sum(-1) * width

    for sigma, rate in ((0.8, 0.1), (1.5, 0.4)):
        weight = (rate**taken * (1 - rate) ** (1 - taken)).prod(1)
        centre = others @ taken.T
        q, moved = (weight @ norm.pdf(y, (centre + m)[..., None], sigma) for m in (0, mine))
        p, bound = rate * moved + (1 - rate) * q, dp.subsample(dp.gaussian(sigma), rate).delta(t)
        at_most([stick(p, q), stick(q, p)], bound[:, None], atol=3e-6)
        equal(stick(p, q)[:, 0], bound, rtol=1e-3, atol=3e-6)


@claim("T-dpsgd")
def test_dp_sgd_draws_what_it_says_and_costs_what_it_is_charged(rng):
    """The same seed, and the step of the page, with rate, noise and their loss as stated."""
    x, y, start = rng.normal(size=(40, 2)), rng.choice([-1, 1], 40), np.array([0.3, -0.2])
    epsilon = np.array([0.0, 0.3, 1.0])

    def stated(given, rng):
        rate, sigma, steps = given
        theta = start
        for _ in range(3):
            batch = rng.random(40) < rate
            noise = rng.normal(0.0, sigma * 0.7, 2)
            total = subsampling.logistic_clipped_sum(theta, x[batch], y[batch], 0.7)
            theta = theta - 0.4 / 11 * (total + noise)
        loss = dp.subsample(dp.gaussian(sigma), rate).compose(steps)
        return np.append(theta, loss.delta(epsilon))

    def trained(rng):
        run = subsampling.dp_sgd(
            x, y, start, rate=0.3, sigma=1.5, clip=0.7, steps=3, batch_size=11, learning_rate=0.4,
            gradient_sum=subsampling.logistic_clipped_sum, rng=rng,
        )  # fmt: skip
        return np.append(run.theta, run.loss.delta(epsilon))

    same_draws(trained, stated, (0.3, 1.5, 3), seeds=30)
    for wrong in ((0.315, 1.5, 3), (0.3, 1.515, 3), (0.3, 1.5, 4)):
        must_fail(same_draws, trained, stated, wrong)


@claim("T-dpsgd", of=lambda rate: rate, wrong=[lambda rate: 1.001 * rate])
def test_the_loss_of_a_run_agrees_with_dp_accounting(rate):
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    run = subsampling.dp_sgd(
        np.zeros((0, 2)), [], np.zeros(2), rate=rate(0.25), sigma=9.48, steps=100, batch_size=1,
        learning_rate=1, gradient_sum=subsampling.logistic_clipped_sum,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    step = dp_accounting.PoissonSampledDpEvent(0.25, dp_accounting.GaussianDpEvent(9.48))
    theirs = PLDAccountant().compose(dp_accounting.SelfComposedDpEvent(step, 100))
    for delta in (1e-3, 1e-5, 1e-8):
        upper = theirs.get_epsilon(delta)  # rounded up, to its grid of 1e-4
        ours = run.loss.epsilon(delta)
        at_most(ours, upper)
        equal(ours, upper, rtol=5e-4)


@claim("T-dpsgd")
def test_privacy_of_the_printed_step():
    def printed_step(gradients, clip, learning_rate):
        return -learning_rate * dp.clip_rows(gradients.mean(0)[None], clip / 2)[0]

    n, clip = 50, 1.0
    data = np.zeros((n, 2))
    one, two = data.copy(), data.copy()
    one[0, 0], two[0, 0] = 1000.0, -1000.0
    for learning_rate in (0.1, 1.0, 2.0):
        a, b = (printed_step(x, clip, learning_rate) for x in (one, two))
        equal(np.linalg.norm(a - b), learning_rate * clip)
    a, b = (subsampling.clipped_sum(x, clip) for x in (one, two))
    each = np.linalg.norm(a - b) / n
    equal(each, 2 * clip / n)
    cost = {a: dp.gaussian(1 / a).epsilon(1e-5) for a in (0.1, 1.0, 2.0)}
    assert cost[0.1] < cost[1.0] / 9 < cost[2.0]
    slip(
        "T-dpsgd",
        f"sigma = 1, delta = 1e-5, one full-batch step as printed: eps = {cost[0.1]:.3f}, "
        f"{cost[1.0]:.3f}, {cost[2.0]:.3f} with learning rates 0.1, 1, 2",
    )
    slip(
        "T-dpsgd",
        f"50 examples, C = 1: replacing one moves the clipped average by {clip:g}, "
        f"the average of clipped gradients by {each:g}",
    )
