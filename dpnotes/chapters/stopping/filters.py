"""Privacy filters: budgets for steps whose noise is chosen while the outputs come in.

A composition theorem wants all steps fixed beforehand. A filter wants a *currency* fixed
beforehand, in which the cost of any two steps adds up: then the steps may depend on earlier
outputs in any way, as long as no path overspends (X-filter). Currencies here: the Renyi divergence
of one order (X-renyi-filter), the largest loss, which is its order infinity (X-pure-filter), and
mu^2 of Gaussian noise, which costs nothing against steps fixed beforehand (X-gaussian-filter).
What was spent so far is no epsilon of its own (X-odometer). Sums are exact, and compared with the
budget up to 1e-12 of it, about what charges are right to. Where all steps are of one kind, they are
simply counted (X-counting-filter).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from os import PathLike
from threading import Lock
from typing import Any, overload
from warnings import warn

import numpy as np

from ...accountant import PrivacyLoss, calibrate
from ...checks import (
    Array, ArrayLike, BelowOneNumber, Nonnegative, NonnegativeNumber, OpenProbability,
    OpenProbabilityNumber, OrderNumber, Positive, Unique, checked, instance, nonnegative, refusal,
    scalar,
)  # fmt: skip
from ..gaussian import gaussian_sigma
from .budget_file import BudgetFile, File

ROUNDING = Fraction(1, 10**12)  # of the budget: charges are right to about this
FINE_ORDERS = 1 + np.geomspace(1e-3, 1e12, 15_001)


@overload
def odometer(rho: float, delta: float, scale: float = ...) -> float: ...
@overload
def odometer(rho: ArrayLike, delta: ArrayLike, scale: ArrayLike = ...) -> Array: ...
@checked
def odometer(rho: Nonnegative, delta: OpenProbability, scale: Positive = 0.05) -> float | Array:
    """What adaptive zCDP steps of `rho` in all have cost so far: right at all times at once, but
    for a probability `delta`, whatever made the analyst look (X-odometer).

    `scale` is fixed beforehand: twice the rho where it should be best. The number is no epsilon of
    a run that stops because of it. A budget that is fixed beforehand costs less: `Filter`.

    >>> round(stopping.odometer(0.1, delta=1e-5), 3)
    2.582
    """
    width = np.log1p(2 * rho / scale) - 2 * np.log(delta)
    return rho + np.sqrt((2 * rho + scale) * width)


class _Budget(Unique):
    """Spends `size`; subclasses say what a step costs."""

    cost: Callable[[Any], float]

    def __init__(self, size, rule, file=None):
        self._size, self._spent, self._lock = Fraction(size), Fraction(0), Lock()
        self._rule, self._file = rule, None if file is None else BudgetFile(file, rule)

    def __getstate__(self):
        with self._lock:
            return {key: value for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state):
        vars(self).update(state, _lock=Lock())

    def allows(self, step: PrivacyLoss | Callable[[float], float]) -> bool:
        """Whether the budget pays for one more step: if True, the step has been charged and may be
        run once; if False, or on an error, nothing was charged and the step must not be run.
        Several threads may ask at once. A warning says if a budget of which nothing was spent does
        not pay for the step."""
        cost = Fraction(self.cost(step))  # before the lock: a step may ask again while it is priced
        if cost > self._size * (1 + ROUNDING) > 0 == self.spent:
            warn(f"one such step costs {float(cost):.4g}, more than all of {self!r}", stacklevel=2)
        if self._file:
            return self._file.spend(cost, self._size * (1 + ROUNDING))
        with self._lock:
            if self._spent + cost > self._size * (1 + ROUNDING):
                return False
            self._spent += cost
            return True

    @property
    def spent(self) -> float:
        """What was charged so far, in the units of `cost`. Not an epsilon of what was run."""
        return float(self._file.spent if self._file else self._spent)

    @property
    def left(self) -> float:
        """What may still be charged, in the units of `cost`; the next step may depend on it."""
        spent = self._file.spent if self._file else self._spent
        return float(max(self._size - spent, Fraction(0)))

    def __repr__(self):
        return f"<{self._rule}: {self.left:.6g} of {float(self._size):.6g} left>"


class Filter(_Budget):
    """A budget of (epsilon, delta) for steps of any kind, chosen adaptively.

    The Renyi filter of one order (X-renyi-filter; Feldman and Zrnic 2021, Lecuyer 2021): whatever
    runs after ``allows`` said True is together (epsilon, delta)-DP, whenever one stops. ``order``,
    above 1, is chosen from public knowledge; if it is left out, the order at which Gaussian noise
    lasts longest. Sampled noise may need another one: ``Filter.for_steps`` finds it. At delta = 0
    it is infinity: largest losses are added up (X-pure-filter).

    A copy is the same budget. A pickle, and so what another process is given, is a second budget
    with the same amount left: go on with one of the two. With ``file``, a path, what was spent is
    kept there: all filters on one file, of all processes and days, spend one budget, and pickles
    too. Delete or copy the file, and it can be spent again.

    >>> budget = stopping.Filter(1.0, 1e-6)
    >>> [budget.allows(dp.gaussian(10.0)) for _ in range(5)]
    [True, True, True, True, False]
    >>> stopping.Filter(1.0, 1e-6, order=20.0)
    <Filter(1.0, 1e-06, order=20.0): 0.481831 of 0.481831 left>
    """

    @checked
    def __init__(
        self,
        epsilon: NonnegativeNumber,
        delta: BelowOneNumber,
        *,
        order: OrderNumber | None = None,
        file: File | None = None,
    ) -> None:
        if order is None:
            sizes = _allowance(FINE_ORDERS, epsilon, delta)
            order = np.inf if delta == 0 else float(FINE_ORDERS[np.argmax(sizes / FINE_ORDERS)])
        self._order = order
        size = epsilon if self.order == np.inf else float(_allowance(self.order, epsilon, delta))
        if not size >= 0:
            raise refusal("order", order, "one that leaves something of epsilon")
        super().__init__(size, f"Filter({epsilon}, {delta}, order={order})", file)

    @staticmethod
    def for_steps(
        *steps: PrivacyLoss, epsilon: float, delta: float, file: str | PathLike[str] | None = None
    ) -> Filter | CountingFilter | GaussianFilter:
        """The filter that lasts longest for steps that are announced.

        One kind of step: a `CountingFilter`, which takes it and weaker ones, as many as an exact
        plan. Gaussian noise alone: a `GaussianFilter`. Other steps: a `Filter` of the order at
        which it pays most often for all of them together.

        >>> step = dp.subsample(dp.gaussian(1.0), 0.001)
        >>> stopping.Filter.for_steps(step, epsilon=1.0, delta=1e-6).left
        31117.0
        >>> other = dp.subsample(dp.gaussian(2.0), 0.01)
        >>> round(stopping.Filter.for_steps(step, other, epsilon=1.0, delta=1e-6).order, 1)
        13.5
        """
        return _for_steps(*steps, epsilon=epsilon, delta=delta, file=file)

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


class CountingFilter(_Budget):
    """A budget of (epsilon, delta) for one kind of step, fixed beforehand, or weaker ones.

    As many as an exact plan has, and to stop at any time is free (X-counting-filter). ``step`` is
    one step or several of one kind, and ``allows`` takes such: the same noise or more, on the same
    share of the data or less. ``spent`` and ``left`` are steps. Copies, pickles and ``file`` are as
    in `Filter`.

    >>> step = dp.subsample(dp.gaussian(1.0), 0.001)
    >>> budget = stopping.CountingFilter(step, 1.0, 1e-6)
    >>> budget.allows(step.compose(10)), budget.left
    (True, 31107.0)
    """

    @checked
    def __init__(
        self,
        step: PrivacyLoss,
        epsilon: NonnegativeNumber,
        delta: OpenProbabilityNumber,
        *,
        file: File | None = None,
    ) -> None:
        if len(step._parts) != 1 or step.gaussian_mu is not None:
            raise refusal("step", step, "of one kind, and no Gaussian noise on all of the data")
        self._kind = step._parts[0][0]
        once = PrivacyLoss([(self._kind, 1)])
        if once.delta(epsilon) > delta:
            raise refusal("epsilon", epsilon, "large enough for one step")
        size = calibrate(once.compose, epsilon, delta)
        super().__init__(size, f"CountingFilter({epsilon}, {delta}, {self._kind})", file)

    def cost(self, step: PrivacyLoss) -> float:
        """How many steps of the kind it is, or is weaker than."""
        instance("step", step, PrivacyLoss)
        if not all(kind.weaker(self._kind) for kind, _ in step._parts):
            raise refusal("step", step, f"{self._kind} or weaker")
        return float(sum(times for _, times in step._parts))


class GaussianFilter(_Budget):
    """A budget of (epsilon, delta) for Gaussian noise alone, of any sizes, chosen adaptively.

    Steps are losses of ``gaussian`` and their sums, not subsampled ones; each costs
    mu^2 = (sensitivity/sigma)^2, and all may cost what one release at (epsilon, delta) does:
    adaptive choice is free (X-gaussian-filter). Copies, pickles and ``file`` are as in `Filter`.

    >>> budget = stopping.GaussianFilter(1.0, 1e-6)
    >>> [budget.allows(dp.gaussian(8.0)) for _ in range(5)]
    [True, True, True, False, False]
    """

    @checked
    def __init__(
        self, epsilon: NonnegativeNumber, delta: OpenProbabilityNumber, *, file: File | None = None
    ) -> None:
        size = gaussian_sigma(epsilon, delta) ** -2
        super().__init__(size, f"GaussianFilter({epsilon}, {delta})", file)

    def cost(self, step: PrivacyLoss) -> float:
        """mu^2 of the step."""
        mu = step.gaussian_mu if isinstance(step, PrivacyLoss) else None
        if mu is None:
            raise refusal("step", step, "Gaussian noise that is not subsampled")
        return mu**2


def _best_order(loss, epsilon, delta):
    """The order at which a filter pays most often for the loss: of 80, then four times of finer
    ones around the best."""
    orders = 1 + np.geomspace(1e-2, 1e6, 80)
    for _ in range(5):
        often = _allowance(orders, epsilon, delta) / np.maximum(loss.renyi(orders), 1e-300)
        best = int(np.argmax(often))
        order, near = float(orders[best]), orders[max(best - 1, 0) : best + 2]
        orders = 1 + np.geomspace(near[0] - 1, near[-1] - 1, 17)
    if often[best] < 1:
        raise refusal("epsilon", epsilon, "large enough for all steps once, at some order")
    return order


def _allowance(alpha, epsilon, delta):
    """The divergence of order alpha that implies (epsilon, delta), `rdp_to_dp_improved` solved."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return epsilon - np.log1p(-1 / alpha) + (np.log(delta) + np.log(alpha)) / (alpha - 1)


@checked
def _for_steps(
    *steps: PrivacyLoss,
    epsilon: NonnegativeNumber,
    delta: OpenProbabilityNumber,
    file: File | None = None,
) -> Filter | CountingFilter | GaussianFilter:
    if not steps:
        raise ValueError("steps must be one loss or more")
    together = sum(steps, PrivacyLoss())
    if together.gaussian_mu is not None:
        return GaussianFilter(epsilon, delta, file=file)
    if len(steps) == 1 and len(steps[0]._parts) == 1:
        return CountingFilter(steps[0], epsilon, delta, file=file)
    return Filter(epsilon, delta, order=_best_order(together, epsilon, delta), file=file)
