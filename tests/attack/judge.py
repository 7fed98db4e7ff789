"""One query: what dpnotes answers, how long it takes, and whether the truth agrees."""

import resource
import time
import warnings
from dataclasses import dataclass, field
from math import inf, isfinite, isnan

from flint import arb

from .mechanisms import expression
from .oracles import Oracle
from .quadrature import TooLongError

__all__ = ["Query", "Verdict", "ask", "judge"]

SECONDS, MEGABYTES = 2.0, 500.0
ROUND_OFF = 1e-13  # by which the value of a closed form may lie on the wrong side of the truth


@dataclass(frozen=True)
class Query:
    """A method of PrivacyLoss ("delta", "epsilon", "tradeoff", "renyi") at a point."""

    parts: tuple
    method: str
    at: float

    def code(self):
        interval = "_interval" if self.method in ("delta", "epsilon") else ""
        return f"({expression(self.parts)}).{self.method}{interval}({self.at!r})"


@dataclass
class Verdict:
    """What was found: misses as texts (empty where all holds)."""

    query: Query
    oracle: str = "none"
    misses: list = field(default_factory=list)
    answer: tuple = ()
    width: float = 0.0
    seconds: float = 0.0
    memory: float = 0.0
    refused: bool = False
    truth: str = ""
    doubt: float = 0.0  # of the oracle's delta, relative


def ask(query, namespace):
    """(verdict with answer, time, memory). A ValueError that names its argument is a refusal."""
    verdict = Verdict(query)
    before, start = _peak(reset=True), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = eval(expression(query.parts), dict(namespace))  # noqa: S307
            value = getattr(run, query.method)(query.at)
            if query.method in ("delta", "epsilon"):
                low, high = getattr(run, f"{query.method}_interval")(query.at)
                verdict.answer = (low, value, high)
            else:
                verdict.answer = (value, value, value)
    except ValueError as error:
        known = ("k ", "sigma", "scale", "rate", "epsilon", "delta", "alpha", "loss", "p ", "q ")
        verdict.refused = str(error).startswith(known)
        if not verdict.refused:
            verdict.misses.append(f"error: ValueError {error}")
    except Warning as warning:
        verdict.misses.append(f"warning: {warning}")
    except Exception as error:
        verdict.misses.append(f"error: {type(error).__name__} {error}")
    verdict.seconds = time.process_time() - start
    verdict.memory = max(0.0, _peak() - before)
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


def judge(verdict, oracle=None):
    """Compare an answer with the truth; adds misses, width, the oracle's name."""
    if not verdict.answer:
        return verdict
    low, value, high = verdict.answer
    if any(isnan(x) for x in verdict.answer) or not low <= value <= high:
        verdict.misses.append(f"order: not {low!r} <= {value!r} <= {high!r}")
        return verdict
    verdict.width = (high - low) / high if 0 < high < inf else 0.0
    try:
        oracle = oracle or Oracle(verdict.query.parts)
        {"delta": _delta, "epsilon": _epsilon, "tradeoff": _tradeoff, "renyi": _renyi}[
            verdict.query.method
        ](verdict, oracle)
        verdict.oracle, verdict.doubt = oracle.name, oracle.doubt
    except (TooLongError, OverflowError, MemoryError, RecursionError):
        verdict.oracle = "none"
    return verdict


def _delta(verdict, oracle):
    low, value, high = verdict.answer
    least, most = oracle.delta(verdict.query.at)
    verdict.truth = _text(least, most)
    if arb(low) > most:
        verdict.misses.append(f"low: {low!r} above the truth {verdict.truth}")
    if arb(high) < least:
        verdict.misses.append(f"high: {high!r} below the truth {verdict.truth}")
    elif arb(value) * (1 + ROUND_OFF) < least:
        verdict.misses.append(f"unsafe: {value!r} below the truth {verdict.truth}")


def _epsilon(verdict, oracle):
    """delta at the ends: a lower end must not have less than delta, nor an upper one more."""
    low, value, high = verdict.answer
    delta, near = arb(verdict.query.at), value if isfinite(value) else low
    if low == inf:
        _infinite(verdict, oracle)
        return
    if low > 0:
        least, most = oracle.delta(low, near)
        verdict.truth = f"delta(low) = {_text(least, most)}"
        if most < delta:
            verdict.misses.append(f"low: {low!r} too high, there delta is {_text(least, most)}")
    for name, end in (("high", high), ("unsafe", value * (1 + ROUND_OFF))):
        if end < inf:
            least, most = oracle.delta(end, near)
            if least > delta:
                found = _text(least, most)
                verdict.misses.append(f"{name}: {end!r} too low, there delta is {found}")
                break


def _infinite(verdict, oracle):
    """No epsilon does: delta stays above."""
    if verdict.query.at == 0:
        bounded = all(p.kind in ("laplace", "response") for p in verdict.query.parts)
        if bounded:
            verdict.misses.append("low: infinite for a bounded loss")
        return
    _, most = oracle.delta(1e9)
    if most < arb(verdict.query.at):
        verdict.misses.append(f"low: infinite, but delta(1e9) is {_text(most, most)}")


def _tradeoff(verdict, oracle):
    """A lower bound of the type-II error, loose by less than 1e-6 of it."""
    value, truth = verdict.answer[1], oracle.missed(verdict.query.at)
    truth = truth if truth.mid() > 0 else arb(0, truth.rad())  # the highest of lines, and of 0
    verdict.truth = str(truth.mid().str(20, radius=False))
    room = truth.rad() + abs(truth.mid()) * arb(1e-15 if oracle.name == "exact" else 1e-10)
    if arb(value) > truth.mid() + room + arb(1e-300):
        verdict.misses.append(f"unsafe: {value!r} above the truth {verdict.truth}")
    if truth > 0:
        verdict.width = max(0.0, float((truth.mid() - arb(value)) / truth.mid()))


def _renyi(verdict, oracle):
    """Right to 1e-11 of itself; a sampled law that is cut off has none, and that is said."""
    cut = any(p.kind == "discrete_gaussian" and p.rate < 1 for p in verdict.query.parts)
    if verdict.query.at == inf or cut and verdict.answer[1] == inf:
        raise TooLongError
    value, truth = verdict.answer[1], oracle.renyi(verdict.query.at)
    oracle.name = "moments"
    if truth == inf or value == inf:
        if truth != value:
            verdict.misses.append(f"renyi: {value!r} for {truth}")
        return
    verdict.truth = str(truth.mid().str(20, radius=False))
    gap = abs(arb(value) - truth.mid())
    if gap > abs(truth.mid()) * arb(1e-11) + truth.rad() + arb(1e-300):
        verdict.misses.append(f"renyi: {value!r} for {verdict.truth}")
    verdict.width = float(gap / abs(truth.mid())) if truth > 0 else 0.0


def _text(least, most):
    return ((least + most) / 2).mid().str(19, radius=False)
