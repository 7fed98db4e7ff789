"""Assignments done in the page: written, checked, kept, loaded, and handed in to the real grader.

The scripts run in the real Chromium. This process's Python stands in for that of the page, which
takes long to start. The page's own does the round trip once a week (`make thorough`), and runs a
check of check.py in test_run_printed.py each time.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_site import (
    NARROW,
    SITE,
    SOME_LOOKS,
    WIDE,
    Watched,
    lighten,
    look,
    sticking_out,
    violations,
)

from assignments.grader import leaks, masters, rendering, sandbox, words
from assignments.grader.check import solved
from machine import BLANK, FOR_PYTHON, LOOP, ROOT, module_at, need_python_in_pages, unable

HANDOUTS = ROOT / "chapters" / "assignments" / "downloads"
NAMES = sorted(path.stem for path in (ROOT / "assignments").glob("*.md"))

checker = module_at("site/homework/check.py")


def released(name):
    """The text of the notebook that students are given."""
    return (HANDOUTS / f"{name}.ipynb").read_text(encoding="utf-8")


def page_name(name):
    return f"chapters/assignments/{name}.html"


@pytest.fixture(scope="module")
def master():
    return masters.read(ROOT / "assignments" / "laplace.md")


def answers(master):
    """The cells with the master's answer to every question."""
    given = {c.id: c.source for c in master.student.cells}
    return [c for c in solved(master).cells if c.source != given[c.id]]


@pytest.fixture(scope="module")
def right(master):
    """{id: the master's answer} to every question of one assignment."""
    return {c.id: c.source for c in answers(master)}


WRONG = "def respond(bits, epsilon, rng):\n    print('Grüße', len(bits))\n    return bits\n"


def test_a_solution_that_a_page_carries_is_found(master, tmp_path):
    """That the built site has none is checked in tests/grading."""
    notebook = json.dumps(solved(master)).replace("<", "\\u003c")
    planted = f'<html><script type="application/json" id="homework">{notebook}</script></html>'
    (tmp_path / "laplace.html").write_text(planted)
    found = {question for _, _, question in leaks.find(ROOT / "assignments", [tmp_path])}
    assert {"1a", "2a", "3b"} <= found


# ---- the part that runs in the page's Python ----


def cells(*more):
    helper = {
        "id": masters.HELPER,
        "kind": "given",
        "source": masters.helper(words.Words(), {"f"}).source,
    }
    given = {"id": "cell-1", "kind": "given", "source": "import math\n"}
    test = {"id": "test-1a", "kind": "test", "source": "assert f(2) == 4, 'f squares'\nseen = f(2)"}
    return [helper, given, *({"kind": "code", **cell} for cell in more), test]


@pytest.mark.parametrize(
    "answer, message",
    [
        ("def f(x):\n    return x * x", ""),
        ("%matplotlib inline\ndef f(x):\n    return x * x", ""),
        ("def f(x):\n    return x + 1", "f squares. The last call was f(2); it returned 3."),
        (
            "def f(x):\n    x * x",
            "f squares. The last call was f(2); it returned None. Did you for",
        ),
        (
            "import numpy as np\ndef f(x):\n    return np.full(x, 4.0)",
            "f squares. The last call was f(2); it returned array([4., 4.]).",
        ),
        (f"def f(x):\n    {BLANK}", "not answered yet"),
        ("def f(x):\n    return (x", "this is not Python yet: '(' was never closed, in line 2"),
        (
            "def f(x):\n    return x / 0",
            "raises ZeroDivisionError: division by zero, in line 2: ret",
        ),
        ("def f():\n    return 4", "f squares. It could not be called: f() takes 0 positional"),
        ("f = 4", "f squares. It could not be called: 'int' object is not callable"),
        ("g = 1", "cannot use what your code gives (name 'f' is not defined)"),
        ("def f(x):\n    assert x < 0, 'mine'", "raises AssertionError: mine, in line 2"),
        ("import sys\nsys.exit()", "raises SystemExit, in line 2"),
    ],
)
def test_what_a_check_says(answer, message):
    found = checker.check(cells({"id": "1a", "source": answer}), "test-1a")
    assert found["ok"] == (message == "")
    assert message in found["message"]
    assert "last call" in message or "last call" not in found["message"]


def test_a_check_names_the_other_answer_that_is_missing():
    stub = {"id": "1z", "source": f"def g(x):\n    {BLANK}"}
    own = {"id": "1a", "source": "def f(x):\n    return g(x) ** 2"}
    found = checker.check(cells(stub, own), "test-1a")
    assert found["message"] == "this needs 1z, not answered yet"
    assert found["needs"] == ["1z", "1a"]
    broken = {"id": "1z", "source": "def g(x) return x"}
    assert "answer to 1z failed before" in checker.check(cells(broken, own), "test-1a")["message"]


def test_a_given_cell_that_fails_is_not_blamed_on_the_student():
    given = {"id": "cell-9", "kind": "given", "source": "import no_such_module"}
    found = checker.check(cells(given, {"id": "1a", "source": "f = abs"}), "test-1a")
    assert found["message"].startswith("a cell that everyone is given fails here (ModuleNotFound")


def test_a_plot_is_a_picture_of_its_own_cell():
    draw = "from matplotlib import pyplot as plt\nplt.plot([1, 2])\nprint({!r})\nplt.show()"
    above = cells({"id": "1a", "source": "def f(x):\n    return x * x\n" + draw.format("above")})
    plot = {"id": "1b-plot", "kind": "plot", "source": draw.format("mine") + "\nseen"}
    found = checker.check([*above, plot], "1b-plot")
    assert found["ok"] and found["printed"] == "mine\n"
    assert len(found["pictures"]) == 1 and found["pictures"][0].startswith("iVBOR")
    assert found["needs"] == ["1b-plot"]


# ---- in the browser ----

STAND_IN = """
export class Stopped extends Error {}
export const available = Promise.resolve(true);
let cut = () => {};
export const start = async (onProgress) => onProgress("Loading numpy (3 MB)", 0.5);
export const run = async () => ({ ok: true, outputs: [] });
export function call(name, args) {
  return new Promise((resolve, reject) => {
    cut = () => reject(new Stopped("stopped"));
    if (JSON.stringify(args).includes("while True")) return;
    window.thisPython(name, JSON.stringify(args)).then((answer) => resolve(JSON.parse(answer)));
  });
}
export const stop = async () => cut();
"""
_runner = (ROOT / "site" / "run" / "python.js").read_text(encoding="utf-8")
STAND_IN += _runner[_runner.index("const NETWORK") :]  # how it words what went wrong


@pytest.fixture
def desk(browser, address):
    """A tab of a new reader, in which this process's Python stands in for the page's."""
    with Watched(browser, address) as desk:
        answer = lambda _, arguments: json.dumps(checker.check(*json.loads(arguments)))  # noqa: E731
        desk.context.expose_function("thisPython", answer)
        script = {"body": STAND_IN, "content_type": "text/javascript"}
        desk.context.route("**/_run/python.js", lambda route: route.fulfill(**script))
        yield desk


def begin(desk, name="laplace"):
    tab = desk.open(page_name(name))
    tab.wait_for_selector(".hw-bar")
    return tab


def box(tab, question):
    return tab.locator(f'[id="answer-{question}"]')


def said(tab, question):
    """What is shown below an answer."""
    return tab.locator(f'.hw-answer:has([id="answer-{question}"]) .hw-result').inner_text()


def news(tab):
    return tab.locator(".hw-news").inner_text()


def press(tab, name):
    tab.get_by_role("button", name=name, exact=True).click()


def finish(tab):
    """Wait until no check runs."""
    running = "[...document.querySelectorAll('.hw-button')].some((b) => b.textContent == 'Stop')"
    tab.wait_for_function(f"!{running}", timeout=FOR_PYTHON)


def taken(tab, name):
    """The bytes and the file name of a download."""
    with tab.expect_download() as found:
        press(tab, name)
    return Path(found.value.path()).read_bytes(), found.value.suggested_filename


def load(tab, name, content):
    """Hand a file to the page and wait until it says something or asks."""
    tab.evaluate("document.querySelector('.hw-news').textContent = ''")
    content = content if isinstance(content, bytes) else content.encode()
    file = {"name": name, "mimeType": "application/json", "buffer": content}
    tab.locator("input[type=file]").set_input_files(file)
    answer = "document.querySelector('dialog.hw-dialog, .hw-news p')"
    tab.wait_for_function(answer)


@pytest.fixture
def python(browser, address):
    """A tab with the page's own Python and no hurry; skipped where the site has none."""
    need_python_in_pages()
    with Watched(browser, address, viewport=NARROW, color_scheme="dark") as desk:
        script = (SITE / "_homework" / "tests.js").read_text().replace("LIMIT = 30", "LIMIT = 3000")
        patient = {"body": script, "content_type": "text/javascript"}
        desk.context.route("**/_homework/tests.js", lambda route: route.fulfill(**patient))
        yield desk


@pytest.fixture(params=["desk", pytest.param("python", marks=pytest.mark.thorough)])
def visit(request):
    """A tab with one of the two Pythons."""
    return request.getfixturevalue(request.param)


def test_round_trip_from_the_page_to_the_marks(visit, right, tmp_path):
    """Everything right but 1b; then the real grader marks the file."""
    tab = begin(visit)
    for question, text in right.items():
        box(tab, question).fill(WRONG if question == "1b" else text)
    press(tab, "Check all")
    finish(tab)
    assert "a report is true with probability e/(1+e) = 0.731; yours: 1.000" in said(tab, "1b")
    assert "Grüße 20000" in said(tab, "1b")
    assert "The public tests pass." in said(tab, "2c")
    progress = "6 of 7 questions pass their public tests; texts: 2 of 2"
    assert tab.locator(".hw-progress").inner_text() == progress
    assert news(tab) == "Look again at 1b."

    box(tab, "1c").fill(LOOP)
    press(tab, "Check 1c")
    running = "document.body.textContent.includes('Running the tests')"
    tab.wait_for_function(running, timeout=FOR_PYTHON)
    press(tab, "Stop")
    finish(tab)
    assert "stopped" in said(tab, "1c")
    box(tab, "1c").fill(right["1c"])

    tab.reload()
    tab.wait_for_selector(".hw-bar")
    assert box(tab, "1b").input_value() == WRONG
    assert box(tab, "2a").input_value() == right["2a"]
    assert "yours: 1.000" in said(tab, "1b")
    box(tab, "1a").press("End")
    box(tab, "1a").type(" ")
    file, name = taken(tab, "Download to hand in")
    assert name == "laplace.ipynb"
    assert "Fails its public tests: 1b. Not checked as it is now: 1a, 1c." in news(tab)
    (tmp_path / "in" / "ada").mkdir(parents=True)
    (tmp_path / "in" / "ada" / name).write_bytes(file)
    assert marks(tmp_path, "laplace") == "1a: 2, 1b: 0, 1c: 2, 2b: 3, 2c: 3, 3a: 4, 3b: 4"
    assert "Grüße" not in (tmp_path / "out" / "feedback" / "ada.html").read_text()
    by_hand = (tmp_path / "out" / "by-hand" / "3c.html").read_text()
    plot = re.search(r'src="(pictures/[^"]+)"', by_hand)[1]
    assert (tmp_path / "out" / "by-hand" / plot).read_bytes().startswith(b"\x89PNG")
    assert "Rubric" in by_hand


def marks(folder, name):
    """The points in `grades.csv`, as `make grade` writes it; and no flag was raised."""
    try:
        sandbox.check()
    except sandbox.SandboxError as problem:
        unable(f"grading needs bubblewrap: {problem}")
    command = [sys.executable, "-m", "assignments.grader", "grade", name, folder / "in"]
    command += [folder / "out", "--cell-seconds", 300, "--total-seconds", 900]  # a busy machine
    subprocess.run(list(map(str, command)), cwd=ROOT, check=True, capture_output=True, timeout=900)
    head, row = (folder / "out" / "grades.csv").read_text().splitlines()
    grades = dict(zip(head.split(","), row.split(","), strict=True))
    result = json.loads(next((folder / "out" / "results").glob("*.json")).read_text())
    assert result.get("flags", []) == []
    tested = [q for q in grades if re.fullmatch(r"[0-9][a-z]", q) and grades[q]]
    return ", ".join(f"{q}: {grades[q]}" for q in tested)


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_to_hand_in_is_the_released_one_but_for_answers(desk, name):
    tab = begin(desk, name)
    file, _ = taken(tab, "Download to hand in")
    assert file == released(name).encode()
    assert "Not answered: 1a, " in news(tab) and "as it is." not in news(tab)
    given = json.loads(released(name))["cells"]
    changed = answers(masters.read(ROOT / "assignments" / f"{name}.md"))
    odd = "\ufeff# Größe 🎲 \u2028 </script> \\ 'x' \t\n"
    tab.evaluate(
        """(texts) => Object.entries(texts).forEach(([id, text]) => {
          const area = document.getElementById(`answer-${id}`);
          area.value = text;
          area.dispatchEvent(new Event("input", { bubbles: true }));
        })""",
        {cell.id: cell.source + odd for cell in changed},
    )
    file, _ = taken(tab, "Download to hand in")
    assert b"\r" not in file
    notebook = json.loads(file)
    assert len(changed) == tab.locator("textarea").count()
    for cell in changed:
        (place,) = [n for n, c in enumerate(given) if c["id"] == cell.id]
        assert "".join(notebook["cells"][place]["source"]) == cell.source + odd
        notebook["cells"][place]["source"] = given[place]["source"]
    assert json.dumps(notebook, indent=1, ensure_ascii=False) + "\n" == released(name)


MARKDOWN = r"""# Head
line with \$5, `$x$`, _em_ and $a$
- one $b$

It costs $5 and

not 6$ [no](link)
```
$y$
```
$$
c + 1
$$"""
FORMULAS_AS_TEX = """(box) => {
  const copy = box.cloneNode(true);
  for (const formula of copy.querySelectorAll(".math"))
    formula.textContent = formula.querySelector("annotation").textContent;
  return copy.innerHTML;
}"""


def test_a_text_has_a_preview_with_formulas(desk):
    tab = begin(desk)
    box(tab, "2a").fill("**So** $\\frac12 < 1$, <b>not</b> `f(x)`.\n\n- one\n- two")
    press(tab, "Preview 2a")
    shown = tab.locator(".hw-result[data-state=preview]")
    shown.locator(".katex-html").wait_for()
    assert [shown.locator(tag).inner_text() for tag in ("strong", "code")] == ["So", "f(x)"]
    assert shown.locator("li").count() == 2 and shown.locator("b").count() == 0
    press(tab, "Preview 2a")
    shown.wait_for(state="detached")
    box(tab, "2a").fill(MARKDOWN)
    press(tab, "Preview 2a")
    shown.locator("h1").wait_for()
    formulas = shown.evaluate(FORMULAS_AS_TEX)
    seen, meant = (" ".join(html.split()) for html in (formulas, rendering.markdown(MARKDOWN)))
    assert re.sub(r">\s+<", "><", seen) == re.sub(r">\s+<", "><", meant).strip()
    assert "outside of dollar signs" not in shown.inner_text()
    middle = "(box) => { const {left, right} = box.getBoundingClientRect(); return left + right }"
    formula, whole = (shown.locator(one).last for one in (".katex-display .katex-html", ".block"))
    assert abs(formula.evaluate(middle) - whole.evaluate(middle)) < 4, "a formula is not centred"
    box(tab, "2a").press_sequentially("!")
    assert "has changed since" in shown.inner_text()
    box(tab, "2a").fill("$$\\begin{matrix}1\\end{matrix}$$\n\\begin{align}\na\n\\end{align}")
    press(tab, "Preview 2a")
    shown.get_by_text("outside of dollar signs").wait_for()


def test_a_preview_without_what_typesets_formulas_says_so(desk):
    desk.context.route("**/katex.min.js", lambda route: route.fulfill(status=204))
    tab = begin(desk)
    box(tab, "2a").fill("$x$")
    press(tab, "Preview 2a")
    shown = tab.locator(".hw-result[data-state=preview]")
    shown.get_by_text("could not be loaded").wait_for()
    assert "x" in shown.inner_text()


def test_saved_and_loaded_with_a_question_before_anything_is_lost(desk, right):
    tab = begin(desk)
    box(tab, "1a").fill(right["1a"])
    box(tab, "2a").fill("Satz 1.\nSatz 2.")
    file, name = taken(tab, "Save your answers to a file")
    assert name == "laplace-answers.json"
    tab.evaluate("localStorage.clear()")
    tab = begin(desk)
    stub = box(tab, "1a").input_value()
    assert "smallest_epsilon" in stub and "log" not in stub
    box(tab, "1a").fill("mine")
    box(tab, "1b").fill("also mine")
    load(tab, name, file.replace(b"\\n", b"\\r\\n"))
    assert "other answers to 1a than you have here" in tab.locator("dialog.hw-dialog").inner_text()
    press(tab, "Keep mine")
    assert news(tab) == "Nothing was loaded."
    assert box(tab, "1a").input_value() == "mine" and box(tab, "2a").input_value() == ""
    load(tab, name, file.replace(b"\\n", b"\\r\\n"))
    press(tab, "Replace")
    tab.wait_for_function("document.querySelector('.hw-news').textContent.startsWith('Loaded')")
    assert "Loaded from “laplace-answers.json”: 1a, 2a." in news(tab)
    kept = {question: box(tab, question).input_value() for question in ("1a", "1b", "2a")}
    assert kept == {"1a": right["1a"], "1b": "also mine", "2a": "Satz 1.\nSatz 2."}
    press(tab, "Undo")
    assert box(tab, "1a").input_value() == "mine" and box(tab, "2a").input_value() == ""


def test_a_notebook_from_jupyter_is_taken_over(desk, right):
    """Split cells, lists and strings, Windows newlines, outputs, a cell of one's own."""
    tab = begin(desk)
    notebook = json.loads(released("laplace"))
    for place, cell in reversed(list(enumerate(notebook["cells"]))):
        cell.pop("id")
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "1a":
            _first, _second = right["1a"].split("\n", 1)
            cell.update(
                source="x = 1\r\ny = 2",
                outputs=[{"output_type": "stream", "name": "stdout", "text": "1"}],
            )
            notebook["cells"].insert(
                place + 1, {**cell, "source": right["1a"].splitlines(keepends=True)}
            )
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "2a":
            cell["source"] = ["Because.\r\n", "Therefore."]
            own = {"cell_type": "code", "metadata": {}, "outputs": [], "source": "helper = 1"}
            notebook["cells"].insert(place, own)
    load(tab, "laplace (1).ipynb", "\ufeff" + json.dumps(notebook))
    assert "of your own, outside of the answers, was not taken over (“helper = 1”)" in news(tab)
    assert box(tab, "1a").input_value() == "x = 1\ny = 2\n\n" + right["1a"]
    assert box(tab, "2a").input_value() == "Because.\nTherefore."
    file, _ = taken(tab, "Download to hand in")
    load(tab, "laplace.ipynb", file)
    assert "holds no answer that is not here already" in news(tab)


def stripped(text):
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    return json.dumps(notebook)


BROKEN = [
    (lambda: released("gaussian"), "a notebook of something else (“Assignment 2"),
    (lambda: released("laplace")[:5000], "or it is damaged"),
    (lambda: stripped(released("laplace")), "lost the marks that say which question"),
    (lambda: saved("erm", {"1b": "x"}), "answers to the assignment “erm”"),
    (lambda: saved("laplace", {"1a": 3}), "answers are not text"),
    (lambda: '{"cells": [null, 3, {"source": 5}]}', "a notebook of something else"),
    (lambda: "[]", "holds no answers"),
    (lambda: "null", "holds no answers"),
    (lambda: b"\x89PNG\r\n\x1a\n\xff\xfe", "can’t be read"),
    (lambda: b"", "can’t be read"),
]


def saved(assignment, answers):
    return json.dumps({"format": "dpnotes answers", "assignment": assignment, "answers": answers})


def test_foreign_and_broken_files_are_refused_and_nothing_is_lost(desk):
    tab = begin(desk)
    before = tab.locator("textarea").evaluate_all("boxes => boxes.map((box) => box.value)")
    box(tab, "1a").fill("mine")
    for file, reason in BROKEN:
        load(tab, "homework", file())
        assert reason in news(tab) and "Your answers are as they were." in news(tab)
        now = tab.locator("textarea").evaluate_all("boxes => boxes.map((box) => box.value)")
        assert now == ["mine", *before[1:]]


def test_reset_can_be_undone_and_results_know_when_they_are_old(desk, right):
    tab = begin(desk)
    stub = box(tab, "2b").input_value()
    box(tab, "2b").fill(right["2b"])
    box(tab, "2c").fill(right["2c"])
    press(tab, "Check 2c")
    finish(tab)
    assert "pass" in said(tab, "2c")
    press(tab, "Reset the answer to 2b")
    assert box(tab, "2b").input_value() == stub
    assert said(tab, "2c") == "Changed since it was checked."  # it calls 2b
    assert tab.locator(".hw-progress").inner_text().startswith("0 of 7")
    press(tab, "Check 2c")
    finish(tab)
    assert "this needs 2b, not answered yet" in said(tab, "2c")
    press(tab, "Reset the answer to 2b")
    assert box(tab, "2b").input_value() == right["2b"]
    box(tab, "1a").fill(f"def smallest_epsilon(p, q):\n    {LOOP}")
    press(tab, "Check 1a")
    press(tab, "Check 2c")
    assert "The check of 1a is still running" in said(tab, "2c")
    press(tab, "Stop")
    finish(tab)
    assert "stopped" in said(tab, "1a")


@pytest.mark.parametrize(
    ("away", "hint"),
    [("false", ""), ("true", "; without network, only what was loaded here before can be used")],
)
def test_python_that_does_not_come_is_not_the_answers_fault(desk, away, hint):
    failing = f"throw Object.assign(new Error('no pandas'), {{ away: {away} }});"
    broken = STAND_IN.replace("call(name, args) {", f"call(name, args) {{ {failing}")
    script = {"body": broken, "content_type": "text/javascript"}
    desk.tab.route("**/_run/python.js", lambda route: route.fulfill(**script))
    tab = begin(desk)
    box(tab, "1a").fill("x = 1")
    press(tab, "Check 1a")
    finish(tab)
    said_now = said(tab, "1a")
    assert said_now == f"Not checked: no pandas{hint}. Your answer is kept."
    tab.reload()
    tab.wait_for_selector(".hw-bar")
    assert box(tab, "1a").input_value() == "x = 1" and said(tab, "1a") == ""


def test_a_check_ends_by_itself(desk):
    script = (SITE / "_homework" / "tests.js").read_text().replace("LIMIT = 30", "LIMIT = 0.01")
    quick = {"body": script, "content_type": "text/javascript"}
    desk.context.route("**/_homework/tests.js", lambda route: route.fulfill(**quick))
    tab = begin(desk)
    box(tab, "1a").fill(LOOP)
    press(tab, "Check 1a")
    finish(tab)
    assert "is there a loop that does not end?" in said(tab, "1a")


def test_an_earlier_version_of_the_assignment_and_a_second_tab(desk):
    tab = begin(desk)
    old = {"answers": {"1a": "old answer", "2a": "old text"}, "at": 10**12}
    older = {"answers": {"1a": "older answer"}, "at": 10**11}
    for version, kept in (("0", older), ("1", old), ("2", older)):
        keep = "([key, old]) => localStorage.setItem(key, JSON.stringify(old))"
        tab.evaluate(keep, [f"dpnotes-homework/laplace/{version}", kept])
    tab.reload()
    tab.wait_for_selector(".hw-bar")
    assert re.search(r"an earlier version of this assignment, last on \S*2001", news(tab))
    press(tab, "Take them over")
    assert box(tab, "1a").input_value() == "old answer"
    load(tab, "old.json", saved("laplace", {"1c": "f = abs", "9z": "gone"}))
    assert "They were written for another version" in news(tab)
    assert "no question for the answers 9z" in news(tab)
    assert box(tab, "1c").input_value() == "f = abs"
    other = desk.context.new_page()
    other.goto(f"{desk.address}/{page_name('laplace')}")
    other.wait_for_selector(".hw-bar")
    box(other, "1b").fill("from the other tab")
    tab.wait_for_function("document.getElementById('answer-1b').value == 'from the other tab'")
    assert box(tab, "1a").input_value() == "old answer"


def test_a_browser_that_keeps_nothing_says_so(desk):
    refuse = "{ if (key.startsWith('dpnotes-homework')) throw new Error('full') }"
    desk.context.add_init_script(f"Storage.prototype.setItem = (key) => {refuse}")
    tab = begin(desk)
    box(tab, "1a").fill("mine")
    tab.wait_for_function("document.querySelector('.hw-news').textContent")
    assert "does not keep your answers: save them" in news(tab)


def test_the_editor_indents_and_lets_go(desk):
    tab = begin(desk)
    area = box(tab, "1a")
    area.fill("")
    tab.keyboard.type("if x:\ny = 1\nz = 2")
    assert area.input_value() == "if x:\n    y = 1\n    z = 2"
    tab.keyboard.press("Shift+Tab")
    assert area.input_value() == "if x:\n    y = 1\nz = 2"
    tab.keyboard.press("Control+a")
    tab.keyboard.press("Tab")
    assert area.input_value() == "    if x:\n        y = 1\n    z = 2"
    tab.keyboard.press("Control+z")
    assert area.input_value() == "if x:\n    y = 1\nz = 2"
    tab.keyboard.press("Escape")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Check 1a"
    assert area.input_value() == "if x:\n    y = 1\nz = 2"
    box(tab, "2a").focus()
    tab.keyboard.press("Tab")  # a text is no program: Tab leaves it
    assert tab.evaluate("document.activeElement.textContent") == "Preview 2a"


@pytest.mark.parametrize("looks", SOME_LOOKS)
def test_accessible_with_results_shown_light_and_dark(desk, right, looks):
    """On a phone in light colours and on a screen in dark ones; the other ways once a week."""
    tab = begin(desk)
    box(tab, "1a").fill(right["1a"])
    box(tab, "1b").fill(WRONG)
    box(tab, "3c-plot").fill("plt.plot([1, 2])\nplt.show()")
    press(tab, "Check all")
    finish(tab)
    assert "Drawn." in said(tab, "3c-plot")
    for size in (WIDE, NARROW):
        tab.set_viewport_size(size)
        assert sticking_out(tab) == []
    lighten(tab)
    for size, mode in looks:
        where = look(tab, size, mode)
        assert violations(tab) == [], where
    load(tab, "answers.json", saved("laplace", {"1a": "x"}))
    assert violations(tab) == []
    press(tab, "Keep mine")


@pytest.mark.parametrize("missing", ["javascript", "python"])
def test_without_javascript_or_python_the_page_is_as_it_is(browser, address, missing):
    with Watched(browser, address, java_script_enabled=missing != "javascript") as plain:
        facts = {"json": {"available": False}}
        plain.context.route("**/_run/runtime.json", lambda route: route.fulfill(**facts))
        tab = plain.open(page_name("laplace"))
        if missing == "python":
            assert not tab.evaluate("import('../../_run/python.js').then((it) => it.available)")
        assert tab.locator("textarea, .hw-bar").count() == 0
        assert tab.get_by_text(BLANK).last.is_visible()
        assert tab.get_by_text("Your answer here.").last.is_visible()
