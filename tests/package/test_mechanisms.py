"""Samplers against their laws. Seeds are fixed; a correct sampler fails one comparison with
probability 1e-7 (so at most 1e-6 for the file), and a planted broken one fails for certain."""

import inspect
import re
from fractions import Fraction

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


def follows(draws, law):
    """Kolmogorov-Smirnov test against a continuous law."""
    assert stats.kstest(draws, law.cdf).pvalue > ALARM


def test_randomized_response_far_out():
    far = dp.randomized_response_mechanism(np.ones(9, bool), epsilon=1e4, rng=rng())
    assert far.dtype == bool and far.all()
    assert type(dp.randomized_response_estimate([1, 0, 1])) is float


# ---- every mechanism: `dp.x_mechanism` draws what `dp.x` accounts for ----

KINDS = [name.removesuffix("_mechanism") for name in dp.__all__ if name.endswith("_mechanism")]


def parts_of(kind):
    return getattr(dp, kind), getattr(dp, f"{kind}_mechanism")


def drawn(loss, sampler, noise, sensitivity):
    """Sorted draws on two neighbours, ordered as the likelihood ratio is."""
    name, *others = inspect.signature(loss).parameters
    taken = inspect.signature(sampler).parameters
    given = {name: noise} if name in taken else {"epsilon": sensitivity / noise}
    given |= {"sensitivity": sensitivity} if "sensitivity" in taken else {}
    source = rng()
    values = (0, sensitivity if others else 1)
    return [np.sort(sampler(np.full(DRAWS, v), **given, rng=source).astype(float)) for v in values]


def tied(loss, sampler):
    """The sampler's curve, over all thresholds, is that of the loss; and a claim is named.

    All these laws have a monotone likelihood ratio, so that delta(epsilon) is the largest
    P(X > t) - e^epsilon Q(X > t). By the inequality of Dvoretzky, Kiefer and Wolfowitz each of the
    two shares is off by `width` somewhere with a probability of at most ALARM / 40.
    """
    width = np.sqrt(np.log(80 / ALARM) / (2 * DRAWS))
    name, *others = inspect.signature(loss).parameters
    for noise in (1.0, 2.5):
        for sensitivity in (1, 2) if others else (1,):
            low, high = drawn(loss, sampler, noise, sensitivity)
            at = np.unique(np.concatenate([low, high]))
            q, p = (1 - np.searchsorted(x, at, side="right") / DRAWS for x in (low, high))
            step = loss(noise, sensitivity) if others else loss(noise)
            for epsilon in (0.0, 0.3, 0.6):
                seen = np.max(p - np.exp(epsilon) * q)
                assert abs(seen - step.delta(epsilon)) <= (1 + np.exp(epsilon)) * width, name
    named = re.findall(r"\b[A-Z]-[\w.-]*\w", sampler.__doc__)
    assert {claim["id"] for claim in claims()} & set(named), f"{sampler.__name__} names no claim"


@pytest.mark.parametrize("kind", KINDS)
def test_a_mechanism_draws_what_its_loss_accounts_for(kind):
    loss, sampler = parts_of(kind)
    tied(loss, sampler)
    noise, *others = inspect.signature(loss).parameters

    def planted(change, whose):
        """The same, with one argument changed on its way; without claims for `whose` None."""

        def changed(*arguments, **options):
            bound = inspect.signature(whose).bind(*arguments, **options)
            bound.arguments.update(change(bound.arguments))
            return whose(**bound.arguments)

        changed.__signature__, changed.__doc__ = inspect.signature(whose), whose.__doc__
        changed.__name__ = whose.__name__
        return changed

    must_fail(tied, planted(lambda given: {noise: 1.2 * given[noise]}, loss), sampler)
    own = noise if noise in inspect.signature(sampler).parameters else "epsilon"
    must_fail(tied, loss, planted(lambda given: {own: 1.2 * given[own]}, sampler))
    if others:
        must_fail(tied, planted(lambda given: {"sensitivity": 1}, loss), sampler)
    if "sensitivity" in inspect.signature(sampler).parameters:
        must_fail(tied, loss, planted(lambda given: {"sensitivity": 1}, sampler))
    without = planted(lambda given: {}, sampler)
    without.__doc__ = "No claim."
    must_fail(tied, loss, without)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_row_of_the_calculator_is_its_loss(name):
    row = MECHANISMS[name]
    for x in (0.5, 2.0):
        step = row.loss(x)
        copied = eval(row.call.format(x, leak=0.0), {"dp": dp})
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
        follows(noise, law(0, factor))
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
