"""Where a formula ends: the caps, the floors and the empty cases that random instances don't meet.

Each was found by `make mutants`: a change of the code that no other test noticed.
"""

import mpmath
import numpy as np
import pytest

import dpnotes as dp
from evidence import at_most, equal, holds, must_fail


def test_a_tail_is_at_most_one_and_an_error_at_least_nothing():
    assert dp.loss_tail_from_dp(1.0, 0.5, 1.1) == 1.0  # the quotient is 5.3
    assert dp.tradeoff_from_profile([1.0], [0.1], 1.0) == 0.0  # the line is at -1.8
    one, many = dp.tradeoff_from_profile([0.0, 0.5, 1.0], 0.1, 0.2), (0.1, 0.1, 0.1)
    equal(one, dp.tradeoff_from_profile([0.0, 0.5, 1.0], many, 0.2))
    equal(one, 1 - 0.1 - 0.2)


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


def test_sigma_for_no_epsilon_at_all():
    delta = np.array([1e-9, 0.01, 0.5, 0.99])
    equal(dp.gaussian_delta(dp.gaussian_sigma(0.0, delta), 0.0), delta)


# ---------------------------------------------------------------------------------------- Renyi


def best_two_points(alpha, rdp, delta):
    """max log((p - delta)/q) over two-point laws of divergence at most `rdp`, on a fine grid of p."""
    p = delta + (1 - delta) * np.append(np.exp(np.linspace(-40, 0, 4000)), 1 - np.logspace(-12, 0))
    low, high = -700.0 + 0 * p, np.log(p)
    for _ in range(100):  # the divergence falls as q rises to p
        log_q = (low + high) / 2
        first = alpha * np.log(p) + (1 - alpha) * log_q
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = alpha * np.log1p(-p) + (1 - alpha) * np.log1p(-np.exp(log_q))
        far = np.logaddexp(first, np.where(p < 1, rest, -np.inf)) > (alpha - 1) * rdp
        low, high = np.where(far, log_q, low), np.where(far, high, log_q)
    with np.errstate(divide="ignore"):
        return max(0.0, np.max(np.log(p - delta) - high))


def test_the_optimal_conversion_is_the_worst_two_point_law():
    cases = [(2.0, 0.5, 1e-5), (8.0, 1.0, 1e-3), (1.5, 0.1, 0.05), (64.0, 3.0, 1e-9)]

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

    with pytest.raises(ValueError, match="draws"):
        dp.replacement_subsample_law(never, range(10), 7)


def test_the_substitution_pair_of_a_large_epsilon():
    for epsilon in (3.0, 500.0, 699.0):
        a, b = dp.substitution_pair(epsilon, 1.0)
        equal([np.log(a[0] / b[0]), np.log(b[1] / a[1])], epsilon)
        equal([a.sum(), b.sum()], 1.0)


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
