"""Where the browser denies storage: in a frame of a course system, or with site data blocked.

The frame stands on a page of another site, in a Chromium whose setting blocks third-party storage;
the other setting blocks it everywhere. All works but what must be kept, and that is said.
"""

import functools
import http.server
import json
import re
import threading

import pytest
from test_site import FIRST, NARROW, WIDE

from carry.pdf import found_chromium
from machine import FLAGS, FOR_PYTHON, LOOP, PATIENCE, Quiet, need_python_in_pages, unable

SETTINGS = {
    "frame": {"profile": {"cookie_controls_mode": 1, "block_third_party_cookies": True}},
    "blocked": {"profile": {"default_content_setting_values": {"cookies": 2}}},
}
FRAME = """<!doctype html><title>Course</title><link rel="icon" href="data:,">
<iframe title="Book" src="{}" style="width: {}px; height: 700px; border: 0"></iframe>"""


class Place:
    """Where the book is read: a tab, or a frame in it."""

    def __init__(self, context, kind, book, host):
        self.tab, self.kind, self.book, self.host = context.pages[0], kind, book, host
        self.faults = []
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))

    def open(self, name, size=WIDE):
        address = f"{self.book}/{name}"
        self.faults.clear()
        self.tab.set_viewport_size(size)
        if self.kind == "blocked":
            self.tab.goto(address)
            return self.tab.main_frame
        course = f"{len(list(self.host.folder.iterdir()))}.html"  # a new one each time: no cache
        text = FRAME.format(address, size["width"] - 20)
        (self.host.folder / course).write_text(text, encoding="utf-8")
        self.tab.goto(f"{self.host.address}/{course}")
        self.tab.frames[1].wait_for_load_state("load")
        return self.tab.frames[1]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A site of its own: the same machine by its other name."""
    folder = tmp_path_factory.mktemp("course")
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("localhost", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.folder, server.address = folder, f"http://localhost:{server.server_port}"
        yield server
        server.shutdown()


@pytest.fixture(scope="module", params=SETTINGS)
def place(request, browser, address, host, tmp_path_factory):
    """A reader with this setting; `browser` has started the driver, and says if there is none."""
    if not found_chromium():
        unable("no Chromium on this machine")
    profile = tmp_path_factory.mktemp("profile")
    (profile / "Default").mkdir()
    settings = json.dumps(SETTINGS[request.param])
    (profile / "Default" / "Preferences").write_text(settings, encoding="utf-8")
    context = browser.browser_type.launch_persistent_context(
        str(profile), executable_path=found_chromium(), args=FLAGS, timeout=PATIENCE
    )
    context.set_default_timeout(FOR_PYTHON)
    yield Place(context, request.param, address, host)
    context.close()


def test_storage_is_denied(place):
    """Else nothing here says anything."""
    page = place.open(FIRST)
    assert page.evaluate("localStorage.ends && sessionStorage.ends") is True
    assert page.evaluate("Object.getOwnPropertyDescriptor(window, 'localStorage').get") is None


def test_a_page_is_read_and_its_theme_is_chosen(place):
    page = place.open(FIRST)
    assert "Differential" in page.locator("h1").first.inner_text()
    switch = page.locator(".theme-switch-button:visible").first
    modes = set()
    for _ in range(3):
        switch.click()
        modes.add(page.evaluate("document.documentElement.dataset.mode"))
    assert modes == {"light", "dark", "auto"}
    assert place.faults == []


def test_the_menu_opens_on_a_phone(place):
    page = place.open(FIRST, NARROW)
    link = page.locator("dialog a[href*='pure-dp']")
    assert link.count() == 0
    page.locator(".primary-toggle").first.click()
    link.first.wait_for()
    assert link.first.bounding_box()["x"] >= 0 and place.faults == []


def test_search_answers(place):
    page = place.open("search.html?q=epsilon")
    page.locator("#search-results li a").first.wait_for()
    assert place.faults == []


def test_a_cell_runs_and_is_not_said_to_be_kept(place):
    need_python_in_pages()
    page = place.open(FIRST)
    page.locator('[aria-label="Edit cell 2"]').click()
    page.get_by_label("Code of cell 2").fill("6 * 7")
    bar = page.locator('.run-bar:has([aria-label="Run cell 2"])')
    bar.get_by_text("This browser keeps nothing").wait_for()
    bar.locator('[data-do="run"]').click()
    bar.get_by_text("done in").wait_for()
    assert "42" in page.locator(".run-output").inner_text()
    assert place.faults == []


def test_an_answer_is_checked_and_not_said_to_be_kept(place):
    need_python_in_pages()
    page = place.open("chapters/assignments/laplace.html")
    page.locator("#answer-1a").fill("def smallest_epsilon(p, q):\n    return 1.0")
    page.get_by_text("This browser does not keep your answers").first.wait_for()
    check = page.get_by_role("button", name="Check 1a")
    check.click()
    page.locator(".hw-result", has_text="✗").wait_for()
    page.locator("#answer-1a").fill(f"def smallest_epsilon(p, q):\n    {LOOP}")
    check.click()
    page.get_by_role("button", name="Stop", exact=True).click()
    page.locator(".hw-result", has_text="Not checked: stopped").wait_for()
    assert "is kept" not in page.locator(".hw-answer").first.inner_text()
    assert place.faults == []


def test_the_calculator_answers(place):
    need_python_in_pages()
    page = place.open("chapters/calculator.html")
    page.locator("[name=steps]").fill("321")
    page.get_by_role("button", name="Compute").click()
    page.locator(".calculator-number", has_text=re.compile(r"ε = \d")).wait_for()
    assert place.faults == []
