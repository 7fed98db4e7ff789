"""Read one submission, whatever it is: its cells in terms of the master."""

import ast
import base64
import io
import re
import signal
import warnings
import zipfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePath

import nbformat

from .files import decoded
from .masters import ANSWER, LINK, PACKAGE, bound, grading, used

LARGEST = 50 * 2**20  # bytes of a notebook
ANSWERS = 200_000  # characters of one answer marked by hand, and of a student's code
PLOTS, PLOT = 12, 600_000  # plots of a notebook, and characters of one, that are kept
PHOTOS, PHOTO = 8, 6_000_000  # pictures attached to one answer, and characters of one
FLAGS, FLAG = 40, 200  # flags of a submission, and characters of one
LOOK_AT = re.compile(
    r"\b(subprocess|socket|ctypes|multiprocessing|os\.(?:_exit|fork|kill|system|popen)"
    r"|ast_transformers|input_transformers\w*|set_custom_exc|showtraceback|settrace|f_back"
    r"|gc\.get_objects|gradebook\.db|HIDDEN TESTS|__import__|importlib)\b|(/proc)\b"
)
SAMPLERS = re.compile(r"\.((?:standard_)?(?:exponential|gamma)|laplace|gumbel|rvs)\(")
PATCHED = re.compile(r"(np|numpy|scipy|stats|plt|builtins|sys|os|dp|dpnotes)\b")
DRAWS = re.compile(r"\b(plt|ax|axes|fig|figure)\.")  # there, a look at the package is welcome
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
ENDINGS = {"image/png": "png", "image/jpeg": "jpg"}
PASTED = re.compile(r"data:(image/(?:png|jpeg));base64,([A-Za-z0-9+/=]+)")  # by Colab


CLOCK, PROCESSOR = (signal.ITIMER_REAL, signal.SIGALRM), (signal.ITIMER_PROF, signal.SIGPROF)


class Late(Exception):
    """Reading or testing took too long on the grader's side."""


@contextmanager
def alarm(seconds, timer):
    """Stop what runs here after so many seconds, by the clock or of this process's own work."""

    def ring(*_):
        raise Late("it took too long")

    which, number = timer
    before = signal.signal(number, ring)
    signal.setitimer(which, seconds)
    try:
        yield
    finally:
        signal.setitimer(which, 0)
        signal.signal(number, before)


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
    nothing: str = "nothing was handed in"  # said of each question where no code was reached


def contents(path):
    """(data, kind of file) of a submission, also of the only notebook in an archive."""
    if path.stat().st_size > LARGEST:
        raise ValueError("the file is too large")
    data = path.read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return data, path.suffix.lower()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        inside = [
            name for name in archive.namelist() if PurePath(name).suffix in (".ipynb", ".md", ".py")
            and not PurePath(name).name.startswith(".") and "__MACOSX" not in name
        ]  # fmt: skip
        if len(inside) != 1:
            raise ValueError(f"an archive with {len(inside)} notebooks")
        with archive.open(inside[0]) as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError("the file is too large")
    return data, PurePath(inside[0]).suffix.lower()


def parse(path):
    """The cells (kind, source, id, pictures) and plots of a file, however damaged it is."""
    data, kind = contents(path)
    text = decoded(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind in (".md", ".py"):
            import jupytext  # slow, and most submissions are notebooks

            notebook = jupytext.reads(text, fmt="md:myst" if kind == ".md" else "py")
        else:
            notebook = nbformat.reads(text, as_version=4)
    cells = []
    for cell in notebook.cells:
        source = cell.get("source", "")
        source = "".join(source) if isinstance(source, list) else str(source)
        name = str(table(table(cell.get("metadata")).get("nbgrader")).get("grade_id", ""))
        pictures = attached(cell)
        if cell.get("cell_type") == "markdown":
            source = PASTED.sub("picture", source)
        cells.append((cell.get("cell_type"), source, name, pictures))
    return cells, list(islice(plots(notebook), PLOTS))


def table(value):
    """A dictionary, or an empty one where a damaged notebook has something else."""
    return value if isinstance(value, dict) else {}


def picture(kind, data, longest):
    """(ending, bytes) of a picture's file, or None if it is not what it must be."""
    if kind not in ENDINGS or not isinstance(data, str) or not 0 < len(data) <= longest:
        return None
    try:
        return ENDINGS[kind], base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        return None


def attached(cell):
    """(pictures attached to a text cell, how many were left out)."""
    files = table(cell.get("attachments")).values()
    pasted = PASTED.findall(cell.get("source", "")) if cell.get("cell_type") == "markdown" else []
    given = [*(item for kinds in files for item in table(kinds).items()), *pasted]
    every = [picture(*item, PHOTO) for item in given]
    found = [shown for shown in every if shown][:PHOTOS]
    return found, len(every) - len(found)


def plots(notebook):
    """The PNG outputs of a notebook that look like such."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()) or ():
            png = table(table(output).get("data")).get("image/png")
            if shown := picture("image/png", png, PLOT):
                yield shown


def same(one, other):
    return "".join(one.split()) == "".join(other.split())


def cut(flags):
    """Flags, each once and short: a name that a student chose can have any length."""
    flags = list(dict.fromkeys(f if len(f) <= FLAG else f"{f[:FLAG]}…" for f in flags))
    return flags[:FLAGS] + [f"and {len(flags) - FLAGS} more flags"] * (len(flags) > FLAGS)


def unreadable(student, path, flags, kind):
    """A submission of which nothing could be read."""
    file = Submission(student, path, flags=[*flags, f"unreadable notebook ({kind})"])
    file.nothing = "your file could not be read as a notebook; hand it in again"
    return file


def text_cells_again(cells, manual):
    """(cells, flags): an answer whose cell was turned into code is still a text."""
    found, flags = [], []
    for kind, source, name, pictures in cells:
        if kind in ("code", "raw") and name in manual:
            kind = "markdown"
            flags.append(f"answer {name} stands in a cell of another kind")
        found.append((kind, source, name, pictures))
    return found, flags


def read(student, path, flags, master):
    """Align the cells with the master's by id, and by content where the ids are lost."""
    submission = Submission(student, path, flags=list(flags))
    try:
        cells, plots_found = parse(path) if path else ([], [])
    except Exception as error:  # any file can be handed in
        return unreadable(student, path, flags, type(error).__name__)
    cells, changed = text_cells_again(cells, {q.id for q in master.questions if q.manual})
    submission.flags += changed
    submission.nothing = "no code of this question was reached" if cells else submission.nothing
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
        if kind == "code" and not any(same(source, g) for g in master.given):
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
    found = []
    for number, (kind, body) in enumerate(steps):
        found.append((kind, body))
        if kind == "test":
            later = set().union(*(names(s, used) for k, s in steps[number:] if k == "run"))
            if names(tests[body].source, bound) & later:
                found.append(("run", tests[body].source))
    return found


def names(source, which):
    """`bound` or `used` names of a cell; none where it is not plain Python."""
    try:
        return which(source)
    except NOT_PYTHON:
        return set()


def answers(cells, master):
    """(answers, pictures, flags): manual answers by id, each with the text cells added after it.

    Where the ids are lost, all text that is not the student version's goes to every question.
    """
    given = [c.source for c in master.student.cells if c.cell_type == "markdown"]
    given += [LINK.sub(r"*\1*", source) for source in given]  # as the notebook has it
    known = {grading(c).get("grade_id") for c in master.student.cells} - {None}
    manual = [q.id for q in master.questions if q.manual]
    parts, loose, current, count = {q: [] for q in manual}, [], None, Counter()
    for kind, source, name, pictures in cells:
        if name in known:
            current = name if kind == "markdown" and name in manual else None
            count[name] += 1
        elif kind == "markdown" and any(same(source, g) for g in given):
            current = None
        if kind == "markdown" and (pictures[0] or not any(same(source, g) for g in given)):
            loose.append((source, pictures))
            if current:
                parts[current].append(loose[-1])
    placed = [text for texts in parts.values() for text in texts]
    rest = [text for text in loose if not any(text is p for p in placed)]
    own = {q: parts[q] or rest for q in manual}
    found = {q: "\n\n".join(t for t, _ in own[q])[:ANSWERS] or ANSWER for q in manual}
    shown = {q: [p for _, (some, _) in own[q] for p in some][:PHOTOS] for q in manual}
    flags = [f"{n} cells with the id {q}" for q, n in count.items() if q in manual and n > 1]
    lost = [q for q in manual if count and not count[q]]
    flags += [f"the cell of answer {q} is missing: look into the notebook" for q in lost]
    flags += [f"answer {q} was cut" for q, text in found.items() if len(text) == ANSWERS]
    flags += [
        f"not all pictures of answer {q} are shown: look into the notebook"
        for q in manual if any(lost for _, (_, lost) in own[q])
    ]  # fmt: skip
    if placed and rest:
        flags.append("text cells outside of the answers: look into the notebook")
    return found, shown, flags


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
