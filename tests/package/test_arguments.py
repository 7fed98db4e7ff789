"""Every public call with every kind of argument: an answer, or one ValueError that names what is
wrong. Never another exception, a warning, a NaN, a hang, data in a message, or a change of the
caller's arrays. What a parameter may be is read from its annotation.
"""

import decimal
import inspect
import re
import signal
import subprocess
import sys
import traceback
import typing
from contextlib import contextmanager
from fractions import Fraction
from importlib.resources import files

import numpy as np
import pytest

import dpnotes as dp
from dpnotes import checks
from dpnotes.chapters import adaptive_analysis as adaptive
from dpnotes.chapters import erm, stopping
from dpnotes.chapters import query_release as release
from evidence import holds, must_fail
from machine import LOOP
from public import PUBLIC

INF, MOST, ABOVE, TINY = np.inf, 1e100, np.nextafter(1e100, np.inf), 5e-324
TOO_SMALL = np.nextafter(1e-100, 0)
ENDS = {  # a kind: what it just accepts, what it just refuses
    "Real": ((MOST, -MOST, 0.0, 3), (ABOVE, -ABOVE, INF, -INF)),
    "Positive": ((MOST, 1e-100, 1, [TINY, 1.0]), (ABOVE, TOO_SMALL, 0, INF, [0.0, 1.0])),
    "Nonnegative": ((MOST, 0.0), (ABOVE, -TINY, INF)),
    "NonnegativeOrInf": ((MOST, INF, 0.0), (ABOVE, -TINY)),
    "Probability": ((0.0, 1.0), (-TINY, 1 + 1e-15)),
    "PositiveProbability": ((TINY, 1.0), (0.0, 1 + 1e-15)),
    "OpenProbability": ((TINY, 1 - 1e-15), (0.0, 1.0)),
    "BelowOneNumber": ((0.0, 1 - 1e-15), (-TINY, 1.0, [0.5])),
    "Order": ((1.0, MOST, INF), (1 - 1e-15, ABOVE)),
    "OrderAboveOne": ((1 + 1e-15, MOST), (1.0, ABOVE, INF)),
    "Count": ((1, 2**63 - 1, 1e6), (0, 1.5, 2**63, 2.0**63, [1])),
    "CountOrZero": ((0, 2**63 - 1, 0.0), (-1, 0.5, 2**63, [1])),
    "Few": ((1, 10_000), (0, 10_001, 1.5)),
    "Many": ((1, 10_000_000), (0, 10_000_001, 1.5)),
    "Counts": (([1, 2.0], 1e100), ([0, 1], 1.5, 2e100)),
    "Laws": (([0.5, 0.5 + 0.9e-9], [[1.0], [1.0]]), ([0.5, 0.5 - 1.1e-9], [1.5, -0.5], 1.0)),
    "Distribution": (([0.5, 0.5 - 0.9e-9],), ([0.5, 0.5 + 1.1e-9], [1.5, -0.5], [[1.0]], 1.0)),
    "Vector": (([MOST, -3], []), ([ABOVE], [[1.0]], 1.0)),
    "Matrix": (([[1.0]],), ([1.0], [[1.0], [1.0, 2.0]])),
    "Function": ((abs,), (3, None)),
    "Generator": (
        (np.random.default_rng(0),),
        (3, np.random.RandomState(0), type("Own", (np.random.Generator,), {})(np.random.PCG64(0))),
    ),
}
ENDS |= {  # one number: the same ends, and no arrays
    f"{kind}Number": tuple(tuple(v for v in side if np.ndim(v) == 0) for side in ENDS[kind])
    for kind in (
        "Real", "Positive", "Nonnegative", "NonnegativeOrInf", "Probability", "OpenProbability",
        "PositiveProbability", "Order",
    )
}  # fmt: skip
KINDS = {str(getattr(checks, kind)): ends for kind, ends in ENDS.items()}
MASKED = np.ma.masked_array([0.5, 0.5], [True, False])  # the mask would be lost without a word
NO_NUMBERS = (
    "x", "1", ["1"], 1j, np.array([1j]), object(), {}, [[1.0, 2.0], [3.0]], MASKED,
    [MASKED, MASKED], np.ma.masked, b"1", [b"1"], bytearray(b"1"), memoryview(b"11"),
    np.array(["2026-01-01"], dtype="M8[D]"),
)  # fmt: skip
BAD = (np.nan, [], np.zeros((2, 0)), *NO_NUMBERS)
HUGE = 10**400
ODD = (
    0, -1, -0.0, 0.999, 1.0, TINY, 1e300, INF, -INF, 2**31, 2**63, HUGE, -HUGE, np.float16(0.5),
    np.int8(3), np.uint64(2**63), np.array(0.5), np.array(3), Fraction(1, 2),
    decimal.Decimal("NaN"), True, np.True_, None, "3", b"3", np.array("3"), bytearray(b"3"),
    memoryview(b"33"), (), range(3), {0.5}, slice(3), ..., int, lambda: None, iter([0.5]),
    np.datetime64("2026-01-01"), Exception("no"), [0.5, None], [[]], np.zeros((1, 1, 1)),
    np.array([0.5], dtype=object), np.ma.masked_array([0.5, 0.5], [True, False]),
    np.full((2, 2), INF), np.array([1e300, -1e300]), np.array([True, False]),
    np.zeros(3, dtype=[("a", float)]),
)  # fmt: skip

RNG = np.random.default_rng(0)
ROWS = np.clip(0.3 * RNG.normal(size=(20, 2)), -0.5, 0.5)
SIGNS = np.where(ROWS @ [1.0, -0.5] > 0, 1.0, -1.0)
GOOD = {  # an argument of each name that most functions accept
    "t": 2.0, "mean": 0.5, "limit": 5.0, "sigma": 1.5, "n": 10, "k": 5, "beta": 0.05, "mu": 0.3,
    "p": [0.5, 0.3, 0.2], "q": [0.2, 0.3, 0.5], "alpha": 20.0, "delta": 1e-5, "epsilon": 0.5,
    "scale": 2.0, "rate": 0.25, "sensitivity": 1, "respondents": 10, "threshold": 1.0,
    "epsilons": [0.1, 0.2], "delta_prime": 1e-6, "target_epsilon": 1.0, "target_delta": 1e-5,
    "curve": [0.1, 0.2], "error": 10.0, "rows": 4, "passes": 5, "data": [0, 1, 1],
    "mechanism": lambda rows: [0.5, 0.5],
    "rdp": 0.3, "rho": 0.2, "value": 1, "rng": RNG, "bits": [0, 1, 1], "answers": [0, 1, 1],
    "utility": [1.0, 2.0, 3.0], "gradients": ROWS, "clip": 1.0, "x": ROWS, "y": SIGNS,
    "noise": release.sparse_rounds(1.0), "reports": [0, 0, 1], "count": 2, "rounds": 3,
    "weights": [0.2, 0.3, 0.5], "query": [0.0, 0.5, 1.0], "step": 0.3, "start": np.zeros((2, 2)),
    "steps": 3, "batch_size": 5, "learning_rate": 0.1, "theta": np.zeros(2), "regularization": 0.1,
    "points": ROWS, "dimension": 3, "radius": 1.0, "values": [0.1, 0.5, 0.7], "lower": 0.0,
    "upper": 1.0, "log_p": lambda x: -x * x / 2 - 0.9189385332046727,
    "log_q": lambda x: -((x - 1) ** 2) / 2 - 0.9189385332046727, "edges": [-8.0, 0.0, 9.0],
    "scores": [1.0, 2.0, 3.0], "histogram": [3, 0, 2], "queries": [[0.0, 0.5, 1.0]], "universe": 4,
    "family": dp.gaussian, "loss": erm.logistic_loss, "log_mgf": lambda s: s * s / 2, "eta": 0.01,
    "m": 1000, "tau": 0.5, "sizes": (9, 8), "asked": [1, 3],
    "draw": lambda x, runs, rng: [x] * runs, "grid": 0.25, "output": 0.5, "successes": 3,
    "trials": 10, "alarm": 0.05, "other": 1, "runs": 10, "false_alarm": 0.05, "guesses": 2,
    "correct": 2, "gamma": 0.1, "quantile": 0.5, "choices": 3, "share": 0.2, "keys": 2,
    "people": 5, "guess": 0.6,
    "subsets": [[1, 0, 0], [1, 1, 0], [0, 1, 1]], "failure": 0.05,
    "prior": 0.1, "base_rate": 0.1, "baseline": 0.1,
    "strategy": np.eye(3), "bands": 2,
    "fpr": 0.01, "run": dp.gaussian(30.0), "proof": dp.prove(dp.gaussian(30.0), 0.5, 1e-5),
    "text": "no proof",
}  # fmt: skip
CLASSES = {"y": (SIGNS > 0).astype(int), "theta": np.zeros((2, 2))}
SPECIAL = {
    **{name: {"loss": dp.gaussian(1.0)} for name in ("subsample", "subsample_substitution")},
    "subsampling.dp_sgd": {"y": CLASSES["y"]},
    "subsampling.softmax_clipped_sum": CLASSES,
    "stopping.geometric_runs": {"mean": 10.0},
    **{
        f"stopping.best_of_{name}": {"runs": stopping.geometric_runs(5.0), "loss": dp.gaussian(2.0)}
        for name in ("epsilon", "renyi")
    },
    **{
        f"stopping.best_of_{name}": {"runs": stopping.geometric_runs(5.0)}
        for name in ("law", "loss", "pure")
    },
    "adaptive_analysis.noise_analyst": {"answer": lambda first, *more: first},
    "selection.small_db_accuracy": {"queries": 5},
    "erm.noisy_gradient_descent": {"y": SIGNS},
    **{f"query_release.{name}_error": {"queries": 5} for name in ("laplace_histogram", "mwem")},
    "query_release.weights_plan": {"queries": 5},
    "auditing.epsilon_from_guesses": {"canaries": 10},
    "tail_bounds.chernoff_kl": {"t": 0.4},
    "composition.simulating_kernel": {"epsilon": 2.0, "delta": 0.0},
    "approximate_dp.conditioning_events": {"epsilon": 2.0, "delta": None},
    "calibrate": {"epsilon": 0.5, "delta": 1e-5},
    **{name: {"alpha": 0.1} for name in ("tradeoff", "PrivacyLoss.tradeoff")},
}
NOT_CALLED = (  # by readers: the page's experiments, and what one room lends to others
    *(
        f"erm.{name}"
        for name in ("bench_results", "held_out", "line_up", "public_options", "regrets")
    ),
    "risk.train",
    "composition.round_epsilon",
)
CALLS = {
    name: call
    for name, call in PUBLIC.items()
    if inspect.isfunction(call)
    and name not in ("composition.adaptive_law", "auditing.audit", *NOT_CALLED)
}
QUERIES = "compose delta delta_interval epsilon epsilon_interval mu renyi tpr tradeoff".split()
CALLS |= {f"PrivacyLoss.{name}": getattr(dp.gaussian(1.0), name) for name in QUERIES}
FREE = {"mean", "each", "log_mgf", "gradient_sum"}  # functions given by the caller
# whose values may be any numbers, NaN and none at all too:
ANY_NUMBER = (
    "to_grid", "safe_count", "safe_mean", "safe_quantile", "safe_sum", "selection.private_median",
)  # fmt: skip
WITH_NAN = ("query_release.sparse_runs",)  # for "not asked"
SECONDS = 5  # of processor time: the end of a call that hangs


def arguments(name, call):
    """Good arguments for the parameters without a default, and what is needed beside."""
    special = SPECIAL.get(name, {})
    taken = inspect.signature(call).parameters
    needed = [key for key in taken if taken[key].default is inspect.Parameter.empty]
    return {**{key: GOOD[key] for key in needed if key not in special}, **special}


def hint(call, key):
    """The kind of a parameter."""
    return str(typing.get_type_hints(call, include_extras=True)[key])


def refused(name, call):
    """Values that make no sense for the kind of a parameter are refused by its name."""
    good = arguments(name, call)
    call(**good)
    for key in inspect.signature(call).parameters:
        if key in FREE:
            continue
        bad = BAD
        if key in ("data", "gradients"):  # a list of anything, or of nothing, is a list of rows
            bad = (np.nan, 1j, object())
        elif key == "values" and name in ANY_NUMBER:
            bad = NO_NUMBERS
        for value in (*bad, *KINDS.get(hint(call, key), ((), ()))[1]):
            with pytest.raises(ValueError) as error:
                call(**{**good, key: value})
            assert key in str(error.value), (name, key, value, str(error.value))


@pytest.mark.parametrize("name", CALLS)
def test_bad_arguments_are_refused_by_name(name):
    refused(name, CALLS[name])


@pytest.mark.parametrize("kind", ENDS)
def test_a_kind_ends_where_it_says(kind):
    check = getattr(checks, kind).__metadata__[0]
    for value in ENDS[kind][0]:
        assert np.all(check("it", value) == np.asarray(value))
    for value in (*ENDS[kind][1], None, True, "1", np.ma.masked_array([0.5], [True]), b"3"):
        with pytest.raises(ValueError, match="^it must be ") as error:
            check("it", value)
        value = checks.plain(value)
        assert (repr(value) in str(error.value)) == isinstance(value, checks.SHOWN)


def test_numbers_come_as_python_has_them():
    assert type(checks.count("it", 1e6)) is type(checks.count("it", 3.0, 0)) is int
    assert checks.count("it", 2**63 - 1) == 2**63 - 1  # exact: no float is near
    assert type(checks.plain(np.float64(2))) is type(checks.real("it", np.int8(2))) is float
    assert checks.array("it", [3], 1).dtype == float and checks.choice("it", 1.0, (1, 2)) == 1
    for wrong in (True, 3, [1]):
        with pytest.raises(ValueError, match="^it must be 1 or 2"):
            checks.choice("it", wrong, (1, 2))
    assert checks.within("it", 2.0, 2, 3) == 2.0 and checks.within("it", 3, 2, 3) == 3.0
    for wrong in (1.9, 3.1):
        with pytest.raises(ValueError, match="^it must be in"):
            checks.within("it", wrong, 2, 3)


def test_an_annotation_without_a_check_is_an_error_of_the_module():
    def plain(sigma: float):
        return sigma

    def none(sigma):
        return sigma

    for call in (plain, none):
        with pytest.raises(TypeError, match="sigma has no check"):
            checks.checked(call)

    @checks.checked
    def right(sigma: checks.Positive, order: checks.OrderNumber | None = None, *p: checks.Laws):
        return sigma, order, len(p)

    assert right(1) == (1.0, None, 0) and right(1, 2, [1.0]) == (1.0, 2.0, 1)
    for wrong, name in ((0,), "sigma"), ((1, 0.5), "order"), ((1, 2, [0.5]), "p"):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            right(*wrong)
    with pytest.raises(TypeError, match="^right\\(\\): missing a required argument"):
        right()
    with pytest.raises(TypeError, match="^right\\(\\): no argument 'sgima', but sigma, order, p$"):
        right(sgima=1)


def test_every_public_call_is_checked_and_shows_its_hints():
    assert [name for name, call in CALLS.items() if not hasattr(call, "__wrapped__")] == []
    for name, call in CALLS.items():
        assert set(inspect.signature(call).parameters) <= set(typing.get_type_hints(call)), name
    assert {"calibrate", "gaussian", "finite", "PrivacyLoss"} <= set(dir(dp))
    assert files("dpnotes").joinpath("py.typed").is_file()


def test_what_is_slow_to_import_is_left_for_later():
    """Also SciPy, when Gaussian noise is asked, sampled or not."""
    slow = "scipy", "matplotlib", "numpy.ma", "numpy.polynomial"
    code = f"""import sys, dpnotes as dp
print([m for m in {slow} if m in sys.modules])
for loss in (dp.gaussian(9.0), dp.subsample(dp.gaussian(1.0), 0.01)):
    loss.epsilon(1e-5), loss.compose(1000).epsilon(1e-5)
print([m for m in {slow[:2]} if m in sys.modules])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["[]", "[]"]


# -------------------------------------------------------------------------- odd, but maybe right


class Hang(Exception):
    """The time is over."""


@contextmanager
def processor_time(seconds):
    """Stops what takes longer. The processor's time, so that a busy machine changes nothing."""

    def stop(*_):
        raise Hang

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def is_nan(answer):
    """Whether a number in the answer is not one."""
    if isinstance(answer, (tuple, list)):
        return any(map(is_nan, answer))
    return isinstance(answer, (float, np.ndarray)) and bool(np.any(np.asarray(answer) != answer))


def fault(call, good, key, odd):
    """What is wrong with the call when the argument `key` is `odd`, or None."""
    try:
        with processor_time(SECONDS):
            answer = call(**{**good, key: odd})
    except ValueError as error:
        named = any(name in str(error) for name in inspect.signature(call).parameters)
        return None if named else f"names no argument: {error}"
    except Hang:
        return f"takes over {SECONDS} s"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "a NaN" if is_nan(answer) else None


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_odd_arguments_are_answered_or_refused_by_name(name):
    call = CALLS[name]
    good, taken = arguments(name, call), inspect.signature(call).parameters
    faults = {}
    for key in taken:
        theirs = key == "weigh" or callable(good.get(key, taken[key].default))
        for odd in ODD:
            if not (theirs and callable(odd)):
                faults[f"{key}={odd!r:.60}"] = fault(call, good, key, odd)
    allowed = ("a NaN",) if name in WITH_NAN else ()
    assert not {odd: said for odd, said in faults.items() if said and said not in allowed}


def frozen(value):
    """The same data in an array that can't be written."""
    if isinstance(value, list):
        value = np.asarray(value, dtype=float)
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
    return value


@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_the_caller_are_only_read(name):
    CALLS[name](**{k: frozen(v) for k, v in arguments(name, CALLS[name]).items()})


def test_faults_are_seen(monkeypatch):
    monkeypatch.setitem(globals(), "SECONDS", 0.1)

    def hangs(values):
        exec(LOOP)

    def nameless(values):
        raise ValueError("no")

    assert fault(hangs, {}, "values", 1) == f"takes over {SECONDS} s"
    assert fault(nameless, {}, "values", 1) == "names no argument: no"
    assert fault(lambda values: np.nan, {}, "values", 1) == "a NaN"
    assert fault(lambda values: 1 / values, {}, "values", 0).startswith("ZeroDivisionError")
    with pytest.raises(ValueError, match="read-only"):
        frozen([1.0, 2.0])[0] += 1
    careless = lambda sigma: 1 / sigma if sigma == sigma else np.nan  # noqa: E731
    with pytest.raises((KeyError, AssertionError, TypeError, pytest.fail.Exception)):
        refused("gaussian", careless)


def test_what_a_guarantee_rests_on_cannot_be_changed_afterwards():
    plan = release.weights_plan(5, 3, 2, epsilon=1.0)
    systems = (
        (adaptive.Thresholdout(0.1, 0.1, 3, rng=RNG), ("left",)),
        (release.MultiplicativeWeights([3, 0, 2], plan, rng=RNG), ("updates", "weights")),
        (stopping.Filter(1.0, 1e-6), ("order", "spent", "left")),
        (stopping.GaussianFilter(1.0, 1e-6), ("spent", "left")),
    )
    for system, names in systems:
        for name in names:
            before = getattr(system, name)
            with pytest.raises(AttributeError):
                setattr(system, name, before)
            if isinstance(before, np.ndarray):  # what is given out is a copy
                before[:] = 1e9
                assert (getattr(system, name) < 1e9).all()


# --------------------------------------------------------------------- data stay out of messages

NUMBER, WORD = 7777777.25, "bob's secret"


class Row:
    """A row that cannot be read, and says what it holds."""

    def __array__(self, *how, **more):
        raise RuntimeError(WORD)

    __float__ = __array__


ROWS_OF_SECRETS = (
    [NUMBER, np.nan], [[NUMBER], [1.0, 2.0]], [[[[[[NUMBER]]]]]], [WORD, 1], (NUMBER, None),
    np.array([NUMBER, WORD], dtype=object), np.ma.array([NUMBER, 1.0]), {WORD: NUMBER}, [NUMBER],
    [-NUMBER, 0.5], np.full((4, 3), NUMBER), [int(NUMBER) * HUGE], WORD.encode(), Row(), [Row()],
    [HUGE, Row()],
)  # fmt: skip
SECRETS = (NUMBER, -NUMBER, complex(NUMBER, 1), WORD, int(NUMBER) * HUGE + 1)
DATA = set("answers bits data gradients histogram holdout points scores training".split())
DATA |= set("utility value values x y".split())


def tells(call, **given):
    """Whether an exception of this call, as it is printed, shows a secret."""
    try:
        call(**given)
    except Exception as error:
        return bool(re.search(r"7\.?77777|secret", "".join(traceback.format_exception(error))))
    return False


def shows_no_data(call, good):
    """An exception is an output: it shows no row of what may be data (X-safe-sum), nor rows that
    stand where something else should."""
    for key in inspect.signature(call).parameters:
        for planted in ROWS_OF_SECRETS + (SECRETS if key in DATA else ()):
            holds(np.array([not tells(call, **{**good, key: planted})]), f"{key} is shown")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_an_exception_shows_no_data(name):
    shows_no_data(CALLS[name], arguments(name, CALLS[name]))


def test_an_exception_of_a_system_shows_no_data():
    assert checks.DATA == DATA
    plan = release.weights_plan(5, 3, 2, epsilon=1.0)
    shows_no_data(release.MultiplicativeWeights, {"histogram": [3, 0, 2], "plan": plan, "rng": RNG})
    oracle = adaptive.Thresholdout(0.1, 0.1, 3, rng=RNG)
    shows_no_data(oracle.answer, {"training": [[0.5]], "holdout": [[0.4]]})
    for budget in (stopping.Filter(1.0, 1e-6), stopping.GaussianFilter(1.0, 1e-6)):
        shows_no_data(budget.allows, {"step": dp.gaussian(1e3)})

    def talks(values):
        raise ValueError(f"values must be numbers, got {values!r}")

    def passes_on(values):
        float(values[0]) if values[0] == WORD else None

    def swapped(bound):
        raise ValueError(f"bound must be a number, got {bound!r}")

    for call, name in ((talks, "values"), (passes_on, "values"), (swapped, "bound")):
        must_fail(shows_no_data, call, {name: [0.5]})


class Tensor:
    """What a tensor with a gradient does when NumPy asks for its numbers."""

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def detach(self):
        return self


@pytest.mark.parametrize(
    "odd, said",
    [
        (Fraction(1, 2), "got a Fraction: write float(...)"),
        (decimal.Decimal("0.5"), "got a Decimal: write float(...)"),
        ([], "got nothing: it is empty"),
        (np.zeros(0), "got nothing: it is empty"),
        (Tensor(), "got a tensor: write ....detach().numpy()"),
    ],
)
def test_a_refusal_says_what_to_write(odd, said):
    for call in (dp.gaussian(1.0).epsilon, dp.gaussian(1.0).delta, dp.zcdp_to_dp):
        name, *rest = inspect.signature(call).parameters
        with pytest.raises(ValueError, match=f"^{name} must be ") as error:
            call(odd, *(0.1 for _ in rest))
        assert str(error.value).endswith(said)
    with pytest.raises(ValueError) as error:  # data are not described
        dp.to_grid(Tensor(), lower=0.0, upper=1.0, grid=0.5)
    assert "got" not in str(error.value)
