"""What an editor and type checkers know of dpnotes: mypy over its bodies, both over a client."""

import inspect
import json
import re
import subprocess
import sys

import pytest

import dpnotes as dp
from machine import ROOT
from public import PUBLIC
from surroundings import node_executable

CLIENT = """
from typing import assert_type

import numpy as np

import dpnotes as dp
from dpnotes import checks, numerics
from dpnotes.chapters import composition, erm, query_release, stopping

loss = dp.gaussian(sigma=1.1, sensitivity=2)
assert_type(loss, dp.PrivacyLoss)
assert_type(loss.epsilon(1e-5), float)
assert_type(loss.epsilon(np.float64(1e-5)), float)
assert_type(loss.epsilon(np.array([1e-5])), checks.Array)
assert_type(loss.delta([1.0, 2.0]), checks.Array)
assert_type(loss.epsilon_interval(delta=1e-5), tuple[float, float])
assert_type(loss.renyi(2), float)
assert_type(loss.tpr(fpr=0.01), float)
assert_type(loss.tpr([0.01, 0.1]), checks.Array)
assert_type(loss.mu(), tuple[float, float])
assert_type(dp.calibrate(dp.gaussian, tpr=0.03, fpr=0.01), float)
assert_type(sum([loss, loss.compose(3)], loss), dp.PrivacyLoss)
assert_type(dp.subsample(loss, rate=0.01) + dp.finite([0.5, 0.5], [0.4, 0.6]), dp.PrivacyLoss)
assert_type(dp.gaussian_delta(1.0, epsilon=[0.5]), checks.Array)
assert_type(dp.gaussian_delta(1.0, epsilon=0.5), float)
assert_type(dp.kl([0.5, 0.5], [0.4, 0.6]), float)
assert_type(dp.calibrate(lambda s: dp.gaussian(sigma=s), epsilon=1.0, delta=1e-5), float)
assert_type(stopping.Filter(1.0, 1e-6).allows(loss), bool)
assert_type(query_release.SparseVector(1.0, 2.0).query_scale, float)
erm.geometric_median, composition.advanced, dp.kl

dp.gaussian(sgima=1)  # call-arg
dp.gaussian(sigma="x")  # arg-type
dp.gaussian(1.0).epsilon(None)  # call-overload
dp.gaussian(1.0).epsilom(1e-5)  # attr-defined
dp.laplace_mechanism(1.0)  # call-overload
dp.subsample(1.1, rate=0.5)  # arg-type
dp.composition  # attr-defined
numerics.ndrt  # attr-defined
"""

STRICT = """
import numpy as np

import dpnotes as dp
from dpnotes.chapters import auditing, composition, stopping

rng = np.random.default_rng(1)
step = dp.subsample(dp.gaussian(sigma=1.1), rate=256 / 60_000)
run = step.compose(14_100)
epsilon: float = run.epsilon(delta=1e-5)
several = run.epsilon(np.array([1e-5, 1e-6])).max()
low, high = run.epsilon_interval(1e-5)
whole: dp.PrivacyLoss = sum([run, step], dp.PrivacyLoss())
delta: float = sum([run, step], dp.PrivacyLoss()).delta(1.0)
sigma: float = dp.calibrate(lambda s: dp.gaussian(sigma=s), epsilon=1.0, delta=1e-5)
rounds: float = dp.calibrate(lambda k: dp.gaussian(sigma=9.0).compose(k), epsilon=1.0, delta=1e-5)
also: float = dp.calibrate(dp.gaussian, epsilon=1.0, delta=1e-5)
closed: float = dp.gaussian_sigma(1.0, 1e-6)
table = dp.gaussian_delta(1.0, [0.5, 1.0]).tolist()
one: float = dp.gaussian_delta(sigma=1.0, epsilon=0.5)
y: int = dp.discrete_laplace_mechanism(3, epsilon=1.0, rng=rng)
z: float = dp.laplace_mechanism(3.5, epsilon=1.0, rng=rng)
noisy = dp.gaussian_mechanism([1.0, 2.0], sigma=2.0, rng=rng).sum()
bound: float = composition.advanced(epsilon=0.1, k=100, delta_prime=1e-6)
best: float = composition.optimal(0.1, 100, 1e-6)
distance: float = dp.kl([0.5, 0.5], [0.4, 0.6])
budget = stopping.Filter(1.0, 1e-6)
may: bool = budget.allows(dp.gaussian(1e3)) and budget.allows(lambda order: 0.01 * order)
found: float = auditing.epsilon_from_counts(90, 1, 100, false_alarm=1e-6)
history = [dp.gaussian(sigma=s) for s in (1.0, 2.0)]
print(f"{sum(history, dp.PrivacyLoss()).epsilon(1e-6):.3f}")
"""


def mypy(tmp_path, *arguments):
    """What mypy prints: a line for each complaint."""
    command = [sys.executable, "-m", "mypy", f"--cache-dir={tmp_path}", "--no-error-summary"]
    return subprocess.run(
        [*command, "--no-pretty", *arguments], cwd=ROOT, capture_output=True, text=True
    ).stdout


@pytest.mark.slow
def test_a_client_has_true_hints(tmp_path):
    client = tmp_path / "client.py"
    client.write_text(CLIENT)
    said = mypy(tmp_path, "--strict", "--follow-imports=silent", str(client))
    reported = re.findall(r"client.py:(\d+): error: .*\[([\w-]+)\]", said)
    planted = [
        (str(number), line.split("# ")[1])
        for number, line in enumerate(CLIENT.splitlines(), 1)
        if "  # " in line
    ]
    assert reported == planted, said


def pyright(client):
    """What pyright says of a client in its strict mode: its errors, with their lines."""
    facts = {"strict": [client.name], "include": [client.name], "extraPaths": [str(ROOT)]}
    (client.parent / "pyrightconfig.json").write_text(json.dumps(facts))
    program = ROOT / "node_modules" / "pyright" / "index.js"
    command = [node_executable(), program, "--outputjson", "--pythonpath", sys.executable]
    said = subprocess.run(command, cwd=client.parent, capture_output=True, text=True)
    errors = json.loads(said.stdout)["generalDiagnostics"]
    return [(one["range"]["start"]["line"] + 1, one["message"]) for one in errors]


@pytest.mark.slow
def test_strict_checkers_pass_what_clients_write(tmp_path):
    """And it runs: no line is right only for a checker."""
    client = tmp_path / "client.py"
    client.write_text(STRICT)
    assert mypy(tmp_path, "--strict", "--follow-imports=silent", str(client)) == ""
    assert pyright(client) == []
    exec(STRICT, {})
    client.write_text(STRICT.replace("y: int", "y: str").replace("sigma=s),", "sgima=s),"))
    assert {line for line, _ in pyright(client)} == {15, 21}


@pytest.mark.slow
def test_bodies_agree_with_their_hints(tmp_path):
    """Inside a function an argument is what its check made of it: an array, and not ArrayLike."""
    text = (ROOT / "dpnotes/checks.py").read_text()
    given = "from numpy.typing import ArrayLike as ArrayLike"
    assert given in text
    shadow = tmp_path / "checks.py"
    shadow.write_text(text.replace(given, "from typing import Any\nArrayLike = Any"))
    assert not mypy(tmp_path, "--shadow-file", "dpnotes/checks.py", str(shadow), "dpnotes")


def test_all_that_is_public_has_hints():
    members = [m for each in PUBLIC.values() if inspect.isclass(each) for m in vars(each).values()]
    calls = [getattr(one, "fget", one) for one in [*PUBLIC.values(), *members]]
    calls = [inspect.unwrap(one) for one in calls if inspect.isfunction(one)]
    calls = [one for one in calls if one.__name__[0] != "_"]
    assert len(calls) > 150
    for call in calls:
        named = {*inspect.signature(call).parameters, "return"} - {"self"}
        assert named <= set(call.__annotations__), call


def test_all_is_what_is_offered():
    own = {name for name, thing in vars(dp).items() if callable(thing) and name[0] != "_"}
    assert dp.__all__ == sorted(own)


def test_a_misspelt_name_fails_at_import():
    with pytest.raises(ImportError, match="ndrt"):
        from dpnotes.numerics import ndrt  # noqa: F401
