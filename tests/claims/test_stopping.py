"""The claims of the chapter `stopping`.

The adversary here knows everything: for finite steps the worst of all adaptive strategies is
computed by going backwards over the tree, with no theorem about composition in between.
"""

import copy
import multiprocessing
import pickle
from bisect import bisect_left
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.integrate import fixed_quad
from scipy.signal import fftconvolve
from scipy.stats import norm

import dpnotes as dp
from boxes import for_all
from dpnotes.chapters import composition, stopping
from dpnotes.chapters.stopping.filters import ROUNDING
from evidence import at_most, claim, equal, holds, must_fail
from rounds import approximate_tree, joint
from strategies import slowly, together


@claim("X-schedule")
def test_even_steps_and_the_average_noise_everywhere():
    for_all(
        r"Two steps of noise $1$ and $u$: $\frac12(1 + u^{-2}) \ge (\frac{1 + u}2)^{-2}$",
        lambda u: 4 / (1 + u) ** 2,
        lambda u: (1 + 1 / u**2) / 2,
        {"u": (0.01, 100)},
        touch=(1, 1),
        too_high=[lambda u: 4.1 / (1 + u) ** 2],
    )
    for_all(
        r"Weights $1$, $w^2$, variances $1$, $\frac uw$: $(1 + uw)(1 + \frac wu) \ge (1 + w)^2$",
        lambda u, w: (1 + w) ** 2,
        lambda u, w: (1 + u * w) * (1 + w / u),
        {"u": (0.01, 100), "w": (0.1, 10)},
        touch=(1, 1),
        too_low=[lambda u, w: (1 + u * w) * (1 + w / u) - w / 10],
    )


def lazy(top, chance):
    """A law p whose reverse is q: loss top with this chance, -top, and else nothing."""
    return np.array([chance, 1 - chance * (1 + np.exp(-top)), chance * np.exp(-top)])


@claim("X-adaptive-gap", of=lambda a: 1 + 1 / (1 + np.exp(a)), wrong=[lambda a: 1.0])
def test_every_path_fits_and_the_whole_does_not(factor):
    def laws(epsilon, delta, a):
        up = np.exp(a) / (1 + np.exp(a))
        first = np.array([up, 1 - up])
        top = epsilon + a
        chance = delta / up / -np.expm1(-2 * a)
        p = np.zeros((2, 5))
        p[0, [0, 2, 4]] = lazy(top, chance)
        p[1, [1, 2]] = delta, 1 - delta
        q = p[:, [4, 3, 2, 1, 0]]
        return first, p, q

    for epsilon, delta, a in product((0.5, 1.0, 3.0), (1e-3, 1e-5), (0.05, 0.2, 0.5)):
        first, p, q = laws(epsilon, delta, a)
        for choice, grown in (((0, 0), 1), ((1, 1), 1), ((0, 1), factor(a))):
            P = composition.adaptive_law(first, p[list(choice)]).ravel()
            Q = composition.adaptive_law(first[::-1], q[list(choice)]).ravel()
            equal(dp.hockey_stick(P, Q, epsilon), delta * grown, rtol=1e-8)
            at_most(dp.hockey_stick(Q, P, epsilon), delta * grown, rtol=1e-8)
        total = dp.randomized_response(a) + dp.finite(p[0], q[0])
        equal(total.delta(epsilon), delta, rtol=1e-8)  # the accountant says the same


class Tree:
    """Steps with losses (l, 0, -l) in units of `unit`, chosen one by one by an adversary."""

    def __init__(self, unit, steps):
        self.unit = unit
        self.tops = [top for top, _ in steps]
        self.laws = [lazy(unit * top, chance) for top, chance in steps]
        self.losses = [dp.finite(p, p[::-1]) for p in self.laws]

    def worst(self, gain, allowed, rounds):
        """Largest mean of gain(loss) over all strategies that run what `allowed(counts)` allows."""
        reach = rounds * max(self.tops) + 1
        loss = self.unit * np.arange(-reach, reach + 1)
        known = {}

        def value(counts):
            if counts not in known:
                best = gain(loss)
                for i, (top, p) in enumerate(zip(self.tops, self.laws, strict=True)):
                    more = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
                    if sum(counts) < rounds and allowed(more):
                        after = value(more)
                        up, down = np.full_like(after, after[-1]), np.full_like(after, after[0])
                        up[:-top], down[top:] = after[top:], after[:-top]
                        best = np.maximum(best, p[0] * up + p[1] * after + p[2] * down)
                known[counts] = best
            return known[counts]

        return value((0,) * len(self.laws))[reach]

    def delta(self, counts, epsilon):
        """delta of these steps if they are fixed beforehand."""
        steps = [loss.compose(k) for loss, k in zip(self.losses, counts, strict=True) if k]
        return sum(steps[1:], steps[0]).delta(epsilon)


def leak(epsilon):
    return lambda loss: -np.expm1(np.minimum(epsilon - loss, 0.0))


def spends(make, tree):
    """`allowed` of a filter: what it says if these steps are offered one after another."""

    def allowed(counts):
        budget = make()
        offers = [tree.losses[i] for i, k in enumerate(counts) for _ in range(k)]
        return all([budget.allows(step) for step in offers])  # noqa: C419 (each is charged)

    return allowed


@claim("X-filter", "X-renyi-filter")
def test_the_worst_of_all_strategies_stays_within_the_budget():
    epsilon, delta = 1.5, 1e-3
    tree = Tree(0.1, [(1, 1 / (1 + np.exp(-0.1))), (4, 0.17), (12, 0.008), (8, 0.034)])

    def check(allowed, rounds):
        at_most(tree.worst(leak(epsilon), allowed, rounds), delta)

    for order in (None, 8.0, 16.0):
        budget = stopping.Filter(epsilon, delta, order=order)
        costs = [budget.cost(loss) for loss in tree.losses]
        allowed = spends(lambda order=order: stopping.Filter(epsilon, delta, order=order), tree)
        check(allowed, 4)
        check(lambda n, b=budget, c=costs: np.dot(n, c) <= b.left, 10)

    # filters that are none: the exact accountant asked again after every step; the epsilons of all
    # steps added up at one and the same delta; what was lost on this path, in place of what could
    # have been (the worst is then to run for ever)
    exact = lambda n: tree.delta(n, epsilon) <= delta  # noqa: E731
    must_fail(check, exact, 8)
    at_most(tree.delta((0, 0, 1, 1), epsilon), tree.worst(leak(epsilon), exact, 2))
    leaks = Tree(0.1, [(30, 0.9 * delta)])
    spent = leaks.losses[0].epsilon(delta)
    assert spent == 0 < leaks.worst(leak(epsilon), lambda n: n[0] * spent <= epsilon, 3) / delta - 1
    means = [loss.mean() for loss in tree.losses]
    must_fail(check, lambda n: np.dot(n, means) <= epsilon, 8)


@claim("X-filter", "X-pure-filter", of=1.0, wrong=[0.5])
def test_largest_losses_add_up_and_are_attained(share, rng):
    tree = Tree(0.1, [(2, 0.3), (3, 0.4), (7, 0.02)])
    for size in (7, 11):
        epsilon = 0.1 * size

        def check(make, factor, epsilon=epsilon):
            allowed = spends(make, tree)
            largest = tree.worst(lambda loss: loss, allowed, 5)
            assert largest > 0
            bound = factor * epsilon * (1 + 1e-12)
            at_most(tree.worst(lambda loss: (loss > bound) * 1.0, allowed, 5), 0.0)

        check(lambda e=epsilon: stopping.Filter(e, 0.0), 1.0)
        must_fail(check, lambda e=epsilon: stopping.Filter(1.2 * e, 0.0), 1.0)
        must_fail(check, lambda e=epsilon: stopping.Filter(e, 0.0), 0.8)
    # with deltas: leaks add up too, along every path
    p, q = map(joint, approximate_tree(rng, (0.4, 0.6), (0.01, 0.02), (4, 3), 500))
    at_most(dp.hockey_stick(p, q, 1.0), share * 0.03)
    coins = dp.dominating_pair(0.4, 0.01), dp.dominating_pair(0.6, 0.02)
    at_most((dp.finite(*coins[0]) + dp.finite(*coins[1])).delta(1.0), share * 0.03)


@claim("X-filter")
def test_a_filter_charges_if_and_only_if_it_says_yes():
    for budget, small in (
        *((stopping.Filter(1.0, delta), dp.laplace(20.0)) for delta in (1e-5, 0.0)),
        (stopping.GaussianFilter(1.0, 1e-5), dp.gaussian(25.0)),
    ):
        size, yes = budget.left, 0
        for _ in range(150):
            before = budget.spent
            if budget.allows(small):
                yes += 1
                equal(budget.spent - before, budget.cost(small), rtol=1e-9)
            else:
                holds(budget.spent == before)
        assert 0 < yes < 150
        equal(budget.spent, yes * budget.cost(small), rtol=1e-12)
        at_most(budget.spent, size)
        at_most(size, (yes + 1) * budget.cost(small))
    full = stopping.Filter(1.0, 0.0)  # overspent by round-off at most, 1e-12 of the budget
    with pytest.warns(UserWarning, match="costs 1, more than all"):
        assert not full.allows(lambda order: 1 + 1e-11)
    assert full.allows(lambda order: 1 + 1e-13)


class Careless(stopping.Filter):
    """A filter that reads its balance, prices the step, and then writes the balance."""

    def allows(self, step):
        spent = self._spent + Fraction(self.cost(step))
        if spent > self._size * (1 + ROUNDING):
            return False
        self._spent = spent
        return True


class Unlocked(stopping.Filter):
    """A filter that prices the step first, but lets others in while it compares and charges."""

    def allows(self, step):
        cost = Fraction(self.cost(step))
        if self._spent + cost > self._size * (1 + ROUNDING):
            return False
        self._spent += cost
        return True


@claim("X-filter")
def test_a_filter_charges_each_step_once_whoever_asks_and_when():
    def again(kind):  # a step that asks the same filter while it is priced
        budget, said = kind(1.0, 1e-5), []
        share = 0.9 * budget.left

        def step(order):
            if len(said) < 20:
                said.append(None)
                said.append(budget.allows(step))
            return share

        said.append(budget.allows(step))
        equal([said.count(True), budget.spent], [1, share])

    class Slow(Fraction):
        def __mul__(self, other):
            return slowly(Fraction(self) * other)

    def crowd(kind, price=lambda share: lambda order: share):  # the comparison takes its time
        budget = kind(1.0, 1e-5)
        share = 0.3 * budget.left
        budget._size = Slow(budget._size)
        said = together(lambda: budget.allows(price(share)))
        equal([sum(said), budget.spent], [3, 3 * share], rtol=1e-9)

    for check in (again, crowd):
        check(stopping.Filter)
        must_fail(check, Careless)
    must_fail(crowd, Unlocked)
    crowd(stopping.GaussianFilter, lambda share: dp.gaussian(share**-0.5))


def test_a_copy_is_the_same_budget_and_a_stored_one_has_been_spent():
    for budget in (stopping.Filter(1.0, 1e-5), stopping.GaussianFilter(1.0, 1e-5)):
        assert budget.allows(dp.gaussian(5.0))
        assert copy.copy(budget) is copy.deepcopy([budget])[0] is budget
        stored = pickle.loads(pickle.dumps(budget))
        assert (stored.spent, stored.left) == (budget.spent, budget.left)
        assert stored.allows(dp.gaussian(20.0))
        assert not stored.allows(dp.gaussian(1.0))


@claim("X-counting-filter")
def test_steps_of_one_kind_are_counted():
    """As many as the exact plan; the worst strategy with weaker steps stays within the budget."""
    tree = Tree(0.1, [(8, 0.034), (8, 0.017)])  # the second is the first half of the time
    for epsilon, delta in ((1.5, 1e-3), (0.7, 3e-2)):
        kind = tree.losses[0]
        budget = stopping.CountingFilter(kind, epsilon, delta)
        most = int(budget.left)
        assert kind.compose(most).delta(epsilon) <= delta < kind.compose(most + 1).delta(epsilon)

        def check(rounds, epsilon=epsilon, delta=delta, most=most):
            allowed = lambda n: sum(n) <= most + rounds  # noqa: E731
            at_most(tree.worst(leak(epsilon), allowed, most + rounds), delta)

        check(0)
        must_fail(check, 1)
        said = [budget.allows(kind) for _ in range(most + 2)]
        holds(np.array(said) == (np.arange(most + 2) < most))
    assert (
        stopping.Filter.for_steps(
            dp.subsample(dp.gaussian(1.0), 0.001), epsilon=1.0, delta=1e-6
        ).left
        == 31117
    )


@claim("X-counting-filter", of=1.0, wrong=[0.9])
def test_more_noise_on_a_smaller_sample_is_weaker(least, rng):
    alpha = np.array([1.5, 3.0, 9.0, 40.0])
    epsilon = np.array([0.0, 0.1, 0.5, 2.0])
    for _ in range(8):
        sigma, rate = float(rng.uniform(0.5, 3)), float(10 ** rng.uniform(-3, -0.3))
        more = sigma * float(least + rng.choice([0.0, 0.05, 1.0]))
        less = rate * float(rng.choice([1.0, 0.99, 0.3]))
        for sample in (dp.subsample, dp.subsample_substitution):
            strong, weak = sample(dp.gaussian(sigma), rate), sample(dp.gaussian(more), less)
            at_most(weak.renyi(alpha), strong.renyi(alpha), rtol=1e-10)
            at_most(weak.delta(epsilon), strong.delta(epsilon), rtol=1e-9, atol=1e-15)


def test_what_a_counting_filter_takes():
    kind = dp.subsample(dp.gaussian(1.0), 0.01)
    budget = stopping.Filter.for_steps(kind.compose(5), epsilon=2.0, delta=1e-5)
    weak = dp.subsample(dp.gaussian(1.0), 0.005) + dp.subsample(dp.gaussian(2.0), 0.01).compose(3)
    assert budget.allows(kind.compose(7)) and budget.allows(weak) and budget.spent == 11
    for strong in (
        dp.subsample(dp.gaussian(0.99), 0.01),
        dp.subsample(dp.gaussian(1.0), 0.011),
        dp.subsample_substitution(dp.gaussian(1.0), 0.01),
        dp.laplace(1e6),
        kind + dp.gaussian(1e6),
    ):
        with pytest.raises(ValueError, match="^step must be .* or weaker"):
            budget.allows(strong)
    assert budget.spent == 11
    with pytest.raises(ValueError, match="^epsilon must be large enough for one step"):
        stopping.Filter.for_steps(dp.laplace(1.0), epsilon=0.5, delta=1e-6)
    with pytest.raises(ValueError, match="^step must be of one kind"):
        stopping.CountingFilter(dp.gaussian(1.0), 1.0, 1e-5)
    gaussian = stopping.Filter.for_steps(dp.gaussian(20.0), epsilon=1.0, delta=1e-5)
    assert isinstance(gaussian, stopping.GaussianFilter)


def test_the_order_for_announced_steps():
    """At least what 400 orders give, and the first step is no more refused without a word."""
    kinds = [dp.subsample(dp.gaussian(1.0), 0.001), dp.subsample(dp.gaussian(2.0), 0.01)]
    found = stopping.Filter.for_steps(*kinds, epsilon=1.0, delta=1e-6)
    filters = [stopping.Filter(1.0, 1e-6, order=order) for order in np.linspace(12.7, 40, 400)]
    together = sum(kinds)
    most = max(each.left / each.cost(together) for each in filters)
    at_most(most, found.left / found.cost(together), rtol=1e-6)
    default = stopping.Filter(1.0, 1e-6)
    with pytest.warns(UserWarning, match="^one such step costs 3.758, more than all of <Filter"):
        assert not default.allows(kinds[0])
    assert repr(default).endswith("0.535573 of 0.535573 left>")
    with pytest.raises(ValueError, match="^epsilon must be large enough for all steps"):
        stopping.Filter.for_steps(*kinds, dp.laplace(0.5), epsilon=0.5, delta=1e-6)


def spend_all(budget):
    return sum(budget.allows(dp.gaussian(10.0)) for _ in range(30))


@pytest.mark.slow
def test_processes_that_share_a_file_spend_one_budget(tmp_path):
    file = tmp_path / "training.budget"
    alone = spend_all(stopping.Filter(1.0, 1e-5))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        shared = pool.map(spend_all, [stopping.Filter(1.0, 1e-5, file=file)] * 2)
        apart = pool.map(spend_all, [stopping.Filter(1.0, 1e-5)] * 2)
    assert sum(shared) == alone and apart == [alone, alone]
    later = stopping.Filter(1.0, 1e-5, file=file)
    assert spend_all(later) == 0 and later.left < later.cost(dp.gaussian(10.0))
    exact = stopping.Filter(1.0, 1e-5)
    spend_all(exact)
    assert (later.spent, later.left) == (exact.spent, exact.left)
    for other in (
        lambda: stopping.Filter(1.1, 1e-5, file=file),
        lambda: stopping.Filter(1.0, 1e-5, order=30.0, file=file),
        lambda: stopping.GaussianFilter(1.0, 1e-5, file=file),
        lambda: stopping.Filter(1.0, 1e-5, file=tmp_path / "none" / "there"),
        lambda: stopping.Filter(1.0, 1e-5, file=__file__),
        lambda: stopping.Filter(1.0, 1e-5, file=3),
    ):
        with pytest.raises(ValueError, match="^file must be"):
            other()


@claim("X-renyi-filter")
def test_an_order_chosen_afterwards_is_no_filter():
    epsilon, delta, a = 2.0, 1e-3, 0.03
    up = np.exp(a) / (1 + np.exp(a))

    def renyi(p):  # of p against its reverse, as a function of the order
        return lambda order: np.log((p**order * p[::-1] ** (1 - order)).sum()) / (order - 1)

    def worst(within):
        """The worst of both choices after a coin, each as large as `within` lets it be."""
        largest = np.zeros(2)
        for order in (64, 30, 16, 8, 6, 4):
            top = epsilon + np.log(order / (order - 1))
            chances = np.exp(np.linspace(-12, -1, 5000))
            fitting = bisect_left(chances, True, key=lambda c: not within(renyi(lazy(top, c))))
            p = lazy(top, chances[fitting - 1])
            after = dp.hockey_stick(p, p[::-1], epsilon - np.array([a, -a]))
            largest = np.maximum(largest, [up, 1 - up] * after)
        return largest.sum()

    coin, orders = renyi(np.array([up, 1 - up])), np.arange(2.0, 81.0)
    spent = np.array([coin(order) for order in orders])

    def fixed(step):
        budget = stopping.Filter(epsilon, delta)
        return budget.allows(coin) and budget.allows(step)

    def chosen_afterwards(step):
        rdp = spent + [step(order) for order in orders]
        return dp.rdp_to_dp_improved(orders, rdp, delta).min() <= epsilon

    def check(within):
        at_most(worst(within), delta)

    check(fixed)
    must_fail(check, chosen_afterwards)
    assert 1.1 * delta < worst(chosen_afterwards)


@claim("X-renyi-filter", of=dp.rdp_to_dp_improved, wrong=[dp.rdp_to_dp])
def test_a_budget_spent_to_the_end_is_epsilon(convert):
    """`rdp_to_dp_improved` of what a filter may spend at its order gives epsilon back."""
    for epsilon, delta, order in product((0.5, 3.0), (1e-12, 1e-3), (None, 80.0, 200.0)):
        budget = stopping.Filter(epsilon, delta, order=order)
        assert order in (None, budget.order)
        equal(convert([budget.order], [budget.left], delta), epsilon, rtol=1e-9)
    nothing = stopping.Filter(0.0, 0.0)  # pays for what costs nothing, and for nothing else
    assert nothing.allows(lambda alpha: 0.0) and not nothing.allows(lambda alpha: 1e-300)
    for order in (0.5, 1.0):
        with pytest.raises(ValueError, match="order"):
            stopping.Filter(1.0, 1e-5, order=order)


def gaussian_value(choices, rounds, epsilon):
    """Largest delta over strategies that split a budget of 8 units of mu^2/8 by what came out,
    `choices` units at a time; by quadrature over the loss, with no use of a composition."""
    unit = 1.2**2 / 8
    loss = np.linspace(-9.0, 12.0, 1051)
    gap = loss[1] - loss[0]
    value = {0: [-np.expm1(np.minimum(epsilon - loss, 0.0))] * (rounds + 1)}
    for left in range(1, 9):
        value[left] = [value[0][0]]
        for r in range(1, rounds + 1):
            best = value[0][0]
            for used in choices:
                if used > left:
                    continue
                v = used * unit
                if left == used or r == 1:  # the last step in closed form
                    mean = dp.gaussian_delta(v**-0.5, epsilon - loss)
                else:
                    kernel = norm.pdf(np.arange(-500, 501) * gap, -v / 2, np.sqrt(v)) * gap
                    inner = value[left - used][r - 1]
                    padded = np.concatenate([np.zeros(500), inner, np.full(500, inner[-1])])
                    mean = fftconvolve(padded, kernel, "valid")
                best = np.maximum(best, mean)
            value[left].append(best)
    return np.interp(0.0, loss, value[8][rounds])


@claim("X-gaussian-filter", of=1.0, wrong=[0.99])
def test_gaussian_noise_chosen_adaptively_costs_nothing(factor):
    for epsilon in (0.3, 2.0):
        worst = gaussian_value((1, 2, 3, 5), 4, epsilon)
        exact = dp.gaussian_delta(1 / 1.2, epsilon)
        at_most(worst, factor * exact, rtol=1e-6)
        equal(worst, exact, rtol=1e-6)

    # two rounds, the second one's noise a wild function of the first output
    def twice(rule, cap):
        for epsilon in (0.5, 1.5):
            one, mu = 0.8, 1.2

            def leaked(y, one=one, epsilon=epsilon):
                rest, m = epsilon - (one * y - one**2 / 2), np.maximum(rule(y, one), 1e-9)
                return norm.pdf(y - one) * dp.gaussian_delta(1 / m, rest)

            delta = sum(fixed_quad(leaked, a, a + 0.1, n=20)[0] for a in np.arange(-80, 100) / 10)
            at_most(delta, cap * dp.gaussian_delta(1 / mu, epsilon), rtol=1e-7)

    rest = lambda one: np.sqrt(1.2**2 - one**2)  # noqa: E731
    twice(lambda y, one: rest(one) * np.cos(3 * y) ** 2, 1.0)
    twice(lambda y, one: rest(one) * (y > 0.9), 1.0)
    must_fail(twice, lambda y, one: 1.2 - one * (y < 0.4) * 0.4, 1.0)  # mu in place of mu^2
    must_fail(twice, lambda y, one: rest(one), 0.99)


@claim("X-gaussian-filter")
def test_a_gaussian_filter_lets_the_budget_be_spent():
    budget = stopping.GaussianFilter(1.0, 1e-5)
    sigma = dp.gaussian_sigma(1.0, 1e-5)
    for _ in range(9):
        assert budget.allows(dp.gaussian(np.sqrt(10) * sigma))
    assert not budget.allows(dp.gaussian(3 * sigma))
    equal(budget.left, 0.1 / sigma**2, rtol=1e-9)
    assert budget.allows(dp.gaussian(1 / np.sqrt(budget.left)))
    assert not budget.allows(dp.gaussian(1000 * sigma))
    assert budget.allows(dp.gaussian(1.0).__class__([]))  # a step that loses nothing


@claim("X-no-odometer")
def test_bounds_that_are_tight_at_each_time_all_break():
    # coins: chance that the loss ever exceeds its own quantile, by following the law of the walk
    def ever(level, times):
        right, law, crossed, seen = 1 / (1 + np.exp(-0.1)), np.ones(1), 0.0, {}
        free = np.ones(1)
        for t in range(1, max(times) + 1):
            law = np.convolve(law, [1 - right, right])
            free = np.convolve(free, [1 - right, right])
            tail = np.cumsum(law[::-1])[::-1]  # P(at least j heads)
            out = np.arange(t + 1) >= np.nonzero(tail >= level)[0].max()
            crossed, free = crossed + free[out].sum(), np.where(out, 0.0, free)
            if t in times:
                seen[t] = crossed
        return np.array([seen[t] for t in times])

    times = [1, 10, 100, 1500]
    for level, reached in ((0.5, 0.98), (0.05, 0.3)):
        chances = ever(level, times)
        at_most(chances[:-1], chances[1:])
        at_most(level, chances)
        at_most(reached, chances[-1])
        must_fail(at_most, chances[-1], level)


@claim("X-odometer")
def test_the_odometer_holds_at_all_times_against_every_strategy():
    # coins of epsilon h or 3h: both h^2/2 times 1 and 9 in zCDP; the worst chance to ever cross
    h, delta, rounds, most = 0.2, 0.05, 45, 250
    rho = h**2 / 2 * np.arange(most + 10)

    def worst(bound):
        reach = 3 * rounds
        loss = h * np.arange(-reach - 3, reach + 4)
        crossed = loss[None] > np.array(bound)[:, None] + 1e-12
        value = crossed * 1.0
        for _ in range(rounds):
            best = np.zeros_like(value[: most + 1, 3:-3])
            for size in (1, 3):
                up = 1 / (1 + np.exp(-h * size))
                later = value[size**2 : most + 1 + size**2]
                moved = up * later[:, 3 + size : later.shape[1] - 3 + size]
                moved = moved + (1 - up) * later[:, 3 - size : later.shape[1] - 3 - size]
                best = np.maximum(best, moved)
            value = value.copy()
            value[: most + 1, 3:-3] = np.where(crossed[: most + 1, 3:-3], 1.0, best)
        return value[0, reach + 3]

    def check(bound):
        at_most(worst(bound), delta)

    for scale in (0.1, 1.0, 10.0):
        check(stopping.odometer(rho, delta, scale=scale))
    # the bound for each time by itself is no odometer
    must_fail(check, rho + np.sqrt(4 * rho * np.log(1 / delta)) * 0.7)
    must_fail(check, 0.7 * stopping.odometer(rho, delta, scale=1.0))


@claim(
    "X-odometer",
    of=stopping.odometer,
    wrong=[lambda rho, delta, scale: stopping.odometer(rho, delta, scale=1.01 * scale)],
)
def test_odometer_from_the_mixture_of_bets(at_all_times, rng):
    """The mean of exp(t x - t^2 rho) over t ~ N(0, 1/scale), x = odometer - rho, by quadrature."""
    exponents = ((-6, 3), (-4, 3), (-90, -1))
    rho, scale, delta = (10.0 ** rng.uniform(low, high, 300) for low, high in exponents)
    x = [at_all_times(r, d, scale=s) - r for r, d, s in zip(rho, delta, scale, strict=True)]
    x = np.array(x)[:, None]
    spread = (scale + 2 * rho)[:, None] ** -0.5
    t = x * spread**2 + spread * np.linspace(-12, 12, 241)
    bets = t * x - t * t * (rho + scale / 2)[:, None] + np.log(scale)[:, None] / 2
    log_wealth = np.log(np.exp(bets).sum(-1) * 0.1 * spread[:, 0] / np.sqrt(2 * np.pi))
    equal(log_wealth, -np.log(delta), rtol=1e-9)
