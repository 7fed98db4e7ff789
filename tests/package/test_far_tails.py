"""Upper ends hold however small delta is: down to 1e-290, most often for rare sampling."""

import numpy as np
import pytest
from mpmath import mp

import dpnotes as dp
from dpnotes import numerics
from evidence import at_most, equal, holds


def some_step(rng):
    """A step of any kind; two of three are sampled, and most of these rarely."""
    noise, rate = float(np.exp(rng.uniform(-1.2, 2.5))), float(10 ** rng.uniform(-10, 0))
    smooth, lattice = dp.gaussian(noise), dp.discrete_gaussian(noise + 0.3)
    steps = [
        smooth,
        dp.laplace(noise),
        dp.randomized_response(1 / noise),
        lattice,
        dp.finite(*rng.dirichlet(np.ones(4), size=2)),
        *[dp.subsample(smooth, rate)] * 5,
        *[dp.subsample_substitution(smooth, rate)] * 3,
        dp.subsample(dp.laplace(noise), rate),
        dp.subsample(lattice, rate),
    ]
    return steps[rng.integers(len(steps))]


def rises(rng):
    """k rounds cost no less than one, more cost no less, and epsilon(delta) meets delta."""
    step, delta = some_step(rng), np.sort(10 ** -rng.uniform(1, 290, 2))[::-1]
    run = step.compose(int(10 ** rng.uniform(0.3, 3)))
    if rng.random() < 0.15:
        run = run + some_step(rng)
    (least, _), (low, high) = step.epsilon_interval(delta), run.epsilon_interval(delta)
    at_most(least, high, rtol=1e-12, atol=1e-300)
    at_most(low, run.compose(2).epsilon(delta), rtol=1e-12, atol=1e-300)
    at_most(low[0], high[1], rtol=1e-12)  # epsilon does not grow with delta
    at_most(run.delta_interval(high)[0], delta, rtol=1e-12)


SEEDS = [0, 1, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(2, 500))]


@pytest.mark.parametrize("seed", SEEDS)
def test_more_costs_more(seed):
    """Three for each seed: six runs in the usual suite, 1,500 in the thorough one."""
    rng = np.random.default_rng([56, seed])
    for _ in range(3):
        rises(rng)


RARE = [  # where one step alone was said to cost more than all: sigma, rate, rounds, delta
    (dp.subsample, 1.5411711733584272, 1.2573875756907864e-07, 40, 3.58e-176),
    (dp.subsample, 3.3151749449103454, 1.3271907846746998e-09, 27, 1e-250),
    (dp.subsample, 1.1869959055473789, 1.9397026838033844e-05, 2, 1.47e-85),
    (dp.subsample_substitution, 1.4455817506054405, 2.823834452106659e-08, 2, 1.06e-120),
]


@pytest.mark.parametrize("sampled, sigma, rate, k, delta", RARE)
def test_more_than_one_step(sampled, sigma, rate, k, delta):
    """Lines fall below what is only bounded, and an error that was clipped looked like nothing."""
    step = sampled(dp.gaussian(sigma), rate)
    at_most(step.epsilon_interval(delta)[0], step.compose(k).epsilon(delta))


def test_a_tail_where_no_line_is_had():
    """Further out than an epsilon, delta is no larger."""
    run = dp.subsample(dp.gaussian(3.3151749449103454), 1.3271907846746998e-09).compose(27)
    place = run.epsilon(1e-38)
    at_most(run.delta(np.array([2.0, 30.0, 1e3]) * place), 1.01e-38)


@mp.workdps(60)
def closed_form(sigma, rate, epsilon):
    """delta of one sampled step, the mixture against q."""
    x = sigma * mp.log1p(mp.expm1(mp.mpf(epsilon)) / rate) + 1 / mp.mpf(sigma) / 2
    right = [mp.erfc(y / mp.sqrt(2)) / 2 for y in (x, x - 1 / mp.mpf(sigma))]
    return mp.mpf(rate) * right[1] - (mp.expm1(mp.mpf(epsilon)) + rate) * right[0]


def test_one_sampled_step():
    """Its answer is narrow, and met by the closed form in 60 digits: 300 random steps."""
    rng = np.random.default_rng(57)
    for _ in range(300):
        sigma, rate = float(10 ** rng.uniform(-1, 1)), float(10 ** rng.uniform(-10, -0.01))
        delta = float(10 ** rng.uniform(-250, np.log10(rate) - 0.1))
        low, high = dp.subsample(dp.gaussian(sigma), rate).epsilon_interval(delta)
        holds(closed_form(sigma, rate, high) <= delta * (1 + 1e-300), "the upper end")
        holds((low == 0) | (closed_form(sigma, rate, low) >= delta), "the lower end")
        at_most(high - low, 1e-9 * high + 1e-14 / sigma**2)
    steep = dp.subsample(dp.gaussian(0.11494581468161137), 1.8777533357847481e-10)
    equal(steep.epsilon(3.324928619230803e-12), 32.8545963350919, rtol=1e-13)


@mp.workdps(50)
def test_the_scaled_error_function():
    """erfcx to 4 EPS, the error of a function in the accountant's error model: by mpmath, where its
    two parts meet (x = 2 pi), at 0 and far out."""
    rng = np.random.default_rng(5)
    meets = 2 * np.pi * (1 + np.array([-1, 0, 1]) * 2.0**-52)
    x = np.concatenate(
        [[0.0, 1e-300], meets, rng.uniform(0, 9, 300), 10 ** rng.uniform(-9, 1.9, 100)]
    )
    exact = [mp.exp(mp.mpf(y) ** 2) * mp.erfc(mp.mpf(y)) for y in x.tolist()]
    off = [abs(mp.mpf(y) / z - 1) for y, z in zip(numerics.erfcx(x).tolist(), exact, strict=True)]
    assert max(off) <= 4 * 2.0**-52
    assert numerics.erfcx(np.array([1e10]))[0] == pytest.approx(1e-10 / np.pi**0.5, rel=1e-15)
