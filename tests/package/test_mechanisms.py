"""Samplers against their laws. Seeds are fixed; a correct sampler fails one comparison with
probability 1e-7 (so at most 1e-6 for the file), and a planted broken one fails for certain."""

import inspect
import itertools
import re
from dataclasses import replace
from fractions import Fraction
from functools import wraps

import numpy as np
import pytest
from scipy import stats

import dpnotes as dp
from dpnotes import integer_noise
from dpnotes.calculator.runs import MECHANISMS
from evidence import must_fail
from pages.ledger import claims

ALARM, DRAWS = 1e-7, 100_000


def rng():
    return np.random.default_rng(2006)


def test_randomized_response_far_out():
    far = dp.randomized_response_mechanism(np.ones(9, bool), epsilon=1e4, rng=rng())
    assert far.dtype == bool and far.all()
    assert type(dp.randomized_response_estimate([1, 0, 1])) is float


# ---- every row of MECHANISMS: its sampler draws what its loss accounts for ----

OWN = {name: row for name, row in MECHANISMS.items() if row.sampler}
CELLS = np.arange(-7, 9, 0.25)  # ends of cells, for noise around 0; the outer ones have no end


def shares(row, noise, sensitivity, value):
    """The shares of draws on this value in each cell."""
    taken = inspect.signature(row.sampler).parameters
    given = {row.parameter: noise} if row.parameter in taken else {"epsilon": sensitivity / noise}
    given |= {"sensitivity": sensitivity} if "sensitivity" in taken else {}
    drawn = row.sampler(np.full(DRAWS, value), **given, rng=rng())
    return np.bincount(np.searchsorted(CELLS, drawn), minlength=len(CELLS) + 1) / DRAWS


def tied(row):
    """The histograms of the sampler on neighbours have the curve of the loss; a claim is named.

    The shares of one law are together off by more than `width` with a probability of at most
    2^cells exp(-DRAWS width^2 / 2) = ALARM / 60 (Weissman et al. 2003), and the sum of the positive
    parts of p - e^epsilon q by half of that. Cells hide no more than 0.004 of these curves.
    """
    width = np.sqrt(2 * (np.log(60 / ALARM) + (len(CELLS) + 1) * np.log(2)) / DRAWS)
    takes = ["sensitivity" in inspect.signature(f).parameters for f in (row.loss, row.sampler)]
    _value, *others = inspect.signature(row.sampler).parameters
    known = {row.parameter, "epsilon", "sensitivity", "rng"}
    unknown = {*others, *inspect.signature(row.loss).parameters} - known
    assert not unknown, f"`shares` and `tied` have no values for {unknown}: give them some"
    for noise, sensitivity in itertools.product((1.0, 2.5), (1, 2) if any(takes) else (1,)):
        q, p = (shares(row, noise, sensitivity, value) for value in (0, sensitivity))
        step = row.loss(noise, sensitivity) if takes[0] else row.loss(noise)
        for epsilon in (0.0, 0.3, 0.6):
            seen = np.maximum(p - np.exp(epsilon) * q, 0).sum()
            assert abs(seen - step.delta(epsilon)) <= width * (1 + np.exp(epsilon)) / 2 + 0.004
    named = re.findall(r"\b[A-Z]-[\w.-]*\w", row.sampler.__doc__)
    assert row.claim in named and row.claim in {claim["id"] for claim in claims()}


@pytest.mark.parametrize("name", OWN)
def test_a_mechanism_draws_what_its_loss_accounts_for(name):
    row = OWN[name]
    tied(row)

    def wrong(part, **change):
        """The row with a loss or sampler to which an argument arrives changed, if it takes it."""
        whose = getattr(row, part)

        @wraps(whose)
        def changed(*arguments, **options):
            given = inspect.signature(whose).bind(*arguments, **options)
            given.arguments |= {n: f(given.arguments[n]) for n, f in change.items()}
            return whose(**given.arguments)

        return replace(row, **{part: changed})

    for part in ("loss", "sampler"):
        taken = inspect.signature(getattr(row, part)).parameters
        noise = row.parameter if row.parameter in taken else "epsilon"
        must_fail(tied, wrong(part, **{noise: lambda x: 1.2 * x}))
        if "sensitivity" in taken:
            must_fail(tied, wrong(part, sensitivity=lambda s: 1))
    unproved = wrong("sampler")
    unproved.sampler.__doc__ = "No claim."
    must_fail(tied, unproved)


def test_every_mechanism_has_a_row():
    general = {dp.finite, dp.subsample, dp.subsample_substitution}  # of any laws, of a loss
    made = (getattr(dp.accountant, name) for name in dp.accountant.__all__)
    losses = {f for f in made if getattr(f, "__annotations__", {}).get("return") == "PrivacyLoss"}
    samplers = {getattr(dp, name) for name in dp.__all__ if name.endswith("_mechanism")}

    def complete(rows):
        assert losses - general == {row.loss for row in rows}
        assert samplers == {row.sampler for row in rows} - {None}

    complete(MECHANISMS.values())
    for row in OWN.values():
        must_fail(complete, [other for other in MECHANISMS.values() if other != row])


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_curve_of_a_step_and_its_moments_are_of_one_law(name):
    """E e^L = 1 + 2 int (e^x + e^(-2x)) delta(x) dx where both directions are one (Sason and Verdu
    2016): moments are what a composition is computed from, one step may have a closed form."""
    epsilon = np.linspace(0, 60, 6_001)

    def check(step, other):
        values = (np.exp(epsilon) + np.exp(-2 * epsilon)) * step.delta(epsilon)
        moment = 1 + 2 * np.trapezoid(values, epsilon)
        assert np.isclose(np.exp(other.renyi(2.0)), moment, rtol=1e-4)
        assert np.isclose(np.exp(other.compose(2).renyi(2.0)), moment**2, rtol=2e-4)

    for x in (0.5, 2.0):
        step = MECHANISMS[name].loss(x)
        check(step, step)
        must_fail(check, step, MECHANISMS[name].loss(1.01 * x))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_row_of_the_calculator_is_its_loss(name):
    row = MECHANISMS[name]
    for x in (0.5, 2.0):
        step = row.loss(x)
        copied = eval(row.call.format(x), {"dp": dp})
        assert copied.delta(0.3) == pytest.approx(step.delta(0.3), rel=1e-12)
        if row.epsilon:
            assert row.epsilon(x) == pytest.approx(step.epsilon(0.0), rel=1e-12)
        assert (row.loss(2 * x).delta(0.1) < step.delta(0.1)) == row.is_noise()


def test_what_lies_beyond_the_last_digit_is_geometric_again(monkeypatch):
    """With digits only up to a rate of 1: at rate 2/5 a fifth of the draws need more than two."""
    monkeypatch.setattr(integer_noise, "LAST_RATE", 1)
    monkeypatch.setattr(integer_noise, "_digit_chances", integer_noise._digit_chances.__wrapped__)
    drawn = integer_noise.geometric(Fraction(2, 5), 20_000, rng())
    assert drawn.dtype == object
    seen = np.bincount(np.minimum(drawn.astype(int), 30), minlength=31)

    def check(rate):
        masses = -np.diff(np.exp(-rate * np.append(np.arange(31), np.inf)))
        assert stats.chisquare(seen, masses * drawn.size).pvalue > ALARM

    check(0.4)
    must_fail(check, 0.42)


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
        noisy = mechanism(top, rng=rng())
        assert noisy.dtype == object and max(abs(int(f) - 2**63 + 1) for f in noisy) < 50
        assert abs(mechanism(10**40, rng=rng()) - 10**40) < 50
        assert mechanism(np.array([10**40, 1]), rng=rng()).dtype == object
        assert mechanism(np.array([3], dtype=np.uint8), rng=rng()).dtype == np.int64
        assert mechanism(np.zeros((0, 2), int), rng=rng()).shape == (0, 2)
        with pytest.raises(ValueError, match="^value must"):
            mechanism(np.array([1, 2.5], dtype=object), rng=rng())


def test_every_row_lands_on_the_grid():
    rows = [np.nan, np.inf, -np.inf, 1e308, 0.3, -0.3, 5]
    steps = dp.to_grid(rows, lower=-1, upper=2, grid=0.5)
    assert steps.tolist() == [-2, 4, -2, 4, 1, -1, 4] and steps.dtype == np.int64
    assert dp.to_grid(0.3, lower=0, upper=1, grid=1e-3) == 300
    assert type(dp.safe_sum([], lower=0, upper=1, grid=0.5, rng=rng())) is float
    for wrong in (dict(upper=-1), dict(grid=0), dict(grid=1e-20), dict(lower=np.inf)):
        name = next(iter(wrong))
        with pytest.raises(ValueError, match=f"^{name} must"):
            dp.safe_sum([0.5], **{**dict(lower=0, upper=1, grid=0.5), **wrong}, rng=rng())
    steps = dp.to_grid([-9.0, 9.0], lower=0.3, upper=0.8, grid=0.5)
    assert steps.tolist() == [1, 2]  # the multiples next to 0.3 and 0.8
    far, near = 2.0**53, 2.0**53 - 1  # beyond 2^53 steps a bound is no exact whole number
    for lower, upper in ((-far, 0.0), (0.0, far), (-far, -near), (near, far)):
        with pytest.raises(ValueError, match="^grid must"):
            dp.to_grid([0.5], lower=lower, upper=upper, grid=1.0)
    ends = dp.to_grid([-np.inf, np.inf], lower=-near, upper=near, grid=1.0)
    assert ends.tolist() == [-(2**53) + 1, 2**53 - 1]


@pytest.mark.parametrize(
    "mechanism, kind",
    [
        (dp.laplace_mechanism, float),
        (dp.gaussian_mechanism, float),
        (dp.discrete_laplace_mechanism, int),
        (dp.discrete_gaussian_mechanism, int),
    ],
)
def test_shapes_and_reproducibility(mechanism, kind):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    value = np.arange(6).reshape(2, 3)
    first, second = mechanism(value, rng=rng()), mechanism(value, rng=rng())
    assert first.shape == (2, 3) and (first == second).all()
    assert type(mechanism(1, rng=rng())) is kind
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.parametrize("sensitivity", [1e-3, 1.0, 1e3])
def test_calibrate_sample_and_account_share_one_unit(sensitivity):
    """The noise that is asked for is the noise that is drawn is the noise that is accounted for."""
    sigma, scale = dp.gaussian_sigma(1.0, 1e-5, sensitivity=sensitivity), sensitivity / 0.5
    value = np.full(DRAWS, 7.0)
    normal = dp.gaussian_mechanism(value, sigma=sigma, rng=rng()) - 7
    laplace = dp.laplace_mechanism(value, sensitivity, 0.5, rng=rng()) - 7

    def check(factor, noise, law, loss, epsilon, delta):
        assert stats.kstest(noise, law(0, factor).cdf).pvalue > ALARM
        half = DRAWS // 2  # independent entries: the pairs' signs are fair coins
        same = (np.sign(noise[:half]) == np.sign(noise[half:])).sum()
        assert stats.binomtest(int(same), half).pvalue > ALARM
        assert np.isclose(loss(factor, sensitivity).delta(epsilon), delta, rtol=1e-9)

    for how in (
        (sigma, normal, stats.norm, dp.gaussian, 1.0, 1e-5),
        (scale, laplace, stats.laplace, dp.laplace, 0.3, -np.expm1(-0.1)),
    ):
        check(*how)
        must_fail(check, (sensitivity if sensitivity != 1 else 1.05) * how[0], *how[1:])
