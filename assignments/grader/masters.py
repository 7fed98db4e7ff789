"""Read a master and make the student version, with nbgrader's own steps."""

import ast
import copy
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from .public_tests import PublicTests
from .words import Words
from .words import read as read_words

MARKERS = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION\n?", re.M)
HIDDEN = re.compile(r"^### BEGIN HIDDEN TESTS\n(.*?)^### END HIDDEN TESTS\n?", re.M | re.S)
HELPER = "public-tests"  # the id of a cell that every notebook has
PACKAGE = re.compile(r"\bdp\.|\bdpnotes\b")


@dataclass
class Question:
    """One graded cell: a column of the grades."""

    id: str
    points: float
    manual: bool
    source: str  # of the student version: the public tests, or the empty answer
    hidden: str = ""
    answer: str = ""  # the master's, for the marker of a manual question
    rubric: str = ""  # of a manual question: how its points are given
    uses: set = field(default_factory=set)  # names of the student's that the tests look at
    stub: str = ""  # the cell that the student fills in
    given: str = ""  # the master's code for that cell
    sentences: set = field(default_factory=set)  # the tests' messages without numbers


@dataclass
class Master:
    """A parsed master."""

    name: str
    notebook: nbformat.NotebookNode
    student: nbformat.NotebookNode  # the version for students
    questions: list
    given: list  # code cells that everyone gets and that need nothing of the student's
    names: set  # what the solution cells define
    with_package: set  # of these, what may be built on dpnotes
    words: Words  # what sheet and feedback say besides


def grading(cell):
    return cell.metadata.get("nbgrader", {})


def complete(cell, index):
    """The metadata line of a master says id and points; the cell's kind says the rest."""
    cell.id = grading(cell).get("grade_id", f"cell-{index}")
    for part in ("SOLUTION", "HIDDEN TESTS"):  # what has no end goes to the end of the cell
        if cell.source.count(f"### BEGIN {part}") > cell.source.count(f"### END {part}"):
            cell.source += f"\n### END {part}"
    if "nbgrader" in cell.metadata:
        short = cell.metadata.nbgrader
        test = cell.cell_type == "code" and "points" in short
        known = {"schema_version": 3, "task": False, "grade": "points" in short}
        cell.metadata.nbgrader = {**known, "solution": not test, "locked": test, **short}


def bound(source):
    """Names that a cell defines at its top level."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).split(".")[0] for a in node.names}
        else:
            nodes = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            names |= {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
    return names


def imported(sources):
    """The modules that cells import at their top level."""
    modules = {}
    for node in (node for source in sources for node in ast.parse(source).body):
        if isinstance(node, ast.Import):
            modules |= {part.name: None for part in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules[node.module] = None
    return list(modules)


def used(source):
    """Names that a cell reads and does not set."""
    nodes = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
    return {n.id for n in nodes} - {n.id for n in nodes if isinstance(n.ctx, ast.Store)}


def read_question(cell, stripped, names):
    """A graded cell of the master and the same cell of the student version."""
    data = grading(cell)
    manual, name = cell.cell_type == "markdown", data.grade_id.removeprefix("test-")
    question = Question(name, data.points, manual, stripped.source)
    if question.manual:
        question.answer = solution(cell.source)
    else:
        question.hidden = "".join(HIDDEN.findall(cell.source))
        question.uses = used(cell.source) & names
        texts = [n.msg for n in assertions(cell.source)]
        question.sentences = {t.value for t in texts if isinstance(t, ast.Constant)}
    return question


def solution(source):
    """The code of a master's answer without its marks."""
    return MARKERS.sub("", source).rstrip("\n")


def student_version(notebook, stub):
    """What students get: stubs, public tests, locks."""
    from nbgrader import preprocessors as nb  # slow, and needed only where a master is read

    student, resources = copy.deepcopy(notebook), {}
    steps = [nb.ClearSolutions(text_stub=stub), nb.ClearHiddenTests(), nb.ClearOutput()]
    for step in [*steps, nb.LockCells(), nb.ComputeChecksums(), nb.CheckCellMetadata()]:
        student, resources = step.preprocess(student, resources)
    for cell in student.cells:
        cell.source = cell.source.rstrip("\n")
    return nb.ComputeChecksums().preprocess(student, resources)[0]


def read(path):
    """Parse and check a master; errors say which cell is wrong."""
    import jupytext  # slow, too

    notebook = jupytext.read(path, fmt="md:myst")
    for index, cell in enumerate(notebook.cells):
        complete(cell, index)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    first = notebook.cells[0]
    words = read_words(Path(path).parent)
    if words.rules.partition("\n")[0] not in first.source:  # a master may say them itself
        first.source = HEAD.sub(lambda head: head[0] + words.rules, first.source, count=1)
    first.source += at_home(Path(path).stem, notebook, words)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    answers = [c.source for c in code if grading(c).get("solution")]
    names = set().union(*map(bound, answers))
    notebook.cells.insert(1, helper(words, names))
    student = student_version(notebook, words.answer)
    with_package = set().union(*[bound(source) for source in answers if PACKAGE.search(source)])
    given = [c.source for c in code if not grading(c) and not used(c.source) & names]
    pairs = list(zip(notebook.cells, student.cells, strict=True))
    questions = [read_question(c, s, names) for c, s in pairs if grading(c).get("grade")]
    answered = {grading(c).get("grade_id"): (c, s) for c, s in pairs}
    for q in (q for q in questions if not q.manual and q.id in answered):
        cell, stub = answered[q.id]
        q.stub, q.given = stub.source, solution(cell.source)
    for q, rubric in zip(
        (q for q in questions if q.manual), read_rubrics(notebook, words.rubric), strict=True
    ):
        q.rubric = rubric
    for q in questions:
        check(path, q)
    return Master(Path(path).stem, notebook, student, questions, given, names, with_package, words)


def helper(words, names):
    """The cell that words what a public test says; the page shows none, its check does the same."""
    source = Path(__file__).with_name("public_tests.py").read_text(encoding="utf-8").rstrip("\n")
    for sentence in (PublicTests.last, PublicTests.forgotten):
        source = source.replace(f'"{sentence}"', f'"{words(sentence)}"')
    source = source.replace("answers = ()", f"answers = {sorted(names)}")
    hidden = {"jupyter": {"source_hidden": True}}
    return nbformat.v4.new_code_cell(source, id=HELPER, metadata=hidden)


def at_home(name, notebook, words):
    """What a student needs who opens a sheet in a notebook of their own."""
    sources = [c.source for c in notebook.cells if c.cell_type == "code" and not grading(c)]
    needed = {module.split(".")[0] for module in imported(sources)} - sys.stdlib_module_names
    packages = [PACKAGES.get(module, module) for module in needed if module != "dpnotes"]
    own = words.own if "dpnotes" in needed else ""
    said = words.home.format(packages=" ".join(sorted(packages)), own=own, name=name)
    return said if needed else ""


def read_rubrics(notebook, begin):
    """For each question marked by hand the last paragraph that begins with *Rubric.* (or the word
    of another language) between the one before and it, or an empty text."""
    rubrics, last = [], ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and "points" in grading(cell):
            rubrics.append(last)
            last = ""  # it belongs to this question only
        for paragraph in re.split(r"\n\s*\n", cell.source):
            if paragraph.startswith(begin):
                last = paragraph
    return rubrics


def assertions(source):
    """The assertions of a test cell, as nodes with a message `msg`."""
    checks = [n for n in ast.walk(ast.parse(source)) if isinstance(n, (ast.Assert, ast.Raise))]
    for n in (n for n in checks if isinstance(n, ast.Raise)):  # raise AssertionError("...")
        n.msg = next(iter(getattr(n.exc, "args", ())), None)
    return checks


def check(path, q):
    """A test without a message teaches nothing, a question without public tests surprises."""
    if q.manual:
        return
    where, public, hidden = f"{path}: question {q.id}", assertions(q.source), assertions(q.hidden)
    for n in public + hidden:
        if n.msg is None:
            raise ValueError(f"{where}: an assertion without a message (line {n.lineno})")
        if n in hidden and not isinstance(n.msg, ast.Constant):
            raise ValueError(
                f"{where}: a hidden test's message must be a plain string, else it can tell its "
                f"inputs (line {n.lineno})"
            )
    if not public or not q.hidden.strip():
        raise ValueError(f"{where}: public and hidden tests are both needed")


HEAD = re.compile(r"# .*\n\n(?:\|.*\n)*\n?")  # title and table
PACKAGES = {"sklearn": "scikit-learn"}  # where a package has another name than its module
LINK = re.compile(r"\[([^][\n\"]+)\]\(\.\./[\w-]+\.md\)")
HEADER = """---
file_format: mystnb
kernelspec: {display_name: Python 3, language: python, name: python3}
mystnb:
  execution_mode: "off"
---

"""


def page(master):
    """The student version as a MyST page of the book, offered as a notebook too."""
    import jupytext

    shown = copy.copy(master.student)
    shown.cells = [cell for cell in shown.cells if cell.id != HELPER]
    text = jupytext.writes(shown, fmt="md:myst")
    body = text.split("---\n", 2)[2].lstrip("\n")
    title, _, rest = body.partition("\n")
    link = f"{{download}}`Download this assignment as a notebook <downloads/{master.name}.ipynb>`"
    return f"{HEADER}{title}\n\n{link}\n{rest}"


def claim(target, folder, paths):
    """Write down from which folder the sheets are, and take those of another one away."""
    if not paths:
        raise FileNotFoundError(f"there is no master (a file .md) in {folder}")
    sign = target / ".masters"
    target.mkdir(parents=True, exist_ok=True)
    names = [path.stem for path in paths]
    earlier = sign.read_text(encoding="utf-8").splitlines()[1:] if sign.exists() else []
    for name in set(earlier) - set(names):
        (target / f"{name}.md").unlink(missing_ok=True)
        (target / "downloads" / f"{name}.ipynb").unlink(missing_ok=True)
    sign.write_text("\n".join([str(folder), *names, ""]), encoding="utf-8")


def build(path, target):
    """Write the page and the notebook of one master; the same master gives the same bytes."""
    master = read(path)
    (target / "downloads").mkdir(parents=True, exist_ok=True)
    (target / f"{master.name}.md").write_text(page(master), encoding="utf-8")
    # the book's other pages may not be beside the notebook
    notebook = LINK.sub(r"*\1*", nbformat.writes(master.student, version=4)) + "\n"
    (target / "downloads" / f"{master.name}.ipynb").write_text(notebook, encoding="utf-8")
    return master
