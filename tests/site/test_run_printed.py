"""Each cell of the book gives in the page what is printed, and so do the tests of an answer and the
calculator. What a notebook can, a page can, or it says in one sentence why not.
"""

import html
import json
import re

import pytest
import test_calculator
from visits import PAGES

from calculator import query_of
from dpnotes import calculator
from machine import SITE

EXECUTED = SITE.parent / "jupyter_execute"
# text, tables, figures; the others, with pandas, statsmodels and scikit-learn, take minutes
QUICK = ("chapters/intro", "chapters/gaussian")
NUMBER = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?", re.I)


def printed(output):
    """What a notebook's output shows, as (kind, text); a figure by its description."""
    if output["output_type"] == "stream":
        return "text", "".join(output["text"])
    data = {kind: "".join(text) for kind, text in output.get("data", {}).items()}
    if "text/html" in data:
        return markup(data["text/html"])
    return "text", data.get("text/plain", "")


def markup(text):
    """HTML without its tags; of a figure its description, its axes and legends.

    Not its paths: two releases of matplotlib draw different numbers of ticks and letters.
    """
    if '<figure class="dpn-figure"' in text:
        described = re.search(r'aria-label="([^"]*)"', text)[1]
        parts = sorted(re.findall(r'id="\w+-((?:axes|legend)_\d+)"', text))
        return "figure", f"{html.unescape(described)} {' '.join(parts)}"
    text = re.sub(r"<style.*?</style>", " ", text, flags=re.S)
    return "table", html.unescape(re.sub(r"<[^>]*>", " ", text))


def merged(outputs):
    """Text that follows text is one text: how it was cut into pieces says nothing."""
    found = []
    for kind, text in outputs:
        if found and kind == found[-1][0] == "text":
            found[-1] = ("text", found[-1][1].rstrip("\n") + "\n" + text)
        else:
            found.append((kind, text))
    return [(kind, text) for kind, text in found if text.strip()]


def last_digit(number):
    """The unit of the last digit that a number shows."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals)


def differs(text, other):
    """Why two outputs are not the same, or None.

    Words must agree, and whole numbers; a number with a point may be off by one unit of its last
    printed digit, or by 1e-9 of itself if it shows more digits than anybody reads. NumPy's own
    whole numbers have 32 bits in WebAssembly, so others say how many they have.
    """
    text, other = (re.sub(r",\s*dtype=int(?:32|64)", "", t) for t in (text, other))
    words = [" ".join(NUMBER.sub(" ", t).split()) for t in (text, other)]
    if words[0] != words[1]:
        return f"{words[0]!r} is not {words[1]!r}"
    for one, two in zip(NUMBER.findall(text), NUMBER.findall(other), strict=True):
        a, b = (float(n.replace(",", "")) for n in (one, two))
        whole = not re.search("[.e]", one + two, re.I)
        slack = 0 if whole else 1.001 * max(last_digit(one), last_digit(two))
        if a != b and not abs(a - b) <= max(slack, 1e-9 * abs(a)):
            return f"{one} is not {two}"
    return None


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("[0.52498 1.]", "[0.52499  1. ]", True),
        ("0.52498", "0.52500", False),
        ("12 of 1,000", "13 of 1,000", False),
        ("np.float64(0.1234567890123)", "np.float64(0.1234567890129)", True),
        ("1.234e-07", "1.235e-07", True),
        ("1.234e-07", "1.234e-06", False),
        ("inf", "1.0", False),
        ("array([1, 2])", "array([1, 2], dtype=int64)", True),
    ],
)
def test_comparison_sees_printed_digits(one, two, same):
    assert (differs(one, two) is None) == same


OTHERS = [pytest.param(page, marks=pytest.mark.thorough) for page in PAGES if page not in QUICK]


@pytest.mark.parametrize("page", [*QUICK, *OTHERS])
def test_every_cell_gives_what_is_printed(python, page):
    """Of two pages; of all once a week. Hidden cells are the book's own, with their checks."""
    cells = json.loads((SITE / "_run" / "cells" / f"{page}.json").read_text(encoding="utf-8"))
    notebook = json.loads((EXECUTED / f"{page}.ipynb").read_text(encoding="utf-8"))
    blocks = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    python.tab.evaluate("python.reset()")
    faults = []
    for number, (cell, block) in enumerate(zip(cells, blocks, strict=True), 1):
        if cell["lacks"]:
            continue
        assert "number" not in cell or cell["source"] == "".join(block["source"])
        done = python.tab.evaluate("(code) => python.run(code)", "".join(block["source"]))
        where = f"{page}, code cell {number}"
        if not done["ok"]:
            faults.append(f"{where}: {done['error']['traceback']}")
            continue
        kinds = {"svg": markup, "html": markup, "text": lambda text: ("text", text)}
        got = merged(kinds[o["type"]](o["data"]) for o in done["outputs"])
        want = merged(printed(output) for output in block["outputs"])
        if [kind for kind, _ in got] != [kind for kind, _ in want]:
            faults.append(f"{where}: {want} was printed, {got} came")
            continue
        for (_, came), (_, stands) in zip(got, want, strict=True):
            if why := differs(stands, came):
                faults.append(f"{where}: {why}")
    assert not faults, "\n".join(faults)
    assert [f for f in python.faults if "another host" in f or "script error" in f] == []


def test_an_answer_to_an_assignment_is_checked_in_it(python):
    """What homework.js does, and with it the page itself, is in test_homework.py."""
    code = (SITE / "_homework" / "check.py").read_text(encoding="utf-8")
    done = python.tab.evaluate("(code) => python.run(code)", code)
    assert done["ok"], done["error"]
    given = {"id": "cell-1", "kind": "given", "source": "import numpy as np"}
    test = {"id": "test-1a", "kind": "test", "source": "assert f(2) == 4, 'f squares'"}
    for source, message in (("def f(x):\n    return np.square(x)", ""), ("f = abs", "f squares")):
        cells = [given, {"id": "1a", "kind": "code", "source": source}, test]
        asked = "(cells) => python.call('check', [cells, 'test-1a'])"
        found = python.tab.evaluate(asked, cells)
        assert found["ok"] == (not message) and message in found["message"]


@pytest.mark.parametrize("asked", test_calculator.ASKED[1:4])
def test_the_calculators_answer_in_it_is_that_of_this_process(python, asked):
    """Elsewhere this process's Python stands in for it: to 1e-11, and to all digits shown."""
    query = query_of(asked)
    found = python.tab.evaluate(
        "(query) => python.call('dpnotes.calculator.answers', [query])", query
    )
    expected = calculator.answers(query)
    for end in ("answer", "low", "high"):
        assert found[end] == pytest.approx(expected[end], rel=1e-11)
    for part in ("shown", "call", "warnings"):
        assert found[part] == expected[part]
    shown = [[(row["name"], row["shown"]) for row in one["rows"]] for one in (found, expected)]
    assert shown[0] == shown[1] and len(shown[0]) > 3
    if asked != test_calculator.ASKED[1]:
        return  # a curve is many answers
    curve = "(parts) => python.call('dpnotes.calculator.curve', [{parts}])"
    lines = python.tab.evaluate(curve, found["parts"])
    assert lines == near(calculator.curve({"parts": expected["parts"]}))


def near(value):
    """The same lists and dictionaries, whose numbers may differ by 1e-9 of themselves."""
    if isinstance(value, dict):
        return {name: near(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [near(part) for part in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


TALK = {
    "class A(Exception):\n    def __str__(self):\n        1 / 0\nraise A": "cannot be made",
    "%timeit 1": "this page runs plain Python",
    "import dpnotes as dp\ndp.laplace?": "help(f) says what f is",
    "input()": "cannot ask for input",
    "import numpy as np\nkept = [np.ones(10**8) for _ in range(9)]": "run out of memory",
    "import numpy as np\nnp.ones((10**5, 10**5))": "more than the memory",
    "bytearray(3 * 10**9)": "more than the memory",
    "import torch": "numpy, scipy, matplotlib, pandas",
    "from urllib.request import urlopen\nurlopen('https://example.org')": "has no network",
}
SHOWN = {
    "%matplotlib inline\nimport matplotlib.pyplot as plt\nfor n in (1, 2):\n    plt.plot([n])\n"
    "    plt.show()\n    print(n)": ["svg", "text", "svg", "text"],
    "from IPython.display import display, HTML\ndisplay(HTML('<b>x</b>'), 3)": ["html", "text"],
    "from tqdm import tqdm\n[n for n in tqdm(range(9))][-1]": ["text", "text"],
    "import asyncio\nawait asyncio.sleep(0)\nawait asyncio.sleep(0, 'slept')": ["text"],
    "class A:\n    _repr_html_ = lambda self: 'x' * 10**7\nA()": ["text"],
    "import pandas as pd, numpy as np\npd.set_option('display.max_rows', None)\n"
    "pd.DataFrame(np.zeros((30_000, 30)))": ["html"],
}


@pytest.mark.parametrize("code", [*TALK, *SHOWN])
def test_what_a_notebook_can_a_page_can_or_says_in_one_sentence(python, code):
    done = python.tab.evaluate("(code) => python.run(code)", code)
    if code in SHOWN:
        assert done["ok"], done["error"]
        assert [output["type"] for output in done["outputs"]] == SHOWN[code]
        assert "UserWarning" not in str(done) and len(str(done)) < 10**6
    else:
        assert TALK[code] in done["error"]["message"]
        assert "page_shell" not in done["error"]["traceback"]
