"""What a test needs of this machine: the built site served, and Chromium."""

import functools
import http.server
import importlib.util
import io
import json
import os
import re
import threading
from pathlib import Path

import pytest

from carry.pdf import found_chromium

ROOT = Path(__file__).resolve().parents[1]
SITE = Path(os.environ.get("DPNOTES_SITE", ROOT / "_build" / "html")).resolve()
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
).split()
# milliseconds: no measure of speed, the end of what cannot come; longer on a busy machine
PATIENCE = int(30_000 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
FOR_PYTHON = 10 * PATIENCE  # in the page: it starts, imports and computes
BLANK = "raise NotImplementedError()"  # what a sheet has until a student has written an answer
LOOP = "while True: x = 1"


def unable(why):
    """What a test needs is not on this machine: skipped, and a failure where CI is set."""
    pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)


def need_python_in_pages():
    """Skip where the site was built without the Python that runs in its pages."""
    facts = SITE / "_run" / "runtime.json"
    if not (facts.exists() and json.loads(facts.read_text(encoding="utf-8"))["available"]):
        unable("the site was built without the Python that runs in pages")


def module_at(path):
    """A file of no package as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium, one for each process of the tests."""
    path = found_chromium()
    if not path:
        unable("no Chromium on this machine: the tests in a browser did not run")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        yield chromium
        chromium.close()


def new_tab(browser, **options):
    """A tab in a context of its own, in which nothing is given up early."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    return context.new_page()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A file server that does not write a line for each request."""

    def log_message(self, *args):
        """Says nothing."""


FORMULA, SPAN = b'<span class="katex"', re.compile(rb"<(/?)span\b")


@functools.cache
def without_formulas(path):
    """A page without the insides of its formulas, which are most of its elements."""
    page, kept, place = Path(path).read_bytes(), [], 0
    while (start := page.find(FORMULA, place)) >= 0:
        inside, depth = page.index(b">", start) + 1, 1
        kept.append(page[place:inside])
        for tag in SPAN.finditer(page, inside):
            depth += -1 if tag[1] else 1
            if not depth:
                break
        place = tag.start()
    return b"".join([*kept, page[place:]])


class Light(Quiet):
    """The same server of pages without formulas."""

    def send_head(self):
        path = self.translate_path(self.path)
        if not path.endswith(".html") or not os.path.isfile(path):
            return super().send_head()
        page = without_formulas(path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        return io.BytesIO(page)


def served(handler):
    """The site, served on this machine."""
    if not (SITE / "search.html").exists():
        pytest.fail(f"there is no site in {SITE}: run `make book` first")
    handler = functools.partial(handler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def address():
    """The site without its formulas: what most tests look at is something else."""
    yield from served(Light)


@pytest.fixture(scope="session")
def whole_address():
    """The site as it is."""
    yield from served(Quiet)
