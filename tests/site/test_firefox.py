"""The site in Firefox: pages, Run, Stop, Back, homework, search, and all that without the server.

Firefox speaks WebDriver BiDi over a socket; nothing else is needed to drive it. Skipped where it
is not installed. Its shared workers end with their page, so each page starts a Python of its own.
"""

import json
import re
import shutil
import subprocess
import time
from itertools import count
from pathlib import Path

import pytest
import websocket

import machine
from machine import FOR_PYTHON, LOOP, need_python_in_pages

HEAD = "document.querySelector('h1').textContent"
INCOMPLETE = (
    "document.querySelectorAll(':is(mfrac, msub, msup, munder, mover, mroot)"
    ":not(:has(> :nth-child(2):last-child)), :is(msubsup, munderover)"
    ":not(:has(> :nth-child(3):last-child))').length"
)


class Firefox:
    """A Firefox with one tab, which remembers the errors of its page."""

    def __init__(self, program, folder):
        command = [program, "--headless", "--no-remote", "--remote-debugging-port", "0"]
        said = Path(folder) / "said.txt"  # a pipe that nobody reads would stop it when it is full
        with said.open("w") as stream:
            self.process = subprocess.Popen([*command, "--profile", folder], stderr=stream)
        while not (found := re.search(r"ws://\S+", said.read_text())):
            assert self.process.poll() is None, said.read_text()
            time.sleep(0.1)
        address = found[0]
        self.faults, self.numbers = [], count(1)
        self.socket = websocket.create_connection(
            f"{address}/session", suppress_origin=True, timeout=FOR_PYTHON / 1000
        )
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded"])
        self.tab = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method, **params):
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while (answer := json.loads(self.socket.recv())).get("id") != number:
            said = answer.get("params", {})
            if said.get("level") == "error" and said["source"].get("context") == self.tab:
                self.faults.append(said["text"])
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, address):
        self.send("browsingContext.navigate", context=self.tab, url=address, wait="complete")

    def open_alone(self, address):
        """In a new tab: what a page that was left still asked for is told as an error, later."""
        left, self.tab = self.tab, self.send("browsingContext.create", type="tab")["context"]
        self.send("browsingContext.close", context=left)
        self.faults.clear()
        self.open(address)

    def evaluate(self, expression):
        code = f"(async () => JSON.stringify((await ({expression})) ?? null))()"
        done = self.send(
            "script.evaluate", expression=code, target={"context": self.tab}, awaitPromise=True
        )
        assert done["type"] == "success", done["exceptionDetails"]["text"]
        return json.loads(done["result"]["value"])

    def wait(self, expression):
        """Until it is true, what it is. Asked again and again from outside: a promise in the page
        would be lost with an error of the expression."""
        asked = f"(() => {{ try {{ return {expression}; }} catch {{ return null; }} }})()"
        for _ in range(FOR_PYTHON // 100):
            if found := self.evaluate(asked):
                return found
            time.sleep(0.1)
        raise AssertionError(f"{expression} did not come true")

    def end(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()


def started(folder):
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        pytest.skip("no Firefox on this machine")
    return Firefox(program, str(folder))


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    firefox = started(tmp_path_factory.mktemp("firefox"))
    yield firefox
    firefox.end()


@pytest.mark.parametrize("page", ["intro", "pure-dp", "calculator", "claims"])
def test_a_page_opens_without_an_error(firefox, server, page):
    firefox.open_alone(f"{server.address}/chapters/{page}.html")
    assert firefox.evaluate(HEAD) and firefox.evaluate(INCOMPLETE) == 0
    # on a busy machine it looks at a fraction or a power before the rest of it has come
    assert [fault for fault in firefox.faults if "number of children for <m" not in fault] == []


def bar(number):
    return f"document.querySelector('[aria-label=\"Run cell {number}\"]').parentElement"


def shown(number):
    label = f"Output of your run of cell {number}"
    return f"document.querySelector('[aria-label=\"{label}\"]').textContent"


def run(firefox, number, code=None):
    """Press Run of a cell, with this code in it, as soon as its buttons can be seen."""
    firefox.wait("document.documentElement.dataset.run === 'on'")
    if code is not None:
        area = f"document.querySelector('[aria-label=\"Code of cell {number}\"]')"
        firefox.evaluate(f"void {bar(number)}.querySelector('[data-do=edit]').click()")
        firefox.wait(f"!!{area}")
        firefox.evaluate(f"void ({area}.value = {json.dumps(code)})")
    firefox.evaluate(f"void {bar(number)}.querySelector('[data-do=run]').click()")


def settled(firefox, number):
    """What the note says when nothing runs any more."""
    note = f"{bar(number)}.querySelector('.run-note').textContent"
    return firefox.wait(f"/done|fail|stop|reload/i.test({note}) && {note}")


def test_run_stop_and_back(firefox, server):
    """A page that is left keeps what it shows, and no Python."""
    firefox.open(f"{server.address}/chapters/calculator.html")  # left while its Python starts
    firefox.open(f"{server.address}/chapters/intro.html")
    run(firefox, 2)
    assert "done in" in settled(firefox, 2)
    assert "2.3851" in firefox.evaluate(shown(2))
    run(firefox, 2, LOOP)
    firefox.wait(f"/^running …/.test({bar(2)}.querySelector('.run-note').textContent)")
    firefox.evaluate("void document.querySelector('.run-panel [data-do=stop]').click()")
    assert "stopped" in settled(firefox, 2)
    run(firefox, 2, "6 * 7")
    assert "done in" in settled(firefox, 2)
    assert "42" in firefox.evaluate(shown(2))
    firefox.open(f"{server.address}/chapters/claims.html")
    firefox.send("browsingContext.traverseHistory", context=firefox.tab, delta=-1)
    assert "variables are gone" in firefox.wait(f"/42/.test({shown(2)}) && {shown(2)}")

    def realms():
        found = firefox.send("script.getRealms", context=firefox.tab)["realms"]
        return {realm["type"] for realm in found}

    for _ in range(FOR_PYTHON // 100):
        if "dedicated-worker" not in realms():
            return  # a busy machine ends it a moment later
        time.sleep(0.1)
    raise AssertionError("the page that was left still has a Python")


def test_a_cell_runs_where_storage_is_denied(server, tmp_path):
    (tmp_path / "user.js").write_text('user_pref("network.cookie.cookieBehavior", 2);\n')
    firefox = started(tmp_path)
    firefox.open(f"{server.address}/chapters/intro.html")
    assert firefox.evaluate("localStorage.ends && sessionStorage.ends") is True
    run(firefox, 2, "6 * 7")
    assert "done in" in settled(firefox, 2)
    assert "42" in firefox.evaluate(shown(2)) and firefox.faults == []
    firefox.end()


def test_an_answer_of_an_assignment_is_checked(firefox, server):
    firefox.open(f"{server.address}/chapters/assignments/laplace.html")
    area = "document.getElementById('answer-1a')"
    firefox.wait(f"!!{area}")
    write = f"{area}.value = 'def smallest_epsilon(p, q):\\n    return 1.0'"
    firefox.evaluate(f"void ({write}, {area}.dispatchEvent(new Event('input', {{bubbles: true}})))")
    box = f"{area}.closest('.hw-answer')"
    press = f"[...{box}.querySelectorAll('button')].find((one) => one.textContent === 'Check 1a')"
    firefox.evaluate(f"void {press}.click()")
    said = f"{box}.querySelector('.hw-result').textContent"
    assert firefox.wait(f"/✗/.test({said}) && {said}")


def test_search_and_all_without_the_server(tmp_path):
    """With a server and a Firefox of its own: other tests need theirs, in any order."""
    need_python_in_pages()
    firefox, serving = started(tmp_path), machine.served()
    address = next(serving)
    firefox.open(f"{address}/search.html?q=renyi")
    found = "document.querySelector('#search-results li a')?.textContent"
    assert "Rényi" in firefox.wait(found)
    kept = """(async () => { for (const name of await caches.keys()) {
      const keys = (await (await caches.open(name)).keys()).map((key) => key.url);
      if (keys.some((url) => url.includes("texts.json"))) return true; }
      return new Promise((done) => setTimeout(done, 300, false)); })()"""
    firefox.open(f"{address}/chapters/intro.html")
    run(firefox, 2, "6 * 7")
    assert "done in" in settled(firefox, 2)  # then the book is kept
    assert any(firefox.evaluate(kept) for _ in range(FOR_PYTHON // 300)), "the book was not kept"
    next(serving, None)
    firefox.open(f"{address}/chapters/intro.html")
    assert "Differential" in firefox.evaluate(HEAD)
    run(firefox, 2, "6 * 7")
    assert "done in" in settled(firefox, 2)
    firefox.open(f"{address}/search.html?q=gaussian")
    assert firefox.wait(found)
    firefox.end()
