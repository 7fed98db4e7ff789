"""Cells run in the page: every cell of the book against what is printed, and the buttons.

Needs the site with its Python (`make book`) and Chromium; skipped without them, except where CI is
set. The tests stand in the order of a reader's visit to one page, whose Python also runs the cells
of the other pages: starting it takes long.
"""

import functools
import gzip
import html
import http.server
import json
import re
import shutil
import threading
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pytest
import test_calculator
from test_site import WIDE, Watched, lighten, violations

from calculator import query_of
from checks import guards
from dpnotes import calculator
from machine import FOR_PYTHON, LOOP, ROOT, SITE, Quiet, need_python_in_pages, served
from run import offline

EXECUTED = SITE.parent / "jupyter_execute"
PAGES = sorted(
    path.relative_to(SITE / "_run" / "cells").with_suffix("").as_posix()
    for path in (SITE / "_run" / "cells").rglob("*.json")
)
# text, tables, figures; the others, with pandas, statsmodels and scikit-learn, take minutes
QUICK = ("chapters/intro", "chapters/gaussian")
HEAVIEST = 300_000  # bytes of a page before Python, compressed
ALSO_LOADED = (
    "editor.js", "offline.js", "page.js", "panel.js", "results.js", "running.js", "../sw.js",
)  # fmt: skip
NUMBER = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?", re.I)


class WithWorker(Watched):
    """A reader whose browser has the service worker."""

    ALONE = ""


@pytest.fixture(scope="module")
def server(address):
    """The site, with its Python."""
    need_python_in_pages()
    return SimpleNamespace(address=address)


# ---- what a cell shows, and what was printed ----


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


# ---- the buttons ----


@pytest.fixture(scope="module")
def reader(browser, server):
    """A reader on the first page, before anything was asked for."""
    watched = WithWorker(browser, server.address)
    yield watched
    watched.context.close()


FIRST = "chapters/intro.html"


def bar(tab, number):
    """The buttons of a cell."""
    return tab.locator(f'.run-bar:has([aria-label="Run cell {number}"])')


def press(tab, number, what):
    bar(tab, number).locator(f'[data-do="{what}"]').click()


def settled(tab, number, says):
    """Wait until the note beside the buttons says this."""
    bar(tab, number).locator(".run-note").filter(has_text=re.compile(says)).wait_for(
        timeout=FOR_PYTHON
    )


def forget_note(tab, number):
    """What is said there from now on is of the next run."""
    bar(tab, number).locator(".run-note").evaluate("(note) => note.replaceChildren()")


def output(tab, number):
    return tab.locator(f'[aria-label="Output of your run of cell {number}"]')


def type_code(tab, number, code):
    edit = bar(tab, number).locator('[data-do="edit"]')
    edit.evaluate("(one) => one.checkVisibility() && one.click()")  # another tab may open it, too
    tab.get_by_label(f"Code of cell {number}").fill(code)


@pytest.fixture
def first(reader):
    """The reader's tab on the first page, also for a test that is run alone."""
    if not reader.tab.url.endswith(FIRST):
        reader.open(FIRST)
    return reader.tab


def test_nothing_is_loaded_until_asked(browser, server):
    with WithWorker(browser, server.address) as other:
        requests = []
        other.context.on("request", lambda request: requests.append(request.url))
        tab = other.open(FIRST)
        tab.wait_for_load_state("networkidle")
        assert bar(tab, 1).is_visible()
        assert not [url for url in requests if "python.js" in url or "pyodide" in url]
        assert other.faults == []


def test_idle_buttons_take_hardly_any_room(browser, server):
    """Where there is a mouse: less than half a line a cell. Edit comes with the focus, too."""
    with Watched(browser, server.address) as other:
        tab = other.open("chapters/gaussian.html")
        tab.locator("[data-run=on]").wait_for()
        height = "document.querySelector('.bd-article').getBoundingClientRect().height"
        bars = "document.querySelectorAll('.run-bar')"
        before, count = tab.evaluate(height), tab.evaluate(f"{bars}.length")
        tab.evaluate(f"{bars}.forEach((bar) => bar.remove())")
        assert count > 10 and before - tab.evaluate(height) < 13 * count
        tab.reload()
        tab.locator("[data-run=on]").wait_for()
        edit = bar(tab, 3).locator('[data-do="edit"]')
        assert edit.evaluate("(one) => getComputedStyle(one).opacity") == "0"
        edit.focus()
        assert edit.evaluate("(one) => getComputedStyle(one).opacity") == "1"


def test_two_tabs_of_a_page_show_the_same_edits(browser, server):
    """What is typed in one replaces nothing of the other without a word."""
    with Watched(browser, server.address) as other:
        tabs = [other.open(FIRST), other.context.new_page()]
        tabs[1].goto(tabs[0].url)
        for tab, code in zip(tabs, ("x = 41", "x = 42"), strict=True):
            type_code(tab, 2, code)
        settled(tabs[0], 2, "changed in another tab of this page")
        assert tabs[0].get_by_label("Code of cell 2").input_value() == "x = 42"
        press(tabs[0], 2, "restore")
        settled(tabs[1], 2, "changed in another tab of this page")
        assert "epsilon" in tabs[1].get_by_label("Code of cell 2").input_value()


def test_running_a_cell_runs_those_above_it(browser, server):
    with WithWorker(browser, server.address) as other:
        tab = other.open(FIRST)
        tab.evaluate("navigator.serviceWorker.ready.then(() => 1)")
        press(tab, 2, "run")
        tab.locator('.run-panel [data-do="stop"]').wait_for()
        settled(tab, 2, "done")
        cell = tab.locator(".cell:has(.run-bar)").nth(1)
        shown = cell.locator(".cell_output pre").all_inner_texts()
        assert len(shown) == 2 and differs(*shown) is None
        assert output(tab, 1).count() == 0, "what ran on the way is not shown"


def test_a_figure_is_drawn_again(browser, server):
    with WithWorker(browser, server.address) as other:
        tab = other.open("chapters/gaussian.html")
        press(tab, 2, "run")
        settled(tab, 2, "done")
        figures = tab.locator(".cell:has(.run-bar)").nth(1).locator("svg[role=img]:visible")
        assert figures.count() == 2
        assert tab.evaluate(
            "() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);"
            " return ids.filter((id, n) => ids.indexOf(id) !== n) }"
        ) == []  # fmt: skip


def test_an_edited_cell_runs_from_the_keyboard_and_is_accessible(first):
    tab = first
    type_code(tab, 2, "def half(x):\n    return x / 0\nprint('before')\nhalf(3)")
    tab.get_by_label("Code of cell 2").press("Shift+Enter")
    settled(tab, 2, "failed")
    text = output(tab, 2).inner_text()
    assert "before" in text and "ZeroDivisionError: division by zero" in text
    assert "line 2, in half" in text and "page_shell" not in text and "pyodide" not in text
    tab.get_by_label("Code of cell 2").press("Escape")
    assert tab.evaluate("document.activeElement.dataset.do") == "run"
    tab.set_viewport_size(WIDE)
    lighten(tab)
    for mode in ("light", "dark"):
        tab.evaluate("(mode) => (document.documentElement.dataset.theme = mode)", mode)
        assert violations(tab) == [], mode
    status = tab.locator(".run-status")
    assert status.get_attribute("role") == "status" and "Cell 2" in status.inner_text()


def labels(tab):
    return tab.locator(".cell_output > .run-label").all_inner_texts()


BOOKS, OLD = (
    "Printed in the book, from its own code",
    "Run in this page (old: the code here or above",
)


def test_a_result_whose_code_has_changed_says_so(first):
    """In the cell itself or above it: typed, run, or run and failed. One button mends all."""
    if bar(first, 2).locator('[data-do="restore"]').is_visible():
        press(first, 2, "restore")
    press(first, 2, "run")
    settled(first, 2, "done")
    assert BOOKS not in labels(first) and "old" not in "".join(labels(first))
    before = output(first, 2).inner_text()
    press(first, 1, "edit")
    area = first.get_by_label("Code of cell 1")
    source = area.input_value()
    area.fill(source.replace("sigma=1.1", "sigma=2.2"))
    assert labels(first)[-1].startswith(OLD) and labels(first).count(BOOKS) == 2
    press(first, 1, "run")
    settled(first, 1, "done")
    assert labels(first)[-1].startswith(OLD)
    forget_note(first, 2)
    first.get_by_role("button", name="Run the old result again").click()
    settled(first, 2, "done")
    assert labels(first)[-1] == "Run in this page" and output(first, 2).inner_text() != before
    area.fill("1 / 0")
    press(first, 2, "run")
    settled(first, 2, "failed in .*; cell 1 failed")
    assert labels(first)[-1] == "Run in this page, after cell 1 failed"
    assert "name 'step' is not defined" in output(first, 2).inner_text(), "not the one before"
    assert "ZeroDivisionError" in output(first, 1).inner_text()
    with first.expect_download() as found:
        first.get_by_role("button", name="Download with my changes").click()
    notebook = json.loads(Path(found.value.path()).read_text())
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code[0] == "1 / 0" and "round(" in "".join(code[1])
    first.get_by_role("button", name="Restore all").click()
    assert "sigma=1.1" in area.input_value() and "old" in "".join(labels(first))


def test_a_second_press_runs_one_cell(first, python):
    """A cell above that has run and is what it was is not run again: it counts its runs."""
    type_code(first, 1, "import builtins as b; b.runs = getattr(b, 'runs', 0) + 1")
    type_code(first, 2, "import builtins; builtins.runs")
    counted = []
    for _ in range(3):
        forget_note(first, 2)
        press(first, 2, "run")
        settled(first, 2, "done")
        counted.append(output(first, 2).locator("pre").inner_text().strip())
    assert counted == 3 * counted[:1]
    first.get_by_role("button", name="Restore all").click()


def test_a_call_that_begins_says_what_it_asks_for(first, python):
    press(first, 1, "run")
    settled(first, 1, "done")
    type_code(first, 2, "")
    first.get_by_label("Code of cell 2").press_sequentially("dp.laplace(")
    settled(first, 2, r"dp\.laplace\(scale.* – ")


@pytest.mark.parametrize("change", [lambda cells: cells[1:], lambda cells: cells[:1]])
def test_a_page_that_is_not_of_its_cells_version_runs_nothing(browser, server, change):
    with Watched(browser, server.address) as other:
        cells = json.loads((SITE / "_run/cells/chapters/intro.json").read_text(encoding="utf-8"))
        other.context.route("**/intro.json", lambda route: route.fulfill(json=change(cells)))
        tab = other.open(FIRST)
        press(tab, 2, "run")
        settled(tab, 2, "the book has changed since this page was loaded; reload the page")


def test_a_page_that_is_not_of_pythons_version_says_so(browser, server):
    with Watched(browser, server.address) as other:
        facts = json.loads((SITE / "_run/runtime.json").read_text(encoding="utf-8"))
        assert facts["book"] and f'data-book="{facts["book"]}"' in (SITE / FIRST).read_text()
        newer = {"json": facts | {"book": "newer"}}
        other.context.route("**/runtime.json", lambda route: route.fulfill(**newer))
        tab = other.open(FIRST)
        press(tab, 2, "run")
        settled(tab, 2, "the book has changed since this page was loaded; reload the page")


@pytest.fixture
def python(reader, first):
    """The reader's tab, in which Python has started; for a test that is run alone it starts now."""
    reader.tab.evaluate("import('../_run/python.js').then((python) => { window.python = python })")
    reader.tab.evaluate("python.start()")
    return reader


OTHERS = [pytest.param(page, marks=pytest.mark.thorough) for page in PAGES if page not in QUICK]


def test_an_edit_stops_no_cell_below(python):
    """On the way there a hidden cell uses what this edit took away."""
    tab = python.open("chapters/gaussian.html")
    cells = json.loads((SITE / "_run/cells/chapters/gaussian.json").read_text(encoding="utf-8"))
    assert "number" not in cells[1] and "dp." in cells[1]["source"]
    type_code(tab, 1, cells[0]["source"].replace("import dpnotes as dp", "import dpnotes"))
    for _ in range(2):
        forget_note(tab, 2)
        press(tab, 2, "run")
        settled(tab, 2, "done|failed")
    said = tab.locator(".run-output, .run-note").all_inner_texts()
    assert "hidden" not in str(said) and str(said).count("Traceback") == 1
    assert "name 'dp' is not defined" in output(tab, 2).inner_text()
    press(tab, 1, "restore")
    python.open(FIRST)


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


def test_what_many_pages_import_comes_when_nothing_runs(first, python):
    press(first, 1, "run")
    settled(first, 1, "done")
    asked = "(code) => python.run(code).then((done) => done.outputs[0].data)"
    while "True" not in first.evaluate(asked, "import sys; 'scipy.stats' in sys.modules"):
        time.sleep(4)  # at most as long as a test may take


def test_an_endless_loop_is_stopped(first, python):
    first.evaluate("python.run('import sys; sys.same = own = 1')")
    type_code(first, 2, LOOP)
    press(first, 2, "run")
    settled(first, 2, "running")
    assert bar(first, 2).get_by_role("button", name="Stop cell 2", exact=True).is_visible()
    first.get_by_label("Code of cell 2").press("Escape")
    settled(first, 2, "stopped")
    assert bar(first, 2).get_by_role("button", name="Stop").count() == 0
    assert "variables are gone" in first.locator(".run-status").inner_text()
    assert works(first, "import sys; sys.same") and not works(first, "own")


def test_a_long_sleep_is_stopped_with_the_next_key_and_python_stays(first, python):
    first.evaluate("python.run('import sys; sys.same = 1')")
    type_code(first, 2, "import time; time.sleep(3000)")
    bar(first, 2).locator('[data-do="run"]').press("Enter")
    settled(first, 2, "running …")
    first.keyboard.press("Tab")
    assert first.evaluate("document.activeElement.ariaLabel") == "Stop cell 2"
    first.keyboard.press("Enter")
    settled(first, 2, "stopped")
    assert first.evaluate("document.activeElement.ariaLabel") == "Run cell 2"
    assert works(first, "import sys; sys.same")


def test_python_that_does_not_hear_is_left_once_and_the_next_can_be_ended(browser, server):
    """In one long sum it looks at nothing else. In a visit of its own: the first one goes on."""
    with WithWorker(browser, server.address) as other:
        tab = other.open(FIRST)
        tab.evaluate("import('../_run/python.js').then((python) => { window.python = python })")
        for _ in range(2):
            tab.evaluate("python.run('import sys; sys.same = 1')")
            long = "void python.run('sum(range(10**9))').catch((error) => (window.why = error))"
            tab.evaluate(long)
            tab.evaluate("python.stop()")
            assert tab.evaluate("why.name") == "Stopped"
            assert not works(tab, "import sys; sys.same")
        visit = other.context.new_cdp_session(tab).send("Target.getTargetInfo")["targetInfo"]
        session, end = browser.new_browser_cdp_session(), time.monotonic() + 30

        def workers():
            """How many this visit has; other tabs of the browser may have some, too."""
            targets = session.send("Target.getTargets")["targetInfos"]
            own = [x for x in targets if x.get("browserContextId") == visit["browserContextId"]]
            return [one["type"] for one in own].count("worker")

        while workers() > 1 and time.monotonic() < end:
            time.sleep(0.1)  # the browser ends a busy one when it can
        assert workers() == 1, "and those before it were ended"


@pytest.mark.parametrize(
    ("before", "why"), [("1", "broke down"), ("raise MemoryError", "ran out of memory")]
)
def test_a_python_that_broke_is_replaced(first, python, before, why):
    """What its side answers is no JSON: as after a session that ran out of memory."""
    works(first, before)
    code = "import page_shell; page_shell.json.dumps = lambda *more: chr(0)"
    said = first.evaluate("(code) => python.run(code).catch((error) => error.message)", code)
    assert why in said and ("JSON" in said) == (before == "1")
    assert first.evaluate("python.state()") == "off" and works(first, "1 + 1")


TALK = {
    "class A(Exception):\n    def __str__(self):\n        1 / 0\nraise A": "cannot be made",
    "%timeit 1": "this page runs plain Python",
    "import dpnotes as dp\ndp.laplace?": "help(f) says what f is",
    "input()": "cannot ask for input",
    "import numpy as np\nkept = [np.ones(10**8) for _ in range(9)]": "run out of memory",
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


def test_a_long_output_scrolls_by_keyboard_too(first, python):
    type_code(first, 2, "for n in range(5000):\n    print(n, 'long ' * 60)")
    press(first, 2, "run")
    settled(first, 2, "done")
    box = output(first, 2).locator(".output")
    assert box.bounding_box()["height"] < 700 and box.get_attribute("tabindex") == "0"
    assert [fault for fault in violations(first) if "scrollable" in fault] == []


def works(tab, code):
    return tab.evaluate("(code) => python.run(code)", code)["ok"]


def visit(reader, page):
    reader.tab.goto(f"{reader.address}/{page}")
    reader.tab.evaluate("import('../_run/python.js').then((python) => { window.python = python })")
    reader.tab.wait_for_function("python.state() === 'ready'", timeout=FOR_PYTHON)


def test_one_python_serves_the_pages_of_a_visit(reader, python):
    """Nobody waits for it twice; each page begins without variables, also if the last one works."""
    python.tab.evaluate("python.run('import sys; sys.same = own = 1')")
    python.tab.evaluate(f"void python.run('{LOOP}')")
    visit(reader, "chapters/gaussian.html")
    assert reader.tab.locator(".run-panel").is_hidden()
    assert works(reader.tab, "import sys; sys.same") and not works(reader.tab, "own")
    visit(reader, FIRST)


def test_what_was_typed_and_shown_is_there_again(first):
    """After a reload, and after the way back to a page."""
    tab = first
    type_code(tab, 2, "print(6 * 7)")
    press(tab, 2, "run")
    settled(tab, 2, "done")
    for leave in (tab.reload, lambda: tab.goto(tab.url.replace("intro", "claims"))):
        leave()
        if "claims" in tab.url:
            tab.go_back()
        area = tab.get_by_label("Code of cell 2")
        area.wait_for()
        assert area.input_value() == "print(6 * 7)" and area.is_visible()
        assert labels(tab)[-1] == "Your code, run in this page (old: its variables are gone)"
        assert "42" in output(tab, 2).inner_text()


@functools.cache
def compressed(file):
    """Bytes of a file as a server compresses it."""
    return len(gzip.compress(file.read_bytes()))


@pytest.mark.parametrize("name", PAGES)
def test_page_is_light_before_python(name):
    page = guards.Page(SITE / f"{name}.html", SITE)
    here = [urlsplit(url).path for url in page.loads if not urlsplit(url).scheme]
    loads = {(page.path.parent / unquote(path)).resolve() for path in here if path}
    loads |= {page.path, *((SITE / "_run" / own).resolve() for own in ALSO_LOADED)}
    assert sum(compressed(file) for file in loads) <= HEAVIEST


def test_failure_of_the_worker_is_reported(browser, server):
    """Of a page's own worker, as in browsers whose shared workers end with their page."""
    watched = WithWorker(browser, server.address, service_workers="block")
    watched.context.add_init_script("delete window.SharedWorker")
    watched.context.route("**/pyodide.asm.wasm", lambda route: route.abort())
    tab = watched.open(FIRST)
    press(tab, 2, "run")
    settled(tab, 2, "Python failed")
    assert "Python failed" in tab.locator(".run-status").inner_text()
    assert tab.get_by_role("button", name="Stop").count() == 0
    watched.context.close()


class Halting(Quiet):
    """A file server that sends half of the largest file, and the rest when it is told to."""

    go_on = threading.Event()

    def copyfile(self, source, outputfile):
        whole = source.read()
        if len(whole) == LARGEST:
            outputfile.write(whole[: LARGEST // 2])
            outputfile.flush()
            self.go_on.wait()
            whole = whole[LARGEST // 2 :]
        outputfile.write(whole)


LARGEST = max((p.stat().st_size for p in (SITE / "_run/pyodide").glob("*.whl")), default=0)


def test_the_bar_moves_while_a_large_file_comes(browser):
    need_python_in_pages()
    handler = functools.partial(Halting, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as slow:
        threading.Thread(target=slow.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{slow.server_port}"
        other = WithWorker(browser, address, service_workers="block")
        tab = other.open(FIRST)
        press(tab, 2, "run")
        said = tab.locator(".run-status", has_text=re.compile(r"Loading Python \(\d+ MB\)"))
        whole = 1e6 * int(re.search(r"\d+", said.inner_text(timeout=FOR_PYTHON))[0])
        # without that file the bar ends at 1 - LARGEST / whole
        wanted = 1 - 0.75 * LARGEST / whole
        tab.wait_for_function(
            "(wanted) => document.querySelector('.run-panel progress').value > wanted",
            arg=wanted,
            timeout=FOR_PYTHON,
        )
        Halting.go_on.set()
        settled(tab, 2, "done")
        other.context.close()
        slow.shutdown()


def test_python_and_search_without_the_server(browser):
    """With a server of its own: other tests need theirs, in whatever order they run."""
    need_python_in_pages()
    serving = served()
    reader = WithWorker(browser, next(serving))
    tab = reader.open(FIRST)
    tab.evaluate("navigator.serviceWorker.ready.then(() => 1)")
    tab.reload()  # its page is the worker's from here on
    type_code(tab, 2, "print(6 * 7)")
    press(tab, 2, "run")
    settled(tab, 2, "done")
    kept = """async () => { for (const name of await caches.keys()) {
        const cache = await caches.open(name);
        for (const key of await cache.keys()) if (key.url.includes("texts.json")) return true;
        } return false }"""
    while not tab.evaluate(kept):  # at most as long as a test may take
        time.sleep(0.5)
    next(serving, None)
    with pytest.raises(OSError):
        urllib.request.urlopen(reader.address, timeout=5)
    tab.evaluate("sessionStorage.clear()")  # Python starts anew
    tab.reload()
    assert tab.locator("h1").first.is_visible()
    press(tab, 2, "run")
    settled(tab, 2, "done|failed")
    assert "42" in output(tab, 2).inner_text()
    press(tab, 2, "restore")
    assert "epsilon" in tab.get_by_label("Code of cell 2").input_value()
    tab.goto(f"{reader.address}/search.html?q=privacy")
    tab.wait_for_selector("#search-results li a")
    assert [fault for fault in reader.faults if "another host" in fault] == []
    reader.context.close()


def test_breakdown_between_two_runs_is_noticed(python):
    planted = "import js; js.eval('setTimeout(() => { throw new Error(\"planted\") }, 0)')"
    python.tab.evaluate("(code) => python.run(code).catch(() => {})", planted)
    python.tab.wait_for_function("python.state() === 'off'")


# ---- versions, and copies on one host ----


class Slow(Quiet):
    """A file server for which some files take long."""

    slow = frozenset()

    def do_GET(self):
        if self.path.rpartition("/")[2] in self.slow:
            time.sleep(2)  # the service worker waits for half a second
        super().do_GET()

    def send_header(self, name, value):
        if name != "Last-Modified":  # it counts seconds: two versions may be of the same one
            super().send_header(name, value)


def publish(folder, text):
    """A little site of one page and a script, with the real service worker, in a hurry."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "_run").mkdir(parents=True)
    for name in ("sw.js", "offline.js"):
        code = (ROOT / "site" / "run" / name).read_text(encoding="utf-8")
        hurried = code.replace("PATIENCE = 4000", "PATIENCE = 500")
        assert (hurried != code) == (name == "sw.js")
        (folder / "_run" / name).write_text(hurried, encoding="utf-8")
    (folder / "_run" / "runtime.json").write_text('{"book": ""}')
    (folder / "part.js").write_text(f"document.title += ' {text}'")
    (folder / "index.html").write_text(
        f"<html><title>{text}</title><script src='part.js'></script>"
        "<script type='module' src='_run/offline.js'></script></html>"
    )
    offline.write_service_worker(folder)


@pytest.fixture
def host(tmp_path):
    """A host of sites that can be slow, or gone."""
    handler = functools.partial(Slow, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


KEEP = """async () => {
  const registered = await navigator.serviceWorker.ready;
  const {port1, port2} = new MessageChannel();
  const kept = new Promise((done) => (port1.onmessage = ({data}) =>
    data.done === data.of && done(data.failed)));
  registered.active.postMessage({keep: "everything"}, [port2]);
  return kept;
}"""


def test_a_page_and_its_scripts_are_of_one_version_also_on_a_slow_line(browser, host, tmp_path):
    """And two copies of the book on one host keep their own files."""
    address = f"http://127.0.0.1:{host.server_port}"
    context = browser.new_context()
    context.set_default_timeout(300_000)
    tab = context.new_page()
    for site in ("fall", "spring"):
        publish(tmp_path / site, "one")
        tab.goto(f"{address}/{site}/index.html")
        assert tab.evaluate(KEEP) == 0
    names = tab.evaluate("caches.keys()")
    assert (
        sum("/fall/ " in name for name in names) == sum("/spring/ " in name for name in names) == 1
    )
    publish(tmp_path / "fall", "two")
    Slow.slow = {"part.js"}
    titles = []
    while titles[-1:] != ["two two"]:  # on a busy machine the page itself may come late
        tab.goto(f"{address}/fall/index.html", wait_until="load")
        titles.append(tab.title())
        assert titles[-1] in ("one one", "two two") and len(titles) < 60
    Slow.slow = {"index.html", "part.js"}
    tab.goto(f"{address}/spring/index.html", wait_until="load")
    assert tab.title() == "one one"
    host.shutdown()
    host.server_close()
    for site, says in (("spring", "one one"), ("fall", ("two two", "one one"))):
        tab.goto(f"{address}/{site}/index.html")
        assert tab.title() in says
    context.close()
