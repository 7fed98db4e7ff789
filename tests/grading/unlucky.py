"""Accidents of honest students and odd objects of others, from a fourth list of submissions.

Importing this module adds them to `hostile.CASES`. Accidents that do not touch each other share a
notebook.
"""

import copy

from nbformat.v4 import new_code_cell, new_markdown_cell

from hostile import EPS, EST, FULL, RR, WORST, answers, case, cell_of

WINDOWS = "%matplotlib qt\nimport matplotlib\nmatplotlib.use('TkAgg')\n"


def after(notebook, name, cell):
    notebook.cells.insert(notebook.cells.index(cell_of(notebook, name)) + 1, cell)


@case(FULL, *(f"answer {q} stands in a cell of another kind" for q in ("1b", "3a")),
      "an empty answer 2b beside the answer: not run", "2 cells with the id 2c")  # fmt: skip
def unlucky(notebook, master):
    cell_of(notebook, "1a").source = WINDOWS + cell_of(notebook, "1a").source
    cell_of(notebook, "1b").cell_type = "raw"
    cell_of(notebook, "3a").cell_type = "markdown"
    stub = copy.deepcopy(next(c for c in master.student.cells if c.id == "2b"))
    after(notebook, "2b", stub)
    after(notebook, "2c", copy.deepcopy(cell_of(notebook, "2c")))
    empty = new_markdown_cell()
    empty["source"] = None
    notebook.cells.insert(0, empty)
    notebook.cells.insert(0, new_code_cell("%reset -f"))
    # many threads and a complex number
    cell_of(notebook, "1c").source = (
        "import os\nassert os.cpu_count() == 4  # on any machine: pools have that size\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(32) as pool:\n"
        "    import time\n    list(pool.map(lambda _: time.sleep(0.5), range(32)))\n"
        + cell_of(notebook, "1c").source
        + "\nreal = estimate\ndef estimate(reports, epsilon):\n"
        "    return complex(real(reports, epsilon))"
    )


@case(15)
def wrong_and_timed_beside_the_stub_and_one_missing(notebook, master):
    for question in ("1a", "2b"):
        stub = next(c for c in master.student.cells if c.id == question)
        cell_of(notebook, question).source = stub.source
    after(notebook, "1a", new_code_cell("%%time\n" + EPS + "    return 7.0"))


TEXTS = "class F(Fraction):\n    numerator, denominator = '1e5000', None\n"
PLACES = "[line for line in open('/proc/self/mountinfo') if '/grader' in line][-1][:250]"
DIGITS = "import sys\nsys.set_int_max_str_digits(0)\nfrom fractions import Fraction\n"
answers({
    "1a": (DIGITS + TEXTS + EPS + "    return F(1)", "a fraction has whole numbers"),
    "1b": (RR + f"    raise ValueError({PLACES})", "/grader"),
    "1c": (EST + "    raise ValueError('\\0 \\ud800 end')", "\ufffd \ufffd end"),
    "3a": (DIGITS + WORST + "    return [Fraction(10**4299 + 1), [Fraction(1, 10**4301)]]", "."),
}, 10, "mentions /proc", name="objects that can't be shown")  # fmt: skip
