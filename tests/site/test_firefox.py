"""The site in Firefox: pages, an answer of an assignment that its Python checks, and search.

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
from test_run import server as served

from machine import FOR_PYTHON

server = served

HEAD = "document.querySelector('h1').textContent"


class Firefox:
    """A Firefox with one tab, which remembers the errors of its pages."""

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
            if answer.get("params", {}).get("level") == "error":
                self.faults.append(answer["params"]["text"])
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, address):
        self.send("browsingContext.navigate", context=self.tab, url=address, wait="complete")

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
        for _ in range(900):
            if found := self.evaluate(asked):
                return found
            time.sleep(0.1)
        raise AssertionError(f"{expression} did not come true")

    def end(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait()


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        pytest.skip("no Firefox on this machine")
    firefox = Firefox(program, str(tmp_path_factory.mktemp("firefox")))
    yield firefox
    firefox.end()


@pytest.mark.parametrize("page", ["intro", "pure-dp", "calculator", "claims"])
def test_a_page_opens_without_an_error(firefox, server, page):
    firefox.faults.clear()
    firefox.open(f"{server.address}/chapters/{page}.html")
    assert firefox.evaluate(HEAD) and firefox.faults == []


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


def test_search(firefox, server):
    firefox.open(f"{server.address}/search.html?q=renyi")
    assert "Rényi" in firefox.wait("document.querySelector('#search-results li a')?.textContent")
