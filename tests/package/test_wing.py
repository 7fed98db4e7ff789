"""What the accountant's modules promise, piece by piece: bounds that no answer shows, for the
answer has room, or another method is narrower.

Each is compared with a closed form, with many digits, or with the sum it bounds; none has noise.
"""

import sys
from fractions import Fraction
from math import erfc, exp, inf, log, pi, sin, sqrt

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom

import dpnotes as dp
from dpnotes.accountant import (
    certain,
    contour,
    convolution,
    discrete_gaussian,
    enclosure,
    finite_sums,
    inversion,
    jumps,
    laplace_sums,
    lattice,
    law,
    lines,
    many,
    mixtures,
    moments,
    near,
    one_step,
    phases,
    rows,
    symmetrised,
    tradeoff,
    two_losses,
    work,
)
from dpnotes.accountant.laplace import Laplace
from dpnotes.accountant.law import EPS
from dpnotes.accountant.lines import Line
from dpnotes.accountant.one_step import gaussian_log_delta
from dpnotes.accountant.sampled_gaussian import SampledGaussian
from dpnotes.accountant.step import Finite, Gaussian
from dpnotes.accountant.symmetrised import SymmetrisedGaussian

search = sys.modules["dpnotes.accountant.calibrate"]  # its name is the function's


# ------------------------------------------------------------------------------------- enclosures


@pytest.mark.parametrize(
    ("found", "share", "wide"),
    [(None, 1e9, True), ((1.0, 2.0, 3.0), 1.0, False), ((1.0, 2.0, 3.0), 0.99, True)]
    + [((0.0, np.nan, 1.0), 1.0, True), ((2.9, 3.0, 4.0), 0.35, True)],
)
def test_an_enclosure_is_wide_relative_to_its_value(found, share, wide):
    assert enclosure.is_wide(found, share) is wide


@pytest.mark.parametrize(
    ("tight", "high", "value"), [(0.0, 3.0, 3.0), (0.99, 3.0, 3.0), (1.0, 3.0, 2.0), (0.0, inf, 2)]
)
def test_the_value_is_the_safe_end_unless_it_is_tight_or_has_none(tight, high, value):
    assert enclosure.safe((1.0, 2.0, high), tight) == (1.0, value, high)


# ------------------------------------------------------------------------------------ what is left


def many_gaussians(rounds, mu):
    """As parts, and the one Gaussian that they compose to."""
    return ((Gaussian(mu), rounds),), sqrt(rounds) * mu


def test_what_is_left_holds_delta_and_says_something():
    """Against the closed form: near 1, in the middle, and far out."""
    for rounds, mu, epsilon in [(1000, 0.5, 0.0), (1000, 0.5, 5.0), (400, 0.05, 1.0), (9, 1, 40)]:
        parts, total = many_gaussians(rounds, mu)
        truth = exp(gaussian_log_delta(total, epsilon))
        low, value, high = certain.delta(parts, epsilon)
        assert low <= truth <= value == high
        assert high <= 20 * truth  # Chernoff's bound lacks a factor of about sqrt(2 pi) c sd
        missing = 0.5 * erfc((total / 2 - epsilon / total) / sqrt(2))
        if missing < 1e-3:  # 1 - delta is at most P(L < e) + e^e Q(L > e)
            assert 1 - low <= 100 * missing + 1e-15


def test_what_is_left_holds_epsilon_and_is_finite():
    for rounds, mu, epsilon in [(400, 0.05, 1.0), (9, 1.0, 20.0)]:
        parts, total = many_gaussians(rounds, mu)
        target = float(gaussian_log_delta(total, epsilon))
        low, value, high = certain.epsilon(parts, target)
        assert low <= epsilon <= value == high < 1.6 * epsilon


def test_a_step_of_too_many_losses_says_nothing(monkeypatch):
    monkeypatch.setattr(finite_sums, "MOST_VALUES", 2)
    one = certain.single(Finite((-1.0, 0.125, 1.0), (-2.0, -1.0, -1.5)))
    assert one.delta(0.5) == (0.0, 1.0, 1.0) and one.epsilon(0.5) == (0.0, inf, inf)


def test_a_loss_without_spread_has_a_place_for_its_lines():
    assert np.isfinite(contour.scale(((Finite((0.0,), (0.0,)), 3),), 1))


# ------------------------------------------------------------------------------- sums of few terms


def test_a_sum_whose_terms_all_round_down_is_held():
    """1 and six times 0.45 units: floats add up to 1, and the truth is 2.7 units more."""
    weight = np.array([1.0] + [0.45 * EPS] * 6)
    low, high = (finite_sums._sum(np.zeros(7), weight, lambda: np.log(weight), s) for s in (-1, 1))
    assert weight.sum() == 1
    assert Fraction(low) <= sum(map(Fraction, weight.tolist())) <= Fraction(high)
    assert high - low <= 60 * EPS


def test_the_epsilon_of_all_that_can_be_lost_is_finite():
    """delta(e) is 1 at -inf alone: the inverse there is as far down as floats tell."""
    found = finite_sums.curve(np.array([-1.0, 1.0]), -np.log1p(np.exp([1.0, -1.0])))
    for log_delta in (0.0, 1e-12):  # a target that was rounded, too
        assert -1e3 < found.epsilon(log_delta) < -20


def test_digits_of_a_sum_are_doubled_where_it_cancels_to_nothing():
    """40 steps of scale 1e-4 near the least loss: terms of 1e170 add up to what underflows."""
    found = laplace_sums.sums(((Laplace(1e-4), 40),))
    assert found._noise_rest(Fraction(-399960)) == (1.0, 0.0)


@pytest.mark.parametrize("scale, rounds, epsilon", [(0.02, 6, 299.0), (1.0, 3, 1.5), (0.05, 12, 9)])
def test_a_sum_of_laplace_steps_is_its_own_reverse(scale, rounds, epsilon):
    """1 - delta(-e) = exp(-e) (1 - delta(e)): far down the terms cancel to 1e-130."""
    found = laplace_sums.sums(((Laplace(scale), rounds),))
    below, above = (found._noise_rest(Fraction(e))[1] for e in (-epsilon, epsilon))
    assert below == pytest.approx(exp(-epsilon) * above, rel=1e-14)


def test_laplace_steps_beside_many_finite_losses_are_left_to_others():
    losses = np.linspace(-1.0, 1.0, 1000)
    step = Finite(tuple(losses.tolist()), tuple(np.full(1000, -log(1000.0)).tolist()))
    assert laplace_sums.sums(((Laplace(1.0), 1),)) is not None
    assert laplace_sums.sums(((Laplace(1.0), 1), (step, 1))) is None


# -------------------------------------------------------------------------------------- two losses


def coin(epsilon):
    return dp.randomized_response(epsilon)._parts[0][0]


def test_a_geometric_series_that_does_not_fall_is_1():
    assert two_losses._series(-5.0, 0.0) == two_losses._series(-5.0, 0.1) == 1.0
    exact = exp(-5.0) * exp(-0.1) / (1 - exp(-0.1))
    assert exact <= two_losses._series(-5.0, -0.1) <= 1.01 * exact


def test_rivals_of_the_nodes_stay_where_a_tail_is_at_most_1():
    """Tilts up to 8 either way: t <= 1 allows them down to 0, and r from -h to 0."""
    right = two_losses.aliases(lambda w: 0.0, 8.0, 1.0, 5.0, 1, 3.0)
    assert right == pytest.approx(1.1 * exp(1e-3) * (exp(-8 * 3) + exp(-1 * 3)), rel=1e-12)
    left = two_losses.aliases(lambda w: 0.0, 8.0, -1.0, 5.0, -1, 3.0)
    assert left == pytest.approx(1.1 * exp(1e-3) * (exp(-1 * 3) + exp(-4 * 3)), rel=1e-12)


def test_quotients_of_the_terms_beside_a_window():
    method = two_losses.Binomial(coin(0.3), 30_000)
    law = binom(30_000, 1 / (1 + exp(-0.3)))
    for n in (100, 15_000, 29_000):
        down = law.logpmf(n - 1) - law.logpmf(n)
        up = law.logpmf(n + 1) - law.logpmf(n)
        assert method._fall(n, -1, 1) == pytest.approx(down, abs=1e-8)
        assert method._fall(n, 1, 1) == pytest.approx(up, abs=1e-8)
        assert method._fall(n, 1, -1) == pytest.approx(up - method.gap, abs=1e-8)


def test_a_window_left_of_the_mean_goes_on_beyond_it():
    """At e = 0 ten deviations left of the mean: all of the law is in the sum."""
    method = two_losses.Binomial(coin(0.01), 4_000_000)
    low, high = method.tail(0.0)
    assert high - low <= 1e-10
    for k, most in ((4_000_000, 1e-20), (10_000_000, 1e-50)):  # ten and sixteen deviations
        low, high = two_losses.Binomial(coin(0.01), k).rest(0.0)
        assert high - low <= 1e-9 * low and high < most


def test_phases_of_the_nodes_are_in_their_error():
    """One loss in a hundred, 1e10 rounds: at an angle of one deviation the phase is a difference of
    two numbers of 5e5, each right to 4 units."""
    k, p = 10**10, 0.01
    method = two_losses.Binomial(dp.finite([1 - p, p], [0.9901, 0.0099])._parts[0][0], k)
    n, turned = int(k * p + 2e4), (0.5 - p) * k / sqrt(k * p * (1 - p))
    epsilon = method.step.losses[0] * (k - n) + method.step.losses[1] * n
    assert method.nodes(epsilon, 1, n)[1] >= 8 * EPS * turned


# --------------------------------------------------------------------------------- lines and jumps


class Flat:
    """A line whose sum is the same at every epsilon."""

    def __init__(self, log_tail, above=0.0, below=0.0):
        self.found = log_tail, 0.0, above, below

    def sums(self, epsilon):
        return self.found


def test_a_tail_that_underflows_is_not_said_to_be_0():
    low, _, high = inversion.contour_delta(Flat(-800.0), 1, 1.0)
    assert low == 0 < high < 1e-300
    low, value, high = inversion.contour_delta(Flat(-1.0, 1e-3, 2e-3), 1, 1.0)
    assert low == pytest.approx(exp(-1) * 0.998) and high == pytest.approx(exp(-1) * 1.001)
    low, value, high = inversion.contour_delta(Flat(-1.0, 1e-3, 2e-3), -1, 1.0)
    assert low == pytest.approx(1 - exp(-1) * 1.001) and high == pytest.approx(1 - exp(-1) * 0.998)
    assert value == high and inversion.contour_delta(Flat(-1.0, 0.03), 1, 1.0) is None


def test_the_tail_of_few_is_that_of_all_where_nothing_jumps():
    parts = ((Laplace(1.0), 30),)
    found = jumps.log_tail_of_few(parts, 15.0)
    assert found == pytest.approx(log(dp.laplace(1.0).compose(30).delta(15.0)), abs=0.1)


def test_terms_are_charged_before_they_are_made():
    """For one step and for all together: as many as there are counts of its jumps."""
    step, room = SampledGaussian(1.0, 0.01), -40.0 - jumps.NOTHING
    few, *others = jumps.classes(step, 50, 0.5, 10.0, room - log(50))
    ways = np.prod([len(jumps._counts(jump, 50, room)[0]) for jump in others])
    with work.limited(1e9):
        jumps.split(((step, 50),), 0.5, 10.0, -40.0)
        assert 1e9 - work.left() == 2 * (jumps.CHOICE * ways + work.CALL)


# ----------------------------------------------------------------------------------------- lattices


def test_the_bounds_of_a_lattice_of_coins_hold_the_exact_sum():
    """All losses lie on it, so that only round-off is left."""
    parts = ((coin(0.1), 50),)
    spread = lattice.spread(parts, contour.saddle_at(parts, 1, 0.5))
    for epsilon in (0.51, 0.53, 1.0):
        low, value, high = spread.log_bounds(epsilon)
        exact = log(finite_sums.enumerated(parts).delta(epsilon)[1])
        assert low <= value <= high and low - 1e-13 <= exact <= high + 1e-13
        assert high - low <= 2e-8


def test_mass_far_out_is_seen_to_be_wrapped():
    """Twice 1 beyond a loss of 40, where round-off says exp(-70)."""
    grid = lattice.Grid(1.0, 1.0, 64, 10, 80.0, 100.0)
    log_p = np.where(grid.loss == 50, log(2.0), -np.inf)
    with pytest.raises(ArithmeticError, match="wrapped"):
        lattice.check_mass(log_p, -30.0, grid, 40.0)
    lattice.check_mass(log_p - log(2.0), -30.0, grid, 40.0)


def test_losses_with_a_common_spacing_to_rounding():
    """0.1 and 100.1: their quotient is 1001 to 1e-13, not to 1e-15."""
    step = Finite((-0.1, 0.1, 100.1), (-1.0, -1.0, -1.0))
    assert lattice.common_spacing(((step, 1),)) == 0.1
    assert lattice.common_spacing(((Finite((0.1, 0.1 * pi), (-1.0, -1.0)), 1),)) is None


def test_what_the_move_to_a_lattice_adds_is_that_of_all_steps():
    parts = tuple(
        (dp.subsample(dp.laplace(scale), rate)._parts[0][0], k)
        for scale, rate, k in [(2.0, 0.1, 3), (1.0, 0.2, 2)]
    )
    grid = lattice.window(parts, contour.saddle_at(parts, 1, 0.3))[0]
    one, other = (lattice.strayed((part,), grid) for part in parts)
    assert lattice.strayed(parts, grid) == pytest.approx(one + other, rel=1e-12)
    assert min(one, other) > 0


# ------------------------------------------------------------------------- how fast a line decays


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("scale, rate, c", [(0.5, 0.2, 0.7), (0.3, 0.9, 3.0), (2.0, 0.05, -0.4)])
def test_the_ceiling_of_sampled_laplace_noise_is_the_variation_of_its_density(
    monkeypatch, side, scale, rate, c
):
    """By one integration by parts: the atoms, and over the height the density in the loss at both
    ends and what it varies by between, here on a million points."""
    monkeypatch.setattr(Laplace, "_low_ceiling", lambda *_: lambda height: 0.0)
    step, a = Laplace(scale, rate, side), 1 / scale
    u = np.linspace(-a, a, 10**6)
    mixed = np.log1p(rate * np.expm1(u))
    tilt = (1 + c) * mixed if side > 0 else -c * mixed
    density = np.exp(tilt - (u + a) / 2 - step.cumulant_at(c)) / 4 * np.exp(mixed - u) / rate
    ends = tilt[[0, -1]] - np.array([0.0, a]) - step.cumulant_at(c)
    variation = density[0] + density[-1] + np.abs(np.diff(density)).sum()
    for height in (300.0 * variation, 1e4 * variation):
        exact = np.exp(ends).sum() / 2 + variation / height
        assert exact * (1 - 1e-9) <= exp(step.ceiling(c)(height)) <= exact * (1 + 1e-6)


def test_beyond_the_range_of_the_loss_a_density_is_spread_over_an_arc():
    """m (sin x)/x with x = m pi s/((1 + s) peak R), s = y R/(2 pi): the formula, and that it is no
    less than the modulus of a uniform law."""
    step = Laplace(0.5, 0.2)
    reach = step.top() - step.bottom()
    bound = step._low_ceiling(0.0, 0.0, 1 / reach)
    for s in (0.5, 1.0, 3.7):
        x = pi * s / (1 + s)
        assert bound(2 * pi * s / reach) == pytest.approx(log(sin(x) / x), abs=1e-12)
        assert exp(bound(2 * pi * s / reach)) >= abs(sin(pi * s) / (pi * s))


# ----------------------------------------------------------------------------------------- moments


def test_terms_beyond_the_floats_have_a_size():
    """With K far below 0 a term of its moment may be e^800: the cap is e^600, and no overflow."""
    found = law.excess_terms(np.array([0.0, 0.0, -50.0]), np.array([800.0, 20.0, 40.0]))
    assert found == pytest.approx([exp(600), exp(20) - 21, exp(-10)])


@pytest.mark.parametrize("c", [0.01, 0.5, 5.0, 40.0, -0.5])
def test_moments_at_many_tilts_are_those_at_one(c):
    one = SampledGaussian(1.0, 0.01).law(5.0, 0.0)
    exact = float(law.log_moment(one, c))
    cumulant, noise = moments.Moments(None, one).at(c)
    assert cumulant == pytest.approx(exact, rel=1e-14)
    assert noise == pytest.approx(law.moment_noise(one, c, exact), rel=1e-6)


def test_the_moment_of_a_small_mass_is_no_difference_from_1():
    one = SampledGaussian(1.0, 0.01).law(5.0, 0.0)
    rare = one._replace(log_p=one.log_p - 40.0, infinite=1 - exp(-40.0))
    exact = float(law.log_sum_exp(one.log_p + 2 * one.loss)) - 40
    assert moments.Moments(None, rare).at(2.0) == (pytest.approx(exact, rel=1e-14), 0.0)


# ------------------------------------------------------------------------------- one step, closed


@pytest.mark.parametrize(
    "mu, epsilon", [(0.01, 0.0), (0.29, 1.0), (0.31, 1.0), (5.0, 3.0), (40, 9)]
)
def test_closed_forms_are_held_by_their_bounds(mu, epsilon):
    """Phi(a) - e^epsilon Phi(a - mu) to 60 digits; and the width is what the round-off says."""
    single = one_step.Single(Gaussian(mu))
    with mp.workdps(60):
        a = mp.mpf(mu) / 2 - mp.mpf(epsilon) / mp.mpf(mu)
        exact = mp.ncdf(a) - mp.exp(mp.mpf(epsilon)) * mp.ncdf(a - mp.mpf(mu))
        low, high = (mp.mpf(single.log_bound(epsilon, way)) for way in (-1, 1))
        assert low <= mp.log(exact) <= high
        assert mp.log(exact) - low >= 0.8 * one_step.ROUNDING * (1 + abs(mp.log(exact)))
    assert float(high - low) <= 3e-14 * (1 + abs(log(exact))) + 16 * EPS * (epsilon + mu**2)


# -------------------------------------------------------------------------------- the inverse


@pytest.mark.parametrize("delta", [0.9, 0.51, 0.5, 1e-6])
def test_epsilon_of_an_integral_is_that_of_the_gaussian(delta):
    """Also for delta above a half, where 1 - delta is integrated on the other side of 0."""
    low, value, high = inversion.Integral(((Gaussian(0.5), 100),)).epsilon(delta)
    exact = one_step.gaussian_epsilon(5.0, delta)
    assert low <= exact * (1 + 1e-13) and exact * (1 - 1e-13) <= value <= high
    assert high - low <= 1e-9 * exact


def test_whether_no_epsilon_is_needed_is_asked_where_delta_at_0_is_near():
    one = inversion.Integral(((Gaussian(0.01), 100),))  # delta(0) is 0.04
    assert one._may_need_none(0.05) and not one._may_need_none(0.001)


def test_no_line_is_followed_where_delta_is_above_a_half():
    parts = ((Gaussian(0.5), 100),)
    assert inversion.followed(parts, 0.0) is None
    assert inversion.followed(parts, 20.0)(parts) == pytest.approx(gaussian_log_delta(5.0, 20.0))


def asked_for(monkeypatch, found):
    """The epsilons at which lines are drawn when Newton's method returns these."""
    asked, found = [], iter(found)

    def newton(line, side, epsilon, target):
        asked.append(epsilon)
        return next(found)

    monkeypatch.setattr(inversion, "newton", newton)
    monkeypatch.setattr(inversion, "certify", lambda line, side, value, target: (0.0, value, 99.0))
    return asked


def test_a_line_too_far_out_is_drawn_again_half_way_back(monkeypatch):
    parts = ((Gaussian(0.5), 9),)
    asked = asked_for(monkeypatch, [(8.0, "moved"), (8.0, "beyond"), (5.0, "found")])
    assert inversion.contour_epsilon(parts, 1, log(1e-5))[0] == (0.0, 5.0, 99.0)
    assert asked[1:] == [8.0, pytest.approx(0.5 * (asked[0] + 8.0))]


def test_lines_of_jumps_are_drawn_again_where_newton_moved_far(monkeypatch):
    monkeypatch.setattr(jumps, "first_epsilon", lambda *_: 8.0)
    monkeypatch.setattr(jumps, "draw", lambda *_: Flat(-1.0))
    for found, draws in [
        ([(2.0, "found"), (2.1, "found")], [8.0, 2.0]),
        ([(30.0, "found"), (30.0, "found")], [8.0, 30.0]),
        ([(8.0, "beyond"), (4.0, "found")], [8.0, 4.0]),
        ([(7.9, "found")], [8.0]),
        ([(8.0, "unknown")], [8.0]),
    ]:
        asked = asked_for(monkeypatch, found)
        inversion.jumps_epsilon((), -3.0)
        assert asked == draws


def test_epsilon_beside_infinite_losses_has_an_upper_end():
    """A loss that is infinite with a chance of 0.1, else log 0.9, and a Gaussian."""
    run = dp.finite([0.9, 0.1], [1.0, 0.0]) + dp.gaussian(1.0)
    exact = one_step.gaussian_epsilon(1.0, 0.1 / 0.9) + log(0.9)
    low, high = run.epsilon_interval(0.2)
    assert low <= exact <= high <= low + 1e-11


@pytest.mark.parametrize("delta", [1e-3, 0.03, 1e-9])
def test_epsilon_of_one_step_against_its_mixture_inverts_delta(delta):
    step = SampledGaussian(1.0, 0.1, -1)
    assert one_step.log_delta(step, one_step.epsilon(step, delta)) == pytest.approx(log(delta))


def test_delta_beyond_all_losses_is_exactly_0():
    assert one_step.Single(Laplace(1.0)).delta(1.5) == (0.0, 0.0, 0.0)


# ------------------------------------------------------------------------------ discrete Gaussians


@pytest.mark.parametrize("sigma", [0.25, 0.7, 0.99, 1.0, 1.3])
@pytest.mark.parametrize("a", [1e-6, 0.3, 0.5, 1.4])
def test_a_shifted_sum_of_a_discrete_gaussian(a, sigma):
    """To 1e-13 from sigma = 1 on; below, to the round-off of (a/sigma)^2, what K is a sum with."""
    with mp.workdps(50):

        def log_sum(off):
            n = range(-40, 41)
            return mp.log(mp.fsum(mp.exp(-((i - off) ** 2) / (2 * mp.mpf(sigma) ** 2)) for i in n))

        exact = float(log_sum(mp.mpf(a)) - log_sum(0))
    near = a - round(a)
    room = 1e-13 * abs(exact) if sigma >= 1 else 8 * EPS * (near / sigma) ** 2
    assert abs(discrete_gaussian.log_shift(np.array(a), sigma) - exact) <= room


# ---------------------------------------------------------------------------------------- mixtures


def mixture():
    steps = SampledGaussian(1.0, 0.01), Gaussian(0.5)
    return mixtures.Mixture(steps, np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([-1.0, 0.2]))


def test_derivatives_of_a_mixture_are_those_of_its_cumulant():
    z, h = np.array([0.5, 2.0, 6.0]), 1e-3
    value, mean, variance = mixture().derivatives(z)
    below, above = mixture().cumulant(z - h), mixture().cumulant(z + h)
    assert value == pytest.approx(mixture().cumulant(z), abs=1e-14)
    assert mean == pytest.approx((above - below) / (2 * h), abs=1e-7)
    assert variance == pytest.approx((above - 2 * value + below) / h**2, abs=1e-7)


def test_the_round_off_of_a_mixture_is_no_less_than_that_of_a_term():
    """Each term is exp of a number K, right to 8 EPS of it and to what its steps say."""
    one = mixture()
    for c in (0.5, 2.0, 6.0):
        each = [
            noise + 8 * abs(log + one.counts[t] @ [step.cumulant_at(c) for step in one.steps])
            for t, log in enumerate(one.logs)
            for noise in [one.counts[t] @ [step.cumulant_noise(c) for step in one.steps]]
        ]
        assert one.cumulant_noise(c) >= max(each) * (1 - 1e-12)


def test_a_table_goes_on_to_the_saddle_points_of_gentle_terms():
    """One term may be tilted up to 50, the other's place is at 9e4."""
    steep, gentle = SampledGaussian(1.0, 0.01), SampledGaussian(100.0, 0.01)
    table = mixtures.Table((((steep, 1),), ((gentle, 1),)), 0.003)
    saddle = contour.saddle_at(((gentle, 1),), 1, 0.003)[0]
    assert steep.tilt_limit(800.0) < 60 < 5e4 < saddle
    assert table.home(1) == pytest.approx(saddle, rel=0.1)


# ------------------------------------------------------------------------------------- trade-offs


def test_a_tail_beside_infinite_losses_is_scaled_by_what_is_kept():
    one = near.Missed(None, None, 1, log(0.9))
    assert 0.72 * (1 - 1e-13) <= one.rest(0.2, 1.0, 0.0) < 0.72
    other = near.Missed(None, None, -1, log(0.9))
    assert 0.71 * (1 - 1e-13) <= other.rest(0.8, None, 0.01) < 0.71


def test_bounds_of_a_line_are_its_tails_and_their_errors(monkeypatch):
    found = tuple(map(np.array, ([-1.0, -2.0], [0.0, 0.0], [1e-9, 1.0], [2e-9, 0.0])))
    monkeypatch.setattr(near.array_sums, "sums", lambda line, epsilon: found)
    for side, bound in ((1, exp(-1) * (1 + 1e-9)), (-1, exp(-1) * (1 - 2e-9))):
        one = near._from_line(None, side, 0.0, 1e-8)
        assert one.tails(None)[0] == exp(-1) and np.isnan(one.tails(None)[1])
        assert one.bounds(None)[0] == pytest.approx(bound, rel=1e-15)


def around(monkeypatch, tails, bounds, at, width):
    """The best line at 0.3, drawn at this e < 0, where delta and its bounds are these."""
    monkeypatch.setattr(near, "missed", lambda way, epsilon: near.Missed(tails, bounds, 1))
    return tradeoff._around(None, None, np.array([0.3]), at, width)


def test_a_line_of_the_trade_off_is_rounded_down(monkeypatch):
    """exp(e) (1 - alpha - delta) at e = 0: the product is right to 4 units, the difference to 2."""
    height, e, _ = around(monkeypatch, lambda e: 0 * e + 0.2, lambda e: 0 * e + 0.2, -1.0, 1.0)
    assert abs(e[0]) < 1e-12 and 0.5 - 1e-14 <= height[0] <= 0.5 - 4 * EPS


@pytest.mark.parametrize("alpha", [1e-3, 0.2, 0.9])
def test_lines_from_the_largest_losses_of_both_directions(alpha):
    """Beyond them delta is 0: f(alpha) >= 1 - alpha e^top, and e^-top (1 - alpha) of the other."""
    first, second = dp.subsample(dp.laplace(1.0), 0.1).compose(3)._directions
    tops = [sum(k * step.top() for step, k in way.parts) for way in (first, second)]
    assert abs(tops[0] - tops[1]) > 0.2
    for one, other, (top, end) in ((first, second, tops), (second, first, tops[::-1])):
        exact = max(1 - alpha * exp(end), exp(-top) * (1 - alpha))
        found = tradeoff._at_tops(one, other, np.array([alpha]))[0]
        assert exact * (1 - 1e-12) <= found <= exact


def test_the_trade_off_of_a_step_that_samples_nearly_all_at_a_small_level():
    """The t with P(mixture < t) = 1e-6, which 1 - alpha knows to 1e-10 only."""
    step, alpha = SampledGaussian(0.05, 1 - 1e-9), 1e-6
    with mp.workdps(40):
        rate, shift = mp.mpf(step.rate), 1 / mp.mpf(step.sigma)

        def excess(t):
            return rate * mp.ncdf(t - shift) + (1 - rate) * mp.ncdf(t) - mp.mpf(alpha)

        exact = float(mp.ncdf(-mp.findroot(excess, 15.25)))
    assert exact * (1 - 5e-12) <= one_step.least_error(step, alpha) <= exact


@pytest.mark.parametrize("rough, sure", [(0.0, True), (0.05, False)])
def test_a_line_that_its_bound_does_not_confirm_is_drawn_anew(monkeypatch, rough, sure):
    """exp(e) (0.7 - 0.7 exp(e)) is 0.175 at most, and 0.15 if delta may be 0.05 more."""

    def tails(size):
        return 0.7 * np.exp(-size)

    height, e, settled = around(monkeypatch, tails, lambda e: tails(e) + rough, -0.7, 0.3)
    assert height[0] == pytest.approx(0.175 - 0.5 * rough, abs=1e-6) and settled[0] == sure
    assert e[0] == pytest.approx(log(0.5), abs=1e-3)


@pytest.mark.parametrize(
    "run",
    [
        dp.laplace(1.0).compose(3),
        dp.subsample(dp.gaussian(1.0), 0.1).compose(20),
        dp.randomized_response(1.0).compose(5),
        dp.randomized_response(1.0).compose(5) + dp.gaussian(1.0),
    ],
)
def test_a_trade_off_ends_at_1_and_0(run):
    first, middle, last = run.tradeoff([0.0, 0.5, 1.0])
    assert first == 1 and 0 < middle < 0.5 and last == 0


# --------------------------------------------------------------------------------- what is charged


def test_the_symmetrised_law_is_charged_and_its_work_is_its_nodes():
    step = SymmetrisedGaussian(1.0, 0.1)
    with work.limited(1e9):
        step._law(np.linspace(0.1, 1.0, 500), np.ones(500))
        assert 1e9 - work.left() == symmetrised.VALUE * 500 + work.CALL
    nodes = len(step.law(1.0, 0.0).loss)
    assert nodes <= step.work(1.0, 0.0) <= 1.2 * nodes


# ----------------------------------------------------------------------- lines and their transforms


def a_line(rivals):
    y = np.arange(0.0, 12.0, 0.25)
    shape = -0.5 * y * y + 1.5j * y
    return Line(1.0, 8 * pi, y, 1.0, EPS, shape, 0 * y, np.array(rivals, dtype=float), -70.0)


def test_a_rival_at_the_place_of_the_line_bounds_no_alias():
    """It would be bounded by the tail itself, once for each alias, and those don't end."""
    rivals = [[0.5, 1.4], [0.375, 1.68]]
    with_own = [[0.5, 1.0, 1.4], [0.375, -99.0, 1.68]]
    assert a_line(with_own).sums(1.0) == a_line(rivals).sums(1.0)


def test_the_values_of_a_line_are_charged_for():
    line = a_line([[0.5, 1.4], [0.375, 1.68]])
    with work.limited(1e9):
        line.sums(1.0)
        assert 1e9 - work.left() == (lines.VALUE + lines.QUERY) * len(line.y) + 2 * work.CALL


@pytest.mark.parametrize("c", [0.5, 5.0, 20.0, 40.0])
def test_a_line_of_many_laws_is_that_of_each(c):
    """The same sums in another order, and no smaller an error is claimed."""
    y = 0.02 * np.arange(200)
    one = SampledGaussian(1.0, 0.01).law(c, float(y[-1]))
    value, noise = law.line_of_law(one, c, y)
    found, error = rows.line(law.Law(one.loss[None], one.log_p[None]), c, y)
    noise, error = noise * np.exp(value.real), error[0] * np.exp(found[0].real)
    assert np.all(np.abs(np.exp(found[0]) - np.exp(value)) <= noise + error)
    assert np.all(error[1:] >= noise[1:]) and np.all(error <= 1.5 * noise + 1e-300)


@pytest.mark.parametrize("c", [0.5, 5.0, 20.0])
def test_the_error_of_a_line_of_many_laws_is_that_of_its_highest_node(c):
    """Blocks of 14 heights share a bound: 4 EPS of the sum of min(y abs(L), 2) and of its norm,
    each term with the size of its exponent, at the last of them."""
    y = 0.02 * np.arange(196)
    one = SampledGaussian(1.0, 0.01).law(c, float(y[-1]))
    found, error = (x[0] for x in rows.line(law.Law(one.loss[None], one.log_p[None]), c, y))
    weights = rows.tilted(one, c)
    moved = np.minimum(np.multiply.outer(y, np.abs(one.loss)), 2.0) * weights
    sizes = np.where(weights > 1e-40, np.abs(one.log_p), 0) + np.abs(c * one.loss)
    least = moved.sum(axis=1) + np.sqrt((moved**2) @ (sizes + 20 + 2.2 * sqrt(14)) ** 2)
    assert np.all(error * np.exp(found.real) >= 4 * EPS * least * (1 - 1e-9))


def test_moments_of_rows_and_turns_are_charged_for():
    one = law.Law(np.ones((3, 50)), np.zeros((3, 50)) - log(50.0))
    with work.limited(1e9):
        rows.moment_noise(one, 1.0, np.ones(3))
        assert 1e9 - work.left() == 2 * law.MOMENT * 150 + work.CALL
    with work.limited(1e9):
        phases._products(np.full(50, 0.02), np.ones(50), np.ones(50), np.arange(100.0))
        per_loss = phases.PRODUCT * 100 + phases.TURN * 10
        assert 1e9 - work.left() == 50 * per_loss + phases.NODE * 100 + work.CALL


def test_turns_by_transforms_are_exact_where_they_are_farthest_from_the_grid():
    """Half-way between its points the exponent of Taylor's series is pi/4, and the rest 0.01 EPS;
    on a grid half as fine it is pi/2 at each second point of this one, and that leaves 200 EPS."""
    y, unit = np.arange(4096.0), 2 * pi / 8192
    loss, weights = unit * (0.5 * np.arange(-6, 8)), np.full(14, 1 / 14)
    found, square = phases._transformed(weights, loss, y)
    exact = np.exp(1j * np.outer(y, loss)) @ weights - 1
    assert np.abs(found - exact).max() <= EPS * (sqrt(square) + 4)


# ---------------------------------------------------------------------------- losses on a lattice


def test_laws_that_occur_once_are_joined_and_no_others():
    a, b = (
        law.Law(np.array([0.0, 1.0]), np.log([0.3, 0.7])),
        law.Law(np.array([0.0, 2.0]), np.log([0.4, 0.6])),
    )
    often, wide = law.Law(np.arange(9.0), np.zeros(9)), law.Law(np.arange(3000.0), np.zeros(3000))
    (sums, one), (same, five), (other, six) = convolution.joined(
        [(a, 1), (often, 5), (b, 1), (often, 6)]
    )
    assert (one, five, six) == (1, 5, 6) and same is often and other is often
    assert sorted(zip(sums.loss.tolist(), np.exp(sums.log_p).round(12).tolist(), strict=True)) == [
        (0.0, 0.12), (1.0, 0.28), (2.0, 0.18), (3.0, 0.42)
    ]  # fmt: skip
    assert [len(each.loss) for each, _ in convolution.joined([(a, 1), (wide, 1)])] == [2, 3000]


def test_a_law_on_a_lattice_keeps_its_mass_under_both_laws():
    grid = lattice.Grid(1.5, 0.25, 64, -32, 8.0, 16.0)
    one = law.Law(np.array([-1.0, -0.9, 0.07, 0.2, 1.3]), np.log([0.1, 0.2, 0.3, 0.25, 0.15]))
    slot, _, low, high, top = convolution.halved(one, grid)
    index = np.where(slot < 32, slot, slot - 64)
    low = low * np.exp(top - grid.c * grid.spacing * index)
    high = high * np.exp(top - grid.c * grid.spacing * (index + 1))
    assert low + high == pytest.approx(np.exp(one.log_p), rel=1e-14)
    under_q = np.exp(-0.25 * index) * (low + high * np.exp(-0.25))
    assert under_q == pytest.approx(np.exp(one.log_p - one.loss), rel=1e-14)


def test_the_tilt_of_a_gaussian_is_limited_where_its_tail_is_that_small():
    step = Gaussian(0.5)
    found = contour.saddle_for(((step, 1),), 1, -795.0)[0]
    assert found <= step.tilt_limit(800.0) <= 1.02 * found


@pytest.mark.parametrize("mu", [0.5, 3.0])
@pytest.mark.parametrize("reach", [0.0, 2.0, 60.0, 500.0])
def test_cells_of_a_gaussian_have_its_mass_and_its_tilted_mass(mu, reach):
    found = Gaussian(mu).cells(0.01, reach, -inf)
    assert law.log_sum_exp(found.log_p) == pytest.approx(0.0, abs=1e-12)
    tilted = law.log_sum_exp(found.log_p + reach * found.loss)
    assert tilted == pytest.approx(Gaussian(mu).cumulant_at(reach), rel=1e-13, abs=1e-12)


def test_the_spread_of_a_loss_is_its_deviation():
    assert Gaussian(0.25).spread() == 0.25
    assert Laplace(1e6).spread() == pytest.approx(1e-6, rel=1e-5)  # all but surely +-1e-6


# ---------------------------------------------------------------------------- infinite losses


def test_epsilon_at_the_very_probability_of_an_infinite_loss():
    """log 2 is the largest finite loss; below it delta is more than 0.1."""
    run = dp.finite([0.6, 0.3, 0.1], [0.3, 0.7, 0.0])
    assert run.epsilon(0.1) == pytest.approx(log(2), rel=1e-12)
    low, _, high = run._directions[0].epsilon(0.1)
    assert log(2) * (1 - 1e-9) <= low <= log(2) and high == inf


def test_the_least_epsilon_is_off_by_the_round_off_of_the_largest_loss():
    way = dp.laplace(1.0).compose(3)._directions[0]
    assert way._least_epsilon(1e-300, 3.0, 1e-3) <= 3 - 1e-3
    assert way._least_epsilon(0.01, 3.0, 0.0) == pytest.approx(3 + log(1 - 0.08), rel=1e-6)


def test_the_moment_of_a_rare_large_loss_is_right_to_the_last_digits():
    """A loss of 31 with a chance of 1e-12: exp(w) - 1 - w is e^31 - 32 there, and 32 is seen."""
    rare = 1e-12
    log_p = np.array([np.log1p(-rare), log(rare)])
    with mp.workdps(50):
        p = [mp.exp(mp.mpf(float(x))) for x in log_p]
        loss = float(-mp.log((1 - p[1] * mp.exp(-31)) / p[0]))
        exact = mp.log(p[0] * mp.exp(mp.mpf(loss)) + p[1] * mp.exp(31))
    found = moments.Moments(None, law.Law(np.array([loss, 31.0]), log_p)).at(1.0)[0]
    assert found == pytest.approx(float(exact), rel=1e-14)


# ---------------------------------------------------------------------------- curves, calibration


def test_an_end_that_is_not_below_the_target_is_not_certified(monkeypatch):
    """log tail = -e, with a slope that claims more: 1.0 is not where the tail is exp(-0.5)."""

    def sums(line, epsilon):
        none = np.zeros(len(epsilon))
        return -epsilon, none + 80.0, none, none

    monkeypatch.setattr(many, "sums", sums)
    for at, target, sure in [(1.0, -0.5, False), (1.0, -1.5, False), (1.0, -1.0, True)]:
        found = many._certified(None, 1, np.array([at]), np.array([target]), 1e-9)
        assert np.isfinite(found).all() == sure


@pytest.mark.parametrize("near", [1, 2, 5, 6, 7, 8, 9, 40])
@pytest.mark.parametrize("step", [1, 2, 3, 50])
def test_the_most_steps_are_found_from_everywhere(near, step):
    for rise in (lambda k: k - 7.5, lambda k: -1.0 if k < 8 else inf, lambda k: k**3 - 400.0):
        assert search._most_steps(rise, near, step) == 7


def test_the_least_number_that_is_too_many():
    assert search._least_too_many(lambda k: 1.0) == 1
    assert search._least_too_many(lambda k: k - 4.5) == 5
    assert search._least_too_many(lambda k: k - 900.0) == pytest.approx(900, rel=0.25)


def test_a_family_that_refuses_small_numbers_is_no_number_of_steps():
    def family(sigma):
        if sigma < 1:
            raise ValueError("too little noise")
        return dp.gaussian(sigma)

    exact = dp.calibrate(dp.gaussian, 1.0, 1e-5)
    assert dp.calibrate(family, 1.0, 1e-5) == pytest.approx(exact, rel=1e-11)


def test_laws_are_grouped_to_products_of_at_most_4096():
    assert convolution.groups([]) == [] and convolution.groups([1, 1, 5000]) == [2, 1]
    assert convolution.groups([2] * 13) == [12, 1] and convolution.groups([64, 64, 64]) == [2, 1]
