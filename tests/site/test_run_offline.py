"""Pages, search and Python without the server; versions of the book, and copies on one host."""

import functools
import http.server
import shutil
import threading
import time
import urllib.request

import pytest
from visits import FIRST, WithWorker, output, press, settled, type_code

from machine import ROOT, Quiet, need_python_in_pages, served
from run import offline


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
