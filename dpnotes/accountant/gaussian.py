"""Gaussian noise on all of the data."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..checks import within
from .curves import OneStep, gaussian_log_delta
from .law import EPS, Step
from .sampled_gaussian import SampledGaussian


@dataclass(frozen=True)
class Gaussian(Step):
    """N(1, sigma^2) against N(0, sigma^2): L ~ N(mu^2/2, mu^2) with mu = 1/sigma. Two of them
    compose to one with the sum of mu^2."""

    mu: float
    rate, smooth = 1.0, True  # on all of the data

    def curve(self):
        return OneStep(partial(gaussian_log_delta, self.mu), self.mu, self.mu**2, 1.0, 1)

    def sampled(self, rate):
        return SampledGaussian(self.served_sigma(), rate)

    def served_sigma(self):
        """sigma, of what is sampled."""
        within("sigma of loss", float(f"{1 / self.mu:.12g}"), 0.01, 1e4)  # as it was typed
        return 1 / self.mu

    def tilt_limit(self):
        return 40 / self.mu

    def tables(self, c):
        return self.mu**2 * np.array([[c * (c + 1) / 2], [c + 0.5], [np.ones_like(c)]])

    def mean(self):
        return 0.5 * self.mu**2

    def cumulants(self, c):
        value = np.array([0.5 * self.mu**2 * c * (c + 1)])
        return value, 4 * EPS * abs(value)

    def work(self, _c, _h, count):
        return 10 * count

    def rows_along(self, c, h, count):
        y = h * np.arange(count)
        value = self.mu**2 * (-0.5 * y * y + 1j * (c + 0.5) * y)[None]
        yield slice(None), value, 4 * EPS * abs(value)

    def fallings(self, _c):
        return lambda height: np.array([-0.5 * (self.mu * height) ** 2])
