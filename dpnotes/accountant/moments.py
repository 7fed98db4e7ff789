"""What ``law`` computes of one law at real tilts, for many tilts: what all share is computed once.

The formulas are those of ``law``, and so are their errors.
"""

from functools import cached_property

import numpy as np

from .law import MOMENT, TABLE, exp_excess, log_moment, log_sum_exp, moment_noise
from .work import spend

__all__ = []

FAR = 30.0  # of an exponent, beyond which exp(w) - 1 - w is found with its weight in one exponent
MOST = 600.0  # of that sum


class Moments:
    """Of the loss at these nodes x."""

    def __init__(self, x, law):
        self.x, self.law = x, law

    @cached_property
    def _weights(self):
        """p, and the sizes of what the logarithm of each is a sum of."""
        return np.exp(self.law.log_p), 8 + np.abs(self.law.log_p)

    @cached_property
    def _first(self):
        """The mean of exp(-L) - 1 + L, and a bound on its round-off."""
        return self._excess(-self.law.loss)

    def _excess(self, w):
        """The mean of exp(w) - 1 - w, a bound on its round-off in EPS, and the largest exponent of
        its terms."""
        spend(MOMENT * len(w))
        (p, sizes), far = self._weights, np.flatnonzero(w > FAR)
        if not far.size:
            terms, top = p * exp_excess(w), FAR
        else:
            terms = p * exp_excess(np.minimum(w, FAR))
            exponent = self.law.log_p[far] + w[far]
            top = float(exponent.max())
            terms[far] = np.exp(np.minimum(exponent, MOST)) - p[far] * (1 + w[far])
        return float(terms.sum()), float(terms @ (sizes + np.abs(w))), top

    def at(self, c):
        """K(c) and a bound on its round-off in EPS, beyond 8 EPS of K itself: ``law.log_moment``,
        ``law.moment_noise``."""
        law = self.law
        if law.infinite > 0.5:  # a small mass is no difference from 1
            spend(TABLE * len(law.loss))
            return float(log_sum_exp(law.log_p + c * law.loss)), 0.0
        mean, first, top = self._first
        rest, noise, highest = self._excess(c * law.loss)
        moment = c * (mean + law.gap) - law.infinite + rest
        if max(top, highest) < MOST and -0.5 < moment < 1e6:
            return float(np.log1p(moment)), (noise + abs(c) * first) / (1 + moment)
        cumulant = float(log_moment(law, c))
        return cumulant, moment_noise(law, c, cumulant)
