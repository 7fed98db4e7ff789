"""What the calculator says: numbers for people, warnings, the call to copy."""

from math import ceil, exp, floor, inf, isfinite, log10

from ..chapters.in_practice import sampled_substitution
from .typed import Typed

LARGE_EPSILON = 10.0
MARGIN = 100  # delta is well below 1/n if it is at most 1/(MARGIN n)


def digits(value, places=5, rounding=round):
    """A number for people, to so many significant digits; `rounding` says on which side."""
    value = float(value)
    if not isfinite(value):
        return "infinite"
    if value == 0 or (value == floor(value) and value < 1e15):
        return f"{value:.0f}"
    shift = places - 1 - floor(log10(abs(value)))
    scaled = value * 10.0**shift if abs(shift) < 300 else inf
    if not isfinite(scaled):
        return f"{value:.{places - 1}e}"
    near = round(scaled)
    whole = near if abs(scaled - near) <= 1e-15 * abs(scaled) else rounding(scaled)
    return f"{whole * 10.0**-shift:.{places}g}"


def as_typed(value):
    """A number as it was typed; one that was computed, to six digits, as one writes it: 1e-5."""
    text = repr(value) if isinstance(value, Typed) else f"{value:.6g}"
    return text.replace("e-0", "e-").replace("e+0", "e+")


CLOSE = 1.01  # what lies between ends farther apart is not said

REMARKS = {
    "delta": "Choose δ well below one over the number of people: at δ = 1/n a mechanism may publish"
    " one person's row in full.",
    "poisson": "The rate is that of Poisson sampling: everyone takes part in each step"
    " independently, in secret. For batches that are shuffled or have a fixed size these numbers"
    " are not proved.",
    "adjacency": "Neighbours are add/remove: one person more or less. To replace a person is to"
    " remove one and to add another: for that the run is (2ε, (1 + e^ε) δ)-DP, or better.",
    "sensitivity": "Neighbours are those under which the query has sensitivity 1. A sum of vectors"
    " of length at most 1 moves by 1 if a person is added or removed, by 2 if one is replaced"
    " (then halve the noise you enter).",
    "float": "Proved for noise that is a real number. Floating-point noise leaks through its last"
    " bits; discrete_gaussian_mechanism and discrete_laplace_mechanism do not.",
}


def warnings(parts, epsilon, delta, people=None):
    """Sentences about what the number assumes and how little it may mean; those that apply."""
    sampled = any(part.rate < 1 for part in parts)
    noisy = any(part.known.is_noise() for part in parts)
    texts = []
    if epsilon == inf:
        texts.append(f"No finite ε holds at δ = {delta:.3g}: ask at a larger δ, such as 1e-6.")
    elif epsilon > LARGE_EPSILON:
        texts.append(
            f"ε = {epsilon:.3g} lets the odds of a guess about one person grow by a factor of"
            f" {exp(min(epsilon, 700)):.2g}: as a promise that is next to nothing."
        )
    if people is not None and delta * people * MARGIN > 1:
        times, chance = digits(delta * people, 3, ceil), digits(min(1, delta * people), 2, ceil)
        texts.append(
            f"δ is {times} times 1/{people}: somebody's row may be published in full with"
            f" probability {chance}. Choose a hundredth of 1/{people} or less."
        )
    applies = {
        "delta": people is None and delta > 1e-6,
        "poisson": sampled,
        "adjacency": sampled,
        "sensitivity": noisy and not sampled,
        "float": any(part.known.is_noise() and not part.known.whole for part in parts),
    }
    return texts + [text for name, text in REMARKS.items() if applies[name]]


def from_people(parts):
    """Which rate and steps were made of batches and epochs, in words."""
    said = []
    for given in parts:
        if given.get("batch") is not None:
            said.append(f"a batch of {given['batch']:g} is rate {given['rate']:.6g}")
        if given.get("epochs") is not None:
            said.append(f"{given['epochs']:g} epochs are {given['steps']} steps")
    return [f"From the number of people: {', '.join(said)}."] if said else []


def replaced(parts, epsilon, delta):
    """A sentence: epsilon if a person may be replaced by another, for sampled Gaussian steps; else
    nothing (X-poisson-substitution)."""
    if not all(part.mechanism == "gaussian" and part.rate < 1 for part in parts):
        return ""
    try:
        pairs = [sampled_substitution(part.parameter, part.rate) for part in parts]
        ends = [
            [pair[end].compose(part.steps) for pair, part in zip(pairs, parts, strict=True)]
            for end in (0, 1)
        ]
        least, most = (sum(losses[1:], losses[0]).epsilon(delta) for losses in ends)
    except ValueError as error:
        if not hasattr(error, "refused"):
            raise
        return ""  # outside of what is served
    if not 0 < epsilon < inf or not most <= CLOSE * least:
        return ""
    return (
        f"If a person may be replaced by another, ε is at most {digits(most, 3, ceil)} at the same"
        f" δ, about {digits(most / epsilon, 3)} times as much."
    )


def found_at(fpr, tpr):
    """A sentence: what the best attack finds, rounded up (X-attack-rates)."""
    alarms, found = digits(100 * fpr, 3, floor), digits(min(100 * tpr, 100), 4, ceil)
    return (
        f"At {alarms} % false alarms, no attack finds more than {found} % of those who are in the"
        " data."
    )


def call(question, parts, epsilon, delta):
    """The lines of Python that give the answer; for calibration, those that find it."""
    lines, names = ["import dpnotes as dp", ""], []
    for number, part in enumerate(parts):
        asked = question if number == 0 and question in ("noise", "steps", "rate") else None
        step, steps = _expression(part, asked)
        names.append("run" if len(parts) == 1 else f"part_{number + 1}")
        if asked:
            names[0] = "family(x)"
            lines += ["def family(x):", f"    step = {step}", f"    return step{steps}", ""]
        elif steps and part.rate != 1:
            lines += [f"step = {step}", f"{names[-1]} = step{steps}"]
        else:
            lines.append(f"{names[-1]} = {step}{steps}")
    whole = " + ".join(names)
    if question in ("noise", "steps", "rate"):
        family = "family" if len(parts) == 1 else f"lambda x: {whole}"
        lines.append(f"dp.calibrate({family}, epsilon={epsilon!r}, delta={delta!r})")
    else:
        given = f"delta={delta!r}" if question == "epsilon" else f"epsilon={epsilon!r}"
        lines.append(f"{whole if len(parts) == 1 else f'({whole})'}.{question}({given})")
    return "\n".join(lines)


def _expression(part, asked):
    """A step and its repetition as Python; the number that is asked for is called x."""
    value = "x" if asked == "noise" else repr(part.parameter)
    step = part.code(value)
    if asked == "rate" or part.rate != 1:
        step = f"dp.subsample({step}, rate={'x' if asked == 'rate' else repr(part.rate)})"
    if asked == "steps" or part.steps != 1:
        return step, f".compose({'x' if asked == 'steps' else part.steps})"
    return step, ""
