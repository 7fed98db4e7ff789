"""Privacy filters: budgets for steps whose noise is chosen while the outputs come in.

A composition theorem wants all steps fixed beforehand. A filter wants a *currency* fixed
beforehand, in which the cost of any two steps adds up: then the steps may depend on earlier
outputs in any way, as long as no path overspends (X-filter). Currencies here: the Renyi divergence
of one order (X-renyi-filter), the largest loss, which is its order infinity (X-pure-filter), and
mu^2 of Gaussian noise, which costs nothing against steps fixed beforehand (X-gaussian-filter).
What was spent so far is no epsilon of its own (X-odometer). Sums are exact, and compared with the
budget up to 1e-12 of it, about what charges are right to. `bounded_range_renyi` is the cost of a
step whose losses lie in one interval of length epsilon, as the exponential mechanism's do.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from threading import Lock
from typing import Annotated, Any

import numpy as np

from ...numerics import log_binomial, log_softmax, matrix_product, xlog1py, xlogy
from ...accountant import PrivacyLoss
from ...accountant.written import Finite
from ...checks import (
    BelowOneNumber, Few, NonnegativeNumber, OpenProbabilityNumber, OrderNumber, Unique, checked,
    nonnegative, number_within, refusal, scalar,
)  # fmt: skip
from ..gaussian import gaussian_sigma

ROUNDING = Fraction(1, 10**12)  # of the budget: charges are right to about this
FINE_ORDERS = 1 + np.geomspace(1e-3, 1e12, 15_001)
Range = Annotated[float, number_within(1e-6, 500.0)]


class _Budget(Unique):
    """Spends `size`; subclasses say what a step costs. A copy is the same budget. Pickling keeps
    what was spent: to go on later, with one of the two."""

    cost: Callable[[Any], float]

    def __init__(self, size):
        self._size, self._spent, self._lock = Fraction(size), Fraction(0), Lock()

    def __getstate__(self):
        with self._lock:
            return {key: value for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state):
        vars(self).update(state, _lock=Lock())

    def allows(self, step: PrivacyLoss | Callable[[float], float]) -> bool:
        """Whether the budget pays for one more step: if True, the step has been charged and may be
        run once; if False, or on an error, nothing was charged and the step must not be run.
        Several threads may ask at once."""
        cost = Fraction(self.cost(step))  # before the lock: a step may ask again while it is priced
        with self._lock:
            if self._spent + cost > self._size * (1 + ROUNDING):
                return False
            self._spent += cost
            return True

    @property
    def spent(self) -> float:
        """What was charged so far, in the units of `cost`. Not an epsilon of what was run."""
        return float(self._spent)

    @property
    def left(self) -> float:
        """What may still be charged, in the units of `cost`; the next step may depend on it."""
        return float(max(self._size - self._spent, Fraction(0)))


class Filter(_Budget):
    """A budget of (epsilon, delta) for steps of any kind, chosen adaptively.

    The Renyi filter of one order (X-renyi-filter; Feldman and Zrnic 2021, Lecuyer 2021): whatever
    runs after ``allows`` said True is together (epsilon, delta)-DP, whenever one stops. ``order``,
    above 1, is chosen from public knowledge; if it is left out, the order at which Gaussian noise
    lasts longest. At delta = 0 it is infinity: largest losses are added up (X-pure-filter).

    >>> budget = stopping.Filter(1.0, 1e-6)
    >>> [budget.allows(dp.gaussian(10.0)) for _ in range(5)]
    [True, True, True, True, False]
    """

    @checked
    def __init__(
        self, epsilon: NonnegativeNumber, delta: BelowOneNumber, *, order: OrderNumber | None = None
    ) -> None:
        if order is None:
            sizes = _allowance(FINE_ORDERS, epsilon, delta)
            order = np.inf if delta == 0 else float(FINE_ORDERS[np.argmax(sizes / FINE_ORDERS)])
        self._order = order
        size = epsilon if self.order == np.inf else float(_allowance(self.order, epsilon, delta))
        if not size >= 0:
            raise refusal("order", order, "one that leaves something of epsilon")
        super().__init__(size)

    @property
    def order(self) -> float:
        """The order in which costs are counted, the same for all steps."""
        return self._order

    def cost(self, step: PrivacyLoss | Callable[[float], float]) -> float:
        """The Renyi divergence of the step at `order`: of a PrivacyLoss, the worse direction, or
        of a function that bounds the divergence in both directions at any order it is given."""
        if not isinstance(step, PrivacyLoss) and not callable(step):
            raise refusal("step", step, "a PrivacyLoss or a function of the order")
        divergence = step.renyi(self.order) if isinstance(step, PrivacyLoss) else step(self.order)
        try:
            return nonnegative("step", scalar("step", divergence))
        except ValueError:
            allowed = f"of a finite divergence of order {self.order:g}"
            raise refusal("step", step, allowed) from None


class GaussianFilter(_Budget):
    """A budget of (epsilon, delta) for Gaussian noise alone, of any sizes, chosen adaptively.

    Steps are losses of ``gaussian`` and their sums, not subsampled ones; each costs
    mu^2 = (sensitivity/sigma)^2, and all may cost what one release at (epsilon, delta) does:
    adaptive choice is free (X-gaussian-filter).

    >>> budget = stopping.GaussianFilter(1.0, 1e-6)
    >>> [budget.allows(dp.gaussian(8.0)) for _ in range(5)]
    [True, True, True, False, False]
    """

    @checked
    def __init__(self, epsilon: NonnegativeNumber, delta: OpenProbabilityNumber) -> None:
        super().__init__(gaussian_sigma(epsilon, delta) ** -2)

    def cost(self, step: PrivacyLoss) -> float:
        """mu^2 of the step."""
        mu = step.gaussian_mu if isinstance(step, PrivacyLoss) else None
        if mu is None:
            raise refusal("step", step, "Gaussian noise that is not subsampled")
        return mu**2


def _allowance(alpha, epsilon, delta):
    """The divergence of order alpha that implies (epsilon, delta), `rdp_to_dp_improved` solved."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return epsilon - np.log1p(-1 / alpha) + (np.log(delta) + np.log(alpha)) / (alpha - 1)


@checked
def bounded_range(epsilon: Range, points: Few = 40) -> PrivacyLoss:
    """A loss that dominates every mechanism whose losses stay within a range of length `epsilon`.

    The exponential mechanism is one; ``compose`` bounds any adaptive sequence (X-bounded-range). An
    even grid over [-epsilon, epsilon], masses proportional to exp(loss/2), halved at both ends.

    >>> round(dp.bounded_range(0.1).compose(50).epsilon(1e-6), 4)
    1.7696
    """
    loss = np.linspace(-epsilon, epsilon, points + 1)
    log_p = log_softmax(loss / 2 - np.log(2) * (np.abs(loss) == epsilon))
    return PrivacyLoss([(Finite(tuple(loss.tolist()), tuple(log_p.tolist())), 1)])


@checked
def bounded_range_delta(epsilon: Range, k: Few, target_epsilon: NonnegativeNumber) -> float:
    """Least delta at `target_epsilon` of k rounds of range `epsilon`, all fixed beforehand.

    The worst of k coins with losses t, t - epsilon (X-bounded-range; Dong, Durfee and Rogers
    2020). Not for adaptive rounds. Scalars, k <= 10,000.

    >>> round(stopping.bounded_range_delta(0.1, k=50, target_epsilon=1.0), 6)
    0.0004
    """
    low = np.arange(k + 1.0)  # how many rounds have the loss t - epsilon
    ways = log_binomial(k, low)
    worst = 0.0
    for t in np.unique(np.clip((target_epsilon + low[1:] * epsilon) / (k + 1), 0.0, epsilon)):
        high = np.expm1(t - epsilon) / np.expm1(-epsilon)  # chance of the loss t
        log_mass = ways + xlogy(k - low, high) + xlog1py(low, -high)
        excess = -np.expm1(np.minimum(target_epsilon - k * t + low * epsilon, 0.0))
        worst = max(worst, float(matrix_product(np.exp(log_mass), excess)))
    return worst


@checked
def bounded_range_renyi(epsilon: NonnegativeNumber, alpha: OrderNumber) -> float:
    """The largest Renyi divergence of order alpha > 1 of all mechanisms of range `epsilon`, the
    exponential mechanism among them: what a filter charges for one (X-range-charge).

    At most alpha epsilon^2/8. Rounded up by 1e-14.

    >>> round(stopping.bounded_range_renyi(1.0, alpha=2.0), 4)
    0.2402
    """
    if alpha == 1:
        raise refusal("alpha", alpha, "above 1")
    if epsilon == 0 or alpha == np.inf:
        return epsilon
    top, rest, base = (-np.expm1(-x * epsilon) for x in (alpha, alpha - 1, 1.0))
    step = epsilon + np.log(alpha - 1) - np.log(alpha) + np.log(top) - np.log(rest)
    divergence = step + (np.log(top) - np.log(alpha) - np.log(base)) / (alpha - 1)
    rounding = 1e-14 * (1 + epsilon) * (1 + 1 / (alpha - 1))
    return float(min(divergence + rounding, alpha * epsilon**2 / 8))
