"""One query: what dpnotes answers, what that costs, and whether the truth agrees."""

import resource
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from flint import arb

from .laws import TooLongError, code
from .truth import Truth

SECONDS, MEGABYTES = 2.0, 500.0  # of the processor and of memory that an answer may take
ROUND_OFF = 1e-13  # by which the value of a closed form may lie on the wrong side of the truth
ARGUMENTS = ("k ", "sigma", "scale", "rate", "epsilon", "delta", "alpha", "loss", "p ", "q ")


@dataclass(frozen=True)
class Query:
    """A method of PrivacyLoss ("delta", "epsilon", "tradeoff", "renyi") at a point."""

    parts: tuple
    method: str
    at: float

    def code(self):
        interval = "_interval" if self.method in ("delta", "epsilon") else ""
        return f"({code(self.parts)}).{self.method}{interval}({self.at!r})"


def run_code(parts, namespace):
    """The PrivacyLoss of these parts; `namespace` has dpnotes as dp."""
    return eval(code(parts), dict(namespace))


def ask(query, namespace):
    """((low, value, high), misses); no answer and no miss is a refusal, a ValueError that names its
    argument."""
    answer, misses = None, []
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    before, start = _peak(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = run_code(query.parts, namespace)
            low = value = high = getattr(run, query.method)(query.at)
            if query.method in ("delta", "epsilon"):
                low, high = getattr(run, f"{query.method}_interval")(query.at)
            answer = low, value, high
    except Exception as error:
        if not (isinstance(error, ValueError) and str(error).startswith(ARGUMENTS)):
            misses.append(f"error: {type(error).__name__} {error}")
    seconds, memory = time.process_time() - start, _peak() - before
    if seconds > SECONDS:
        misses.append(f"slow: {seconds:.1f} s")
    if memory > MEGABYTES:
        misses.append(f"memory: {memory:.0f} MB")
    return answer, misses


def _peak():
    """The greatest resident memory so far in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def judge(query, answer):
    """The misses of an answer as texts; none where all holds, or where no truth is known."""
    low, value, high = answer
    if not low <= value <= high:  # NaN too
        return [f"order: not {low!r} <= {value!r} <= {high!r}"]
    misses = []
    with suppress(TooLongError, OverflowError, MemoryError, RecursionError):
        for miss in CHECKS[query.method](query, answer, Truth(query.parts)):
            misses.append(miss)
    return misses


def _shown(ball):
    return ball.mid().str(19, radius=False)


def _delta(query, answer, truth):
    (low, value, high), ball = answer, truth.delta(query.at)
    if arb(low) > ball:
        yield f"low: {low!r} above the truth {_shown(ball)}"
    if arb(high) < ball:
        yield f"high: {high!r} below the truth {_shown(ball)}"
    elif arb(value) * (1 + ROUND_OFF) < ball:
        yield f"unsafe: {value!r} below the truth {_shown(ball)}"


def _epsilon(query, answer, truth):
    """At the lower end delta must not be below what was asked for, at the upper not above."""
    (low, value, high), wanted = answer, arb(query.at)
    if low == inf:
        if truth.delta(1e6) < wanted:
            yield "low: infinite, but some epsilon does"
        return
    near = value if value < inf else low
    if low > 0 and (ball := truth.delta(low, near)) < wanted:
        yield f"low: {low!r} too high, there delta is {_shown(ball)}"
    for name, end in (("high", high), ("unsafe", value * (1 + ROUND_OFF))):
        if end < inf and (ball := truth.delta(end, near)) > wanted:
            yield f"{name}: {end!r} too low, there delta is {_shown(ball)}"
            return


def _tradeoff(query, answer, truth):
    """A lower bound of the type-II error; the truth may be found too low by 1e-8 of itself."""
    value, ball = answer[1], truth.missed(query.at)
    if arb(value) > ball.upper() * (1 + arb(1e-8)) + arb(1e-300):
        yield f"unsafe: {value!r} above the truth {_shown(ball)}"


def _renyi(query, answer, truth):
    """Right to 1e-11 of itself."""
    value = answer[1]
    if query.at == inf:
        return
    ball = truth.renyi(query.at)
    if value == inf or not ball.is_finite():
        if value < inf or ball.is_finite():
            yield f"renyi: {value!r} for {ball}"
    elif abs(arb(value) - ball) > abs(ball) * arb(1e-11) + arb(1e-300):
        yield f"renyi: {value!r} for {_shown(ball)}"


CHECKS = {"delta": _delta, "epsilon": _epsilon, "tradeoff": _tradeoff, "renyi": _renyi}
