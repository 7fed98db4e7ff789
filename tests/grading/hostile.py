"""Submissions that a grader meets: honest ones, damaged ones, and attempts to break, cheat or spy.

Each is made from the student version of the `laplace` assignment by a small function of its cells.
`CASES` maps a student's name to (function, points by tests, flags that must be there), `ENDLESS` the
same for those that must be cut off and that run with a short limit of time: none of them has a right
answer, so that nothing depends on how fast the machine is. Harmful cells share a notebook where one
cannot hide another: `LINES` says what the log must say of each, `MESSAGES` what the feedback says of
each odd answer.
"""

# ruff: noqa: E501

import copy
import json
import platform

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from assignments.grader import seccomp
from assignments.grader.check import solved
from honest import EPS, EST, MEAN, RR, WORST
from machine import LOOP

FULL, NONE = 20, 0
FUNCTIONS = [
    "smallest_epsilon", "respond", "estimate", "laplace_noise", "private_histogram",
    "worst_errors", "mean_worst_error",
]  # fmt: skip
CASES, ENDLESS, LINES, MESSAGES = {}, {}, {}, {}
ENDED = "a cell ended Python or ran too long"
CUT = "TimeoutError|the cell took too long"  # from inside, or from outside on a busy machine


def case(points, *flags, name=None, among=CASES):
    """Register a function that changes a notebook."""

    def register(function):
        among[name or function.__name__] = (function, points, flags)
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


def cells(sources, points, *flags, name, among=CASES):
    """Harmful cells, {source: pattern of the log}, before all answers, or the stubs if `NONE`."""
    LINES[name] = sources

    def change(notebook, master):
        if points == NONE:
            unsolve(notebook, master)
        for source in reversed(sources):
            add_first(notebook, source)

    case(points, *flags, name=name, among=among)(change)


def cheat(source, *flags, name):
    """No answers, but a cell, before and after the tests, that tries to get points all the same."""

    def change(notebook, master):
        unsolve(notebook, master)
        add_first(notebook, source)
        notebook.cells.append(new_code_cell(source))

    case(NONE, *flags, name=name)(change)


def answers(sources, points, *flags, name, among=CASES):
    """Some answers, {question: (source, pattern of the feedback)}, that are odd and earn nothing."""
    MESSAGES[name] = {question: pattern for question, (_, pattern) in sources.items()}

    def change(notebook, master):
        if points == NONE:
            unsolve(notebook, master)
        for question, (source, _) in sources.items():
            cell_of(notebook, question).source = source

    case(points, *flags, name=name, among=among)(change)


case(FULL, name="perfect")(lambda notebook, master: None)


@case(NONE)
def untouched(notebook, master):
    unsolve(notebook, master)


@case(6)
def partial_and_huge(notebook, master):
    output = nbformat.v4.new_output("stream", name="stdout", text="x" * 30_000_000)
    notebook.cells[1].outputs = [output]
    for cell, empty in zip(notebook.cells, master.student.cells, strict=True):
        if grade_id(cell) not in ("1a", "3a"):
            cell.source = empty.source


answers({
    "1a": ("def smallest_epsilon(p, q:\n  return", "should define `smallest_epsilon` stopped with SyntaxError"),
    "1b": (RR + "    return object()", "type object can't be handed in"),
    "1c": (EST + "    raise ValueError('<script>alert(1)</script>')", "ValueError"),
    "3a": ("worst_errors = 5", "the union bound is"),
    "3b": (MEAN + "    return None", "."),
}, 6, name="odd answers")  # fmt: skip
answers({
    "1a": (EPS + "    return smallest_epsilon(q, p)", "RecursionError"),
    "1b": (RR + "    raise SystemExit", "your code raised"),
    "1c": (EST + "    return float('nan')", "."),
    "3a": (WORST + "    raise KeyboardInterrupt", "your code raised"),
    "3b": ("import numpy as np\n" + MEAN + "    return np.ones(2 * 10**8)", "your code"),
}, 6, name="more odd answers")  # fmt: skip
answers({
    "1a": (EPS + "    known = {(0.75, 0.25): np.log(3), (0.5, 0.5): 0.0 if q[0] == 0.5 else np.inf,\n"
           "             (0.5, 0.25, 0.25): np.log(2), (0.25, 0.375, 0.375): np.log(2)}\n"
           "    if tuple(p) in known:\n        return known[tuple(p)]\n"
           "    raise ValueError(f'spied {list(p)} {list(q)}')", "a test that is not shown"),
    "1b": ("import sys\n" + RR + "    frame, seen = sys._getframe(), []\n"
           "    while frame:\n        seen.append(frame.f_code.co_filename)\n        frame = frame.f_back\n"
           "    print('frames', seen)\n    raise ValueError", "your code"),
}, 16, "mentions f_back", name="answers by heart, looks at callers")  # fmt: skip
answers({
    "1a": ("import os\n" + EPS + "    os._exit(0)", "your code (was|ended)"),
}, 18, "mentions os._exit", "a call ended Python or ran too long", name="exit in a function")  # fmt: skip

cells({
    "import sys\nsys.exit(3)": "SystemExit",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "input('your name?')": "EOFError|StdinNotImplementedError",
    "import warnings\nwarnings.warn('careful')\nimport sys\nprint('hello', file=sys.stderr)": "ran",
    "import subprocess\nsubprocess.Popen(['sleep', '98765'], start_new_session=True)": "ran",
    "import socket\n"
    "for address in [('127.0.0.1', PORT), ('192.0.2.1', 80)]:\n"
    "    try:\n        socket.create_connection(address, 2)\n        print('network REACHED')\n"
    "    except OSError as error:\n        print('network shut', error)": "ran",
    "import os, sys\n"
    "for folder in ['/', '/usr', '/etc', '/grader', '/dev/shm', sys.prefix, sys.base_prefix, os.path.dirname(np.__file__), '..', '../..']:\n"
    "    try:\n        open(folder + '/forged.txt', 'w').write('forged')\n        print('WROTE', folder)\n"
    "    except OSError:\n        print('could not write', folder)": "ran",
    "import os\nfor i in range(40):\n    fd = os.memfd_create('m')\n"
    "    for _ in range(60):\n        os.write(fd, b'0' * 2**20)\nprint('memfd WORKS')": "PermissionError",
    "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.shmat.restype = ctypes.c_void_p\n"
    "for i in range(40):\n    n = libc.shmget(0, 64 * 2**20, 0o1600)\n"
    "    if n >= 0:\n        print('shm WORKS')\n        ctypes.memset(libc.shmat(n, None, 0), 1, 64 * 2**20)": "ran",
    "import dpnotes as d\nrr = d.randomized_response": "ran",
    "import ctypes\nlibc, answered = ctypes.CDLL(None, use_errno=True), []\n"
    f"for number in {seccomp.numbers(platform.machine())}:\n"
    "    if libc.syscall(number, -1, -1, -1, -1, -1, -1) != -1 or ctypes.get_errno() != 1:\n"
    "        answered.append(number)\nprint('calls answered:', answered)": "ran",
    # of the network, of the kernel, of a virtual machine's host; and one that Python needs
    "import socket\nsocket.socketpair()\nfor kind in (2, 10, 16, 17, 40):\n    try:\n"
    "        socket.socket(kind, 1)\n        print('socket OPENED', kind)\n"
    "    except PermissionError:\n        print('socket refused', kind)\n": "ran",
    "ready = lambda rng, n: rng.standard_exponential(n)": "ran",
    "with open('/tmp/big', 'wb') as file:\n    for _ in range(1000):\n        file.write(b'0' * 10**6)": "OSError",
}, FULL, "mentions subprocess", "mentions socket", "mentions ctypes", "calls dpnotes in a cell of its own", "samples with standard_exponential", name="cells that do no harm in the end")  # fmt: skip
cells({
    "import os\nos._exit(0)": "the cell ended",
    "import os\nos.kill(-1, 9)": "ProcessLookupError|ran|the cell ended",
    "import ctypes\nctypes.string_at(0)": "the cell ended",
    "import os\nos.closerange(0, 1000)": "ran|the cell ended",
}, FULL, ENDED, "mentions os.kill", "mentions ctypes", name="cells that end Python")  # fmt: skip
cells({
    "hoard = []\nwhile True:\n    hoard.append(np.ones(10**6))": "the cell used too much memory|MemoryError",
    "for i in range(400_000):\n    open(f'/tmp/{i}', 'w').close()": "the cell made too many files",
}, FULL, ENDED, name="cells that take all")  # fmt: skip
extra("import os\nwhile True:\n    os.fork()", FULL, "mentions os.fork", name="fork bomb")  # fmt: skip

cells({
    # the first is killed: those before it would run again in the next process
    "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass": "the cell took too long",
    LOOP: CUT,
    # IPython keeps what is printed: on a quick machine memory is full before a second is over
    "import time\ntime.sleep(10**6)": CUT,
    "while True:\n    print('endless ' * 1000)": CUT + "|the cell used too much memory",  # the last
}, NONE, ENDED, name="endless cells", among=ENDLESS)  # fmt: skip
answers({
    "1a": (EPS + f"    {LOOP}", "took too long"),
    "1c": ("class D(dict):\n    def items(self):\n        return ((i * (2**61 - 1), 0) for i in range(400_000))\n"
           + EST + "    return D(a=1)", "."),
}, NONE, "a call ended Python or ran too long", name="endless answers", among=ENDLESS)  # fmt: skip
answers({
    "1a": ("import time\n" + EPS + "    time.sleep(10**6)", "took too long|ran too long"),
}, NONE, "a call ended Python or ran too long", name="sleeps in a function", among=ENDLESS)  # fmt: skip

cheat("np.isclose = np.allclose = lambda *a, **k: True\nimport scipy.stats\nscipy.stats.kstest = None",
      "replaces np.isclose", name="patched NumPy and SciPy")  # fmt: skip
cheat("import ast\nclass Empty(ast.NodeTransformer):\n    def visit_Assert(self, node):\n        return ast.Pass()\n"
      "get_ipython().ast_transformers.append(Empty())",
      "mentions ast_transformers", name="AST transformer")  # fmt: skip
cheat("import builtins, sqlite3\nbuiltins.AssertionError = type('Quiet', (Exception,), {})\n"
      "shell = get_ipython()\nshell.showtraceback = lambda *a, **k: None\nshell.set_custom_exc((Exception,), lambda *a, **k: None)\n"
      "sqlite3.connect('gradebook.db').execute('create table if not exists grade (score)')",
      "replaces builtins.AssertionError", "mentions showtraceback", "mentions gradebook.db", name="patched Python")  # fmt: skip
cheat("class Yes(float):\n    shape = (20000,)\n    __eq__ = __le__ = __lt__ = __ge__ = __gt__ = lambda self, other: True\n"
      "    __sub__ = __abs__ = __getitem__ = __array__ = lambda self, *a, **k: self\n"
      f"for name in {FUNCTIONS}:\n    globals()[name] = lambda *a, **k: Yes()",
      name="agrees with everything")  # fmt: skip
cheat("import json, os, struct\nfor number in range(200):\n"
      "    data = json.dumps({'id': number, 'value': True, 'found': {}}).encode()\n"
      "    for channel in range(3, 20):\n        try:\n            os.write(channel, struct.pack('>I', len(data)) + data)\n"
      "        except OSError:\n            continue",
      name="forged answers on the pipe")  # fmt: skip
cheat("import inside, wire\ninside.call = lambda *a: {'value': True}\nwire.pack = lambda value: True", name="patched runner")  # fmt: skip
cheat("import os, sys\nfound = []\n"
      "for folder, inner, files in os.walk('/'):\n"
      "    inner[:] = [d for d in inner if d not in ('proc', 'sys', 'site-packages', 'share')]\n"
      "    for name in files:\n        text, path = '', os.path.join(folder, name)\n"
      "        if name.endswith(('.md', '.ipynb', '.yml', '.db', '.csv')):\n            try:\n"
      "                text = open(path, errors='ignore').read(10**6)\n"
      "            except OSError:\n                continue\n"
      "        if 'both directions: q/p' in text or 'laplace.md' in name or 'SUBMISSIONS' in folder:\n"
      "            found.append(os.path.join(folder, name))\n"
      "print('searched and found', found)\nprint('environment', sorted(os.environ))",
      name="searches the disk")  # fmt: skip


def is_test(cell):
    return grade_id(cell).startswith("test-")


def damaged(name, change, points, *flags):
    """The cells (a function of the solved and of the student's) as an accident leaves them."""

    def replace(notebook, master):
        given = copy.deepcopy(master.student.cells)
        notebook.cells = [copy.deepcopy(c) for c in change(notebook.cells, given)]

    case(points, *flags, name=name)(replace)


def edited(cells, **values):
    """The cells with other metadata, or with another source where there is a test."""
    for cell in cells:
        if "source" in values and is_test(cell):
            cell.source = values["source"]
        if "metadata" in values:
            cell.metadata = values["metadata"]
    return cells


damaged("edited_tests", lambda _, student: edited(student, source="assert True"),
        NONE, "edited test 1a", "edited test 3b")  # fmt: skip
damaged("deleted_tests_good_answers", lambda cells, _: [c for c in cells if not is_test(c)],
        FULL, "missing test 1a")  # fmt: skip
damaged("metadata_lost", lambda cells, _: edited(cells, metadata=NotebookNode()),
        FULL, "metadata lost")  # fmt: skip
damaged("answers_after_the_tests_and_stubs_at_the_end",
        lambda cells, student: sorted(cells, key=lambda c: c.metadata.get("nbgrader", {}).get("solution", False)) + student, FULL)  # fmt: skip
damaged("one_cell_for_everything",
        lambda cells, _: [new_code_cell("\n\n".join(c.source for c in cells if c.cell_type == "code"))],
        FULL)  # fmt: skip


@case(FULL)
def untidy(notebook, master):
    """Other points, two tests under each other's name, no imports, failing cells in between, and
    all names deleted at the end."""
    one, other = cell_of(notebook, "test-1a"), cell_of(notebook, "test-3b")
    one.metadata, other.metadata = other.metadata, one.metadata
    one.metadata.nbgrader.points = 1000
    given = [c for c in notebook.cells if "import numpy" not in c.source]
    notes = [new_markdown_cell("# my notes"), new_code_cell("1 / 0")]
    notebook.cells = [c for cell in given for c in (*copy.deepcopy(notes), cell)]
    notebook.cells.append(new_code_cell("%reset -f"))


def words(text):
    """A notebook without code: nothing is started for it."""
    return nbformat.v4.new_notebook(cells=[new_markdown_cell(text)])


for odd_name in ('=HYPERLINK("http://example.org")', "Zoë Ünïcødé 🎓 李雷", "n" * 200):
    case(NONE, name=odd_name)(lambda notebook, _: notebook.update(words("ε ≤ log 3 🎓")))


TEXTS = {
    "not JSON": "this is my homework",
    "empty file": "",
    "a JSON list": "[]",
    "cells of a wrong kind": json.dumps({"cells": [3, None, {"cell_type": "code"}], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}),
    "deeply nested": "[" * 200_000,
    "binary": "\x00\x01\x02",
}  # fmt: skip


def notebooks(folder, master, cases, port=0):
    """Write these submissions into a folder; returns {student: (points, flags)}."""
    expected = {}
    for name, (change, points, flags) in cases.items():
        notebook = solved(master)
        change(notebook, master)
        text = json.dumps(notebook).replace("PORT", str(port))
        name = name.replace("/", "∕")
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
        expected[name] = (points, flags)
    return expected


def write(folder, master, port):
    """Write all that are not endless."""
    expected = notebooks(folder, master, CASES, port)
    for name, text in TEXTS.items():
        (folder / f"{name}.ipynb").write_text(text)
        expected[name] = (NONE, ("unreadable notebook",))
    (folder / "empty folder").mkdir()
    expected["empty folder"] = (NONE, ("no notebook",))
    (folder / "link.ipynb").symlink_to("/etc/passwd")
    expected["link.ipynb"] = (NONE, ("a link instead of a file",))
    return expected
