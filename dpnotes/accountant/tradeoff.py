"""The trade-off function f(alpha) of a composition: the least type-II error at level alpha.

The likelihood-ratio test that rejects p for q where L = log q/p > e has level p(L > e) and misses
with probability q(L <= e) (Neyman and Pearson). With delta of q against p and s = -d delta/de,

    level = exp(-e) s,   power = delta + s,   f(alpha) >= 1 - delta(e) - alpha exp(e)   for all e,

with equality where level = alpha: f is the largest of these lines (Dong, Roth and Su 2022,
Proposition 6), and each of them is a lower bound, so an e that is a little off costs accuracy and
not safety. Thresholds below 0 are those of the exchanged pair: f >= exp(-e) (1 - delta(e) - alpha)
with delta of p against q, and equality where 1 - power = alpha.
"""

from dataclasses import dataclass
from math import exp, expm1, inf, log

import numpy as np

from . import contour, finite_sums, lattice, one_step
from .curves import Binomial, Exact
from .direction import method
from .inversion import Integral
from .thresholds import (
    NEVER,
    NoLineError,
    OnLines,
    Rates,
    centre_and_width,
    crossing,
    estimated,
    with_jumps,
)

__all__ = []


def worst(directions, alpha):
    """min of T(p, q) and T(q, p) at alpha."""
    first, second = directions[0], directions[-1]
    step, k = first.parts[0]
    if alpha == 1:
        return 0.0
    if alpha > 0 and len(first.parts) == 1 and k == 1 and one_step.has_closed_form(step):
        return one_step.least_error(step, alpha)
    found = min(1 - alpha, least_error(first, second, alpha))
    return found if first is second else min(found, least_error(second, first, alpha))


def least_error(first, second, alpha):
    """T(p, q)(alpha) from the directions p against q and q against p.

    Where q alone is possible p is rejected at no cost; where p alone is, it is accepted. So with
    conditional laws (``Direction.given``) f(alpha) is kept_q times theirs, and that of the
    exchanged pair is met at the level alpha/kept_p.
    """
    room = exp(first.log_kept) - alpha  # levels above kept_p reject all that q can give
    if second.infinite == 1 or room <= 0:
        return 0.0
    kept = exp(second.log_kept)
    if alpha == 0:
        return kept
    curve = method(second.given)
    if isinstance(curve, Exact):
        return kept * along_edges(curve.curve, alpha, missed_below)
    if isinstance(curve, Binomial):
        return kept * of_binomial(curve, alpha)
    share = exp(first.log_kept)
    ways = [
        (Straight(alpha), second.given, kept),
        (Mirrored(alpha / share, room / share), first.given, 1.0),
    ]
    if started(*ways[0][:2]) == 0:
        ways.reverse()
    best = 0.0
    for lines, parts, scale in ways:
        epsilon, height = supported(lines, parts)
        best = max(best, scale * height)
        if epsilon > 0:  # the other way has its best line at 0
            break
    return best


def missed_below(curve, j):
    """q(L < l_j), a sum from the left."""
    return float(np.exp(curve.log_p[:j]).sum())


def missed_above(curve, j):
    """The same as 1 - power, for a window that ends on the left."""
    return -expm1(min(0.0, np.logaddexp(curve.log_tail[j], curve.log_weight[j])))


def along_edges(curve, alpha, missed):
    """q(L < l_j) + (level_j - alpha) exp(l_j), from the last vertex of level at least alpha."""
    j = Straight(alpha).vertex(curve)
    if j < 0:
        return 0.0
    edge = -exp(curve.log_weight[j]) * expm1(log(alpha) - (curve.log_weight[j] - curve.loss[j]))
    return missed(curve, j) + edge


def of_binomial(curve, alpha):
    """``along_edges`` of the window of the binomial law where level = alpha."""
    parts = ((curve.step, curve.k),)
    if curve.k <= 20_000:
        return along_edges(finite_sums.two_point(curve.step, curve.k, 0.0), alpha, missed_below)
    centre, width = centre_and_width(parts)
    least = curve.k * curve.step.bottom()
    epsilon = crossing(
        lambda e: Straight(alpha).excess(estimated(parts, e)), centre, width, least, 0.1
    )
    side = 1 if epsilon >= centre else -1
    c = contour.saddle_at(parts, side, epsilon)[0]
    missed = missed_above if side > 0 else missed_below
    return along_edges(finite_sums.two_point(curve.step, curve.k, c), alpha, missed)


@dataclass(frozen=True)
class Straight:
    """The lines 1 - delta(e) - alpha exp(e), e >= 0; the best has level = alpha."""

    alpha: float

    def excess(self, of):
        return of.log_level - log(self.alpha)

    def vertex(self, curve):
        return int(np.searchsorted(curve.loss - curve.log_weight, -log(self.alpha), "right")) - 1

    def line(self, epsilon, of):
        return of.rest - exp(log(self.alpha) + epsilon)


@dataclass(frozen=True)
class Mirrored:
    """The lines exp(-e) (1 - delta(e) - alpha), e >= 0; the best has miss = alpha."""

    alpha: float
    room: float  # 1 - alpha

    def excess(self, of):
        return of.log_power - log(self.room) + log(self.alpha) - of.log_miss

    def vertex(self, curve):
        log_power = np.logaddexp(curve.log_tail, curve.log_weight)
        return int(np.searchsorted(-log_power, -log(self.room), "right")) - 1

    def line(self, epsilon, of):
        gap = self.room - of.delta if of.delta < 0.5 else of.rest - self.alpha
        return exp(-epsilon) * gap


def started(lines, parts):
    """Where the best line is at a guess, from saddle points."""
    centre, width = centre_and_width(parts)
    return crossing(lambda e: lines.excess(estimated(parts, e)), centre, width, enough=0.1)


def supported(lines, parts):
    """(e, value) of the highest line, e >= 0; a safe one near it where e is not exact."""
    start, step = started(lines, parts), 0.03 * centre_and_width(parts)[1]
    for draw in (contour.line, with_jumps):
        on = OnLines(parts, draw)
        try:
            epsilon = crossing(lambda e: lines.excess(on(e)), start, step)  # noqa: B023
            return epsilon, lines.line(epsilon, on(epsilon))
        except NoLineError:
            continue
    return on_lattice(lines, parts, start)


def on_lattice(lines, parts, epsilon):
    """From the vertices of the composition moved to a lattice, which delta bounds from above."""
    top = max(sum(k * step.top() for step, k in parts), 1e-300)
    steep = min(1e4 / max(centre_and_width(parts)[1], 1e-300), 1e8 / top if top < inf else inf)
    for _ in range(3):
        start = contour.saddle_at(parts, 1, epsilon)
        if start[0] > steep or start[2] < -690:
            return at_the_ends(lines, parts)
        try:
            with np.errstate(over="raise"):
                spread = lattice.spread(parts, start)
        except FloatingPointError:  # a cell is too wide for the tilt
            return at_the_ends(lines, parts)
        loss, j = spread.curve.loss, lines.vertex(spread.curve)
        inside = 0.01 * len(loss) < j < 0.99 * len(loss)
        if not inside and j < len(loss) / 2 and loss[0] > 0:  # a window from 0 on holds it
            epsilon = 0.0
            continue
        epsilon = max(0.0, float(loss[max(j, 0)]))
        if inside or epsilon == 0:
            break
    with np.errstate(over="ignore", invalid="ignore"):  # of the lower bound
        log_delta = min(0.0, spread.log_bounds(epsilon)[2])
    # far from where the lattice was drawn its noise is large
    delta = exp(min(log_delta, contour.log_chernoff(parts, epsilon, start[2]) + 1e-12))
    return epsilon, lines.line(epsilon, Rates(-inf, -inf, -inf, delta, 1 - delta))


def at_the_ends(lines, parts):
    """The higher of the lines at 0 and at the largest loss, where delta vanishes: all that is
    left if the threshold is too close to that loss for any tilt."""
    delta = Integral(parts).delta(0.0)[2]
    found = [(0.0, lines.line(0.0, Rates(-inf, -inf, -inf, delta, 1 - delta)))]
    top = sum(k * step.top() for step, k in parts)
    if top < 700:
        found.append((top, lines.line(top, NEVER)))
    return max(found, key=lambda end: end[1])
