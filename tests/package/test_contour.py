"""The error model of a line: each of its parts is needed, and is enough.

Each part has lines on which it dominates, drawn with too short a period, too low, or with values of
K that round off; the check asks whether the enclosure holds the truth, and fails without the part.
"""

from dataclasses import replace
from math import expm1, log

import numpy as np
import pytest
from mpmath import mp, mpf

from dpnotes.accountant import contour
from dpnotes.accountant.law import EPS
from dpnotes.accountant.one_step import gaussian_log_delta
from dpnotes.accountant.sampled_gaussian import SampledGaussian
from dpnotes.accountant.step import Gaussian
from evidence import holds, must_fail


def gaussian_line(mu, c, period, height):
    """A line for one Gaussian, of any period and height, with honest bounds for both."""
    parts, y = ((Gaussian(mu), 1),), np.arange(0.0, height, 2 * np.pi / period)
    rivals = c * np.geomspace(0.02, 8.0, 60)
    bounds = contour.total(parts, rivals) + contour.chernoff(rivals)
    # |exp(K(c+iy) - K(c))| = exp(-mu^2 y^2/2), from the first node that is left out
    first = y[-1] + 2 * np.pi / period
    log_cut = -0.5 * (mu * first) ** 2 - log(np.pi * y[-1])
    shape, noise = Gaussian(mu).line(c, y)
    cumulant = contour.total_at(parts, c)
    round_off = contour.EPS * (16 + 8 * abs(cumulant))
    rivals = np.array([rivals, bounds])
    return contour.Line(c, period, y, cumulant, round_off, shape, noise, rivals, log_cut)


def drawn(reach, height, tilt=1.0):
    """Lines at random settings, each with an epsilon and the true log tail there; c at the saddle
    point times ``tilt``."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        mu, z = float(np.exp(rng.uniform(-2, 1.5))), float(rng.uniform(0.5, 5))
        epsilon = mu * mu / 2 + z * mu
        c = tilt * contour.saddle_at(((Gaussian(mu), 1),), 1, epsilon)[0]
        line = gaussian_line(mu, c, reach(z) * mu, height(z) / mu)
        yield line, epsilon, gaussian_log_delta(mu, epsilon)


def held(line, epsilon, truth):
    """Whether (1 - below, 1 + above) times the sum holds the tail, to 1e-12 of round-off."""
    value, _, above, below = line.sums(epsilon)
    error = expm1(truth - value)
    return -below - 1e-12 <= error <= above + 1e-12


def check(lines, without):
    holds(np.array([held(without(line), *rest) for line, *rest in lines]), "delta lies within")


def test_aliases_are_in_the_lower_bound():
    """A period of a few standard deviations: the sum over-reports by up to a few hundredths."""
    lines = list(drawn(lambda z: 6 / z + 2.0, lambda z: 12.0))
    sizes = np.array([line.sums(e)[3] for line, e, _ in lines])
    rest = np.array([line.sums(e)[2] for line, e, _ in lines])
    holds((sizes > 1e-9) & (sizes > 100 * rest), "aliases dominate")
    check(lines, lambda line: line)
    far = np.array([[1e-3, 1e9], [-1e9, -1e9]])  # rivals that promise none
    must_fail(check, lines, lambda line: replace(line, rivals=far))


def test_the_cut_is_in_both_bounds():
    """A line that ends where the integrand is still 1e-5 of its height."""
    lines = list(drawn(lambda z: 40.0, lambda z: 4.5))
    check(lines, lambda line: line)
    must_fail(check, lines, lambda line: replace(line, log_cut=-900.0))
    holds(np.array([min(line.sums(e)[2:]) for line, e, _ in lines]) > 1e-8, "the cut dominates")


def test_round_off_is_in_both_bounds():
    """K(c+iy) moved by as much as its noise says: the sum moves, and stays within the bounds."""

    def moved(line, seed):
        turn = np.random.default_rng(seed).choice([-1.0, 1.0], len(line.y))
        return replace(line, shape=line.shape + line.noise * turn)

    lines = []
    for seed, (line, epsilon, truth) in enumerate(drawn(lambda z: 40.0, lambda z: 12.0)):
        noisy = replace(line, noise=np.full(len(line.y), 1e-8))
        lines.append((moved(noisy, seed), epsilon, truth))
    check(lines, lambda line: line)
    must_fail(check, lines, lambda line: replace(line, noise=np.zeros(len(line.y))))


def test_round_off_of_terms_that_cancel(monkeypatch):
    """c at 2.2 times the saddle point, where the terms are far larger than their sum."""
    lines = list(drawn(lambda z: 40.0, lambda z: 12.0, tilt=2.2))
    wide = np.array([min(line.sums(e)[2:]) for line, e, _ in lines])
    holds(wide < 1, "a bound that says something")
    check(lines, lambda line: line)
    monkeypatch.setattr("dpnotes.accountant.lines.EPS", 0.0)
    must_fail(check, lines, lambda line: replace(line, noise=0 * line.noise, round_off=0.0))


@pytest.mark.slow
def test_round_off_of_a_moment_is_held():
    """K of one round to 40 digits: off by no more than ``cumulant_noise``, also where log q and
    the loss are large and their sum is not."""

    def check(noise):
        for sigma, rate, c in ((0.0832, 0.00224, 0.0296), (0.3, 1e-6, 0.5), (1.0, 0.01, 3.0)):
            step, s, r = SampledGaussian(sigma, rate), mpf(sigma), mpf(rate)

            def integrand(x, s=s, r=r, c=c):
                ratio = 1 - r + r * mp.exp((2 * x - 1) / (2 * s * s))
                return mp.npdf(x, 0, s) * ratio ** (1 + mpf(c))

            edges = [s * i for i in range(-14, int((c + 2) / sigma) + 15, 2)]
            with mp.workdps(40):
                truth = mp.log(mp.quad(integrand, edges))
                error = abs(mpf(step.cumulant_at(c)) - truth)
            holds(float(error) <= EPS * (noise(step, c) + 8 * abs(float(truth))), "K to its noise")

    check(lambda step, c: step.cumulant_noise(c))
    must_fail(check, lambda step, c: -8 * abs(step.cumulant_at(c)))
