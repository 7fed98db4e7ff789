"""One query: what dpnotes answers, what that costs, and whether the truth agrees."""

import resource
import time
import warnings
from dataclasses import dataclass, field
from math import inf, isnan

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


@dataclass
class Verdict:
    """What was found: misses as texts (none where all holds)."""

    query: Query
    answer: tuple = ()  # low, value, high
    misses: list = field(default_factory=list)
    oracle: str = "none"
    refused: bool = False
    seconds: float = 0.0
    memory: float = 0.0
    truth: str = ""
    doubt: float = 0.0  # of the truth, relative

    @property
    def width(self):
        low, _, high = self.answer or (0.0, 0.0, 0.0)
        return (high - low) / high if 0 < high < inf else 0.0


def run_code(parts, namespace):
    """The PrivacyLoss of these parts; `namespace` has dpnotes as dp."""
    return eval(code(parts), dict(namespace))  # noqa: S307


def ask(query, namespace):
    """A verdict with the answer; a ValueError that names its argument is a refusal."""
    verdict = Verdict(query)
    before, start = _peak(reset=True), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = run_code(query.parts, namespace)
            value = getattr(run, query.method)(query.at)
            verdict.answer = (value, value, value)
            if query.method in ("delta", "epsilon"):
                low, high = getattr(run, f"{query.method}_interval")(query.at)
                verdict.answer = (low, value, high)
    except Exception as error:
        verdict.refused = isinstance(error, ValueError) and str(error).startswith(ARGUMENTS)
        if not verdict.refused:
            verdict.misses.append(f"error: {type(error).__name__} {error}")
    verdict.seconds, verdict.memory = time.process_time() - start, max(0.0, _peak() - before)
    if verdict.seconds > SECONDS:
        verdict.misses.append(f"slow: {verdict.seconds:.1f} s")
    if verdict.memory > MEGABYTES:
        verdict.misses.append(f"memory: {verdict.memory:.0f} MB")
    return verdict


def _peak(reset=False):
    """The greatest resident memory so far in MB, since the last reset where Linux can."""
    try:
        if reset:
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        with open("/proc/self/status") as file:
            lines = dict(line.split(":", 1) for line in file if ":" in line)
        return float(lines["VmHWM"].split()[0]) / 1024
    except (OSError, KeyError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def judge(verdict):
    """Compare an answer with the truth: adds misses and the name of the method that knew it."""
    if not verdict.answer:
        return verdict
    low, value, high = verdict.answer
    if any(isnan(x) for x in verdict.answer) or not low <= value <= high:
        verdict.misses.append(f"order: not {low!r} <= {value!r} <= {high!r}")
        return verdict
    try:
        truth = Truth(verdict.query.parts)
        CHECKS[verdict.query.method](verdict, truth)
        verdict.oracle = truth.name
    except (TooLongError, OverflowError, MemoryError, RecursionError) as error:
        verdict.oracle = f"none: {type(error).__name__}"
    return verdict


def _note(verdict, ball):
    verdict.truth = ball.mid().str(19, radius=False)
    verdict.doubt = float(ball.rad() / abs(ball.mid())) if not ball.contains(0) else inf


def _delta(verdict, truth):
    low, value, high = verdict.answer
    ball = truth.delta(verdict.query.at)
    _note(verdict, ball)
    if arb(low) > ball:
        verdict.misses.append(f"low: {low!r} above the truth {verdict.truth}")
    if arb(high) < ball:
        verdict.misses.append(f"high: {high!r} below the truth {verdict.truth}")
    elif arb(value) * (1 + ROUND_OFF) < ball:
        verdict.misses.append(f"unsafe: {value!r} below the truth {verdict.truth}")


def _epsilon(verdict, truth):
    """At the lower end delta must not be below what was asked for, at the upper not above."""
    (low, value, high), wanted = verdict.answer, arb(verdict.query.at)
    if low == inf:
        if truth.delta(1e6) < wanted:
            verdict.misses.append("low: infinite, but some epsilon does")
        return
    near = value if value < inf else low
    if low > 0:
        ball = truth.delta(low, near)
        _note(verdict, ball)
        if ball < wanted:
            verdict.misses.append(f"low: {low!r} too high, there delta is {verdict.truth}")
    for name, end in (("high", high), ("unsafe", value * (1 + ROUND_OFF))):
        if end < inf and (ball := truth.delta(end, near)) > wanted:
            _note(verdict, ball)
            verdict.misses.append(f"{name}: {end!r} too low, there delta is {verdict.truth}")
            return


def _tradeoff(verdict, truth):
    """A lower bound of the type-II error; the truth may be found too low by 1e-8 of itself."""
    value, ball = verdict.answer[1], truth.missed(verdict.query.at)
    _note(verdict, ball)
    if arb(value) > ball.upper() * (1 + arb(1e-8)) + arb(1e-300):
        verdict.misses.append(f"unsafe: {value!r} above the truth {verdict.truth}")


def _renyi(verdict, truth):
    """Right to 1e-11 of itself. A sampled law that is cut off has no finite one, and says so."""
    value = verdict.answer[1]
    cut = any(p.kind == "discrete_gaussian" and p.rate < 1 for p in verdict.query.parts)
    if verdict.query.at == inf or cut and value == inf:
        raise TooLongError
    ball = truth.renyi(verdict.query.at)
    truth.name = "moments"
    if value == inf or not ball.is_finite():
        if value < inf or ball.is_finite():
            verdict.misses.append(f"renyi: {value!r} for {ball}")
        return
    _note(verdict, ball)
    if abs(arb(value) - ball) > abs(ball) * arb(1e-11) + arb(1e-300):
        verdict.misses.append(f"renyi: {value!r} for {verdict.truth}")


CHECKS = {"delta": _delta, "epsilon": _epsilon, "tradeoff": _tradeoff, "renyi": _renyi}
