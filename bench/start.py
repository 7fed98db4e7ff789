"""From Run to the first result in the page: the first page of a visit, and the next one.

    .venv/bin/python bench/start.py            beside the same site without what makes it quick:
                                               libraries as source, and a worker for each page
    .venv/bin/python bench/start.py FOLDER     beside another built site

Both are opened in turn, each time in a new profile of the browser. They come from this machine, so
that nothing is measured of a network. Medians in seconds, and their ratio.
"""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "site")]  # `run` is not bench/run.py here

import machine  # noqa: E402
from carry import pdf  # noqa: E402
from machine import SITE  # noqa: E402
from run import bytecode, runtime  # noqa: E402

PAGES, ROUNDS, READING = ("intro", "pure-dp"), 3, 8  # seconds between two pages
RESULT = ".run-output .output, .run-note:has-text('no output')"


def plain(folder):
    """The built site, with Python as it is fetched."""
    for path in SITE.iterdir():
        if path.name not in ("_run", "sw.js"):
            (folder / path.name).symlink_to(path)
    shutil.copytree(SITE / "_run", folder / "_run", ignore=shutil.ignore_patterns("pyodide"))
    bytecode.write = lambda sources, to, *_: {path: Path(shutil.copy(path, to)) for path in sources}
    runtime.install(folder, runtime.prepare())
    return folder


def visit(browser, address, alone):
    """Seconds to the first result on each page."""
    tab, found = machine.new_tab(browser), []
    if alone:
        tab.add_init_script("delete window.SharedWorker")
    for page in PAGES:
        tab.goto(f"{address}/chapters/{page}.html")
        tab.locator('.run-bar [data-do="run"]').first.click()
        began = time.perf_counter()
        tab.locator(RESULT).first.wait_for()
        found.append(time.perf_counter() - began)
        time.sleep(READING)
    tab.context.close()
    return found


with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
    other = Path(sys.argv[1]).resolve() if sys.argv[1:] else plain(Path(scratch))
    servers, sites = [], []
    for machine.SITE, alone in ((SITE, False), (other, not sys.argv[1:])):
        servers.append(machine.served(machine.Quiet))
        sites.append((next(servers[-1]), alone))
    browser = playwright.chromium.launch(executable_path=pdf.found_chromium(), args=machine.FLAGS)
    rounds = [[visit(browser, *site) for site in sites] for _ in range(ROUNDS)]
    browser.close()
for place, name in enumerate(("first page", "next page")):
    ours, theirs = (statistics.median(one[site][place] for one in rounds) for site in (0, 1))
    print(f"{name:<11}{ours:6.2f} s, other {theirs:6.2f} s, ratio {ours / theirs:.2f}", flush=True)
