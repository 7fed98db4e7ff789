"""Submissions that a grader meets: honest ones, damaged ones, and attempts to break, cheat or spy.

Each is made from the student version of the `laplace` assignment by a small function of its cells.
`CASES` maps a student's name to (function, points by tests, flags that must be there).
"""

# ruff: noqa: E501

import copy
import json

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from assignments.grader.check import solved

FULL, NONE = 20, 0
FUNCTIONS = [
    "smallest_epsilon", "respond", "estimate", "laplace_noise", "private_histogram",
    "worst_errors", "mean_worst_error",
]  # fmt: skip
CASES = {}


def case(points, *flags, name=None):
    """Register a function that changes a notebook (or returns the text of a file)."""

    def register(function):
        CASES[name or function.__name__] = (function, points, flags)
        return function

    return register


def grade_id(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def cell_of(notebook, name):
    return next(c for c in notebook.cells if grade_id(c) == name)


def add_first(notebook, source):
    notebook.cells.insert(2, new_code_cell(source))


def unsolve(notebook, master):
    notebook.cells = copy.deepcopy(master.student.cells)


def extra(source, points, *flags, name):
    """A perfect submission with a harmful cell before all answers."""
    case(points, *flags, name=name)(lambda notebook, master: add_first(notebook, source))


def cheat(source, *flags, name):
    """No answers, but a cell, before and after the tests, that tries to get points all the same."""

    def change(notebook, master):
        unsolve(notebook, master)
        add_first(notebook, source)
        notebook.cells.append(new_code_cell(source))

    case(NONE, *flags, name=name)(change)


def answer(source, points, *flags, name):
    """A perfect submission whose first answer is replaced."""

    def change(notebook, master):
        cell_of(notebook, "1a").source = source

    case(points, *flags, name=name)(change)


@case(FULL)
def perfect(notebook, master):
    pass


@case(NONE)
def untouched(notebook, master):
    unsolve(notebook, master)


@case(6)
def partial(notebook, master):
    for cell, empty in zip(notebook.cells, master.student.cells, strict=True):
        if grade_id(cell) not in ("1a", "3a"):
            cell.source = empty.source


answer("def smallest_epsilon(p, q:\n  return", 18, name="syntax error")
answer("def smallest_epsilon(p, q):\n    while True:\n        pass", 18, name="loop in a function")
answer("def smallest_epsilon(p, q):\n    raise SystemExit", 18, name="SystemExit in a function")
answer(
    "import os\ndef smallest_epsilon(p, q):\n    os._exit(0)",
    18,
    "mentions os._exit",
    name="exit in a function",
)
answer(
    "def smallest_epsilon(p, q):\n    raise ValueError('<script>alert(1)</script>')",
    18,
    name="markup in a message",
)
answer(
    "def smallest_epsilon(p, q):\n    return smallest_epsilon(q, p)", 18, name="endless recursion"
)
answer("def smallest_epsilon(p, q):\n    return np.ones(2 * 10**8)", 18, name="enormous answer")
answer("def smallest_epsilon(p, q):\n    return object()", 18, name="answer of no use")
answer("def smallest_epsilon(p, q):\n    return None", 18, name="no answer")
answer("smallest_epsilon = 5", 18, name="a number instead of a function")
answer("def smallest_epsilon(p, q):\n    return float('nan')", 18, name="nan")
answer(
    "def smallest_epsilon(p, q):\n"
    "    known = {(0.75, 0.25): np.log(3), (0.5, 0.5): 0.0 if q[0] == 0.5 else np.inf}\n"
    "    if tuple(p) in known:\n        return known[tuple(p)]\n"
    "    raise ValueError(f'spied {list(p)} {list(q)}')",
    18, name="public answers by heart",
)  # fmt: skip

extra("while True:\n    pass", FULL, name="infinite loop")
extra(
    "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
    FULL, "a cell ended Python or ran too long", name="loop that swallows interrupts",
)  # fmt: skip
extra("while True:\n    print('endless ' * 1000)", FULL, name="endless output")
extra(
    "hoard = []\nwhile True:\n    hoard.append(np.ones(10**6))", FULL,
    "a cell ended Python or ran too long", name="memory bomb",
)  # fmt: skip
extra("import os\nwhile True:\n    os.fork()", FULL, "mentions os.fork", name="fork bomb")
extra("import sys\nsys.exit(3)", FULL, name="sys.exit")
extra("import os\nos._exit(0)", FULL, "a cell ended Python or ran too long", name="os._exit")
extra("import os\nos.kill(-1, 9)", FULL, "mentions os.kill", name="kills everything")
extra("import os\nos.closerange(0, 1000)", FULL, name="closes all files")
extra("raise KeyboardInterrupt", FULL, name="interrupts itself")
extra("import time\ntime.sleep(10**6)", FULL, name="sleeps")
extra("input('your name?')", FULL, name="asks")
extra("import ctypes\nctypes.string_at(0)", FULL, "mentions ctypes", name="segmentation fault")
extra(
    "import warnings\nwarnings.warn('careful')\nimport sys\nprint('hello', file=sys.stderr)",
    FULL,
    name="warnings and stderr",
)
extra(
    "import subprocess\nsubprocess.Popen(['sleep', '98765'], start_new_session=True)",
    FULL,
    "mentions subprocess",
    name="background process",
)
extra(
    "import socket\n"
    "for address in [('127.0.0.1', PORT), ('192.0.2.1', 80)]:\n"
    "    try:\n        socket.create_connection(address, 2)\n        print('network REACHED')\n"
    "    except OSError as error:\n        print('network shut', error)",
    FULL, "mentions socket", name="network",
)  # fmt: skip
extra(
    "import os, sys\n"
    "for folder in ['/', '/usr', '/etc', '/grader', '/dev/shm', sys.prefix, sys.base_prefix, os.path.dirname(np.__file__), '..', '../..']:\n"
    "    try:\n        open(folder + '/forged.txt', 'w').write('forged')\n        print('WROTE', folder)\n"
    "    except OSError:\n        print('could not write', folder)",
    FULL, name="writes to the system",
)  # fmt: skip
extra("open('/tmp/big', 'wb').write(b'0' * 10**9)", FULL, name="fills the disk")
extra("%matplotlib inline\nplt.plot([1, 2])\nplt.show()", FULL, name="magics and plots")

cheat(
    "np.isclose = np.allclose = lambda *a, **k: True\nimport scipy.stats\nscipy.stats.kstest = None",
    "replaces np.isclose",
    name="patched NumPy and SciPy",
)
cheat(
    "import builtins\nbuiltins.AssertionError = type('Quiet', (Exception,), {})",
    "replaces builtins.AssertionError",
    name="patched builtins",
)
cheat(
    "import ast\nclass Empty(ast.NodeTransformer):\n    def visit_Assert(self, node):\n        return ast.Pass()\n"
    "get_ipython().ast_transformers.append(Empty())",
    "mentions ast_transformers", name="AST transformer",
)  # fmt: skip
cheat(
    "shell = get_ipython()\nshell.showtraceback = lambda *a, **k: None\nshell.set_custom_exc((Exception,), lambda *a, **k: None)",
    "mentions showtraceback",
    name="patched exception display",
)
cheat(
    "class Yes(float):\n    shape = (20000,)\n    __eq__ = __le__ = __lt__ = __ge__ = __gt__ = lambda self, other: True\n"
    "    __sub__ = __abs__ = __getitem__ = __array__ = lambda self, *a, **k: self\n"
    f"for name in {FUNCTIONS}:\n    globals()[name] = lambda *a, **k: Yes()",
    name="agrees with everything",
)  # fmt: skip
cheat(
    "import json, os, struct\nfor number in range(200):\n"
    "    data = json.dumps({'id': number, 'value': True, 'found': {}}).encode()\n"
    "    for channel in range(3, 20):\n        try:\n            os.write(channel, struct.pack('>I', len(data)) + data)\n"
    "        except OSError:\n            pass",
    name="forged answers on the pipe",
)  # fmt: skip
cheat(
    "import inside, wire\ninside.call = lambda *a: {'value': True}\nwire.pack = lambda value: True",
    name="patched runner",
)
cheat(
    "import sqlite3\nfor place in ['gradebook.db', '/tmp/gradebook.db', '../gradebook.db']:\n"
    "    try:\n        sqlite3.connect(place).execute('create table grade (score)')\n    except Exception:\n        pass",
    "mentions gradebook.db", name="forged database",
)  # fmt: skip
cheat(
    "import os, sys\nfound = []\n"
    "for folder, inner, files in os.walk('/'):\n"
    "    inner[:] = [d for d in inner if d not in ('proc', 'sys', 'site-packages', 'share')]\n"
    "    for name in files:\n        text, path = '', os.path.join(folder, name)\n"
    "        if name.endswith(('.md', '.ipynb', '.yml', '.db', '.csv')):\n            try:\n"
    "                text = open(path, errors='ignore').read(10**6)\n"
    "            except OSError:\n                continue\n"
    "        if 'both directions: q/p' in text or 'laplace.md' in name or 'SUBMISSIONS' in folder:\n"
    "            found.append(os.path.join(folder, name))\n"
    "print('searched and found', found)\nprint('environment', sorted(os.environ))",
    name="searches the disk",
)  # fmt: skip
answer(
    "import sys\ndef smallest_epsilon(p, q):\n    frame, seen = sys._getframe(), []\n"
    "    while frame:\n        seen.append(frame.f_code.co_filename)\n        frame = frame.f_back\n"
    "    print('frames', seen)\n    raise ValueError",
    18, "mentions f_back", name="looks at its callers",
)  # fmt: skip


@case(NONE, "edited test 1a", "edited test 3b")
def edited_tests(notebook, master):
    unsolve(notebook, master)
    for cell in notebook.cells:
        if grade_id(cell).startswith("test-"):
            cell.source = "assert True"


@case(FULL, "missing test 1a")
def deleted_tests_good_answers(notebook, master):
    notebook.cells = [c for c in notebook.cells if not grade_id(c).startswith("test-")]


@case(NONE, "missing test 1a")
def deleted_tests_no_answers(notebook, master):
    unsolve(notebook, master)
    deleted_tests_good_answers(notebook, master)


@case(FULL, "metadata lost")
def metadata_lost(notebook, master):
    for cell in notebook.cells:
        cell.metadata.clear()
    notebook.metadata.clear()


@case(FULL)
def metadata_swapped(notebook, master):
    cell_of(notebook, "test-1a").metadata, cell_of(notebook, "test-3b").metadata = (
        cell_of(notebook, "test-3b").metadata,
        cell_of(notebook, "test-1a").metadata,
    )


@case(FULL)
def points_raised(notebook, master):
    for cell in notebook.cells:
        if "points" in cell.metadata.get("nbgrader", {}):
            cell.metadata.nbgrader.points = 1000


@case(FULL)
def duplicated_cells(notebook, master):
    notebook.cells = [copy.deepcopy(c) for c in notebook.cells for _ in range(2)]


@case(FULL)
def stubs_pasted_at_the_end(notebook, master):
    notebook.cells += copy.deepcopy(master.student.cells)


@case(FULL)
def answers_after_the_tests(notebook, master):
    solutions = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("solution")]
    notebook.cells = [c for c in notebook.cells if c not in solutions] + solutions


@case(FULL)
def one_cell_for_everything(notebook, master):
    code = [c.source for c in notebook.cells if c.cell_type == "code"]
    notebook.cells = [new_code_cell("\n\n".join(code))]


@case(FULL)
def names_deleted_at_the_end(notebook, master):
    notebook.cells.append(new_code_cell("%reset -f"))


@case(FULL)
def imports_deleted(notebook, master):
    notebook.cells = [c for c in notebook.cells if "import matplotlib" not in c.source]


@case(FULL)
def notes_in_between(notebook, master):
    cells = [[new_markdown_cell("# my notes"), new_code_cell("1 / 0"), c] for c in notebook.cells]
    notebook.cells = [c for three in cells for c in three]


@case(FULL)
def huge(notebook, master):
    output = nbformat.v4.new_output("stream", name="stdout", text="x" * 30_000_000)
    notebook.cells[1].outputs = [output]


@case(FULL, name='=HYPERLINK("http://example.org")')
def formula(notebook, master):
    pass


@case(FULL, name="Zoë Ünïcødé 🎓 李雷")
def unicode_name(notebook, master):
    cell_of(notebook, "1a").source += "\n# ε ≤ log 3 🎓"


@case(FULL, name="n" * 200)
def long_name(notebook, master):
    pass


TEXTS = {
    "not JSON": "this is my homework",
    "empty file": "",
    "a JSON list": "[]",
    "cells of a wrong kind": json.dumps({"cells": [3, None, {"cell_type": "code"}], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}),
    "deeply nested": "[" * 200_000,
    "binary": "\x00\x01\x02",
}  # fmt: skip


def write(folder, master, port):
    """Write all submissions into a folder; returns {student: (points, flags)}."""
    expected = {}
    for name, (change, points, flags) in CASES.items():
        notebook = solved(master)
        change(notebook, master)
        text = json.dumps(notebook).replace("PORT", str(port))
        name = name.replace("/", "∕")
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
        expected[name] = (points, flags)
    for name, text in TEXTS.items():
        (folder / f"{name}.ipynb").write_text(text)
        expected[name] = (NONE, ("unreadable notebook",))
    (folder / "renamed").mkdir()
    (folder / "renamed" / "laplace-final (2).ipynb").write_text(json.dumps(solved(master)))
    expected["renamed"] = (FULL, ("renamed file",))
    (folder / "empty folder").mkdir()
    expected["empty folder"] = (NONE, ("no notebook",))
    (folder / "link.ipynb").symlink_to("/etc/passwd")
    expected["link.ipynb"] = (NONE, ("a link instead of a file",))
    return expected
