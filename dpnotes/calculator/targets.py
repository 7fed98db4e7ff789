"""The other way round: noise, steps or rate of a run's first part that meet a target."""

from dataclasses import replace
from math import ceil, floor, inf

from ..accountant import calibrate
from .runs import epsilon_interval, total
from .wording import as_typed, digits


def calibrate_part(question, parts, epsilon, delta):
    """The first part, with the noise, the steps or the rate that just meets the target."""
    first, rest = parts[0], [part.run() for part in parts[1:]]

    def family(x):
        return sum(rest, replace(first, **{field_of(question): x}).run())

    whole = family(1.0)  # refuses what is wrong with the other numbers
    try:
        least = calibrate(family, epsilon, delta)
    except ValueError as error:
        if question == "rate" and whole.delta(epsilon) <= delta:
            return replace(first, rate=1.0)
        if not hasattr(error, "end"):
            raise
        raise _not_met(question, first, error.end, family(error.end), epsilon, delta) from None
    return replace(first, **{field_of(question): least})


def _not_met(question, first, end, loss, epsilon, delta):
    """The error where no number just meets the target, with the epsilon of the last one served."""
    last = loss.epsilon(delta)
    which = f"{name_of(question, first)} = {end:.6g}, the last that is computed,"
    if question == "steps" and end == 1:
        which = "one step alone"
    if last == inf:
        said = f"delta must be larger, got {delta!r}: {which} has no finite epsilon there"
    else:
        side, rounding = ("least", ceil) if last > epsilon else ("most", floor)
        said = (
            f"epsilon must be at {side} {digits(last, 5, rounding)} at delta = {as_typed(delta)},"
            f" got {epsilon!r}: {which} has this epsilon"
        )
    return ValueError(said)


def largest_batch(parts_of, people, epsilon, delta):
    """A batch that meets the target while one person more does not; or all people. As steps are
    whole numbers, epsilon need not grow with each person more."""

    def spent(batch):
        return epsilon_interval(parts_of(batch), delta)[1]

    if (least := spent(1)) > epsilon:
        least, delta = digits(least, 5, ceil), as_typed(delta)
        said = f"got {epsilon!r}: a batch of 1 has this epsilon"
        raise ValueError(f"epsilon must be at least {least} at delta = {delta}, {said}")
    if spent(people) <= epsilon:
        return people
    batch, beyond = 1, people
    while beyond - batch > 1:
        middle = (batch + beyond) // 2
        batch, beyond = (middle, beyond) if spent(middle) <= epsilon else (batch, middle)
    return batch


def field_of(question):
    """What is asked, as a field of the first part."""
    return "parameter" if question == "noise" else question


def name_of(question, part):
    """What is asked, in a word: the noise of a mechanism without noise is each step's epsilon."""
    name = part.known.parameter if question == "noise" else question
    return "each" if question == "noise" and name == "epsilon" else name


def shown_answer(question, parts, answer, epsilon, delta):
    """The answer in ten digits, on the safe side: up, or as the target needs it. A calibrated
    number that is a short one but for round-off is this one, if that meets the target, too."""
    first = parts[0]
    if question in ("epsilon", "delta"):
        return digits(answer, 10, ceil)
    up = question == "noise" and first.known.is_noise()
    safe, short = digits(answer, 10, ceil if up else floor), digits(answer, 9, round)
    if len(short) < len(safe) - 1:
        tried = (replace(first, **{field_of(question): float(short)}), *parts[1:])
        if total(tried).delta_interval(epsilon)[1] <= delta or (
            delta == 0 and epsilon_interval(tried, 0.0)[1] <= epsilon
        ):
            return short
    return safe
