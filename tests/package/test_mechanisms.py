"""Samplers against their laws. Seeds are fixed; a correct sampler fails one comparison with
probability 1e-7 (so at most 1e-6 for the file), and a planted broken one fails for certain."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpnotes as dp
from dpnotes import integer_noise
from dpnotes.chapters import query_release as release
from dpnotes.chapters import selection
from evidence import must_fail

ALARM, DRAWS = 1e-7, 100_000


def rng():
    return np.random.default_rng(2006)


def follows(draws, law):
    """Kolmogorov-Smirnov test against a continuous law."""
    assert stats.kstest(draws, law.cdf).pvalue > ALARM


def follows_masses(draws, outcomes, masses):
    """Chi-square test against a law on `outcomes`; the rest of the mass is one more outcome."""
    seen = (draws[:, None] == outcomes).sum(0)
    seen, masses = np.append(seen, draws.size - seen.sum()), np.append(masses, 1 - masses.sum())
    assert (seen[masses < 1e-12] == 0).all()
    keep = masses >= 1e-12
    expected = masses[keep] / masses[keep].sum() * draws.size
    assert stats.chisquare(seen[keep], expected).pvalue > ALARM


def test_laplace_noise():
    def check(b):
        noise = dp.laplace_mechanism(np.full(DRAWS, 7.0), sensitivity=3, epsilon=2, rng=rng()) - 7
        follows(noise, stats.laplace(0, b))
        half = DRAWS // 2  # independent entries: the pairs' signs are fair coins
        same = (np.sign(noise[:half]) == np.sign(noise[half:])).sum()
        assert stats.binomtest(int(same), half).pvalue > ALARM

    check(1.5)
    must_fail(check, 1.4)


def test_randomized_response_tells_the_truth_as_often_as_it_should():
    def check(epsilon):
        truth = np.arange(DRAWS) % 2
        lies = (dp.randomized_response_mechanism(truth, epsilon=1.0, rng=rng()) != truth).sum()
        assert stats.binomtest(int(lies), DRAWS, 1 / (1 + np.exp(epsilon))).pvalue > ALARM

    check(1.0)
    must_fail(check, 1.05)
    far = dp.randomized_response_mechanism(np.ones(9, bool), epsilon=1e4, rng=rng())
    assert far.dtype == bool and far.all()


def test_the_private_median_between_two_values():
    """Density e^(-1) : 1 : e^(-1) on [0, 0.2], [0.2, 0.7], [0.7, 1] at epsilon = 2, n = 2."""
    draw, ends = rng(), np.array([0, 0.1, 0.2, 0.45, 0.7, 0.85, 1])
    found = np.array(
        [
            selection.private_median([0.7, 0.2], epsilon=2.0, lower=0.0, upper=1.0, rng=draw)
            for _ in range(10_000)
        ]
    )

    def check(epsilon):
        masses = np.diff(ends) * np.exp(-epsilon / 2 * np.array([1, 1, 0, 0, 1, 1]))
        place = np.searchsorted(ends, found) - 1
        follows_masses(place, np.arange(6), masses / masses.sum())

    check(2.0)
    must_fail(check, 1.7)
    must_fail(check, 2.4)


def test_noise_of_a_histogram_pays_for_the_two_counts_that_a_replaced_row_moves():
    histogram = np.zeros(DRAWS // 2)
    histogram[:5] = 8.0  # 40 rows

    def check(counts):
        noise = release.laplace_histogram(histogram, epsilon=0.5, rng=rng()) - histogram / 40
        follows(noise, stats.laplace(0, counts / (40 * 0.5)))

    check(2.0)
    must_fail(check, 1.8)
    must_fail(check, 2.2)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.7, 1.0, 2.5])
def test_discrete_laplace(epsilon):
    def check(rate):
        drawn = (
            dp.discrete_laplace_mechanism(
                np.full(8000, 3), sensitivity=2, epsilon=epsilon, rng=rng()
            )
            - 3
        )
        z = np.arange(-12, 13)
        follows_masses(drawn, z, np.tanh(rate / 2) * np.exp(-rate * np.abs(z)))

    check(epsilon / 2)
    must_fail(check, 1.25 * epsilon / 2)


def test_what_lies_beyond_the_last_digit_is_geometric_again(monkeypatch):
    """With digits only up to a rate of 1: at rate 2/5 a fifth of the draws need more than two."""
    monkeypatch.setattr(integer_noise, "LAST_RATE", 1)
    monkeypatch.setattr(integer_noise, "_digit_chances", integer_noise._digit_chances.__wrapped__)
    drawn = integer_noise.geometric(Fraction(2, 5), 20_000, rng())
    assert drawn.dtype == object

    def check(rate):
        g = np.arange(30)
        follows_masses(drawn.astype(int), g, -np.expm1(-rate) * np.exp(-rate * g))

    check(0.4)
    must_fail(check, 0.42)


def test_discrete_gaussian_noise_has_the_variance_of_its_sigma():
    def check(variance):
        for sigma in (0.25, 3.5):
            found = dp.discrete_gaussian_mechanism(np.full(60, 7), sigma=sigma, rng=rng())
            same = integer_noise.discrete_gaussian_noise(variance(Fraction(sigma)), 60, rng())
            assert (found - 7 == same).all()
        drawn = integer_noise.discrete_gaussian_noise(variance(Fraction(7, 2)), 4000, rng())
        z = np.arange(-60, 61)
        masses = np.exp(-(z**2) / (2 * 3.5**2))
        follows_masses(drawn, z[50:71], (masses / masses.sum())[50:71])

    check(lambda sigma: sigma**2)
    must_fail(check, lambda sigma: sigma**3)
    must_fail(check, lambda sigma: 2 * sigma)


def test_discrete_gaussian_noise_of_the_least_and_the_largest_sigma():
    assert dp.discrete_gaussian_mechanism(3, sigma=1e-100, rng=rng()) == 3
    assert abs(dp.discrete_gaussian_mechanism(3, sigma=1e100, rng=rng())) > 1e90  # else 1e-10
    for sigma in (9e-101, 1.1e100):
        with pytest.raises(ValueError, match="^sigma must be"):
            dp.discrete_gaussian_mechanism(3, sigma=sigma, rng=rng())


def test_exact_samplers_take_huge_scales():
    for draw in (
        dp.discrete_laplace_mechanism(10**18, epsilon=1e-15, rng=rng()),
        dp.discrete_gaussian_mechanism(0, sigma=1e25, rng=rng()),
    ):
        assert type(draw) is int and abs(draw) > 10**12


def test_integers_beyond_64_bits_stay_exact():
    for mechanism in (dp.discrete_laplace_mechanism, dp.discrete_gaussian_mechanism):
        top = np.array([2**63 - 1] * 40)
        found = mechanism(top, rng=rng())
        assert found.dtype == object and max(abs(int(f) - 2**63 + 1) for f in found) < 50
        assert abs(mechanism(10**40, rng=rng()) - 10**40) < 50
        assert mechanism(np.array([10**40, 1]), rng=rng()).dtype == object
        assert mechanism(np.array([3], dtype=np.uint8), rng=rng()).dtype == np.int64
        assert mechanism(np.zeros((0, 2), int), rng=rng()).shape == (0, 2)
        with pytest.raises(ValueError, match="^value must"):
            mechanism(np.array([1, 2.5], dtype=object), rng=rng())


def test_every_row_lands_on_the_grid():
    rows = [np.nan, np.inf, -np.inf, 1e308, 0.3, -0.3, 5]
    found = dp.to_grid(rows, lower=-1, upper=2, grid=0.5)
    assert found.tolist() == [-2, 4, -2, 4, 1, -1, 4] and found.dtype == np.int64
    assert dp.to_grid(0.3, lower=0, upper=1, grid=1e-3) == 300
    assert type(dp.safe_sum([], lower=0, upper=1, grid=0.5, rng=rng())) is float
    for wrong in (dict(upper=-1), dict(grid=0), dict(grid=1e-20), dict(lower=np.inf)):
        name = next(iter(wrong))
        with pytest.raises(ValueError, match=f"^{name} must"):
            dp.safe_sum([0.5], **{**dict(lower=0, upper=1, grid=0.5), **wrong}, rng=rng())
    found = dp.to_grid([-9.0, 9.0], lower=0.3, upper=0.8, grid=0.5)
    assert found.tolist() == [1, 2]  # the multiples next to 0.3 and 0.8
    far, near = 2.0**53, 2.0**53 - 1  # beyond 2^53 steps a bound is no exact whole number
    for lower, upper in ((-far, 0.0), (0.0, far), (-far, -near), (near, far)):
        with pytest.raises(ValueError, match="^grid must"):
            dp.to_grid([0.5], lower=lower, upper=upper, grid=1.0)
    ends = dp.to_grid([-np.inf, np.inf], lower=-near, upper=near, grid=1.0)
    assert ends.tolist() == [-(2**53) + 1, 2**53 - 1]
    for wrong in ("x", [1j], [[1.0], [2.0, 3.0]]):
        with pytest.raises(ValueError, match="^values must"):
            dp.to_grid(wrong, lower=0, upper=1, grid=0.5)


def test_what_is_no_plain_array_of_numbers_is_refused_by_every_mechanism():
    """A mask, or what stands behind bytes, would be lost without a word."""
    masked = np.ma.masked_array([1, 0], [True, False])
    odd = (masked, [masked, masked], np.ma.masked, b"1", [b"1"], bytearray(b"1"), memoryview(b"11"))
    odd += "1", ["1"], 1j, np.array([1j]), np.array(["2026-01-01"], dtype="M8[D]")
    grid = dict(lower=0, upper=1, grid=0.5)
    for call, name in (
        (lambda v: dp.laplace_mechanism(v, rng=rng()), "value"),
        (lambda v: dp.gaussian_mechanism(v, rng=rng()), "value"),
        (lambda v: dp.discrete_laplace_mechanism(v, rng=rng()), "value"),
        (lambda v: dp.discrete_gaussian_mechanism(v, rng=rng()), "value"),
        (lambda v: dp.randomized_response_mechanism(v, rng=rng()), "bits"),
        (lambda v: dp.randomized_response_estimate(v), "answers"),
        (lambda v: dp.to_grid(v, **grid), "values"),
        (lambda v: dp.safe_sum(v, **grid, rng=rng()), "values"),
    ):
        call([1, 0])
        for value in odd:
            with pytest.raises(ValueError, match=f"^{name} must"):
                call(value)


def test_shapes_and_reproducibility():
    value = np.arange(6).reshape(2, 3)
    for mechanism in (
        dp.laplace_mechanism,
        dp.gaussian_mechanism,
        dp.discrete_laplace_mechanism,
        dp.discrete_gaussian_mechanism,
    ):
        first, second = mechanism(value, rng=rng()), mechanism(value, rng=rng())
        assert first.shape == (2, 3) and (first == second).all()
    assert type(dp.laplace_mechanism(1, rng=rng())) is float
    assert type(dp.gaussian_mechanism(1, rng=rng())) is float
    assert type(dp.discrete_laplace_mechanism(1, rng=rng())) is int
    assert type(dp.randomized_response_estimate([1, 0, 1])) is float


def test_the_package_never_touches_the_global_generator():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    dp.laplace_mechanism(0, rng=rng())
    dp.discrete_gaussian_mechanism(0, rng=rng())
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.parametrize("sensitivity", [1e-3, 1.0, 1e3])
def test_calibrate_sample_and_account_share_one_unit(sensitivity):
    """The noise that is asked for is the noise that is drawn is the noise that is accounted for."""

    def check(factor):
        sigma = dp.gaussian_sigma(1.0, 1e-5, sensitivity=sensitivity)
        noise = dp.gaussian_mechanism(np.zeros(DRAWS), sigma=sigma, rng=rng())
        follows(noise, stats.norm(0, factor * sigma))
        assert np.isclose(dp.gaussian(factor * sigma, sensitivity).delta(1.0), 1e-5, rtol=1e-9)

    check(1.0)
    must_fail(check, sensitivity if sensitivity != 1 else 1.05)


@pytest.mark.parametrize("sensitivity", [1e-3, 1.0, 1e3])
def test_laplace_scale_is_drawn_and_accounted_for(sensitivity):
    def check(factor):
        scale = sensitivity / 0.5
        noise = dp.laplace_mechanism(np.zeros(DRAWS), sensitivity, 0.5, rng=rng())
        follows(noise, stats.laplace(0, factor * scale))
        assert np.isclose(dp.laplace(factor * scale, sensitivity).epsilon(0.0), 0.5, rtol=1e-9)

    check(1.0)
    must_fail(check, sensitivity if sensitivity != 1 else 1.05)
