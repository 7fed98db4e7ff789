"""The oracles agree with each other, see planted mistakes, and find a fixed draw of mechanisms
answered right. `make attack` draws many more, and judges the slow ones."""

import importlib
import os
import pkgutil
import signal
import warnings
from types import SimpleNamespace

import pytest
from flint import arb

import dpnotes as dp
from evidence import holds, must_fail
from oracles import exact
from oracles.cases import CASES
from oracles.contour import contour_delta
from oracles.draws import KINDS, draw
from oracles.judge import Query, ask, judge
from oracles.lattice import lattice_delta
from oracles.laws import CALLED, DENSITIES, LAWS, Part, one_step_delta
from oracles.truth import QUICK, Truth

NAMESPACE = {"dp": dp}
GAUSSIAN = (Part("gaussian", (1.3,), 4),)
LAPLACES = (Part("laplace", (2.0,), 2), Part("response", (0.7,), 3))
SAMPLED = (Part("gaussian", (1.3,), 9, 0.1),)
RESPONSES = (Part("response", (1e-5,), 10**10),)
METHODS = {
    "one step": lambda parts, e: one_step_delta(parts[0], 1, e),
    "sum": lambda parts, e: exact.sum_delta(parts, 1, e),
    "contour": lambda parts, e: contour_delta(parts, 1, e),
    "lattice": lambda parts, e: lattice_delta(parts, 1, e),
}
AGREE = [
    ("one step", "contour", (Part("gaussian", (0.7,)),), 1.7),
    ("one step", "lattice", (Part("laplace", (1.3,), 1, 0.2),), 0.1),
    ("one step", "lattice", (Part("laplace", (1.3,), 1, 0.2, "subsample_substitution"),), 0.1),
    ("sum", "lattice", LAPLACES, 1.5),
    ("sum", "lattice", (Part("discrete_laplace", (3.0, 2), 3, 0.3),), 0.2),
    ("sum", "lattice", (Part("discrete_gaussian", (0.4, 1), 2),), 6.0),
    ("contour", "lattice", (Part("gaussian", (2.0,), 300, 0.05), Part("laplace", (2.0,))), 1.0),
]


@pytest.mark.slow
@pytest.mark.parametrize("one, other, parts, e", AGREE)
def test_methods_agree(one, other, parts, e):
    first, second = (METHODS[name](parts, arb(e)) for name in (one, other))
    holds(first.overlaps(second), f"{one} {first}, {other} {second}")
    holds(second.rad() < 1e-3 * second.mid(), "with few doubts")
    must_fail(holds, second.overlaps(first * 1.01))


BOUNDS = {"random_allocation", "sampled_group", "sampled_substitution", "shuffled_floor"}


MADE_OF_OTHERS = {"cyclic_loss", "release_loss"}  # compositions of the losses that are drawn


def test_every_loss_is_drawn():
    """But for bounds and for what is made of the others, which have tests of their own pages: a new
    constructor fails here."""
    rooms = pkgutil.iter_modules(dp.chapters.__path__, "dpnotes.chapters.")
    found = [item for room in rooms for item in vars(importlib.import_module(room.name)).items()]
    hints = [(name, getattr(each, "__annotations__", {})) for name, each in found]
    hints += [(name, getattr(getattr(dp, name), "__annotations__", {})) for name in dp.__all__]
    public = {name for name, each in hints if "PrivacyLoss" in str(each.get("return"))}
    public = {name for name in public if not name.startswith("_")}
    known = KINDS & {*DENSITIES, *LAWS}
    drawn = {CALLED.get(kind, kind).split(".")[-1] for kind in known}
    drawn |= {"subsample", "subsample_substitution"}
    missing = public - BOUNDS - MADE_OF_OTHERS - drawn
    holds(not missing, f"no row of LAWS, no shape: {missing}")


TRUE = {  # a method, a point, and the truth there
    "delta": lambda truth: (0.9, truth.delta(0.9)),
    "epsilon": lambda truth: (float(truth.delta(0.9).mid()), arb(0.9)),
    "renyi": lambda truth: (3.0, truth.renyi(3.0)),
    "tradeoff": lambda truth: (0.05, truth.missed(0.05)),
}
NAN = float("nan")
MOVED = {  # by how much low, value and high are moved, and which of them is then wrong
    "delta": [
        ((-1e-12, 1e-12, 1e-12), []),
        ((1e-12, 1e-12, 2e-12), ["low"]),
        ((-2e-12, -1e-12, -1e-12), ["high"]),
        ((-1e-12, -1e-12, 1e-12), ["unsafe"]),
        ((1e-12, 1e-12, -1e-12), ["order"]),
        ((NAN, NAN, NAN), ["order"]),
    ],
    "renyi": [((0, 0, 0), []), ((1e-10, 1e-10, 1e-10), ["renyi"])],
    "tradeoff": [((-1e-9, -1e-9, -1e-9), []), ((1e-7, 1e-7, 1e-7), ["unsafe"])],
}
MOVED["epsilon"] = MOVED["delta"]


CLOSE = [(method, parts) for method in MOVED for parts in (GAUSSIAN, LAPLACES)]
CLOSE += [("delta", RESPONSES), ("renyi", SAMPLED)]  # where the truth is known so closely


@pytest.mark.parametrize("method, parts", CLOSE)
def test_a_moved_answer_is_seen(method, parts):
    at, true = TRUE[method](Truth(parts))
    for moves, seen in MOVED[method]:
        answer = [float(true.mid()) * (1 + move) for move in moves]
        misses = judge(Query(parts, method, at), answer)
        assert [miss.split(":")[0] for miss in misses] == seen, moves


def _warn(sigma):
    warnings.warn("planted", RuntimeWarning, stacklevel=1)


def _refuse(sigma):
    raise ValueError(f"sigma must be less, got {sigma}")


def _fail(sigma):
    raise ValueError("math domain error")


def test_warnings_and_errors_are_seen():
    query = Query((Part("gaussian", (1.0,)),), "delta", 1.0)
    found = [ask(query, {"dp": SimpleNamespace(gaussian=act)}) for act in (_warn, _fail, _refuse)]
    assert [answer for answer, _ in found] == [None] * 3
    assert [bool(misses) for _, misses in found] == [True, True, False]


ATTACK = int(os.environ.get("ATTACK", 0))  # how many draws, with limits on the processor's time
SEED = int(os.environ.get("SEED", 20))
SECONDS = 20  # for an answer, and again for the truth


class OverError(BaseException):
    """The time is over."""


@pytest.fixture
def limited():
    """Calls a function with a limit on the processor's time."""

    def stop(*_):
        raise OverError

    def call(work, *arguments):
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        return work(*arguments)

    before = signal.signal(signal.SIGPROF, stop)
    yield call
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def answered_right(query, limited):
    answer, misses = limited(ask, query, NAMESPACE) if ATTACK else ask(query, NAMESPACE)
    if answer and (ATTACK or Truth(query.parts).name in QUICK):
        try:
            misses += limited(judge, query, answer)
        except OverError:
            pytest.skip(f"the truth takes over {SECONDS} s: {query.code()}")
    if not ATTACK:  # a busy machine may be slow
        misses = [miss for miss in misses if not miss.startswith("slow")]
    assert not misses, query.code()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=Query.code)
def test_cases_of_reviews(case, limited):
    answered_right(case, limited)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(ATTACK or 60))
def test_a_draw(index, limited):
    answered_right(draw(SEED, index, NAMESPACE), limited)
