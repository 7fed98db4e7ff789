"""The statement that is proved, and the few numbers that its proof needs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from math import fsum, isfinite, log

import numpy as np

from ..accountant.finite import Finite
from ..accountant.gaussian import Gaussian
from ..accountant.panels import Laplace, Symmetrised
from ..accountant.privacy_loss import PrivacyLoss
from ..accountant.sampled_gaussian import SampledGaussian
from ..checks import NonnegativeNumber, OpenProbabilityNumber, checked, refusal

SWAPPED = "gaussian sampled under substitution"
KINDS: dict[str, set[str]] = {  # what a step says beside its kind and how often it is run
    "gaussian": {"sigma"},
    "sampled gaussian": {"sigma", "rate"},
    SWAPPED: {"sigma", "rate"},
    "laplace": {"scale"},
    "finite": {"p", "q"},
}
DECIMAL = re.compile(r"\d{1,20}(\.\d{1,30})?(e[+-]?\d{1,3})?", re.ASCII)
MOST_ROUNDS, MOST_BITS, MOST_NODES = 10**12, 20_000, 2_000_000
FORMAT = "dpnotes proof 1: (epsilon, delta)-DP when a person is "


@dataclass(frozen=True)
class Proof:
    """That a run is (epsilon, delta)-DP, in both directions; made by ``dp.prove``.

    ``steps`` says what is run and how often, ``epsilon`` and ``delta`` what is proved: decimals,
    which ``dp.check`` takes as they stand. The two laws of a finite step are divided by their sums,
    which are 1 to about 15 digits. ``lines`` has for each direction the tilt, the period, how many
    nodes, the angle of the lift, the bits, and the spacings of outcomes; or this for each band of
    outcomes, with where and how softly it ends. ``text`` is a file of it.

    >>> dp.prove(dp.gaussian(4.0), epsilon=1.1, delta=1e-6).steps
    ({'kind': 'gaussian', 'sigma': '4', 'times': 1},)
    """

    steps: tuple[dict, ...]
    epsilon: str
    delta: str
    lines: dict

    @property
    def neighbours(self) -> str:
        """How neighbours differ: by a person who is "added or removed", or "replaced" where steps
        are samples under substitution.

        >>> dp.prove(dp.gaussian(4.0), epsilon=1.1, delta=1e-6).neighbours
        'added or removed'
        """
        return "replaced" if SWAPPED in _kinds(self.steps) else "added or removed"

    def text(self) -> str:
        """As a line of JSON, for a file.

        >>> run = dp.gaussian(4.0)
        >>> proof = dp.prove(run, epsilon=1.1, delta=1e-6)
        >>> dp.Proof.read(proof.text()) == proof
        True
        """
        said: dict = {"proof": FORMAT + self.neighbours, "steps": self.steps}
        said |= {"epsilon": self.epsilon, "delta": self.delta, "lines": self.lines}
        return json.dumps(said) + "\n"

    @classmethod
    def read(cls, text: str) -> Proof:
        """The proof in a file. A ValueError says what is wrong with it; whether it proves what it
        says is asked by ``dp.check``."""
        try:
            said = json.loads(text, object_pairs_hook=_said_once)
            proof = cls(tuple(said["steps"]), said["epsilon"], said["delta"], said["lines"])
            good = set(said) == {"proof", "steps", "epsilon", "delta", "lines"}
            good = good and said["proof"] == FORMAT + proof.neighbours
        except (TypeError, KeyError, ValueError, RecursionError):
            good = False
        if not good:
            raise refusal("text", ..., "a proof that dpnotes wrote")
        proof.validate()
        return proof

    def validate(self) -> None:
        """Refuses, in one sentence, what is no statement: before anything is computed."""
        good = isinstance(self.steps, tuple) and 0 < len(self.steps) <= 60
        good = good and all(map(_is_step, self.steps))
        good = good and all(map(_is_decimal, (self.epsilon, self.delta)))
        if not (good and 0 < float(self.delta) < 1 and _are_lines(self.lines)):
            raise refusal("proof", ..., "one that dpnotes wrote: a part of it is no number")
        _same_neighbours(self.steps)


def _kinds(steps):
    return {step["kind"] for step in steps}


def _same_neighbours(steps):
    """What one person changes in a sample is another thing where people are replaced."""
    if {SWAPPED, "sampled gaussian"} <= _kinds(steps):
        raise refusal("run", ..., "of samples that lose people, or replace them, not of both")


def _said_once(pairs):
    """A part of a file; not if it says one thing twice, as readers may take the first."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def _is_decimal(word):
    good = isinstance(word, str) and DECIMAL.fullmatch(word) is not None
    return good and isfinite(float(word))


def _is_step(step):
    kind = step.get("kind") if isinstance(step, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        return False
    if set(step) != {"kind", "times", *KINDS[kind]} or type(step["times"]) is not int:
        return False
    values = [step[name] for name in sorted(KINDS[kind])]
    if kind == "finite":
        good = all(isinstance(law, list) and 0 < len(law) <= 10_000 for law in values)
        good = (
            good
            and len(values[0]) == len(values[1])
            and all(map(_is_decimal, [*values[0], *values[1]]))
            and all(abs(fsum(map(float, law)) - 1) < 1e-12 for law in values)
        )
    else:
        good = all(map(_is_decimal, values)) and all(float(x) > 0 for x in values)
        good = good and float(step.get("rate", "0")) < 1
    return good and 1 <= step["times"] <= MOST_ROUNDS


def _are_lines(lines):
    """A line for each direction, or a list of them: one for each band."""
    if not isinstance(lines, dict) or set(lines) != {"1", "-1"}:
        return False
    return all(_is_line(x) or _are_bands(x) for x in lines.values())


def _are_bands(lines):
    good = isinstance(lines, list) and 1 < len(lines) <= 12
    good = good and all(isinstance(x, list) and len(x) == 7 and _is_line(x[:6]) for x in lines)
    cuts = [line[6] for line in lines] if good else []
    if not (good and all(isinstance(x, list) and len(x) <= 60 for x in cuts)):
        return False
    each = [cut for some in cuts for cut in some]
    good = all(isinstance(cut, list) and len(cut) == 2 for cut in each)
    good = good and all(type(x) is float and abs(x) < 1e9 for cut in each for x in cut)
    return good and all(width > 1e-9 for _, width in each)


def _is_line(line):
    if not isinstance(line, list) or len(line) != 6 or not isinstance(line[5], list):
        return False
    c, period, count, angle, bits, spacings = line
    numbers = all(type(x) is float and 1e-9 < x < 1e12 for x in (c, period, angle, *spacings))
    whole = type(count) is int and type(bits) is int
    return numbers and whole and 0 <= count <= MOST_NODES and 20 <= bits <= MOST_BITS


def _tools():
    """The two rooms that need python-flint."""
    try:
        from . import checker, plan
    except ImportError:
        raise ImportError("proofs need python-flint: pip install 'dpnotes[proof]'") from None
    return checker, plan


@checked
def prove(run: PrivacyLoss, epsilon: NonnegativeNumber, delta: OpenProbabilityNumber) -> Proof:
    """A proof that the run is (epsilon, delta)-DP when a person is added or removed, or replaced if
    steps are samples under substitution; a ValueError of one sentence where none is found.

    It needs room: ``run.epsilon(delta) * (1 + 1e-9)`` is proved, the least epsilon itself seldom
    is. The proof is of what it says in ``steps``, where each number has at most 15 digits. Served:
    Gaussian noise, on all of the data or sampled (also under substitution), of several kinds,
    Laplace noise, and finite laws; without Gaussian noise only if few sums of their losses must be
    listed, and many rounds of Laplace noise take seconds (with room 1e-6 a tenth of that). Few
    rounds of rare sampling take seconds; the rarest (a rate of 1e-7, say) are refused, as are few
    rounds, but one, under substitution, and sampled Laplace noise. Nothing of the accountant is
    trusted: ``check`` proves it anew, in ball arithmetic (X-proof, X-proof-atoms, X-proof-bands,
    X-proof-substitution). It needs ``pip install 'dpnotes[proof]'``.

    >>> run = dp.subsample(dp.gaussian(4.0), 0.01).compose(10_000)
    >>> proof = dp.prove(run, epsilon=0.9468669, delta=1e-5)
    >>> 9.9e-6 < dp.check(proof) < 1e-5
    True
    """
    checker, plan = _tools()
    with checker.ctx.workprec(200):  # of what is asked before there is a line
        steps, most = steps_of(run), run.delta(epsilon)
        known = f"delta at epsilon = {epsilon!r} is about {most:.6g}, not less"
        checker.surely(most < delta, known)
        room = max(min(log(delta / most) if most else 1.0, 0.1), 1e-13)
        lines: dict[str, list] = {}
        for way in (1, -1):
            balls = checker.Run(steps, way)
            if way < 0 and balls.symmetric:
                lines["-1"] = lines["1"]
                break
            if balls.written(checker.arb(repr(epsilon))) is None:
                found = plan.lines(balls, epsilon, delta, room)
            else:
                found = [checker.Line(1.0, 1.0, 0, 1.0, 200, ())]
            told = [[*line[:5], list(line[5]), list(map(list, line[6]))] for line in found]
            lines[str(way)] = told if len(told) > 1 else told[0][:6]
    proof = Proof(steps, repr(epsilon), repr(delta), lines)
    check(proof)
    return proof


@checked
def check(proof: Proof) -> float:
    """The delta that the proof proves, rounded up to a double; a ValueError where it proves less
    than it claims. All is computed anew, and every comparison is proved.

    >>> proof = dp.prove(dp.gaussian(4.0), epsilon=1.1, delta=1e-6)
    >>> dp.check(proof) < 1e-6
    True
    """
    checker, _ = _tools()
    proof.validate()
    with checker.ctx.workprec(200):  # afterwards flint has the caller's again
        return max(_proved(checker, proof, way) for way in (1, -1))


def _proved(checker, proof, way):
    """The delta of one direction; 0 if it is that of the other one."""
    said = proof.lines[str(way)]
    if way < 0 and said == proof.lines["1"] and checker.Run(proof.steps, way).symmetric:
        return 0.0
    some = [checker.Line(*line) for line in (said if isinstance(said[0], list) else [said])]
    try:
        bound = checker.bound(proof.steps, proof.epsilon, way, *some)
    except ArithmeticError:
        raise refusal("proof", ..., "one that dpnotes wrote: its numbers are extreme") from None
    known = f"at epsilon {proof.epsilon} this line proves delta <= {float(bound):.12g} only"
    checker.surely(bound <= checker.arb(proof.delta), known)
    return checker.rounded_up(bound)


def steps_of(run):
    """What is run, by numbers of at most 15 digits, in the order of the run."""
    counts: dict[str, int] = {}
    for step, times in run._given:
        said = json.dumps(_said(step))
        counts[said] = counts.get(said, 0) + times
    steps = tuple({**json.loads(said), "times": times} for said, times in counts.items())
    _same_neighbours(steps)
    return steps


def _said(step):
    if type(step) is Gaussian or (type(step) is SampledGaussian and step.rate == 1):
        sigma = 1 / step.mu if isinstance(step, Gaussian) else step.sigma
        return {"kind": "gaussian", "sigma": _digits(sigma)}
    if type(step) in (SampledGaussian, Symmetrised) and not step.sigmas:
        one = type(step) is SampledGaussian
        kind = "sampled gaussian" if one else SWAPPED
        return {"kind": kind, "sigma": _digits(step.sigma), "rate": _digits(step.rate)}
    if type(step) is Laplace and step.rate == 1:
        return {"kind": "laplace", "scale": _digits(step.scale)}
    if type(step) is Finite and not step.cut:
        return {"kind": "finite", **_laws(step)}
    kind = type(step).__name__
    raise refusal("run", ..., f"of steps that are served, and a {kind} step of it is not")


def _laws(step):
    """Both laws; the masses where one of them has none come last."""
    loss, log_p = step.arrays
    p, q = np.exp(log_p).tolist(), np.exp(log_p - loss).tolist()
    if step.infinite:
        p, q = [*p, step.infinite], [*q, 0.0]
    if step.lost:
        p, q = [*p, 0.0], [*q, step.lost]
    return {"p": list(map(_digits, p)), "q": list(map(_digits, q))}


def _digits(number):
    return f"{number:.15g}"
