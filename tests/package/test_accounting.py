"""The accountant against references of 25 digits, brute force and its own laws.

Each law is a ``check`` that is also run against a planted mistake, which it must catch.
"""

import functools
import inspect
import itertools
import json
import math
import pathlib
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpnotes as dp
from dpnotes.accountant.direction import Direction
from evidence import equal, must_fail

ROWS = json.loads(
    (pathlib.Path(__file__).parent.parent / "data" / "accounting_reference.json").read_text()
)["rows"]
CURVES = [row for row in ROWS if not row["what"].startswith(("calibrate", "renyi"))]


def loss_of(row):
    """The PrivacyLoss of a reference row."""
    kind, k = row["what"], row["k"]
    if kind == "randomized response":
        return dp.randomized_response(row["epsilon"]).compose(k)
    if kind == "laplace":
        return dp.laplace(row["scale"]).compose(k)
    if kind == "gaussian":
        return dp.gaussian(row["sigma"]).compose(k)
    loss = dp.subsample(dp.gaussian(row["sigma"]), row["rate"]).compose(k)
    return loss + dp.laplace(row["scale"]) if kind.startswith("laplace +") else loss


@functools.cache
def answers(index):
    """epsilon and its interval for a row of CURVES."""
    row, loss = CURVES[index], loss_of(CURVES[index])
    return loss.epsilon(row["delta"]), loss.epsilon_interval(row["delta"])


def promised(row):
    """The relative error that is promised for this row."""
    if row["what"] in ("randomized response", "gaussian") or row["k"] == 1:
        return 1e-12
    sampled = row["what"] == "sampled gaussian"
    return 1e-9 if sampled and row["k"] * row["rate"] >= 10 and row["sigma"] >= 0.3 else 1e-6


def check_row(row, value, interval):
    """Right to what is promised, never below the truth, inside an interval that is narrow."""
    truth, (low, high) = row["value"], interval
    assert abs(value - truth) <= promised(row) * truth
    assert value >= truth * (1 - 1e-12)
    assert low <= truth <= high
    assert high - low <= max(1e-5, 1e-11 * truth)


def name_of(row):
    return row.get("id") or "-".join(str(v) for key, v in row.items() if key != "value")


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(i, marks=() if i % 10 == 0 else pytest.mark.slow, id=name_of(row))
        for i, row in enumerate(CURVES)
    ],
)
def test_reference(index):
    row, (value, interval) = CURVES[index], answers(index)
    check_row(row, value, interval)
    with pytest.raises(AssertionError):
        check_row(row, value * (1 - 3 * promised(row)), interval)
    with pytest.raises(AssertionError):
        check_row(row, value, (np.nextafter(row["value"], math.inf), interval[1]))


@pytest.mark.slow
def test_most_intervals_are_narrow():
    wide = [i for i in range(len(CURVES)) if np.ptp(answers(i)[1]) > 1e-8]
    assert len(wide) <= 0.15 * len(CURVES)


@pytest.mark.parametrize("row", [r for r in ROWS if r["what"].startswith("calibrate")], ids=name_of)
def test_calibration_reference(row):
    def family(s):
        if row["what"] == "calibrate gaussian":
            return dp.gaussian(sigma=s)
        return dp.subsample(dp.gaussian(sigma=s), row["rate"]).compose(row["k"])

    sigma = dp.calibrate(family, row["epsilon"], row["delta"])
    assert row["value"] * (1 - 1e-12) <= sigma <= row["value"] * (1 + 1e-10)
    assert family(sigma).delta(row["epsilon"]) <= row["delta"] * (1 + 1e-12)


@pytest.mark.parametrize("row", [r for r in ROWS if r["what"].startswith("renyi")], ids=name_of)
def test_renyi_reference(row):
    step = dp.subsample(dp.gaussian(row["sigma"]), row["rate"])
    assert step.renyi(row["alpha"]) == pytest.approx(row["value"], rel=1e-12)
    assert step.compose(10**9).renyi(row["alpha"]) == pytest.approx(1e9 * row["value"], rel=1e-12)


# Random instances


def brute_delta(pairs, epsilon):
    """sum (P - e^epsilon Q)_+ over all outcomes of the product of finite pairs, worse direction."""
    worst = 0.0
    for swap in (False, True):
        p, q = np.ones(1), np.ones(1)
        for one, other in pairs:
            one, other = (other, one) if swap else (one, other)
            p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
        worst = max(worst, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return worst


laws = st.lists(st.integers(1, 100), min_size=2, max_size=4)


@st.composite
def finite_pairs(draw):
    p = np.array(draw(laws), dtype=float)
    q = np.array(draw(st.lists(st.integers(1, 100), min_size=len(p), max_size=len(p))), float)
    return p / p.sum(), q / q.sum()


@settings(max_examples=60)
@given(st.lists(finite_pairs(), min_size=1, max_size=4), st.floats(0, 3))
def test_finite_pairs_against_brute_force(pairs, epsilon):
    loss = dp.finite(*pairs[0])
    for p, q in pairs[1:]:
        loss = loss + dp.finite(p, q)

    def check(delta):
        assert delta == pytest.approx(brute_delta(pairs, epsilon), rel=1e-10, abs=1e-14)

    check(loss.delta(epsilon))
    if loss.delta(epsilon) > 1e-3:
        with pytest.raises(AssertionError):
            check(loss.delta(epsilon * 1.001 + 1e-3))


@settings(max_examples=40)
@given(finite_pairs(), st.floats(0.01, 0.99), st.floats(0, 1))
def test_sampled_finite_pairs_against_brute_force(pair, rate, epsilon):
    p, q = pair
    loss = dp.subsample(dp.finite(p, q), rate).compose(3)
    mixed = [(rate * p + (1 - rate) * q, q)] * 3
    assert loss.delta(epsilon) == pytest.approx(brute_delta(mixed, epsilon), rel=1e-9, abs=1e-14)


# sigma, rate, expected number of rounds a person is in, log10 of delta
settings_of_sgd = st.tuples(
    st.floats(0.5, 10), st.floats(1e-3, 0.3), st.integers(10, 300), st.floats(-12, -2)
)


@settings(max_examples=40)
@given(settings_of_sgd)
def test_epsilon_inverts_delta(drawn):
    sigma, rate, rounds, exponent = drawn
    loss = dp.subsample(dp.gaussian(sigma), rate).compose(math.ceil(rounds / rate))
    epsilon = loss.epsilon(10**exponent)
    if epsilon > 1e-3:
        assert loss.delta(epsilon) == pytest.approx(10**exponent, rel=1e-9)
        assert loss.epsilon(loss.delta(epsilon)) == pytest.approx(epsilon, rel=1e-9)
        low, high = loss.delta_interval(epsilon)
        assert low <= 10**exponent * (1 + 1e-9) and 10**exponent * (1 - 1e-9) <= high


def check_shape(delta):
    """delta(epsilon) falls, and is convex in e^epsilon."""
    t = np.linspace(1, 6, 12)
    values = delta(np.log(t))
    assert np.all(np.diff(values) <= 0)
    assert np.all(np.diff(values, 2) >= -1e-12)


@pytest.mark.slow
@settings(max_examples=20)
@given(settings_of_sgd)
def test_delta_falls_and_is_convex_in_exp_epsilon(drawn):
    sigma, rate, rounds, _ = drawn
    check_shape(dp.subsample(dp.gaussian(sigma), rate).compose(math.ceil(rounds / rate)).delta)


def test_a_wrong_shape_is_caught():
    for wrong in (lambda e: 1 - np.exp(2 * e) / 50, np.sin, lambda e: 0.1 + 1e-9 * e):
        with pytest.raises(AssertionError):
            check_shape(wrong)


def check_monotone(epsilon_of_rounds):
    values = [epsilon_of_rounds(k) for k in (1, 2, 7, 40, 300)]
    assert all(a < b for a, b in itertools.pairwise(values))


@pytest.mark.parametrize(
    "step",
    [dp.gaussian(3.0), dp.subsample(dp.gaussian(1.0), 0.1), dp.randomized_response(0.2)],
    ids=str,
)
def test_composition_is_monotone(step):
    check_monotone(lambda k: step.compose(k).epsilon(1e-6))
    with pytest.raises(AssertionError):
        check_monotone(lambda k: step.compose(min(k, 40)).epsilon(1e-6))


def test_composition_commutes_and_associates():
    a, b = dp.subsample(dp.gaussian(1.0), 0.05).compose(50), dp.laplace(4.0)
    c = dp.randomized_response(0.3)
    one, other = a + (b + c), (c + a) + b
    assert one.epsilon(1e-6) == pytest.approx(other.epsilon(1e-6), rel=1e-11)
    assert (a + a).epsilon(1e-6) == a.compose(2).epsilon(1e-6)
    assert a.compose(6).epsilon(1e-6) == a.compose(2).compose(3).epsilon(1e-6)
    gaussians = dp.gaussian(3.0) + dp.gaussian(4.0)  # 1/9 + 1/16 = 1/2.4^2
    assert gaussians.epsilon(1e-6) == pytest.approx(dp.gaussian(2.4).epsilon(1e-6), rel=1e-13)


@settings(max_examples=30)
@given(finite_pairs(), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_post_processing_never_helps(pair, seed, epsilon):
    p, q = pair
    channel = np.random.default_rng(seed).dirichlet(np.ones(3), size=len(p))

    def check(before, after):
        assert after.delta(epsilon) <= before.delta(epsilon) + 1e-14
        assert after.renyi(3.0) <= before.renyi(3.0) + 1e-12

    before, after = dp.finite(p, q), dp.finite(p @ channel, q @ channel)
    check(before, after)
    if before.delta(epsilon) > after.delta(epsilon) + 1e-6:
        with pytest.raises(AssertionError):
            check(after, before)


# Relations between the views


def test_the_two_directions_are_one_function():
    """K_QP(z) = K_PQ(-1-z), on both sides of the strip."""
    z = np.array([-0.9, -0.5, -0.2, 0.4, 1.0, 3.0])
    for loss in (dp.subsample(dp.gaussian(0.9), 0.03), dp.subsample(dp.laplace(0.7), 0.2),
                 dp.subsample(dp.finite([0.2, 0.8], [0.6, 0.4]), 0.4)):  # fmt: skip
        one, other = (way.parts[0][0] for way in loss._directions)
        law = one.law(5.0, 0.0)
        mirrored = [np.log(np.exp(law.log_p) @ np.exp((-1 - x) * law.loss)) for x in z]
        np.testing.assert_allclose(other.cumulant(z), mirrored, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("rate", [1e-3, 0.2, 0.9])
def test_renyi_of_integer_order_is_the_binomial_sum(sigma, rate):
    """Mironov, Talwar and Zhang 2019, eq. 6; the removed person is the worse direction."""
    step = dp.subsample(dp.gaussian(sigma), rate)
    for alpha in (2, 3, 8, 32):
        terms = [
            math.lgamma(alpha + 1) - math.lgamma(j + 1) - math.lgamma(alpha - j + 1)
            + j * math.log(rate) + (alpha - j) * math.log1p(-rate) + j * (j - 1) / (2 * sigma**2)
            for j in range(alpha + 1)
        ]  # fmt: skip
        top = max(terms)
        exact = (top + math.log(math.fsum(math.exp(t - top) for t in terms))) / (alpha - 1)
        assert step.renyi(float(alpha)) == pytest.approx(exact, rel=1e-10, abs=1e-15)


def test_renyi_bounds_delta_and_meets_its_limits():
    for loss in (dp.laplace(1.5), dp.subsample(dp.gaussian(1.0), 0.1), dp.randomized_response(0.8)):
        run = loss.compose(30)
        alpha = np.linspace(1.05, 60, 200)
        divergence = run.renyi(alpha)
        assert np.all(np.diff(divergence) >= 0)
        for delta in (1e-3, 1e-8):
            bound = np.log1p(-1 / alpha) - np.log(delta * alpha) / (
                alpha - 1
            )  # Canonne et al. 2020
            assert run.epsilon(delta) <= (divergence + bound).min() + 1e-9
        assert run.renyi(1.0) == run.mean() == pytest.approx(run.renyi(1 + 1e-7), rel=1e-5)
    assert dp.laplace(1.5).compose(30).renyi(math.inf) == pytest.approx(20.0, rel=1e-14)
    # below order 1 + 1e-9 the divergence is still K(z)/z, without cancellation
    step = dp.subsample(dp.gaussian(1.0), 1e-6)
    assert step.renyi(1 + 1e-9) == pytest.approx(step.mean(), rel=1e-6)


def test_kl_of_a_gaussian_mixture_against_quadrature():
    x, sigma, rate = np.linspace(-14, 16, 400_001), 1.3, 0.07
    q = np.exp(-0.5 * (x / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    p = q * (1 + rate * np.expm1((x - 0.5) / sigma**2))
    step = x[1] - x[0]
    exact = step * max((p * np.log(p / q)).sum(), (q * np.log(q / p)).sum())
    assert dp.subsample(dp.gaussian(sigma), rate).mean() == pytest.approx(exact, rel=1e-9)


def test_tradeoff_of_a_gaussian():
    from scipy.special import ndtr, ndtri

    alpha = np.array([0.0, 1e-6, 0.01, 0.3, 0.9, 1.0])
    exact = ndtr(-ndtri(alpha) - 0.5)
    np.testing.assert_allclose(dp.gaussian(2.0).tradeoff(alpha), exact, rtol=1e-13, atol=0)
    by_lines = dp.gaussian(2.0) + dp.randomized_response(1e-13)
    np.testing.assert_allclose(by_lines.tradeoff(alpha[1:-1]), exact[1:-1], rtol=1e-11)


@settings(max_examples=30)
@given(finite_pairs(), st.floats(0, 1))
def test_tradeoff_is_the_best_test(pair, alpha):
    """Neyman and Pearson: reject by likelihood ratio, at random on the boundary."""

    def best(p, q):  # level under p, power under q
        order = np.argsort(p / q)
        level, power = np.append(0, np.cumsum(p[order])), np.append(0, np.cumsum(q[order]))
        return 1 - np.interp(alpha, level, power)

    p, q = pair
    exact = min(best(p, q), best(q, p))
    assert dp.finite(p, q).tradeoff(alpha) == pytest.approx(exact, abs=1e-14)


# Hard corners


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.2, 1.0, 8.0])
@pytest.mark.parametrize("rate", [1e-7, 1e-3, 0.9])
@pytest.mark.parametrize("k", [2, 1000, 10**9])
def test_no_setting_hangs_or_fails(sigma, rate, k):
    """An enclosure in bounded time, however wide; the value is its safe side if it is wide."""
    loss, start = dp.subsample(dp.gaussian(sigma), rate).compose(k), time.process_time()
    low, high = loss.epsilon_interval(1e-9)
    assert time.process_time() - start < 30
    assert 0 <= low <= loss.epsilon(1e-9) <= high < math.inf


def test_mixtures_of_kinds():
    """A lattice of another spacing, or an integral over one step, gives the same number."""
    laplace, gaussian = dp.laplace(2.0), dp.gaussian(1.5)
    x, w = np.polynomial.legendre.leggauss(60)
    middle = gaussian.delta  # E over the Laplace loss of delta(e - L), e beyond 1/2
    values = np.exp((0.5 * x - 0.5) / 2) / 4 * 0.5 * w
    for epsilon in (0.7, 2.0):
        exact = 0.5 * middle(epsilon - 0.5) + 0.5 * math.exp(-0.5) * middle(epsilon + 0.5)
        exact += float(values @ middle(epsilon - 0.5 * x))
        assert (laplace + gaussian).delta(epsilon) == pytest.approx(exact, rel=1e-12)
    many = dp.subsample(dp.gaussian(1.0), 0.01).compose(500)
    for j in range(20):
        many = many + dp.subsample(dp.gaussian(1.0 + 0.01 * j), 0.01).compose(25)
    between = [dp.subsample(dp.gaussian(s), 0.01).compose(1000).epsilon(1e-6) for s in (1.2, 1.0)]
    assert between[0] < many.epsilon(1e-6) < between[1]
    sampled = dp.subsample(dp.laplace(1.0), 0.02).compose(2000)
    low, high = sampled.epsilon_interval(1e-7)
    assert high - low < 1e-8 and sampled.delta(sampled.epsilon(1e-7)) == pytest.approx(1e-7)


@pytest.mark.slow
def test_calibration_meets_its_target_and_not_more():
    for family in (lambda s: dp.laplace(s).compose(100), lambda s: dp.gaussian(s).compose(3),
                   lambda s: dp.subsample(dp.gaussian(s), 0.02).compose(500)):  # fmt: skip
        s = dp.calibrate(family, 1.0, 1e-6)
        assert family(s).epsilon(1e-6) <= 1 + 1e-9
        assert family(s * (1 - 1e-6)).epsilon(1e-6) > 1


CERTAIN = {  # delta is 1 to its last digit
    "leak": dp.finite([0.4, 0.2, 0.4], [0.9, 0.1, 0.0]).compose(1211),
    "response": dp.randomized_response(0.25).compose(60_000_000),
    "lattice": dp.laplace(700.0).compose(3) + dp.finite([0.5, 0.5], [0.9, 0.1]).compose(400_000),
}


@pytest.mark.parametrize("run", CERTAIN.values(), ids=CERTAIN)
def test_delta_is_at_most_one(run):
    for epsilon in (0.0, 1.0):
        low, high = run.delta_interval(epsilon)
        assert 1 - 1e-9 < low <= run.delta(epsilon) <= high == 1.0


def test_astronomical_tilts_take_no_room():
    """Windows of 1e7 standard deviations, of which only the two ends matter."""
    run = dp.subsample(dp.gaussian(1e6), 1e-10).compose(2)
    assert run.delta_interval(0.5) == (0.0, 1e-300)
    low, high = run.epsilon_interval(1e-20)
    assert 0 < low <= high <= low * (1 + 1e-9)


def test_many_rounds_of_three_losses_are_counted_at_once():
    """Against one round after the other."""
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.2, 0.3])
    run, k = dp.finite(p, q).compose(40), 40
    counts = [(i, j, k - i - j) for i in range(k + 1) for j in range(k + 1 - i)]
    ways = [math.factorial(k) // math.prod(map(math.factorial, c)) for c in counts]
    first, second = (np.array(ways, float) * np.prod(law ** np.array(counts), 1) for law in (p, q))

    def check(delta):
        for epsilon in (0.0, 3.0, 9.0):
            worse = max(
                dp.hockey_stick(first, second, epsilon), dp.hockey_stick(second, first, epsilon)
            )
            equal(delta(epsilon), worse, rtol=1e-11)

    check(run.delta)
    must_fail(check, dp.finite(p, q).compose(41).delta)


def test_public_calls_have_type_hints():
    """And the package says so (PEP 561)."""

    def check(calls):
        for call in calls:
            signature = inspect.signature(call)
            names = [p for name, p in signature.parameters.items() if name != "self"]
            assert all(p.annotation is not p.empty for p in names), call
            assert signature.return_annotation is not signature.empty, call

    methods = [f for name, f in vars(dp.PrivacyLoss).items() if not name.startswith("_")]
    check([dp.calibrate, dp.PrivacyLoss.__add__, *methods])
    must_fail(check, [lambda epsilon: epsilon])
    assert (pathlib.Path(dp.__file__).parent / "py.typed").exists()


def test_delta_at_zero_is_the_total_variation_both_ways(monkeypatch):
    """The direction that is known better serves both; a sharp first one is enough."""
    asked, delta = [], Direction.delta
    monkeypatch.setattr(Direction, "delta", lambda way, e: asked.append(way) or delta(way, e))
    run = dp.subsample(dp.gaussian(0.8), 0.01).compose(300)
    low, high = run.delta_interval(0.0)
    assert asked == run._directions[:1] and high - low <= 1e-9 * high
    both = [delta(way, 0.0) for way in run._directions]
    assert max(found[0] for found in both) <= min(found[2] for found in both)
    wide, sharp = (0.1, 0.9, 0.9), (0.3, 0.3000001, 0.3000001)
    first = run._directions[0]
    monkeypatch.setattr(Direction, "delta", lambda way, e: wide if way is first else sharp)
    assert run.delta_interval(0.0) == sharp[::2]
