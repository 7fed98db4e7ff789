"""Mark one submission: its cells run in the sandbox, the tests run here.

The student's process never sees a test. It is asked for values and answers with data, so there is
nothing in it worth patching: a changed SciPy, a transformed syntax tree or a forged exception only
changes the answers.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from . import submissions
from .session import Gone, Session, StudentError
from .wire import unpack

ATTEMPTS = 3


class Remote:
    """A student's function, called in the sandbox."""

    def __init__(self, session, name):
        self.session, self.__name__ = session, name

    def __call__(self, *args, **kwargs):
        return self.session.call(self.__name__, args, kwargs)


def explain(error, public):
    """What a student may read: of a hidden test the assertion's message, else the kind of error."""
    if isinstance(error, StudentError):
        return f"your code raised {error.name}" + (f": {error}" if public else "")
    if isinstance(error, Gone):
        return f"your code {error}"
    if isinstance(error, AssertionError):
        return str(error)
    return f"your result could not be used ({type(error).__name__}" + (
        f": {error})" if public else ")"
    )


def bind(session, question, space):
    """Give the tests the student's values, and functions that call the student's."""
    for name, found in session.look(question.uses).items():
        if "error" in found:
            raise AssertionError(f"`{name}` can't be tested: {found['error']}")
        space[name] = Remote(session, name) if "function" in found else unpack(found["value"])
    for name in sorted(question.uses - set(space)):
        raise AssertionError(
            f"`{name}` is not defined; define it in the cell of question {question.id}"
        )


def test(session, question, given):
    """Run a question's tests; an empty string when all hold, else what to tell the student."""
    public, space = True, dict(given)
    try:
        session.begin_test()
        bind(session, question, space)
        exec(compile(question.source, f"public tests of {question.id}", "exec"), space)
        public = False
        exec(compile(question.hidden, f"hidden tests of {question.id}", "exec"), space)
    except Exception as error:  # a wrong type in a student's answer can raise anything
        return explain(error, public) or "a test of this question failed"
    return ""


def walk(session, submission, master, failed, log):
    """Test each question where its test stands and, if that failed, at the end of the notebook."""
    given, tried = {}, {}
    for source in master.given:
        exec(compile(source, "given cell", "exec"), given)
    by_id = {q.id: q for q in master.questions}
    for number, (step, body) in enumerate(
        submission.steps + [("test", name) for name in failed], 1
    ):
        if step == "run":
            error = session.run(body)
            log.append(f"cell {number}: {error or 'ran'}")
        elif body in failed and tried.get(body, 0) < ATTEMPTS:
            tried[body] = tried.get(body, 0) + 1
            message = test(session, by_id[body], given)
            log.append(f"question {body}: {message or 'all tests hold'}")
            failed[body] = message
            if not message:
                del failed[body]


def mark(master, entry, limits, cache_folder, unsafe=False, user=None):
    """Everything about one submission as plain data."""
    submission = submissions.read(*entry, master)
    log = []
    failed = {
        q.id: "no code of this question was reached" for q in master.questions if not q.manual
    }
    if any(step == "run" for step, _ in submission.steps):
        with Session(master.given, limits, cache_folder, unsafe, user) as session:
            try:
                walk(session, submission, master, failed, log)
            except Gone as gone:
                log.append(f"the rest was not run: {gone}")
            submission.flags += ["a cell ended Python or ran too long"] if session.deadly else []
            submission.flags += ["a call ended Python or ran too long"] if session.fatal else []
            printed = session.output
        log.append("printed:\n" + printed.decode("utf-8", "replace"))
    scores = {
        q.id: None if q.manual else 0 if q.id in failed else q.points for q in master.questions
    }
    return {
        "student": submission.student,
        "file": submission.path.name if submission.path else "",
        "scores": scores,
        "messages": failed,
        "answers": submission.answers,
        "flags": submission.flags,
        "log": "\n".join(log),
    }


def fingerprint(master_path, path, limits):
    """Changes when the submission, the master, the grader or its limits change."""
    digest = hashlib.sha256(json.dumps(asdict(limits)).encode())
    for file in [
        master_path,
        *sorted(Path(__file__).parent.glob("*.py")),
        *([path] if path else []),
    ]:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()
