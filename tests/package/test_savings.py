"""What the accountant leaves out because it can't matter: no answer changes, and none gets slow."""

from math import inf, log

import numpy as np
import pytest

import dpnotes as dp
from dpnotes.accountant import contour, inversion, lattice
from dpnotes.accountant.convolution import power
from dpnotes.accountant.law import EPS
from evidence import at_most, equal, holds, must_fail


@pytest.mark.parametrize("k", [1, 2, 7, 1000, 10**6, 10**12])
def test_a_power_by_squares_is_one(k):
    """To the round-off that the lattice allows for; of a law that seldom loses and of one that
    always does, most of whose transform vanishes."""
    rng = np.random.default_rng(k)
    for rate in (1.0, 1 / k):
        law = np.zeros(4096)
        law[rng.integers(0, 300, 20)] = rate / 20
        law[0] += 1 - law.sum()
        spectrum = np.fft.rfft(law)
        true = spectrum**k

        def check(found, true=true):
            room = lattice.FFT_NOISE * EPS * (5 + k)
            at_most(np.linalg.norm(found - true), room * np.linalg.norm(true))

        check(power(spectrum, k))
        must_fail(check, power(spectrum, k) * (1 + 1e-3 + 100 * EPS * k))


SETTINGS = [
    dp.subsample(dp.gaussian(1.0), 0.01).compose(1000),
    dp.subsample(dp.gaussian(0.7), 0.3).compose(3) + dp.gaussian(2.0),
    dp.subsample(dp.laplace(1.0), 0.1).compose(40) + dp.gaussian(3.0),
    dp.finite((0.3, 0.5, 0.2), (0.2, 0.3, 0.5)) + dp.gaussian(2.0),
    dp.finite((0.9, 0.1), (0.99, 0.01)).compose(5) + dp.gaussian(1.0),
]


@pytest.mark.parametrize("loss", SETTINGS, ids=str)
def test_a_direction_that_is_ruled_out_is_the_lesser(loss):
    """The answer is the greater of both directions, computed or not; at 0 they are the same."""
    for epsilon in (0.01, 0.5, 2.0, 6.0):
        both = np.array([way.delta(epsilon) for way in loss._directions])
        equal(loss.delta_interval(epsilon), both.max(axis=0)[[0, 2]], rtol=0.0, atol=0.0)
        least, other = sorted(loss._directions, key=lambda way: way.delta(epsilon)[0])
        holds(not other.certainly_below(epsilon, least.delta(epsilon)[0]), "the greater stays")


def test_an_epsilon_near_none_comes_from_one_line(monkeypatch):
    """Near delta(0) epsilon is known to fewer digits than delta: no other method helps."""
    loss = dp.subsample(dp.gaussian(2.0), 0.01).compose(100)
    most = loss.delta_interval(0.0)
    monkeypatch.setattr(inversion, "jumps_epsilon", None)
    monkeypatch.setattr(inversion, "lattice_epsilon", None)
    for share in (1e-4, 1e-6, 1e-8):
        delta = most[0] * (1 - share)
        low, high = loss.epsilon_interval(delta)
        holds(0 <= low < high, "an interval")
        at_most(loss.delta_interval(high)[0], delta * (1 + 1e-11))
        at_most(delta, loss.delta_interval(low)[1] * (1 + 1e-11))
        at_most((high - low) / high, 1e-9 / share * 1e-2)
    holds(loss.epsilon(most[1] * (1 + 1e-9)) == 0, "none is needed")


def test_ends_that_no_bound_reaches_say_nothing():
    class Dull:
        def sums(self, epsilon):
            return 0.0, 0.0, 1e300, 1e300

    low, _, high = inversion.certify(Dull(), 1, 1.0, -1.0)
    holds(low <= 0 and high == inf, (low, high))


def test_a_lattice_that_says_nothing_is_not_drawn():
    vast = dp.finite((0.39, 0.49, 0.12), (0.09, 0.2, 0.71)).compose(10**11)
    parts = vast._directions[0].parts
    holds(lattice.spread(parts, contour.saddle_for(parts, 1, log(1e-5))) is None, "too coarse")
    few = (dp.laplace(3.0) + dp.subsample(dp.laplace(2.0), 0.1))._directions[0].parts
    start = contour.saddle_for(few, 1, log(1e-3))
    holds(lattice.spread(few, start, 1e-14) is None, "it is known better")


def test_vast_rounds_of_a_small_loss():
    """As good as normal; the line is cut where the variance of the loss says so."""
    for loss in (
        dp.subsample(dp.laplace(8.0), 0.0008).compose(6 * 10**11),
        dp.laplace(5e5).compose(3 * 10**11),
    ):
        (part,) = loss._directions[0].parts
        variance = part[1] * float(part[0].derivatives(np.zeros(1))[2][0])
        low, high = loss.epsilon_interval(1e-11)
        at_most(high - low, 1e-8 * high)
        equal(high, dp.gaussian(variance**-0.5).epsilon(1e-11), rtol=1e-3)
