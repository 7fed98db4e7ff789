"""The claims of the chapter `correlated-noise`: brute force over patterns, batches and outputs."""

from itertools import combinations, pairwise, product

import mpmath
import numpy as np
from scipy.stats import norm

import dpnotes as dp
from dpnotes.chapters import correlated_noise as noise
from dpnotes.chapters import in_practice
from evidence import at_most, claim, equal, holds


def longest_column(strategy):
    return np.linalg.norm(strategy, axis=0).max()


def error_of_sums(strategy, decoder):
    """Largest root mean square, at a noise of one longest column."""
    return longest_column(strategy) * np.linalg.norm(decoder, axis=1).max()


def strategies(rng, count):
    """Random matrices with independent columns: tall ones, triangular ones, signs and none."""
    for number in range(count):
        n = int(rng.integers(1, 9))
        c = rng.normal(size=(n + int(rng.integers(0, 4)), n))
        yield [c, np.abs(c), np.tril(c[:n]) + 2 * np.eye(n)][number % 3]


@claim(
    "X-factorization",
    of=noise.largest_error,
    wrong=[
        lambda c: 0.999 * noise.largest_error(c),
        lambda c: np.linalg.norm(np.tri(c.shape[1]) @ np.linalg.pinv(c), axis=1).max(),
    ],
)
def test_the_best_decoder_has_the_shortest_rows(largest_error, rng):
    for c in strategies(rng, 300):
        n = c.shape[1]
        best = np.tri(n) @ np.linalg.pinv(c)
        equal(largest_error(c), error_of_sums(c, best), rtol=1e-9)
        # every decoder is the best one and rows that are orthogonal to the columns
        left = np.eye(len(c)) - c @ np.linalg.pinv(c)
        other = best + rng.normal(size=best.shape) @ left
        at_most(np.linalg.norm(best, axis=1), np.linalg.norm(other, axis=1))
        at_most(largest_error(c), noise.largest_error(c, other), rtol=1e-9)
    equal(largest_error(np.eye(1024)), 32.0)
    equal(noise.largest_error(np.tri(64), np.eye(64)), 8.0)


@claim("X-factorization")
def test_the_noise_of_the_sums_is_what_is_said(rng):
    """20,000 draws of B Z: each variance within 6.5 % but with probability 1e-8 each."""
    c = noise.best_banded(16, 4)
    draws = np.zeros((16, 20_000))
    stream = noise.NoiseStream(c, 1.5, 20_000, rng=rng)
    for step in range(16):
        draws[step] = stream.draw()
    found = draws.cumsum(axis=0).var(axis=1)
    rows = np.tri(16) @ np.linalg.inv(c)
    said = 1.5**2 * np.sum(rows**2, axis=1)
    at_most(np.abs(found / said - 1), 0.065)


def digits(t, base):
    return 0 if t == 0 else t % base + digits(t // base, base)


@claim(
    "X-tree",
    of=lambda n, b, levels: np.sqrt(levels),
    wrong=[
        lambda n, b, levels: levels,
        lambda n, b, levels: np.sqrt(levels + 1),
        lambda n, b, levels: np.sqrt(n),
    ],
)
def test_a_tree_counts_levels_and_digits(moved):
    for n, b in product((1, 2, 3, 7, 8, 9, 27, 64, 100), (2, 3, 4, 10)):
        c, decoder = noise.tree(n, b), noise.tree_decoder(n, b)
        levels = len(np.base_repr(n, b))
        equal(noise.sensitivity(c), moved(n, b, levels))
        equal(decoder @ c, np.tri(n))
        used = [digits(t, b) for t in range(1, n + 1)]
        equal(decoder.sum(axis=1), used)
        equal(noise.largest_error(c, decoder), np.sqrt(levels * max(used)))
        last = [np.flatnonzero(row)[-1] for row in c]  # when a block is complete
        holds(np.array([last[j] <= t for t, j in np.argwhere(decoder)]))
        h = levels - 1
        if n == b**h and h:
            equal(noise.largest_error(c, decoder), np.sqrt((b - 1) * h * (h + 1)))


@claim(
    "X-tree",
    of=lambda b, levels: np.sqrt((b**levels - 1) / (b - 1)),
    wrong=[lambda b, levels: levels, lambda b, levels: np.sqrt(levels)],
)
def test_a_spread_change_moves_a_tree_by_its_norm(spread):
    for b, levels in ((2, 2), (2, 5), (2, 8), (3, 4), (4, 2), (10, 3)):
        n = b ** (levels - 1)
        equal(np.linalg.norm(noise.tree(n, b), ord=2), spread(b, levels), rtol=1e-10)
        even = np.full(n, n**-0.5)
        equal(np.linalg.norm(noise.tree(n, b) @ even), spread(b, levels), rtol=1e-10)


def test_the_numbers_of_the_first_table():
    c = noise.tree(1024)
    found = [
        noise.largest_error(np.eye(1024)),
        noise.largest_error(c, noise.tree_decoder(1024)),
        noise.largest_error(c),
        noise.largest_error(noise.square_root(1024)),
    ]
    assert [f"{each:.2f}" for each in found] == ["32.00", "10.49", "4.44", "3.27"]


def coefficients(n):
    with mpmath.workdps(40):
        return [float(mpmath.binomial(2 * j, j) / mpmath.mpf(4) ** j) for j in range(n)]


@claim(
    "X-square-root",
    of=noise.square_root,
    wrong=[
        lambda n: np.tri(n) / np.sqrt(np.arange(1, n + 1))[:, None],
        lambda n: np.where(np.tri(n), 1 / (1.0 + np.subtract.outer(np.arange(n), np.arange(n))), 0),
    ],
)
def test_the_square_root_squares_to_the_prefix_sums(square_root):
    with np.errstate(divide="ignore"):
        for n in (1, 2, 3, 10, 200):
            root = square_root(n)
            equal(root @ root, np.tri(n), atol=1e-12)
            equal(root[:, 0], coefficients(n), rtol=1e-13)
            exact = np.sum(np.square(coefficients(n)))
            equal(noise.largest_error(root, root), exact)
            equal(noise.largest_error(root), exact, rtol=1e-10)


@claim(
    "X-square-root-error",
    of=(lambda n: 1 + (1 + np.log(n - 1)) / np.pi, (np.euler_gamma + 4 * np.log(2)) / np.pi),
    wrong=[
        (lambda n: (1 + np.log(n)) / np.pi, (np.euler_gamma + 4 * np.log(2)) / np.pi),
        (lambda n: 1 + (1 + np.log(n - 1)) / np.pi, 1.0),
    ],
)
def test_the_error_of_the_root_and_its_limit(bound, limit):
    j = np.arange(1, 1_000_000)
    squares = np.cumprod((2 * j - 1) / (2 * j)) ** 2
    at_most(1 / (np.pi * (j + 0.5)), squares, rtol=1e-9)
    at_most(squares, 1 / (np.pi * j), rtol=1e-9)
    errors = 1 + np.cumsum(squares)  # of n = 2, 3, ...
    at_most(errors, bound(j + 1))
    equal(errors[-1] - np.log(j[-1] + 1) / np.pi, limit, atol=1e-6)


@claim(
    "X-prefix-lower-bound",
    of=lambda n: np.sum(0.5 / np.sin((2 * np.arange(1, n + 1) - 1) * np.pi / (4 * n + 2))) / n,
    wrong=[
        lambda n: 1.01 * np.linalg.svd(np.tri(n), compute_uv=False).mean(),
        lambda n: np.log(n) / np.pi + 1.066,
    ],
)
def test_no_strategy_is_below_the_nuclear_norm(least, rng):
    for n in (1, 2, 5, 64):
        equal(least(n), np.linalg.svd(np.tri(n), compute_uv=False).mean(), rtol=1e-10)
        at_most(np.log(2 * n + 1) / np.pi, least(n))
    for c in [*strategies(rng, 200), noise.square_root(64), noise.tree(64)]:
        n = c.shape[1]
        rows = np.linalg.norm(np.tri(n) @ np.linalg.pinv(c), axis=1)
        mean = longest_column(c) * np.sqrt(np.mean(rows**2))
        at_most(least(n), mean, rtol=1e-9)
        at_most(mean, noise.largest_error(c), rtol=1e-9)
    # the optimum of the mean error is near: the square root is within 7 %
    root = noise.square_root(1024)
    mean = longest_column(root) * np.linalg.norm(root) / 32
    at_most(mean, 1.07 * least(1024))
    for n in (2, 10, 1000, 10**6):
        at_most(1 + (1 + np.log(n - 1)) / np.pi - np.log(2 * n + 1) / np.pi, 1.1)


def patterns(n, most, apart):
    for size in range(1, most + 1):
        for steps in combinations(range(n), size):
            if all(b - a >= apart for a, b in pairwise(steps)):
                yield list(steps)


def heaviest(overlaps, most, apart):
    return max(overlaps[np.ix_(s, s)].sum() for s in patterns(len(overlaps), most, apart)) ** 0.5


def small_case(rng, signs):
    n, apart = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    most = int(rng.integers(1, 2 + (n - 1) // apart))
    c = rng.normal(size=(n + int(rng.integers(0, 3)), n)) * (rng.random((1, n)) < 0.9)
    return (c if signs else np.abs(c)), most, apart


@claim(
    "X-participation",
    of=noise.sensitivity,
    wrong=[
        lambda c, most, apart: 0.9999 * noise.sensitivity(c, most, apart),
        lambda c, most, apart: np.sqrt(most) * noise.sensitivity(c),
        lambda c, most, apart: noise.sensitivity(c, most, 1),
        lambda c, most, apart: np.linalg.norm(c[:, :: max(1, apart)][:, :most].sum(axis=1)),
    ],
)
def test_sensitivity_is_brute_force_where_no_columns_oppose(sensitivity, rng):
    for _ in range(1000):
        c, most, apart = small_case(rng, signs=False)
        equal(sensitivity(c, most, apart), heaviest(c.T @ c, most, apart), rtol=1e-10)


@claim(
    "X-participation",
    of=noise.sensitivity,
    wrong=[lambda c, most, apart: heaviest(c.T @ c, most, apart)],
)
def test_sensitivity_is_never_below_what_persons_do(sensitivity, rng):
    """All signs, and random unit vectors in three dimensions, on the worst patterns of each."""
    for _ in range(1000):
        c, most, apart = small_case(rng, signs=True)
        worst = 0.0
        for steps in patterns(c.shape[1], most, apart):
            signs = np.array(list(product((1.0, -1.0), repeat=len(steps))))
            worst = max(worst, np.linalg.norm(signs @ c[:, steps].T, axis=1).max())
            units = rng.normal(size=(20, len(steps), 3))
            units /= np.linalg.norm(units, axis=2, keepdims=True)
            moved = np.linalg.norm(c[:, steps] @ units, axis=(1, 2))
            worst = max(worst, moved.max())
        at_most(worst, sensitivity(c, most, apart), rtol=1e-10)


@claim(
    "X-participation",
    of=noise.sensitivity,
    wrong=[lambda c, most, apart: np.sqrt(most) * longest_column(c)],
)
def test_falling_toeplitz_strategies_have_the_earliest_pattern(sensitivity, rng):
    for n in (1, 2, 5, 12, 60):
        for apart in {1, 2, 5, n} & set(range(1, n + 1)):
            first = np.sort(rng.random(n))[::-1] * (rng.random() < 0.9)
            first[0] = 1.0
            c = np.array([[first[t - s] if t >= s else 0.0 for s in range(n)] for t in range(n)])
            for most in {1, 2, 1 + (n - 1) // apart} & set(range(1, 2 + (n - 1) // apart)):
                earliest = c[:, ::apart][:, :most].sum(axis=1)
                equal(sensitivity(c, most, apart), np.linalg.norm(earliest), rtol=1e-10)
                if n <= 12 and most <= 4:
                    equal(np.linalg.norm(earliest), heaviest(c.T @ c, most, apart))
    banded = noise.best_banded(200, 8)
    equal(sensitivity(banded, 25, 8) ** 2, np.sum(banded[:, ::8] ** 2), rtol=1e-10)


def test_an_unfinished_search_is_an_upper_bound(rng, monkeypatch):
    from dpnotes.chapters.correlated_noise import participation

    cases = [small_case(rng, signs=False) for _ in range(200)]
    exact = np.array([noise.sensitivity(*case) for case in cases])
    for opened in (1, 2, 3):
        monkeypatch.setattr(participation, "SEARCHED", opened)
        found = np.array([noise.sensitivity(*case) for case in cases])
        at_most(exact, found)
    assert (found > exact * 1.000001).any(), "the search was not cut off at all"


def outputs(n, width, centre):
    """A grid of outputs (points, n), and the volume of its cells."""
    axis = np.linspace(-width, width + centre, {1: 2001, 2: 301, 3: 71, 4: 31}[n])
    points = np.stack(np.meshgrid(*[axis] * n, indexing="ij"), -1).reshape(-1, n)
    return points, (axis[1] - axis[0]) ** n


def density(y, c, sigma, given):
    """The density of the outputs y, where given(t, earlier outputs) is the sum of step t."""
    value, contributions = np.ones(len(y)), []
    for t in range(len(c)):
        contributions.append(given(t, y[:, :t]) + np.zeros(len(y)))
        mean = sum(c[t, s] * contributions[s] for s in range(t + 1))
        value = value * norm.pdf(y[:, t], mean, sigma)
    return value


def reacts(seed, person):
    """A contribution in [-1, 1] that depends on all earlier outputs."""

    def contribution(t, earlier):
        weights = np.random.default_rng([seed, person, t]).normal(size=t + 1)
        return np.tanh(3 * (weights[0] + earlier @ weights[1:]))

    return contribution


@claim(
    "X-correlated-adaptive",
    of=noise.release_loss,
    wrong=[
        lambda c, sigma, k, b: dp.gaussian(sigma, noise.sensitivity(c)),
        lambda c, sigma, k, b: noise.release_loss(c, 1.1 * sigma, k, b),
    ],
)
def test_contributions_that_react_cost_no_more(release_loss, rng):
    """n = 3, two persons, both directions, by a sum over a grid of outputs: right to 2e-4."""
    epsilon = np.array([0.0, 0.3, 1.0])
    y, volume = outputs(3, 9, 4)
    for seed in range(6):
        c = np.tril(rng.random((3, 3))) + np.eye(3) * 0.3
        apart = 1 + seed % 2
        turns = [0, 1, 2][::apart]
        one, two = reacts(seed, 1), reacts(seed, 2)
        steady = seed % 3 == 0  # the worst: always the same vector

        def with_one(t, earlier, one=one, two=two, steady=steady, turns=turns):
            own = (1.0 if steady else one(t, earlier)) if t in turns else 0.0
            return two(t, earlier) + own

        p, q = (density(y, c, 1.5, given) * volume for given in (with_one, two))
        equal([p.sum(), q.sum()], 1.0, rtol=2e-4)
        loss = release_loss(c, 1.5, len(turns), apart)
        said = loss.delta(epsilon)
        for a, b in ((p, q), (q, p)):
            found = [np.maximum(a - np.exp(e) * b, 0).sum() for e in epsilon]
            at_most(found, said, atol=2e-4)
            if steady:
                equal(found, said, atol=2e-4)


def normalised(n, bands, rng):
    """A lower triangular matrix with so many bands, each column of length one."""
    c = np.triu(np.tril(rng.random((n, n)) + 0.2), -(bands - 1))
    return c / np.linalg.norm(c, axis=0)


def hockey_sticks(p, q, epsilon):
    """Both directions, of masses on a grid."""
    return [np.maximum(a - np.exp(e) * b, 0).sum() for a, b in ((p, q), (q, p)) for e in epsilon]


def alone(c, turns, sigma, rate):
    """A person alone, the same vector at each turn: a mixture over all of its batches, and none.

    In the plane (or space) of its columns; outputs orthogonal to it tell nothing.
    """
    shifts = np.linalg.qr(c[:, turns])[1]
    y, volume = outputs(len(turns), 8 * sigma, 2)
    p = 0.0
    for coins in product((0, 1), repeat=len(turns)):
        weight = np.prod([rate if coin else 1 - rate for coin in coins])
        p = p + weight * norm.pdf(y, shifts @ coins, sigma).prod(axis=1)
    return p * volume, norm.pdf(y, 0.0, sigma).prod(axis=1) * volume


@claim(
    "X-cyclic-poisson",
    of=noise.cyclic_loss,
    wrong=[
        lambda c, sigma, rate: noise.cyclic_loss(c, 1.05 * sigma, rate),
        lambda c, sigma, rate: noise.cyclic_loss(c, sigma, 0.9 * rate),
        lambda c, sigma, rate: dp.subsample(dp.gaussian(sigma), rate).compose(len(c)),
        lambda c, sigma, rate: dp.subsample(dp.gaussian(sigma), rate),
    ],
)
def test_cyclic_rounds_are_what_a_person_alone_costs(cyclic_loss, rng):
    """All batches of up to three turns of n <= 6 steps, both mixtures integrated: to 3e-4."""
    epsilon = np.array([0.0, 0.5, 1.2])
    for n, bands, sigma, rate in (
        (1, 1, 1.0, 0.4),
        (4, 2, 1.2, 0.3),
        (6, 3, 0.9, 0.5),
        (6, 2, 1.1, 0.4),
    ):
        c = normalised(n, bands, rng)
        said = cyclic_loss(c, sigma, rate).delta(epsilon)
        for group in range(bands):
            p, q = alone(c, list(range(group, n, bands)), sigma, rate)
            found = hockey_sticks(p, q, epsilon)
            at_most(found, np.tile(said, 2), atol=3e-4)
            if group == 0:
                equal(np.maximum(found[:3], found[3:]), said, atol=3e-4)


def test_groups_fewer_than_bands_cost_more(rng):
    """Columns of one person that overlap: the rounds of the theorem are then too few."""
    c = np.tri(4) / 2
    p, q = alone(c, [0, 2], 1.0, 0.5)
    two_rounds = dp.subsample(dp.gaussian(1.0, sensitivity=1.0), 0.5).compose(2)
    assert hockey_sticks(p, q, [1.0])[0] > two_rounds.delta(1.0) + 0.01


def batches(persons, bands, n):
    """All choices of all coins: [(person, steps at which it is in the batch)], by groups."""
    turns = [range(group, n, bands) for _, group in persons]
    for coins in product((0, 1), repeat=sum(map(len, turns))):
        toss = iter(coins)
        yield coins, [{t for t in steps if next(toss)} for steps in turns]


def law(y, c, sigma, rate, bands, persons):
    """The density of all outputs: a mean over all batches of all persons (contribution, group)."""
    total = 0.0
    for coins, chosen in batches(persons, bands, len(c)):
        weight = np.prod([rate if coin else 1 - rate for coin in coins])

        def given(t, earlier, chosen=chosen):
            here = [gives for (gives, _), steps in zip(persons, chosen, strict=True) if t in steps]
            return sum(gives(t, earlier) for gives in here)

        total = total + weight * density(y, c, sigma, given)
    return total


REACTING = (  # steps, bands, groups of the others, spread of the outputs, tolerance
    (3, 2, (0, 1), 9, 5e-4),
    (4, 2, (1,), 9, 2e-3),
)


@claim(
    "X-cyclic-poisson",
    of=noise.cyclic_loss,
    wrong=[
        lambda c, sigma, rate: noise.cyclic_loss(c, 1.3 * sigma, rate),
        lambda c, sigma, rate: noise.cyclic_loss(c, sigma, 0.7 * rate),
    ],
)
def test_cyclic_rounds_bound_persons_who_react(cyclic_loss, rng):
    """Everybody's contributions depend on all outputs; all batches of all persons."""
    epsilon = np.array([0.0, 0.4, 1.0])
    for n, bands, groups, width, slack in REACTING:
        y, volume = outputs(n, width, 3)
        c = normalised(n, bands, rng)
        others = [(reacts(n, person), group) for person, group in enumerate(groups, 1)]
        own = lambda t, earlier: 1.0 if t == 0 else np.sign(earlier[:, 0] - 0.4)  # noqa: E731
        p, q = (
            law(y, c, 1.3, 0.5, bands, persons) * volume
            for persons in ([(own, 0), *others], others)
        )
        equal([p.sum(), q.sum()], 1.0, rtol=slack)
        said = cyclic_loss(c, 1.3, 0.5).delta(epsilon)
        at_most(hockey_sticks(p, q, epsilon), np.tile(said, 2), atol=slack)
        assert hockey_sticks(p, q, epsilon)[0] > 0.9 * said[0], "far from the bound"


@claim("X-cyclic-poisson")
def test_a_replaced_person_is_bounded_too(rng):
    epsilon = np.array([0.0, 0.5, 1.0])
    y, volume = outputs(3, 9, 3)
    c, other = normalised(3, 2, rng), (reacts(5, 1), 0)
    plus, minus = (lambda t, earlier: 1.0), (lambda t, earlier: -1.0)
    p, q = (law(y, c, 1.3, 0.5, 2, [(one, 0), other]) * volume for one in (plus, minus))
    said = in_practice.sampled_substitution(1.3, 0.5)[1].compose(2).delta(epsilon)
    at_most(hockey_sticks(p, q, epsilon), np.tile(said, 2), atol=5e-4)
    removed = noise.cyclic_loss(c, 1.3, 0.5).delta(epsilon)
    assert hockey_sticks(p, q, epsilon)[0] > removed[0] + 0.05, "no more than a removed one"
