"""Every public call of the privacy loss: what it refuses, what it returns, single steps exactly."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpnotes as dp
from evidence import at_most, equal, holds, must_fail
from strategies import finite_laws

PAIR = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
STEP = dp.gaussian(2.0)
RAGGED = [[1.0], [1.0, 2.0]]
NO_NUMBERS = [
    math.nan,
    "1",
    None,
    True,
    np.True_,
    1j,
    [],
    np.zeros((0, 2)),
    RAGGED,
    [None],
    object(),
]
NOT_SCALAR = [[1.0], [0.5, 0.5], np.full(2, 0.5), np.full((1, 1), 0.5)]
INFINITE = [math.inf, -math.inf]
NOT_PROBABILITY = INFINITE + [-1e-300, 1 + 1e-15, -1, 2, 10**400]
NOT_POSITIVE = INFINITE + [0, -0.0, -1e-300, -3, 10**400]

SCALARS = [  # call, argument, further values that are refused
    (dp.gaussian, "sigma", NOT_POSITIVE),
    (dp.laplace, "scale", NOT_POSITIVE),
    (dp.randomized_response, "epsilon", INFINITE + [-1e-300, -1, 10**400]),
    (lambda v: dp.subsample(STEP, v), "rate", NOT_PROBABILITY),
    (STEP.compose, "k", INFINITE + [0, -1, 0.5, 1.5, 1e9 + 0.5, -(10**30)]),
    (lambda v: dp.calibrate(dp.gaussian, v, 1e-5), "epsilon", INFINITE + [-1e-300]),
    (lambda v: dp.calibrate(dp.gaussian, 1.0, v), "delta", NOT_PROBABILITY + [0.0, 1.0]),
]
WITH_ARRAYS = [  # call, argument, numbers that are refused
    (STEP.delta, "epsilon", INFINITE + [-1e-300, -1]),
    (STEP.delta_interval, "epsilon", INFINITE + [-1e-300, -1]),
    (STEP.epsilon, "delta", NOT_PROBABILITY),
    (STEP.epsilon_interval, "delta", NOT_PROBABILITY),
    (STEP.renyi, "alpha", [-math.inf, 0.999, 0, -2]),
    (STEP.tradeoff, "alpha", NOT_PROBABILITY),
]
LAWS = [
    *(
        [0.5, 0.6],
        [0.5, 0.5 - 1e-6],
        [1.5, -0.5],
        [1 + 1e-300, -1e-300],
        [0.5, math.nan],
        [0.0, 0.0],
    ),
    *([math.inf, 0.5], ["a", "b"], [True, False], [None, 1.0], [[0.5, 0.5]], [0.5 + 0j, 0.5]),
    *(0.5, 1.0, "1", None, [], RAGGED, [[1.0], [0.0]], "half", object()),
]


def label(value):
    return repr(value)[:25]


def refused(call, value, name):
    """One ValueError, no other behind it: it names the argument, the value and what is allowed."""
    with pytest.raises(ValueError) as caught:
        call(value)
    told = str(caught.value)
    assert told.split()[0] == name, told
    assert " must be " in told and told.endswith(f", got {value!r}"), told
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize("call, name, also", SCALARS, ids=[case[1] for case in SCALARS])
def test_scalar_arguments_are_checked(call, name, also):
    for value in NO_NUMBERS + NOT_SCALAR + also:
        refused(call, value, name)


@pytest.mark.parametrize("call, name, also", WITH_ARRAYS, ids=[c[0].__name__ for c in WITH_ARRAYS])
def test_array_arguments_are_checked_in_every_entry(call, name, also):
    for value in NO_NUMBERS + also:
        refused(call, value, name)
    for value in also + [math.nan]:
        refused(call, [1.0, value], name)
        refused(call, [[1.0], [value]], name)


@pytest.mark.parametrize("value", LAWS, ids=label)
def test_laws_are_checked(value):
    refused(lambda v: dp.finite(v, [0.5, 0.5]), value, "p")
    refused(lambda v: dp.finite([0.5, 0.5], v), value, "q")


def test_laws_of_different_length_are_refused():
    with pytest.raises(ValueError, match="^q must be as long as p, got 2 and 3 entries$"):
        dp.finite([0.5, 0.5], [0.2, 0.3, 0.5])


@pytest.mark.parametrize(
    "value", [None, 1.0, "gaussian", [STEP], dp.gaussian, STEP.compose], ids=label
)
def test_only_losses_are_sampled_and_added(value):
    refused(lambda v: dp.subsample(v, 0.5), value, "loss")
    for add in (lambda v: STEP + v, lambda v: v + STEP):
        with pytest.raises(TypeError):
            add(value)


def test_only_one_step_is_sampled():
    two = dp.laplace(1.0).compose(2)
    for loss in (
        two,
        dp.laplace(1.0) + dp.gaussian(1.0),
        dp.subsample(dp.gaussian(1.0), 0.1) + two,
    ):
        refused(lambda v: dp.subsample(v, 0.5), loss, "loss")


@pytest.mark.parametrize("family", [None, 1.0, "gaussian", STEP], ids=label)
def test_the_family_is_a_function(family):
    refused(lambda v: dp.calibrate(v, 1.0, 1e-5), family, "family")


@pytest.mark.parametrize("answer", [None, 1.0, "loss", [STEP]], ids=label)
def test_the_family_returns_losses(answer):
    with pytest.raises(ValueError, match="^family must .*, got "):
        dp.calibrate(lambda s: answer, 1.0, 1e-5)


def test_a_target_that_no_noise_meets_is_refused():
    with pytest.raises(ValueError, match="no noise|family"):
        dp.calibrate(lambda s: dp.finite([1.0, 0.0], [0.5, 0.5]), 1.0, 1e-5)


def test_whole_numbers_count_as_numbers_of_any_kind():
    run = dp.laplace(2.0)
    for k in (3, 3.0, np.int8(3), np.float32(3), np.array(3)):
        assert run.compose(k).epsilon(0.01) == run.compose(3).epsilon(0.01)
    for one in (1, np.int64(1), np.float32(1), np.array(1.0)):
        assert dp.gaussian(one).delta(one) == dp.gaussian(1.0).delta(1.0)
        assert dp.subsample(dp.gaussian(1.0), one).delta(one) == dp.gaussian(1.0).delta(1.0)
    assert dp.finite(np.array([1, 0]), (0, 1)).delta(0) == 1.0


# ---------------------------------------------------------------- shapes

LOSSES = {
    "gaussian": dp.gaussian(1.5),
    "laplace": dp.laplace(1.5),
    "randomized response": dp.randomized_response(0.7).compose(3),
    "finite": dp.finite(*PAIR),
    "infinite": dp.finite([0.5, 0.5, 0.0], [0.0, 0.4, 0.6]).compose(2),
    "sampled": dp.subsample(dp.gaussian(1.5), 0.1),
    "sampled steps": dp.subsample(dp.gaussian(1.5), 0.1).compose(50),
    "nothing": dp.subsample(dp.laplace(1.0), 0.0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_scalars_give_floats_and_arrays_give_arrays_of_their_shape(name):
    run = LOSSES[name]
    few = {"delta": (0.0, 0.3), "epsilon": (1e-3, 1.0), "renyi": (1.0, 3.0), "tradeoff": (0.2, 1.0)}
    for query, (a, b) in few.items():
        ask = getattr(run, query)
        alone = [ask(a), ask(b)]
        assert [type(value) for value in alone] == [float, float]
        assert type(ask(np.float64(a))) is float and type(ask(np.array(b))) is float
        for shape in ((2,), (1, 2), (2, 1, 1)):
            found = ask(np.reshape([a, b], shape))
            assert type(found) is np.ndarray and found.shape == shape and found.dtype == float
            assert found.ravel().tolist() == alone
        assert ask([a]).shape == (1,)
    assert type(run.mean()) is float
    for query in ("delta", "epsilon"):
        ask = getattr(run, query + "_interval")
        pair = ask(few[query][0])
        assert type(pair) is tuple and [type(end) for end in pair] == [float, float]
        low, high = ask(np.reshape(few[query], (2, 1)))
        assert low.shape == high.shape == (2, 1)
        assert (low[0, 0], high[0, 0]) == pair
        value = getattr(run, query)(np.reshape(few[query], (2, 1)))
        at_most(low, value, rtol=0)
        at_most(value, high, rtol=0)


# ---------------------------------------------------------------- one step against its closed form


def mp_gaussian(mu, e):
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


def mp_laplace(t, e):
    """1/scale = t; any real e."""
    return 1 - mp.exp(e) if e <= -t else max(mp.mpf(0), -mp.expm1((e - t) / 2))


def mp_sampled(delta, rate, e):
    """The worse of rate p + (1-rate) q against q and the reverse, from the pair's own delta."""
    removed = rate * delta(mp.log1p(mp.expm1(e) / rate))
    left = 1 - mp.exp(e) * (1 - rate)
    added = left * delta(e + mp.log(rate / left)) if left > 0 else mp.mpf(0)
    return max(removed, added)


def exact(formula, *arguments):
    """A float, from 60 digits."""
    with mp.workdps(60):
        return float(formula(*map(mp.mpf, arguments)))


def both_ways(loss, formula, epsilons, *parameters):
    """loss.delta against the formula, and epsilon against its inverse: delta(epsilon(d)) = d."""
    true = np.array([exact(formula, *parameters, e) for e in epsilons])
    equal(loss.delta(epsilons), true, rtol=1e-12, atol=1e-307)
    low, high = loss.delta_interval(epsilons)
    at_most(low, true, rtol=4e-16, atol=1e-307)
    at_most(true, high, rtol=4e-16, atol=1e-307)
    inside = (true > 1e-300) & (true < 0.999)  # log delta has a slope there
    back = loss.epsilon(true[inside])
    again = np.array([exact(formula, *parameters, e) for e in back])
    equal(np.log(again), np.log(true[inside]), rtol=1e-12, atol=2e-12)
    low, high = loss.epsilon_interval(true[inside])
    at_most(low, epsilons[inside], rtol=1e-15)
    at_most(epsilons[inside], high, rtol=1e-15)


@pytest.mark.parametrize("sigma", [0.02, 0.1, 0.5, 1.0, 1.1, 10.0, 1e3, 1e6])
def test_gaussian_is_balle_and_wang(sigma):
    epsilons = np.unique(np.append([0.0, 1e-8, 1e-4, 0.1, 1.0, 1e4], np.linspace(0, 36, 7) / sigma))
    formula = lambda s, e: mp_gaussian(1 / s, e)  # noqa: E731

    def check(build):
        both_ways(build(sigma), formula, epsilons, sigma)

    check(dp.gaussian)
    must_fail(check, lambda s: dp.gaussian(s**2 * 1.01))  # the variance for the deviation
    must_fail(check, lambda s: dp.gaussian(s / 2))  # sensitivity 2
    must_fail(check, lambda s: dp.gaussian(s * (1 + 1e-9)))


@given(st.floats(-2, 6), st.floats(-8, 4))
def test_gaussian_deltas_are_never_nan_nor_silently_zero(log_sigma, log_epsilon):
    sigma, epsilon = 10.0**log_sigma, 10.0**log_epsilon
    found = dp.gaussian(sigma).delta(epsilon)
    equal(found, exact(lambda s, e: mp_gaussian(1 / s, e), sigma, epsilon), rtol=1e-11, atol=1e-307)


@given(st.floats(-1.5, 5), st.floats(0, 300))
def test_gaussian_epsilons_down_to_1e_minus_300(log_sigma, digits):
    sigma, delta = 10.0**log_sigma, 10.0**-digits
    found = dp.gaussian(sigma).epsilon(delta)
    if found == 0:
        at_most(exact(lambda s: mp_gaussian(1 / s, 0), sigma), delta)
    else:
        again = exact(lambda s, e: mp.log(mp_gaussian(1 / s, e)), sigma, found)
        equal(again, math.log(delta), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("k", [2, 10, 1000, 10**9])
def test_gaussians_compose_to_one(k):
    def check(compose):
        run = compose(dp.gaussian(3.0), k)
        epsilons = np.array([1e-8, 0.1, 1.0, 10.0, 100.0])
        true = [exact(lambda e: mp_gaussian(mp.sqrt(k) / 3, e), e) for e in epsilons]
        equal(run.delta(epsilons), true, rtol=1e-12, atol=1e-307)
        equal(run.renyi([1.5, 7.0]), k * np.array([1.5, 7.0]) / 18)

    check(lambda step, k: step.compose(k))
    must_fail(check, lambda step, k: step)  # k ignored
    must_fail(check, lambda step, k: dp.gaussian(3.0 / k))  # k for its root
    must_fail(check, lambda step, k: step.compose(k + max(1, k // 10**6)))


@pytest.mark.parametrize("scale", [1e-3, 0.05, 0.7, 1.0, 3.0, 1e3, 1e8])
def test_laplace_once_is_its_closed_form(scale):
    epsilons = np.append(np.linspace(0, 1, 6), [0.999999, 1.5]) / scale
    formula = lambda b, e: mp_laplace(1 / b, e)  # noqa: E731

    def check(build):
        equal(build(scale).epsilon(0.0), 1 / scale)
        equal(build(scale).delta(1.5 / scale), 0.0)
        inner = epsilons[epsilons < 1 / scale]
        # e - 1/b is exact only to the rounding of 1/b: 2e-16/b in a gap of (1/b - e)
        true = np.array([exact(formula, scale, e) for e in inner])
        equal(build(scale).delta(inner), true, rtol=1e-12, atol=3e-16 / scale)
        equal(build(scale).epsilon(true), inner, rtol=1e-12, atol=1e-15 / scale + 1e-15)

    check(dp.laplace)
    must_fail(check, lambda b: dp.laplace(2 * b * b))  # the variance for the scale
    must_fail(check, lambda b: dp.laplace(b / 2))  # sensitivity 2


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0, 100.0])
def test_laplace_twice_is_its_closed_form(scale):
    """With g = 2/b - e: delta = 1 - exp(-g/2) (1 + g/4) for 0 <= e < 2/b."""
    t = 1 / scale
    epsilons = 2 * t * np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])

    def formula(e):
        gap = 2 / mp.mpf(scale) - e
        return 1 - mp.exp(-gap / 2) * (1 + gap / 4)

    def check(run):
        true = np.array([exact(formula, e) for e in epsilons])
        low, high = run.delta_interval(epsilons)
        at_most(low, true, rtol=1e-15)
        at_most(true, high, rtol=1e-15)
        equal(run.delta(epsilons), true, rtol=1e-6)
        at_most(true, run.delta(epsilons), rtol=1e-11)  # never below the truth
        low, high = run.epsilon_interval(true[1:])
        at_most(low, epsilons[1:], rtol=1e-15)
        at_most(epsilons[1:], high, rtol=1e-15)
        at_most(high - low, 1e-5 * epsilons[1:])
        at_most(epsilons[1:], run.epsilon(true[1:]), rtol=1e-11)

    check(dp.laplace(scale).compose(2))
    check(dp.laplace(scale) + dp.laplace(scale))
    must_fail(check, dp.laplace(scale))
    must_fail(check, dp.laplace(scale / 2))  # one query of sensitivity 2
    must_fail(check, dp.laplace(scale).compose(3))


@pytest.mark.parametrize(
    "sigma, rate", [(1.0, 0.01), (0.3, 0.5), (5.0, 1e-3), (0.8, 0.999), (2.0, 1e-8)]
)
def test_one_sampled_gaussian_is_its_closed_form(sigma, rate):
    top = 20 / sigma**2
    epsilons = np.array([0.0, 1e-8, 1e-3 * rate, 0.3 * rate, rate, 0.1, 1.0, top])

    def formula(s, r, e):
        return mp_sampled(lambda x: mp_gaussian(1 / s, x), r, e)

    def check(build):
        both_ways(build(sigma, rate), formula, epsilons, sigma, rate)

    check(lambda s, r: dp.subsample(dp.gaussian(s), r))
    must_fail(check, lambda s, r: dp.gaussian(s))  # no sampling
    must_fail(check, lambda s, r: dp.subsample(dp.gaussian(s), r * (1 + 1e-9)))
    must_fail(check, lambda s, r: dp.subsample(dp.gaussian(s / 2), r))  # one record replaced
    must_fail(check, lambda s, r: dp.gaussian(s / r))  # the mean scaled instead of a mixture


@pytest.mark.parametrize("scale, rate", [(1.0, 0.01), (0.3, 0.5), (5.0, 1e-3), (0.8, 0.999)])
def test_one_sampled_laplace_is_its_closed_form(scale, rate):
    top = math.log1p(rate * math.expm1(1 / scale))
    epsilons = top * np.array([0.0, 1e-8, 0.2, 0.5, 0.9, 0.999])

    def check(build):
        run = build(scale, rate)
        formula = lambda b, r, e: mp_sampled(lambda x: mp_laplace(1 / b, x), r, e)  # noqa: E731
        true = np.array([exact(formula, scale, rate, e) for e in epsilons])
        equal(run.delta(epsilons), true, rtol=1e-11)
        equal(run.epsilon(true[1:]), epsilons[1:], rtol=1e-11, atol=1e-15)
        equal(run.epsilon(0.0), top)
        assert run.delta(top * (1 + 1e-12)) == 0

    check(lambda b, r: dp.subsample(dp.laplace(b), r))
    must_fail(check, lambda b, r: dp.laplace(b))
    must_fail(check, lambda b, r: dp.laplace(b / r))
    must_fail(check, lambda b, r: dp.subsample(dp.laplace(b / 2), r))


@given(finite_laws(), st.floats(0, 1), st.floats(0, 2))
def test_sampling_a_finite_pair_is_mixing_it(pair, rate, share):
    p, q = pair
    epsilon = share * float(dp.max_divergence(p, q))

    def check(mixture):
        sampled = dp.subsample(dp.finite(p, q), rate)
        mixed = dp.finite(mixture, q)
        equal(sampled.delta(epsilon), mixed.delta(epsilon), rtol=1e-11, atol=1e-15)
        equal(sampled.renyi([1.0, 2.0, 30.0]), mixed.renyi([1.0, 2.0, 30.0]), rtol=1e-9, atol=1e-14)
        worst = max(dp.hockey_stick(mixture, q, epsilon), dp.hockey_stick(q, mixture, epsilon))
        equal(sampled.delta(epsilon), worst, rtol=1e-11, atol=1e-15)

    check(rate * p + (1 - rate) * q)
    if 1e-3 < rate < 0.999 and np.abs(p - q).max() > 1e-3:
        must_fail(check, rate * q + (1 - rate) * p)


def every_answer(run):
    return [
        *run.delta([0.0, 1e-3, 0.1, 1.0]),
        *run.epsilon([1e-9, 1e-4, 0.1]),
        *run.renyi([1.0, 1.5, 30.0]),
        *run.tradeoff([0.0, 0.1, 0.8]),
        run.mean(),
    ]


@pytest.mark.parametrize(
    "step",
    [dp.gaussian(1.3), dp.laplace(1.3), dp.randomized_response(0.8), dp.finite(*PAIR)]
    + [dp.finite([0.5, 0.5, 0.0], [0.0, 0.4, 0.6]), dp.subsample(dp.gaussian(1.3), 0.3)],
    ids=["gaussian", "laplace", "response", "finite", "infinite", "sampled"],
)
def test_rate_one_is_the_identity_and_rate_zero_is_nothing(step):
    assert every_answer(dp.subsample(step, 1.0)) == every_answer(step)
    equal(every_answer(dp.subsample(step, 1 - 1e-14)), every_answer(step), rtol=1e-9, atol=1e-9)
    for nothing in (dp.subsample(step, 0), dp.subsample(step, 0.0).compose(10**9)):
        equal(nothing.delta([0.0, 1.0]), 0.0)
        equal(nothing.epsilon([0.0, 1e-300, 0.5, 1.0]), 0.0)
        equal(nothing.renyi([1.0, 2.0, 1e4, math.inf]), 0.0)
        equal(nothing.tradeoff([0.0, 0.3, 1.0]), [1.0, 0.7, 0.0])
    equal(every_answer(step + dp.subsample(step, 0.0)), every_answer(step), rtol=1e-9, atol=1e-12)


def test_samples_of_samples_multiply_their_rates():
    for step in (dp.gaussian(1.0), dp.laplace(1.0), dp.finite(*PAIR), dp.randomized_response(1.0)):
        twice, once = dp.subsample(dp.subsample(step, 0.2), 0.3), dp.subsample(step, 0.06)
        equal(every_answer(twice), every_answer(once), rtol=1e-11)


def test_disjoint_laws_keep_only_the_rate_secret():
    """Sampled, the pair is (rate, 1 - rate) against (0, 1): delta = rate at every epsilon."""
    run = dp.subsample(dp.finite([1.0, 0.0], [0.0, 1.0]), 0.1)
    equal(run.delta([0.0, 1.0, 1e4]), 0.1)
    equal(run.epsilon([0.05, 0.1, 0.5]), [math.inf, 0.0, 0.0])
    equal(run.compose(3).delta([0.0, 5.0]), 1 - 0.9**3)


def test_laws_that_sum_to_one_only_nearly_are_scaled_before_anything_else():
    p, q = np.array([0.5, 0.5]), np.array([0.5, 0.5 - 9e-10])
    equal(dp.finite(p, q).delta(0.0), dp.finite(p, q / q.sum()).delta(0.0), rtol=1e-6)
    equal(dp.finite(q, q).epsilon(0.0), 0.0)
    equal(dp.finite(p, q).mean(), dp.finite(p, q / q.sum()).mean(), rtol=1e-6)


@given(st.floats(-8, 4), st.floats(0, 300))
@settings(max_examples=100)
def test_randomized_response_once(log_epsilon, digits):
    epsilon, delta = 10.0**log_epsilon, 10.0**-digits
    run = dp.randomized_response(epsilon)

    def formula(e):  # p - exp(e) q
        return (mp.exp(epsilon) - mp.exp(e)) / (1 + mp.exp(epsilon))

    shares = epsilon * np.array([0.0, 1e-3, 0.3, 0.9])
    equal(run.delta(shares), [exact(formula, e) for e in shares], rtol=1e-12)
    equal(run.delta([epsilon, 2 * epsilon + 1]), 0.0)
    answer = exact(
        lambda d: (
            max(mp.mpf(0), mp.log(mp.exp(epsilon) - d * (1 + mp.exp(epsilon))))
            if d * (1 + mp.exp(-epsilon)) < 1
            else mp.mpf(0)
        ),
        delta,
    )
    equal(run.epsilon(delta), answer, rtol=1e-12, atol=1e-15)
    equal(run.epsilon(0.0), epsilon)
    equal(run.renyi(math.inf), epsilon)
    alpha = np.array([0.0, 0.05, 0.5, 1.0])
    lines = np.maximum(1 - np.exp(min(epsilon, 700.0)) * alpha, math.exp(-epsilon) * (1 - alpha))
    equal(run.tradeoff(alpha), lines, atol=1e-9)


EXTREME = {
    "gaussian 1e8": dp.gaussian(1e8),
    "gaussian 1e-3": dp.gaussian(1e-3),
    "gaussians": dp.gaussian(1e4).compose(10**9),
    "laplace 1e-4": dp.laplace(1e-4),
    "laplace 1e8": dp.laplace(1e8),
    "laplaces": dp.laplace(1e8).compose(2),
    "strong laplaces": dp.laplace(1e-3).compose(2),
    "response 700": dp.randomized_response(700.0),
    "response 1e4": dp.randomized_response(1e4),
    "response 1e-8": dp.randomized_response(1e-8),
    "responses 1e4": dp.randomized_response(1e4).compose(5),
    "responses 1e-8": dp.randomized_response(1e-8).compose(1000),
    "sampled response": dp.subsample(dp.randomized_response(1e3), 0.1).compose(3),
    "sampled once": dp.subsample(dp.gaussian(1.0), 1e-300),
    "sampled sharply": dp.subsample(dp.gaussian(0.01), 0.1),
    "nothing": dp.randomized_response(0.0),
    "apart": dp.finite([1.0, 0.0], [0.0, 1.0]).compose(10),
    "peaked": dp.finite([1 - 1e-300, 1e-300], [1 - 1e-9, 1e-9]),
}


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_parameters_give_numbers_in_order(name):
    run = EXTREME[name]
    deltas = np.append(10.0 ** -np.array([300, 200, 100, 30, 10, 5, 2, 1]), [0.5, 0.9, 1.0])
    epsilons = np.append([0.0], 10.0 ** np.arange(-8, 5))
    found, (low, high) = run.epsilon(deltas), run.epsilon_interval(deltas)
    holds(found >= 0, "epsilon is a number >= 0")
    holds((low <= found) & (found <= high), "epsilon lies in its interval")
    at_most(found[1:], found[:-1])
    at_most(found, run.epsilon(0.0))
    values, (low, high) = run.delta(epsilons), run.delta_interval(epsilons)
    holds((values >= 0) & (values <= 1), "delta is a probability")
    holds(~np.signbit(values), "zero is not negative")
    holds(
        (0 <= low) & (low <= values) & (values <= high) & (high <= 1), "delta lies in its interval"
    )
    at_most(values[1:], values[:-1])
    orders = np.array([1.0, 1 + 1e-9, 1.5, 10.0, 1e4, math.inf])
    spent = run.renyi(orders)
    holds(spent >= 0, "a divergence is a number >= 0")
    at_most(spent[:-1], spent[1:], rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in EXTREME if "laplaces" not in name])
def test_extreme_parameters_give_errors_in_order(name):
    errors = EXTREME[name].tradeoff([0.0, 1e-9, 0.05, 0.5, 1.0])
    holds((0 <= errors) & (errors <= 1), "an error is a probability")
    at_most(errors[1:], errors[:-1])
    assert errors[-1] == 0
    if "apart" not in name and "sampled" not in name:
        assert errors[0] == 1  # q's outcomes are all possible under p


def test_calibration_meets_its_target_and_not_with_more_noise_than_needed():
    families = {
        "gaussian": dp.gaussian,
        "gaussians": lambda s: dp.gaussian(s).compose(100),
        "laplace": dp.laplace,
        "response": lambda s: dp.randomized_response(1 / s),
        "sampled": lambda s: dp.subsample(dp.gaussian(s), 0.01),
        "sampled steps": lambda s: dp.subsample(dp.gaussian(s), 0.01).compose(1000),
    }
    for family in families.values():

        def check(calibrate, family=family):
            for epsilon, delta in ((1.0, 1e-5), (0.1, 1e-2), (5.0, 1e-12), (0.0, 0.01)):
                noise = calibrate(family, epsilon, delta)
                assert type(noise) is float
                at_most(family(noise).delta(epsilon), delta, rtol=1e-13)
                holds(np.array(family(noise * (1 - 1e-9)).delta(epsilon) > delta))

        check(dp.calibrate)
        must_fail(check, lambda *target: dp.calibrate(*target) * (1 + 1e-8))
        must_fail(check, lambda *target: dp.calibrate(*target) * (1 - 1e-8))
