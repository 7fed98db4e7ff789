"""One submission in the sandbox: its cells run there, the tests run here and ask for values.

The student's process never sees a test. It is asked for values and answers with data, so there is
nothing in it worth patching: a changed SciPy, a transformed syntax tree or a forged exception only
changes the answers.

Three steps. First the notebook runs with the public tests: from this step alone comes text that
depends on the student's code. Then the hidden tests run in the same process, each once. What failed
is tried once more in a new process, each question where its test stands, and a question that failed
for good gets the master's answer there, so that later questions can be right without it.
"""

import re
from collections import Counter
from contextlib import contextmanager

from . import reading
from .opening import Late, alarm
from .session import SandboxEnded, Session, short
from .telling import TESTS, explain_failed_test
from .wire import unpack
from .words import HIDDEN, NOT_REACHED, UNREACHED

ATTEMPTS = 3
MESSAGE = 1000  # characters of what a question's feedback says
SLOW = "your code took longer than {:g} seconds of processor time in a test that is not shown"
COPIES = "the test cell of {} stands there {} times"
CUT = "cells took too long and were cut off: all together may work for {:g} seconds"
NO_TIME = "no time was left for this question: your cells took most of the {:g} seconds there are"


class Remote:
    """A student's function, called in the sandbox."""

    def __init__(self, session, name, calls):
        self.session, self.__name__, self.calls = session, name, calls

    def __call__(self, *args, **kwargs):
        value = self.session.call(self.__name__, args, kwargs)
        if self.calls is not None:
            self.calls[:] = [(self.__name__, args, kwargs, value)]
        return value


def fill_namespace(session, question, space, calls):
    """Give the tests the student's values, and functions that call the student's; of the calls of
    the question's own functions the last one is kept, for a message."""
    own = reading.bound(question.stub)
    for name, answer in session.look(question.uses).items():
        if "error" in answer:
            raise TypeError(f"`{name}` can't be tested: {short(answer['error'])}")
        is_function = "function" in answer
        told = calls if name in own or not own else None
        space[name] = Remote(session, name, told) if is_function else unpack(answer["value"])
    for name in sorted(question.uses - set(space)):
        raise AssertionError(
            f"`{name}` is not defined; define it in the cell of question {question.id}"
        )


@contextmanager
def testing(session):
    """Limits of time around the tests of one question: here the work of this process, in the
    session that of the student's."""
    try:
        session.begin_test()
        with alarm(session.limits.cell_seconds + session.limits.spare_seconds):
            yield
    except Late:
        session.stop()  # perhaps in the middle of an answer
        raise


def run_public_tests(session, question, given):
    """(the tests' namespace or None, what to tell the student)."""
    space, calls = dict(given), []
    try:
        with testing(session):
            fill_namespace(session, question, space, calls)
            exec(compile(question.source, f"{TESTS} {question.id}", "exec"), space)
        return space, ""
    except Exception as error:  # a wrong type in a student's answer can raise anything
        try:
            said = explain_failed_test(error, question.source, space, calls)[:MESSAGE]
        except Exception:  # the text of an exception that holds a student's value
            said = "your result could not be used, nor shown"
        return None, said or "a test of this question failed"


def run_hidden_tests(session, question, space):
    """An empty string if all hold, else one of the sentences of the tests: nothing else is told,
    because text of the student's code could say what a hidden test asked."""
    try:
        with testing(session):
            exec(compile(question.hidden, f"hidden tests of {question.id}", "exec"), space)
    except SandboxEnded as gone:
        return SLOW.format(session.limits.cell_seconds) if "too long" in str(gone) else HIDDEN
    except Exception as error:
        return str(error) if str(error) in question.sentences else HIDDEN
    return ""


class Marking:
    """What is known about one submission while its tests run."""

    def __init__(self, session, steps, master, given, lends=True):
        self.session, self.steps, self.given, self.lends = session, steps, given, lends
        self.questions = {q.id: q for q in master.questions if not q.manual}
        self.failed = dict.fromkeys(self.questions, NOT_REACHED)
        self.log, self.flags, self.errors, self.lent, self.spaces = [], [], [], set(), {}
        self.refused = set()  # in their public tests
        self.asked = set()  # their hidden tests ran in this process: an answer gets one try
        self.cut = set()  # cells that were cut off, as they took too long

    def run_steps(self, steps, at_test):
        """Run the notebook from top to bottom, and `at_test` at each test cell."""
        for number, (kind, body) in enumerate(steps, 1):
            if kind == "test":
                at_test(body)
                continue
            error = self.session.run(body)
            self.log.append(f"cell {number}: {error or 'ran'}")
            if error:
                self.errors.append((body, error))
            if error.endswith("too long"):
                self.cut.add(body)

    def tell(self, question, message):
        self.failed[question] = message
        self.log.append(f"question {question}: {message or 'all tests hold'}")

    def public(self, question):
        """Run the public tests of a question, if they did not hold already."""
        if question in self.failed and question not in self.spaces:
            space, message = run_public_tests(self.session, self.questions[question], self.given)
            self.spaces |= {} if space is None else {question: space}
            self.tell(question, self.reason(message) or UNREACHED)

    def reason(self, message):
        """With the reason why a name is not defined: the cell that defines or imports it stopped
        with an error, perhaps since a name was missing there, too."""
        error, told = message, []
        while missing := re.search(r"`(\w+)` is not defined; define it|name '(\w+)' is not", error):
            name = missing[1] or missing[2]
            stopped = (e for source, e in self.errors if reading.defines(source, name))
            error = next(stopped, "")
            if not error or name in told:
                break
            told.append(name)
            said = f"the cell that should define `{name}` stopped with {error}"
            message = f"{message}\n{said}" if missing[2] or len(told) > 1 else said
        return message[:MESSAGE]

    def hidden(self, question, space):
        """Run the hidden tests of a question whose public tests hold."""
        if question in self.asked:
            return
        self.asked.add(question)
        message = run_hidden_tests(self.session, self.questions[question], space)
        self.tell(question, message)
        if not message:
            del self.failed[question]

    def both(self, question):
        """Public and hidden tests; of a failure, only a fixed sentence is told."""
        space, _ = run_public_tests(self.session, self.questions[question], self.given)
        if space is None:
            self.refused.add(question)
            self.tell(question, self.failed[question])
        else:
            self.hidden(question, space)
        if question not in self.failed and self.lent:
            self.log.append(f"question {question}: with given answers to {sorted(self.lent)}")
        return question not in self.failed

    def first_run(self):
        """The public tests, then the hidden ones, all in one process."""
        tried = Counter()

        def at_test(question):
            tried[question] += 1
            if tried[question] <= ATTEMPTS:
                self.public(question)

        self.run_steps(self.steps, at_test)
        self.flags += [COPIES.format(q, n) for q, n in sorted(tried.items()) if n > 1]
        for question in list(self.failed):
            self.public(question)
        for question, space in self.spaces.items():
            self.hidden(question, space)

    def flag(self):
        absent = re.findall(r"No module named '([\w.]+)'", "\n".join(e for _, e in self.errors))
        self.flags += [f"a package is missing: {name}" for name in dict.fromkeys(absent)]
        self.flags += [CUT.format(self.session.limits.total_seconds)] * bool(self.cut)
        self.flags += ["a cell ended Python or ran too long"] * bool(self.session.deadly)
        self.flags += ["a call ended Python or ran too long"] * bool(self.session.fatal)

    def start_again(self):
        """A new process, without the cells that ended the old one or were cut off."""
        self.flag()
        deadly = {self.session.done[i] for i in self.session.deadly} | self.cut
        self.asked, self.cut = set(), set()
        self.session.stop()
        self.session.forget()
        self.steps = [s for s in self.steps if s[0] == "test" or s[1] not in deadly]
        self.log.append("again in a new process:")

    def second_run(self):
        """Test each failed question again, at its last ATTEMPTS test cells.

        After the last of them has failed, the master's answer is lent. Returns the questions that
        are right only since another one's answer was lent.
        """
        steps = list(self.steps)
        tested = {body for kind, body in steps if kind == "test"}
        steps += [("test", question) for question in self.failed if question not in tested]
        tests_left = Counter(body for kind, body in steps if kind == "test")
        right_with_lent = []

        def at_test(question):
            tests_left[question] -= 1
            again = question in self.failed and question not in self.lent
            if not again or tests_left[question] >= ATTEMPTS:
                return
            if self.both(question):
                right_with_lent.extend([question] if self.lent else [])
            elif not tests_left[question] and self.lends:
                self.lend(question)

        self.run_steps(steps, at_test)
        return right_with_lent

    def lend(self, question):
        """The master's answer from here on. It must fit what the student's cells have made."""
        q = self.questions[question]
        self.lent.add(question)
        try:
            self.session.lend(q.given, reading.bound(q.stub))
        except SandboxEnded as gone:
            self.log.append(f"question {question}: no answer could be given ({gone})")


def run_and_test(submission, master, limits, launcher):
    """(failed questions with messages, questions right with given answers, log, flags, whether
    something was lost by the clock)."""
    helped = []
    with Session(master.given, limits, launcher) as session:
        given = namespace(master)
        marking = Marking(session, submission.steps, master, given, launcher.closed)
        try:
            marking.first_run()
            if marking.failed:
                marking.start_again()
                helped = marking.second_run()
        except SandboxEnded as gone:
            marking.log.append(f"the rest was not run: {gone}")
            if session.used_up():
                said = NO_TIME.format(limits.total_seconds)
                marking.failed = {
                    q: said if m in (NOT_REACHED, UNREACHED) else m
                    for q, m in marking.failed.items()
                }
        marking.flag()
    log = [*marking.log, "printed:\n" + session.output.decode("utf-8", "replace")]
    return marking.failed, helped, log, marking.flags, session.late


def namespace(master):
    """What the cells that everyone is given define, for the tests."""
    given = {}
    for source in master.given:
        exec(compile(source, "given cell", "exec"), given)
    return given
