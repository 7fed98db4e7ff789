"""Python in the page: it is loaded, stopped, left, breaks and is had again."""

import functools
import http.server
import re
import threading
import time

from visits import FIRST, WithWorker, bar, press, settled, type_code, works

from machine import FOR_PYTHON, LOOP, SITE, Quiet, need_python_in_pages


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


def test_a_python_that_broke_is_replaced(browser, server):
    """What its side answers is no JSON: as after a session without memory. In its own visit:
    that of others may have run short of memory before."""
    with WithWorker(browser, server.address) as other:
        tab = other.open(FIRST)
        tab.evaluate("import('../_run/python.js').then((python) => { window.python = python })")
        for before, why in (("1", "broke down"), ("raise MemoryError", "ran out of memory")):
            works(tab, before)
            code = "import page_shell; page_shell.json.dumps = lambda *more: chr(0)"
            said = tab.evaluate("(code) => python.run(code).catch((error) => error.message)", code)
            assert why in said and ("JSON" in said) == (before == "1")
            assert tab.evaluate("python.state()") == "off" and works(tab, "1 + 1")


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


def test_breakdown_between_two_runs_is_noticed(python):
    planted = "import js; js.eval('setTimeout(() => { throw new Error(\"planted\") }, 0)')"
    python.tab.evaluate("(code) => python.run(code).catch(() => {})", planted)
    python.tab.wait_for_function("python.state() === 'off'")
