"""What the page's Python reads and does not run: the code of cells, and errors.

What a notebook has and a page has not is said in one sentence (`HINTS`).
"""

import ast
import json
import linecache
import re
import traceback
from pathlib import PurePosixPath

MATPLOTLIB = re.compile(r"(?m)^%matplotlib\b.*$")  # figures are shown anyway
HINTS = {
    "magic": "lines with %, ! or ? are for Jupyter; this page runs plain Python: help(f) says what"
    " f is, and the page can be downloaded as a notebook",
    "input": "this page cannot ask for input: write the value into the code",
    "module": "Python in this page has numpy, scipy, matplotlib, pandas, scikit-learn, tqdm and"
    " dpnotes; for others download the page as a notebook",
    "memory": "Python in this page has run out of memory: use smaller arrays",
    "size": "that is more than the memory of Python in this page can hold: use smaller arrays",
    "network": "Python in this page has no network: use the data of its packages, or download the"
    " page as a notebook",
}
TOO_LARGE = ("array is too big", "index-sized integer")  # where a computer says MemoryError


def split(code, name):
    """Compiled statements, and the compiled last expression unless a `;` follows it."""
    tree = ast.parse(MATPLOTLIB.sub("", code), name)
    last, flags = None, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not ends_with_semicolon(code):
        last = compile(ast.Expression(tree.body.pop().value), name, "eval", flags)
    return compile(tree, name, "exec", flags), last


def ends_with_semicolon(code):
    """Does the last line end in `;`, which asks for no output?"""
    return re.sub(r"#[^\n'\"]*$", "", code.rstrip()).rstrip().endswith(";")


def assigned(code):
    """The variables that this code sets outside of functions; of what is not Python, none."""
    try:
        todo, found = list(ast.parse(code).body), set()
    except SyntaxError:
        return set()
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        elif isinstance(node, ast.comprehension):
            todo += [node.iter, *node.ifs]  # its variable is its own
            continue
        todo += ast.iter_child_nodes(node)
    return found


def imported(code):
    """Dotted names that the code imports, so that their packages can be loaded first."""
    try:
        tree = ast.parse(MATPLOTLIB.sub("", code))
    except SyntaxError:
        return "[]"
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return json.dumps(sorted(names))


def failure(error):
    """What went wrong, for the reader: the lines of cells and of `dpnotes`, not ours."""
    lines = traceback.TracebackException.from_exception(error)
    cut(lines)
    place = [frame.lineno for frame in lines.stack if is_cell(frame.filename)]
    line = place[-1] if place else getattr(error, "lineno", None)
    try:
        message = "; ".join(filter(None, [str(error), hint(error)]))
    except Exception:
        message = "(its own text cannot be made)"
    return {
        "name": type(error).__name__,
        "message": message,
        "line": line,
        "traceback": "".join(lines.format()).replace("\n\n", "\n"),
    }


def hint(error):
    """What this page can do instead, or nothing."""
    if isinstance(error, SyntaxError):
        line = (error.text or "").strip()
        return HINTS["magic"] if line.startswith(("%", "!", "?")) or line.endswith("?") else ""
    if isinstance(error, ModuleNotFoundError | MemoryError):
        return HINTS["memory" if isinstance(error, MemoryError) else "module"]
    if any(words in str(error) for words in TOO_LARGE):
        return HINTS["size"]
    kinds = {kind.__name__ for kind in type(error).__mro__}
    away = kinds & {"URLError", "gaierror", "ConnectionError"} or "TLS not" in str(error)
    return HINTS["network"] if away else ""


def is_cell(name):
    """Cells have names in angle brackets."""
    return name in linecache.cache and name.startswith("<")


def cut(lines):
    """Drop what lies above the cell, and what is ours below it; of causes too."""
    while lines:
        frames = [frame for frame in lines.stack if not is_ours(frame.filename)]
        while frames and not is_cell(frames[0].filename):
            frames.pop(0)
        lines.stack[:] = frames
        lines = lines.__cause__ or lines.__context__


def is_ours(name):
    """This file and the one that runs cells stand in one folder."""
    return PurePosixPath(name).parent == PurePosixPath(__file__).parent
