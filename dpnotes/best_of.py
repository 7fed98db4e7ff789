"""Best of several runs: what it costs to run a private mechanism again and again and to publish
only the best output.

The number K of runs must be random. With f(s) = E s^K and an order of the outputs from worst to
best, the best of K runs is at most y with probability f(F(y)), F the distribution function of one
run: exact laws follow (X-best-law), and worst cases by f' alone (X-best-pure, X-best-renyi).
Papernot and Steinke 2022; Liu and Talwar 2019 for geometric K. The score counts as a part of the
output: it has to be private itself.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ._types import Answer, Array, ArrayLike, Generator
from ._validate import (
    count,
    distribution,
    generator,
    instance,
    nonnegative,
    open_probability,
    order,
    plain,
    positive,
    real,
    scalar,
)
from .accountant.privacy_loss import PrivacyLoss
from .losses import finite
from .renyi import rdp_to_dp_improved

__all__ = [
    "Runs",
    "fixed_runs",
    "geometric_runs",
    "negative_binomial_runs",
    "poisson_runs",
    "best_of_loss",
    "best_of_law",
    "best_of_pure",
    "best_of_renyi",
    "best_of_epsilon",
]

ORDERS = 1 + np.geomspace(0.05, 2000.0, 60)


class Runs(ABC):
    """The law of the number K of runs. `mean` is E K."""

    @abstractmethod
    def draw(self, *, rng: Generator) -> int:
        """One K."""

    @abstractmethod
    def _none(self):
        """P(K = 0)."""

    @abstractmethod
    def _masses(self, p, above):
        """f(1 - above) - f(1 - above - p): the best of K is an output that has probability p, where
        better ones have `above` together."""

    @abstractmethod
    def _steepest(self, epsilon):
        """Largest log f'(u)/f'(v) for probabilities u, v of an event under epsilon-close laws."""

    @abstractmethod
    def _renyi(self, loss, alpha):
        """A bound on the Renyi divergence of the best."""


@dataclass(frozen=True)
class _Fixed(Runs):
    k: int

    @property
    def mean(self):
        return float(self.k)

    def draw(self, *, rng):
        generator("rng", rng)
        return self.k

    def _none(self):
        return 0.0

    def _masses(self, p, above):
        below = np.maximum(1 - above, p)  # P(not better)
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = -(below**self.k) * np.expm1(self.k * np.log1p(-np.minimum(p / below, 1.0)))
        return np.where(p > 0, mass, 0.0)

    def _steepest(self, epsilon):
        return (self.k - 1) * epsilon

    def _renyi(self, loss, alpha):
        return loss.compose(self.k).renyi(alpha)


@dataclass(frozen=True)
class _NegativeBinomial(Runs):
    """P(K = k) in proportion to (1-gamma)^k prod_(0 < l < k) (l + eta)/(l + 1), k >= 1."""

    eta: float
    gamma: float

    @property
    def mean(self):
        return self._first() * self.gamma ** -(1 + self.eta)

    def _first(self):
        """P(K = 1) = f'(0), a limit at eta = 0."""
        rest, log = 1 - self.gamma, -np.log(self.gamma)
        return float(rest / log if self.eta == 0 else rest * self.eta / np.expm1(self.eta * log))

    def draw(self, *, rng):
        left, k, mass = generator("rng", rng).random(), 1, self._first()
        while left >= mass and mass > 0:
            left -= mass
            mass *= (1 - self.gamma) * (k + self.eta) / (k + 1)
            k += 1
        return k

    def _none(self):
        return 0.0

    def _masses(self, p, above):
        base = self.gamma + (1 - self.gamma) * above
        step, log = np.log1p((1 - self.gamma) * p / base), -np.log(self.gamma)
        if self.eta == 0:
            return step / log
        return -(base**-self.eta) * np.expm1(-self.eta * step) / np.expm1(self.eta * log)

    def _steepest(self, epsilon):
        rise = (1 - self.gamma) * -np.expm1(-epsilon) / (np.exp(-epsilon) + self.gamma)
        return (1 + self.eta) * np.log1p(rise)  # log of (e^epsilon + gamma)/(1 + gamma e^epsilon)

    def _renyi(self, loss, alpha):
        power, log = 1 + self.eta, -np.log(self.gamma)
        other = np.append(loss.renyi(ORDERS), loss.renyi(np.inf))
        back = np.append((1 - 1 / ORDERS) * other[:-1] + log / ORDERS, other[-1]).min()
        return loss.renyi(alpha) + power * back + np.log(self.mean) / (alpha - 1)


@dataclass(frozen=True)
class _Poisson(Runs):
    mean: float

    def draw(self, *, rng):
        return int(generator("rng", rng).poisson(self.mean))

    def _none(self):
        return np.exp(-self.mean)

    def _masses(self, p, above):
        return -np.exp(-self.mean * above) * np.expm1(-self.mean * p)

    def _steepest(self, epsilon):
        return self.mean * np.tanh(epsilon / 2)

    def _renyi(self, loss, alpha):
        power = alpha - 1
        moment = np.maximum(power * loss.renyi(alpha), 1e-300)
        gain = np.log(self.mean) + self.mean * power * loss.delta(-np.log1p(-1 / alpha))
        return np.logaddexp(0, gain + moment + np.log(-np.expm1(-moment))) / power


def fixed_runs(k: int) -> Runs:
    """Always k runs: the broken rule, k epsilon and nothing less (X-best-pure)."""
    return _Fixed(count("k", k))


def negative_binomial_runs(eta: float, gamma: float) -> Runs:
    """K >= 1, truncated negative binomial (Papernot and Steinke 2022, definition 1), eta > -1 and
    0 < gamma < 1. eta = 1 is geometric, eta = 0 logarithmic; P(K = 1) is largest for small eta."""
    eta = real("eta", scalar("eta", eta))
    if not -1 < eta <= 100:
        raise ValueError(f"eta must be in (-1, 100], got {eta!r}")
    return _NegativeBinomial(eta, open_probability("gamma", scalar("gamma", gamma)))


def geometric_runs(mean: float) -> Runs:
    """Run, then stop with probability 1/mean, else run again (Liu and Talwar 2019); mean > 1."""
    mean = positive("mean", scalar("mean", mean))
    if not mean > 1:
        raise ValueError(f"mean must be above 1, got {mean!r}")
    return negative_binomial_runs(1.0, 1 / mean)


def poisson_runs(mean: float) -> Runs:
    """Poisson; with probability exp(-mean) nothing is run and nothing published."""
    return _Poisson(positive("mean", scalar("mean", mean)))


def best_of_law(p: ArrayLike, runs: Runs) -> Array:
    """The law of the best of K runs, P(K = 0) first (X-best-law).

    `p`: probabilities of one run's outputs, from worst to best; ties of the score must be broken in
    an order fixed beforehand. Returns one entry more.
    """
    return _law(distribution("p", p), _runs(runs))


def _law(p, runs):
    above = np.append(np.cumsum(p[:0:-1])[::-1], 0.0)
    return np.append(runs._none(), runs._masses(p, above))


def best_of_loss(p: ArrayLike, q: ArrayLike, runs: Runs) -> PrivacyLoss:
    """The privacy loss of the best of K runs, where one run has the law `p` or `q` (X-best-law)."""
    p, q, runs = distribution("p", p), distribution("q", q), _runs(runs)
    if p.shape != q.shape:
        raise ValueError(f"q must be as long as p, got {len(p)} and {len(q)} entries")
    return finite(*(law / law.sum() for law in (_law(p, runs), _law(q, runs))))


def best_of_pure(epsilon: ArrayLike, runs: Runs) -> Answer:
    """The least epsilon of the best of K runs that holds for all epsilon-DP mechanisms and all
    scores (X-best-pure)."""
    epsilon = nonnegative("epsilon", epsilon)
    return plain(epsilon + _runs(runs)._steepest(epsilon))


def best_of_renyi(loss: PrivacyLoss, runs: Runs, alpha: ArrayLike) -> Answer:
    """A Renyi divergence, alpha > 1, that the best of K runs of `loss` does not exceed
    (X-best-renyi; after Papernot and Steinke 2022). Fixed K: that of all runs together."""
    instance("loss", loss, PrivacyLoss, "a PrivacyLoss")
    alpha, runs = np.asarray(order("alpha", alpha)), _runs(runs)
    if not ((alpha > 1) & np.isfinite(alpha)).all():
        raise ValueError(f"alpha must be finite and above 1, got {alpha!r}")
    return plain(runs._renyi(loss, alpha if alpha.ndim else float(alpha)))


def best_of_epsilon(loss: PrivacyLoss, runs: Runs, delta: float) -> float:
    """epsilon at `delta` of the best of K runs of `loss`, by the best order of `best_of_renyi`."""
    delta = open_probability("delta", scalar("delta", delta))
    return float(rdp_to_dp_improved(ORDERS, best_of_renyi(loss, runs, ORDERS), delta).min())


def _runs(runs):
    return instance("runs", runs, Runs, "a law of the number of runs")
