"""One run under every theorem of the book: what each says of it, or why it says nothing.

A run is a list of ``runs.Part``, mechanisms that are executed one after the other. Every row of
`table` is a call of functions that a chapter states and proves; the rows differ only in what they
know of the steps. Where a theorem needs a delta for the steps and one for itself, it gets half for
each. ``calculator`` asks the questions.
"""

from functools import cached_property

import numpy as np

from ..accountant import finite, gaussian
from ..chapters import composition
from ..chapters.gaussian import CLASSICAL_LIMIT, sigma_classical
from ..chapters.renyi_dp import (
    ORDERS, rdp_to_dp, rdp_to_dp_improved, rdp_to_dp_optimal, sampled_curve, zcdp_to_dp,
)  # fmt: skip
from ..chapters.subsampling import amplification, minibatch_epsilon, subsampled_dominating_pair
from ..numerics import orders_near
from .runs import epsilon_interval, total

WHOLE_ORDERS = np.arange(2, 257)
MOST_LISTED = 10**6  # rounds that a theorem takes as a list


class NotApplicable(Exception):
    """The theorem says nothing of this run; the message says why, for a person."""


class Case:
    """A run, the delta it is asked about, and what several rows share."""

    def __init__(self, parts, delta):
        self.parts, self.delta = parts, delta
        self.run = total(parts)
        self.leaks = sum(part.steps * part.rate * part.leak for part in parts)

    def only(self):
        """The part, where there is one."""
        if len(self.parts) > 1:
            raise NotApplicable("the rounds are not all alike")
        return self.parts[0]

    def some_delta(self):
        """delta between 0 and 1, or nothing to say."""
        if not 0 < self.delta < 1:
            raise NotApplicable("needs δ > 0" if self.delta <= 0 else "needs δ < 1")
        return self.delta

    def split(self, share):
        """[(epsilon, delta) of one step on all of the data], and the delta that is left.

        Gaussian steps get `share` of what the leaks leave of delta, evenly.
        """
        left = self.delta - self.leaks
        if left < 0:
            raise NotApplicable(f"the leaks of the steps alone add up to δ = {self.leaks:.3g}")
        steps = sum(part.steps for part in self.parts if part.needs_delta())
        if steps and left <= 0:
            raise NotApplicable("Gaussian steps need δ > 0")
        each = share * left / steps if steps else 0.0
        pairs = []
        for part in self.parts:
            delta = min(1.0, each / part.rate) if part.needs_delta() else part.leak
            pairs.append((part.epsilon(delta), delta))
        return pairs, left - each * steps

    def sampled(self, share):
        """The same after amplification by sampling (X-poisson-amplification)."""
        pairs, left = self.split(share)
        after = [amplification(e, p.rate, d) for (e, d), p in zip(pairs, self.parts, strict=True)]
        return after, left

    @cached_property
    def renyi(self):
        """Orders around the one that is best at delta, and the Renyi divergences of the run."""
        delta = self.some_delta()
        if self.leaks:
            raise NotApplicable("a step that may leak everything has infinite Rényi divergences")
        spent = self.run.renyi(ORDERS)
        if not np.isfinite(spent).all():
            raise NotApplicable("the loss is infinite with a small probability")
        near = orders_near(rdp_to_dp_improved(ORDERS, spent, delta), ORDERS)
        return near, self.run.renyi(near)


def _is_gaussian(part):
    return part.mechanism == "gaussian"


def exact(case):
    """From the law of the whole loss, by the accountant."""
    return epsilon_interval(tuple(case.parts), case.delta)[1]


def basic(case):
    """Epsilons of the amplified steps, added up."""
    pairs, _ = case.sampled(share=1.0)
    return sum(part.steps * epsilon for part, (epsilon, _) in zip(case.parts, pairs, strict=True))


def _left_for_theorem(left):
    """The rest of delta, for the theorem's own use."""
    if left <= 0:
        raise NotApplicable("the leaks of the steps use up δ")
    return left


def equal_rounds(theorem):
    """The row of a theorem that takes epsilon, rounds and its own delta."""

    def row(case):
        case.some_delta()
        part = case.only()
        [(epsilon, _)], left = case.sampled(share=0.5)
        return theorem(epsilon, part.steps, _left_for_theorem(left))

    return row


def advanced(case):
    """With the tight mean loss of a round; rounds may differ."""
    if len(case.parts) == 1:
        return equal_rounds(composition.advanced)(case)
    case.some_delta()
    pairs, left = case.sampled(share=0.5)
    steps, own = [part.steps for part in case.parts], _left_for_theorem(left)
    if sum(steps) > MOST_LISTED:
        raise NotApplicable("computed for up to a million rounds")
    return composition.advanced_heterogeneous(np.repeat([e for e, _ in pairs], steps), own)


def advanced_book(epsilon, k, delta):
    """With the mean loss that the book of Dwork and Roth has."""
    return composition.advanced(epsilon, k, delta, composition.kl_from_pure_exponential)


def optimal(case):
    """The least epsilon that holds for all steps with this epsilon and delta.

    It is at most their sum (T-10), which has no round-off.
    """
    part = case.only()
    [(epsilon, delta)], _ = case.sampled(share=0.5)
    least = composition.optimal(epsilon, part.steps, case.delta, delta)
    return np.minimum(least, part.steps * epsilon) if np.isfinite(least) else least


def minibatches(case):
    """Advanced composition over the steps in which a person takes part."""
    case.some_delta()
    part = case.only()
    if part.rate == 1:
        raise NotApplicable("without sampling it is advanced composition")
    [(epsilon, _)], left = case.split(share=0.5)
    return minibatch_epsilon(epsilon, part.rate, part.steps * part.rate, _left_for_theorem(left))


def any_batches(case):
    """The pair that is worst for any sampled step with this epsilon and leak."""
    part = case.only()
    if part.needs_delta() or part.rate == 1:
        raise NotApplicable("for sampled steps that are ε-DP by themselves")
    pair = subsampled_dominating_pair(part.epsilon(0.0), part.rate, part.leak)
    return finite(*pair).compose(part.steps).epsilon(case.delta)


def moments(case):
    """Whole orders and the first conversion, as in 2016."""
    case.some_delta()
    if not all(_is_gaussian(part) for part in case.parts):
        raise NotApplicable("for Gaussian steps")
    spent = sum(
        p.steps * sampled_curve(WHOLE_ORDERS / (2 * p.parameter**2), p.rate) for p in case.parts
    )
    return np.min(rdp_to_dp(WHOLE_ORDERS, spent, case.delta))


def renyi_improved(case):
    """By the best order of the improved conversion."""
    orders, spent = case.renyi
    return np.min(rdp_to_dp_improved(orders, spent, case.delta))


def renyi_optimal(case):
    """By the conversion that is best possible, at orders around the best of the improved one."""
    orders, spent = case.renyi
    best = int(np.argmin(rdp_to_dp_improved(orders, spent, case.delta)))
    near = slice(max(best - 2, 0), best + 3)
    return np.min(rdp_to_dp_optimal(orders[near], spent[near], case.delta))


def zcdp(case):
    """One number rho for the whole run."""
    case.some_delta()
    if case.leaks:
        raise NotApplicable("a step that may leak everything is not zCDP")
    if any(part.needs_delta() and part.rate < 1 for part in case.parts):
        raise NotApplicable("one number ρ does not know about sampling of Gaussian steps")
    pairs, _ = case.sampled(share=0.5)
    rho = sum(
        p.steps * (p.parameter**-2 if _is_gaussian(p) else epsilon**2) / 2  # U-pure-zcdp
        for p, (epsilon, _) in zip(case.parts, pairs, strict=True)
    )
    return zcdp_to_dp(rho, case.delta)


def classical(case):
    """The textbook formula for Gaussian noise, with all rounds as one."""
    case.some_delta()
    if not all(_is_gaussian(part) and part.rate == 1 for part in case.parts):
        raise NotApplicable("for Gaussian noise on all of the data")
    sigma = sum(part.steps / part.parameter**2 for part in case.parts) ** -0.5
    epsilon = sigma_classical(1.0, case.delta) / sigma  # sigma epsilon is a constant
    if epsilon > CLASSICAL_LIMIT:
        raise NotApplicable(
            f"it would say {epsilon:.3g}, but is proved up to ε = {CLASSICAL_LIMIT:.2f} only"
        )
    return epsilon


def gaussian_limit(case):
    """No bound: the Gaussian mechanism with the same mean loss."""
    mean = case.run.mean()
    if not 0 < mean < np.inf:
        raise NotApplicable("the mean loss is 0 or infinite")
    return gaussian(1 / np.sqrt(2 * mean)).epsilon(case.delta)


THEOREMS = (  # name, claim, the page that proves it, what computes it, kind
    ("exact", "X-dominating-pair", "accounting", exact, "exact"),
    ("Rényi DP, optimal conversion", "A-rdp-to-dp", "renyi-dp", renyi_optimal, "bound"),
    ("Rényi DP, improved conversion", "A-rdp-to-dp", "renyi-dp",
     renyi_improved, "bound"),
    ("moments accountant of 2016", "A-moments-accountant", "renyi-dp", moments, "bound"),
    ("zCDP", "U-zcdp-to-dp", "renyi-dp", zcdp, "bound"),
    ("textbook Gaussian formula", "F-3.22", "older-formulas", classical, "bound"),
    ("worst pair of any sampling", "X-subsampled-pair", "more-sampling", any_batches, "bound"),
    ("optimal composition", "X-optimal", "composition", optimal, "bound"),
    ("advanced composition, tight", "U-advanced", "older-formulas", advanced, "bound"),
    ("advanced composition, book", "F-3.20", "older-formulas",
     equal_rounds(advanced_book), "bound"),
    ("advanced composition, Azuma", "T-18", "older-formulas",
     equal_rounds(composition.advanced_azuma), "bound"),
    ("minibatches", "T-19-minibatch", "more-sampling", minibatches, "bound"),
    ("basic composition", "T-10", "composition", basic, "bound"),
    ("as if the loss were normal", "U-plrv-gaussian", "gaussian", gaussian_limit, "approximation"),
)  # fmt: skip


def table(parts, delta):
    """[{name, claim, page, kind, epsilon, why}] of every theorem, for the run `parts` at `delta`.

    `epsilon` is None where the theorem says nothing, and `why` says why. Kinds: "exact", "bound"
    (proved to be at least the exact number) and "approximation" (may be on either side).
    """
    case, rows = Case(parts, delta), []
    for name, claim, page, compute, kind in THEOREMS:
        row, epsilon, why = dict(name=name, claim=claim, page=page, kind=kind), None, ""
        try:
            epsilon = float(compute(case))
            if not np.isfinite(epsilon):
                raise NotApplicable("no finite ε at this δ")
        except NotApplicable as reason:
            epsilon, why = None, str(reason)
        except ValueError as error:
            if not hasattr(error, "refused"):
                raise
            why = f"not computed: {error}"  # outside of what a function serves
        rows.append({**row, "epsilon": epsilon, "why": why})
    return rows
