"""The attacks of a review of the grader, on the trusted side: parsing, unpacking, searching, telling.

Importing this module adds them to `hostile.CASES`; `write` adds what isn't a notebook.
"""

# ruff: noqa: E501

import json
import os

from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from assignments.grader.check import solved
from hostile import ENDED, FULL, FUNCTIONS, NONE, case, cell_of, cheat, extra

HOOK = "import signal, struct\nG = signal.getsignal(signal.SIGALRM).__globals__\nreal = G['send']\n"
extra(
    HOOK + "def bomb(stream, message):\n"
    "    data = b'{\"id\":%d,\"value\":[' % message['id'] + b'{\"\":0},' * 4_500_000 + b'0]}'\n"
    "    stream.write(struct.pack('>I', len(data)) + data)\n    stream.flush()\n"
    "G['send'] = bomb",
    FULL, ENDED, name="frame of tiny dicts",
)  # fmt: skip
extra(
    HOOK + "def shout(stream, message):\n"
    "    real(stream, {**message, 'error': 'A' * 30_000_000} if 'value' not in message and 'found' not in message else message)\n"
    "G['send'] = shout",
    FULL, name="endless errors",
)  # fmt: skip
cheat(
    HOOK + "def forge(stream, message):\n"
    "    if 'found' in message:\n        message['found'] |= {name: {'function': True} for name in ('abs', 'largest_gap', 'laplace_cdf', 'np')}\n"
    "    real(stream, message)\n"
    f"G['send'] = forge\nfor name in {FUNCTIONS}:\n    globals()[name] = lambda *a, **k: np.zeros(20_000)",
    name="forged names",
)  # fmt: skip
cheat(
    HOOK + "def forge(stream, message):\n"
    "    if 'found' in message:\n        message['found'] = {name: {'error': 'spied' * 10**6} for name in message['found']}\n"
    "    real(stream, message)\nG['send'] = forge",
    name="forged errors of names",
)  # fmt: skip


@case(16)
def tells_hidden_inputs(notebook, master):
    cell_of(notebook, "1a").source = (
        "seen = []\ndef smallest_epsilon(p, q):\n    seen.append((list(p), list(q)))\n    known = {0.75: np.log(3), 0.5: 0.0 if q[0] == 0.5 else np.inf}\n"
        "    return known.get(p[0], 'spied ' + str(seen))"
    )
    cell_of(
        notebook, "1c"
    ).source = "def estimate(reports, epsilon):\n    raise ValueError('spied' + str(seen[3:]))"


@case(FULL)
def proof_in_an_added_cell(notebook, master):
    place = next(i for i, c in enumerate(notebook.cells) if c.id == "2a")
    notebook.cells[place].source = "*Your answer here.*"
    notebook.cells.insert(place + 1, new_markdown_cell("My proof: $x_1 < x_2$, second cell."))


@case(FULL)
def plots_and_names_of_tests(notebook, master):
    notebook.cells.append(
        new_code_cell(
            "import matplotlib.pyplot as plt\nplt.loglog(epsilons, errors)\nprint('plotted', len(errors))"
        )
    )
    notebook.cells[-1].outputs = [new_output("display_data", {"image/png": "iVBORw0KGgo="})]


@case(FULL)
def tiny_metadata(notebook, master):
    notebook.metadata["x"] = [{"": 0}] * 1_200_000


FILES = {
    "aliases.md": "---\na0: &a0 [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 13))
    + "---\n# text\n",
    "references.md": "".join(f"[a{i}]: x\n" for i in range(20_000)),
}


def write_endless(folder, master):
    """What takes endless time or memory to read; returns {student: (points, flags)}."""
    expected = {}
    for name, text in FILES.items():
        (folder / name).write_text(text)
        expected[name[:-3]] = (NONE, ("unreadable notebook",))
    return expected


def write(folder, master):
    """Files and folders; returns {student: (points, flags)}."""
    expected = {}
    with open(folder / "sparse.ipynb", "wb") as file:
        file.truncate(6 * 2**30)
    expected["sparse"] = (NONE, ("unreadable notebook",))
    place = folder / "nested"
    place.mkdir()
    (place / "laplace.ipynb").write_text(json.dumps(solved(master)))
    here = os.open(place, os.O_RDONLY)
    for _ in range(1600):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    expected["nested"] = (FULL, ("not all were searched",))
    for name in ("ada.ipynb", "ada.md", "ada/laplace.ipynb", "ada (ada.ipynb).ipynb"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(
            json.dumps(solved(master)) if name.endswith("b") else "# nothing"
        )
    for name in ("ada (ada.ipynb)", "ada (ada.ipynb) (2)", "ada (laplace.ipynb)"):
        expected[name] = (FULL, ())
    expected["ada (ada.md)"] = (NONE, ("submissions of ada",))
    return expected
