"""Find and read what students handed in: whatever it is, it must not stop the others."""

import ast
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import jupytext
import nbformat

from .masters import ANSWER, PACKAGE, bound

LARGEST = 100 * 2**20
LOOK_AT = re.compile(
    r"\b(subprocess|socket|ctypes|multiprocessing|os\.(?:_exit|fork|kill|system|popen)"
    r"|ast_transformers|input_transformers\w*|set_custom_exc|showtraceback|settrace|f_back"
    r"|gc\.get_objects|/proc|gradebook\.db|HIDDEN TESTS|__import__|importlib)\b"
)


@dataclass
class Submission:
    """What one student handed in, in terms of the master."""

    student: str
    path: Path = None
    # ("run", source) and ("test", question id), in the notebook's order
    steps: list = field(default_factory=list)
    answers: dict = field(default_factory=dict)  # manual question -> text
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
    twice = Counter(student for student, _, _ in entries)
    return [
        (s if twice[s] == 1 else f"{s} ({p.name if p else 'folder'})", p, f) for s, p, f in entries
    ]


def choose(folder, name):
    """The notebook of a student's folder: the one of the right name, else the one there is."""
    found = sorted(
        p
        for p in folder.rglob("*")
        if p.suffix in (".ipynb", ".md")
        and p.is_file()
        and not p.is_symlink()
        and ".ipynb_checkpoints" not in p.parts
    )
    right = [p for p in found if p.stem == name]
    if right:
        return right[0], [] if len(right) == 1 else ["several notebooks of this name"]
    if not found:
        return None, ["no notebook"]
    return found[0], ["renamed file"] if len(found) == 1 else ["renamed file, several notebooks"]


def parse(path):
    """A notebook from a file, however damaged its metadata are."""
    if path.stat().st_size > LARGEST:
        raise ValueError("the file is too large")
    text = path.read_bytes().decode("utf-8-sig")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.suffix == ".md":
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
    return cells


def same(one, other):
    return "".join(one.split()) == "".join(other.split())


def read(student, path, flags, master):
    """Align the cells with the master's by id, and by content where the ids are lost."""
    submission = Submission(student, path, flags=list(flags))
    try:
        cells = parse(path) if path else []
    except Exception as error:  # any file can be handed in
        submission.flags.append(f"unreadable notebook ({type(error).__name__})")
        return submission
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
    submission.answers = answers(cells, master)
    submission.flags += suspicions([s for step, s in submission.steps if step == "run"], master)
    return submission


def answers(cells, master):
    """Manual answers by id; without ids, all text that is not the student version's."""
    given = [c.source for c in master.student.cells if c.cell_type == "markdown"]
    by_id = {name: source for kind, source, name in cells if kind == "markdown" and name}
    loose = "\n\n".join(
        s for kind, s, name in cells if kind == "markdown" and not any(same(s, g) for g in given)
    )
    return {q.id: by_id.get(q.id, loose) or ANSWER for q in master.questions if q.manual}


def suspicions(sources, master):
    """Things for a person to look at; none of them changes a mark."""
    own = [s for s in sources if not any(same(s, c.source) for c in master.student.cells)]
    flags = [f"mentions {word}" for word in sorted({w for s in own for w in LOOK_AT.findall(s)})]
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
    return list(dict.fromkeys(flags))
