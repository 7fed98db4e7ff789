"""A sampled Gaussian beside the real line: the bounds are those of direct sums of moduli, the
interval that needs no search holds what the search finds, and K is that of ``law``."""

import numpy as np
import pytest

from dpnotes.accountant import shifted
from dpnotes.accountant.law import log_moment, mixed_loss_complex, moment_noise
from dpnotes.accountant.sampled_gaussian import SampledGaussian
from dpnotes.accountant.tilted import Tilted
from evidence import at_most, equal, holds, must_fail


def drawn(count, side, seed=1):
    """Random steps and tilts."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        sigma, rate = 10 ** rng.uniform(-0.4, 1.0), 10 ** rng.uniform(-4, -0.3)
        yield SampledGaussian(sigma, rate, side), float(10 ** rng.uniform(-1, 2.5))


def log_modulus(step, c, y, angle):
    """log of the sum of abs(integrand of M(c + iy)) along x + i sigma^2 angle, over M(c)."""
    s, power = step.sigma, step._power(c)
    x, log_h = step._points(Tilted(s, step.rate, power).spans(), 0.5 * step._spacing(c))
    real = mixed_loss_complex((x - 0.5) / s**2, 0.0, step.rate)
    loss = mixed_loss_complex((x - 0.5) / s**2, angle, step.rate)
    density = -0.5 * (x / s) ** 2
    bare = (density + power * real).real
    moved = (-0.5 * ((x + 1j * s**2 * angle) / s) ** 2 + (power + 1j * y) * loss).real
    return np.logaddexp.reduce(moved) - np.logaddexp.reduce(bare)


@pytest.mark.parametrize("side", [1, -1])
def test_bounds_beside_the_line_are_sums_of_moduli(side):
    true, bounds, numbers = [], [], range(4, 8)
    for step, c in drawn(12, side):
        for y in np.array([0.5, 4.0, 20.0]) / step.spread() ** 0.5:
            true += [log_modulus(step, c, y, shifted.ANGLES[n]) for n in numbers]
            bounds += step._shifted(c).log_bounds(y, numbers[0], numbers[-1] + 1).tolist()
    true, bounds = np.array(true), np.array(bounds)
    mild = np.abs(bounds) < 300

    def check(bounds):
        equal(bounds[mild], true[mild], rtol=1e-7, atol=1e-7)

    check(bounds)
    must_fail(check, bounds + 1e-5)


@pytest.mark.parametrize("side", [1, -1])
def test_a_ceiling_is_above_the_integral(side):
    for step, c in drawn(12, side, seed=2):
        height = 3 / max(float(step.derivatives(np.array([c]))[2][0]) ** 0.5, 1e-9)
        y = height * np.linspace(0.0, 3.0, 40)
        value, noise = step.line(c, y)
        bound = step.ceiling(c)(float(y[13]))
        at_most(value.real[13:] - noise[13:], bound, atol=1e-12)


def test_the_best_angle_of_the_grid_is_found():
    """From any guess on: what is convex is searched."""
    for step, c in drawn(12, 1, seed=3):
        found = step._shifted(c)
        for y in (1.0, 10.0, 100.0):
            least = min(0.0, float(np.min(found.log_bounds(y, 0, shifted.LAST))))
            equal(found.ceiling(y), least, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("power", [-300.0, -1.0, 0.0, 5.0])
def test_what_bounds_a_line_that_comes_down_does_not_decrease_over_the_angle(power):
    share = np.concatenate([np.geomspace(1e-9, 0.5, 60), 1 - np.geomspace(1e-9, 0.5, 60)])[:, None]

    def check(bound, angle):
        angles = np.linspace(1e-3, angle, 500)
        given = share, share * (1 - share), angles, power, 0.7 * angles**2
        for found, true in zip(bound(*given), shifted.beside(*given), strict=True):
            at_most(true, found, atol=1e-15)
            at_most((found / angles)[:, :-1], (found / angles)[:, 1:], rtol=1e-9)

    check(shifted.coming_down, shifted.ANGLE)
    must_fail(check, shifted.beside, shifted.ANGLE)
    if power < -1:
        must_fail(check, lambda *given: (shifted.beside(*given)[0], given[0] * given[2]), 2.3)
        must_fail(check, shifted.coming_down, 3.1)  # too large an angle


@pytest.mark.parametrize("side", [1, -1])
def test_the_interval_that_needs_no_search_holds_all(side):
    for step, c in drawn(200, side, seed=4):
        window = Tilted(step.sigma, step.rate, step._power(c))
        (low, high), spans = window.hull(), window.spans()
        slack = 0.3 * step.sigma  # of the search
        holds(low <= spans[0][0] + slack and spans[-1][1] <= high + slack, (low, high, spans))


@pytest.mark.parametrize("side", [1, -1])
def test_moments_are_those_of_the_law(side):
    for step, c in drawn(60, side, seed=5):
        real = step._real(step._spans(c), step._spacing(c))
        cumulant, noise = real.at(c)
        equal(cumulant, float(log_moment(real.law, c)), rtol=1e-13)
        equal(noise, moment_noise(real.law, c, cumulant), rtol=1e-6)
        must_fail(equal, real.at(c * (1 + 1e-10))[0], cumulant, rtol=1e-13)
