"""Best of several runs: what it costs to run a private mechanism again and again and to publish
only the best output.

The number K of runs must be random. With f(s) = E s^K and an order of the outputs from worst to
best, the best of K runs is at most y with probability f(F(y)), F the distribution function of one
run: exact laws follow (X-best-law), and worst cases by f' alone (X-best-pure, X-best-renyi).
Papernot and Steinke 2022; Liu and Talwar 2019 for geometric K. The score counts as a part of the
output: it has to be private itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from typing import overload

import numpy as np

from ...accountant import PrivacyLoss, finite
from ...checks import (
    Array, ArrayLike, Count, Distribution, Nonnegative, OpenProbabilityNumber, OrderAboveOne,
    PositiveNumber, RealNumber, checked, refusal,
)  # fmt: skip
from ...numerics import orders_near
from ..renyi_dp import ORDERS, rdp_to_dp_improved

LEAST_CHANCE = 1e-307  # of an output to be the best: its loss would lose digits


class Runs(ABC):
    """The law of the number K of runs, with the generating function f.

    >>> stopping.geometric_runs(10.0).mean
    10.0
    """

    mean: float  # E K
    none = 0.0  # P(K = 0)

    @abstractmethod
    def masses(self, p: Array, above: Array, upto: Array) -> Array:
        """P(the best of K runs is this output), f(upto) - f(upto - p). It has probability p in one
        run, all better outputs have `above` together, and `upto` = 1 - above."""

    @abstractmethod
    def steepest(self, epsilon: Array) -> Array:
        """The largest ln f'(u)/f'(v), for u, v the probabilities of an event under
        epsilon-close laws."""

    @abstractmethod
    def renyi(self, loss: PrivacyLoss, alpha: Array) -> Array:
        """A bound on the Renyi divergence of the best."""


@dataclass(frozen=True)
class _Fixed(Runs):
    k: int

    @property
    def mean(self):
        return float(self.k)

    def masses(self, p, above, upto):
        with np.errstate(divide="ignore", invalid="ignore"):
            mass = -(upto**self.k) * np.expm1(self.k * np.log1p(-np.minimum(p / upto, 1.0)))
        return np.where(p > 0, mass, 0.0)

    def steepest(self, epsilon):
        return (self.k - 1) * epsilon

    def renyi(self, loss, alpha):
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

    def masses(self, p, above, upto):
        base = self.gamma + (1 - self.gamma) * above
        step, log = np.log1p((1 - self.gamma) * p / base), -np.log(self.gamma)
        if self.eta == 0:
            return step / log
        return -(base**-self.eta) * np.expm1(-self.eta * step) / np.expm1(self.eta * log)

    def steepest(self, epsilon):
        rise = (1 - self.gamma) * -np.expm1(-epsilon) / (np.exp(-epsilon) + self.gamma)
        return (1 + self.eta) * np.log1p(rise)  # log of (e^epsilon + gamma)/(1 + gamma e^epsilon)

    def renyi(self, loss, alpha):
        log = -np.log(self.gamma)

        def choice(order):
            """What one more run to choose from costs, by a divergence of any other order."""
            return (1 - 1 / order) * loss.renyi(order) + log / order

        near_best = orders_near(choice(ORDERS), ORDERS)
        least = min(choice(near_best).min(), loss.renyi(np.inf))  # at an infinite order
        return loss.renyi(alpha) + (1 + self.eta) * least + np.log(self.mean) / (alpha - 1)


@dataclass(frozen=True)
class _Poisson(Runs):
    rate: float

    @property
    def mean(self):
        return self.rate

    @property
    def none(self):
        return float(np.exp(-self.mean))

    def masses(self, p, above, upto):
        return -np.exp(-self.mean * above) * np.expm1(-self.mean * p)

    def steepest(self, epsilon):
        return self.mean * np.tanh(epsilon / 2)

    def renyi(self, loss, alpha):
        power = alpha - 1
        moment = np.maximum(power * loss.renyi(alpha), 1e-300)
        gain = np.log(self.mean) + self.mean * power * loss.delta(-np.log1p(-1 / alpha))
        return np.logaddexp(0, gain + moment + np.log(-np.expm1(-moment))) / power


@checked
def fixed_runs(k: Count) -> Runs:
    """Always k runs: the broken rule, k epsilon and nothing less (X-best-pure).

    >>> stopping.fixed_runs(10).mean
    10.0
    """
    return _Fixed(k)


@checked
def negative_binomial_runs(eta: RealNumber, gamma: OpenProbabilityNumber) -> Runs:
    """K >= 1, truncated negative binomial (Papernot and Steinke 2022, definition 1), eta > -1 and
    0 < gamma < 1. eta = 1 is geometric, eta = 0 logarithmic; P(K = 1) is largest for small eta.

    >>> round(stopping.negative_binomial_runs(eta=0.0, gamma=0.1).mean, 4)
    3.9087
    """
    if not -1 < eta <= 100:
        raise refusal("eta", eta, "in (-1, 100]")
    return _NegativeBinomial(eta, gamma)


@checked
def geometric_runs(mean: PositiveNumber) -> Runs:
    """Run, then stop with probability 1/mean, else run again (Liu and Talwar 2019); mean > 1.

    >>> round(stopping.best_of_pure(0.1, stopping.geometric_runs(5.0)), 4)
    0.2333
    """
    if not mean > 1:
        raise refusal("mean", mean, "above 1")
    return negative_binomial_runs(1.0, 1 / mean)


@checked
def poisson_runs(mean: PositiveNumber) -> Runs:
    """Poisson; with probability exp(-mean) nothing is run and nothing published.

    >>> round(stopping.poisson_runs(3.0).none, 4)
    0.0498
    """
    return _Poisson(mean)


@checked
def best_of_law(p: Distribution, runs: Runs) -> Array:
    """The law of the best of K runs, P(K = 0) first (X-best-law); one entry more than `p`.

    `p`: probabilities of one run's outputs, from worst to best; ties of the score must be broken in
    an order fixed beforehand.

    >>> stopping.best_of_law([0.5, 0.5], stopping.fixed_runs(2))
    array([0.  , 0.25, 0.75])
    """
    above = np.append(np.cumsum(p[:0:-1])[::-1], 0.0)
    upto = np.where(above < 0.5, 1 - above, np.cumsum(p))  # a difference only where it is large
    return np.append(runs.none, runs.masses(p, above, upto))


@checked
def best_of_loss(p: Distribution, q: Distribution, runs: Runs) -> PrivacyLoss:
    """The privacy loss of the best of K runs, where one run has the law `p` or `q` (X-best-law).

    Refused where fixed runs make an output the best with a chance below LEAST_CHANCE.

    >>> best = stopping.best_of_loss([0.6, 0.4], [0.5, 0.5], stopping.fixed_runs(2))
    >>> round(best.epsilon(0.0), 4)
    0.3646
    """
    if p.shape != q.shape:
        raise ValueError(f"q must be as long as p, got {len(p)} and {len(q)} entries")
    laws = np.array([best_of_law(p, runs), best_of_law(q, runs)])
    if (laws[:, 1:].min(0)[(p > 0) & (q > 0)] < LEAST_CHANCE).any():
        raise ValueError(f"runs must leave each output a chance of {LEAST_CHANCE} to be the best")
    return finite(*(laws / laws.sum(1, keepdims=True)))


@overload
def best_of_pure(epsilon: float, runs: Runs) -> float: ...
@overload
def best_of_pure(epsilon: ArrayLike, runs: Runs) -> Array: ...
@checked
def best_of_pure(epsilon: Nonnegative, runs: Runs) -> float | Array:
    """The least epsilon of the best of K runs that holds for all epsilon-DP mechanisms and all
    scores (X-best-pure).

    >>> round(stopping.best_of_pure(0.1, stopping.fixed_runs(10)), 4)
    1.0
    """
    return epsilon + runs.steepest(epsilon)


@overload
def best_of_renyi(loss: PrivacyLoss, runs: Runs, alpha: float) -> float: ...
@overload
def best_of_renyi(loss: PrivacyLoss, runs: Runs, alpha: ArrayLike) -> Array: ...
@checked
def best_of_renyi(loss: PrivacyLoss, runs: Runs, alpha: OrderAboveOne) -> float | Array:
    """A Renyi divergence, alpha > 1, that the best of K runs of `loss` does not exceed
    (X-best-renyi; after Papernot and Steinke 2022). Fixed K: that of all runs together.

    Divergences grow with the order: of the bounds at alpha and at larger orders it is the least.

    >>> round(stopping.best_of_renyi(dp.gaussian(10.0), stopping.geometric_runs(5.0), 20.0), 4)
    0.5335
    """
    finer = orders_near(runs.renyi(loss, ORDERS), ORDERS)
    orders = np.unique(np.concatenate([np.ravel(alpha), ORDERS, finer]))
    least = np.minimum.accumulate(runs.renyi(loss, orders)[::-1])[::-1]
    return least[np.searchsorted(orders, alpha)]


@checked
def best_of_epsilon(loss: PrivacyLoss, runs: Runs, delta: OpenProbabilityNumber) -> float:
    """epsilon at `delta` of the best of K runs of `loss`, by the best order of `best_of_renyi`.

    >>> round(stopping.best_of_epsilon(dp.gaussian(10.0), stopping.geometric_runs(5.0), 1e-6), 4)
    0.8135
    """

    def at(orders):
        return rdp_to_dp_improved(orders, best_of_renyi(loss, runs, orders), delta)

    return at(orders_near(at(ORDERS), ORDERS)).min()
