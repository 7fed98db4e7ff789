"""What must hold of every composition, whatever the method that computed it; and compositions of
finite pairs against all outcomes, one by one, in 50 digits.

A check takes the calls it tests as arguments, so that planted mistakes can stand in for them.
"""

import functools
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from flint import arb, ctx, fmpz
from hypothesis import given, settings
from hypothesis import strategies as st

import dpnotes as dp
from dpnotes.accountant import contour, inversion
from dpnotes.accountant.laplace import Laplace
from dpnotes.accountant.step import Gaussian
from evidence import at_most, equal, holds, must_fail
from strategies import close_laws, finite_laws

EPSILONS = np.array([0.0, 1e-3, 0.05, 0.2, 0.5, 1.0, 1.7, 3.0])
DELTAS = np.array([1e-12, 1e-6, 1e-3, 0.03, 0.2, 0.6])
PAIR = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
CROSSING = [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]  # each direction is the worse at some epsilon
SKEW = [0.6, 0.3, 0.1], [0.7, 0.1, 0.2]

QUICK = {  # compositions whose answers take milliseconds, one for every method
    "gaussian": dp.gaussian(1.2),
    "laplace": dp.laplace(1.2),
    "response": dp.randomized_response(0.4).compose(30),
    "finite": dp.finite(*SKEW).compose(6),
    "infinite": dp.finite([0.5, 0.4, 0.1], [0.6, 0.4, 0.0]).compose(2),
    "many laplaces": dp.laplace(20.0).compose(2000),
    "sampled once": dp.subsample(dp.gaussian(0.8), 0.05),
    "sampled": dp.subsample(dp.gaussian(0.8), 0.05).compose(200),
    "mixed": dp.gaussian(2.0) + dp.laplace(1.5) + dp.subsample(dp.gaussian(1.0), 0.1).compose(20),
    "with response": dp.gaussian(1.5) + dp.randomized_response(0.5),
}
SLOW = {  # moved to a lattice
    "laplaces": dp.laplace(1.2).compose(3),
    "few sampled": dp.subsample(dp.gaussian(0.5), 0.01).compose(3),
    "of all kinds": dp.randomized_response(0.5)
    + dp.laplace(1.0)
    + dp.subsample(dp.gaussian(0.5), 0.01),
}
every_quick = pytest.mark.parametrize("run", QUICK.values(), ids=QUICK)


def below(smaller, larger, rtol=0.0, atol=0.0):
    """at_most for values that may be infinite."""
    smaller, larger = np.asarray(smaller), np.asarray(larger)
    finite = np.isfinite(larger)
    holds(np.isfinite(smaller) >= finite, "finite below finite")
    at_most(np.where(finite, smaller, 0.0), np.where(finite, larger, 0.0), rtol=rtol, atol=atol)


# ---------------------------------------------------------------- all outcomes, one by one


class Outcomes:
    """All outcomes of finite pairs run one after the other, in 50 digits."""

    def __init__(self, *pairs):
        self.laws = [(mp.mpf(1), mp.mpf(1))]
        with mp.workdps(50):
            for p, q in pairs:
                p, q = ([mp.mpf(float(x)) for x in law] for law in (p, q))
                p, q = ([x / mp.fsum(law) for x in law] for law in (p, q))
                self.laws = [
                    (a * c, b * d) for a, b in self.laws for c, d in zip(p, q, strict=True)
                ]

    def delta(self, epsilon):
        """The worse of both directions, and its slope: minus its derivative by epsilon."""
        with mp.workdps(50):
            power = mp.exp(mp.mpf(float(epsilon)))
            found = []
            for laws in (self.laws, [(q, p) for p, q in self.laws]):
                over = [(p - power * q, power * q) for p, q in laws if p > power * q]
                found.append((mp.fsum(a for a, _ in over), mp.fsum(b for _, b in over)))
            worse = max(found)
            return float(worse[0]), float(worse[1])

    def renyi(self, alpha):
        with mp.workdps(50):
            a = mp.mpf(float(alpha))
            both = [self.laws, [(q, p) for p, q in self.laws]]
            if alpha == 1:
                return float(max(mp.fsum(p * mp.log(p / q) for p, q in laws) for laws in both))
            sums = [mp.fsum(p**a * q ** (1 - a) for p, q in laws) for laws in both]
            return float(max(mp.log(total) for total in sums) / (a - 1))

    def tradeoff(self, alpha):
        """Neyman and Pearson: reject the likeliest outcomes first, the last of them by lot."""
        best = []
        with mp.workdps(50):
            for laws in (self.laws, [(q, p) for p, q in self.laws]):
                level, error = mp.mpf(float(alpha)), mp.mpf(1)
                ratio = [(q / p if p else mp.inf, p, q) for p, q in laws]
                for _, p, q in sorted(ratio, reverse=True):
                    share = min(mp.mpf(1), level / p) if p else mp.mpf(1)
                    level, error = level - share * p, error - share * q
                best.append(error)
            return float(min(best))


def against_outcomes(run, outcomes, top, loose=1e-12):
    """delta, epsilon, renyi, tradeoff and the enclosures of `run`."""
    epsilons = top * np.array([0.0, 0.2, 0.5, 0.8, 0.97])
    true, slope = np.array([outcomes.delta(e) for e in epsilons]).T
    # a loss is known to 1e-15 of its parts, which moves delta by the slope
    room = 1e-12 * slope * (1 + top) + 1e-300
    holds(np.abs(run.delta(epsilons) - true) <= loose * true + room, "delta")
    low, high = run.delta_interval(epsilons)
    holds((low <= true + room) & (true - room <= high), "delta lies in its interval")
    inner = (slope > 0) & (true > 0) & (true < 1) & (epsilons > 0)  # at 0 both directions tie
    target, wanted, tilt = true[inner], epsilons[inner], (true / np.maximum(slope, 1e-300))[inner]
    room = 1e-12 * (1 + top) + loose * tilt
    holds(np.abs(run.epsilon(target) - wanted) <= room, "epsilon")
    low, high = run.epsilon_interval(target)
    room = 1e-14 * (1 + top) + 1e-15 * tilt
    holds((low <= wanted + room) & (wanted <= high + room), "epsilon lies in its interval")
    alphas = np.array([1.0, 1.3, 2.0, 17.0])
    equal(run.renyi(alphas), [outcomes.renyi(a) for a in alphas], rtol=1e-11, atol=1e-14)


def both_runs(first, second, k, m):
    """k rounds of one pair and m of another: the composition, and all its outcomes."""
    run = dp.finite(*first).compose(k)
    if m:
        run = run + dp.finite(*second).compose(m)
    return run, Outcomes(*[first] * k, *[second] * m)


@pytest.mark.slow
@given(finite_laws(5), finite_laws(3), st.integers(1, 3), st.integers(0, 2))
@settings(max_examples=25)
def test_finite_pairs_against_all_outcomes(first, second, k, m):
    run, outcomes = both_runs(first, second, k, m)
    against_outcomes(run, outcomes, run.epsilon(0.0))


def test_the_check_against_all_outcomes_finds_mistakes():
    p, q = np.array(CROSSING[0]), np.array(CROSSING[1])
    outcomes, step = Outcomes(*[(p, q)] * 3), dp.finite(p, q)
    top = step.compose(3).epsilon(0.0)

    class OneWay:
        """Only one of the two directions, by brute force."""

        def __init__(self, p, q):
            losses = list(itertools.product(range(len(p)), repeat=3))
            self.p, self.q = (np.array([np.prod(law[list(i)]) for i in losses]) for law in (p, q))

        def delta(self, epsilon):
            return np.array([dp.hockey_stick(self.p, self.q, e) for e in epsilon])

        def __getattr__(self, name):
            return getattr(step.compose(3), name)

    against_outcomes(step.compose(3), outcomes, top)
    for way in (OneWay(p, q), OneWay(q, p)):
        must_fail(against_outcomes, way, outcomes, top)
    for wrong in (step, step.compose(2), step.compose(4), dp.finite(p, q[::-1]).compose(3)):
        must_fail(against_outcomes, wrong, outcomes, top)


@pytest.mark.slow
@given(finite_laws(4), st.floats(0.001, 0.999), st.integers(1, 3))
@settings(max_examples=15)
def test_sampled_finite_pairs_against_all_outcomes(pair, rate, k):
    p, q = pair
    outcomes = Outcomes(*[(rate * p + (1 - rate) * q, q)] * k)
    run = dp.subsample(dp.finite(p, q), rate).compose(k)
    against_outcomes(run, outcomes, run.epsilon(0.0))


def test_sampling_needs_both_directions_and_the_part_left_out():
    p, q, rate = np.array(SKEW[0]), np.array(SKEW[1]), 0.3
    mixture = rate * p + (1 - rate) * q
    outcomes = Outcomes((mixture, q), (mixture, q))
    run = dp.subsample(dp.finite(p, q), rate).compose(2)
    top = run.epsilon(0.0)
    against_outcomes(run, outcomes, top)
    must_fail(against_outcomes, dp.finite(p, q).compose(2), outcomes, top)
    must_fail(against_outcomes, dp.subsample(dp.finite(q, p), rate).compose(2), outcomes, top)
    swapped = rate * q + (1 - rate) * p
    must_fail(against_outcomes, dp.finite(swapped, p).compose(2), outcomes, top)
    once = dp.subsample(dp.finite(p, q).compose(1), 1 - (1 - rate) ** 2)  # sampled once for both
    must_fail(against_outcomes, once, outcomes, top)
    # which direction is the worse changes along the curve
    at = np.linspace(0, top, 50)
    removed = np.array([dp.hockey_stick(mixture, q, e) for e in at])
    added = np.array([dp.hockey_stick(q, mixture, e) for e in at])
    single = dp.subsample(dp.finite(p, q), rate).delta(at)
    equal(single, np.maximum(removed, added), rtol=1e-11, atol=1e-16)


@pytest.mark.parametrize("cut", [1e-300, 1e-3, 0.3])
def test_infinite_losses_against_all_outcomes(cut):
    """p's mass where q vanishes, and q's where p does, alone and composed."""
    p, q = np.array([cut, 0.6 - cut / 2, 0.4 - cut / 2, 0.0]), np.array([0.0, 0.5, 0.3, 0.2])
    for first, second in ((p, q), (q, p), (p, [0.0, 0.5, 0.5, 0.0]), (q, [0.0, 0.6, 0.4, 0.0])):
        outcomes, run = (
            Outcomes((first, second), (first, second)),
            dp.finite(first, second).compose(2),
        )
        epsilons = np.array([0.0, 0.05, 0.2, 1.0, 9.0])
        true = np.array([outcomes.delta(e)[0] for e in epsilons])
        equal(run.delta(epsilons), true, rtol=1e-12, atol=1e-307)
        equal(run.epsilon(float(true[-1]) / 2), math.inf)
        equal(run.renyi([1.0, 2.0, math.inf]), math.inf)


@pytest.mark.parametrize("rate", [0.05, 0.7, 1 - 1e-12])
def test_infinite_losses_are_sampled(rate):
    """Where p vanishes the mixture has (1 - rate) q, and a finite loss."""
    for p, q in (
        ([0.5, 0.5, 0.0], [0.0, 0.4, 0.6]),
        ([0.5, 0.5], [1.0, 0.0]),
        ([1.0, 0.0], [0.3, 0.7]),
    ):
        p, q = np.array(p), np.array(q)
        mixture = rate * p + (1 - rate) * q
        for k in (1, 3):
            outcomes = Outcomes(*[(mixture, q)] * k)
            run = dp.subsample(dp.finite(p, q), rate).compose(k)
            epsilons = np.array([0.0, 0.03, 0.3, 2.0])
            true = [outcomes.delta(e)[0] for e in epsilons]
            equal(run.delta(epsilons), true, rtol=1e-10, atol=1e-14)


def gaussian_profile(mu):
    """delta at every real x, of N(mu, 1) against N(0, 1)."""
    return lambda x: mp.ncdf(mu / 2 - x / mu) - mp.exp(x) * mp.ncdf(-mu / 2 - x / mu)


def laplace_profile(scale):
    """The same, of Laplace noise: losses stay within 1/scale."""
    return lambda x: max(mp.mpf(0), -mp.expm1((x - 1 / scale) / 2 if x > -1 / scale else x))


LEAKS = {  # q vanishes once, p once, both
    "infinite": ([0.5, 0.45, 0.05], [0.6, 0.4, 0.0]),
    "lost": ([0.5, 0.5, 0.0], [0.3, 0.4, 0.3]),
    "both": ([0.3, 0.65, 0.0, 0.05], [0.3, 0.4, 0.3, 0.0]),
    "rare": ([0.7, 0.3 - 1e-9, 1e-9], [0.5, 0.5, 0.0]),
    "one loss": ([0.9, 0.1, 0.0], [0.7, 0.0, 0.3]),
}


GAUSSIAN = dp.gaussian(2.0), gaussian_profile(mp.mpf(0.5)), (0.0, 0.1, 1.4)
LAPLACE = dp.laplace(1.5), laplace_profile(mp.mpf(1.5)), (0.5, 1.4)  # on a lattice, so fewer


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, rounds, other, profile, epsilons",
    [(name, k, *GAUSSIAN) for name in LEAKS for k in (1, 4)]
    + [("infinite", 2, *LAPLACE), ("one loss", 1, *LAPLACE)],
)
def test_infinite_losses_beside_noise(name, rounds, other, profile, epsilons):
    """Given the outcome of the finite pairs, what is left is the noise at e - L."""
    leak = LEAKS[name]
    run, laws = dp.finite(*leak).compose(rounds) + other, Outcomes(*[leak] * rounds).laws

    def true(e):
        with mp.workdps(40):
            ways = [laws, [(q, p) for p, q in laws]]
            return max(
                mp.fsum(p if q == 0 else p * profile(e - mp.log(p / q)) for p, q in way if p > 0)
                for way in ways
            )

    def check(run):
        for e in epsilons:
            exact = true(mp.mpf(e))
            low, high = run.delta_interval(e)
            assert low <= exact <= high and run.delta(e) >= exact * (1 - mp.mpf(1e-12))
            assert high - low <= 1e-5 * exact
            delta = float(exact)
            below, above = run.epsilon_interval(delta)
            assert true(below) >= delta * (1 - mp.mpf(1e-15)) or below == 0
            assert above == math.inf or true(above) <= delta * (1 + mp.mpf(1e-15))
            assert below <= run.epsilon(delta) <= above

    check(run)
    must_fail(check, dp.finite(*leak).compose(rounds + 1) + other)
    p, q = (np.array(law) for law in leak)
    p, q = p * (q > 0), q * (p > 0)  # without the infinite losses, made laws again
    must_fail(check, dp.finite(p / p.sum(), q / q.sum()).compose(rounds) + other)


@pytest.mark.parametrize("k, cut", [(10_000, 1e-5), (10_000, 1e-12), (300_000, 1e-7)])
def test_infinite_losses_of_thousands_of_rounds(k, cut):
    """Given that no loss is infinite, the number of times the second outcome came is binomial."""
    p, q = [0.5, 0.5 - cut, cut], [0.51, 0.49, 0.0]
    run = dp.finite(p, q).compose(k)
    with ctx.workprec(200):
        (a, b), (c, d) = ([arb(x) / sum(map(arb, law)) for x in law[:2]] for law in (p, q))

    def true(e, a, b, c, d):
        """Infinite losses, then all counts within 40 standard deviations of either law's mean."""
        first = max(0, int(k * float(min(a, c)) - 20 * math.sqrt(k)))
        last = min(k, int(k * float(max(a, c)) + 20 * math.sqrt(k)))
        ways = arb(fmpz.bin_uiui(k, first))
        one, two = ways * a**first * b ** (k - first), ways * c**first * d ** (k - first)
        total, up, power = 1 - (a + b) ** k, (a / b, c / d), arb(e).exp()
        for j in range(first, last + 1):
            excess = one - power * two
            if excess > 0:
                total += excess
            more = arb(k - j) / (j + 1)
            one, two = one * more * up[0], two * more * up[1]
        assert total.rad() < 1e-20
        return float(total.mid())

    for e in (0.5, 4.0, 15.0):
        with ctx.workprec(200):
            exact = max(true(e, a, b, c, d), true(e, c, d, a, b))
        low, high = run.delta_interval(e)
        assert low <= exact <= high
        equal(run.delta(e), float(exact), rtol=1e-10)
        must_fail(equal, run.delta(e), float(exact) + 0.5 * k * cut, rtol=1e-10)


def test_infinite_losses_beside_sampled_steps():
    """Two leaks and twenty sampled steps, one outcome of the leaks at a time."""
    leak, steps = LEAKS["infinite"], dp.subsample(dp.gaussian(1.0), 0.1).compose(20)
    run, laws = dp.finite(*leak).compose(2) + steps, Outcomes(leak, leak).laws

    def profile(way, other, x):
        if x >= 0:
            return way.delta(x)[1]
        return 1 - math.exp(x) * (1 - other.delta(-x)[1])  # of the pair exchanged

    def check(run):
        for e in (0.0, 0.3, 1.0, 2.5):
            found = []
            for way, law in zip(
                (steps._directions, steps._directions[::-1]),
                (laws, [(q, p) for p, q in laws]),
                strict=True,
            ):
                terms = [p * profile(*way, e - float(mp.log(p / q))) for p, q in law if p * q > 0]
                found.append(float(mp.fsum(terms) + mp.fsum(p for p, q in law if q == 0)))
            equal(run.delta(e), max(found), rtol=1e-10)

    check(run)
    must_fail(check, dp.finite(*leak) + steps)


@pytest.mark.slow
def test_more_outcomes_than_are_enumerated():
    """120 rounds of a pair with four outcomes: 302,621 sums of losses, counted here by type."""
    rng = np.random.default_rng(11)
    (p,), (q,) = close_laws(rng, 0.25, size=4, count=1)
    k, loss = 120, np.log(p / q)
    a, b, c = (x.ravel() for x in np.indices((k + 1,) * 3, dtype=np.int16))
    keep = a + b + c <= k
    counts = np.stack([a[keep], b[keep], c[keep], k - (a + b + c)[keep]]).astype(int)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, k + 1)))])
    log_p = log_factorial[k] - log_factorial[counts].sum(0) + np.log(p) @ counts
    total, weight = loss @ counts, np.exp(log_p)
    equal(math.fsum(weight), 1.0, rtol=1e-11)
    run = dp.finite(p, q).compose(k)

    def check(run):
        for e in (0.5, 6.0):
            there = total > e
            removed = math.fsum(weight[there] * -np.expm1(e - total[there]))
            there = total < -e
            added = math.fsum(weight[there] * (np.exp(-total[there]) - np.exp(e)))
            true = max(removed, added)
            low, high = run.delta_interval(e)
            at_most(low, true, rtol=1e-11)
            at_most(true, high, rtol=1e-11)
            at_most(true, run.delta(e), rtol=1e-11)
            at_most(high, low * (1 + 1e-5))
            low, high = run.epsilon_interval(true)
            at_most(low, e, atol=1e-11)
            at_most(e, high, atol=1e-11)

    check(run)
    must_fail(check, dp.finite(p, q).compose(k - 1))


# ---------------------------------------------------------------- randomized response


@functools.lru_cache(maxsize=200)
def binomial_delta(epsilon, k, e):
    """sum_j C(k, j) p^j (1-p)^(k-j) (1 - exp(e - (2j-k) epsilon))_+, term by term from the top."""
    with ctx.workprec(300):
        base, e, j, total = arb(float(epsilon)), arb(float(e)), k, arb(0)
        odds, weight = (-base).exp(), (1 + (-base).exp()) ** -k
        rise, fall = (2 * base).exp(), (e - k * base).exp()
        while j >= 0 and (2 * j - k) * base > e:
            total += weight * (1 - fall)
            weight *= odds * j / (k - j + 1)
            fall *= rise
            j -= 1
        assert total.rad() <= 1e-40 * total.mid()
        return total.mid()


@pytest.mark.parametrize(
    "epsilon, k",
    [(1.0, 2), (0.1, 7), (5.0, 20), (0.3, 100), (1e-3, 999), (0.02, 10_000), (2.0, 3000)],
)
def test_randomized_response_is_a_binomial_sum(epsilon, k):
    def check(run):
        centre = k * epsilon * math.tanh(epsilon / 2)
        wide = epsilon * math.sqrt(k)
        epsilons = np.array([centre + x * wide for x in (-1.0, 0.0, 1.3, 4.0, 9.0)])
        epsilons = np.append(
            np.unique(np.clip(epsilons, 0, 0.999 * k * epsilon)), 0.9999 * k * epsilon
        )
        true = np.array([float(binomial_delta(epsilon, k, e)) for e in epsilons])
        equal(run.delta(epsilons), true, rtol=1e-10, atol=1e-307)
        low, high = run.delta_interval(epsilons)
        at_most(low, true, rtol=1e-15, atol=1e-307)
        at_most(true, high, rtol=1e-15, atol=1e-307)
        for delta in true[(true > 1e-300) & (true < 0.99)]:
            low, high = run.epsilon_interval(delta)
            assert low <= run.epsilon(delta) <= high
            holds(np.array([bool(binomial_delta(epsilon, k, high) <= delta)]), "too low")
            holds(
                np.array([low == 0 or bool(delta <= binomial_delta(epsilon, k, low))]), "too high"
            )
            assert float(binomial_delta(epsilon, k, low) / delta) - 1 <= 1e-8 * (1 + epsilon * k)

    step = dp.randomized_response(epsilon)
    check(step.compose(k))
    must_fail(check, step)
    must_fail(check, step.compose(k + 1))
    must_fail(check, dp.randomized_response(epsilon * (1 + 1e-6)).compose(k))


def test_randomized_response_trades_along_its_vertices():
    epsilon, k = 0.4, 5
    run, up = dp.randomized_response(epsilon).compose(k), 1 / (1 + math.exp(-epsilon))
    weights = [math.comb(k, j) * up**j * (1 - up) ** (k - j) for j in range(k + 1)]
    for m in range(k):  # reject p if at most m answers point its way: q then has the others
        level, error = math.fsum(weights[: m + 1]), math.fsum(weights[: k - m])
        equal(run.tradeoff(level), error, rtol=1e-12)
        must_fail(lambda a, b=error: equal(run.tradeoff(a), b, rtol=1e-12), level * (1 + 1e-9))


# ---------------------------------------------------------------- composition


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in QUICK if name not in ("laplace", "sampled once", "infinite")]
)
def test_composition_adds_commutes_and_costs(name):
    run = QUICK[name]

    def check(twice, thrice, other):
        for query, at in (("delta", EPSILONS), ("epsilon", DELTAS), ("renyi", [1.0, 2.5, 40.0])):
            left, right = getattr(twice(run) + run, query)(at), getattr(thrice(run), query)(at)
            equal(left, right, rtol=1e-9, atol=1e-13)
            left, right = getattr(run + other, query)(at), getattr(other + run, query)(at)
            equal(left, right, rtol=1e-9, atol=1e-13)
            one, two, three = (getattr(x, query)(at) for x in (run, twice(run), thrice(run)))
            below(one, two, rtol=1e-9, atol=1e-13)
            below(two, three, rtol=1e-9, atol=1e-13)
            below(one, getattr(run + other, query)(at), rtol=1e-9, atol=1e-13)
        equal(twice(run).mean(), 2 * run.mean())
        equal((run + other).mean(), run.mean() + other.mean())

    other = dp.gaussian(3.0)
    check(lambda a: a.compose(2), lambda a: a.compose(3), other)
    must_fail(check, lambda a: a, lambda a: a.compose(3), other)
    must_fail(check, lambda a: a.compose(2), lambda a: a.compose(2), other)


def test_counts_multiply_and_add():
    step = dp.subsample(dp.gaussian(1.0), 0.01)
    for left, right in (
        (step.compose(20).compose(30), step.compose(600)),
        (step.compose(400) + step.compose(200), step.compose(600)),
        (
            step.compose(300) + dp.gaussian(2.0) + step.compose(300),
            dp.gaussian(2.0) + step.compose(600),
        ),
        (dp.gaussian(3.0).compose(9), dp.gaussian(1.0)),
        (dp.gaussian(3.0) + dp.gaussian(4.0), dp.gaussian(2.4)),
    ):
        equal(left.delta([0.0, 0.5, 2.0]), right.delta([0.0, 0.5, 2.0]), rtol=1e-11)
        equal(left.epsilon([1e-8, 1e-3]), right.epsilon([1e-8, 1e-3]), rtol=1e-11)
    spent = [step.compose(10**d).epsilon(1e-5) for d in range(3, 10)]
    holds(np.diff(spent) > 0, "more rounds cost more")


# ---------------------------------------------------------------- curves


@every_quick
def test_delta_falls_and_is_convex_in_exp_epsilon(run):
    def check(delta):
        epsilons = np.array([0.0, 0.02, 0.1, 0.4, 1.0, 1.6, 3.0])
        values, (low, high) = delta(epsilons), run.delta_interval(epsilons)
        holds((values >= 0) & (values <= 1))
        at_most(low[1:], high[:-1])
        width = high - low
        at_most(values[1:], values[:-1] + width[:-1], rtol=1e-12)
        x = np.exp(epsilons)
        share = (x[2:] - x[1:-1]) / (x[2:] - x[:-2])
        chord = share * values[:-2] + (1 - share) * values[2:]
        at_most(values[1:-1], chord + width[1:-1] + width[:-2] + width[2:], rtol=1e-11, atol=1e-15)
        at_most(low, values)
        at_most(values, high)

    check(run.delta)
    must_fail(check, lambda e: 1.0 - run.delta(e))
    must_fail(check, lambda e: run.delta(e) * (1 + e))
    must_fail(check, lambda e: np.sqrt(run.delta(e)) if run.delta(0.0) > 1e-4 else -run.delta(e))


@pytest.mark.slow
@every_quick
def test_epsilon_and_delta_undo_each_other_inside_their_intervals(run):
    def check(epsilon, delta):
        inside = (DELTAS < run.delta_interval(0.0)[0]) & (DELTAS > run.delta_interval(30.0)[1])
        if not inside.any():
            return
        deltas = DELTAS[inside]
        found, (low, high) = epsilon(deltas), run.epsilon_interval(deltas)
        at_most(low, found, rtol=0)
        at_most(found, high, rtol=0)
        holds(np.diff(found) < 0, "epsilon falls")
        wide = high - low > 1e-8 * found
        # epsilon is a float, and delta falls no faster than 1 a unit
        equal(
            delta(found)[~wide],
            deltas[~wide],
            rtol=1e-6,
            atol=1e-15 * (1 + found[~wide].max(initial=0)),
        )
        at_most(run.delta_interval(high * (1 + 1e-12))[0], deltas, rtol=1e-9)
        low = np.maximum(low * (1 - 1e-12), 0.0)
        at_most(deltas, run.delta_interval(low)[1], rtol=1e-9)

    check(run.epsilon, run.delta)
    if run.delta(0.0) > 0.21 and run.delta(30.0) < 1e-3:
        must_fail(check, lambda d: run.epsilon(d / 2), run.delta)
        must_fail(check, run.epsilon, lambda e: run.delta(e / 1.01))


@pytest.mark.slow
@every_quick
def test_delta_far_out_is_a_small_number(run):
    epsilons = np.array([0.0, 20.0, 100.0, 1e3, 1e4])
    values, (low, high) = run.delta(epsilons), run.delta_interval(epsilons)
    holds((0 <= low) & (low <= values) & (values <= high) & (high <= 1))
    at_most(values[1:], values[:-1])
    equal(run.delta(1e4), run.delta(1e3), atol=1e-300)


@every_quick
def test_epsilon_stays_below_its_largest_value_and_above_zero(run):
    deltas = np.array([0.0, 1e-300, 1e-30, 1e-4, 0.1, 1.0])
    found, (low, high) = run.epsilon(deltas), run.epsilon_interval(deltas)
    holds(high <= found[0] * (1 + 1e-11), "the largest loss is enough")
    holds(found[1:] <= found[:-1], "epsilon falls")
    holds((low >= 0) & (low <= found) & (found <= high))
    finite = np.isfinite(high)
    at_most(high[finite] - low[finite], 1e-5 * high[finite], atol=1e-300)
    assert found[-1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("run", SLOW.values(), ids=SLOW)
def test_what_is_moved_to_a_lattice_keeps_order(run):
    most, deltas = run.epsilon(0.0), np.array([1e-30, 1e-4])
    low, high = run.epsilon_interval(deltas)
    holds(high <= most * (1 + 1e-11), "the largest loss is enough")
    at_most(high - low, 1e-5 * high)
    assert high[1] <= high[0]
    at_most(run.delta_interval(high[1] * (1 + 1e-12))[0], 1e-4, rtol=1e-9)
    at_most(1e-4, run.delta_interval(low[1] * (1 - 1e-12))[1], rtol=1e-9)


def test_answers_do_not_depend_on_what_was_asked_before():
    """Neighbouring epsilons share a lattice, which is chosen by each of them alone."""
    run, epsilons = dp.laplace(1.2).compose(3), np.array([0.1, 0.11, 0.9, 1.9])
    together = run.delta(epsilons)
    run.delta(2.2)
    apart = [dp.laplace(1.2).compose(3).delta(e) for e in epsilons[::-1]]
    assert together.tolist() == apart[::-1]


def test_left_of_the_mean_delta_is_the_safe_end():
    """Gaussians left on the line -1 < c < 0, against their closed form."""
    for sigma in (0.7, 3.0, 1e3):
        exact, parts = dp.gaussian(sigma), ((Gaussian(1 / sigma), 1),)
        for epsilon in np.array([0.0, 0.3, 0.9]) * exact.mean():
            start = contour.saddle_at(parts, -1, float(epsilon))
            low, value, high = inversion.contour_delta(
                contour.line(parts, -1, start), -1, float(epsilon)
            )
            true = exact.delta(epsilon)
            assert low <= true * (1 + 1e-12) and true * (1 - 1e-12) <= value <= high
            assert value - low <= 1e-11


@every_quick
def test_renyi_grows_with_its_order_and_bounds_delta(run):
    """delta <= exp((a-1)(D_a - e)) (1 - 1/a)^a / (a - 1) (Canonne, Kamath and Steinke 2020)."""
    orders = np.array([1.0, 1 + 1e-9, 1.01, 1.5, 2.0, 3.7, 10.0, 64.0, 1e3])

    def check(renyi):
        values = renyi(orders)
        holds(values[:-1] <= values[1:] * (1 + 1e-9), "divergences grow")
        assert values[0] == run.mean()
        if np.isinf(values[0]):
            return
        equal(values[1], values[0], rtol=1e-6)
        a, value = orders[3:, None], values[3:, None]
        epsilons = np.array([0.0, 0.1, 0.7, 2.0])
        exponent = (a - 1) * (value - epsilons) + a * np.log1p(-1 / a) - np.log(a - 1)
        low, high = run.delta_interval(epsilons)
        at_most(low, np.exp(np.minimum(exponent, 50.0)), rtol=1e-11)
        at_most(run.delta(epsilons), np.exp(np.minimum(exponent, 50.0)), rtol=1e-6)
        largest = renyi(math.inf)
        holds(values <= largest * (1 + 1e-12))
        equal(largest, run.epsilon(0.0))

    check(run.renyi)
    if np.isfinite(run.mean()):
        must_fail(check, lambda a: 0.5 * run.renyi(a))
        must_fail(check, lambda a: run.renyi(a) * np.asarray(a) ** -2.0)


@pytest.mark.slow
def test_renyi_against_its_integrals():
    def gaussian(a):
        return a / (2 * 1.3**2)

    def laplace(a):  # Mironov 2017, table II
        t = 1 / mp.mpf(1.3)
        weights = a / (2 * a - 1) * mp.exp((a - 1) * t) + (a - 1) / (2 * a - 1) * mp.exp(-a * t)
        return mp.log(weights) / (a - 1)

    def sampled(rate, worse=max):
        """The integral itself, both directions."""

        def value(a):
            def ratio(x):
                return 1 - rate + rate * mp.exp((x - mp.mpf(0.5)) / mp.mpf(1.3) ** 2)

            ways = [
                mp.quad(lambda x, z=z: mp.npdf(x, 0, 1.3) * ratio(x) ** z, range(-24, 60, 6))
                for z in (a, 1 - a)
            ]
            return mp.log(worse(ways)) / (a - 1)

        return value

    orders = [1.25, 7.5]

    def check(run, formula):
        with mp.workdps(20):
            true = [float(formula(mp.mpf(a))) for a in orders]
        equal(run.renyi(orders), true, rtol=1e-11)

    step = dp.gaussian(1.3)
    check(step, gaussian)
    check(dp.laplace(1.3), laplace)
    for rate in (0.02, 0.6):
        check(dp.subsample(step, rate), sampled(mp.mpf(rate)))
        must_fail(check, step, sampled(mp.mpf(rate)))
        must_fail(check, dp.subsample(step, rate), sampled(mp.mpf(rate), min))
    must_fail(check, dp.gaussian(1.3**2), gaussian)
    must_fail(check, dp.laplace(2 * 1.3**2), laplace)


# ---------------------------------------------------------------- Laplace in closed form


def laplace_moments(scale, z):
    """K, K', K'' of E exp(zL) = exp(-a/2) (cosh s + (a/2) (sinh s)/s), s = (z + 1/2) a."""
    a, z = 1 / mp.mpf(scale), mp.mpf(z)
    s = (z + mp.mpf(1) / 2) * a
    ramp = mp.sinh(s) / s if s else mp.mpf(1)
    first = (mp.cosh(s) - ramp) / s if s else mp.mpf(0)
    second = ramp - 2 * first / s if s else mp.mpf(1) / 3
    f, slope, bend = (
        mp.cosh(s) + a / 2 * ramp,
        mp.sinh(s) + a / 2 * first,
        mp.cosh(s) + a / 2 * second,
    )
    return mp.log(f) - a / 2, a * slope / f, a * a * (bend / f - (slope / f) ** 2)


def test_laplace_moments_to_full_accuracy():
    """Every size of 1/scale and of the order, near 0, -1/2 and -1 too, where terms cancel."""
    rng, true, found = np.random.default_rng(5), [], []
    for _ in range(300):
        scale, tiny = 10 ** rng.uniform(-4, 12), 10 ** rng.uniform(-18, -0.5)
        z = rng.choice([10 ** rng.uniform(-20, 4), -tiny, -1 + tiny, -0.5 + tiny, -0.5 - tiny])
        with mp.workdps(160 if scale > 1e-2 else 400):
            true.append([float(value) for value in laplace_moments(scale, z)])
        found.append([float(v[0]) for v in Laplace(scale).derivatives(np.array([z]))])

    def check(found):
        equal(found, true, rtol=1e-13, atol=1e-150)

    check(found)
    must_fail(check, np.array(found) * (1 + 1e-12))
    equal(dp.laplace(1e-4).renyi(1e4), float(laplace_moments(1e-4, 9999)[0]) / 9999)
    equal(dp.laplace(0.7).mean(), math.exp(-1 / 0.7) + 1 / 0.7 - 1)


def test_the_ceiling_of_laplace_is_one():
    """|E exp((c + iy) L)| <= exp(K(c) + ceiling) for all y from a height on."""
    rng = np.random.default_rng(6)
    settings = []
    for _ in range(30):
        rate = rng.choice([1.0, 10 ** rng.uniform(-5, 0)])
        step = Laplace(10 ** rng.uniform(-0.5, 1.5), float(rate), int(rng.choice([1, -1])))
        settings.append((step, float(rng.choice([10 ** rng.uniform(-2, 1), -rng.random()]))))

    def check(ceiling):
        for step, c in settings:
            law, bound = step.law(c, 300.0), ceiling(step, c)
            weights = np.exp(law.log_p + c * law.loss - step.cumulant(np.array([c])))
            ends = np.array([0.02, 0.3, 0.8, 1.1, 2.0]) * np.pi / (step.top() - step.bottom())
            for height in [1.0, 10.0, 100.0, *ends[3 * ends < 300].tolist()]:
                y = np.linspace(height, min(3 * height, 300.0), 8)
                found = np.log(np.abs(weights @ np.exp(1j * np.outer(law.loss, y))) + 1e-300)
                at_most(found, bound(height) + 1e-12, atol=1e-12)

    def moved(down, share):
        """Of a ceiling that ends lower down, or is more."""

        def ceiling(step, c):
            found = step.ceiling(c)
            return lambda height: share * found(down(height))

        return ceiling

    check(moved(lambda height: height, 1))
    must_fail(check, moved(lambda height: 20 * height, 1))
    must_fail(check, moved(lambda height: min(height, 0.1), 6))


# ---------------------------------------------------------------- directions and post-processing


@given(finite_laws(5), st.integers(1, 3))
@settings(max_examples=25)
def test_the_two_directions_are_one(pair, k):
    """Exchanging p and q changes no answer; the profile at -e is the other direction's at e."""
    p, q = pair
    left, right = dp.finite(p, q).compose(k), dp.finite(q, p).compose(k)
    top = left.epsilon(0.0)
    equal(right.delta(top * EPSILONS / 3), left.delta(top * EPSILONS / 3), rtol=1e-11, atol=1e-15)
    equal(right.renyi([1.0, 2.0, 9.0]), left.renyi([1.0, 2.0, 9.0]), rtol=1e-10, atol=1e-14)
    equal(right.tradeoff([0.1, 0.6]), left.tradeoff([0.1, 0.6]), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("z", [0.5, 1.0, 3.0])
def test_one_moment_serves_both_directions(z):
    """K_QP(z) = K_PQ(-1-z), seen through renyi, which reports the worse of K_PQ and K_QP."""
    p, q = np.array(SKEW[0]), np.array(SKEW[1])

    def check(other):
        one = np.log((p ** (1 + z) * q**-z).sum())
        equal(dp.finite(p, q).renyi(1 + z), max(one, other) / z)

    if np.sum(p ** (1 + z) * q**-z) > np.sum(q ** (1 + z) * p**-z):
        p, q = q, p  # so that the other direction is the one reported
    check(np.log((p**-z * q ** (1 + z)).sum()))  # K_PQ(w) = log sum p^(1+w) q^(-w) at w = -1-z
    must_fail(check, np.log((p ** (1 - z) * q**z).sum()))  # at w = -z
    must_fail(check, -np.inf)  # one direction only


@pytest.mark.slow
@given(finite_laws(6), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_post_processing_never_helps(pair, k, seed):
    p, q = pair
    size = len(p)
    kernel = np.random.default_rng(seed).dirichlet(np.full(size, 0.3), size=size)
    kernel[0] = kernel[1]  # and two outcomes are merged
    before = dp.finite(p, q).compose(k)

    def check(p_after, q_after):
        after = dp.finite(p_after / p_after.sum(), q_after / q_after.sum()).compose(k)
        at_most(after.delta(EPSILONS), before.delta(EPSILONS), rtol=1e-10, atol=1e-14)
        at_most(after.epsilon(DELTAS), before.epsilon(DELTAS), rtol=1e-10, atol=1e-12)
        orders = [1.0, 1.5, 8.0, math.inf]
        at_most(after.renyi(orders), before.renyi(orders), rtol=1e-9, atol=1e-13)
        at_most(before.tradeoff([0.05, 0.5]), after.tradeoff([0.05, 0.5]), rtol=1e-10, atol=1e-14)

    check(p @ kernel, q @ kernel)
    if np.abs(np.log(p / q)).max() > 0.1:  # two outcomes for one are no image of it
        must_fail(check, np.kron(p, p), np.kron(q, q))


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.4])
def test_sampling_amplifies(rate):
    """More sampling costs more, and delta at log(1 + rate (e^x - 1)) is at most rate delta(x)."""
    for step in (dp.gaussian(0.9), dp.laplace(0.9), dp.finite(*SKEW)):
        at = np.array([0.0, 0.3, 1.0])
        less, more = dp.subsample(step, rate), dp.subsample(step, 2 * rate)
        at_most(less.delta(at), more.delta(at), rtol=1e-12)
        amplified = np.log1p(rate * np.expm1(at))
        at_most(less.delta(amplified), rate * step.delta(at), rtol=1e-11, atol=1e-16)
        at_most(less.renyi([1.0, 2.0, 9.0]), step.renyi([1.0, 2.0, 9.0]), rtol=1e-12)


# ---------------------------------------------------------------- trade-off


@pytest.mark.slow
@every_quick
def test_tradeoff_is_the_dual_of_the_profile(run):
    """f falls from f(0) = 1 - delta(inf) to f(1) = 0; 1 - delta(e) - e^e f(a) >= a is no test's,
    and at every level some line 1 - delta(e) - e^e a touches the convex ones."""
    alphas = np.array([0.0, 0.01, 0.1, 0.35, 0.6, 0.9, 1.0])

    def check(tradeoff):
        errors = tradeoff(alphas)
        holds((errors >= 0) & (errors <= 1 - alphas + 1e-12))
        at_most(errors[1:], errors[:-1])
        equal(errors[0], 1 - run.delta(60.0), atol=1e-15)
        assert errors[-1] == 0
        epsilons = np.linspace(0, min(float(run.epsilon(1e-9)), 60.0), 60)
        lines = 1 - run.delta(epsilons) - np.exp(epsilons) * alphas[:, None]
        at_most(lines, errors[:, None], atol=1e-12)
        mirrored = np.exp(-epsilons) * (1 - run.delta(epsilons) - alphas[:, None])
        at_most(mirrored, errors[:, None], atol=1e-12)
        # up to the mesh, one of them is attained: the second derivative in e is at most 2
        nearest = np.maximum(lines, mirrored).max(axis=1)
        at_most(errors, np.maximum(nearest, 0.0), atol=2 * (epsilons[1] - epsilons[0]) ** 2 + 1e-12)

    check(run.tradeoff)
    must_fail(check, lambda a: 1 - np.asarray(a))
    must_fail(check, lambda a: 0.9 * run.tradeoff(a))


@pytest.mark.parametrize("name", ["gaussian", "laplace", "response", "with response"])
def test_tradeoff_of_a_symmetric_pair_is_convex_and_its_own_inverse(name):
    run, alphas = QUICK[name], np.linspace(0, 1, 21)
    errors = run.tradeoff(alphas)
    at_most(errors[1:-1], 0.5 * (errors[:-2] + errors[2:]), atol=1e-13)
    inner = errors[1:-1]
    equal(run.tradeoff(inner), alphas[1:-1], rtol=1e-11)
    spike = errors.copy()
    spike[10] += 0.01
    must_fail(lambda e: at_most(e[1:-1], 0.5 * (e[:-2] + e[2:]), atol=1e-13), spike)


@pytest.mark.slow
@given(finite_laws(5), finite_laws(3), st.integers(1, 3), st.integers(0, 2))
@settings(max_examples=25)
def test_tradeoff_of_finite_pairs_against_all_outcomes(first, second, k, m):
    run, outcomes = both_runs(first, second, k, m)
    alphas = np.array([1e-9, 0.03, 0.2, 0.5, 0.77, 0.999])
    true = np.array([outcomes.tradeoff(a) for a in alphas])
    equal(run.tradeoff(alphas), true, rtol=1e-11, atol=1e-14)
    at_most(run.tradeoff(alphas), true, rtol=1e-12, atol=1e-14)  # never over-reported


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_tradeoff_with_infinite_losses_against_all_outcomes(leak):
    alphas = np.array([0.0, 1e-9, 0.03, 0.3, 0.77, 0.96, 1.0])
    for k in (1, 3):
        run, outcomes = dp.finite(*leak).compose(k), Outcomes(*[leak] * k)
        true = np.array([outcomes.tradeoff(a) for a in alphas])

        def check(found, true=true):
            equal(found, true, rtol=1e-11, atol=1e-15)

        check(run.tradeoff(alphas))
        must_fail(check, dp.finite(*leak).compose(k + 1).tradeoff(alphas))


def test_tradeoff_at_a_kink():
    """The level of a vertex, where a search for the best line is off by its mesh."""
    pair = [0.40007079, 0.59992921], [0.89720385, 0.10279615]

    def check(found):
        equal(found, Outcomes(pair).tradeoff(0.03), rtol=1e-13)

    check(dp.finite(*pair).tradeoff(0.03))
    must_fail(check, dp.finite(*pair).tradeoff(0.03) + 3e-9)


@pytest.mark.parametrize("scale", [0.2, 1.0, 30.0])
def test_tradeoff_of_laplace_noise(scale):
    """Dong, Roth and Su 2022, Proposition 4: two lines, and a hyperbola between."""
    a, least = np.array([1e-12, 0.001, 0.2, 0.49, 0.5, 0.7, 1 - 1e-9]), math.exp(-1 / scale)

    def check(found):
        middle = np.where(a < least / 2, 1 - a / least, least / (4 * a))
        equal(found, np.where(a > 0.5, least * (1 - a), middle), rtol=1e-12)

    check(dp.laplace(scale).tradeoff(a))
    must_fail(check, dp.laplace(1.001 * scale).tradeoff(a))
    must_fail(check, dp.laplace(scale).tradeoff(1 - a))


@pytest.mark.parametrize("rate", [0.01, 0.4])
@pytest.mark.parametrize(
    "step, law, shift",
    [
        (dp.gaussian(0.8), mp.ncdf, 1 / mp.mpf(0.8)),
        (dp.laplace(0.8), lambda t: mp.exp(t) / 2 if t < 0 else 1 - mp.exp(-t) / 2,
         1 / mp.mpf(0.8)),
    ],
    ids=["gaussian", "laplace"],
)  # fmt: skip
def test_tradeoff_of_a_sampled_step(step, law, shift, rate):
    """q is rejected for the mixture above a threshold, or the mixture for q below one."""

    def mixture(t):
        return rate * law(t - shift) + (1 - rate) * law(t)

    def quantile(of, level):
        low, high = mp.mpf(-60), mp.mpf(60)
        for _ in range(150):
            middle = (low + high) / 2
            low, high = (middle, high) if of(middle) < level else (low, middle)
        return high

    for alpha in (1e-7, 0.05, 0.4, 0.8, 0.9999):
        with mp.workdps(40):
            removed = mixture(quantile(law, 1 - mp.mpf(alpha)))
            added = law(-quantile(mixture, mp.mpf(alpha)))
            true = float(min(removed, added))
        equal(dp.subsample(step, rate).tradeoff(alpha), true, rtol=1e-12)
        must_fail(equal, dp.subsample(step, 1.001 * rate).tradeoff(alpha), true, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [PAIR, SKEW, LEAKS["both"]], ids=["pair", "skew", "leak"])
@pytest.mark.parametrize("sigma", [0.4, 3.0])
def test_tradeoff_of_noise_beside_finite_pairs(pair, sigma):
    """Levels and misses of the thresholds are sums of normal probabilities."""
    run, laws, mu = dp.finite(*pair).compose(2) + dp.gaussian(sigma), Outcomes(pair, pair).laws, 0
    mu = mp.mpf(run._parts[-1][0].mu)

    def true(alpha, laws):
        both = [(mp.log(q / p), p, q) for p, q in laws if p * q > 0]

        def level(e):
            return mp.fsum(p * mp.ncdf((x - e) / mu - mu / 2) for x, p, _ in both)

        low, high = mp.mpf(-200), mp.mpf(200)
        for _ in range(110):
            e = (low + high) / 2
            low, high = (e, high) if level(e) > alpha else (low, e)
        miss = mp.fsum(q * mp.ncdf((e - x) / mu - mu / 2) for x, _, q in both)
        return miss if level(-200) > alpha else mp.mpf(0)

    for alpha in (1e-9, 0.2, 0.85, 0.9999):
        with mp.workdps(30):
            ways = laws, [(q, p) for p, q in laws]
            exact = float(min(true(mp.mpf(alpha), way) for way in ways))
        equal(run.tradeoff(alpha), exact, rtol=1e-10)
        at_most(run.tradeoff(alpha), exact, rtol=1e-14)
        if exact and alpha > 0.1:
            other = dp.finite(*pair).compose(2) + dp.gaussian(1.001 * sigma)
            must_fail(equal, other.tradeoff(alpha), exact, rtol=1e-10)


def test_tradeoff_of_a_response_too_small_to_matter():
    alphas = np.array([1e-6, 0.01, 0.3, 0.9])
    run = dp.gaussian(2.0) + dp.randomized_response(1e-13)
    equal(run.tradeoff(alphas), dp.gaussian(2.0).tradeoff(alphas), rtol=1e-11)
    must_fail(equal, run.tradeoff(alphas), dp.gaussian(2.001).tradeoff(alphas), rtol=1e-11)


@pytest.mark.slow
def test_tradeoff_of_many_responses():
    """100,000 answers: the vertices of a window of the binomial law, either side of its mean."""
    epsilon, k = 0.01, 100_000
    run, mean = dp.randomized_response(epsilon).compose(k), k / (1 + math.exp(epsilon))
    for m in (int(mean + x * math.sqrt(k) / 2) for x in (-3, 0, 4)):
        with mp.workdps(40):
            up = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
            weight, level, error = [], mp.mpf(0), mp.mpf(0)
            term = mp.binomial(k, m) * up**m * (1 - up) ** (k - m)  # P(m answers point p's way)
            weight, n = term, m
            while n > 0 and weight > term * mp.mpf(10) ** -25 or n > m - 500:
                level += weight
                weight, n = weight * n / (k - n + 1) * (1 - up) / up, n - 1
            n, weight = m + 1, mp.binomial(k, m + 1) * (1 - up) ** (m + 1) * up ** (k - m - 1)
            first = weight
            while n < k and weight > first * mp.mpf(10) ** -25:
                error += weight
                weight, n = weight * (k - n) / (n + 1) * (1 - up) / up, n + 1
        equal(run.tradeoff(float(level)), float(error), rtol=1e-9)
        must_fail(equal, run.tradeoff(float(level) * 1.001), float(error), rtol=1e-9)


def test_tradeoff_of_compositions_moved_to_a_lattice():
    """Ten Laplace steps: no line of the profile is above it, and it is the highest of them."""
    run, alphas = dp.laplace(10.0).compose(10), np.array([0.05, 0.6])
    epsilons = np.array([0.1, 0.25, 0.4])
    lines = 1 - run.delta_interval(epsilons)[1]
    errors = run.tradeoff(alphas)
    at_most(np.exp(-epsilons) * (lines - alphas[:, None]), errors[:, None], atol=1e-9)
    at_most(lines - np.exp(epsilons) * alphas[:, None], errors[:, None], atol=1e-9)
    equal(run.tradeoff(errors), alphas, rtol=1e-7)  # a symmetric pair: its own inverse
    must_fail(equal, run.tradeoff(1.0001 * errors), alphas, rtol=1e-7)


@pytest.mark.slow
def test_tradeoff_of_two_laplace_steps():
    """Moved to a lattice, with kinks where the atoms are: levels and misses by quadrature."""
    unit = 1 / mp.mpf(1.2)

    def above(x):
        """p(L > x) of one step; q(L <= x) is p(L >= -x)."""
        inner = mp.exp(-unit) / 2 + (mp.exp(-(x + unit) / 2) - mp.exp(-unit)) / 2
        return mp.mpf(0) if x >= unit else mp.mpf(1) if x < -unit else inner

    def both(e, law, low, high, tilt):
        """Of two steps: the atoms of the first, then its density exp(tilt L)/4 between."""
        inside = [x for x in (e - unit, e + unit) if -unit < x < unit]
        ends = sorted([-unit, *inside, unit])
        middle = mp.quad(lambda x: law(e - x) * mp.exp((tilt * x - unit) / 2) / 4, ends)
        return low * law(e + unit) + high * law(e - unit) + middle

    def true(alpha):
        half, less = mp.mpf(1) / 2, mp.exp(-unit) / 2
        low, high = -2 * unit - 1, 2 * unit
        for _ in range(60):
            e = (low + high) / 2
            low, high = (low, e) if both(e, above, half, less, -1) <= alpha else (e, high)
        rest = alpha - both(high, above, half, less, -1)
        missed = both(high, below, less, half, 1)
        return float(missed - mp.exp(high) * rest)

    def below(x):
        return mp.mpf(0) if x < -unit else mp.mpf(1) if x >= unit else above(-x)

    for alpha in (0.02, 0.45):
        found, exact = dp.laplace(1.2).compose(2).tradeoff(alpha), true(mp.mpf(alpha))
        equal(found, exact, rtol=2e-9)
        at_most(found, exact, rtol=1e-13)
        must_fail(equal, found, true(mp.mpf(alpha) * (1 + mp.mpf(1e-6))), rtol=2e-9)
