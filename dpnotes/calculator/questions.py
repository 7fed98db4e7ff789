"""The calculator: one question about a run in, a dictionary of plain values out.

``python -m dpnotes`` (``command_line``) prints the dictionary, the book's page ``calculator`` draws
it; the numbers come from ``accountant`` and the rows of ``theorems``. A query is a dictionary too:

    {"question": "epsilon", "delta": 1e-5,
     "parts": [{"mechanism": "gaussian", "sigma": 1.1, "rate": 0.00427, "steps": 14100}]}

`question` is epsilon, delta, or one of noise, steps, rate and batch of the first part, where noise
is the parameter of its mechanism. ``runs.MECHANISMS`` lists the mechanisms and their parameters;
approximate has a delta too. rate and steps are 1 unless said. With `rows`, the number of people, a
part may have a `batch` (its mean size) in place of rate and `epochs` in place of steps. delta is 0
unless said where every step is pure. Noise is that for sensitivity 1. A number may be a text, as
people type it: "256/60000" (``typed``).
"""

from math import ceil, floor, isfinite

import numpy as np

from ..chapters.renyi_dp import ORDERS, rdp_to_dp_improved
from ..checks import (
    MOST, below_one, choice, count, nonnegative, open_probability, positive, probability, scalar,
    within,
)  # fmt: skip
from ..numerics import orders_near
from ..proofs import prove
from .runs import MECHANISMS, Part, epsilon_interval, total
from .targets import calibrate_part, field_of, largest_batch, name_of, shown_answer
from .theorems import table
from .typed import Typed, number
from .wording import as_typed, call, digits, found_at, from_people, replaced, warnings

QUESTIONS = ("epsilon", "delta", "noise", "steps", "rate", "batch")
SHARP = 1e-6  # above this relative width an answer is an upper end and not the number
FPR = 0.01  # the false positive rate of an attack that an answer speaks of
AT_THE_ENDS = {  # of the range of delta: why nothing is calibrated there
    0: "at 0 Gaussian noise has no finite epsilon",
    1: "at 1 every mechanism meets the target",
}
DELTAS = np.geomspace(1e-12, 1e-2, 31)  # of the curve
FPRS = np.geomspace(1e-4, 1, 25)  # of the ROC curve, 1 % among them


def answer(query):
    """What is asked, with its enclosure, warnings, the call to copy.

    Keys: answer, low, high, sharp (whether they agree to SHARP), shown (strings for people), parts,
    epsilon, delta, warnings, call. ValueError names what is wrong.
    """
    question = choice("question", query.get("question", "epsilon"), QUESTIONS)
    if question == "batch":
        return _batch(query)
    given, people = _given(query)
    parts = [_part(part, question, first=n == 0) for n, part in enumerate(given)]
    epsilon, delta = _target(query, question, parts)
    if question in ("noise", "steps", "rate"):
        parts[0] = calibrate_part(question, parts, epsilon, delta)
    if question == "delta":
        low, high = total(parts).delta_interval(epsilon)
        delta, spent = high, epsilon
    else:
        low, high = epsilon_interval(tuple(parts), delta)
        spent = high
    sharp = _is_sharp(low, high)
    answer = high if question in ("epsilon", "delta") else getattr(parts[0], field_of(question))
    return {
        "question": question,
        "parts": [_as_query(part) for part in parts],
        "answer": _number(answer),
        "name": name_of(question, parts[0]),
        "low": _number(low),
        "high": _number(high),
        "sharp": sharp,
        "shown": shown_answer(question, parts, answer, epsilon, delta),
        "shown_low": digits(low, 13, floor),
        "shown_high": digits(high, 13, ceil),
        "epsilon": _number(spent),
        "delta": float(delta),
        "shown_delta": digits(delta, 10, ceil) if question == "delta" else as_typed(delta),
        "warnings": from_people(given) + warnings(parts, spent, delta, people),
        "call": call(question, parts, epsilon, delta),
    }


def _batch(query):
    """The answer where the batch of the first part is asked for."""
    first, *rest = _parts(query)
    _require("rows", query.get("rows"))
    _require("epochs", first.get("epochs"))

    def at(batch):
        return query | {"question": "epsilon", "parts": [{**first, "batch": batch}, *rest]}

    epsilon, delta = _target(query, "batch", _known(at(1)))
    batch = largest_batch(lambda b: tuple(_known(at(b))), _given(at(1))[1], epsilon, delta)
    asked = {"question": "batch", "name": "batch", "answer": batch, "shown": str(batch)}
    return answer(at(batch) | {"delta": delta}) | asked


def rows(query):
    """Every theorem's epsilon for {"parts": ..., "delta": ...}: rows of ``theorems.table``.

    The first row is called exact only where its interval is sharp. With "epsilon", which is known
    to hold at this delta, it is not above this.
    """
    parts = _known(query)
    theorems, known = table(parts, query["delta"]), query.get("epsilon")
    if known is not None and theorems[0]["epsilon"] is not None:
        theorems[0]["epsilon"] = min(theorems[0]["epsilon"], known)
    if not _is_sharp(*epsilon_interval(tuple(parts), query["delta"])):
        theorems[0] |= {"name": "the whole law, at most", "kind": "bound"}
    return [{**row, "shown": _digits_of(row)} for row in theorems]


def proof(query):
    """A proof for {"parts": ..., "delta": ...}, of "epsilon" or else of the least one and a
    billionth of it more."""
    run = total(_known(query))
    delta = float(open_probability("delta", scalar("delta", query.get("delta"))))
    epsilon = query.get("epsilon")
    epsilon = run.epsilon(delta) * (1 + 1e-9) if epsilon is None else float(epsilon)
    return prove(run, epsilon, delta)


def _is_sharp(low, high):
    """Whether an interval may be called the number."""
    return low == high or high - low <= SHARP * high


def substitution(query):
    """A sentence on {"parts": ..., "epsilon": ..., "delta": ...}: what if a person is replaced? It
    is empty where that is not computed."""
    return replaced(_known(query), query["epsilon"] or 0.0, query["delta"])


def attack(query):
    """A sentence on {"parts": ...}: what the best attack finds at 1 % false alarms."""
    return found_at(FPR, total(_known(query)).tpr(FPR))


def roc(query):
    """{fpr, tpr} of {"parts": ...}: the largest true positive rate at each false positive rate."""
    return {"fpr": FPRS.tolist(), "tpr": total(_known(query)).tpr(FPRS).tolist()}


def risk(query):
    """What attacks on {"parts": ...} find, of which "fpr" (1 % unless said) are false alarms.

    Keys: parts, fpr, tpr and advantage (upper bounds), mu (an enclosure; its high is None where no
    finite one is known), shown.
    """
    parts = _known(query)
    fpr = number("fpr", query.get("fpr", FPR))
    run, fpr = total(parts), probability("fpr", scalar("fpr", fpr))
    tpr, (low, high) = run.tpr(fpr), run.mu()
    return {
        "question": "risk",
        "parts": [_as_query(part) for part in parts],
        "fpr": float(fpr),
        "tpr": tpr,
        "advantage": run.advantage(),
        "mu": [low, _number(high)],
        "shown": found_at(fpr, tpr),
    }


def answers(query):
    """The answer, what attacks on the run find, and under "rows" what every theorem says of it."""
    exact = answer(query)
    more = [text for text in [substitution(exact)] if text]
    found = {"rows": rows(exact), "attack": attack(exact)}
    return {**exact, **found, "warnings": exact["warnings"] + more}


def curve(query):
    """{delta, exact, renyi}: epsilon of the run against delta, exactly and by Renyi moments."""
    run = total(_known(query))
    exact = run.epsilon(DELTAS)

    def at(orders):
        spent = np.minimum(run.renyi(orders), MOST)[:, None]  # it may be infinite
        return rdp_to_dp_improved(orders[:, None], spent, DELTAS)

    bound = np.min(at(orders_near(at(ORDERS), ORDERS)), axis=0)
    return {
        "delta": DELTAS.tolist(),
        "exact": [_number(e) for e in exact],
        "renyi": [_number(e) if e < MOST / 2 else None for e in bound],
    }


def _parts(query):
    parts = query.get("parts")
    if not isinstance(parts, (list, tuple)) or not parts:
        raise ValueError(f"parts must be a list of mechanisms, got {parts!r}")
    return parts


def _given(query):
    """The parts of a query with rate and steps, and how many people there are, or None."""
    people = query.get("rows")
    people = None if people is None else count("rows", number("rows", people))
    return [_with_rate(part, people) for part in _parts(query)], people


def _known(query):
    """The parts of a query that asks for none of their numbers."""
    return [_part(given, "epsilon", first=False) for given in _given(query)[0]]


def _with_rate(given, people):
    """A part of the query with `rate` and `steps` made of `batch` and `epochs`, if it has these.

    An epoch is as many batches as it takes to hold everybody once.
    """
    given = {name: number(name, value) for name, value in given.items() if name != "mechanism"} | {
        "mechanism": given.get("mechanism", "gaussian")
    }
    for name, instead in (("batch", "rate"), ("epochs", "steps")):
        if given.get(name) is None:
            continue
        if people is None:
            raise ValueError(f"rows must be given where {name} is")
        if given.get(instead) is not None:
            raise ValueError(f"{name} must not be given together with {instead}")
    if given.get("batch") is not None:
        batch = within("batch", scalar("batch", given["batch"]), 1, people)
        text = repr(given["batch"]) if isinstance(given["batch"], Typed) else f"{batch:.17g}"
        given["rate"] = Typed(batch / people, f"{text}/{people}")
    if given.get("epochs") is not None:
        epochs, rate = given["epochs"], given.get("rate")
        if rate is None:
            raise ValueError(
                "epochs must be given together with batch or rate, if batch is not asked for"
            )
        batches = ceil(1 / positive("rate", probability("rate", scalar("rate", rate))) - 1e-9)
        given["steps"] = ceil(positive("epochs", scalar("epochs", epochs)) * batches - 1e-9)
    return given


def _target(query, question, parts):
    """(epsilon, delta), checked where the question needs them."""
    epsilon, delta = (number(name, query.get(name)) for name in ("epsilon", "delta"))
    if question != "epsilon":
        nonnegative("epsilon", scalar("epsilon", _require("epsilon", epsilon)))
    if question != "delta":
        pure = not any(part.needs_delta() or part.leak for part in parts)
        delta = scalar("delta", _require("delta", 0.0 if delta is None and pure else delta))
        check = below_one if pure else open_probability
        try:
            (probability if question == "epsilon" else check)("delta", delta)
        except ValueError as error:
            error.args = (f"{error}: {AT_THE_ENDS[delta]}" if delta in AT_THE_ENDS else f"{error}",)
            raise
    return epsilon, delta


def _require(name, value):
    if value is None:
        raise ValueError(f"{name} must be given")
    return value


def _part(given, question, first):
    """A Part; what is asked of the first one has the value 1 until it is known."""
    mechanism = choice("mechanism", given.get("mechanism", "gaussian"), tuple(MECHANISMS))
    name = MECHANISMS[mechanism].parameter
    asked = question if first else None
    return Part(
        mechanism,
        1.0 if asked == "noise" else _require(name, given.get(name)),
        1.0 if asked == "rate" else given.get("rate", 1.0),
        1 if asked == "steps" else given.get("steps", 1),
        given.get("delta", 0.0) if mechanism == "approximate" else 0.0,
    )


def _as_query(part):
    """A part as the query has it."""
    query = {"mechanism": part.mechanism, part.known.parameter: part.parameter}
    if part.mechanism == "approximate":
        query["delta"] = part.leak
    return {**query, "rate": part.rate, "steps": part.steps}


def _number(value):
    """For JSON, which has no infinity."""
    return float(value) if value is not None and isfinite(value) else None


def _digits_of(row):
    """What is proved is rounded up, so that it stays proved."""
    if row["epsilon"] is None:
        return "–"
    return digits(row["epsilon"], 5, round if row["kind"] == "approximation" else ceil)
