"""Find and read what students handed in: whatever it is, it must not stop the others."""

import ast
import os
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import nbformat

from .masters import ANSWER, PACKAGE, bound, used

LARGEST = 50 * 2**20  # bytes of a notebook
DEEPEST, MOST = 8, 5000  # folders below each other, and entries, that are searched for a notebook
ANSWERS = 200_000  # characters of one answer marked by hand
PLOTS, PLOT = 12, 600_000  # pictures of a notebook, and characters of one, that are kept
LOOK_AT = re.compile(
    r"\b(subprocess|socket|ctypes|multiprocessing|os\.(?:_exit|fork|kill|system|popen)"
    r"|ast_transformers|input_transformers\w*|set_custom_exc|showtraceback|settrace|f_back"
    r"|gc\.get_objects|/proc|gradebook\.db|HIDDEN TESTS|__import__|importlib)\b"
)

SAMPLERS = re.compile(r"\.((?:standard_)?(?:exponential|gamma)|laplace|gumbel|rvs)\(")


@dataclass
class Submission:
    """What one student handed in, in terms of the master."""

    student: str
    path: Path = None
    # ("run", source) and ("test", question id), in the notebook's order
    steps: list = field(default_factory=list)
    answers: dict = field(default_factory=dict)  # manual question -> text
    plots: list = field(default_factory=list)  # PNG pictures of the notebook, base64
    flags: list = field(default_factory=list)


def find(folder, name):
    """[(student, path or None, flags)]: a notebook each, or a subfolder with notebooks."""
    entries = []
    for entry in sorted(Path(folder).iterdir(), key=lambda p: p.name):
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            entries.append((entry.name, None, ["a link instead of a file"]))
        elif entry.is_dir():
            entries.append((entry.name, *choose(entry, name)))
        elif entry.is_file():
            entries.append(
                (entry.stem, entry, [] if entry.suffix in (".ipynb", ".md") else ["renamed file"])
            )
    return apart(entries)


def apart(entries):
    """Two sources for one student are both marked, under names that no other has, and flagged."""
    count, names, found = Counter(student for student, _, _ in entries), set(), []
    for student, path, flags in entries:
        name = student
        if count[student] > 1:
            name = f"{student} ({path.name if path else 'folder'})"
            flags = [*flags, f"{count[student]} submissions of {student}"]
        wanted, number = name, 1
        while name in names:
            number += 1
            name = f"{wanted} ({number})"
        names.add(name)
        found.append((name, path, flags))
    return found


def choose(folder, name):
    """The notebook of a student's folder: the one of the right name, else the one there is."""
    found, complete = notebooks(folder)
    searched = [] if complete else ["too many or too deep folders: not all were searched"]
    right = [p for p in found if p.stem == name]
    if right:
        more = [] if len(right) == 1 else ["several notebooks of this name"]
        return right[0], more + searched
    if not found:
        return None, ["no notebook", *searched]
    more = "renamed file" if len(found) == 1 else "renamed file, several notebooks"
    return found[0], [more, *searched]


def notebooks(folder):
    """The notebooks below a folder, by name, and whether all of it could be searched."""
    found, waiting, seen, complete = [], [(Path(folder), 0)], 0, True
    while waiting:
        place, depth = waiting.pop()
        try:
            with os.scandir(place) as there:
                entries = list(islice(there, MOST + 1))
        except OSError:
            complete = False
            continue
        seen += len(entries)
        if depth > DEEPEST or seen > MOST:
            return sorted(found), False
        for entry in entries:
            if entry.is_symlink() or entry.name == ".ipynb_checkpoints":
                continue
            path = place / entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append((path, depth + 1))
            elif path.suffix in (".ipynb", ".md") and entry.is_file(follow_symlinks=False):
                found.append(path)
    return sorted(found), complete


def parse(path):
    """The cells (kind, source, id) and pictures of a file, however damaged its metadata are."""
    if path.stat().st_size > LARGEST:
        raise ValueError("the file is too large")
    text = path.read_bytes().decode("utf-8-sig")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.suffix == ".md":
            import jupytext  # slow, and most submissions are notebooks

            notebook = jupytext.reads(text, fmt="md:myst")
        else:
            notebook = nbformat.reads(text, as_version=4)
    cells = []
    for cell in notebook.cells:
        source = cell.get("source", "")
        source = "".join(source) if isinstance(source, list) else str(source)
        metadata = cell.get("metadata", {})
        data = metadata.get("nbgrader", {}) if isinstance(metadata, dict) else {}
        cells.append(
            (
                cell.get("cell_type"),
                source,
                str(data.get("grade_id", "")) if isinstance(data, dict) else "",
            )
        )
    return cells, list(islice(pictures(notebook), PLOTS))


def pictures(notebook):
    """The PNG outputs of a notebook that look like such."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()) or ():
            data = output.get("data", {}) if isinstance(output, dict) else {}
            png = data.get("image/png") if isinstance(data, dict) else None
            if isinstance(png, str) and len(png) <= PLOT:
                png = "".join(png.split())
                if re.fullmatch(r"[A-Za-z0-9+/]+=*", png):
                    yield png


def same(one, other):
    return "".join(one.split()) == "".join(other.split())


def unreadable(student, path, flags, kind):
    """A submission of which nothing could be read."""
    return Submission(student, path, flags=[*flags, f"unreadable notebook ({kind})"])


def read(student, path, flags, master):
    """Align the cells with the master's by id, and by content where the ids are lost."""
    submission = Submission(student, path, flags=list(flags))
    try:
        cells, submission.plots = parse(path) if path else ([], [])
    except Exception as error:  # any file can be handed in
        return unreadable(student, path, flags, type(error).__name__)
    tests = [q for q in master.questions if not q.manual]
    for kind, source, name in cells:
        if kind == "code" and not any(same(source, g) for g in master.given):
            whole = [q.id for q in tests if same(source, q.source)]
            edited = [q.id for q in tests if name == f"test-{q.id}" and q.id not in whole]
            if not whole:
                submission.steps.append(("run", source))
            submission.steps += [("test", q) for q in whole + edited]
            submission.flags += [f"edited test {q}" for q in edited]
    seen = {q for step, q in submission.steps if step == "test"}
    submission.flags += [f"missing test {q.id}" for q in tests if cells and q.id not in seen]
    if cells and not any(name for _, _, name in cells):
        submission.flags.append("metadata lost")
    submission.answers, extra = answers(cells, master)
    submission.flags += extra
    submission.flags += suspicions([s for step, s in submission.steps if step == "run"], master)
    submission.steps = with_public_names(submission.steps, {q.id: q for q in tests})
    return submission


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
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()


def answers(cells, master):
    """Manual answers by id, each with the text cells added after it; and flags.

    Where the ids are lost, all text that is not the student version's goes to every question.
    """
    given = [c.source for c in master.student.cells if c.cell_type == "markdown"]
    known = {c.metadata.get("nbgrader", {}).get("grade_id") for c in master.student.cells} - {None}
    manual = {q.id for q in master.questions if q.manual}
    parts, loose, current, count = {q: [] for q in manual}, [], None, Counter()
    for kind, source, name in cells:
        if name in known:
            current = name if kind == "markdown" and name in manual else None
            count[name] += 1
        elif kind == "markdown" and any(same(source, g) for g in given):
            current = None
        if kind == "markdown" and not any(same(source, g) for g in given):
            loose.append(source)
            if current:
                parts[current].append(source)
    everything = "\n\n".join(loose)
    found = {
        q: ("\n\n".join(parts[q]) or everything or ANSWER)[:ANSWERS]
        for q in (q.id for q in master.questions if q.manual)
    }
    flags = [f"{n} cells with the id {q}" for q, n in count.items() if q in manual and n > 1]
    flags += [f"answer {q} was cut" for q, text in found.items() if len(text) == ANSWERS]
    if any(parts.values()) and len(loose) > sum(map(len, parts.values())):
        flags.append("text cells outside of the answers: look into the notebook")
    return found, flags


def pictured(source):
    """Whether a cell draws: there, to compare with the package is welcome."""
    return re.search(r"\b(plt|ax|axes|fig|figure)\.", source)


def suspicions(sources, master):
    """Things for a person to look at; none of them changes a mark."""
    own = [s for s in sources if not any(same(s, c.source) for c in master.student.cells)]
    flags = [f"mentions {word}" for word in sorted({w for s in own for w in LOOK_AT.findall(s)})]
    usual = {w for c in master.notebook.cells for w in SAMPLERS.findall(c.source)}
    ready = {w for s in own for w in SAMPLERS.findall(s)} - usual
    flags += [f"samples with {word}" for word in sorted(ready)]
    for source in own:
        try:
            tree = ast.parse(source)
            graded = bound(source) & master.names
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        targets = [
            t
            for n in ast.walk(tree)
            if isinstance(n, (ast.Assign, ast.AugAssign))
            for t in getattr(n, "targets", [getattr(n, "target", None)])
        ]
        patched = {
            ast.unparse(t)
            for t in targets
            if isinstance(t, ast.Attribute)
            and re.match(r"(np|numpy|scipy|stats|plt|builtins|sys|os|dp|dpnotes)\b", ast.unparse(t))
        }
        flags += [f"replaces {name}" for name in sorted(patched)]
        if graded - master.with_package and PACKAGE.search(source):
            flags.append(f"calls dpnotes in {', '.join(sorted(graded))}")
        elif not graded and PACKAGE.search(source) and not pictured(source):
            flags.append("calls dpnotes in a cell of its own")
    return list(dict.fromkeys(flags))
