"""The claims of the chapter `pure-dp`."""

from functools import reduce
from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom, laplace

import dpnotes as dp
from dpnotes.chapters import pure_dp
from evidence import at_most, claim, equal, holds, must_fail, slip
from strategies import close_laws, events


def histogram(rows, universe):
    return (np.asarray(rows)[..., None] == np.arange(universe)).sum(-2)


@claim("T-def-mechanism")
def test_the_two_adjacencies(rng):
    # add/remove by its words (some row of the longer list can be deleted so that, in some order,
    # the shorter one is left) if and only if the histograms are at l1 distance 1
    def added(longer, shorter):
        rest = (longer[:i] + longer[i + 1 :] for i in range(len(longer)))
        return any(sorted(r) == sorted(shorter) for r in rest)

    pairs = []
    for _ in range(4000):  # another row less or more, up to three times, in another order
        x = rng.integers(0, 3, rng.integers(1, 6)).tolist()
        y = x[rng.integers(0, 2) :] + rng.integers(0, 3, rng.integers(0, 3)).tolist()
        pairs.append((x, rng.permutation(y).astype(int).tolist()))
    by_words = np.array([added(x, y) or added(y, x) for x, y in pairs])
    assert 0.2 < by_words.mean() < 0.8
    distance = np.array([np.abs(histogram(x, 3) - histogram(y, 3)).sum() for x, y in pairs])

    def check(near):
        holds((near == 1) == by_words)

    check(distance)
    must_fail(check, distance / 2)  # replacing a row is not a neighbour here
    must_fail(check, np.array([abs(len(x) - len(y)) for x, y in pairs]))


def random_laws(rng, count, size, zeros=0.0):
    """Two arrays of `count` laws; a share `zeros` of the outcomes has probability zero."""
    laws = rng.dirichlet(np.full(size, 0.7), (2, count)) + 1e-6
    laws[..., 1:] *= rng.random((2, count, size - 1)) >= zeros
    return laws / laws.sum(-1, keepdims=True)


@claim("T-def-pure-dp", "S-pure-ratio")
def test_all_events_and_single_outcomes_give_the_same_epsilon(rng):
    sets = events(6)[1:]

    def check(divergence, zeros):
        p, q = random_laws(rng, 400, 6, zeros)
        over, under = p @ sets.T, q @ sets.T
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(over > 0, np.log(over) - np.log(under), -np.inf)
        epsilon = divergence(p, q)
        equal(epsilon, ratio.max(1), rtol=1e-9, atol=1e-12)
        finite = np.isfinite(epsilon)
        at_most(over[finite], np.exp(epsilon[finite, None]) * under[finite], rtol=1e-9)

    check(dp.max_divergence, 0.0)
    check(dp.max_divergence, 0.1)
    must_fail(check, dp.kl, 0.0)
    must_fail(check, lambda p, q: 0.99 * dp.max_divergence(p, q), 0.0)
    rows = [0, 1, 1]
    outputs = np.bincount(rows).size
    slip(
        "T-def-pure-dp",
        f"the histogram of {len(rows)} rows in {outputs} bins has outputs in R^{outputs}, not in"
        f" R^{len(rows)}",
    )


def name_and_shame(rows):
    """Laws of the published row: the old row 0, the new row 0, rows 1 to rows-1."""
    rest = np.full(rows - 1, 1 / rows)
    return np.r_[1 / rows, 0.0, rest], np.r_[0.0, 1 / rows, rest]


@claim("S-pure-ratio")
def test_the_printed_ratio_names_the_set_of_all_outputs():
    # the lecture prints the set of all outcomes in the ratio: that holds for any mechanism
    for rows in (2, 10, 1000):
        p, q = name_and_shame(rows)
        equal(np.log(p.sum() / q.sum()), 0.0, atol=1e-12)
        holds(np.array([dp.max_divergence(p, q) == np.inf]))
    ratio = abs(np.log(p.sum() / q.sum()))
    slip(
        "S-pure-ratio",
        f"publishing one random row of 1000 has the log ratio {ratio:.0f} on the set of all "
        f"outputs, but {dp.max_divergence(p, q)} on the set that holds the exposed row",
    )


@claim("X-odds", of=1.0, wrong=[0.95])
def test_no_event_moves_the_odds_by_more_than_the_factor(factor, rng):
    sets = events(5)[1:]
    for epsilon in (0.01, 0.5, 3.0):
        p, q = close_laws(rng, epsilon, size=5, count=400)
        equal(dp.max_divergence(p, q), epsilon, rtol=1e-9)
        prior = rng.uniform(0.01, 0.99, (400, 1))
        posterior = prior * (p @ sets.T)
        posterior = posterior / (posterior + (1 - prior) * (q @ sets.T))
        moved = posterior / (1 - posterior) / (prior / (1 - prior))
        at_most(np.abs(np.log(moved)), factor * epsilon, rtol=1e-6, atol=1e-9)
        equal(np.log(moved).max(1), epsilon, rtol=1e-6, atol=1e-9)


@claim("X-post-processing", "S-def-tv-stable", of=True, wrong=[False])
def test_a_map_of_the_output_never_raises_epsilon_or_delta(same, rng):
    """Unless it looks at the data."""
    p, q = random_laws(rng, 3000, 6)
    kernel = rng.dirichlet(np.full(4, 0.3), (3000, 6))
    other = kernel if same else rng.dirichlet(np.full(4, 0.3), (3000, 6))
    after = np.einsum("ni,nij->nj", p, kernel), np.einsum("ni,nij->nj", q, other)
    at_most(dp.max_divergence(*after), dp.max_divergence(p, q), atol=1e-12)
    for epsilon in (0.0, 0.5, 2.0):
        at_most(dp.hockey_stick(*after, epsilon), dp.hockey_stick(p, q, epsilon), atol=1e-12)


def answers_law(data, truth, other=None):
    """Law of all answers to each row of bits: 1 for a 1 with `truth`, 1 for a 0 with `other`."""
    answers = np.array(list(product([0, 1], repeat=data.shape[-1])))
    yes = np.where(data == 1, truth, 1 - truth if other is None else other)
    return np.where(answers == 1, yes[:, None, :], 1 - yes[:, None, :]).prod(-1)


@claim("X-group-privacy", of=lambda k: k, wrong=[lambda k: np.maximum(k - 1, 0)])
def test_k_steps_cost_k_epsilon(cost):
    for rows, epsilon in product((1, 2, 5), (0.1, 1.0, 2.5)):
        data = np.array(list(product([0, 1], repeat=rows)))
        law = answers_law(data, np.exp(epsilon) / (1 + np.exp(epsilon)))
        steps = (data[:, None] != data).sum(-1)
        spent = dp.max_divergence(law[:, None], law[None])
        at_most(spent, cost(steps) * epsilon, atol=1e-12)
        equal(spent, steps * epsilon, rtol=1e-9, atol=1e-12)


@claim("X-group-privacy")
def test_replacing_costs_twice_adding(rng):
    for epsilon in (0.1, 1.0):  # remove one row, add another: the chain p, q, r
        p, q = close_laws(rng, epsilon, 4, 500)
        lift = np.exp(epsilon * rng.uniform(-1, 1, (500, 4)) / 2)
        r = q * lift / (q * lift).sum(-1, keepdims=True)
        at_most(dp.max_divergence(p, r), 2 * epsilon, rtol=1e-9)


@claim(
    "F-randomized-response",
    of=lambda t, h: np.log1p(t / ((1 - t) * np.minimum(h, 1 - h))),
    wrong=[lambda t, h: np.log1p(t / ((1 - t) * h))],  # only the answer yes
)
def test_the_coins_give_exactly_their_epsilon(epsilon, rng):
    truth, heads = rng.uniform(0.01, 0.99, (2, 4000))
    one = np.stack([truth + (1 - truth) * heads, (1 - truth) * (1 - heads)], -1)
    none = np.stack([(1 - truth) * heads, 1 - (1 - truth) * heads], -1)
    worst = np.maximum(dp.max_divergence(one, none), dp.max_divergence(none, one))
    equal(epsilon(truth, heads), worst, rtol=1e-9)
    flip = np.stack([truth, 1 - truth], -1)
    flipped = dp.max_divergence(flip, flip[:, ::-1])
    equal(flipped, np.abs(np.log(truth / (1 - truth))), rtol=1e-9)
    equal(epsilon(2 * np.maximum(truth, 1 - truth) - 1, 0.5), flipped, rtol=1e-9)


@claim(
    "F-randomized-response",
    of=pure_dp.randomized_response_error,
    wrong=[lambda epsilon, n: 1 / (epsilon * np.sqrt(n))],
)
def test_the_estimate_is_unbiased_with_the_stated_spread(error):
    answers = np.array(list(product([0, 1], repeat=6)))
    data = answers
    for epsilon in (0.05, 0.5, 1.0, np.log(3), 4.0):
        law = answers_law(data, np.exp(epsilon) / (1 + np.exp(epsilon)))
        estimate = dp.randomized_response_estimate(answers, epsilon)
        equal(law @ estimate, data.mean(-1), rtol=1e-9, atol=1e-9)
        spread = np.sqrt(law @ estimate**2 - (law @ estimate) ** 2)
        equal(spread, error(epsilon, 6), rtol=1e-7)
    equal(pure_dp.randomized_response_error(np.log(3), 4), np.sqrt(3) / 4)  # two fair coins


@claim(
    "X-many-answers",
    of=(pure_dp.many_answers, pure_dp.many_answers_error),
    wrong=[
        (lambda k, e: pure_dp.many_answers(k, e + 0.01), pure_dp.many_answers_error),
        (pure_dp.many_answers, lambda share, k, e, n: pure_dp.many_answers_error(0, k, e, n)),
        (pure_dp.many_answers, lambda share, k, e, n: pure_dp.randomized_response_error(e, n)),
    ],
)
def test_many_answers_cost_epsilon_and_have_the_stated_spread(law_of, error):
    for k, epsilon in product((2, 3, 4), (0.1, 1.0, 3.0)):
        law, answers = law_of(k, epsilon), np.array(list(product(range(k), repeat=4)))
        equal(law.sum(1), 1.0)
        equal(dp.max_divergence(law[:, None], law[None]).max(), epsilon, rtol=1e-9)
        lie = 1 / (np.exp(epsilon) + k - 1)
        shares = ((answers == 0).mean(1) - lie) / (np.exp(epsilon) * lie - lie)
        for truths in answers:  # all data of four people, all that they may say
            chance = law[truths[None], answers].prod(1)
            share = (truths == 0).mean()
            equal(chance @ shares, share, rtol=1e-9, atol=1e-9)
            spread = chance @ (shares - share) ** 2
            equal(spread, error(share, k, epsilon, 4) ** 2, rtol=1e-9)


@claim("X-many-answers", of=lambda e: 2 + np.exp([e / 2, e, 1.5 * e]).sum(), wrong=[np.exp])
def test_from_which_number_of_answers_on_bits_are_better(least):
    for epsilon in np.geomspace(0.05, 6, 40):
        bit = np.exp(epsilon / 2) / (1 + np.exp(epsilon / 2)) * np.array([1, np.exp(-epsilon / 2)])
        two = [np.outer(bit, bit[::-1]).ravel(), np.outer(bit[::-1], bit).ravel()]
        equal(dp.max_divergence(*two), epsilon, rtol=1e-9)  # the bits in which two truths differ
        k = np.arange(2, 20_000)
        bits = pure_dp.randomized_response_error(epsilon / 2, 7)
        whole = np.array([pure_dp.many_answers_error(0.0, int(one), epsilon, 7) for one in (2, 3)])
        whole = whole[0] ** 2 + (k - 2) * (whole[1] ** 2 - whole[0] ** 2)  # it is linear in k
        holds((bits**2 < whole) == (k > least(epsilon)))


@claim(
    "X-parallel",
    of=(np.max, lambda one: 2 * np.max(one), np.max),
    wrong=[
        (np.mean, lambda one: 2 * np.max(one), np.max),
        (np.max, np.max, np.max),
        (np.max, lambda one: 2 * np.max(one), np.mean),
    ],
)
def test_separate_parts_cost_the_largest_epsilon(added, replaced, placed, rng):
    """Random mechanisms on all datasets of up to four rows, of two kinds in each of two parts."""
    kept = [(a, b) for a, b in product(range(5), repeat=2)]  # how often each kind is there
    near = np.array([[abs(a - c) + abs(b - d) for c, d in kept] for a, b in kept])
    for _ in range(40):
        spread = np.exp(rng.uniform(-3, 1, (2, 1, 1)))
        law = [p / p.sum(-1, keepdims=True) for p in np.exp(spread * rng.normal(size=(2, 25, 3)))]
        apart = [dp.max_divergence(one[:, None], one[None]) for one in law]
        alone = np.array([loss[near == 1].max() for loss in apart])
        # all data: one histogram for each part; the loss of independent outputs is the sum
        loss = apart[0][:, None, :, None] + apart[1][None, :, None, :]
        steps = near[:, None, :, None] + near[None, :, None, :]
        rows = np.array([a + b for a, b in kept])
        rows = rows[:, None] + rows[None, :]
        same = rows[:, :, None, None] == rows[None, None]
        at_most(loss[steps == 1], added(alone))
        equal(loss[steps == 1].max(), added(alone))
        at_most(loss[(steps == 2) & same], replaced(alone))
        # parts fixed by places: two rows each, of two kinds
        pairs = list(product(range(2), repeat=2))
        moved = np.array([[(a != c) + (b != d) for c, d in pairs] for a, b in pairs])
        apart = [one[:4, :4] for one in apart]
        alone = np.array([part[moved == 1].max() for part in apart])
        loss = apart[0][:, None, :, None] + apart[1][None, :, None, :]
        steps = moved[:, None, :, None] + moved[None, :, None, :]
        at_most(loss[steps == 1], placed(alone))


@claim("X-parallel")
def test_a_histogram_attains_twice_the_largest_under_replace():
    for epsilon in (0.1, 1.0, 3.0):  # one row moves from one part to the other
        law = np.exp([[0.0, -epsilon], [-epsilon, 0.0]]) / (1 + np.exp(-epsilon))
        equal(dp.max_divergence(*law), epsilon)
        both = np.outer(law[0], law[1]).ravel(), np.outer(law[1], law[0]).ravel()
        equal(dp.max_divergence(*both), 2 * epsilon)


@claim(
    "X-capped",
    of=lambda epsilon, c: epsilon / c,
    wrong=[lambda epsilon, c: epsilon, lambda epsilon, c: epsilon / c**0.5],
)
def test_a_person_with_many_rows_pays_for_each_that_is_kept(share, rng):
    """Four cells with counts, cut off at 0 and 3; what is kept of anybody is random."""
    values = np.arange(4)

    def law(counts, step):
        """Of the noisy counts of all cells together."""
        a = np.exp(-step)
        inner = (1 - a) / (1 + a) * a ** np.abs(values - counts[:, None])
        ends = np.isin(values, (0, 3))
        cells = np.where(ends, a ** np.abs(values - counts[:, None]) / (1 + a), inner)
        return reduce(np.multiply.outer, cells).ravel()

    for c, epsilon in product((1, 2, 3), (0.3, 1.0, 3.0)):
        step = share(epsilon, c)
        for _ in range(30):
            others = rng.integers(0, 3, (rng.integers(1, 4), 4))
            hers = rng.permutation(4)[: rng.integers(c, 5)]
            kept = [np.isin(np.arange(4), some) for some in combinations(hers, c)]
            without = np.mean([law(x, step) for x in others], axis=0)
            with_her = np.mean([law(x + more, step) for x in others for more in kept], axis=0)
            both = dp.max_divergence(with_her, without), dp.max_divergence(without, with_her)
            at_most(both, epsilon)
        alone = law(np.zeros(4), step), law(np.arange(4) < c, step)
        equal(dp.max_divergence(*alone), epsilon)


@claim("X-private-variance", of=1.0, wrong=[0.9, 1.1])
def test_a_variance_moves_by_the_squared_range_over_n(factor, rng):
    for n in (2, 3, 5, 20):
        a, length = rng.normal(size=(2000, 1)), rng.exponential(size=(2000, 1))
        x = a + length * rng.random((2000, n)).round(rng.integers(3))
        other = x.copy()
        other[:, :1] = a + length * rng.random((2000, 1))
        x[0], other[0] = a[0], [*(a[0] + length[0]), *np.repeat(a[0], n - 1)]
        moved = np.abs(x.var(1, ddof=1) - other.var(1, ddof=1)) / (length[:, 0] ** 2 / n)
        at_most(moved, factor)
        equal(moved.max(), factor, rtol=1e-9)


@claim(
    "A-hs-divergence",
    of=dp.hockey_stick,
    wrong=[lambda p, q, e: np.abs(p - np.exp(e) * q).sum(-1) / 2],
)
def test_hockey_stick_is_the_best_event(divergence, rng):
    sets = events(6)
    for epsilon in (-1.0, 0.0, 0.3, 2.0):
        p, q = random_laws(rng, 800, 6, zeros=0.1)
        best = (p @ sets.T - np.exp(epsilon) * (q @ sets.T)).max(1)
        equal(divergence(p, q, epsilon), best, rtol=1e-9, atol=1e-14)
    equal(dp.total_variation(p, q), np.abs(p @ sets.T - q @ sets.T).max(1), atol=1e-14)
    equal(dp.hockey_stick(p, q, 0.0), dp.total_variation(p, q), atol=1e-14)


@claim("A-hs-divergence", of=lambda m, e: 1 / m, wrong=[lambda m, e: np.exp(-e) / m])
def test_total_variation_allows_exposure_or_forbids_everything(value):
    rows, epsilon = np.arange(2, 60), np.array([0.0, 1.0, 10.0, 1000.0])
    for m in rows:
        p, q = name_and_shame(m)
        equal(dp.total_variation(p, q), 1 / m)
        equal(dp.hockey_stick(p, q, epsilon), value(m, epsilon), rtol=1e-9)
        equal(dp.max_divergence(p, q), np.inf)
    rng = np.random.default_rng(12)  # any mechanism on Z^m: at most by eta a row
    data = np.array(list(product(range(3), repeat=4)))
    steps = (data[:, None] != data).sum(-1)
    for concentration in (0.2, 5.0):
        law = rng.dirichlet(np.full(5, concentration), len(data))
        apart = dp.total_variation(law[:, None], law[None])
        at_most(apart, apart[steps == 1].max() * steps, atol=1e-12)
    data = np.array(list(product([0, 1], repeat=4)))  # attained: publish one random row
    law = np.concatenate([data / 4, (1 - data) / 4], -1)
    steps = (data[:, None] != data).sum(-1)
    equal(dp.total_variation(law[:, None], law[None]), steps / 4, atol=1e-15)


@claim(
    "F-max-divergence",
    of=dp.approximate_max_divergence,
    wrong=[lambda p, q, d: dp.max_divergence(p, q) + np.log1p(-d)],
)
def test_approximate_max_divergence(divergence, rng):
    sets = events(6)
    for delta, zeros in product((0.0, 1e-3, 0.1, 0.5, 0.95), (0.0, 0.15)):
        p, q = random_laws(rng, 300, 6, zeros)
        over, under = p @ sets.T - delta, q @ sets.T
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.where(over > 1e-15, np.log(over) - np.log(under), -np.inf).max(1)
        value = divergence(p, q, delta)
        equal(value, best, rtol=1e-9, atol=1e-9)
        finite = np.isfinite(value)
        equal(dp.hockey_stick(p[finite], q[finite], value[finite]), delta, rtol=1e-7, atol=1e-12)
        at_most(np.log1p(-delta), value)
    for m in (2, 10, 1000):  # name and shame
        p, q = name_and_shame(m)
        holds(np.array([dp.approximate_max_divergence(p, q, 0.99 / m) == np.inf]))
    p, q = random_laws(rng, 3000, 6)
    equal(dp.approximate_max_divergence(p, q, 0.0), dp.max_divergence(p, q), rtol=1e-9)


@claim("T-def-sensitivity")
def test_sensitivity_over_neighbours_is_the_lipschitz_constant_and_norms_compare(rng):
    x = np.array(list(product(range(3), repeat=3)))
    distance = (x[:, None] != x).sum(-1)
    pairs = distance > 0

    def change(f, order):
        return np.linalg.norm(f[:, None] - f, order, axis=-1)

    def check(f, order, slack):
        local = change(f, order)[distance == 1].max()
        at_most(change(f, order)[pairs], slack * local * distance[pairs])
        equal((change(f, order)[pairs] / distance[pairs]).max(), local)
        return local

    for _ in range(30):
        f = rng.normal(size=(len(x), 4)) * rng.exponential(size=4)
        l1, l2 = check(f, 1, 1.0), check(f, 2, 1.0)
        at_most([l2, l1], [l1, 2 * l2])
        equal(check(f[:, :1], 1, 1.0), check(f[:, :1], 2, 1.0))
    must_fail(check, f, 1, 0.9)


@claim(
    "U-sensitivity-examples",
    of=lambda moved, norm: moved ** (1 / norm),
    wrong=[lambda moved, norm: moved, lambda moved, norm: (moved / 2) ** (1 / norm)],
)
def test_vote_and_histogram_sensitivities_by_search_over_neighbours(sensitivity):
    for k in (1, 2, 3):
        ballots = np.array([b for b in product((0, 1), repeat=2 * k) if sum(b) <= k])
        replace = (ballots[:, None] - ballots).reshape(-1, 2 * k)
        for norm in (1, 2):
            for moves, moved in ((ballots, k), (replace, 2 * k)):
                norms = np.linalg.norm(moves, norm, axis=1)
                at_most(norms, sensitivity(moved, norm))
                equal(norms.max(), sensitivity(moved, norm))
    for norm in (1, 2):
        bins = np.eye(4)
        equal(np.linalg.norm(bins, norm, axis=1).max(), sensitivity(1, norm))
        moved = [np.linalg.norm(a - b, norm) for a, b in combinations(bins, 2)]
        equal(moved, sensitivity(2, norm))


@claim("U-sensitivity-examples", of=np.sqrt(2), wrong=[1.4, 2.0])
def test_gram_sensitivities(limit, rng):
    for d in (2, 3, 8):
        u, v = rng.normal(size=(2, 4000, d))
        u, v = (w / np.linalg.norm(w, axis=1, keepdims=True) for w in (u, v))
        u, v = (w * rng.random((4000, 1)) ** 0.2 for w in (u, v))
        v[:50] = np.roll(np.eye(d)[rng.integers(d, size=50)], 1, axis=1)
        u[:50] = np.roll(v[:50], 1, axis=1)  # orthogonal unit vectors
        one = u[:, :, None] * u[:, None]
        two = one - v[:, :, None] * v[:, None]
        at_most(np.linalg.norm(one, axis=(1, 2)), 1.0)
        at_most(np.linalg.norm(two, axis=(1, 2)), limit)
        equal(np.linalg.norm(two, axis=(1, 2)).max(), limit)
        at_most(np.abs(one).sum((1, 2)), d)
        at_most(np.abs(two).sum((1, 2)), np.sqrt(2) * d)
        equal(np.abs(np.full((d, d), 1 / d)).sum(), d)
    turn = np.pi / 8  # the l1 bound under replace is attained for even d
    for half in (1, 2, 5):
        u = np.repeat([np.cos(turn), np.sin(turn)], half) / np.sqrt(half)
        v = np.repeat([-np.sin(turn), np.cos(turn)], half) / np.sqrt(half)
        equal(np.abs(np.outer(u, u) - np.outer(v, v)).sum(), np.sqrt(2) * 2 * half)


@claim("F-counting", of=1.0, wrong=[0.5])
def test_counts_move_by_at_most_one(sensitivity, rng):
    x = rng.integers(0, 6, (4000, 12))
    wanted = rng.random((4000, 6)) < 0.5
    count = np.take_along_axis(wanted, x, 1).sum(1)
    replaced = x.copy()
    replaced[np.arange(4000), rng.integers(12, size=4000)] = rng.integers(6, size=4000)
    moved = np.abs(np.take_along_axis(wanted, replaced, 1).sum(1) - count)
    removed = np.abs(np.take_along_axis(wanted, x[:, 1:], 1).sum(1) - count)
    for change in (moved, removed):
        at_most(change, sensitivity)
        equal(change.max(), sensitivity)


@claim("T-laplace", "F-3.6", of=(1, 1.0), wrong=[(2, 1), (np.inf, 1), (1, 0.99), (1, 1.01)])
def test_laplace_noise_of_scale_l1_sensitivity_over_epsilon_is_just_enough(norm, factor, rng):
    for k in (1, 2, 10):
        f, move = rng.normal(size=(2, 500, k)) * np.exp(rng.uniform(-5, 5, (500, 1)))
        g, epsilon = f + move, np.exp(rng.uniform(-5, 5, (500, 1)))
        b = factor * np.linalg.norm(move, norm, axis=1, keepdims=True) / epsilon
        y = f + b * rng.laplace(size=(20, 500, k)) * 3
        loss = ((np.abs(y - g) - np.abs(y - f)) / b).sum(-1)
        at_most(np.abs(loss), epsilon[:, 0], rtol=1e-9)
        far = f - b * np.sign(move)
        equal(((np.abs(far - g) - np.abs(far - f)) / b).sum(-1), epsilon[:, 0], rtol=1e-6)


def laplace_accuracy(beta, k, b):
    """What k Laplace errors of scale b all keep, but for probability beta."""
    return b * np.log(k / beta)


@claim(
    "F-3.8",
    of=laplace_accuracy,
    wrong=[
        lambda beta, k, b: laplace_accuracy(2 * beta / 2.01, k, b),
        lambda beta, k, b: laplace_accuracy(beta, k, b) * 1.01,
    ],
)
def test_accuracy_by_the_union_bound_and_exactly(accuracy, rng):
    sensitivity, epsilon = np.exp(rng.uniform(-5, 5, (2, 2000)))
    beta = np.exp(rng.uniform(-20, 0, 2000))
    b = sensitivity / epsilon
    for k in (1, 2, 100, 10**6):
        far = 2 * laplace.sf(accuracy(beta, k, b), scale=b)
        exact = -np.expm1(k * np.log1p(-np.minimum(far, 1 - 1e-16)))
        at_most(exact, beta, rtol=1e-9)
        stated = -np.expm1(k * np.log1p(-np.minimum(beta / k, 1 - 1e-16)))
        equal(exact, stated, rtol=1e-7)  # 1 - (1 - beta/k)^k

    def quantile(error):  # exceeded by the largest of k with probability beta, exactly
        for k in (1, 7, 10_000):
            far = 2 * laplace.sf(error(beta, k, b), scale=b)
            rare = beta < 0.9
            equal(-np.expm1(k * np.log1p(-far[rare])), beta[rare], rtol=1e-6)
            at_most(error(beta, k, b), laplace_accuracy(beta, k, b), atol=1e-9)

    quantile(lambda beta, k, b: -b * np.log(-np.expm1(np.log1p(-beta) / k)))
    must_fail(quantile, laplace_accuracy)


@pytest.mark.slow
@claim("F-example-3.3")
def test_ten_thousand_first_names(rng):
    # the number of runs beyond the bound is binomial; false alarms have probability 6e-7
    runs, names = 3000, 10_000
    some = (dp.laplace_mechanism(np.zeros((500, names)), rng=rng) for _ in range(runs // 500))
    errors = np.concatenate([np.abs(noise).max(1) for noise in some])
    exact = 1 - (1 - 0.05 / names) ** names
    few, many = binom.ppf([2e-7, 1 - 2e-7], runs, exact)

    def check(entries):
        beyond = (errors >= laplace_accuracy(0.05, entries, 1.0)).sum()
        holds(np.array([few <= beyond <= many]), f"{beyond} of {runs} runs beyond the bound")
        holds(np.array([beyond <= binom.ppf(1 - 2e-7, runs, 0.05)]))

    check(names)
    must_fail(check, 1000)
    equal(round(laplace_accuracy(0.05, names, 1.0), 1), 12.2)
    printed = laplace_accuracy(0.05, 1000, 1.0)
    share = (errors >= printed).mean()
    holds(share > 0.3)
    slip(
        "F-example-3.3",
        f"k = 1000 gives ln(1000/0.05) = {printed:.2f}, not 12.2; some of 10000 names is "
        f"further off in {share:.0%} of {runs} runs, for 12.2 in {(errors >= 12.20607).mean():.1%}",
    )


def test_edges_and_extremes():
    equal(pure_dp.randomized_response_error(1e-8), 1e8)
    with np.errstate(all="raise"):  # too small for a float is 0, whatever the caller has set
        equal(pure_dp.randomized_response_error(3000.0), 0.0)
