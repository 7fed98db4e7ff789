"""Mark one submission: its cells run in the sandbox, the tests run here.

The student's process never sees a test. It is asked for values and answers with data, so there is
nothing in it worth patching: a changed SciPy, a transformed syntax tree or a forged exception only
changes the answers.

Three steps. First the notebook runs with the public tests: from this step alone comes text that
depends on the student's code. Then the hidden tests run in the same process. What failed is tried
once more in a new process, each question where its test stands, and a question that failed for good
gets the master's answer there, so that later questions can be right without it.
"""

import hashlib
import json
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from . import masters, reading, rendering
from .files import printable, write
from .opening import LARGEST, Late, alarm
from .session import SandboxEnded, Session, short
from .telling import explain_failed_test
from .wire import unpack

ATTEMPTS = 3
MESSAGE = 1000  # characters of what a question's feedback says
HIDDEN = "your code failed in a test that is not shown"
LENT = "all tests hold, with a correct answer to an earlier question in the place of yours"
UNREACHED = "the tests that are not shown were not reached"
STUB = "not answered: the cell is as it was given out"


class Remote:
    """A student's function, called in the sandbox."""

    def __init__(self, session, name, calls):
        self.session, self.__name__, self.calls = session, name, calls

    def __call__(self, *args, **kwargs):
        value = self.session.call(self.__name__, args, kwargs)
        self.calls[:] = [(self.__name__, args, kwargs, value)]
        return value


def fill_namespace(session, question, space, calls):
    """Give the tests the student's values, and functions that call the student's."""
    for name, answer in session.look(question.uses).items():
        if "error" in answer:
            raise TypeError(f"`{name}` can't be tested: {short(answer['error'])}")
        is_function = "function" in answer
        space[name] = Remote(session, name, calls) if is_function else unpack(answer["value"])
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
            exec(compile(question.source, f"public tests of {question.id}", "exec"), space)
        return space, ""
    except Exception as error:  # a wrong type in a student's answer can raise anything
        try:
            said = explain_failed_test(error, calls)[:MESSAGE]
        except Exception:  # the text of an exception that holds a student's value
            said = "your result could not be used, nor shown"
        return None, said or "a test of this question failed"


def run_hidden_tests(session, question, space):
    """An empty string if all hold, else one of the sentences of the tests: nothing else is told,
    because text of the student's code could say what a hidden test asked."""
    try:
        with testing(session):
            exec(compile(question.hidden, f"hidden tests of {question.id}", "exec"), space)
    except Exception as error:
        return str(error) if str(error) in question.sentences else HIDDEN
    return ""


class Marking:
    """What is known about one submission while its tests run."""

    def __init__(self, session, steps, master, given, lends=True):
        self.session, self.steps, self.given, self.lends = session, steps, given, lends
        self.questions = {q.id: q for q in master.questions if not q.manual}
        self.failed = dict.fromkeys(self.questions, "no code of this question was reached")
        self.log, self.flags, self.errors, self.lent, self.spaces = [], [], [], set(), {}
        self.refused = set()  # in their public tests

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
        """Why a name is not defined: its cell stopped with an error."""
        if message.startswith("`") and "is not defined; define it" in message:
            name = message.split("`")[1]
            for source, error in self.errors:
                if re.search(rf"\b(?:def|class)\s+{name}\b|^{name}\s*=", source, re.M):
                    return f"the cell that should define `{name}` stopped with {error}"[:MESSAGE]
        return message

    def hidden(self, question, space):
        """Run the hidden tests of a question whose public tests hold."""
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
        for question in list(self.failed):
            self.public(question)
        for question, space in self.spaces.items():
            self.hidden(question, space)

    def flag(self):
        self.flags += ["a cell ended Python or ran too long"] * bool(self.session.deadly)
        self.flags += ["a call ended Python or ran too long"] * bool(self.session.fatal)

    def start_again(self):
        """A new process, without the cells that ended the old one."""
        self.flag()
        deadly = {self.session.done[i] for i in self.session.deadly}
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
        marking.flag()
    log = [*marking.log, "printed:\n" + session.output.decode("utf-8", "replace")]
    return marking.failed, helped, log, marking.flags, session.late


def namespace(master):
    """What the cells that everyone is given define, for the tests."""
    given = {}
    for source in master.given:
        exec(compile(source, "given cell", "exec"), given)
    return given


def grade_submission(master, entry, limits, launcher, gallery=None):
    """Everything about one submission as plain data; `launcher` starts the student's Python.

    Pictures become files in the folder `gallery`, if there is one: the data have their names.
    """
    try:
        with alarm(limits.read_seconds):
            submission = reading.read(*entry, master)
    except Late:
        submission = reading.unreadable(*entry, reading.ENDLESS)
    tests = [q.id for q in master.questions if not q.manual]
    failed, helped, log, late = dict.fromkeys(tests, submission.nothing), [], [], False
    if any(step == "run" for step, _ in submission.steps):
        failed, helped, log, flags, late = run_and_test(submission, master, limits, launcher)
        submission.flags += flags
    failed |= {q: STUB for q in failed if q in submission.stubs}
    answers = {}
    for question, text in submission.answers.items():
        answers[question], flags = rendering.answer(text, question, limits.typeset_seconds)
        submission.flags += flags
    scores = {q.id: None if q.manual else q.points * (q.id not in failed) for q in master.questions}
    return make_result(
        submission.student, submission.flags, "\n".join(log), scores=scores, messages=failed,
        file=submission.path.name if submission.path else "", helped=dict.fromkeys(helped, LENT),
        answers=answers, pictures=hung(submission.pictures, gallery), code=submission.code,
        digests=digest_answers(master, submission), late=late,
    )  # fmt: skip


def digest_answers(master, submission):
    """{question marked by hand: a digest of what is marked}: its text, its pictures and, where the
    answer is a plot, the notebook's plots."""
    plotted = {masters.grading(c).get("grade_id") for c in master.notebook.cells}
    digests = {}
    for q in (q for q in master.questions if q.manual):
        digest = hashlib.sha256(submission.answers.get(q.id, "").encode("utf-8", "replace"))
        shown = submission.pictures.get(q.id, []) + (
            submission.pictures.get("", []) if f"{q.id}-plot" in plotted else []
        )
        for _, data in shown:
            digest.update(data)
        digests[q.id] = digest.hexdigest()[:16]
    return digests


def make_result(student, flags, log="", **known):
    """All that is kept of one submission, as plain data; what is not known is empty."""
    tables = ("scores", "messages", "helped", "answers", "pictures", "digests")  # by question
    result = {"student": student, "file": "", "code": "", "late": False, "log": printable(log)}
    result |= {name: {} for name in tables} | known
    result["flags"] = [printable(flag) for flag in reading.cut(flags)]
    result["messages"] = {q: printable(said) for q, said in result["messages"].items()}
    return result


def hung(pictures, gallery):
    """{question: names of files} of pictures that are written into a folder, each once."""
    names = {question: [] for question in pictures}
    for question, some in pictures.items() if gallery else ():
        for ending, data in some:
            names[question].append(f"{hashlib.sha256(data).hexdigest()}.{ending}")
            if not (gallery / names[question][-1]).exists():
                write(gallery / names[question][-1], data)
    return names


def fingerprint(master_path, path, limits):
    """Changes when the submission, the master, the grader or its limits change."""
    digest = hashlib.sha256(json.dumps(asdict(limits)).encode())
    for file in [master_path, *sorted(Path(__file__).parent.glob("*.py"))]:
        digest.update(Path(file).read_bytes())
    if path:
        try:
            size = path.stat().st_size
            digest.update(path.read_bytes() if size <= LARGEST else str(size).encode())
        except OSError as error:
            digest.update(type(error).__name__.encode())
    return digest.hexdigest()
