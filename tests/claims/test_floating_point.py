"""The claims of the chapter `floating-point`. Statistical tests: fixed seeds, false alarm at most
1e-7 each, 1e-6 in all."""

from fractions import Fraction
from functools import reduce
from itertools import product

import mpmath
import numpy as np
from scipy import stats

import dpnotes as dp
from boxes import for_all, sinh
from dpnotes import integer_noise
from dpnotes.chapters import floating_point
from evidence import at_most, claim, equal, holds, must_fail
from strategies import Scripted


def rng(seed=1):
    return np.random.default_rng(seed)


@claim("X-impossible", of=0.0, wrong=[1e-9])  # an event that is only rare
def test_an_impossible_event_bounds_delta_at_every_epsilon(possible):
    p, q = rng().dirichlet(np.full(8, 0.5), (2, 2000))
    off = rng(2).random((2000, 8)) < 0.3
    q = np.where(off, possible, q)
    q /= q.sum(-1, keepdims=True)
    for epsilon in (0.0, 1.0, 30.0, 300.0):
        at_most((p * off).sum(-1), dp.hockey_stick(p, q, epsilon), atol=1e-12)


@claim("X-low-bits", "X-impossible", of=0, wrong=[1])
def test_reachable_outputs_of_numpys_laplace_noise(moved):
    from math import log

    u = rng(5).random(3000)
    made = np.array([log(2 * a) if a < 0.5 else -log(2.0 - a - a) for a in u])
    holds(rng(5).laplace(0, 1, 3000) == made)  # the sampler is what the page says it is
    for v, b in ((0, 1.0), (1, 1.0), (1, 0.3), (5, 1.0), (-3, 7.0), (1000, 10.0), (1e6, 0.1)):
        y = v + rng(6).laplace(0, b, 1500)
        holds(floating_point.laplace_reaches(y, v + moved, b))
    extreme = np.array([1, 2, 3, 2**52, 2**53 - 1, 2**53]) * 2.0**-53
    for sign in (-1, 1):
        holds(floating_point.laplace_reaches([sign * log(x) for x in extreme.tolist()], 0.0))
    # outputs between two neighbouring j are not reached
    y = np.array([log(2.0**-53 * j) + 1e-5 for j in range(2, 9)])
    holds(~floating_point.laplace_reaches(y, 0.0))


@claim("X-impossible")
def test_reachable_noises_near_zero():
    from math import log

    below, above = (
        np.array([log(x) for x in (2.0**-53 * (2.0**53 + k)).tolist()])
        for k in (-np.arange(40.0), 2 * np.arange(1.0, 20.0))
    )
    noises = np.concatenate([below, -below])

    def check(made):
        y = np.concatenate([made, np.nextafter(below, -1), np.nextafter(below, 1), above, -above])
        y = y[np.abs(y) < 2.0**-48]
        holds(floating_point.laplace_reaches(y, 0.0) == np.isin(y, made))
        assert 0.3 < np.isin(y, made).mean() < 0.8

    check(noises)
    must_fail(check, np.concatenate([noises, above]))  # no j is above 2^53


def low_bits(y, unit):
    return (np.abs(y) < 0.5) & (y / unit % 1 != 0)


@claim(
    "X-low-bits",
    of=(1.0, 2.0**-53),
    wrong=[(0.0, 2.0**-53), (0.125, 2.0**-53), (1.0, 2.0**-52)],  # the unit can't be twice as large
)
def test_small_outputs_of_one_are_multiples_whatever_the_noise(value, unit):
    draw, n = rng(3), 200_000
    z = np.concatenate(
        [draw.laplace(0, b, n) for b in (0.01, 1.0, 10.0)]
        + [draw.normal(0, 1, n), draw.standard_cauchy(n), draw.random(n) - 1.5]
        + [np.nextafter(-0.5, [-1, 1]), np.nextafter(-1.5, [-2, 2]), [-1.0, np.nextafter(-1, 0)]]
    )
    holds(~low_bits(value + z, unit))
    for mechanism in (dp.laplace_mechanism, dp.gaussian_mechanism):
        one, zero = (mechanism(np.full(n, v), rng=rng(4)) for v in (1.0, 0.0))
        holds(~low_bits(one, unit))
        holds(0.2 < low_bits(zero, 2.0**-53).mean() < 0.3)


def float_sum(x, kind):
    return np.add.accumulate(np.asarray(x, kind))[-1]


@claim("X-float-sum", of=5, wrong=[4, 3])  # 4: ties
def test_a_float_sum_moves_by_two(eighths):
    for kind, p in ((np.float32, 24), (np.float16, 11)):
        for k in range(3 if p == 11 else 8, p - 2 if p == 11 else 17):
            e = eighths / 8 * 2.0 ** (k - p + 1)
            x = np.r_[np.ones(2**k), np.full(2 ** (p - k), e)]
            equal([float_sum(x, kind), float_sum(x[1:], kind)], [2**k + 2, 2**k])
            back = [float_sum(v, kind) for v in (x[::-1], x[:0:-1])]
            equal(back, [2**k + 1.25, 2**k + 0.25])


@claim("X-safe-sum", of=(1.0, 0.5), wrong=[(0.9, 0.5), (1.0, 0.45)])
def test_rounded_rows_have_the_sensitivity_of_their_bounds(factor, half):
    draw = rng(7)
    rows = np.concatenate([draw.normal(0, 100, 4000), [np.nan, np.inf, -np.inf, 1e300, -1e300]])
    for lower, upper, grid in ((0, 1, 0.3), (-2, 5, 0.125), (-7, -6, 0.1), (3, 3, 0.7)):
        r = dp.to_grid(rows, lower=lower, upper=upper, grid=grid)
        m, most = round(lower / grid), round(upper / grid)
        at_most(np.abs(r), factor * max(abs(m), abs(most)))  # add or remove this row
        at_most(np.abs(r[:, None] - r[::40]), factor * (most - m))  # replace one by another
        alone = [dp.to_grid(v, lower=lower, upper=upper, grid=grid) for v in rows[::100]]
        holds(np.array(alone) == r[::100])  # a function of the row alone
    for grid in (0.125, 0.1, 3.0):
        x = draw.uniform(-40 * grid, 90 * grid, (300, 50))
        r = dp.to_grid(x, lower=-40 * grid, upper=90 * grid, grid=grid)
        at_most(np.abs(grid * r.sum(1) - x.sum(1)), half * grid * 50, rtol=1e-9)
        at_most(np.abs(grid * r - x), half * grid, rtol=1e-9)


@claim("X-safe-sum", of=1, wrong=[2])
def test_a_safe_sum_draws_the_noise_of_its_sensitivity(factor):
    rows = np.array([0.2, 0.6, 7.0, np.nan, -1.0])
    for lower, upper, grid, rounded, steps in (
        (0.0, 1.0, 0.25, 7, 4),  # 1, 2, 4, 0, 0
        (0.0, 0.5, 0.5, 2, 1),
        (-1.5, 0.5, 0.5, -3, 3),
        (0.0, 0.1, 0.5, 0, 1),  # 0.1 of 0.5 is 0
    ):
        for seed in range(20):
            draw, same = rng(seed), rng(seed)
            total = dp.safe_sum(rows, lower=lower, upper=upper, grid=grid, epsilon=0.3, rng=draw)
            drawn = dp.discrete_laplace_mechanism(rounded, factor * steps, 0.3, rng=same)
            assert type(total) is float and total == grid * drawn
    big = dp.safe_sum(np.full(10, 1e15), lower=0, upper=2**50, grid=1, epsilon=1e6, rng=rng(8))
    assert abs(big - 1e16) < 1e12
    for seed in range(20):
        draw, same = rng(seed), rng(seed)
        counted = dp.safe_count([True, False, 1, np.nan, -3, 0.7], epsilon=0.3, rng=draw)
        drawn = dp.discrete_laplace_mechanism(3, factor, 0.3, rng=same)
        assert type(counted) is int and counted == drawn


@claim("X-safe-mean", of=1.0, wrong=[0.9, 0.5])
def test_both_sums_of_a_mean_lose_epsilon_together(factor):
    z = np.arange(-90, 91)
    for epsilon, d in ((0.3, 1), (1.0, 3), (2.0, 5)):
        size = np.exp(-epsilon * abs(z) / (factor * d))
        law = np.multiply.outer(size, size) / size.sum() ** 2
        for up in range(d + 1):  # a row adds (up, d - up)
            here, there = law[d:, d:], law[d - up : len(z) - up, up : len(z) - d + up]
            at_most(abs(np.log(here / there)), epsilon)


@claim("X-safe-mean", of=1, wrong=[2, 0])
def test_a_safe_mean_draws_the_noise_of_one_row(factor):
    draw, plenty = rng(9), 0
    for seed in range(40):
        x = draw.uniform(-4, 9, draw.integers(0, 40)).tolist()
        r = [min(max(round(v / 0.25), -8), 20) for v in x]
        sums = [sum(v + 8 for v in r), sum(20 - v for v in r)]
        drawn = dp.discrete_laplace_mechanism(sums, max(28 * factor, 1), 1.0, rng=rng(seed))
        z, total = [a - b for a, b in zip(drawn, sums, strict=True)], int(sum(drawn))
        mean = dp.safe_mean(x, lower=-2, upper=5, grid=0.25, rng=rng(seed))
        assert type(mean) is float and -2 <= mean <= 5
        if total <= 0:
            equal(mean, 1.5)
            continue
        equal(mean, np.clip(0.25 * (-8 + 28 * drawn[0] / total), -2, 5), rtol=1e-12)
        if r and -2 < mean < 5:
            t, plenty = sums[0] / (28 * len(r)), plenty + 1
            off = ((1 - t) * z[0] - t * z[1]) / (len(r) + sum(z) / 28)
            equal(mean - 0.25 * np.mean(r), 0.25 * off, rtol=1e-9, atol=1e-12)
    assert plenty > 20


@claim("X-exact-noise", of=0, wrong=[1])
def test_the_binary_digits_of_the_chances(off):
    for rate in map(Fraction, ("1/3", 0.1, 48, "7e-20", 95)):
        with mpmath.workdps(250):
            x = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
            odds = (integer_noise._digits_of_odds, x / (1 + x))
            for digits, p in ((integer_noise._digits_of_exp, x), odds):
                for bits in (64, 128, 300):
                    holds(digits(rate, bits) + off == int(p * 2**bits))


@claim("X-exact-noise")
def test_a_tie_is_decided_by_more_digits():
    def digits(bits):
        return integer_noise._digits_of_odds(Fraction(1), bits)

    # a generator whose first words are the first digits of p: the next 64 bits decide
    first, second = digits(64), digits(128) - (digits(64) << 64)
    third = digits(192) - (digits(128) << 64)

    def check(words, head):
        holds(integer_noise.coins(digits, 1, Scripted(*words)) == head)

    for head, by in ((True, -1), (False, 1)):
        check([first + by], head)
        check([first, second + by], head)
        check([first, second, third + by], head)
    must_fail(check, [first, second, third - 1], False)

    def kept(size, middle, word, head):  # next to its chance a draw is decided by fractions
        coins = integer_noise._gaussian_coins
        holds(coins(np.array([size]), Fraction(1, 2), middle, Scripted(word)) == head)

    with mpmath.workdps(40):
        chance = int(mpmath.exp(-1) * 2**64)
    kept(1, 0, chance - 1, True)  # a rate of 1
    kept(1, 0, chance + 1, False)
    for word in (0, 2**63, 2**64 - 1):
        kept(3, 3, word, True)  # a rate of 0 keeps all
    must_fail(kept, 1, 0, chance + 1, True)


def _chances(rate):
    """64 binary digits of the chance of each digit of a geometric variable, by mpmath."""
    chances = []
    with mpmath.workdps(60):
        while rate < 48:
            x = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
            chances.append(int(x / (1 + x) * 2**64))
            rate *= 2
        x = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator)
    return *chances, int(x * 2**64)


@claim("X-exact-noise", of=0, wrong=[-2, 2, 2**64 * 4 // 1000])
def test_each_coin_turns_at_its_64th_binary_digit(off):
    # a draw whose words lie one below the chances has every digit, one above none of them
    for rate in (Fraction(0.1), Fraction(1, 7), Fraction(0.7), Fraction(3), Fraction(1, 1000)):
        chances = _chances(rate)
        none = [2**64 - 1] * len(chances)
        for j in np.flatnonzero(np.array(chances[:-1]) > 9):
            for word, head in ((chances[j] + off - 1, True), (chances[j] + off + 1, False)):
                words = [*none[:j], word, *none[j + 1 :]]
                holds(integer_noise.geometric(rate, 1, Scripted(*words)) == head * 2**j)


ALARM = 1e-7


def follow(drawn, law):
    """Chi-square test of integers against masses, small expectations joined."""
    masses, counts = law / law.sum(), np.bincount(drawn + 300, minlength=601)
    order = np.argsort(masses)
    few = np.searchsorted(np.cumsum(masses[order]) * counts.sum(), 25.0) + 1
    seen, law = (np.append(v[order[few:]], v[order[:few]].sum()) for v in (counts, masses))
    assert stats.chisquare(seen, law / law.sum() * seen.sum()).pvalue > ALARM


@claim("X-exact-noise", of=(1.0, 1.0), wrong=[(1.04, 1.0), (1.0, 1.04)])
def test_draws_follow_the_exact_laws(faster, wider):
    z, n = np.arange(-300, 301), 100_000
    for rate in (0.1, 0.7, 3.0):
        drawn = integer_noise.discrete_laplace_noise(Fraction(rate), n, rng(11))
        follow(drawn, np.exp(-faster * rate * np.abs(z)))
    for sigma in (0.3, 1.0, 2.7, 20.0):
        drawn = integer_noise.discrete_gaussian_noise(Fraction(sigma) ** 2, n, rng(12))
        follow(drawn, np.exp(-0.5 * (z / (wider * sigma)) ** 2))


@claim("X-exact-noise")
def test_the_float_shortcut_of_thinning_agrees_with_fractions(monkeypatch):
    def kept():
        size, variance = np.arange(400) % 23, Fraction(7.3) ** 2
        return integer_noise._gaussian_coins(size, variance, variance / 8, rng(13))

    fast = kept()
    monkeypatch.setattr(integer_noise, "SHARP", 2.0)  # everything by fractions
    holds(kept() == fast)
    monkeypatch.setattr(integer_noise, "_digits_of_exp", lambda rate, bits: 2**bits // 2)
    must_fail(lambda: holds(kept() == fast))


@claim("X-discrete-laplace")
def test_the_variance_of_discrete_laplace_everywhere():
    for_all(
        r"$\frac1{2\sinh^2(1/(2b))} \le 2b^2$",
        lambda b: 1 / (2 * sinh(1 / (2 * b)) ** 2),
        lambda b: 2 * b * b,
        {"b": (0.02, 1e4)},
        too_low=[lambda b: 1.9 * b * b],
    )


@claim("X-discrete-laplace", of=dp.discrete_laplace, wrong=[dp.laplace])
def test_discrete_laplace_noise_is_private(family):
    z = np.arange(-4000, 4001)
    for b, s in ((0.5, 1), (2.0, 1), (2.0, 3), (7.3, 20)):
        p, q = (np.tanh(0.5 / b) * np.exp(-np.abs(z - v) / b) for v in (s, 0))
        equal((q * z**2).sum(), 1 / (2 * np.sinh(0.5 / b) ** 2), rtol=1e-10)
        at_most(dp.hockey_stick(p, q, s / b), 1e-15)  # s/b-DP
        for epsilon in (0.0, 0.3, 0.9 * s / b):
            equal(family(b, s).delta(epsilon), dp.hockey_stick(p, q, epsilon), rtol=1e-9)


@claim("X-discrete-laplace", of=1.0, wrong=[0.99])
def test_discrete_laplace_noise_is_randomized_response_and_no_worse_than_continuous(factor):
    for b in (0.5, 2.0, 10.0):  # at sensitivity 1
        for k in (1, 7, 50):
            one, other = dp.discrete_laplace(b), dp.randomized_response(factor / b)
            equal(one.compose(k).epsilon(1e-5), other.compose(k).epsilon(1e-5))
            at_most(dp.laplace(b).compose(k).epsilon(1e-5), one.compose(k).epsilon(1e-5), rtol=1e-9)


def log_law(z, sigma):
    """Of the discrete Gaussian."""
    square = -0.5 * (z / sigma) ** 2
    return square - np.log(np.exp(square).sum())


@claim("X-discrete-gaussian", of=1.0, wrong=[0.99])
def test_the_moments_of_discrete_gaussian_noise(factor):
    z, t = np.arange(-600, 601), rng(15).uniform(-2, 2, 300)
    for sigma in (0.3, 0.6, 1.0, 2.5, 12.0):
        law = log_law(z, sigma)
        at_most((np.exp(law) * z**2).sum(), factor * sigma**2)
        log_mgf = np.logaddexp.reduce(law + np.outer(t, z), axis=1)
        at_most(log_mgf, factor * t**2 * sigma**2 / 2, rtol=1e-9)


@claim("X-discrete-gaussian", of=1.0, wrong=[0.99])
def test_discrete_gaussian_noise_is_concentrated(factor):
    alpha = np.concatenate([1 + np.geomspace(1e-3, 40, 60), [2.0, 3.0, 8.0]])
    z = np.arange(-900, 901)
    for sigma, s in ((0.5, 1), (1.0, 1), (2.0, 3), (30.0, 1)):
        divergence = dp.discrete_gaussian(sigma, s).renyi(alpha)
        at_most(divergence, factor * alpha * s**2 / (2 * sigma**2))
        whole = (alpha - 1) * s % 1 == 0
        equal(divergence[whole], alpha[whole] * s**2 / (2 * sigma**2), rtol=1e-11)
        loss = s * (2 * z + s) / (2 * sigma**2)
        log_moment = np.logaddexp.reduce(log_law(z, sigma) + np.outer(alpha - 1, loss), axis=1)
        equal(divergence, log_moment / (alpha - 1), rtol=1e-9)


@claim(
    "X-lattice-loss",
    of=lambda z, power: np.exp(-(np.abs(z) ** power)),
    # only even numbers are drawn: not log-concave
    wrong=[lambda z, power: np.where(np.arange(-200, 201) % 2, 0, np.exp(-np.abs(z)))],
)
def test_larger_shifts_of_log_concave_noise_dominate(weights):
    n = np.arange(-200, 201)
    for power, scale in product((1.0, 2.0), (0.7, 2.0, 6.0)):
        w = weights(n / scale, power)
        w /= w.sum()
        shifted = np.array([np.roll(w, s) for s in range(8)])
        for epsilon in (0.0, 0.2, 1.0, 3.0):
            delta = dp.hockey_stick(shifted, np.broadcast_to(w, shifted.shape), epsilon)
            at_most(delta[:-1], delta[1:], rtol=1e-10, atol=1e-14)


@claim("X-lattice-loss", of=0.0, wrong=[1e-6])
def test_the_exact_curve_of_discrete_gaussian_rounds(moved):
    for sigma, s in ((0.4, 1), (0.75, 3), (1.0, 1), (2.0, 3), (8.0, 1)):
        law = np.exp(-0.5 * (np.arange(-int(40 * sigma) - 5, int(40 * sigma) + 6) / sigma) ** 2)
        for k in (1, 2, 9):
            loss = dp.discrete_gaussian(sigma, s).compose(k)
            q = reduce(np.convolve, [law / law.sum()] * k)  # the sum decides the likelihoods
            p, middle = np.roll(q, k * s), k * (s / sigma) ** 2 / 2
            for epsilon in (0.0, 0.7 * middle, middle + 2 * np.sqrt(middle)):
                truth = dp.hockey_stick(p, q, epsilon + moved)
                low, high = loss.delta_interval(epsilon)
                at_most([low, truth], [truth, high], rtol=4e-13)
                equal(loss.delta(epsilon), truth, rtol=1e-9)
    for sigma, k in ((1.0, 1), (1.0, 6), (5.0, 40)):
        loss = dp.discrete_gaussian(sigma).compose(k)
        equal(loss.delta(loss.epsilon(1e-6)), 1e-6, rtol=1e-7)
        at_most(loss.epsilon(1e-6), dp.zcdp_to_dp(k / (2 * sigma**2), 1e-6))
    holds(dp.discrete_gaussian(1.0).epsilon(0.0) == np.inf)


@claim("X-lattice-loss", of=1, wrong=[0])
def test_a_law_that_is_cut_off_is_a_little_pessimistic(sign):
    draw = rng(16)
    for k in (1, 2, 3):
        for _ in range(20):
            p, q = draw.dirichlet(np.full(6, 0.5), 2) + 1e-4
            p, q = p / p.sum(), q / q.sum()
            kept = draw.random(6) < 0.7
            kept[0] = True
            cut = [np.r_[v[kept], 0.0, 0.0] for v in (p, q)]
            cut[0][-1], cut[1][-2] = (v[~kept].sum() for v in (p, q))
            one, other = dp.finite(p, q).compose(k), dp.finite(*cut).compose(k)
            room = 1 - min(v[kept].sum() for v in (p, q)) ** k
            for epsilon in (0.0, 0.5, 3.0):
                true, above = one.delta(epsilon), other.delta(epsilon)
                at_most(true, above, rtol=1e-9, atol=1e-13)
                at_most(above, true + sign * room, rtol=1e-9, atol=1e-12)


@claim("X-timing", of=lambda z: np.abs(z) + 1, wrong=[lambda z: np.abs(z) // 2, lambda z: 0 * z])
def test_output_and_rounds_never_agree_between_neighbours(rounds):
    z = np.arange(-500, 501)
    pairs = [set(zip((v + z).tolist(), rounds(z).tolist(), strict=True)) for v in (0, 1)]
    holds(not pairs[0] & pairs[1])

    draw, replay = rng(17), np.random.PCG64()
    for _ in range(150):
        replay.state = draw.bit_generator.state
        dp.discrete_laplace_mechanism(0, 1, 0.1, rng=draw)
        replay.random_raw(20)  # nine digits and one for the rest, twice
        assert replay.state == draw.bit_generator.state
