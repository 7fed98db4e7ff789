"""Where a formula ends: the caps, the floors and the empty cases that random instances don't meet.

Each was found by `make mutants`: a change of the code that no other test noticed.
"""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special

import dpnotes as dp
from dpnotes import _validate, convex, discrete, minimise, shuffling, stability
from dpnotes import queries as queries_room
from evidence import at_most, equal, holds, must_fail


def test_arguments_at_the_ends_of_what_is_allowed():
    inf, most = np.inf, 1e100
    above, least = np.nextafter(most, inf), np.nextafter(1e-100, 0)
    ends = (  # a check, what it accepts, what it refuses
        (_validate.real, (most, -most, 0.0, 3), (above, -above, inf, -inf)),
        (_validate.positive, (most, 1e-100, 1, [5e-324, 1.0]), (above, least, 0, inf, [0.0, 1.0])),
        (_validate.nonnegative, (most, 0.0), (above, -5e-324, inf)),
        (_validate.nonnegative_or_inf, (most, inf, 0.0), (above, -5e-324)),
        (_validate.probability, (0.0, 1.0), (-5e-324, 1 + 1e-15)),
        (_validate.positive_probability, (5e-324, 1.0), (0.0, 1 + 1e-15)),
        (_validate.open_probability, (5e-324, 1 - 1e-15), (0.0, 1.0)),
        (_validate.order, (1.0, most, inf), (1 - 1e-15, above)),
        (_validate.count, (1, 2**63 - 1, 1e6), (0, 1.5, 2**63, 0.0, 2.0**63, [1])),
        (_validate.count_or_zero, (0, 2**63 - 1, 0.0), (-1, 0.5, 2**63, [1])),
        (_validate.counts, ([1, 2.0], 1e100), ([0, 1], 1.5, 2e100)),
        (_validate.distribution, ([0.5, 0.5 + 0.9e-9], [0.5, 0.5 - 0.9e-9]), (
            [0.5, 0.5 + 1.1e-9], [0.5, 0.5 - 1.1e-9], [1.5, -0.5], [[1.0]], 1.0,
        )),
    )  # fmt: skip
    for call, good, bad in ends:
        for value in good:
            equal(call("it", value), value)
        for value in bad:
            with pytest.raises(ValueError, match="^it must be "):
                call("it", value)
    assert type(_validate.count("it", 1e6)) is type(_validate.count_or_zero("it", 3.0)) is int
    assert _validate.count("it", 2**63 - 1) == 2**63 - 1  # exact: no float is near
    assert _validate.count_up_to("it", 5, 5) == 5 and _validate.within("it", 2.0, 2, 3) == 2.0
    for refused in (
        lambda: _validate.count_up_to("it", 6, 5),
        lambda: _validate.within("it", 3.1, 2, 3),
        lambda: _validate.within("it", 1.9, 2, 3),
        lambda: _validate.counts("it", 6, 5),
        lambda: _validate.array("it", [[1.0]], 1, 3),
        lambda: _validate.array("it", [above], 1),
        lambda: _validate.array("it", [[1.0], [1.0, 2.0]], 2),
        lambda: _validate.real("it", np.ma.masked_array([0.5, 0.5], [True, False])),
        lambda: _validate.real("it", bytearray(b"3")),
        lambda: _validate.scalar("it", [1.0]),
        lambda: _validate.scalar("it", [[1.0], [1.0, 2.0]]),
        lambda: _validate.function("it", 3),
        lambda: _validate.choice("it", True, (1, 2)),
        lambda: _validate.choice("it", 3, (1, 2)),
        lambda: _validate.choice("it", [1], (1, 2)),
        lambda: _validate.generator("it", 3),
    ):
        with pytest.raises(ValueError, match="^it must be "):
            refused()
    assert _validate.choice("it", 1.0, (1, 2)) == 1 and _validate.counts("it", 5, 5) == 5
    found = _validate.array("it", np.array([most, -most]), 1, 3)
    assert found.tolist() == [most, -most] and _validate.array("it", [3], 1).dtype == float
    assert type(_validate.plain(np.float64(2))) is type(_validate.real("it", np.int8(2))) is float


def test_a_tail_is_at_most_one_and_an_error_at_least_nothing():
    assert dp.loss_tail_from_dp(1.0, 0.5, 1.1) == 1.0  # the quotient is 5.3
    assert dp.tradeoff_from_profile([1.0], [0.1], 1.0) == 0.0  # the line is at -1.8
    one, many = dp.tradeoff_from_profile([0.0, 0.5, 1.0], 0.1, 0.2), (0.1, 0.1, 0.1)
    equal(one, dp.tradeoff_from_profile([0.0, 0.5, 1.0], many, 0.2))
    equal(one, 1 - 0.1 - 0.2)


def test_a_bound_beyond_the_exponential_is_one():
    assert dp.moment_tail(1e-50, 1e50, 10) == 1.0  # exp(1266)


def test_no_budget_and_no_slack_is_no_budget_for_each():
    equal(dp.per_query_epsilon(0.0, [1, 10], 1.0), 0.0)  # 0/0 in the formula
    equal(dp.per_query_epsilon([0.0, 2.0], 1, 1.0), [0.0, 2.0])


def test_half_of_epsilon_covers_the_mean_up_to_its_limit():
    for delta in (1e-6, 0.1):
        limit = 8 * np.log(1 / delta)
        equal(dp.laplace_variance_halved(3, 0.999 * limit, delta), 6 / limit / 0.999**2, rtol=1e-9)
        with pytest.raises(ValueError, match="epsilon"):
            dp.laplace_variance_halved(3, 1.001 * limit, delta)


# ------------------------------------------------------------------------------------- Gaussian


def balle_wang(sigma, epsilon):
    """delta of the Gaussian with 60 digits, as in Balle & Wang 2018."""
    with mpmath.workdps(60):
        mu = 1 / mpmath.mpf(sigma)
        t = mpmath.mpf(epsilon) / mu
        return float(mpmath.ncdf(mu / 2 - t) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - t))


def test_delta_of_the_gaussian_far_out_and_below_zero():
    cases = [(10.0, 1.3), (3.0, 5.0), (30.0, 1.0), (1.0, -2.0), (5.0, -0.3), (0.3, -5.0)]

    def check(delta):
        for sigma, epsilon in cases:
            equal(delta(sigma, epsilon), balle_wang(sigma, epsilon), rtol=1e-12)

    check(dp.gaussian_delta)
    must_fail(check, lambda sigma, epsilon: dp.gaussian_delta(sigma, abs(epsilon)))


def test_ratios_beyond_the_floats_do_not_stop_who_lets_errors_stop_them():
    with np.errstate(all="raise"):  # mu underflows to 0, and overflows
        least = dp.gaussian_delta(np.array([1e100]), 1.0, np.array([1e-300]))
        most = dp.gaussian_delta(np.array([1e-300]), 1.0, np.array([1e100]))
    assert least.tolist() == [0.0] and most.tolist() == [1.0]


def test_sigma_where_half_of_all_losses_may_exceed_epsilon():
    equal(dp.gaussian_sigma_tail(8.0, 0.5), 0.25)  # the median mu^2/2 = 8 itself: mu = 4
    equal(dp.gaussian_loss_tail(0.25, 8.0), 0.5)


def test_sigma_for_no_epsilon_at_all():
    delta = np.array([1e-9, 0.01, 0.5, 0.99])
    equal(dp.gaussian_delta(dp.gaussian_sigma(0.0, delta), 0.0), delta)


# ---------------------------------------------------------------------------------------- Renyi


def best_two_points(alpha, rdp, delta):
    """max log((p - delta)/q) of two-point laws of divergence at most `rdp`, on a fine grid of p."""
    p = delta + (1 - delta) * np.append(np.exp(np.linspace(-30, 0, 1500)), 1 - np.logspace(-9, 0))
    low, high = -100.0 + 0 * p, np.log(p)
    for _ in range(60):  # the divergence falls as q rises to p
        log_q = (low + high) / 2
        first = alpha * np.log(p) + (1 - alpha) * log_q
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = alpha * np.log1p(-p) + (1 - alpha) * np.log1p(-np.exp(log_q))
        far = np.logaddexp(first, np.where(p < 1, rest, -np.inf)) > (alpha - 1) * rdp
        low, high = np.where(far, log_q, low), np.where(far, high, log_q)
    with np.errstate(divide="ignore"):
        return max(0.0, np.max(np.log(p - delta) - high))


def test_the_optimal_conversion_is_the_worst_two_point_law():
    cases = [(2.0, 0.5, 1e-5), (32.0, 0.5, 0.05)]

    def check(convert):
        for case in cases:
            equal(convert(*case), best_two_points(*case), rtol=2e-4)
        assert convert(2.0, 0.0, 1e-6) == 0.0

    check(dp.rdp_to_dp_optimal)
    must_fail(check, dp.rdp_to_dp_improved)


def test_no_epsilon_is_below_zero():
    assert dp.rdp_to_dp_improved(2.0, 0.0, 0.9) == 0.0
    assert dp.rdp_to_dp_optimal(2.0, 0.01, 0.9) == 0.0


def test_sampling_everything_or_nothing():
    alpha = np.array([2, 3, 40])
    equal(dp.rdp_subsampled_gaussian(1.3, 1.0, alpha), dp.rdp_gaussian(1.3, alpha))
    equal(dp.rdp_subsampled_gaussian(1.3, 0.0, alpha), 0.0)
    assert dp.amplification_linear(1000.0, 0.0) == 0.0  # infinity times nothing
    equal(dp.amplification_linear([0.0, 1.0], 0.5), [0.0, (np.e - 1) / 2])


def test_the_largest_order_and_the_largest_group():
    at_most(0.0, dp.rdp_subsampled_gaussian(1e3, 1e-3, 1e6))
    with pytest.raises(ValueError, match="alpha"):
        dp.rdp_subsampled_gaussian(1e3, 1e-3, 1e6 + 1)
    equal(np.log(dp.group_rdp(2.0**301, 1.0, 300)), np.log([2.0, 3.0**300]))
    with pytest.raises(ValueError, match="doublings"):
        dp.group_rdp(2.0**302, 1.0, 301)


# ----------------------------------------------------------------------------------- subsampling


def test_too_many_samples_are_refused_before_the_first():
    def never(rows):
        raise AssertionError("ran")

    for rows, draws in ((10, 7), (1001, 2), (2, 20), (3, 10**9), (1, 10**9)):
        with pytest.raises(ValueError, match="^draws must leave at most 10.6 samples"):
            dp.replacement_subsample_law(never, range(rows), draws)
    for rows, draws in ((10, 6), (100, 3), (1000, 2), (2, 19), (1, 30)):  # a million, and less
        with pytest.raises(AssertionError, match="ran"):
            dp.replacement_subsample_law(never, range(rows), draws)


def test_rows_may_be_of_any_form_but_must_be_listed():
    rows = [(1,), (2, 3), "four"]
    laws = (
        lambda data: dp.uniform_subsample_law(lambda part: [len(part), len(part[0])], data, 1),
        lambda data: dp.poisson_subsample_law(lambda part: [len(part), len(part)], data, 0.5),
        lambda data: dp.replacement_subsample_law(lambda part: [len(part), len(part[0])], data, 1),
    )
    for law, found in zip(laws, ([1, 7 / 3], [1.5, 1.5], [1, 7 / 3]), strict=True):
        equal(law(rows), found)
        equal(law(tuple(rows)), found)
        for wrong in ("four", {1, 2}, {1: 2}, 3, None, np.array(3), np.float64(3.0), iter(rows)):
            with pytest.raises(ValueError, match="^data must be a list of rows"):
                law(wrong)


def test_minibatches_beyond_the_floats_cost_infinitely_much():
    assert dp.minibatch_epsilon(1000.0, 0.1, 1.0, 1e-5) == np.inf  # and nothing is warned of


def test_the_substitution_pair_of_a_large_epsilon():
    for epsilon in (3.0, 500.0, 699.0):
        a, b = dp.substitution_pair(epsilon, 1.0)
        equal([np.log(a[0] / b[0]), np.log(b[1] / a[1])], epsilon)
        equal([a.sum(), b.sum()], 1.0)


# ----------------------------------------------------------------------------- the best of runs


def test_laws_of_the_number_of_runs_and_orders_that_there_are():
    for eta in (-1 + 1e-9, 0.0, 100.0):
        assert dp.negative_binomial_runs(eta, 0.5).mean > 1
    for eta in (-1.0, -1.5, np.nextafter(100.0, 101.0), 1e3):
        with pytest.raises(ValueError, match="^eta must be in"):
            dp.negative_binomial_runs(eta, 0.5)
    equal(dp.geometric_runs(1.01).mean, 1.01)
    for mean in (1.0, 0.5):
        with pytest.raises(ValueError, match="^mean must be above 1"):
            dp.geometric_runs(mean)
    loss, runs = dp.gaussian(2.0), dp.geometric_runs(3.0)
    assert type(dp.best_of_renyi(loss, runs, 2.0)) is float
    for alpha in (1.0, np.inf, [2.0, 1.0], [np.inf, 2.0]):
        with pytest.raises(ValueError, match="^alpha must be finite and above 1"):
            dp.best_of_renyi(loss, runs, alpha)


def test_a_coin_that_never_shows_heads_tells_the_truth_for_certain():
    for heads in (0.0, -0.0, 1.0):
        assert dp.two_coin_epsilon(0.5, heads) == np.inf
        assert dp.two_coin_epsilon(0.0, heads) == 0.0


# ------------------------------------------------------------------------------------ mechanisms


def test_integers_that_fit_are_of_64_bits_and_others_of_python():
    noise = dp.discrete_laplace_mechanism(0, 1, 0.1, rng=np.random.default_rng(8))
    ends = {-(2**63) - 1: object, -(2**63): np.int64, 2**63 - 1: np.int64, 2**63: object}
    for total, kind in ends.items():
        value = np.array([total - noise], dtype=object)
        found = dp.discrete_laplace_mechanism(value, 1, 0.1, rng=np.random.default_rng(8))
        assert found.dtype == kind and found[0] == total


def test_the_noise_of_a_safe_sum_is_that_of_its_sensitivity():
    for lower, upper, steps in ((0.0, 0.5, 1), (-1.5, 0.5, 3), (0.0, 0.1, 1)):  # 0.1 of 0.5 is 0
        for seed in range(20):
            rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
            found = dp.safe_sum([], lower=lower, upper=upper, grid=0.5, epsilon=0.3, rng=rng)
            assert found == 0.5 * dp.discrete_laplace_mechanism(0, steps, 0.3, rng=same)


def test_a_grid_has_fewer_than_2_to_53_steps():
    kept = dp.to_grid([1e300, -1.0], lower=0.0, upper=2.0**53 - 1, grid=1.0)
    assert kept.tolist() == [2**53 - 1, 0]
    with pytest.raises(ValueError, match="grid"):
        dp.to_grid([0.0], lower=0.0, upper=2.0**53, grid=1.0)


def test_a_row_that_is_no_float_moves_no_other_row():
    def check(to_grid):
        for values, upper, grid in (
            ([2**61, 3, -(2**65)], 2.0**72, 2.0**20),
            ([1000, 7, -1], 5000.0, 1.0),
            ([0.5, 2**61 + 1, -3.5], 2.0**62, 2.0**10),
        ):
            alone = to_grid(values, lower=-upper, upper=upper, grid=grid)
            for huge, end in ((10**400, upper), (-(10**400), -upper)):
                found = to_grid([*values, huge], lower=-upper, upper=upper, grid=grid)
                holds(found == np.append(alone, end / grid))

    check(dp.to_grid)
    must_fail(check, lambda values, **more: dp.to_grid([min(v, 2**60) for v in values], **more))
    for odd in ([10**400, "x"], [10**400, None], [10**400, [1, 2]], [10**400, 1j]):
        with pytest.raises(ValueError, match="values"):
            dp.to_grid(odd, lower=0.0, upper=1.0, grid=0.5)


def test_divergence_of_randomized_response_at_an_epsilon_beyond_the_exponential():
    equal(dp.rdp_randomized_response(2000.0, [1.5, 100.0]), [2000.0, 2000.0], rtol=1e-14)


# ------------------------------------------------------------------------------ sparse vector


def test_the_law_of_one_report_in_closed_form():
    a, (b1, b2) = 0.3, (1.0, 2.5)
    kept, fresh = dp.SparseVector(b1, b2, None, 2), dp.SparseVector(b1, b2, 9.0, 2)
    for report in (0, 1):  # the noise that is drawn anew is not that of the first round
        equal(dp.sparse_log_law(fresh, [a], [report]), dp.sparse_log_law(kept, [a], [report]))
    x = -a  # P(z > a + noise): two Laplace variables
    tail = 0.5 * (b1**2 * np.exp(x / b1) - b2**2 * np.exp(x / b2)) / (b1**2 - b2**2)
    equal(np.exp(dp.sparse_log_law(kept, [a], [0])), tail, rtol=1e-11)
    shows, told = dp.SparseVector(b1, b2, None, 1, True), np.array([-2.0, 0.1, 0.3, 4.0])
    below = np.where(told < 0, np.exp(-abs(told) / b1) / 2, 1 - np.exp(-abs(told) / b1) / 2)
    density = np.exp(-np.abs(told - a) / b2) / (2 * b2) * below
    equal(np.exp(dp.sparse_log_law(shows, [a], told[:, None])), density, rtol=1e-11)


def test_the_law_of_many_equal_answers_is_a_beta_function():
    """With one scale b for all noise the integral over z is one over u = F(z): B(m + 1, k + 1)."""

    few = (1, 1), (100, 100), (7, 3000)

    def check(noise, counts=few):
        for below, above in counts:
            found = dp.sparse_log_law(
                noise._replace(count=above + 1), np.full(below + above, 0.3),
                np.repeat([0, 1], (below, above)), 0.3,
            )  # fmt: skip
            exact = float(mpmath.log(mpmath.beta(below + 1, above + 1)))
            equal(found, exact, rtol=1e-15, atol=1e-11)

    for scale in (0.05, 40.0):
        check(dp.SparseVector(scale, scale))
    check(dp.SparseVector(1.5, 1.5), [*few, (10_000, 10_000), (200_000, 0)])
    must_fail(check, dp.SparseVector(1.5, 1.500001))


def test_reports_are_about_the_distance_to_the_threshold():
    kept, shows = dp.SparseVector(1.0, 2.5), dp.SparseVector(1.0, 2.5, None, 1, True)
    for t in (-3.0, 2.0):
        for report in (0, 1):
            moved = dp.sparse_log_law(kept, [0.3 + t], [report], t)
            equal(moved, dp.sparse_log_law(kept, [0.3], [report]), rtol=1e-11)
        for told in (-np.inf, -0.5, 4.0):
            moved = dp.sparse_log_law(shows, [0.3 + t], [told + t], t)
            equal(moved, dp.sparse_log_law(shows, [0.3], [told]), rtol=1e-11)


def test_answers_may_lie_a_hundred_thousand_scales_apart_or_next_to_each_other():
    noise = dp.SparseVector(2.0, 1.0)
    far = dp.sparse_log_law(noise, [0.0, -9.9e4], [0, 0])  # so far below it is no report at all
    equal(far, dp.sparse_log_law(noise, [0.0], [0]), rtol=1e-11)
    with pytest.raises(ValueError, match="^answers and threshold must lie within 10.5 noise"):
        dp.sparse_log_law(noise, [0.0, -1e5], [0, 0])
    near = dp.sparse_log_law(noise, [0.0, 5e-324], [0, 0])  # and no warning
    equal(near, dp.sparse_log_law(noise, [0.0, 0.0], [0, 0]))


def test_no_more_noises_of_the_threshold_are_drawn_than_there_are_queries():
    for count, drawn in ((2, 2), (3, 3), (100, 3), (np.inf, 3)):
        noise = dp.SparseVector(2.0, 5.0, 3.0, count)
        known = 3.0 * np.log(2 * drawn / 0.1) + 5.0 * np.log(2 * 3 / 0.1)
        equal(dp.sparse_accuracy(noise, 3, 0.1), known)


def test_each_round_has_the_noise_of_its_own():
    fresh = dp.SparseVector(1.0, 2.5, 9.0, 2)
    one, two = dp.SparseVector(1.0, 2.5, None, 1), dp.SparseVector(9.0, 2.5, None, 1)
    product = dp.sparse_log_law(one, [0.3, 1.0], [0, 1]) + dp.sparse_log_law(two, [-2.0], [1])
    equal(dp.sparse_log_law(fresh, [0.3, 1.0, -2.0], [0, 1, 1]), product, rtol=1e-11)


def test_the_scales_of_the_six_algorithms_of_lyu_su_and_li():
    """Their Figure 1, each with half of epsilon for the threshold but for the fourth: a quarter."""
    epsilon, c, s = 0.8, 3, 1.5
    half = epsilon / 2
    figure = [
        (s / half, 2 * c * s / half, None, c, False),
        (c * s / half, 2 * c * s / half, c * s / half, c, False),
        (s / half, c * s / half, None, c, True),
        (s / (epsilon / 4), s / (3 * epsilon / 4), None, c, False),
        (s / half, 0.0, None, np.inf, False),
        (s / half, s / half, None, np.inf, False),
    ]
    found = dp.lyu_variants(epsilon, c, s).values()
    for one, known in zip(found, figure, strict=True):
        assert (one[2] is None) == (known[2] is None)
        equal(*(np.array([x or 0.0 for x in each], dtype=float) for each in (one, known)))
    equal(
        [dp.sparse_epsilon(one, s) for one in found], [epsilon] * 2 + [np.inf, 3.8] + [np.inf] * 2
    )


def test_mechanisms_without_noise_on_the_answers_have_no_epsilon():
    equal(dp.sparse_epsilon(dp.SparseVector(2.0, 4.0, None, 3), 0.5), 0.25 + 0.75)
    equal(dp.sparse_epsilon(dp.SparseVector(2.0, 4.0, 5.0, 3), 0.5), 0.25 + 0.2 + 0.75)
    for noise in (
        dp.SparseVector(2.0, 0.0, None, 3),
        dp.SparseVector(2.0, 4.0, None, 3, True),
        dp.SparseVector(2.0, 4.0, None, np.inf),
    ):
        assert dp.sparse_epsilon(noise) == np.inf
    for threshold in ([0.0, 1.0], [[0.0, 1.0, 2.0]]):
        with pytest.raises(ValueError, match="^threshold must be one number, or one for each"):
            dp.sparse_log_law(noise, [1.0, 2.0, 3.0], [0, 0, 1], threshold)


@pytest.mark.parametrize(
    "name, values",
    [
        ("threshold_scale", (-1.0, 0.0, np.nan, np.inf, None, [1.0], "1")),
        ("query_scale", (-1.0, np.nan, np.inf, None, [1.0], "1")),
        ("refresh_scale", (-1.0, 0.0, np.nan, np.inf, [1.0], "1")),
        ("count", (0, -1, 1.5, np.nan, -np.inf, None, [1], "1")),
    ],
)
def test_noise_that_is_none_is_refused_wherever_it_is_taken(name, values):
    """Of a scale of -1 `sparse_epsilon` would be 0 or less: privacy for free."""
    rng, right = np.random.default_rng(1), dp.SparseVector(1.0, 2.0, 1.0, 2)
    for value in values:
        wrong = right._replace(**{name: value})
        for call in (
            lambda noise: dp.sparse_epsilon(noise),
            lambda noise: dp.sparse_accuracy(noise, 3),
            lambda noise: dp.sparse_runs(noise, [1.0], rng=rng),
            lambda noise: dp.sparse_log_law(noise, [1.0], [1]),
        ):
            call(right)
            with pytest.raises(ValueError, match=f"^noise.{name} must be"):
                call(wrong)


def test_reports_that_cannot_be():
    once = dp.sparse_rounds(1.0)
    assert dp.sparse_log_law(once, [1.0, 2.0], [1, 1]) == -np.inf  # it had stopped
    assert dp.sparse_log_law(once, [1.0, 2.0], [0, np.nan]) == -np.inf  # it had not


def test_the_scales_of_the_six_published_algorithms():
    epsilon, c, s = 0.5, 3, 2.0  # as printed by Lyu, Su & Li, Figure 1
    found = [tuple(one[:2]) for one in dp.lyu_variants(epsilon, c, s).values()]
    half, quarter, more = epsilon / 2, epsilon / 4, 3 * epsilon / 4
    printed = [
        (s / half, 2 * c * s / half),
        (c * s / half, 2 * c * s / half),
        (s / half, c * s / half),
        (s / quarter, s / more),
        (s / half, 0.0),
        (s / half, s / half),
    ]
    equal(found, printed)


def test_numeric_sparse_is_sparse_on_half_the_budget_and_laplace_on_the_other():
    answers, count, epsilon, s = np.linspace(-3, 9, 60), 5, 6.0, 0.5
    noise = dp.sparse_rounds(epsilon / 2, count, 0.0, s)
    for seed in range(10):
        told = dp.numeric_sparse(
            answers, 2.0, count=count, epsilon=epsilon, sensitivity=s,
            rng=np.random.default_rng(seed),
        )  # fmt: skip
        reports = dp.sparse_runs(noise, answers, 2.0, rng=np.random.default_rng(seed))[0]
        assert (~np.isnan(told) == (reports[: len(told)] == 1)).all()
    count = 4000  # the mean of |noise| is its scale to 1/sqrt(4000): 8 standard deviations
    told = dp.numeric_sparse(
        np.full(count, 1e9), count=count, epsilon=80.0, rng=np.random.default_rng(1)
    )
    assert abs(np.abs(told - 1e9).mean() / (2 * count / 80.0) - 1) < 8 / np.sqrt(count)


def test_without_a_threshold_it_is_nought():
    told = dp.numeric_sparse([-0.3, 0.3], epsilon=1e4, rng=np.random.default_rng(2))
    assert np.isnan(told).tolist() == [True, False]


def test_the_accuracy_of_sparse_vector_with_and_without_new_noise():
    kept, fresh = dp.SparseVector(2.0, 4.0, None, 3), dp.SparseVector(2.0, 4.0, 3.0, 3)
    many = 4 * np.log(2 * 10 / 0.05)
    equal(dp.sparse_accuracy(kept, 10), 2 * np.log(2 / 0.05) + many)
    equal(dp.sparse_accuracy(fresh, 10), 3 * np.log(6 / 0.05) + many)


# ------------------------------------------------------------------------------------ selection


def test_the_loss_of_the_exponential_mechanism():
    equal(dp.exponential_mechanism_accuracy(0.05, 100, 5, 2.0, 0.5), 8 * np.log(20 / 0.05))
    equal(dp.exponential_mechanism_accuracy(0.05, 5, 5), 2 * np.log(1 / 0.05))


def test_the_private_geometric_median_is_an_exponential_mechanism_of_sensitivity_two():
    rng = np.random.default_rng(2)
    points, candidates = rng.uniform(-0.5, 0.5, (30, 2)), rng.uniform(-0.5, 0.5, (9, 2))
    utility = -np.linalg.norm(candidates[:, None] - points, axis=-1).sum(1)

    def check(sensitivity):
        for seed in range(40):
            rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
            found = dp.private_geometric_median(points, candidates, epsilon=0.5, rng=rng)
            index = dp.exponential_mechanism(utility, sensitivity, 0.5, rng=same)
            holds(found == candidates[index])

    check(2.0)
    must_fail(check, 3.0)


def test_an_error_of_shares_is_at_most_one():
    assert dp.small_db_accuracy(0.05, 2, 100, 10, 3, 0.1) == 1.0


def test_the_error_of_a_small_database_counts_all_databases():
    """10 rows of a universe of 3: C(12, 10) = 66 databases."""
    found = dp.small_db_accuracy(0.05, 1000, 3, 4, 10, 0.5)
    equal(found, np.sqrt(np.log(4) / 10) + 2 / (0.5 * 1000) * np.log(66 / 0.05))


# -------------------------------------------------------------------------- optimal composition


def test_no_epsilon_where_the_data_are_shown_more_often():
    delta, k = 0.1, 2  # shown with probability 0.19
    assert dp.optimal_composition(0.3, k, 0.15, delta) == np.inf
    at_most(dp.optimal_composition(0.3, k, 0.2, delta), 0.6)
    at_most(0.0, dp.optimal_composition_heterogeneous_delta([1e-15, 0.0, 1e5], 1.0))


def test_every_pair_is_simulated_from_the_worst_one():
    rng = np.random.default_rng(5)

    def check(kernel):
        for epsilon, delta, size in ((0.7, 0.1, 5), (0.0, 0.4, 3), (2.0, 0.0, 2), (0.0, 0.0, 4)):
            worst = dp.dominating_pair(epsilon, delta)
            stretch = rng.dirichlet(np.ones(size), 4)
            p, q = (law @ stretch for law in worst)
            found = kernel(p, q, epsilon, delta)
            assert found.shape == (4, size)
            at_most(0.0, found)
            equal(found.sum(1), 1.0)
            equal(worst[0] @ found, p, rtol=1e-9)
            equal(worst[1] @ found, q, rtol=1e-9)

    check(dp.simulating_kernel)
    must_fail(check, lambda *given: dp.simulating_kernel(*given)[::-1])


# --------------------------------------------------------------------- stability and query release


def test_an_answer_of_one_half_counts_as_yes():
    assert stability._sign(np.array([0.2, 0.5, 0.7, np.nan])).tolist() == [-1, 1, 1, 0]
    with pytest.raises(ValueError, match="answer"):
        dp.noise_analyst((9,), [1, 3], answer=lambda x: x[:1, :1], rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="repetitions"):
        dp.Thresholdout(0.1, 1.0, 3, 10**6 + 1, rng=np.random.default_rng(0))


def test_queries_are_shares():
    for query in ([0.0, 1.01, 0.5], [-0.01, 0.0, 0.5]):
        with pytest.raises(ValueError, match="queries"):
            dp.laplace_queries([1, 2, 3], [query], epsilon=1.0, rng=np.random.default_rng(0))


def test_a_round_of_mwem_is_the_exponential_mechanism_and_laplace_on_half_the_budget_each():
    histogram, rng = np.array([50, 0, 3, 20]), np.random.default_rng(4)
    queries, epsilon, start = rng.integers(0, 2, (12, 4)) * 1.0, 3.0, np.full(4, 0.25)
    truth = queries @ histogram / 73

    def check(each, step):
        for seed in range(30):
            rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
            found = dp.mwem(histogram, queries, rounds=2, epsilon=epsilon, rng=rng)
            utility = np.abs(truth - queries @ start)
            i = dp.exponential_mechanism(utility, 1 / 73, each, rng=same)
            measured = dp.laplace_mechanism(truth[i], 1 / 73, each, rng=same)
            second = dp.weights_update(start, queries[i], step * (measured - queries[i] @ start))
            equal(found, (start + second) / 2)

    check(epsilon / 4, 4.0)  # two rounds of two halves
    must_fail(check, epsilon / 2, 4.0)
    must_fail(check, epsilon / 4, 0.5)
    for rounds, message in ((100, None), (10**6 + 1, "rounds")):
        given = dict(rounds=rounds, epsilon=1.0, rng=np.random.default_rng(0))
        if message is None:
            equal(dp.mwem(histogram, queries, **given).sum(), 1.0)
        else:
            with pytest.raises(ValueError, match=message):
                dp.mwem(histogram, queries, **given)


def test_the_bounds_of_multiplicative_weights_as_printed():
    n, size, k, t, epsilon, beta = 5000, 64, 30, 12, 0.8, 0.01
    off = 2 * t * np.log(2 * t / beta) / (n * epsilon)
    missed = 4 * t * np.log(2 * k * t / beta) / (n * epsilon)
    found = dp.mwem_error(n, size, k, rounds=t, epsilon=epsilon, beta=beta)
    equal(found, np.sqrt(np.log(size) / (2 * t) + off**2) + missed)
    equal(dp.update_bound(64, 0.5, 0.4), np.log(64) / (2 * (0.25 - 0.16)))
    with pytest.raises(ValueError, match="noise"):
        dp.update_bound(64, 0.5, 0.5)


def test_a_plan_keeps_its_promise_and_no_other_split_is_better():
    n, size, k, beta = 10**6, 100, 200, 0.02

    def error(updates, compare, b1, b2, b3):
        """The claim's bound: beta is shared by the three kinds of noise."""
        rounds, every = np.log(3 * updates / beta), np.log(3 * k / beta)
        gap = np.sqrt((b3 * rounds) ** 2 + np.log(size) / (2 * (updates + 1)))
        return gap + 2 * (b1 * rounds + b2 * every)

    for epsilon in (0.3, 3.0):
        plan = dp.weights_plan(n, size, k, epsilon=epsilon, beta=beta)
        scales = plan.threshold_scale, plan.query_scale, plan.answer_scale
        equal(plan.error, error(plan.updates, plan.comparison_epsilon, *scales))
        equal(plan.round_epsilon, epsilon / plan.updates)
        equal(1 / (n * scales[0]) + 2 / (n * scales[1]), plan.comparison_epsilon)
        equal(plan.comparison_epsilon + 1 / (n * scales[2]), plan.round_epsilon)
        u, share, part = np.meshgrid(
            np.arange(1, 300), np.linspace(0.01, 0.8, 20), np.linspace(0.05, 0.95, 20)
        )
        compare = epsilon / u * (1 - share)
        b1, b2 = 1 / (n * compare * part), 2 / (n * compare * (1 - part))
        at_most(plan.error, 1.005 * error(u, compare, b1, b2, u / (n * epsilon * share)).min())


def test_the_noise_of_the_answers_to_queries():
    histogram, queries = np.array([5, 15, 20]), np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 1.0]])
    found = dp.laplace_queries(histogram, queries, epsilon=0.5, rng=np.random.default_rng(5))
    noise = np.random.default_rng(5).laplace(0.0, 2 / (40 * 0.5), 2)
    equal(found, queries @ histogram / 40 + noise)


def test_multiplicative_weights_line_by_line():
    histogram, rng = np.array([700, 200, 60, 40]), np.random.default_rng(12)
    plan = dp.weights_plan(1000, 4, 40, epsilon=1.0)._replace(
        updates=3, threshold=0.1, threshold_scale=0.05, query_scale=0.05, answer_scale=0.02
    )
    shares, queries = histogram / 1000, rng.integers(0, 2, (40, 4)) * 1.0
    release = dp.MultiplicativeWeights(histogram, plan, rng=np.random.default_rng(13))
    same, weights, updates = np.random.default_rng(13), np.full(4, 0.25), 0
    level = 0.1 + same.laplace(0.0, 0.05)
    for query in queries:
        found, guess, truth = release.answer(query), query @ weights, query @ shares
        if updates == 3 or abs(truth - guess) + same.laplace(0.0, 0.05) < level:
            equal(found, guess)
            continue
        measured = truth + same.laplace(0.0, 0.02)
        equal(found, measured)
        weights = dp.weights_update(weights, query, 4 * (measured - guess))
        level, updates = 0.1 + same.laplace(0.0, 0.05), updates + 1
    assert release.updates == updates == 3
    equal(release.weights, weights)


def test_weights_that_are_right_learn_nothing():
    plan = dp.weights_plan(10**9, 8, 50, epsilon=1.0)
    histogram, rng = np.full(8, 125_000_000), np.random.default_rng(6)
    release = dp.MultiplicativeWeights(histogram, plan, rng=rng)
    for query in rng.integers(0, 2, (50, 8)) * 1.0:
        equal(release.answer(query), query.mean())
    assert release.updates == 0


def test_weights_refuse_what_is_no_linear_query():
    """An answer that one row could move by more than 1/rows is not covered by the noise."""
    plan = dp.weights_plan(100, 3, 5, epsilon=1.0)
    release = dp.MultiplicativeWeights([50, 30, 20], plan, rng=np.random.default_rng(3))
    for query in ([0.0, 1.5, 0.0], [-0.1, 0.0, 1.0], [1.0, 0.0], [[1.0, 0.0, 0.0]], 0.5, []):
        with pytest.raises(ValueError, match="^query must"):
            release.answer(query)
    assert release.updates == 0
    with pytest.raises(ValueError, match="^histogram must hold 100 rows"):
        dp.MultiplicativeWeights([50, 30, 21], plan, rng=np.random.default_rng(3))


# ---------------------------------------------------------------------- audits, draws, training


def test_bounds_of_an_event_that_is_always_and_never_seen():
    n, alarm = 500, 0.02
    always = (alarm / 2) ** (1 / n)  # each of the two bounds has half of the alarm
    equal(dp.clopper_pearson(n, n, alarm / 2), (always, 1.0))
    equal(dp.clopper_pearson(0, n, alarm / 2), (0.0, 1 - always), rtol=1e-10)
    found = dp.epsilon_from_counts(n, 0, n, 0.25, false_alarm=alarm)
    equal(found, np.log((always - 0.25) / (1 - always)), rtol=1e-10)
    equal(dp.mu_from_counts(n, 0, n, false_alarm=alarm), 2 * special.ndtri(always), rtol=1e-10)
    assert dp.epsilon_from_counts(3, 9, n, false_alarm=alarm) == 0.0


def test_an_exponential_is_enclosed_closely():
    def check(enclosed):
        some = [Fraction(k, 397) for k in range(1, 397)]  # sums that end above exp, and below
        for rate in (Fraction(0), Fraction(1), Fraction(7, 2), Fraction(40), *some):
            for bits in (1, 2, 3, 4, 32, 64):
                low, high, one = enclosed(rate, bits)
                assert one >= 1 << bits and one & one - 1 == 0
                with mpmath.workdps(120):
                    value = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator) * one
                    assert low <= value <= high and (high - low) << bits <= one

    def narrow(rate, bits):
        low, high, one = discrete.enclosed_exp(rate, bits)
        return low, high - 2, one

    def above(rate, bits):
        low, high, one = discrete.enclosed_exp(rate, bits)
        return high, high, one

    check(discrete.enclosed_exp)
    must_fail(check, narrow)
    must_fail(check, above)


class Scripted(np.random.Generator):
    """Draws the words that it is told to."""

    def __init__(self, *words):
        super().__init__(np.random.PCG64(1))
        self.words = list(words)

    def integers(self, *args, size, **how):
        found, self.words = self.words[:size], self.words[size:]
        return np.array(found, dtype=np.uint64)


def test_a_draw_next_to_its_chance_is_decided_by_fractions():
    with mpmath.workdps(40):
        chance = int(mpmath.floor(mpmath.exp(-1) * 2**64))  # a rate of 1
    for word, kept in ((chance - 1, True), (chance + 1, False)):
        assert discrete._keeps(np.array([1]), Fraction(1, 2), 0, Scripted(word)) == [kept]
    for word in (0, 2**63, 2**64 - 1):  # a rate of 0 keeps all
        assert discrete._keeps(np.array([3]), Fraction(1, 2), 3, Scripted(word)) == [True]


def test_no_draws_are_whole_numbers_too():
    for draw in (discrete.geometric, discrete.discrete_laplace_noise):
        assert draw(Fraction(1, 3), 0, np.random.default_rng(1)).dtype == np.int64
    none = discrete.discrete_gaussian_noise(Fraction(3), 0, np.random.default_rng(1))
    assert none.dtype == np.int64 and none.shape == (0,)


def test_the_mean_of_iterates_that_do_not_move_is_the_start():
    rng = np.random.default_rng(7)
    start, x, y = rng.normal(size=(2, 2)), rng.uniform(-0.5, 0.5, (20, 2)), np.arange(20) % 2
    run = dp.dp_sgd(
        x, y, start, rate=0.3, sigma=1.0, steps=7, batch_size=6, learning_rate=1e-14, rng=rng
    )
    equal(run.average, start, rtol=1e-9)
    equal(run.theta, start, rtol=1e-9)


def test_the_range_of_scales_that_are_served():
    at_most(dp.discrete_gaussian(9999.0).delta(1.0), 1e-299)
    at_most(dp.discrete_laplace(1e8).epsilon(0.0), 1e-8 * (1 + 1e-9))
    for family, scale in ((dp.discrete_gaussian, 10_001.0), (dp.discrete_laplace, 1e8 + 0.5)):
        with pytest.raises(ValueError):
            family(scale)


# ------------------------------------------------------------------------------------ minimisers


def test_the_median_of_points_that_balance_and_of_one_that_outweighs_the_others():
    square = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    assert dp.geometric_median(square).tolist() == [0.0, 0.0]
    heavy = [[0.0, 0.0]] * 3 + [[1.0, 0.0], [0.0, 1.0]]
    equal(dp.geometric_median(heavy), 0.0, atol=1e-12)
    skew = [[0.0], [0.0], [0.0], [1.0], [50.0]]
    equal(dp.geometric_median(skew, tolerance=1.0), 10.2)  # unit vectors: any mean is within 1


def test_the_step_away_from_a_data_point_is_that_of_vardi_and_zhang():
    """Four rows pull at the mean, itself a row, by 4 cos 45 - 1 = 1.8; the row there holds by 1."""
    points = [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [1.0, -1.0], [-4.0, 0.0]]
    pull, weight = 4 * np.sqrt(0.5) - 1, 4 * np.sqrt(0.5) + 1 / 4
    found = dp.geometric_median(points, tolerance=0.1)
    equal(found, [(pull - 1) / weight, 0.0], atol=1e-15)
    equal(dp.geometric_median(points, tolerance=0.14), 0.0)  # 0.83 of 6 is below 0.14


def test_a_step_ends_where_the_slope_is_a_tenth_of_its_first_value():
    def along(gradient, start, step):
        start, step = np.array([start]), np.array([step])
        point, there = minimise._along(gradient, start, gradient(start), step)
        equal(there, gradient(point))
        return point.item()

    def parabola(phi):
        return phi

    for step, end in ((-1.0, 0.0), (-0.5, 0.5), (-1.5, 0.0625), (-4.0, 0.0)):
        assert along(parabola, 1.0, step) == end
    equal(along(parabola, 1.0, -1.08), -0.08)  # 0.0864 is less than a tenth of 1.08
    equal(along(parabola, 1.0, -1.125), 1 - 1.125 / 2 - 1.125 / 4 - 1.125 / 8)
    found = along(lambda phi: np.where(phi > 0.3, 1.0, -1.0), 1.0, -1.0)  # no slope is small
    assert 0 < abs(found - 0.3) < 2.0**-39


def test_nesterovs_method_takes_the_steps_of_its_theorem():
    curves, tolerance = np.array([0.01, 0.3, 1.0]), 1e-3
    seen, start = [], np.array([1.0, -2.0, 0.5])

    def arrived(phi, there):
        equal(there, curves * phi)
        seen.append(phi)
        return False

    minimise._accelerated(lambda phi: curves * phi, start, 0.01, 1.0, arrived, tolerance)
    least = 2 * (curves**2 @ start**2) / (0.01 * tolerance**2)
    assert len(seen) == np.ceil(10 * np.log(least)) == 187
    assert np.linalg.norm(curves * seen[-1]) <= tolerance
    before, now, beta = start, start, 9 / 11
    for phi in seen:
        before, now = now, (1 - curves) * (now + beta * (now - before))
        equal(phi, now, rtol=1e-9, atol=1e-12)
    seen.clear()
    minimise._accelerated(lambda phi: 0 * phi, start, 0.25, 1.0, lambda *at: seen.append(at), 1e-3)
    assert len(seen) == 2  # 2 log 2, rounded up: nothing is divided by a gradient of 0
    seen.clear()

    def third(phi, there):
        seen.append(phi)
        return len(seen) == 3

    minimise._accelerated(lambda phi: curves * phi, start, 0.01, 1.0, third, tolerance)
    assert len(seen) == 3


def test_a_minimum_that_rounding_cannot_reach_is_the_best_point_seen():
    rng, steps = np.random.default_rng(9), []
    x, y = dp.clip_rows(rng.normal(size=(30, 2))), np.sign(rng.normal(size=30))

    class Counted(dp.RowLoss):
        pass

    def curvature(z, y):
        steps.append(z)
        return dp.logistic_loss.curvature(z, y)

    loss = Counted(**{**vars(dp.logistic_loss), "curvature": curvature})
    centre, start = np.array([0.3, -0.2]), np.array([1.0, 1.0])

    def gradient(theta):
        return dp.logistic_loss.gradient(theta, x, y).mean(0) + 0.3 * (theta - centre)

    for tolerance, most in ((1e-30, 100), (1e-9, 9)):
        steps.clear()
        theta, size = minimise.descend(x, y, loss, 0.3, centre, start, tolerance=tolerance)
        assert len(steps) <= most and (most < 100 or size == 0 or len(steps) == 100)
        equal(gradient(theta), 0.0, atol=1e-9 if most < 100 else 1e-15)
        equal(size, np.linalg.norm(gradient(theta)), atol=1e-15)
    theta, size = minimise.descend(x, y, loss, 0.3, centre, theta - centre, tolerance=1e3)
    equal(size, np.linalg.norm(gradient(theta)), atol=1e-15)


# ------------------------------------------------------------------------- losses and their optima


def test_losses_and_their_derivatives_as_they_are_written_down():
    m = np.array([-3.0, 0.0, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0])
    e = np.exp(-m)
    ramp = np.clip(1.5 - m, 0, 1)  # the Huber hinge is bent from 1/2 to 3/2
    for y in (1.0, -1.0):
        for loss, value, slope, curvature in (
            (dp.logistic_loss, np.log1p(e), -e / (1 + e), e / (1 + e) ** 2),
            (dp.huber_loss, np.where(m < 0.5, 1 - m, ramp**2 / 2), -ramp, (m >= 0.5) & (m <= 1.5)),
            (convex._huber(0.5), np.where(m < 0.5, 1 - m, ramp**2 / 2), -ramp, abs(m - 1) <= 0.5),
            (dp.hinge_loss, np.maximum(0, 1 - m), -1.0 * (m < 1), None),
            (dp.zero_one_loss, 1.0 * (m <= 0), None, None),
        ):
            for found, known, sign in (
                (loss.value, value, 1), (loss.slope, slope, y), (loss.curvature, curvature, 1),
            ):  # fmt: skip
                if known is None:
                    with pytest.raises(ValueError, match="^loss must be smooth here"):
                        found(y * m, y)
                else:
                    equal(found(y * m, y), sign * known)
    z, y = np.array([-0.5, 0.0, 2.0]), np.array([1.0, 0.5, -1.0])
    equal(dp.squared_loss.value(z, y), (y - z) ** 2)
    equal(dp.squared_loss.slope(z, y), 2 * (z - y))
    equal(dp.squared_loss.curvature(z, y), 2.0)
    for loss, at_zero, smooth, steep in (
        (dp.logistic_loss, np.log(2), 0.25, 1 / (1 + np.exp(-3))),
        (convex._huber(0.5), 1.0, 1.0, 1.0),
        (convex._huber(0.125), 1.0, 4.0, 1.0),
        (dp.hinge_loss, 1.0, np.inf, 1.0),
        (dp.zero_one_loss, 1.0, np.inf, np.inf),
        (dp.squared_loss, 1.0, 2.0, 8.0),
        (dp.distance_loss, np.inf, np.inf, 1.0),
    ):
        equal([loss.at_zero, loss.smoothness, loss.lipschitz(3.0)], [at_zero, smooth, steep])
    far = dp.distance_loss([[0.0, 0.0], [3.0, 4.0]], np.array([[3.0, 4.0]]))
    assert far.tolist() == [[5.0], [0.0]]
    equal(
        dp.distance_loss.gradient(np.zeros(2), np.array([[3.0, 4.0], [0.0, 0.0]]))[0], [-0.6, -0.8]
    )


def test_rows_are_scaled_to_the_bound_and_shorter_ones_stay():
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [1e-320, 0.0]])
    equal(dp.clip_rows(rows), [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0], [1e-320, 0.0]])
    equal(dp.clip_rows(rows, 2.0)[0], [1.2, 1.6])
    equal(dp.clip_rows([3.0, 4.0]), [0.6, 0.8])


def test_the_sensitivity_of_an_optimum_falls_with_the_rows_and_the_regularization():
    equal(dp.output_sensitivity(50, 0.1, dp.huber_loss), 0.4)  # 2 L/(n lambda), L = 1
    equal(dp.output_sensitivity(200, 0.1, dp.huber_loss), 0.1)
    steep = dp.logistic_loss.lipschitz(dp.optimum_radius(dp.logistic_loss, 0.5))
    equal(dp.output_sensitivity(8, 0.5), 2 * steep / 4)


def test_the_radius_of_an_optimum_is_where_its_two_bounds_meet():
    equal(dp.optimum_radius(dp.hinge_loss, 0.02), 10.0)  # sqrt(2/0.02), below 1/0.02
    equal(dp.optimum_radius(dp.hinge_loss, 5.0), 0.2)  # 1/5, below sqrt(2/5)
    radius = dp.optimum_radius(dp.logistic_loss, 2.0)
    equal(2.0 * radius, dp.logistic_loss.lipschitz(radius))
    with pytest.raises(ValueError, match="^loss must be"):
        dp.optimum_radius("logistic", 1.0)
    with pytest.raises(ValueError, match="^regularization must be"):
        dp.optimum_radius(dp.hinge_loss, 0.0)


def test_what_a_risk_refuses():
    x, y = np.eye(2), np.array([1.0, -1.0])
    good = dict(regularization=1.0)
    assert dp.risk_minimum(np.zeros((3, 0)), np.ones(3), **good).shape == (0,)
    equal(dp.risk_minimum(x, y, **good, centre=[5.0, 0.0], start=[9.0, 9.0])[0], 5.0, rtol=0.01)
    near = np.array([4.9, 0.0])  # of gradient 0.1: where the tolerance is larger it stays there
    equal(dp.risk_minimum(x, y, **good, centre=[5.0, 0.0], start=near, tolerance=0.6), near)
    points, labels = convex.checked_rows([[0.5, 0.5]], None, dp.distance_loss)
    assert points.tolist() == [[0.5, 0.5]] and labels is None
    for change, name in (
        (dict(loss=dp.hinge_loss), "loss"),
        (dict(loss=dp.zero_one_loss), "loss"),
        (dict(y=np.ones(3)), "y"),
        (dict(x=np.zeros((0, 2)), y=np.zeros(0)), "y"),
        (dict(centre=[1.0]), "centre"),
        (dict(start=[1.0, 2.0, 3.0]), "start"),
        (dict(tolerance=0.0), "tolerance"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be|^{name} must have"):
            dp.risk_minimum(**{"x": x, "y": y, **good, **change})
    rows = np.random.default_rng(9).normal(size=(30, 2))
    with pytest.raises(ValueError, match="^tolerance must be larger here"):
        for lam in np.linspace(0.1, 1.0, 20):  # a gradient of 0, to the last bit, for all of them?
            dp.risk_minimum(rows, np.ones(30), regularization=lam, tolerance=1e-30)
    for theta, rows, labels in (([1.0], x, y), ([1.0, 2.0], x, y[:1]), ([], np.zeros((2, 0)), y)):
        with pytest.raises(ValueError, match="^x must have"):
            dp.invert_model(theta, rows, labels, regularization=1.0)


# ------------------------------------------------------------------------------- queries


def test_marginals_in_the_order_that_they_say():
    queries, weights = dp.Marginals((2, 3, 2), 2), np.arange(12.0) / 66
    assert queries.tables == [(0, 1), (0, 2), (1, 2)] and len(queries) == 6 + 4 + 6
    assert queries.attributes[6] == (0, 2) and queries.codes[6:10] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    equal(queries @ weights, [queries[i] @ weights for i in range(len(queries))])
    assert np.flatnonzero(queries[7]).tolist() == [1, 3, 5]  # a = 0 and c = 1 of (2, 3, 2)
    assert len(dp.Marginals((2, 3), 2)) == 6 and len(dp.Marginals((2, 3), 1)) == 5
    for shape, order, name in (((2, 3), 3, "order"), ((2, 3), 0, "order"), ((2, 0), 1, "shape")):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            dp.Marginals(shape, order)


def test_errors_of_a_noisy_histogram_on_either_side_of_the_change():
    """b sqrt(8 log(2) m l) where l = log(2k/beta) <= m log 2, else sqrt(2) b (l + m log 2)."""
    for m, k in ((100, 3), (2, 1000)):
        few, room, b = np.log(2 * k / 0.1), m * np.log(2), 2 / (50 * 0.7)
        known = np.sqrt(8 * room * few) if m == 100 else np.sqrt(2) * (few + room)
        equal(dp.laplace_histogram_error(50, m, k, epsilon=0.7, beta=0.1), b * known)


def test_the_threshold_of_a_plan_lies_between_what_teaches_and_what_is_promised():
    """A report "above" is right by `gap` at least, and a guess that is kept by the error at most,
    if all noises keep within `slack`; the gap is what so many updates can teach (U-pmw)."""
    beta = 0.1
    for rows, universe, queries, epsilon in ((1000, 50, 200, 1.0), (10**5, 8, 10**4, 0.3)):
        plan = dp.weights_plan(rows, universe, queries, epsilon=epsilon, beta=beta)
        rounds = np.log(3 * plan.updates / beta)
        slack = plan.threshold_scale * rounds + plan.query_scale * np.log(3 * queries / beta)
        gap, noise = plan.threshold - slack, plan.answer_scale * rounds
        equal(plan.error, plan.threshold + slack)
        equal(dp.update_bound(universe, gap, noise), plan.updates + 1)
    assert dp.weights_plan(3, 2, 1, epsilon=1.0).updates == 1  # no budget for a second


def test_so_much_adaptive_analysis_is_served_and_no_more():
    """What is next refused shows that the number before it was not."""
    rng, most = np.random.default_rng(1), 10**6

    def analyst(asked=(3,), answer=abs, repetitions=1, rng=rng):
        dp.noise_analyst((9,), asked, answer=answer, repetitions=repetitions, rng=rng)

    def oracle(repetitions):
        dp.Thresholdout(0.1, 1.0, 0, repetitions, rng=rng)

    for call, name in (
        (lambda: analyst(asked=[10**7 + 1]), "asked"),
        (lambda: analyst(asked=[10**7], answer=None), "answer"),
        (lambda: analyst(repetitions=most + 1, rng=None), "repetitions"),
        (lambda: analyst(repetitions=most, rng=None), "rng"),
        (lambda: oracle(most + 1), "repetitions"),
        (lambda: oracle(most), "budget"),
        (lambda: dp.vote_bias(10**8 + 1, -1.0), "m"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            call()


def test_a_tie_of_votes_counts_one_half():
    def accuracy(coins, tie):
        votes = (2 * coins - 1).sum(-1)
        return (votes > 0).mean(1) + tie * (votes == 0).mean(1)

    found = dp.noise_analyst(
        (5,), [2], answer=np.ones_like, repetitions=30, rng=np.random.default_rng(3)
    )
    coins = stability._coins((30, 5, 2), np.random.default_rng(3))
    equal(found[0, :, 0], accuracy(coins, 0.5))
    must_fail(equal, found[0, :, 0], accuracy(coins, 1.0))


def test_the_holdout_answers_on_whichever_side_it_lies():
    oracle = dp.Thresholdout(0.1, 1e-9, 4, rng=np.random.default_rng(2))
    told = oracle.answer([[0.9, 0.1, 0.5, 0.5]], [[0.1, 0.9, 0.45, 0.55]])
    equal(told, [[0.1, 0.9, 0.5, 0.5]], atol=1e-6)  # within the threshold: the training value
    assert oracle.left.tolist() == [2]


def test_histograms_hold_whole_rows_and_queries_fit_them():
    shares, rows = queries_room.histogram_rows([1, 0, 2])
    assert shares.tolist() == [1.0, 0.0, 2.0] and rows == 3 and type(rows) is int
    assert queries_room.histogram_rows([0.5, 0.5 + 9e-7])[1] == 1
    assert queries_room.histogram_rows([1.0, 1 - 9e-7])[1] == 2
    assert queries_room.histogram_rows([1.0])[1] == 1
    for histogram in (
        [1, -1, 3],
        [0.0, 0.0],
        [0.5, 0.6],
        [1.0, 0.9],
        [0.5, 0.5 + 1.1e-6],
        [0.3],
        [[1.0]],
        [],
    ):
        with pytest.raises(ValueError, match="^histogram must"):
            queries_room.histogram_rows(histogram)
    marginals = dp.Marginals((2, 2), 1)
    assert queries_room.on_universe(marginals, 4) is marginals
    assert queries_room.on_universe([[0, 1]], 2).tolist() == [[0.0, 1.0]]
    for queries, size in (
        (marginals, 5), ([[0.0, 1.0]], 3), (np.zeros((0, 2)), 2), ([0.0, 1.0], 2),
        ([[0.0, 1 + 1e-15]], 2), ([[-1e-15, 1.0]], 2),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="^queries must be"):
            queries_room.on_universe(queries, size)


# ------------------------------------------------------------------ batches as they are in practice


def test_cells_of_the_density_ratio():
    edges = np.array([0.0, 1.0, 3.0, 3.0, np.inf])
    q, p = np.array([0.4, 0.3, 0.1, 0.2]), np.array([0.1, 0.45, 0.3, 1.0])
    merged = shuffling._merged(edges, np.append(q, 0.0), np.append(p, 0.25), 0.5)
    equal(merged.value, p / q)
    assert merged.mass.tolist() == q.tolist() and merged.lost == 0.75
    low = shuffling._spread(edges, q, p, 0.5)
    assert low.value.tolist() == [0.0, 1.0, 3.0, 3.0]
    # 0.1 = 0.1 * 1; 0.45 = 0.225 * 1 + 0.075 * 3; of the last cell 0.4 lies above 3 * 0.2
    equal(low.mass, [0.3, 0.1 + 0.225, 0.075 + 0.1, 0.2])
    equal(low.lost, 0.5 + 0.4)
    loss = shuffling._Ratio(np.array([0.5, 1.2]), np.array([0.5, 0.5]), 0.15).loss()
    equal(loss.delta(0.0), 0.15 + 0.1)


def test_means_of_ratios_and_their_pairs():
    a = shuffling._Ratio(np.array([1.0, 3.0]), np.array([0.25, 0.75]), 0.1)
    b = shuffling._Ratio(np.array([2.0]), np.array([1.0]), 0.3)
    value, mass, lost = shuffling._mixed(a, b, 0.75)
    equal(value, [1.25, 2.75])
    equal([*mass, lost], [0.25, 0.75, 0.15])
    value, mass, lost = shuffling._twice(a)
    equal(value, [1.0, 2.0, 3.0])
    equal([*mass, lost], [1 / 16, 6 / 16, 9 / 16, 0.1])
    equal(shuffling._binomial(3, 0.25), np.array([27, 27, 9, 1]) / 64)
    fine = shuffling._Ratio(np.array([0.5, 1.5]), np.array([0.5, 0.5]), 0.0)
    for steps in (1, 2, 3, 5, 8):
        low, high = (
            shuffling._averaged(fine, steps, r) for r in (shuffling._merged, shuffling._spread)
        )
        k = np.arange(steps + 1)
        ratio, law = (0.5 * (steps - k) + 1.5 * k) / steps, special.binom(steps, k) / 2.0**steps
        exact = np.maximum(ratio - 1, 0) @ law
        at_most(low.delta(0.0), exact)
        at_most(exact, high.delta(0.0))
    whole = shuffling._averaged(fine, 1, shuffling._merged)
    equal(whole.delta(0.0), 0.25)


def test_each_step_has_the_same_share_of_a_mean(monkeypatch):
    shares, mixed = [], shuffling._mixed
    monkeypatch.setattr(
        shuffling, "_mixed", lambda a, b, share: shares.append(share) or mixed(a, b, share)
    )
    fine = shuffling._Ratio(np.array([0.5, 1.5]), np.array([0.5, 0.5]), 0.0)
    shuffling._averaged(fine, 0b10111, shuffling._merged)
    equal(shares, [4 / 5, 10 / 11, 22 / 23])  # 1, 2, 4, 5, 10, 11, 22, 23


def test_the_largest_of_one_coordinate_is_that_coordinate():
    for sigma, epsilon in ((0.1, 45.0), (0.1, 60.0), (2.0, 0.3)):
        found = dp.shuffled_floor(sigma, 1).delta(epsilon)
        equal(found, dp.gaussian(sigma).delta(epsilon), rtol=0.01)


def test_masses_of_cells_of_gaussians():
    z, sigma = np.array([-30.0, -1.0, 0.5, 2.0, 40.0]), 1.5
    with mpmath.workdps(200):
        cdf = [mpmath.ncdf((mpmath.mpf(x) - 1) / sigma) for x in z.tolist()]
        tail = [mpmath.ncdf(-(mpmath.mpf(x) - 1) / sigma) for x in z.tolist()]
        cells = [cdf[0], *(b - a for a, b in zip(cdf[:-1], cdf[1:], strict=True)), tail[-1]]
        equal(shuffling._gaussian(z, sigma, 1.0), [float(c) for c in cells], rtol=1e-11)
        one = [mpmath.ncdf(mpmath.mpf(x) / sigma) for x in z.tolist()]
        largest = [a * b**6 for a, b in zip(cdf, one, strict=True)]
        between = [b - a for a, b in zip(largest[:-1], largest[1:], strict=True)]
        cells = [largest[0], *between, 1 - largest[-1]]
        found = shuffling._maximum(z, sigma, 7, 1.0)
        equal(found, [float(c) for c in cells], rtol=1e-9)
    means, weights = np.array([0.0, 2.0]), np.array([0.75, 0.25])
    ratio = 0.75 + 0.25 * np.exp((2 * z - 2) / sigma**2)
    equal(shuffling._tilts(z, sigma, weights, means), ratio)


def test_what_shuffling_serves():
    at_most(0.0, dp.shuffled_floor(0.1, 1, cells=20).delta(1.0))
    good = dict(sigma=1.0, rate=0.5, cells=40)
    for change, name in (
        (dict(sigma=0.0999), "sigma"),
        (dict(sigma=1000.1), "sigma"),
        (dict(rate=0.99e-10), "rate"),
        (dict(rate=1.0 + 1e-15), "rate"),
        (dict(rate=[0.5]), "rate"),
        (dict(cells=19), "cells"),
        (dict(cells=2001), "cells"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            dp.sampled_substitution(**{**good, **change})
        if name != "rate":
            with pytest.raises(ValueError, match=f"^{name} must be"):
                dp.random_allocation(**{"sigma": 1.0, "steps": 2, **change})
    for call in (dp.shuffled_floor, dp.random_allocation):
        with pytest.raises(ValueError, match="^steps must be"):
            call(1.0, 10**7 + 1)
    with pytest.raises(ValueError, match="^rows / sigma must be"):
        dp.sampled_group(1.0, 0.1, 26)
    for rate in (1.0, 1e-10):
        low, high = dp.sampled_substitution(1.0, rate, cells=2000)
        at_most(low.delta(0.1), high.delta(0.1))
    equal(dp.sampled_group(2.0, 1.0, 1)[0].delta(0.3), dp.gaussian(2.0).delta(0.3), rtol=1e-3)
