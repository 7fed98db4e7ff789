"""delta(epsilon) and epsilon(delta) by the contour integral, as enclosures (low, value, high)."""

from functools import cached_property
from math import exp, inf, log, log1p, nextafter

from . import certain, contour, jumps, lattice
from .enclosure import intersected, is_wide
from .work import JUMPS, LATTICE, LINES, ExhaustedError, within

__all__ = []

GOOD = 1e-10  # relative width of an enclosure that ends the search for a better one
POOR = 3e-8  # and beyond which the lattice is asked, too
FAIR = 3e-10  # and of its tail
LAST_STEP = 1e-10  # of Newton's method, relative
TINY = 1e-323  # the round-off of what is hardly above 0
SHARP = 5e-12  # relative error of a tail: an enclosure of epsilon is then as narrow as it can be
TRUSTED = 0.02  # relative error of a tail beyond which a line says nothing


class Integral:
    """The contour integral: plain; split by the number of rare large losses, if those spoil it;
    or, where the integrand decays too slowly, the lattice. The narrowest enclosure is returned."""

    tight = 0.0  # the safe end is the value

    def __init__(self, parts):
        self.parts = parts

    def delta(self, epsilon):
        """Each method within its limit of work; what holds of all compositions costs little."""
        found = self._delta(epsilon)
        if is_wide(found, POOR):
            found = intersected(found, certain.delta(self.parts, epsilon))
        return found

    @cached_property
    def at_zero(self):
        """Of delta(0); several epsilons may ask for it."""
        return self.delta(0.0)

    def _delta(self, epsilon):
        start = within(LINES, contour.saddle_at, self.parts, 1, epsilon)
        if start is None:
            return None
        found = within(LINES, self._delta_from_lines, epsilon, start)
        if is_wide(found, GOOD):
            found = intersected(found, self._delta_from_jumps(epsilon, start))
        if is_wide(found, POOR):
            known = (found[2] - found[0]) / found[2] if found else 1.0
            found = intersected(
                found, within(LATTICE, lattice_delta, self.parts, epsilon, start, known)
            )
        return found

    def _delta_from_lines(self, epsilon, start):
        far = start[2] < -790 or start[1] < (1 - 1e-9) * epsilon  # no saddle point is that far out
        if far and contour.log_chernoff(self.parts, epsilon, start[0]) < -700:
            return 0.0, 0.0, 1e-300
        side = 1 if start[2] < log(0.5) else -1
        if side < 0 and contour.saddle_at(self.parts, side, epsilon)[2] < -40:
            low = certain.least_delta(self.parts, epsilon)
            if low >= 1 - 1e-15:
                return low, 1.0, 1.0
        return line_delta(self.parts, side, epsilon)

    def _delta_from_jumps(self, epsilon, start):
        if abs(start[1] - epsilon) <= 0.01 * epsilon:
            return within(JUMPS, jumps_delta, self.parts, epsilon, start[2])
        # the saddle points leap over it
        guess = within(LINES // 8, jumps.log_tail_of_few, self.parts, epsilon)
        return guess and within(LINES // 8, jumps_delta, self.parts, epsilon, guess)

    def epsilon(self, delta):
        """The same for the inverse."""
        if delta >= certain.most_different(self.parts):
            return 0.0, 0.0, 0.0
        found = self._epsilon(delta)
        if is_wide(found, POOR):
            found = intersected(found, certain.epsilon(self.parts, log(delta)))
        return found

    def _epsilon(self, delta):
        side = 1 if delta <= 0.5 else -1
        target = log(delta) if side > 0 else log1p(-delta)
        found, error = within(LINES, contour_epsilon, self.parts, side, target) or (None, 1.0)
        if not is_wide(found, GOOD) and error <= FAIR:
            return found
        near_zero = (found is not None and found[1] == 0) or self._may_need_none(delta)
        if near_zero and self.at_zero[2] <= delta:
            return 0.0, 0.0, 0.0
        if error <= SHARP:  # near delta(0) an epsilon is known to fewer digits
            return found
        found = intersected(found, within(JUMPS, jumps_epsilon, self.parts, log(delta)))
        if is_wide(found, POOR):
            found = intersected(found, within(LATTICE, lattice_epsilon, self.parts, log(delta)))
        return found

    def is_below(self, epsilon, delta):
        """Whether a line shows delta(epsilon) <= delta."""
        found = within(LINES // 4, line_delta, self.parts, 1, epsilon)
        return found is not None and found[2] <= delta

    def _may_need_none(self, delta):
        """Whether the saddle-point approximation says that delta(0) is below or near delta."""
        start = within(LINES, contour.saddle_at, self.parts, 1, 0.0)
        return start is None or start[2] < log(delta) + 1


def line_delta(parts, side, epsilon):
    """(low, delta, high) from the line of this epsilon, or None."""
    return contour_delta(contour.line_at(parts, side, epsilon), side, epsilon)


def contour_delta(line, side, epsilon):
    """(low, delta, high) at e from a line, or None if that says nothing."""
    if line is None:
        return None
    log_tail, _, above, below = line.sums(epsilon)
    if not max(above, below) <= TRUSTED:
        return None
    tail = exp(log_tail)
    high = min(1.0, tail * (1 + above) + TINY)  # no more than 0 underflows to 0
    found = max(0.0, tail * (1 - below) - TINY), tail, high
    if side > 0:
        return found
    most = min(1.0, nextafter(1 - found[0], inf))  # the trapezoid over-reports 1 - delta
    return max(0.0, nextafter(1 - found[2], 0.0)), most, most


def jumps_delta(parts, epsilon, log_guess):
    """(low, delta, high) from lines for each number of rare large losses, or None. Where the saddle
    point says nothing of delta, the chance that one step alone loses so much does."""
    alone = sum(k * certain.single(step).delta(epsilon)[1] for step, k in parts)
    found, old = None, inf
    for guess in (log_guess, log(max(alone, 1e-300))):
        for _ in range(5):
            if abs(old - guess) < 5:
                break
            try:
                lines = jumps.draw(parts, epsilon, guess)
            except ExhaustedError:
                return found
            if lines is None:
                break
            found = intersected(found, contour_delta(lines, 1, epsilon))
            old, guess = guess, lines.sums(epsilon)[0]
        if not is_wide(found, GOOD):
            break
    return found


def followed(parts, epsilon):
    """A function of parts like these that finds their log delta(e) on the line of these, at the
    same heights: right up to round-off for parts near them, but without bounds. None where no line
    serves."""
    start = contour.saddle_at(parts, 1, epsilon)
    line = contour.line(parts, 1, start) if start[2] < log(0.5) else None
    if line is None or max(line.sums(epsilon)[2:]) > GOOD:
        return None
    return lambda others: contour.moved(line, others).sums(epsilon)[0]


def contour_epsilon(parts, side, target):
    """(low, e, high) with log tail(e) = target, and the error of the tail there; or None if no
    line is good there.

    Newton's steps stay on one line while it is good; a new one is drawn where they leave it, and
    half way back where even its error bound is below the target.
    """
    c, epsilon, _ = contour.saddle_for(parts, side, target)
    epsilon, good = max(0.0, epsilon), 0.0
    for _ in range(25):
        line = contour.line(parts, side, (c, epsilon, target))
        if line is None:
            return None
        value, state = newton(line, side, epsilon, target)
        if state == "found":
            error = max(line.sums(value)[2:])
            low, value, high = certify(line, side, value, target)
            found = low, value if side > 0 else high, high  # left, the trapezoid under-reports e
            return found, error
        if state == "unknown":
            return None
        if state == "moved":
            good, epsilon = epsilon, value
        else:  # too far to the right
            epsilon = 0.5 * (good + epsilon)
        c = contour.saddle_at(parts, side, epsilon)[0]
    return None


def jumps_epsilon(parts, target):
    """(low, e, high) with log delta(e) = target from such lines, or None; drawn anew where Newton
    moved far from where they are good, unless that is known well, or the work is done."""
    epsilon, found = jumps.first_epsilon(parts, target), None
    for _ in range(12 if epsilon > 0 else 0):
        try:
            lines = jumps.draw(parts, epsilon, target)
        except ExhaustedError:
            break
        if lines is None:
            break
        value, state = newton(lines, 1, epsilon, target)
        if state == "found":
            found = intersected(found, certify(lines, 1, value, target))
            if abs(value - epsilon) <= 0.1 * epsilon or not is_wide(found, GOOD):
                break
        if state == "unknown":
            break
        epsilon = value if state != "beyond" else 0.5 * epsilon
    return found


def newton(line, side, epsilon, target):
    """Solve log tail(e) = target, e >= 0, on one line: the values of K serve all iterations.

    Returns e and "found", "moved" (a new line is needed there), "beyond" or "unknown".
    """
    start = epsilon
    for _ in range(50):
        value, slope, above, below = line.sums(epsilon)
        if not max(above, below) <= TRUSTED:
            if epsilon != start:
                return epsilon, "moved"
            beyond = side > 0 and value + log1p(above) < target
            return epsilon, "beyond" if beyond else "unknown"
        step = side * (value - target) / exp(slope - value)
        step = min(max(step, -0.25 * line.period), 0.25 * line.period)
        old, epsilon = epsilon, max(0.0, epsilon + step)
        # from here on the next step is of second order: less than the round-off
        if epsilon == old or abs(step) <= LAST_STEP * epsilon:
            break
    return epsilon, "found"


def certify(line, side, epsilon, target):
    """(low, e, high): at high the upper bound of delta is below the target, at low the lower."""
    value, slope, above, below = line.sums(epsilon)
    pad = 1e-15 * abs(epsilon) + 1e-300
    ends = []
    for way in (-1, 1):
        width = pad + 1.01 * max(above, below) / exp(slope - value)
        for _ in range(60):
            end = epsilon + way * width
            if end < 0:  # no less than 0 is asked for
                break
            value_end, _, up, down = line.sums(end)
            error = log1p(up) if way * side > 0 else (log1p(-down) if down < 1 else -inf)
            if way * side * (value_end + error - target) <= 0:
                break
            width *= 2
        else:
            end = 0.0 if way < 0 else inf
        ends.append(end)
    return ends[0], epsilon, ends[1]


def lattice_delta(parts, epsilon, start, known=1.0):
    """(low, delta, high) from the lattice, or None; and where it won't be narrower than what is
    known."""
    spread = lattice.spread(parts, lattice.anchor(parts, start), known)
    if spread is None:
        return None
    low, value, high = (exp(min(0.0, bound)) for bound in spread.log_bounds(epsilon))
    high = max(high, 1e-300)  # it may underflow
    return low, min(max(value, low), high), high


def lattice_epsilon(parts, target):
    """(low, e, high) with log delta(e) = target, from the lattice, or None."""
    start = contour.saddle_for(parts, 1, target)
    for _ in range(3):
        spread = lattice.spread(parts, lattice.anchor(parts, start))
        if spread is None:
            return None
        value = spread.curve.epsilon(target)
        if spread.least <= value:
            break
        start = contour.saddle_at(parts, 1, value)
    size = abs(value)
    high = least_width(lambda w: spread.log_bounds(value + w)[2] <= target, size)
    low = least_width(lambda w: spread.log_bounds(value - w)[0] >= target, size)
    low, high = max(0.0, value - low), max(0.0, value + high)
    return low, max(0.0, min(value, high)), high


def least_width(holds, size):
    """The least of 1e-13, 2e-13, ..., 0.1 of ``size`` for which a bound holds, or inf: the first of
    1, 16, 256, ..., and then down from it."""
    for last in range(0, 41, 4):
        if holds(1e-13 * size * 2.0**last):
            break
    else:
        return inf
    while last > 0 and holds(1e-13 * size * 2.0 ** (last - 1)):
        last -= 1
    return 1e-13 * size * 2.0**last
