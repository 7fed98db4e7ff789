"""No public test ends in an error of NumPy: it says what it wanted and what the answer gave."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from assignments.grader import marking, masters, nonanswers, words
from assignments.grader.public_tests import PublicTests
from machine import ROOT

PATHS = sorted((ROOT / "assignments").glob("*.md"))
ANSWERS = [
    None, "text", np.zeros((2, 3, 1)), [[1.0], [2.0, 3.0]], np.nan, [1.0], [], {"a": 1},
    (None, None),
]  # fmt: skip
BARE = "your result could not be used"


def what_tests_say(path, answers):
    """(question, what its public tests say) where each call of the question gives back an answer,
    or a generator; the answers to other questions are the master's."""
    master = masters.read(path)
    session, given = nonanswers.Answers(master), marking.namespace(master)
    makers = [lambda value=value: value for value in answers] + [lambda: iter(())]
    for q in (q for q in master.questions if not q.manual):
        own = masters.bound(q.stub)
        for make in makers:
            session.instead = lambda call, _, make=make, own=own: make if call[0] in own else None
            yield q, marking.run_public_tests(session, q, given)[1]


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_what_an_answer_gave_is_told(path, monkeypatch):
    monkeypatch.setattr(nonanswers, "copied", lambda value: value)  # a generator, too, as at home
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        said = list(what_tests_say(path, ANSWERS))
    assert len(said) >= 5 * (len(ANSWERS) + 1)
    for question, message in said:
        first, _, last = message.partition("\nThe last call was ")
        assert first and not first.startswith(BARE) and "…" not in first, (question.id, message)
        assert "it returned" in last, (question.id, message)


def test_without_it_errors_of_numpy_are_told(monkeypatch):
    monkeypatch.setattr(PublicTests, "wanted", lambda *_: "")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        said = [m for _, m in what_tests_say(ROOT / "assignments" / "laplace.md", ANSWERS[:5])]
    assert sum(message.startswith(BARE) for message in said) > 10


def test_what_the_grader_refuses_to_read_is_said_as_such():
    said = [m for _, m in what_tests_say(ROOT / "assignments" / "laplace.md", [])]
    assert all("can't be handed in: use numbers" in message for message in said)


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

config = Config()
config.IPKernelApp = Config()
config.InteractiveShell.colors = "nocolor"
shell = InteractiveShell(config=config)
for source in {cells!r}:
    print("-- cell --")
    shell.run_cell(source)
"""
TEST = """given = lambda value: value
rng = np.random.default_rng(1)
assert np.isclose(given(f(1.0, rng=rng)), 2.0), "f doubles"
seen = np.array([len(part) for part in [f(3.0)]])
assert abs(seen.mean() - 30) < 1, f"the mean of {10 + 2} parts is 30; yours: {seen.mean():.2f}"
"""


def in_jupyter(*cells):
    """What each cell shows, after that of the public tests."""
    every = [masters.helper(words.Words(), {"f"}).source, "import numpy as np", *cells]
    program = NOTEBOOK.format(cells=every)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    shown = done.stdout.split("-- cell --\n")
    assert not any(shown[:3])
    return [text.strip() for text in shown[3:]]


def test_in_jupyter_a_test_says_it_too():
    answer = "def f(x, rng=None):\n    return {}"
    cells = [answer.format("None"), TEST, answer.format("[2.0] * 2 + ['a']"), TEST,
             answer.format("2.0"), TEST, "f.__name__, f"]  # fmt: skip
    _, nothing, _, mixed, _, number, own = in_jupyter(*cells)
    called = "The last call was f(1.0, rng=rng); it returned"
    assert nothing.endswith(f"f doubles. {called} None. Did you forget `return`?")
    assert mixed.endswith(f"f doubles. {called} [2.0, 2.0, 'a'].")
    said = "the mean of 12 parts is 30. The last call was f(3.0); it returned 2.0."
    assert number.endswith(f"AssertionError: {said}")
    assert all(
        "----> " in text and "site-packages" not in text for text in (nothing, mixed, number)
    )
    assert own.startswith("Out") or (own.startswith("('f'") and "watched" not in own)


def test_in_jupyter_an_error_of_the_answer_keeps_its_traceback():
    broken = "def f(x, rng=None):\n    y = np.zeros(3)\n    return y + np.zeros(2)"
    _, inside, outside = in_jupyter(broken, TEST, "np.zeros(3) + np.zeros(2)")
    error = "ValueError: operands could not be broadcast together with shapes (3,) (2,)"
    assert inside.endswith(error) and "----> 3     return y + np.zeros(2)" in inside
    assert "call(*args" not in inside and outside.endswith(error)
