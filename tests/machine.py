"""What a test needs of this machine: the built site served, and Chromium."""

import functools
import http.server
import importlib.util
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from surroundings import found_chromium

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


def page_shell():
    """The module that runs cells in the page, in this process."""
    for name in ("reading", "standins"):
        sys.modules[f"page_{name}"] = module_at(f"site/run/{name}.py")
    return module_at("site/run/shell.py")


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


def served():
    """The site, served on this machine."""
    if not (SITE / "search.html").exists():
        pytest.fail(f"there is no site in {SITE}: run `make book` first")
    handler = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def address():
    """Where the site is."""
    yield from served()
