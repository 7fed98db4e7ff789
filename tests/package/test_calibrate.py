"""Calibration of random families: what is returned meets the target by the accountant's upper end,
and a number beyond it, by the tolerance that is stated, does not."""

import numpy as np
import pytest

import dpnotes as dp
from dpnotes.chapters import in_practice
from evidence import equal, holds, must_fail

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


@pytest.mark.parametrize("unit", [1e-7, 0.25, 60_000, 1e9])
def test_the_unit_of_the_number_changes_neither_the_answer_nor_what_it_takes(unit):
    """A batch size is a rate, percents are noise; 1 may be far from all that the family serves."""
    asked = []

    def family(x):
        asked.append(x)
        return mechanism(x / unit)

    def release(s):
        return dp.discrete_gaussian(sigma=5 * s, sensitivity=5)

    def noise(s):
        return dp.subsample(dp.gaussian(s), 0.01).compose(100)

    def rate(q):
        return dp.subsample(dp.gaussian(1.0), q).compose(1000)

    for mechanism in (noise, rate, release):
        asked.clear()
        found = dp.calibrate(family, 1.0, 1e-5)
        equal(found, unit * dp.calibrate(mechanism, 1.0, 1e-5), rtol=1e-11)
        assert len(asked) < 120


def test_at_delta_0_the_largest_losses_add_up():
    laplace = dp.calibrate(lambda s: dp.laplace(s, sensitivity=21).compose(10), 3.0, 0.0)
    equal(laplace, 70, rtol=1e-12)
    equal(dp.calibrate(lambda e: dp.randomized_response(e).compose(7), 1.0, 0.0), 1 / 7, rtol=1e-12)
    sampled = dp.calibrate(lambda b: dp.subsample(dp.laplace(b), 0.1).compose(7), 1.0, 0.0)
    equal(sampled, 1 / np.log1p(np.expm1(1 / 7) / 0.1), rtol=1e-12)
    steps = dp.calibrate(lambda k: dp.randomized_response(0.1).compose(k), 1.0, 0.0)
    assert (steps, type(steps)) == (10, int)
    assert dp.calibrate(lambda k: dp.randomized_response(0.1001).compose(k), 1.0, 0.0) == 9


def test_whole_numbers_of_which_more_cost_less():
    """Batches an epoch: the fewest that meet the target."""

    def epoch(steps):
        return in_practice.random_allocation(1.0, steps, cells=60)[1]

    steps = dp.calibrate(epoch, 1.0, 1e-5)
    assert type(steps) is int
    assert epoch(steps).delta(1.0) <= 1e-5 < epoch(steps - 1).delta(1.0)


def numbers(run, fpr):
    """What a target may bound: the argument's name, its value for this run, how it is asked."""
    yield {"fpr": fpr}, "tpr", lambda other: other.tpr(fpr), 3e-11
    yield {}, "advantage", lambda other: other.advantage(), 1e-11
    yield {}, "mu", lambda other: other.mu()[1], 3e-6


@pytest.mark.parametrize("kind", FAMILIES)
def test_attacks_and_mu_are_targets_too(kind):
    rng = np.random.default_rng(FAMILIES.index(kind) + 50)
    family, way, member = kind(rng)
    member = max(member, 50) if way == 0 else member
    run, fpr = family(member), float(10 ** rng.uniform(-4, -1))
    for more, name, found, stated in numbers(run, fpr):
        stated = max(stated, 1e-6 * (kind is laplace))  # its intervals are wider
        most = found(run) * (1 + 1e-9)

        def just_meets(x, most=most, found=found, stated=stated):
            beyond = x + 1 if way == 0 else x * (1 - way * 10 * stated)
            holds(found(family(x)) <= most, "the target is met")
            holds(found(family(beyond)) > most, "and just so")

        x = dp.calibrate(family, **more, **{name: most})
        just_meets(x)
        step = x * 1e-4 if way else 1 + x // 1000
        must_fail(just_meets, x + step)
        must_fail(just_meets, x - step)


def test_advantage_is_delta_at_epsilon_0():
    for family in (dp.gaussian, lambda r: dp.subsample(dp.gaussian(1.0), r).compose(100)):
        assert dp.calibrate(family, advantage=0.1) == dp.calibrate(family, 0.0, 0.1)


@pytest.mark.parametrize(
    "given",
    [
        {}, {"epsilon": 1.0}, {"delta": 1e-5}, {"tpr": 0.1}, {"fpr": 0.1},
        {"epsilon": 1.0, "delta": 1e-5, "mu": 0.5}, {"tpr": 0.1, "fpr": 0.01, "advantage": 0.1},
        {"mu": 1.0, "advantage": 0.1}, {"epsilon": 1.0, "tpr": 0.1}, {"delta": 1e-5, "mu": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_exactly_one_target_is_given(given):
    with pytest.raises(ValueError, match="exactly one target: epsilon and delta, or tpr and fpr"):
        dp.calibrate(dp.gaussian, **given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tpr": 0.01, "fpr": 0.01}, "^tpr must be above fpr"),
        ({"tpr": 1.0, "fpr": 0.01}, "^tpr must be a number in \\(0, 1\\)"),
        ({"tpr": 0.5, "fpr": 0.0}, "^fpr must be"),
        ({"advantage": 1.0}, "^advantage must be"),
        ({"mu": 0.0}, "^mu must be"),
        ({"mu": 13.0}, "^mu must be in"),
    ],
)
def test_a_target_that_makes_no_sense_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        dp.calibrate(dp.gaussian, **given)


def test_a_target_that_nothing_reaches_is_said():
    def leaks(s):  # a person is named with probability 0.1
        return dp.finite([0.9, 0.1, 0.0], [0.9, 0.0, 0.1]) + dp.gaussian(s)

    for target in ({"mu": 1.0}, {"advantage": 0.05}, {"tpr": 0.1, "fpr": 0.01}):
        with pytest.raises(ValueError, match="family must have an x that just meets the target"):
            dp.calibrate(leaks, **target)


REFUSED = [
    (lambda s: dp.subsample(dp.gaussian(s), 0.01).compose(1000), 1e-4, 1e-9,
     "x = 9999.998, the last one, has delta = 6.*e-09, more than 1e-09 .sigma of loss must be"),
    (lambda q: dp.subsample(dp.gaussian(9.0), q), 5.0, 1e-5,
     "x = 1, the last one, has delta = .*, not more than 1e-05 .rate must be a number in"),
    (lambda k: dp.laplace(1.0).compose(k), 0.5, 1e-5,
     "x = 1 alone has delta = 0.2212, more than 1e-05$"),
    (lambda k: dp.laplace(1.0).compose(k), 0.5, 0.0, "x = 1 alone has epsilon = 1, more than 0.5$"),
    (lambda s: dp.laplace(s, sensitivity=-1.0), 0.5, 1e-5, "^sensitivity must"),
    (dp.gaussian, 1.0, 0.0, "^delta must be above 0"),
    (dp.laplace, 0.0, 0.0, "^epsilon must be above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "epsilon", "delta", "words"), REFUSED)
def test_what_the_family_refuses_is_said(family, epsilon, delta, words):
    with pytest.raises(ValueError, match=words) as refused:
        dp.calibrate(family, epsilon, delta)
    assert "got" not in str(refused.value) or words.startswith("^")  # no number of the search
