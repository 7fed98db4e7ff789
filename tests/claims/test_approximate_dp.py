"""The claims of the page `approximate-dp`, on random finite laws."""

from itertools import product

import numpy as np
from scipy.special import ndtr, ndtri

import dpnotes as dp
from boxes import exp, for_all
from dpnotes.chapters import approximate_dp, gaussian
from evidence import at_most, claim, equal, holds, must_fail, slip
from rounds import four_conditions
from strategies import close_laws, events


def losses(p, q):
    """log p/q, minus infinity where p = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > 0, np.log(p) - np.log(q), -np.inf)


@claim("T-def-divergence-variable", of=dp.kl, wrong=[lambda p, q: dp.kl(q, p)])
def test_the_mean_of_the_loss_is_kl(mean, rng):
    for sharpness in (0.3, 1.0, 10.0):
        p, q = rng.dirichlet(np.full(6, sharpness), (2, 2000)) + 1e-9
        p, q = p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)
        equal((p * losses(p, q)).sum(-1), mean(p, q), rtol=1e-11, atol=1e-14)
    equal(dp.kl([0.5, 0.5], [1.0, 0.0]), np.inf)


EPSILONS = (0.0, 0.1, 0.7, 2.0, 6.0)


def pairs(seed, count=2000, size=5):
    """Random pairs of laws, from flat to peaked, with about a fifth of the outcomes impossible."""
    rng = np.random.default_rng(seed)
    laws = rng.dirichlet(np.ones(size), (2, count)) ** rng.choice([0.3, 1.0, 4.0], (2, count, 1))
    laws *= rng.random(laws.shape) > 0.2
    laws[..., 0] += 1e-3
    p, q = laws / laws.sum(-1, keepdims=True)
    return p, q


def both_ways(function, p, q, epsilon):
    return np.maximum(function(p, q, epsilon), function(q, p, epsilon))


@claim(
    "T-def-approx-dp",
    "T-def-ind",
    "T-0",
    of=dp.hockey_stick,
    wrong=[lambda p, q, e: (p - np.exp(e) * q).max(-1).clip(0)],  # single outcomes only
)
def test_the_definition_over_all_events_is_one_sum(delta_of, rng):
    """A mechanism on four datasets in a ring: its delta is the worst over ordered neighbours."""
    table = rng.dirichlet(np.ones(4), (1000, 4))
    mass = table @ events(4).T
    for epsilon in EPSILONS:
        direct = [mass - np.exp(epsilon) * np.roll(mass, s, axis=1) for s in (1, -1)]
        one = both_ways(delta_of, table, np.roll(table, 1, axis=1), epsilon)
        equal(one.max(1), np.max(direct, (0, 2, 3)), atol=1e-14)


def area_under_tail(p, q, epsilon):
    """Integral over s > epsilon of e^(epsilon - s) P(L > s), step by step of the tail."""
    steps = np.sort(np.maximum(losses(p, q), epsilon), -1)
    steps = np.concatenate([np.full_like(steps[:, :1], epsilon), steps], -1)
    tails = (p[:, None] * (losses(p, q)[:, None] > steps[:, :-1, None])).sum(-1)
    return (-np.diff(np.exp(epsilon - steps)) * tails).sum(-1)


@claim(
    "T-1",
    "T-6",
    "U-lemma-1",
    of=approximate_dp.privacy_loss_tail,
    wrong=[lambda p, q, e: approximate_dp.privacy_loss_tail(p, q, e + 0.3)],
)
def test_delta_is_at_most_the_tail(tail):
    for epsilon in EPSILONS:
        p, q = pairs(8)
        for pair in ((p, q), (q, p)):
            delta = dp.hockey_stick(*pair, epsilon)
            at_most(delta, tail(*pair, epsilon), atol=1e-15)
            equal(delta, area_under_tail(*pair, epsilon), atol=1e-13)
    p, q = np.array([0.7, 0.3]), np.array([1.0, 0.0])  # equality: a loss above epsilon is infinite
    equal(dp.hockey_stick(p, q, 2.0), approximate_dp.privacy_loss_tail(p, q, 2.0))
    sigma, epsilon = np.exp(np.random.default_rng(10).normal(size=(2, 5000)))
    at_most(dp.gaussian_delta(sigma, epsilon), gaussian.loss_tail(sigma, epsilon))

    u = np.e / (1 + np.e)
    p, q = np.array([u, 1 - u]), np.array([1 - u, u])
    mass = approximate_dp.privacy_loss_tail(p, q, 1.0 + 1e-12)
    assert mass == 0.0 and not mass < 0.0
    slip(
        "T-1",
        "randomized response with $\\varepsilon = 1$ satisfies the hypothesis with "
        f"$\\delta = 0$; then $p(A) = {mass:.0f}$, which is not less than $\\delta = 0$.",
    )


@claim("T-2")
def test_the_converse_fails_as_badly_as_possible():
    def bound(epsilon, delta):
        return (np.exp(epsilon) + delta) / (np.exp(epsilon) + 1)

    def largest_tail_pair(epsilon, delta):
        odds = np.exp(-epsilon)
        p = np.array([1 + delta * odds, (1 - delta) * odds]) / (1 + odds)
        return p, p[::-1]

    def check(most):
        for epsilon in EPSILONS:
            p, q = pairs(11)
            delta = both_ways(dp.hockey_stick, p, q, epsilon)
            tails = [approximate_dp.privacy_loss_tail(*pair, epsilon) for pair in ((p, q), (q, p))]
            at_most(np.minimum(*tails), most(epsilon, delta))
            for delta in (1e-9, 1e-3, 0.2, 0.9):
                p, q = largest_tail_pair(epsilon, delta)
                equal(1 + both_ways(dp.hockey_stick, p, q, epsilon), 1 + delta)
                equal(approximate_dp.privacy_loss_tail(p, q, epsilon), most(epsilon, delta))
                equal(approximate_dp.privacy_loss_tail(q, p, epsilon), most(epsilon, delta))
                holds(np.array(most(epsilon, delta) > max(delta, 0.5)))

    check(bound)
    must_fail(check, lambda e, d: 0.99 * bound(e, d))
    must_fail(check, lambda e, d: np.minimum(1.01 * bound(e, d), 1))
    p, q, epsilon = np.array([2, 3]) / 5, np.array([3, 2]) / 5, np.log(4 / 3)
    delta = both_ways(dp.hockey_stick, p, q, epsilon)
    tail = approximate_dp.privacy_loss_tail(p, q, epsilon)
    equal([delta, tail], [1 / 15, 3 / 5])
    equal(np.sort(largest_tail_pair(epsilon, 1 / 15)[0]), np.sort(p))
    slip(
        "T-2",
        f"the smallest $\\delta$ of the printed pair at $\\varepsilon = "
        f"\\log\\frac43$ is {delta:.5f} "
        f"$= \\frac1{{15}}$, while $P(L > \\varepsilon) = {tail:.1f}$: no "
        f"pair with this $\\delta$ has more.",
    )


@claim("T-3")
def test_loss_beyond_the_threshold():
    """delta is the mean of (1 - e^(eps - loss))_+: a loss of at least eps + g adds 1 - e^-g."""
    for_all(
        r"$1 - e^{-g} \le 1 - e^{\eps - \loss}$ for $\loss = \eps + g + h$,",
        lambda h, g: 1 - exp(-g),
        lambda h, g: 1 - exp(-g - h),
        {"h": (0, 50), "g": (1e-3, 50)},
        touch=(0,),
        too_high=[lambda h, g: 1 - exp(-1.1 * g), lambda h, g: g],
    )


@claim("T-3")
def test_a_loss_well_above_epsilon_is_rare():
    def tail(p, q, threshold):
        return (p * (losses(p, q) >= threshold)).sum(-1)

    def check(bound):
        for epsilon, gap in product(EPSILONS, (0.01, 0.3, 2.0)):
            p, q = pairs(12, count=500)
            delta = both_ways(dp.hockey_stick, p, q, epsilon)
            at_most(tail(p, q, epsilon + gap), bound(epsilon, delta, epsilon + gap), atol=1e-14)
            s, m = epsilon + gap, 0.37  # attained
            u = 1 / (1 + np.exp(-s))
            p, q = np.array([m * u, m * (1 - u), 1 - m]), np.array([m * (1 - u), m * u, 1 - m])
            delta = both_ways(dp.hockey_stick, p, q, epsilon)
            equal(tail(p, q, s - 1e-9), bound(epsilon, delta, s), rtol=1e-10)

    def rare(epsilon, delta, threshold):
        return np.minimum(delta / -np.expm1(epsilon - threshold), 1.0)

    check(rare)
    must_fail(check, lambda e, d, s: 0.99 * rare(e, d, s))
    must_fail(check, lambda e, d, s: np.minimum(1.01 * rare(e, d, s), 1.0))

    def strict(exceeds):  # {L > s} is strictly rarer if delta > 0, also where s is a value of L
        u = 1 / (1 + np.exp(-2.0))  # the attained pair, s = 2: equality for >=
        several = [0.45, 0.3, 0.2, 0.05], [0.1, 0.3, 0.35, 0.25]
        for p, q in map(np.array, (several, ([u, 1 - u], [1 - u, u]))):
            loss, epsilon = losses(p, q), np.array([0.0, 0.7, 1.4])
            delta = dp.hockey_stick(p, q, epsilon)
            for s in loss.max() + np.array([0, -1e-6, -1e-3, -0.05]):
                mass = p[exceeds(loss, s + 1e-12)].sum()
                holds(mass < (1 - 1e-9) * delta / -np.expm1(epsilon - s))

    strict(np.greater)
    must_fail(strict, lambda loss, s: loss >= s - 1e-9)

    u = np.e / (1 + np.e)
    p, q = np.array([u, 1 - u]), np.array([1 - u, u])
    left, right = (approximate_dp.privacy_loss_tail(p, q, 2.0), rare(1.0, 0.0, 2.0))
    assert left == right == 0.0
    slip(
        "T-3",
        "randomized response with $\\varepsilon = 1$, $\\delta = 0$, $\\alpha = 2$: both sides are "
        f"{left:.0f}, and ${left:.0f} < {right:.0f}$ is false. (For $\\delta > 0$ it is strict.)",
    )


@claim(
    "T-c1c2c3",
    of=lambda p, q, e: p <= np.exp(e) * q,
    wrong=[lambda p, q, e: p <= np.exp(2 * e) * q],
)
def test_the_tail_and_the_good_outcomes_are_one_condition(closeness):
    sets = events(4)

    def c2(p, q, epsilon, delta, closeness):
        """Some event A with p(A) >= 1 - delta on which p <= e^epsilon q, by trying all of them."""
        fine = closeness(p, q, epsilon)
        possible = (fine[:, None, :] | ~sets).all(-1)
        return ((p @ sets.T >= 1 - delta) & possible).any(-1)

    for epsilon, delta in product(EPSILONS, (0.0, 0.05, 0.4)):
        p, q = pairs(13, count=1000, size=4)
        c1 = approximate_dp.privacy_loss_tail(p, q, epsilon) <= delta + 1e-12
        holds(c1 == c2(p, q, epsilon, delta + 1e-12, closeness))


def conditioned(p, sets):
    """The laws of p given each of the sets (rows), on an axis before the outcomes'."""
    part = p[..., None, :] * sets
    return part / part.sum(-1, keepdims=True)


@claim("T-c1c2c3")
def test_conditioning_on_sets_of_outcomes(rng):
    sets = events(4)[1:]
    p, q = rng.dirichlet(np.ones(4), (2, 300))  # the same null sets: none
    given_p, given_q = conditioned(p, sets), conditioned(q, sets)

    def least(one, other):
        """The least epsilon for which the two are epsilon-indistinguishable."""
        return np.maximum(dp.max_divergence(one, other), dp.max_divergence(other, one))

    # A and B differ: no epsilon will do. A = B: |L - log p(A)/q(A)| <= epsilon on A says it.
    between = least(given_p[:, :, None], given_q[:, None, :])
    same = np.eye(len(sets), dtype=bool)
    holds(np.isinf(between[:, ~same]))

    def check(centre):
        off = np.abs(np.log(p / q)[:, None] - centre(p @ sets.T, q @ sets.T)[..., None])
        equal(between[:, same], np.where(sets, off, 0).max(-1), atol=1e-12)

    check(lambda p_of, q_of: np.log(p_of / q_of))
    must_fail(check, lambda p_of, q_of: np.zeros_like(p_of))  # the source's p_E, not normalised

    p, q, kept = np.array([7, 1]) / 8, np.array([3, 1]) / 4, np.array([True, False])
    given = p * kept / p[kept].sum(), q * kept / q[kept].sum()
    equal(given[0], given[1])
    holds(np.array([p[kept].sum() >= 3 / 4, q[kept].sum() >= 3 / 4]))
    best = 1 - approximate_dp.privacy_loss_tail(p, q, 0.0)
    assert not best >= 3 / 4
    slip(
        "T-c1c2c3",
        "$p = (\\frac78, \\frac18)$, $q = (\\frac34, \\frac14)$, $\\varepsilon = 0$, "
        "$\\delta = \\frac14$, both events the first outcome: the "
        "conditional laws are equal, so C3 holds; "
        f"but $p \\le q$ only on an event of $p$-probability {best:.3f}, "
        f"less than 0.75, so C2 fails.",
    )


@claim("T-4")
def test_conditioning_events_exist():
    def check(construct):
        for epsilon in EPSILONS:
            p, q = pairs(15)
            mass = 1 - both_ways(dp.hockey_stick, p, q, epsilon)
            four_conditions(p, q, epsilon, *construct(p, q, epsilon), mass)

    def unbalanced(p, q, epsilon):  # (6) of the blog post without the interpolation
        factor = np.exp(epsilon)
        return np.minimum(p, factor * q), np.minimum(q, factor * p)

    check(approximate_dp.conditioning_events)
    must_fail(check, unbalanced)
    must_fail(check, lambda p, q, e: (unbalanced(p, q, e)[0], np.minimum(p, q)))
    p, q = np.eye(2)
    four_conditions(p, q, 3.0, *approximate_dp.conditioning_events(p, q, 3.0), 0.0)

    p, q = np.array([3, 2]) / 5, np.array([2, 3]) / 5
    epsilon = np.log(1.5)
    equal(both_ways(dp.hockey_stick, p, q, epsilon), 0.0, atol=1e-15)
    low = np.minimum(p, q).sum()
    assert not low >= 1
    slip(
        "T-4",
        "$p = (\\frac35, \\frac25)$, $q = (\\frac25, \\frac35)$ are "
        "$\\log\\frac32$-indistinguishable, "
        f"$\\delta = 0$, but $f_-(Y) = {low:.1f}$, not at least $1 - \\delta = 1$.",
    )


@claim(
    "T-4",
    "T-5",
    of=lambda one, other: 1 - np.minimum(one, other),
    wrong=[
        lambda one, other: 1 - np.maximum(one, other),
        lambda one, other: 1 - (one + other) / 2,
        lambda one, other: 0.9 * (1 - np.minimum(one, other)),
    ],
)
def test_delta_is_at_most_what_was_cut(allowed, rng):
    """The "if" direction; E and F have different probabilities, and the larger one is thinned."""
    for epsilon in EPSILONS[1:]:
        e, f = close_laws(rng, epsilon, size=6, count=1000)
        one, other = rng.uniform(0.05, 1, (2, 1000, 1))  # Pr[E] and Pr[F]
        rest = rng.dirichlet(np.full(6, 0.3), (2, 1000))
        p, q = one * e + (1 - one) * rest[0], other * f + (1 - other) * rest[1]
        delta = both_ways(dp.hockey_stick, p, q, epsilon)
        at_most(delta, allowed(one, other)[:, 0], atol=1e-12)


@claim("T-7", of=(1.0, 1.0), wrong=[(0.9, 1.0), (1.0, 0.9)])
def test_approximate_is_mostly_pure(only_if, if_so, rng):
    here = rng.dirichlet(np.full(4, 0.5), (500, 4))  # four data sets on a ring
    there = np.roll(here, 1, axis=1)
    for epsilon in EPSILONS:
        delta = both_ways(dp.hockey_stick, here, there, epsilon).max(1)
        e, f = approximate_dp.conditioning_events(here, there, epsilon)
        mass = e.sum(-1, keepdims=True)
        equal(mass[..., 0], f.sum(-1), atol=1e-14)
        at_most(1 - mass[..., 0], only_if * delta[:, None], atol=1e-13)
        at_most(both_ways(dp.hockey_stick, e / mass, f / mass, epsilon), 0.0, atol=1e-12)
        # a leak of its own for each data set, the rest epsilon-close on the ring
        core = rng.dirichlet(np.ones(4), (500, 1)) * np.exp(
            rng.uniform(-epsilon / 4, epsilon / 4, (500, 4, 4))
        )
        core /= core.sum(-1, keepdims=True)
        at_most(np.abs(np.log(core / np.roll(core, 1, axis=1))), epsilon, atol=1e-12)
        kept = rng.uniform(0.05, 1, (500, 1, 1))
        leak = np.broadcast_to(np.eye(4), core.shape)
        leaky = np.concatenate([kept * core, (1 - kept) * leak], axis=-1)
        delta = both_ways(dp.hockey_stick, leaky, np.roll(leaky, 1, axis=1), epsilon).max(1)
        at_most(delta, if_so * (1 - kept[:, 0, 0]), atol=1e-12)
    equal(dp.hockey_stick([1.0, 0], [0, 1.0], 5.0), 1.0)  # delta = 1 is excluded: nothing is left
    equal(approximate_dp.conditioning_events([1.0, 0], [0, 1.0], 5.0)[0].sum(), 0.0)


def bends(p, q):
    """Levels, among them all at which the trade-off function can bend, and its values there."""
    levels = np.clip(q @ events(5).T, 0, 1)
    return levels, dp.tradeoff(q[:, None], p[:, None], levels)


@claim("U-privacy-profile", of=(0.0, False), wrong=[(0.1, False), (0.0, True)])
def test_profile_and_tradeoff_determine_each_other(shift, swapped):
    p, q = pairs(28, count=300)
    one, other = p[:, None], q[:, None]
    # each point of a profile is a line below the trade-off function
    alpha, corner = np.linspace(0, 1, 21), np.clip(losses(p, q), -50, 50)
    corner = np.concatenate([corner, np.full((300, 2), (-50, 50))], axis=1)
    lines = dp.hockey_stick(one, other, corner + shift)[:, None]
    lines = 1 - lines - np.exp(corner)[:, None] * alpha[:, None]
    equal(1 - lines.max(-1).clip(0), 1 - dp.tradeoff(other, one, alpha), atol=1e-13)
    # and each point of the trade-off function, one below the profile
    levels, curve = bends(q, p) if swapped else bends(p, q)
    epsilons = np.linspace(-5, 5, 41)
    lines = 1 - curve[:, None] - np.exp(epsilons)[:, None] * levels[:, None]
    equal(1 + lines.max(-1), 1 + dp.hockey_stick(one, other, epsilons))
    rng = np.random.default_rng(29)  # Gauss: the line of epsilon touches at the level of its event
    sigma, eps = np.exp(rng.uniform(-1.5, 3, 5000)), rng.normal(size=5000)
    touch = ndtr(-eps * sigma - 1 / (2 * sigma))
    line = 1 - dp.gaussian_delta(sigma, eps) - np.exp(eps) * touch
    equal(1 - ndtr(-ndtri(touch) - 1 / sigma), 1 - line, atol=1e-12)
    alpha = rng.uniform(0, 1, 5000)
    line = 1 - dp.gaussian_delta(sigma, eps) - np.exp(eps) * alpha
    at_most(line, ndtr(-ndtri(alpha) - 1 / sigma), atol=1e-13)


@claim("U-privacy-profile")
def test_tradeoff_above_three_lines():
    p, q = pairs(281, count=300)
    levels, curve = bends(p, q)

    def three_lines(alpha, delta, epsilon, fall=1, flat=1):
        falling = 1 - delta - np.exp(fall * epsilon) * alpha
        return np.maximum(0, np.maximum(falling, np.exp(-flat * epsilon) * (1 - delta - alpha)))

    def check(lines):
        for epsilon in EPSILONS:
            least = both_ways(dp.hockey_stick, p, q, epsilon)
            for delta in (least, least + 0.1 * (1 - least), least - 1e-6, 0.5 * least):
                delta = np.maximum(delta, 0.0)
                above = (curve >= lines(levels, delta[:, None], epsilon) - 1e-11).all(-1)
                clear = np.abs(delta - least) > 1e-7  # or equal to it: then above, up to rounding
                holds(np.where(clear | (delta == least), above == (delta >= least), True))
            # the least delta that the lines allow is the two-way hockey stick
            allowed = np.maximum(
                1 - curve - np.exp(epsilon) * levels, 1 - levels - np.exp(epsilon) * curve
            ).max(-1)
            equal(1 + np.maximum(allowed, 0), 1 + least, rtol=1e-12)

    check(three_lines)
    must_fail(check, lambda a, d, e: three_lines(a, 2 * d + 0.1, e))
    must_fail(check, lambda a, d, e: three_lines(a, d, e, flat=3))
    must_fail(check, lambda a, d, e: three_lines(a, d, e, fall=4))
    must_fail(check, lambda a, d, e: 1 - d - np.exp(e) * a)  # one direction only
    must_fail(check, lambda a, d, e: three_lines(a, d, e) + 1e-6)


@claim(
    "X-unknown-keys",
    of=approximate_dp.threshold_delta,
    wrong=[
        lambda t, e, c: approximate_dp.threshold_delta(t + 1, e, c),  # "more than"
        lambda t, e, c: approximate_dp.threshold_delta(t, e / c, 1),  # one of the keys only
    ],
)
def test_keys_that_nobody_listed_cost_the_stated_delta(delta_of):
    """The laws of the output for old and new keys, each cut into lists of outcomes."""
    noise = np.arange(-60, 61)

    def law(count, epsilon, threshold):
        """Of what is shown of one key, from nothing to the largest noisy count."""
        if not count:  # it does not occur: nothing
            return np.eye(1, 140)[0]
        mass = np.exp(-epsilon * np.abs(noise)) * np.tanh(epsilon / 2)
        shown = np.where(count + noise >= threshold, count + noise, 0)
        return np.bincount(shown, mass, minlength=140)

    for epsilon, keys, threshold in product((1.0, 2.5), (1, 2), (1, 2, 5)):
        worst = []
        for others in product((0, 1, 4), repeat=keys):
            with_her = [law(n + 1, epsilon / keys, threshold) for n in others]
            without = [law(n, epsilon / keys, threshold) for n in others]
            p, q = (np.multiply.outer(*pair).ravel() if keys == 2 else pair[0]
                    for pair in (with_her, without))  # fmt: skip
            p, q = p / p.sum(), q / q.sum()
            worst += [*dp.hockey_stick(p, q, [epsilon, 9.0]), dp.hockey_stick(q, p, epsilon)]
        at_most(worst, delta_of(threshold, epsilon, keys) + 1e-11)  # of the cut
        equal(max(worst), delta_of(threshold, epsilon, keys), rtol=1e-9, atol=1e-11)
        equal(worst[1], worst[0], rtol=1e-9, atol=1e-11)  # no larger epsilon helps
