"""What the constructors of losses serve, to the last float; and what a sampled finite step says of
its errors: those of the step that is sampled, carried on, and its own rounding."""

from dataclasses import replace
from itertools import product

import mpmath as mp
import numpy as np
import pytest

import dpnotes as dp
from dpnotes import losses
from dpnotes.accountant.binomial import errors
from dpnotes.accountant.step import Finite
from evidence import at_most, equal, must_fail

MIXED = {"sampled": losses._sampled_finite, "symmetrised": losses._symmetrised_finite}


# ------------------------------------------------------------------------------- what is served


@pytest.mark.parametrize(
    "call, name, low, high",
    [
        (dp.randomized_response, "epsilon", 1e-15, 1e5),
        (dp.laplace, "scale", 1e-4, 1e8),
        (lambda b: dp.laplace(3 * b, 3.0), "scale / sensitivity", 1e-4, 1e8),
        (dp.gaussian, "sigma", 1e-6, 1e15),
        (lambda b: dp.gaussian(3 * b, 3.0), "sigma / sensitivity", 1e-6, 1e15),
        (dp.discrete_laplace, "scale", 1e-4, 1e8),
        (lambda b: dp.discrete_laplace(3 * b, 3), "scale / sensitivity", 1e-4, 1e8),
        (dp.discrete_gaussian, "sigma", 0.25, 1e4),
        (lambda s: dp.discrete_gaussian(s, 2), "sigma / sensitivity", 0.5, None),
        (lambda s: dp.discrete_gaussian(s, 2), "sigma", None, 1e4),
        (lambda s: dp.subsample(dp.gaussian(s), 0.1), "sigma of loss", 0.01, 1e6),
        (lambda s: dp.subsample_substitution(dp.gaussian(s), 0.1), "sigma of loss", 0.01, 1e6),
        (lambda rate: dp.subsample(dp.gaussian(1.0), rate), "rate", 1e-10, None),
        (lambda rate: dp.subsample_substitution(dp.gaussian(1.0), rate), "rate", 1e-10, None),
        (
            lambda rate: dp.subsample(dp.subsample(dp.gaussian(1.0), 0.5), rate),
            "rate",
            2e-10,
            None,
        ),
    ],
)
def test_the_ends_of_what_is_served(call, name, low, high):
    for end, beyond in ((low, 1 - 1e-9), (high, 1 + 1e-9)):
        if end is not None:
            assert isinstance(call(end / beyond), dp.PrivacyLoss)  # just within
            with pytest.raises(ValueError, match=f"^{name} must be"):
                call(end * beyond)


def test_the_largest_sensitivity_of_whole_numbers():
    for family, noise in ((dp.discrete_laplace, 1e5), (dp.discrete_gaussian, 1e4)):
        assert isinstance(family(noise, 10_000), dp.PrivacyLoss)
        with pytest.raises(ValueError, match="^sensitivity must be"):
            family(noise, 10_001)


def test_nothing_is_lost_where_nobody_is_sampled():
    step = dp.finite([0.5, 0.3, 0.2], [0.2, 0.3, 0.5])
    for nothing in (
        dp.randomized_response(0.0),
        dp.subsample(step, 0.0),
        dp.subsample_substitution(step, 0.0),
    ):
        assert nothing.delta(0.0) == nothing.epsilon(0.0) == nothing.renyi(7.0) == 0.0
    for same in (dp.subsample(step, 1.0), dp.subsample_substitution(step, 1.0)):
        assert same.delta(0.1) == step.delta(0.1) > 0


# ----------------------------------------------------------------- a law that is its own reverse


@pytest.mark.parametrize(
    "p, q",
    [
        ([0.5, 0.5], [0.2, 0.8]),
        ([0.5, 0.3, 0.2], [0.3, 0.2, 0.5]),
        ([0.4, 0.3, 0.3], [0.3, 0.4, 0.3 + 1e-12]),
        ([0.5, 0.5, 0.0], [0.5, 0.3, 0.2]),
        ([0.4, 0.3, 0.3, 0.0], [0.0, 0.3, 0.3, 0.4 + 1e-9]),
    ],
)
def test_a_law_that_is_not_its_own_reverse_is_refused_from_both_sides(p, q):
    q = np.array(q) / np.sum(q)
    for one, other in ((p, q), (q, p)):
        with pytest.raises(ValueError, match="^loss must be its own reverse"):
            dp.subsample_substitution(dp.finite(one, other), 0.1)
    both = (p, p[::-1]), (q, q[::-1])  # a law and its mirror image are one
    for one, other in both:
        assert isinstance(dp.subsample_substitution(dp.finite(one, other), 0.1), dp.PrivacyLoss)


# ------------------------------------------------------------------- errors of a sampled step


def exact(kind, loss, log_p, infinite, lost, rate):
    """{loss: (loss, log_p)} of the sampled step, in order of its losses, with mpmath's numbers."""
    rows = []
    for u, v in zip(loss, log_p, strict=True):
        mixed = mp.log(1 + rate * mp.expm1(u))
        rows.append((mixed, v + mp.log(rate + (1 - rate) * mp.exp(-u)), v - u, u, v))
    if kind == "sampled":
        found = [(mixed, log_mix) for mixed, log_mix, *_ in rows]
        if lost:
            found.append((mp.log(1 - rate), mp.log(1 - rate) + mp.log(lost)))
        return sorted(found)
    rest = mp.mpf(1 - rate) * infinite
    found = []
    for mixed, log_mix, log_q, u, v in rows:
        if u > 0:
            found += [(mixed, log_mix), (-mixed, log_q)]
            rest += (1 - rate) * (mp.exp(v) - mp.exp(v - u))
        elif u == 0:
            rest += mp.exp(v)
    return sorted([*found, (mp.mpf(0), mp.log(rest))])


def numbers_of(step):
    return np.array(step.losses), np.array(step.log_p)


STEPS = {
    "coin": ([0.75, 0.25], [0.25, 0.75]),
    "rare": ([1 - 2.0**-60, 2.0**-60], [2.0**-60, 1 - 2.0**-60]),
    "far": ([1.0, 1e-250], [1e-250, 1.0]),
    "three": ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    "close": ([0.5, 0.5 - 2.0**-40, 2.0**-40], [0.5 - 2.0**-40, 0.5, 2.0**-40]),
    "leaky": ([0.25, 0.4375, 0.3125, 0.0], [0.0, 0.3125, 0.4375, 0.25]),
}


@pytest.mark.parametrize("kind", MIXED)
@pytest.mark.parametrize("name", STEPS)
def test_rounding_of_a_sampled_step_is_within_what_it_says(kind, name):
    """The step is taken as exact: what is left is the rounding of the mixture itself."""
    whole = dp.finite(*STEPS[name])._parts[0][0]
    none = tuple(0.0 for _ in whole.losses)
    step = replace(whole, errors=(none, none))

    def check(share):
        for rate in (1e-9, 0.01, 0.3, 0.999):
            found = MIXED[kind](step, rate)
            with mp.workdps(60):
                known = exact(kind, *whole_numbers(step), mp.mpf(rate))
                for of, values, allowed in zip(
                    (0, 1), numbers_of(found), errors(found), strict=True
                ):
                    assert len(values) == len(known) and np.all(allowed >= 0)
                    off = [
                        abs(mp.mpf(v) - row[of])
                        for v, row in zip(values.tolist(), known, strict=True)
                    ]
                    assert all(o <= share * a for o, a in zip(off, allowed.tolist(), strict=True))

    check(1.0)
    must_fail(check, 1e-4)


def whole_numbers(step):
    loss, log_p = ([mp.mpf(x) for x in each] for each in (step.losses, step.log_p))
    return loss, log_p, mp.mpf(step.infinite), mp.mpf(step.lost)


@pytest.mark.parametrize("kind", MIXED)
def test_errors_of_a_step_are_carried_on_and_not_enlarged(kind):
    """Of all steps within the errors, one is as far off as the mixture says, and none further."""
    p, q = STEPS["leaky"] if kind == "sampled" else STEPS["three"]
    step = dp.finite(p, q)._parts[0][0]
    loss, log_p = numbers_of(step)
    blur, blur_p = 1e-7 * np.abs(loss), 1e-7 * np.array([1.0, 2.0, 3.0][: len(loss)])

    def check(factor):
        for rate in (0.05, 0.5, 0.9):
            wide = MIXED[kind](replace(step, errors=(tuple(blur), tuple(blur_p))), rate)
            furthest = np.zeros((2, len(wide.losses)))
            for signs in product((-1, 1), repeat=2):
                moved = replace(
                    step,
                    losses=tuple(loss + signs[0] * blur),
                    log_p=tuple(log_p + signs[1] * blur_p),
                )
                off = np.abs(np.subtract(numbers_of(MIXED[kind](moved, rate)), numbers_of(wide)))
                furthest = np.maximum(furthest, off)
            said = factor * np.array(errors(wide))
            at_most(furthest, said, rtol=1e-6, atol=1e-13)
            rest = np.array(wide.losses) == 0  # the rest of all outcomes: one bound for them all
            at_most(said[:, ~rest], furthest[:, ~rest], rtol=1e-6, atol=1e-13)

    check(1.0)
    must_fail(check, 0.9)
    must_fail(check, 1.1)


def test_losses_of_integer_noise_are_equally_spaced():
    for sensitivity in (1, 2, 5):
        ((step, rounds),) = dp.discrete_laplace(7.0, sensitivity)._parts
        assert isinstance(step, Finite) and rounds == 1 and step.infinite == step.lost == 0
        equal(step.losses, (2 * np.arange(sensitivity + 1) - sensitivity) / 7.0)
        z = np.arange(-4000, 4001)  # the law itself, of noise and of noise that is moved
        law = np.exp(-np.abs(z) / 7.0) * np.tanh(0.5 / 7.0)
        moved = (np.abs(z - sensitivity) - np.abs(z)) / 7.0
        for value, log_p in zip(step.losses, step.log_p, strict=True):
            equal(np.exp(log_p), law[np.abs(moved - value) < 1e-9].sum(), rtol=1e-11)
