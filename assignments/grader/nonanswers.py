"""Which questions of a master accept what is no answer: nothing, constants, an argument, what the
public tests showed.

The tests run as in the grader, with the master's own functions behind them. Then what single calls
give back is replaced. Calls are told apart by their arguments without the generator: a student's
function can see nothing else.
"""

import inspect
import pickle
import warnings
from functools import cache

import numpy as np

from . import marking, masters
from .sandbox import Limits
from .session import fresh
from .wire import pack, unpack

NOTHING = {
    "nothing": None, "zero": 0.0, "one": 1.0, "no": False, "nan": np.nan, "inf": np.inf,
    "an empty text": "", "an empty list": [], "an empty array": np.zeros(0),
    "an empty column": np.zeros((0, 1)), "two empty arrays": (np.zeros(0), np.zeros(0)),
}  # fmt: skip


class Answers:
    """In the place of a session: the master's answers, but where `instead` has something else."""

    limits = Limits()

    def __init__(self, master):
        self.space, self.kept, self.seen = marking.namespace(master), {}, {}
        self.signature = cache(lambda name: inspect.signature(self.space[name]))
        self.instead = lambda call, asked: None
        for cell in master.notebook.cells:
            graded = masters.grading(cell)
            answer = graded.get("solution") and cell.cell_type == "code"
            if answer and not graded["grade_id"].endswith("-plot"):
                exec(masters.solution(cell.source), self.space)

    def begin_test(self):
        """Nothing is set up for a test, or taken down."""

    stop = begin_test

    def look(self, names):
        known = {name: self.space[name] for name in names if name in self.space}
        values = {name: v for name, v in known.items() if not callable(v)}
        return {name: {"function": True} for name in known} | {
            name: {"value": pack(value)} for name, value in values.items()
        }

    def call(self, name, args, kwargs):
        asked = self.signature(name).bind(*fresh(args), **fresh(kwargs)).arguments
        plain = {k: v for k, v in asked.items() if not isinstance(v, np.random.Generator)}
        call = (name, pickle.dumps(plain))
        self.seen.setdefault(call, plain)
        other = self.instead(call, asked)
        return copied(self.right(name, asked) if other is None else other())

    def right(self, name, asked):
        key = pickle.dumps((name, asked))
        if key not in self.kept:
            try:
                self.kept[key] = self.space[name](**pickle.loads(key)[1]), None
            except Exception as error:
                self.kept[key] = None, error
        value, error = self.kept[key]
        if error:
            raise error
        return value

    def test(self, question, given, instead):
        """(what the tests of a question say, the calls of the public ones, all calls)."""
        self.seen, self.instead = {}, instead
        space, message = marking.run_public_tests(self, question, given)
        public = dict(self.seen)
        if space is not None:
            message = marking.run_hidden_tests(self, question, space)
        return message, public, dict(self.seen)


def copied(value):
    """A value as the tests get it from the sandbox; numbers in an array need no detour for that."""
    plain = type(value) is np.ndarray and value.dtype.kind in "biuf"
    return value.copy() if plain else unpack(pack(value))


def candidates(answers, call, plain, public):
    """{what it is: a function that makes it from the arguments} for one call."""
    makers = {what: lambda asked, v=value: v for what, value in NOTHING.items()}
    for name, value in plain.items():
        if not isinstance(value, str):
            makers[f"its argument {name}"] = lambda asked, name=name: asked[name]
        if type(value) is int:
            makers[f"the numbers below {name}"] = lambda asked, name=name: np.arange(asked[name])
    shown = [plain for (name, _), plain in public.items() if name == call[0]]
    if shown and call not in public:
        makers["the answer to a public test"] = redrawn(answers, call[0], shown[-1])
    return makers


def size(value):
    """How many numbers, in lists of any form."""
    return sum(map(size, value)) if isinstance(value, (list, tuple)) else np.size(value)


def redrawn(answers, name, shown):
    """The answer to a public test, with the generator of the call. After a thousand numbers those
    come again: no test asks for one number more than a thousand times."""
    order, drawn = {}, []

    def make(asked):
        others = [value for key, value in asked.items() if key not in shown]
        number = order.setdefault(pickle.dumps(others), len(order))
        if number >= len(drawn) and size(drawn) < 1000:
            drawn.append(answers.right(name, asked | shown))
        return drawn[number % len(drawn)]

    return make


def near(value, right):
    """Whether something is the right answer after all, nearly: a test may have a tolerance."""
    try:
        value, right = np.ravel(value), np.ravel(right)
        return len(value) == len(right) and np.allclose(value, right, 0.25, 0.05)
    except (TypeError, ValueError):
        return False


def alone(answers, question, given, own):
    """Faults: a call that may give back what is no answer, while all others are right."""
    _, public, calls = answers.test(question, given, lambda *_: None)
    for number, (call, plain) in enumerate(calls.items(), 1):
        if call[0] in own:
            for what, make in candidates(answers, call, plain, public).items():
                if any(accepted(answers, question, given, {call: make}.get)):
                    yield f"call {number}, of {call[0]}, may give back {what}"
                    break


def together(answers, question, given, own):
    """What all calls of the hidden tests may give back: where it is right for some of them, the
    tests ask for nothing but that and what the public ones showed."""
    _, public, calls = answers.test(question, given, lambda *_: None)

    @cache
    def kinds(call):
        hidden = call[0] in own and call not in public
        return candidates(answers, call, answers.seen[call], public) if hidden else {}

    for what in dict.fromkeys(what for call in calls for what in kinds(call)):
        if accepted(answers, question, given, lambda call, what=what: kinds(call).get(what)):
            yield f"the hidden tests accept what is no answer: {what}"


def accepted(answers, question, given, chosen):
    """Where calls give back what `chosen` has for them: whether each, up to the first that is, is
    another answer than the right one; nothing if a test does not hold."""
    others = []

    def instead(call, asked):
        if not (make := chosen(call)):
            return None
        if True not in others:
            try:
                others.append(not near(make(asked), answers.right(call[0], asked)))
            except Exception:  # the right answer is an exception
                others.append(True)
        return lambda: make(asked)

    return [] if answers.test(question, given, instead)[0] else others


def find(master):
    """(question, what its tests accept), one after another."""
    answers, given = Answers(master), marking.namespace(master)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for q in (q for q in master.questions if not q.manual):
            own = masters.bound(q.stub)
            for search in (together, alone):
                for what in search(answers, q, given, own):
                    yield q.id, what
