"""What ``calibrate`` may be asked for: a number of a run, and how large it may be.

A target bounds one number of a run: (low, high) = ``bound(run)``, at most ``most``. ``rough(run)``
is about the logarithm of high over most, at little cost, by saddle points.
"""

from dataclasses import dataclass
from math import exp, inf, log
from typing import ClassVar

import numpy as np

from ..checks import refusal, within
from .attacks import FLOOR
from .curves import gaussian_log_delta
from .privacy_loss import PrivacyLoss

PLACES = np.linspace(0.0, 1.0, 9)  # where a rough search looks
TPR_ERROR, MU_ERROR = 1e-11, 1e-6  # how far below the upper end the lower one is taken
ONE = "calibrate needs exactly one target: epsilon and delta, or tpr and fpr, or advantage, or mu"


@dataclass(frozen=True)
class Delta:
    """delta(epsilon) <= most, for most > 0."""

    epsilon: float
    most: float
    name: ClassVar[str] = "delta"
    adds: ClassVar[bool] = False

    def bound(self, run: PrivacyLoss) -> tuple[float, float]:
        return run.delta_interval(self.epsilon)

    def rough(self, run: PrivacyLoss) -> float:
        return run._roughly(self.epsilon) - log(self.most)


@dataclass(frozen=True)
class LargestLoss:
    """The largest loss, which is the sum of those of the steps: delta(most) = 0."""

    most: float
    name: ClassVar[str] = "epsilon"
    adds: ClassVar[bool] = True

    @property
    def epsilon(self) -> float:
        return self.most

    def bound(self, run: PrivacyLoss) -> tuple[float, float]:
        largest = run.epsilon(0.0)
        if largest == inf:
            raise refusal("delta", 0.0, "above 0 where losses are not bounded")
        return largest, largest


@dataclass(frozen=True)
class TruePositives:
    """tpr(fpr) <= most."""

    fpr: float
    most: float
    name: ClassVar[str] = "tpr"
    adds: ClassVar[bool] = False

    @property
    def epsilon(self) -> float:
        return log(self.most / self.fpr)

    def bound(self, run: PrivacyLoss) -> tuple[float, float]:
        high = run.tpr(self.fpr)
        return high * (1 - TPR_ERROR), high

    def rough(self, run: PrivacyLoss) -> float:
        """The least of delta(s) + e^s fpr on a grid."""
        lines = [exp(run._roughly(s)) + exp(s) * self.fpr for s in PLACES * self.epsilon]
        return log(min(lines) / self.most)


@dataclass(frozen=True)
class Mu:
    """The upper end of mu() <= most."""

    most: float
    name: ClassVar[str] = "mu"
    adds: ClassVar[bool] = False

    @property
    def epsilon(self) -> float:
        return self.most**2

    def bound(self, run: PrivacyLoss) -> tuple[float, float]:
        high = min(run.mu()[1], 1e3)  # as large as any, where it is infinite
        return high * (1 - MU_ERROR), high

    def rough(self, run: PrivacyLoss) -> float:
        """The most that delta(epsilon) exceeds that of Gaussian noise, on a grid."""
        places = PLACES * self.most * (6.4 + self.most / 2)  # at the last delta is near FLOOR
        allowed = gaussian_log_delta(self.most, places)
        shares = [run._roughly(s) - most for s, most in zip(places, allowed, strict=True)]
        return max(np.extract(allowed > log(FLOOR), shares))


def target_of(epsilon, delta, tpr, fpr, advantage, mu):
    """The target that was given: exactly one."""
    given = [epsilon is not None or delta is not None, tpr is not None or fpr is not None]
    given += [advantage is not None, mu is not None]
    if sum(given) != 1 or (epsilon is None) != (delta is None) or (tpr is None) != (fpr is None):
        raise ValueError(ONE)
    if mu is not None:
        return Mu(within("mu", mu, 1e-9, 12.0))
    if advantage is not None:
        return Delta(0.0, advantage)
    if tpr is not None:
        if tpr <= fpr:
            raise refusal("tpr", tpr, "above fpr, which guesses reach, too")
        return TruePositives(fpr, tpr)
    within("epsilon", epsilon, 0.0, 1e9)
    if not epsilon and not delta:
        raise refusal("epsilon", epsilon, "above 0 if delta is 0")
    return Delta(epsilon, delta) if delta else LargestLoss(epsilon)
