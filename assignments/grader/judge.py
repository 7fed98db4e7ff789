"""Mark one submission: what is handed in, what the tests said of it, as plain data."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from . import masters, reading, rendering, words
from .files import neutral, printable, write
from .marking import run_and_test
from .opening import LARGEST, Late, alarm


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
    failed |= {q: words.STUB for q in failed if q in submission.stubs}
    answers = {}
    for question, text in submission.answers.items():
        answers[question], flags = rendering.answer(text, question, limits.typeset_seconds)
        submission.flags += flags
    scores = {q.id: None if q.manual else q.points * (q.id not in failed) for q in master.questions}
    return make_result(
        submission.student, submission.flags, "\n".join(log), scores=scores, messages=failed,
        file=submission.path.name if submission.path else "",
        helped=dict.fromkeys(helped, words.LENT), answers=answers,
        pictures=hung(submission.pictures, gallery), code=submission.code,
        digests=digest_answers(master, submission), late=late, blank=blank(master, submission),
    )  # fmt: skip


def blank(master, submission):
    """{question marked by hand: True} where there is nothing to mark: no notebook, or the cell as
    it was given out, without pictures and plots."""
    shown = submission.pictures
    return {
        q.id: True for q in master.questions if q.manual and (
            submission.path is None or (
                submission.answers.get(q.id) == q.source
                and not shown.get(q.id) and not shown.get("")
            )
        )
    }  # fmt: skip


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
    tables = (
        "scores",
        "messages",
        "helped",
        "answers",
        "pictures",
        "digests",
        "blank",
    )  # by question
    result = {"student": student, "file": "", "code": "", "late": False, "log": printable(log)}
    result |= {name: {} for name in tables} | known
    result["flags"] = [printable(flag) for flag in reading.cut(flags)]
    result["messages"] = {q: neutral(printable(said)) for q, said in result["messages"].items()}
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
    sentences = Path(master_path).parent.glob(words.FILE)
    for file in [master_path, *sentences, *sorted(Path(__file__).parent.glob("*.py"))]:
        digest.update(Path(file).read_bytes())
    if path:
        try:
            size = path.stat().st_size
            digest.update(path.read_bytes() if size <= LARGEST else str(size).encode())
        except OSError as error:
            digest.update(type(error).__name__.encode())
    return digest.hexdigest()
