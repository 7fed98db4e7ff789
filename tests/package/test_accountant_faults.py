"""Answers that once were wrong, each against an oracle that shares no code with the accountant."""

from math import sqrt

import mpmath as mp
import numpy as np
import pytest
from flint import acb, arb, ctx

import dpnotes as dp
from dpnotes.accountant import inversion
from dpnotes.accountant.discrete_gaussian import DiscreteGaussian, Rounds
from dpnotes.accountant.enclosure import intersected
from dpnotes.accountant.laplace import Laplace
from dpnotes.accountant.sampled_gaussian import SampledGaussian
from evidence import must_fail


class SampledLaplace:
    """rate Lap(1, b) + (1 - rate) Lap(0, b) against Lap(0, b), seen through u = (2x - 1)/b: two
    atoms, and the q-density exp(-(u + a)/2)/4 between -a and a = 1/b."""

    def __init__(self, scale, rate):
        self.a, self.rate = 1 / mp.mpf(scale), mp.mpf(rate)

    def loss(self, u):
        return mp.log1p(self.rate * mp.expm1(u))

    def place(self, loss):
        inside = 1 + mp.expm1(loss) / self.rate
        return mp.log(inside) if inside > 0 else -mp.inf

    def masses(self, u):
        """q and p of the outcomes beyond u, -a <= u <= a; of those at a too."""
        top = mp.exp(-self.a) / 2
        q = top + (mp.exp(-(u + self.a) / 2) - mp.exp(-self.a)) / 2
        half = mp.mpf(1) / 2
        p = half + (mp.exp((u - self.a) / 2) - 1) / -2  # of Lap(1, b)
        return q, self.rate * p + (1 - self.rate) * q

    def delta(self, e, side):
        """E (1 - exp(e - L))_+ at every real e, of p against q or of q against p."""
        u = self.place(side * e)
        if side > 0:
            if u >= self.a:
                return mp.mpf(0)
            if u < -self.a:
                return -mp.expm1(e)
            q, p = self.masses(u)
            return p - mp.exp(e) * q
        if u <= -self.a:
            return mp.mpf(0)
        if u > self.a:
            return -mp.expm1(e)
        q, p = self.masses(u)
        return (1 - q) - mp.exp(e) * (1 - p)

    def mean(self, f, side, kinks):
        """E f(L), given where f has kinks."""
        a, low, high = self.a, mp.mpf(1) / 2, mp.exp(-self.a) / 2

        def weight(u):
            return 1 + self.rate * mp.expm1(u) if side > 0 else mp.mpf(1)

        inside = sorted({-a, a, *(self.place(x) for x in kinks if abs(self.place(x)) < a)})
        middle = mp.quad(
            lambda u: weight(u) * mp.exp(-(u + a) / 2) / 4 * f(side * self.loss(u)), inside
        )
        ends = low * weight(-a) * f(side * self.loss(-a)) + high * weight(a) * f(
            side * self.loss(a)
        )
        return middle + ends

    def delta_of_two(self, e, side):
        e, ends = mp.mpf(e), [side * self.loss(u) for u in (-self.a, self.a)]
        kinks = [side * (e - end) for end in ends]
        return self.mean(lambda x: self.delta(e - x, side), side, kinks)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale, rate, epsilon", [(10.0, 0.1, 0.0), (10.0, 0.1, 4.185e-4), (1.0, 1e-4, 0.0)]
)
def test_two_sampled_laplace_steps(scale, rate, epsilon):
    """The lattice's window once ended below the top: mass was wrapped, delta too low."""
    run, step = dp.subsample(dp.laplace(scale), rate).compose(2), SampledLaplace(scale, rate)
    with mp.workdps(25):
        true = max(step.delta_of_two(epsilon, side) for side in (1, -1))

    def check(run):
        low, high = run.delta_interval(epsilon)
        assert low <= true <= high and run.delta(epsilon) >= true
        assert high - low <= 1e-5 * true

    check(run)
    must_fail(check, dp.subsample(dp.laplace(scale), rate * 1.001).compose(2))


@pytest.mark.slow
def test_merged_outcomes_lose_less_for_every_number_of_rounds():
    """Outcomes in cells are post-processing: their delta is a lower bound, and near at 60 cells."""
    scale, rate = 3.0, 0.1
    step = SampledLaplace(scale, rate)
    edges = np.linspace(-1 / scale, 1 / scale, 40)
    with mp.workdps(20):
        tails = np.array([[float(x) for x in step.masses(mp.mpf(u))] for u in edges])
    q, p = np.concatenate([[[1.0, 1.0]], tails, [[0.0, 0.0]]]).T
    one = np.array([-np.diff(p), -np.diff(q)])
    both = one
    for k in (2, 3):
        both = np.array([np.multiply.outer(a, b).ravel() for a, b in zip(both, one, strict=True)])
        run = dp.subsample(dp.laplace(scale), rate).compose(k)
        for epsilon in (0.0, 0.01, 0.05):
            power = np.exp(epsilon)
            least = max(np.maximum(x - power * y, 0).sum() for x, y in (both, both[::-1]))
            low, high = run.delta_interval(epsilon)
            assert high >= least * (1 - 1e-12) and low <= least * 1.02 + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    "run, query, at, true",
    [  # truths by ball arithmetic or quadrature at 50 digits
        (dp.subsample(dp.gaussian(2), 1e-4).compose(2), "delta", 0.0, 2.88054579860e-5),
        (
            dp.subsample(dp.gaussian(0.287), 1.8e-7).compose(2),
            "delta",
            3.55e-9,
            3.197905584797e-7,
        ),
        (dp.gaussian(3) + dp.laplace(0.001), "delta", 999.7, 0.16433939764372),
        (
            dp.subsample(dp.gaussian(100), 0.001) + dp.subsample(dp.laplace(5), 0.01),
            "epsilon",
            1e-5,
            0.00218724219315531,
        ),
        (
            dp.subsample(dp.gaussian(100), 0.001) + dp.subsample(dp.laplace(5), 0.01),
            "delta",
            0.002,
            8.7177052786e-5,
        ),
        (dp.randomized_response(0.31).compose(7), "delta", 2.169999999999999, 2.00657e-17),
        (dp.laplace(7.768268257298666), "delta", 0.1287288191965111, 2.33022425e-12),
    ],
)
def test_intervals_that_once_missed(run, query, at, true):
    low, high = getattr(run, query + "_interval")(at)
    digits = 2e-11 if true > 1e-10 else 1e-5  # of the truth as it is written here
    assert low <= true * (1 + digits) and true * (1 - digits) <= high
    assert getattr(run, query)(at) >= true * (1 - digits)


def test_the_largest_loss_is_rounded_outwards():
    """58 times 1.73e-11 is a little more than its rounded value."""
    epsilon, k, at = 1.7343733443615856e-11, 58, 1.0059365397297196e-09
    with mp.workdps(40):
        top = k * mp.mpf(epsilon) - mp.mpf(at)
        assert top > 0
        true = -mp.expm1(-top) / (1 + mp.exp(-mp.mpf(epsilon))) ** k
    run = dp.randomized_response(epsilon).compose(k)
    low, high = run.delta_interval(at)
    assert low <= true <= high and run.delta(at) >= true


def test_large_epsilon_of_a_million_rounds():
    """Nodes are floats without rounding: their spacing is what the weights say."""
    run = dp.subsample(dp.gaussian(0.23116525265781734), 0.3813095052091621).compose(10**6)
    low, high = run.epsilon_interval(1e-300)
    assert low <= 3131297.4832959743 + 7.0e-9 <= high
    step = SampledGaussian(0.3, 0.2)
    x, log_weight = step._points(step._spans(5.0), 0.0123456789)
    steps = np.diff(x)
    assert (
        np.all(steps[steps < 0.02] == np.exp(log_weight).round(17))
        or np.ptp(steps[steps < 0.02]) == 0
    )


def sampled_laplace_cumulant(scale, rate, side, c):
    """log E exp(cL) by ball arithmetic: two atoms, and an integral that Arb encloses."""
    a, rate = 1 / arb(scale), arb(rate)
    power = 1 + arb(c) if side > 0 else -arb(c)

    def ratio(u):
        return 1 + rate * (u.exp() - 1)

    def term(u, _):
        return (-(u + a) / 2 + power * ratio(u).log()).exp() / 4

    middle = acb.integral(term, -a, a, rel_tol=arb(2) ** -70, eval_limit=10**6).real
    return (middle + ratio(-a) ** power / 2 + (-a).exp() / 2 * ratio(a) ** power).log()


@pytest.mark.parametrize(
    "scale, rate, side", [(10.0, 0.01, 1), (0.5, 1e-3, 1), (5.0, 0.01, -1), (0.2, 0.3, -1)]
)
def test_moments_of_sampled_laplace_at_large_tilts(scale, rate, side):
    """Panels near the end that the tilt leaves."""

    def check(step):
        for c in (30.0, 3e3, 1e5):
            with ctx.workprec(200):
                true = sampled_laplace_cumulant(scale, rate, side, c)
                assert true.rad() < 1e-16 * abs(true.mid())
            assert step.cumulant_at(c) == pytest.approx(float(true.mid()), rel=1e-12, abs=1e-14)

    check(Laplace(scale, rate, side))
    must_fail(check, Laplace(scale, rate * (1 + 1e-10), side))


def test_delta_of_rare_jumps_falls():
    run = dp.subsample(dp.gaussian(1.25), 2e-5).compose(500)
    low, high = run.delta_interval([0.01, 0.03, 0.1])
    assert np.all(np.diff(high) < 0) and np.all(high - low <= 1e-6 * high)


def test_many_rounds_with_large_noise_are_a_gaussian():
    run = dp.subsample(dp.gaussian(313070), 0.99).compose(10**11)
    limit = dp.gaussian(313070 / (0.99 * 10**5.5)).epsilon(1e-6)
    low, high = run.epsilon_interval(1e-6)
    assert high - low <= 1e-6 and low <= limit * (1 + 1e-4) and limit * (1 - 1e-4) <= high


def test_contradictory_bounds_raise():
    assert intersected((1.0, 1.5, 2.0), (1.2, 1.8, 3.0)) == (1.2, 1.5, 2.0)
    with pytest.raises(ArithmeticError, match="contradict"):
        intersected((1.0, 1.0, 2.0), (2.1, 2.2, 2.3))


def test_calibration_of_noise_rate_and_steps():
    for family, way in (
        (lambda s: dp.gaussian(sigma=s).compose(10), 1),
        (lambda q: dp.subsample(dp.gaussian(1.0), q).compose(100), -1),
    ):
        x = dp.calibrate(family, 1.0, 1e-5)
        assert family(x).delta(1.0) <= 1e-5 < family(x * (1 - way * 1e-9)).delta(1.0)
    k = dp.calibrate(lambda k: dp.subsample(dp.gaussian(1.0), 0.01).compose(k), 1.0, 1e-5)
    step = dp.subsample(dp.gaussian(1.0), 0.01)
    assert isinstance(k, int)
    assert step.compose(k).delta(1.0) <= 1e-5 < step.compose(k + 1).delta(1.0)


@pytest.mark.parametrize(("sigma", "k"), [(1.29, 20_000), (1.2904, 2_192_667), (1.05, 300_000)])
def test_rounds_of_discrete_gaussians_add_up(sigma, k):
    """t + r = 1; by another c and other nodes each. 4e-17 a round was missing once."""
    rounds = Rounds(DiscreteGaussian(sigma, 1), k)
    mean, deviation = k / (2 * sigma**2), sqrt(k) / sigma

    def holds(noise):
        for far in (-8.0, -5.5, -3.0, 3.0):
            t, r = (find(mean + far * deviation) for find in (rounds.tail, rounds.rest))
            t = [x * (1 + noise * k) for x in t]
            assert t[0] - 1e-15 <= 1 - r[0] and 1 - r[1] <= t[1] + 1e-15

    holds(0.0)
    must_fail(lambda: holds(4e-17))


def test_long_line_of_a_tiny_rate():
    """delta(0) = rate (2 Phi(1/(2 sigma)) - 1); a mesh that forgets where its windows end is off by
    2e-11, and shows 2e-12."""
    sigma, rate = 5.877337100067158, 2.3341267759823115e-05
    exact = rate * mp.erf(1 / (2 * mp.mpf(sigma)) / mp.sqrt(2))
    step = SampledGaussian(sigma, rate)
    low, _, high = inversion.line_delta(((step, 1),), 1, 0.0)
    assert low <= exact <= high <= low * (1 + 1e-11)


def test_what_a_law_is_cut_off_is_no_lower_bound():
    """Discrete Gaussians beside others end at 38 deviations: 1e-300 is left, and delta is less."""
    run = dp.discrete_gaussian(0.8726711102185469).compose(2) + dp.laplace(0.13578).compose(3)
    low, high = run.delta_interval(86.2888197206254)
    assert low == 0 < high < 1e-12
    assert run.epsilon_interval(1e-300)[0] < 120


def test_lattices_are_not_asked_to_the_left_of_their_aliases():
    """The saddle point is read from a table, and its c belonged to a larger e than was asked: mass
    wrapped round there. 1.49e-247 by an independent lattice; delta is convex besides."""
    run = dp.subsample_substitution(dp.laplace(0.13328335983918738), 0.00011918744091244633)
    run = run.compose(76)
    low, high = run.delta_interval(14.156490705547599)
    assert low <= 1.491560330167e-247 <= high and high - low <= 1e-4 * high
    grid = np.linspace(13.6, 14.6, 41)
    low, high = run.delta_interval(grid)
    chord = 0.5 * (high[2:] + high[:-2])
    assert np.all(low[1:-1] <= chord)


def test_sums_over_a_lattice_keep_their_digits():
    """Half a million logarithms of size 300 were added one by one: 1e-11 too much, here above 1."""
    run = dp.subsample(dp.laplace(1.474066126237532), 5.640485154417206e-05).compose(2)
    run += dp.laplace(0.014387194245918396)
    low, high = run.delta_interval(0.0)
    assert low <= 1 - 8e-16 <= high
