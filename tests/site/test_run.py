"""Run and Edit on the cells of a page, as a reader uses them.

Needs the site with its Python (`make book`) and Chromium; skipped without them, except where CI is
set. `reader`, `first` and `python` are one visit to one page, in all files (conftest.py).
"""

import functools
import gzip
import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from test_run_printed import differs
from test_site import WIDE, Watched, lighten, violations
from visits import (
    FIRST,
    PAGES,
    WithWorker,
    bar,
    forget_note,
    output,
    press,
    settled,
    type_code,
)  # fmt: skip

from checks import guards
from machine import SITE

HEAVIEST = 300_000  # bytes of a page before Python, compressed
ALSO_LOADED = (
    "editor.js", "offline.js", "page.js", "panel.js", "results.js", "running.js", "../sw.js",
)  # fmt: skip


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


HEIGHTS = """(box) => {
  globalThis.heights = [];
  new ResizeObserver(([{ contentRect }]) => heights.push(contentRect.height)).observe(box);
}"""


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
        forget_note(tab, 2)
        output(tab, 2).evaluate(HEIGHTS)
        press(tab, 2, "run")
        settled(tab, 2, "done")
        assert len(set(tab.evaluate("heights"))) == 1, "what is drawn again moves nothing below"


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


def test_a_long_output_scrolls_by_keyboard_too(first, python):
    type_code(first, 2, "for n in range(5000):\n    print(n, 'long ' * 60)")
    press(first, 2, "run")
    settled(first, 2, "done")
    box = output(first, 2).locator(".output")
    assert box.bounding_box()["height"] < 700 and box.get_attribute("tabindex") == "0"
    assert [fault for fault in violations(first) if "scrollable" in fault] == []


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
    texts = {file for file in loads if file.suffix != ".woff2"}  # fonts come once for all pages
    assert sum(compressed(file) for file in texts) <= HEAVIEST
