"""What ``law`` computes of one law at real tilts, for many tilts: what all share is computed once.

The formulas are those of ``law``, and so are their errors.
"""

from functools import cached_property

import numpy as np

from .law import MOMENT, exp_excess, log_moment, moment_noise
from .work import spend

__all__ = []

FAR = 30.0  # of an exponent and of K, beyond which terms are taken one by one in log space


class Moments:
    """Of the loss at these nodes x."""

    def __init__(self, x, law):
        self.x, self.law = x, law

    @cached_property
    def _first(self):
        """p, the mean of exp(-L) - 1 + L, and the sizes of what its terms are sums of; None where
        exp overflows."""
        law = self.law
        spend(MOMENT * len(law.loss))
        if not -law.loss.min(initial=0.0) < FAR:
            return None
        p, sizes = np.exp(law.log_p), 8 + np.abs(law.log_p)
        terms = p * exp_excess(-law.loss)
        return p, float(terms.sum()), float(terms @ (sizes + np.abs(law.loss))), sizes

    def at(self, c):
        """K(c) and a bound on its round-off in EPS: ``law.log_moment``, ``law.moment_noise``."""
        law = self.law
        tilted = c * law.loss
        if self._first is None or not (tilted.max() < FAR and -FAR < tilted.min() < FAR):
            return self._in_logs(c)
        spend(MOMENT * len(law.loss))
        p, mean, noise, sizes = self._first
        terms = p * exp_excess(tilted)
        moment = c * (mean + law.gap) - law.infinite + float(terms.sum())
        if not -0.5 < moment < 1e6:
            return self._in_logs(c)
        noise = float(terms @ (sizes + np.abs(tilted))) + abs(c) * noise
        return float(np.log1p(moment)), noise / (1 + moment)

    def _in_logs(self, c):
        cumulant = float(log_moment(self.law, c))
        return cumulant, moment_noise(self.law, c, cumulant)
