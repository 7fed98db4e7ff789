"""Read one submission, whatever it is: its cells in terms of the master."""

import ast
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from .masters import LINK, PACKAGE, bound, grading, used
from .opening import PHOTOS, Late, Unreadable, parse
from .words import NO_NOTEBOOK, NOT_REACHED

ANSWERS = 200_000  # characters of one answer marked by hand, and of a student's code
FLAGS, FLAG = 40, 200  # flags of a submission, and characters of one
LOOK_AT = re.compile(
    r"\b(subprocess|socket|ctypes|multiprocessing|os\.(?:_exit|fork|kill|system|popen)"
    r"|ast_transformers|input_transformers\w*|set_custom_exc|showtraceback|settrace|f_back"
    r"|gc\.get_objects|gradebook\.db|HIDDEN TESTS|__import__|importlib)\b|(/proc)\b"
)
SAMPLERS = re.compile(r"\.((?:standard_)?(?:exponential|gamma)|laplace|gumbel|rvs)\(")
PATCHED = re.compile(r"(np|numpy|scipy|stats|plt|builtins|sys|os|dp|dpnotes)\b")
DRAWS = re.compile(r"\b(plt|ax|axes|fig|figure)\.")  # there, a look at the package is welcome
ENDLESS = "it takes too much time or memory to read"  # which of them first, is chance
JUPYTER = re.compile(r"^(\s*)[%!].*$", re.M)  # lines for Jupyter alone
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass
class Submission:
    """What one student handed in, in terms of the master."""

    student: str
    path: Path = None
    # ("run", source) and ("test", question id), in the notebook's order
    steps: list = field(default_factory=list)
    answers: dict = field(default_factory=dict)  # manual question -> text
    # manual question -> [(ending of the file, its bytes)]; "" -> the plots
    pictures: dict = field(default_factory=dict)
    stubs: set = field(default_factory=set)  # questions whose cell is as it was given out
    code: str = ""  # the student's own, for the comparison of submissions
    flags: list = field(default_factory=list)
    nothing: str = NO_NOTEBOOK  # said of each question where no code was reached


def same(one, other):
    return "".join(one.split()) == "".join(other.split())


def cut(flags):
    """Flags, each once and short: a name that a student chose can have any length."""
    flags = list(dict.fromkeys(f if len(f) <= FLAG else f"{f[:FLAG]}…" for f in flags))
    return flags[:FLAGS] + [f"and {len(flags) - FLAGS} more flags"] * (len(flags) > FLAGS)


def unreadable(student, path, flags, why):
    """A submission of which nothing could be read."""
    file = Submission(student, path, flags=[*flags, f"unreadable notebook: {why}"])
    file.nothing = f"your file could not be read as a notebook ({why}); hand it in again"
    return file


def kinds_again(cells, questions):
    """(cells, flags): an answer whose cell was turned into another kind is still what it was, and a
    copy of an empty answer beside the answer itself is nothing."""
    manual = {q.id for q in questions if q.manual}
    code = {q.id: q for q in questions if not q.manual}
    sources = [source for kind, source, *_ in cells if kind == "code"]
    made = {q: defined(code[q], sources) for q in code}
    answers, flags = [], []
    for kind, source, name, pictures in cells:
        wanted = (
            "markdown" if name in manual else "code" if name in code and not made[name] else kind
        )
        if wanted != kind:
            flags.append(f"answer {name} stands in a cell of another kind")
        copies = [q for q in code if made[q] and kind == "code" and same(source, code[q].stub)]
        flags += [f"an empty answer {q} beside the answer: not run" for q in copies]
        if not copies:
            answers.append((wanted, source, name, pictures))
    count = Counter(name for _, _, name, _ in answers)
    flags += [f"{count[q]} cells with the id {q}" for q in (*manual, *code) if count[q] > 1]
    return answers, flags


def defines(source, name):
    """Whether a cell defines or imports a name; a part of one that can't be read may."""
    try:
        return name in bound(JUPYTER.sub(r"\1pass", source))
    except NOT_PYTHON:
        return bool(re.search(rf"\b(?:def|class|import|as)\s+{name}\b|^{name}\s*=", source, re.M))


def defined(question, sources):
    """Whether cells, others than the stub, define all names of a question's answer."""
    own = [source for source in sources if not same(source, question.stub)]
    wanted = names(question.stub, bound)
    return bool(wanted) and wanted <= set().union(*(names(source, bound) for source in own))


def read(student, path, flags, master):
    """Align the cells with the master's by id, and by content where the ids are lost."""
    submission = Submission(student, path, flags=list(flags))
    try:
        cells, plots_found = parse(path) if path else ([], [])
    except (Late, MemoryError):
        return unreadable(student, path, flags, ENDLESS)
    except Unreadable as error:
        return unreadable(student, path, flags, error)
    except Exception as error:  # any file can be handed in
        return unreadable(student, path, flags, f"it is damaged: {type(error).__name__}")
    cells, changed = kinds_again(cells, master.questions)
    submission.flags += changed
    submission.nothing = NOT_REACHED if cells else submission.nothing
    tests = [q for q in master.questions if not q.manual]
    align_code(submission, cells, tests, master)
    if cells and not any(name for _, _, name, _ in cells):
        submission.flags.append("metadata lost")
    submission.answers, submission.pictures, extra = answers(cells, master)
    submission.pictures[""] = plots_found
    submission.flags += extra
    sources = [s for step, s in submission.steps if step == "run"]
    own = [s for s in sources if not any(same(s, c.source) for c in master.student.cells)]
    submission.code = "\n\n".join(own)[:ANSWERS]
    submission.flags += suspicions(own, master)
    submission.steps = with_public_names(submission.steps, {q.id: q for q in tests})
    return submission


def align_code(submission, cells, tests, master):
    """The code cells as steps; which tests were edited or are missing, which answers are stubs."""
    for kind, source, name, _ in cells:
        if kind == "code" and any(same(source, g) for g in master.given):
            submission.steps.append(("run", source))  # again: `%reset` may stand before it
        elif kind == "code":
            whole = [q.id for q in tests if same(source, q.source)]
            edited = [q.id for q in tests if name == f"test-{q.id}" and q.id not in whole]
            if not whole:
                submission.steps.append(("run", source))
            submission.steps += [("test", q) for q in whole + edited]
            submission.flags += [f"edited test {q}" for q in edited]
            submission.stubs |= {q.id for q in tests if q.stub and same(source, q.stub)}
    seen = {q for step, q in submission.steps if step == "test"}
    submission.flags += [f"missing test {q.id}" for q in tests if cells and q.id not in seen]
    made = set().union(*(names(s, bound) for k, s in submission.steps
                         if k == "run" and not any(same(s, q.stub) for q in tests)))  # fmt: skip
    submission.stubs -= {q.id for q in tests if names(q.stub, bound) & made}


def with_public_names(steps, tests):
    """Where a later cell of the student's uses what a public test defines (a plot of its numbers),
    that test runs in the student's notebook too, as it did when the student ran it."""
    kept = []
    for number, (kind, body) in enumerate(steps):
        kept.append((kind, body))
        if kind == "test":
            later = set().union(*(names(s, used) for k, s in steps[number:] if k == "run"))
            if names(tests[body].source, bound) & later:
                kept.append(("run", tests[body].source))
    return kept


@cache
def names(source, which):
    """`bound` or `used` names of a cell; none where it is not Python, lines for Jupyter apart."""
    try:
        return which(source if source.startswith("%%writefile") else JUPYTER.sub(r"\1pass", source))
    except NOT_PYTHON:
        return set()


def answers(cells, master):
    """(answers, pictures, flags): manual answers by id, each with the text cells added after it.

    Where the ids are lost, all text that is not the student version's goes to every question.
    """
    given = [c.source for c in master.student.cells if c.cell_type == "markdown"]
    given += [LINK.sub(r"*\1*", source) for source in given]  # as the notebook has it
    known = {grading(c).get("grade_id") for c in master.student.cells} - {None}
    stubs = {q.id: q.source for q in master.questions if q.manual}
    manual = list(stubs)
    parts, loose, current, count = {q: [] for q in manual}, [], None, Counter()
    for kind, source, name, pictures in cells:
        if name in known:
            current = name if kind == "markdown" and name in manual else None
            count[name] += 1
        elif kind == "markdown" and any(same(source, g) for g in given):
            current = None
        if kind == "markdown" and (pictures[0] or not any(same(source, g) for g in ("", *given))):
            loose.append((source, pictures))
            if current:
                parts[current].append(loose[-1])
    placed = [text for texts in parts.values() for text in texts]
    rest = [text for text in loose if not any(text is p for p in placed)]
    own = {q: parts[q] or rest for q in manual}
    texts = {q: "\n\n".join(t for t, _ in own[q])[:ANSWERS] or stubs[q] for q in manual}
    shown = {q: [p for _, (some, _) in own[q] for p in some][:PHOTOS] for q in manual}
    lost = [q for q in manual if count and not count[q]]
    flags = [f"the cell of answer {q} is missing: look into the notebook" for q in lost]
    flags += [f"answer {q} was cut" for q, text in texts.items() if len(text) == ANSWERS]
    flags += [
        f"not all pictures of answer {q} are shown: look into the notebook"
        for q in manual if any(lost for _, (_, lost) in own[q])
    ]  # fmt: skip
    if placed and rest:
        flags.append("text cells outside of the answers: look into the notebook")
    return texts, shown, flags


def suspicions(own, master):
    """Things for a person to look at in a student's cells; none of them changes a mark."""
    words = {"".join(w) for s in own for w in LOOK_AT.findall(s)}
    flags = [f"mentions {word}" for word in sorted(words)]
    usual = {w for c in master.notebook.cells for w in SAMPLERS.findall(c.source)}
    ready = {w for s in own for w in SAMPLERS.findall(s)} - usual
    flags += [f"samples with {word}" for word in sorted(ready)]
    for source in own:
        try:
            tree, graded = ast.parse(source), bound(source) & master.names
        except NOT_PYTHON:
            continue
        targets = []
        for n in ast.walk(tree):
            targets += getattr(n, "targets", [])  # of an assignment
            targets += [n.target] if isinstance(n, ast.AugAssign) else []
        patched = {ast.unparse(t) for t in targets if isinstance(t, ast.Attribute)}
        flags += [f"replaces {name}" for name in sorted(patched) if PATCHED.match(name)]
        if graded - master.with_package and PACKAGE.search(source):
            flags.append(f"calls dpnotes in {', '.join(sorted(graded))}")
        elif not graded and PACKAGE.search(source) and not DRAWS.search(source):
            flags.append("calls dpnotes in a cell of its own")
    return flags
