"""Sampling under substitution: the symmetrised pair, against closed forms and brute force.

The brute force shares no code with the engine: masses of cells of the loss from distribution
functions, losses rounded down or up to the ends of their cells, powers by one transform.
"""

import numpy as np
import pytest
from scipy import stats

import dpnotes as dp
from evidence import at_most, equal, holds, must_fail

GAUSSIANS = [(1.0, 0.1), (2.0, 0.01), (0.5, 0.3), (5.0, 0.9), (0.8, 1e-4)]
LAPLACES = [(1.0, 0.1), (0.5, 0.5), (5.0, 0.02)]
CALLS = {
    "gaussian": lambda noise, rate: dp.subsample_substitution(dp.gaussian(noise, 2.0), rate),
    "laplace": lambda noise, rate: dp.subsample_substitution(dp.laplace(noise, 2.0), rate),
}
CASES = [("gaussian", *c) for c in GAUSSIANS] + [("laplace", *c) for c in LAPLACES]


def law_of(kind, noise):
    """The noise in units of a substitution, and how x and log p/q belong together."""
    if kind == "gaussian":
        return stats.norm(scale=noise / 2), lambda u: 0.5 + u * (noise / 2) ** 2
    end = 2 / noise
    return stats.laplace(scale=noise / 2), lambda u: np.where(u <= end, 0.5 + u / end / 2, np.inf)


def profile(kind, noise, rate, a):
    """H_a of the mixture against q for a >= 1, and what symmetry makes of it below."""
    law, outcome = law_of(kind, noise)
    b = np.maximum(a, 1 / a)
    x = outcome(np.log1p((b - 1) / rate) + 1e-300)
    found = rate * law.sf(x - 1) + (1 - rate) * law.sf(x) - b * law.sf(x)
    return np.where(a >= 1, found, a * found + 1 - a)


@pytest.mark.parametrize("kind, noise, rate", CASES)
def test_one_round_is_the_closed_form_on_both_sides(kind, noise, rate):
    loss, e = CALLS[kind](noise, rate), np.linspace(0.0, 3.0, 13)
    low, high = loss.delta_interval(e)
    true = np.maximum(profile(kind, noise, rate, np.exp(e)), 0.0)
    equal(loss.delta(e), true, rtol=1e-8, atol=1e-14)
    at_most(low, true, rtol=1e-8, atol=1e-14)
    at_most(true, high, rtol=1e-8, atol=1e-14)
    law = loss._parts[0][0].law(1.0, 0.0)
    for sign in (1, -1):  # E (1 - a exp(-L))_+, a quadrature that is blind to the kink at log a
        a = np.exp(sign * e)[:, None]
        found = np.maximum(1 - a * np.exp(-law.loss), 0.0) @ np.exp(law.log_p)
        equal(found, profile(kind, noise, rate, a[:, 0]), atol=3e-3 * rate)


@pytest.mark.parametrize("kind, noise, rate", CASES)
def test_the_law_is_its_own_reverse(kind, noise, rate):
    step = CALLS[kind](noise, rate)._parts[0][0]
    law = step.law(3.0, 0.0)
    p, q = np.exp(law.log_p), np.exp(law.log_p - law.loss)
    equal([p.sum(), q.sum()], 1.0, rtol=1e-13)
    up, down = np.argsort(law.loss), np.argsort(-law.loss)
    equal(law.loss[up], -law.loss[down])
    equal(p[up], q[down], rtol=1e-12)
    z = np.array([-0.4, -0.25, -0.01])
    equal(step.cumulant(z), step.cumulant(-1 - z), rtol=1e-9)
    holds(step.flipped() == step)


def masses(kind, noise, rate, edges):
    """P' of the cells of the loss between these ascending edges, of which 0 is one."""
    law, outcome = law_of(kind, noise)
    high = edges[edges >= 0]
    x = outcome(np.log1p(np.expm1(np.minimum(high, 600.0)) / rate))
    above = rate * law.sf(x - 1) + (1 - rate) * law.sf(x), law.sf(x)
    mixed, q = (-np.diff(a) for a in above)
    rest = (1 - rate) * (1 - 2 * law.sf(0.5))
    return np.concatenate([q[::-1], mixed]), rest, 1 - above[0][-1] - above[1][-1]


def bracket(kind, noise, rate, k, epsilon, cell):
    """Bounds on delta of k rounds: losses moved to the lower, or the upper ends of their cells."""
    half = 2**17
    edges = cell * np.arange(-half, half + 1)
    inside, rest, whole = masses(kind, noise, rate, edges)
    assert whole > 1 - 1e-15
    found = []
    for up in (0, 1):
        moved = np.roll(inside, up)
        moved[half] += rest  # a loss of exactly 0 stays
        total = np.fft.irfft(np.fft.rfft(np.roll(moved, -half)) ** k, 2 * half)
        loss = cell * np.fft.fftfreq(2 * half, 1 / (2 * half))
        found.append(total @ np.maximum(-np.expm1(epsilon - loss), 0.0))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, noise, rate, k",
    [("gaussian", 2.0, 0.02, 99), ("gaussian", 1.5, 0.3, 3), ("laplace", 3.0, 0.2, 4)]
    + [
        pytest.param("gaussian", 1.0, 0.1, 20, marks=pytest.mark.slow),
        pytest.param("laplace", 1.0, 0.1, 25, marks=pytest.mark.slow),
    ],
)
def test_compositions_by_brute_force(kind, noise, rate, k):
    right = CALLS[kind](noise, rate).compose(k)
    e = right.epsilon(1e-4)
    low, high = bracket(kind, noise, rate, k, e, 2e-4 if k < 50 else 6e-5)
    holds(high < 1.3 * low)

    def check(loss):
        ends = loss.delta_interval(e)
        holds((ends[0] <= high * (1 + 1e-9)) & (ends[1] >= low * (1 - 1e-9)))

    check(right)
    base = dp.gaussian if kind == "gaussian" else dp.laplace
    # the sensitivity of addition; a fair pair run in its worse direction throughout
    must_fail(check, dp.subsample_substitution(base(noise), rate).compose(k))
    if k > 10:
        must_fail(check, dp.subsample(base(noise, 2.0), rate).compose(k))


def test_the_worse_direction_of_the_mixture_is_less_than_the_pair():
    for kind, noise, rate in (
        ("gaussian", 1.0, 0.1),
        ("gaussian", 1.5, 0.02),
        ("laplace", 1.0, 0.1),
    ):
        base = getattr(dp, kind)(noise, 2.0)
        one, both = dp.subsample(base, rate), CALLS[kind](noise, rate)
        equal(one.delta(0.01), both.delta(0.01), rtol=1e-12)  # of one round they agree
        e = one.compose(200).epsilon(1e-3)
        holds(1.01 * one.compose(200).delta(e) < both.compose(200).delta_interval(e)[0])


def explicit(p, q, rate):
    """The symmetrised pair of a self-reversed finite one, outcome by outcome."""
    p, q = np.array(p), np.array(q)
    mixed, on = rate * p + (1 - rate) * q, p > q
    rest = 1 - mixed[on].sum() - q[on].sum()
    both = np.concatenate([mixed[on], q[on], [rest]]), np.concatenate([q[on], mixed[on], [rest]])
    return [law / law.sum() for law in both]


def test_finite_laws_are_split_outcome_by_outcome():
    for rate in (1e-3, 0.2, 0.9):
        for p, q in (([0.75, 0.25], [0.25, 0.75]), ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])):
            pair = dp.finite(*explicit(p, q, rate))
            loss = dp.subsample_substitution(dp.finite(p, q), rate)
            for k in (1, 7):
                e = np.linspace(0.0, 1.0, 6) * k**0.5 * rate
                equal(loss.compose(k).delta(e), pair.compose(k).delta(e), rtol=1e-9, atol=1e-14)
    loss = dp.subsample_substitution(dp.finite([0.2, 0.5, 0.3, 0.0], [0.0, 0.3, 0.5, 0.2]), 0.1)
    equal(loss.delta(5.0), 0.02)  # infinite losses, at the rate


@pytest.mark.slow
def test_integer_noise_is_near_the_continuous_one():
    whole = dp.subsample_substitution(dp.discrete_gaussian(6.0, 2), 0.1).compose(10)
    real = dp.subsample_substitution(dp.gaussian(6.0, 2), 0.1).compose(10)
    equal(whole.epsilon(1e-4), real.epsilon(1e-4), rtol=1e-3)
    laplace = dp.subsample_substitution(dp.discrete_laplace(40.0, 20), 0.1).compose(10)
    equal(laplace.epsilon(1e-4), CALLS["laplace"](4.0, 0.1).compose(10).epsilon(1e-4), rtol=2e-2)


@pytest.mark.parametrize("kind, noise, rate", CASES)
def test_the_trade_off_of_one_round_is_the_highest_line(kind, noise, rate):
    loss, u = CALLS[kind](noise, rate), np.linspace(0.0, 2 / noise, 20001)
    u = u if kind == "laplace" else np.linspace(0.0, 8 * 2 / noise + 4 / noise**2, 20001)
    e = np.log1p(rate * np.expm1(u))
    e = np.concatenate([-e, e])
    lines = 1 - np.maximum(profile(kind, noise, rate, np.exp(e)), 0.0)

    def check(tradeoff):
        for alpha in (1e-3, 0.05, 0.3, 0.5, 0.7, 0.99):
            true = max(0.0, float(np.max(lines - alpha * np.exp(e))))
            at_most(tradeoff(alpha), true, rtol=1e-6, atol=1e-9)
            at_most(true, tradeoff(alpha), rtol=1e-6, atol=1e-9)

    check(loss.tradeoff)
    if rate < 0.9:
        must_fail(check, dp.subsample(getattr(dp, kind)(noise, 2.0), rate).tradeoff)


@pytest.mark.parametrize(
    "kind, noise, rate",
    [
        pytest.param(*case, marks=pytest.mark.slow if case == ("gaussian", 2.0, 0.01) else ())
        for case in CASES
        if case[2] > 1e-3
    ],
)
def test_the_ceiling_is_one(kind, noise, rate):
    step = CALLS[kind](noise, rate)._parts[0][0]
    for c in (-0.4, 0.5, 6.0):
        spread = float(step.derivatives(np.array([c]))[2][0]) ** 0.5
        y = np.geomspace(0.01, 60.0, 120) / spread
        law = step.law(c, float(y[-1]))
        weights = np.exp(law.log_p + c * law.loss - step.cumulant_at(c))
        size = np.log(np.abs(np.exp(1j * np.outer(y, law.loss)) @ weights))
        ceiling = step.ceiling(c)

        def check(ceiling, size=size, y=y):
            highest = np.maximum.accumulate(size[::-1])[::-1]
            at_most(highest, np.array([ceiling(height) for height in y]), atol=1e-9, rtol=1e-9)

        check(ceiling)
        must_fail(check, lambda height, ceiling=ceiling: ceiling(1.5 * height) - 0.5)


def test_what_is_not_proved_is_refused_by_name():
    def refuses(loss, word):
        with pytest.raises(ValueError, match=word):
            dp.subsample_substitution(loss, 0.1)

    refuses(dp.finite([0.5, 0.5], [0.2, 0.8]), "^loss must be its own reverse")
    refuses(dp.subsample(dp.gaussian(1.0), 0.1), "^loss must be a step without sampling")
    refuses(dp.subsample_substitution(dp.laplace(1.0), 0.1), "^loss must be a step without")
    refuses(dp.laplace(1.0).compose(2), "^loss must be one step")
    refuses(3.0, "^loss must be a PrivacyLoss")
    for rate in (-0.1, 1.1, float("nan"), "1", 1e-11):
        with pytest.raises(ValueError, match="^rate"):
            dp.subsample_substitution(dp.gaussian(1.0), rate)
    holds(dp.subsample_substitution(dp.gaussian(1.0), 0.0).epsilon(0.0) == 0.0)
    equal(dp.subsample_substitution(dp.gaussian(1.0), 1.0).delta(1.0), dp.gaussian(1.0).delta(1.0))
