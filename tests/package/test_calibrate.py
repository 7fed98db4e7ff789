"""Calibration of random families: what is returned meets the target by the accountant's upper end,
and a number beyond it, by the tolerance that is stated, does not."""

import numpy as np
import pytest

import dpnotes as dp
from evidence import holds, must_fail

STATED = 1e-12  # of log x


def noise(rng):
    q, k = 10 ** rng.uniform(-3, -1), int(10 ** rng.uniform(1, 4))
    return lambda s: dp.subsample(dp.gaussian(s), q).compose(k), 1, rng.uniform(0.8, 4.0)


def laplace(rng):
    k = int(rng.integers(1, 4))
    return lambda b: dp.laplace(b).compose(k), 1, k * rng.uniform(0.5, 1.5)


def mixed(rng):
    q = float(rng.uniform(0.01, 0.2))
    other = dp.finite((0.51, 0.49), (0.5, 0.5))
    return (
        lambda s: dp.subsample(dp.gaussian(s), q).compose(20) + other,
        1,
        rng.uniform(0.8, 3.0),
    )


def rate(rng):
    s, k = float(rng.uniform(0.7, 4.0)), int(10 ** rng.uniform(1, 4))
    return lambda q: dp.subsample(dp.gaussian(s), q).compose(k), -1, 10 ** rng.uniform(-3, -0.5)


def steps(rng):
    s, q = float(rng.uniform(0.7, 4.0)), float(10 ** rng.uniform(-3, -1.5))
    return lambda k: dp.subsample(dp.gaussian(s), q).compose(k), 0, int(10 ** rng.uniform(1, 4))


FAMILIES = (noise, laplace, mixed, rate, steps)


def targets(kind, count):
    """Random families of a kind, each with an epsilon and a delta that about one member meets."""
    rng = np.random.default_rng(FAMILIES.index(kind))
    while count:
        family, way, member = kind(rng)
        delta = float(10 ** rng.uniform(-9, -2))
        epsilon = family(member).epsilon(delta)
        if epsilon > 0.02:
            count -= 1
            yield family, way, epsilon, delta * (1 if way else 1 + 1e-9)


def check(family, way, epsilon, delta, x):
    beyond = x + 1 if way == 0 else x * (1 - way * STATED)
    holds(family(x).delta_interval(epsilon)[1] <= delta, "the target is met")
    holds(family(beyond).delta_interval(epsilon)[1] > delta, "and just so")


@pytest.mark.parametrize("kind", FAMILIES)
def test_what_is_returned_just_meets_the_target(kind):
    for setting in targets(kind, 3):
        family, way, epsilon, delta = setting
        x = dp.calibrate(family, epsilon, delta)
        check(*setting, x)
        step = 3 * STATED * x if way else 1
        must_fail(check, *setting, x + step)
        must_fail(check, *setting, x - step)


def test_no_excess_is_rounded_away():
    """delta at the answer is no more than the target, not by one float."""
    for epsilon in (0.5, 1.0, 2.0):
        q = dp.calibrate(lambda q: dp.subsample(dp.gaussian(1.0), q).compose(100), epsilon, 1e-5)
        holds(dp.subsample(dp.gaussian(1.0), q).compose(100).delta(epsilon) <= 1e-5, q)
