"""Exact sums of finite losses against rational probabilities and 500 bits: nothing may miss.

Each check is also run against planted mistakes, which it must catch.
"""

import math

import numpy as np
import pytest
from flint import arb, ctx, fmpq

import dpnotes as dp
from dpnotes.accountant import binomial, finite_sums, two_losses
from evidence import holds, must_fail

ctx.prec = 500


def ball(x):
    """A float, exactly."""
    return arb(fmpq(*float(x).as_integer_ratio()))


def laws(p, q):
    """Two laws on the same outcomes as balls, normalised."""
    p, q = ([fmpq(*float(x).as_integer_ratio()) for x in law] for law in (p, q))
    return [(arb(a / sum(p, fmpq(0))), arb(b / sum(q, fmpq(0)))) for a, b in zip(p, q, strict=True)]


def coin(epsilon):
    e = ball(epsilon)
    return [(1 / (1 + (-e).exp()), 1 / (1 + e.exp())), (1 / (1 + e.exp()), 1 / (1 + (-e).exp()))]


def sampled(pairs, rate):
    return [(ball(rate) * a + (1 - ball(rate)) * b, b) for a, b in pairs]


def powers(pairs, k):
    """The k-fold product, outcomes with equal counts as one."""
    if len(pairs) == 1:
        return [(pairs[0][0] ** k, pairs[0][1] ** k)]
    (a, b), found = pairs[0], []
    for j in range(k + 1):
        ways = math.comb(k, j)
        found += [(ways * a**j * c, ways * b**j * d) for c, d in powers(pairs[1:], k - j)]
    return found


def products(steps):
    found = [(arb(1), arb(1))]
    for pairs, k in steps:
        found = [(a * c, b * d) for a, b in found for c, d in powers(pairs, k)]
    return found


def truth(product, epsilon):
    """delta in the worse direction."""
    factor, both = ball(epsilon).exp(), []
    for pairs in (product, [(b, a) for a, b in product]):
        total = arb(0)
        for a, b in pairs:
            excess = a - factor * b
            total += excess if excess > 0 else (arb(0) if excess <= 0 else arb(0).union(excess))
        both.append(total)
    return both[0] if both[0] > both[1] else both[1]


def draw(rng):
    """A random composition and its exact product."""
    kind = rng.choice(["coin", "pair", "sampled", "mixture"])
    if kind == "coin":
        epsilon, k = 10 ** rng.uniform(-14, 1.3), int(rng.integers(1, 60))
        return dp.randomized_response(epsilon).compose(k), products([(coin(epsilon), k)])
    loss, steps = None, []
    for _ in range(2 if kind == "mixture" else 1):
        n = int(rng.integers(2, 5 if kind == "pair" else 4))
        k = int(rng.integers(1, {2: 40, 3: 8, 4: 5}[n] if kind != "mixture" else 4))
        p = 10 ** rng.uniform(-rng.choice([0, 1, 8]), 0, n)
        q = p * (1 + rng.uniform(-1, 1, n) * 10 ** rng.uniform(-11, 0))
        if rng.random() < 0.4:
            q[0], p[1] = rng.choice([q[0], 0.0]), rng.choice([p[1], 0.0])
        p, q = p / p.sum(), q / q.sum()
        one, pairs = dp.finite(p, q), laws(p, q)
        if kind == "sampled":
            rate = float(rng.choice([rng.random(), 10 ** rng.uniform(-7, 0), 1 - 1e-8]))
            one, pairs = dp.subsample(one, rate), sampled(pairs, rate)
        loss = one.compose(k) if loss is None else loss + one.compose(k)
        steps.append((pairs, k))
    return loss, products(steps)


def queries(rng, product):
    """Levels anywhere, at the values of the loss and at the last floats below the largest."""
    ends = [float((a / b).log()) for a, b in product if a > 0 and b > 0]
    top = max(map(abs, ends), default=1.0)
    near = top * (1 - 10 ** rng.uniform(-17, -1))
    return [
        0.0,
        rng.random() * top,
        near,
        np.nextafter(top, 0),
        top,
        abs(rng.choice(ends or [0.0])),
    ]


def check_deltas(cases, interval, value):
    for loss, product, levels, _ in cases:
        for epsilon in levels:
            exact, (low, high) = truth(product, epsilon), interval(loss, epsilon)
            holds(not ball(low) > exact, f"low end {low} of {loss} at {epsilon}")
            holds(not exact > ball(high), f"high end {high} of {loss} at {epsilon}")
            holds(not exact > ball(value(loss, epsilon)), f"value of {loss} at {epsilon}")


def check_epsilons(cases, interval):
    for loss, product, _, targets in cases:
        for delta in targets:
            low, high = interval(loss, delta)
            holds(low == 0 or not truth(product, low) < ball(delta), f"low of {loss}, {delta}")
            holds(high == math.inf or not truth(product, high) > ball(delta), f"{loss}, {delta}")


def cases(seed, count):
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        loss, product = draw(rng)
        targets = [10 ** rng.uniform(-300, 0), 1 - 10 ** rng.uniform(-14, 0), rng.random()]
        infinite = max(sum((float(p[i]) for p in product if p[1 - i] == 0), 0.0) for i in (0, 1))
        targets = [d for d in targets if d > infinite * (1 + 1e-12)]
        found.append((loss, product, queries(rng, product), targets))
    return found


CASES = cases(20, 40)


def test_no_interval_of_delta_misses():
    check_deltas(CASES, lambda run, e: run.delta_interval(e), lambda run, e: run.delta(e))
    must_fail(check_deltas, CASES, lambda run, e: (run.delta(e),) * 2, lambda run, e: run.delta(e))
    must_fail(
        check_deltas,
        CASES,
        lambda run, e: run.delta_interval(e),
        lambda run, e: run.delta_interval(e)[0],
    )


def test_no_interval_of_epsilon_misses():
    check_epsilons(CASES, lambda run, d: run.epsilon_interval(d))
    must_fail(check_epsilons, CASES, lambda run, d: (run.epsilon(d) * (1 + 1e-12),) * 2)
    must_fail(check_epsilons, CASES, lambda run, d: (run.epsilon_interval(d)[0],) * 2)


def test_the_last_atoms():
    """Once 0 for 9e-44, and 1.9e-17 for 2.0e-17: the sum of the losses was rounded."""
    for epsilon, k, level in [
        (1.7343733443615856e-11, 58, 1.0059365397297196e-09),
        (0.31, 7, 2.169999999999999),
        (0.31, 7, 2.17),  # 7 times the float 0.31 is above the float 2.17
    ]:
        run, exact = (
            dp.randomized_response(epsilon).compose(k),
            truth(products([(coin(epsilon), k)]), level),
        )
        low, high = run.delta_interval(level)
        assert ball(low) <= exact <= ball(high) and high - low <= 1e-11 * low


def test_nearly_equal_values_are_not_merged():
    """A chain of 5,001 of them moved delta by 5e-8."""
    run = dp.finite([0.8, 0.2], [0.9, 0.1]) + dp.randomized_response(3.4e-14).compose(5000)
    low, high = run.delta_interval(0.69)
    assert low <= 6.284466757e-4 * (1 + 1e-9) and high >= 6.284466757e-4 * (1 - 1e-9)
    assert high - low <= 1e-9 * low


# Many rounds: windows of the binomial law, and nodes of its integral


def binomial_truth(run_of, k, epsilon):
    """delta from one term after the other; ``run_of`` = losses and probabilities as balls."""
    (low, high), (q, p) = run_of
    n = int(((ball(epsilon) - low * k) / (high - low)).floor().unique_fmpz()) + 1
    mean = float(p * k)
    last = min(k, int(max(n, mean) + 30 * math.sqrt(k * float(p * q)) + 200))
    term = (arb(k + 1).lgamma() - arb(n + 1).lgamma() - arb(k - n + 1).lgamma()).exp()
    term *= (n * p.log() + (k - n) * q.log()).exp()
    weight, total = (ball(epsilon) - low * (k - n) - high * n).exp(), arb(0)
    quotient, fall = p / q, (low - high).exp()
    for j in range(n, last + 1):
        total += term * (1 - weight)
        term, weight = term * (k - j) / (j + 1) * quotient, weight * fall
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "k"),
    [(dp.randomized_response(3e-3), 30_000), (dp.randomized_response(7e-4), 20_000_000)],
)
def test_many_coins(step, k):
    epsilon = ball(step._parts[0][0].losses[1])
    law = (-epsilon, epsilon), (1 / (1 + epsilon.exp()), 1 / (1 + (-epsilon).exp()))
    mean, width = k * float(epsilon) ** 2 / 2, math.sqrt(k) * float(epsilon)

    def check(interval):
        for z in (0, 2, 7):
            exact = binomial_truth(law, k, mean + z * width)
            low, high = interval(step.compose(k), mean + z * width)
            holds(ball(low) <= exact <= ball(high) and high - low <= 1e-11 * low)

    check(lambda run, e: run.delta_interval(e))
    must_fail(check, lambda run, e: step.compose(k + 1).delta_interval(e))


def test_windows_and_nodes_agree(monkeypatch):
    step = dp.randomized_response(1e-3)._parts[0][0]
    method = two_losses.Binomial(step, 3_000_000)

    def check(levels):
        for side in ("tail", "rest"):
            for epsilon in levels:
                wide = getattr(method, side)(epsilon)
                with monkeypatch.context() as patch:
                    patch.setattr(two_losses, "MOST_VALUES", 100)
                    found = getattr(method, side)(epsilon)
                holds(max(wide[0], found[0]) <= min(wide[1], found[1]))
                holds(found[1] - found[0] <= 1e-10 * found[1])

    check((0.0, 0.3, 1.5, 4.0, 9.0))
    with monkeypatch.context() as wrong:
        wrong.setattr(method, "gap", method.gap * (1 + 1e-6))
        must_fail(check, (4.0,))


def test_a_trillion_rounds():
    """Gaussian to the third digit beyond the limit theorem, in nodes independent of k."""
    run = dp.randomized_response(1e-6).compose(10**12)
    low, high = run.delta_interval(1.0)
    assert high - low <= 1e-11 * low
    assert low == pytest.approx(dp.gaussian(1.0).delta(1.0), rel=1e-10)


def test_deviance_is_accurate_near_the_mean():
    for mean, far in [(1e12, 1.0), (1e12, -3e6), (50.0, 9.99), (50.0, 10.01), (3.0, -3.0)]:
        x = ball(mean + far)
        exact = (x * (x / ball(mean)).log() if x > 0 else arb(0)) - ball(mean + far) + ball(mean)
        value, error = binomial.deviance(np.array(mean + far), math.log(mean), np.array(far))
        assert abs(float(ball(float(value)) - exact)) <= error + 4e-16 * abs(far) * math.log(mean)


def test_enumeration_keeps_two_sums_exact():
    values = np.array([0.1, 0.2, 0.3])
    joined = finite_sums._joined(
        np.array([values, *np.zeros((4, 3))]), np.array([values, *np.zeros((4, 3))])
    )
    exact = [ball(a) + ball(b) for a in values for b in values]
    assert all(ball(s) + ball(f) == t for s, f, t in zip(joined[0], joined[1], exact, strict=True))


@pytest.mark.slow
def test_two_rounds_of_many_losses():
    """No table of all counts (it would have a gigabyte); the same answer as all pairs of losses."""
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(600), 2)
    once = dp.finite(p, q)
    assert finite_sums.enumerated(once._parts) is not None
    assert finite_sums.enumerated(once.compose(2)._parts) is None
    pairs, mirrored = np.multiply.outer(p, p), np.multiply.outer(q, q)
    for epsilon in (0.0, 1.0, 5.0):
        above = [np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in
                 ((pairs, mirrored), (mirrored, pairs))]  # fmt: skip
        low, high = once.compose(2).delta_interval(epsilon)
        assert low * (1 - 1e-12) <= max(above) <= high * (1 + 1e-12)
        assert high - low <= 1e-5 * high


@pytest.mark.parametrize("k", [5, 40_000, 250_000_000, 10**12])
def test_one_finite_loss_needs_no_table(k):
    """Beside outcomes that give all away: L = k log(p/q), or infinite. Counts of any size."""
    p, q = 1e-9, 0.44
    run = dp.finite((0.0, 1 - p, p), (q, 1 - q, 0.0)).compose(k)
    loss, kept = k * (np.log1p(-p) - np.log1p(-q)), np.exp(k * np.log1p(-p))
    exact = max(1 - kept * np.exp(min(0.5 - loss, 0.0)), 1 - (1 - q) ** k)
    low, high = run.delta_interval(0.5)
    assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12) and high - low <= 1e-9
    assert run.epsilon_interval(1e-9) == (np.inf, np.inf)
