"""`make lab`: notebooks with theorems and the book's TeX, the reader's own copies."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from carry import lab
from machine import ROOT, new_tab


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """All notebooks, written into an empty folder; nothing is changed in it."""
    folder = tmp_path_factory.mktemp("lab")
    assert lab.write(folder) == []
    return folder


def test_every_page_that_runs_is_a_notebook(written):
    pages = sorted(page.stem for page in filter(lab.is_executed, lab.Book().pages))
    assert sorted(path.stem for path in written.glob("*.ipynb")) == pages
    for path in written.glob("*.ipynb"):
        first, *rest = cells(path)
        assert "".join(first["source"]).startswith("---\nmath:\n"), path.name
        text = "".join("".join(cell["source"]) for cell in rest)
        assert not re.search(r"\{(cite|doc|glue|slider|calculator|get-package)", text), path.name
        page = (ROOT / "chapters" / f"{path.stem}.md").read_text(encoding="utf-8")
        text += "".join(first["source"])
        assert text.count("has a figure with controls") == page.count("{slider} "), path.name
        links = re.findall(r"\]\(([\w-]+)\.ipynb\)", text)
        # notation, errata ... have no code, and so no notebook
        assert all((ROOT / "chapters" / f"{link}.md").exists() for link in links), path.name


def test_what_a_reader_changed_stays_and_the_books_lies_beside(written, tmp_path):
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    assert lab.write(tmp_path) == []
    path = tmp_path / "pure-dp.ipynb"
    new = path.read_text()
    path.write_text("mine")
    assert lab.write(tmp_path) == ["pure-dp.ipynb"] and path.read_text() == "mine"
    assert (tmp_path / "pure-dp.new.ipynb").read_text() == new


def started(folder, log):
    """(address, process) of a JupyterLab that answers; what it printed, where it ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--port={port}", "--no-browser", "--IdentityProvider.token="]
    command = [sys.executable, "-m", "carry.lab", str(folder), *options]
    with log.open("w") as file:
        process = subprocess.Popen(command, cwd=ROOT / "site", stdout=file, stderr=file)
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api").close()
            return f"http://127.0.0.1:{port}", process
        except OSError:
            time.sleep(0.2)
    raise ChildProcessError(f"JupyterLab ended: {log.read_text()[-3000:]}")


@pytest.fixture
def server(tmp_path):
    """JupyterLab on notebooks of its own; with a second try, as the machine is shared."""
    log = tmp_path.with_suffix(".log")
    try:
        address, process = started(tmp_path, log)
    except ChildProcessError as ended:
        print(ended)
        address, process = started(tmp_path, log)
    yield address
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:  # seen once: it did not end
        process.kill()
        process.wait()


def test_theorems_and_formulas_are_drawn(server, browser):
    page = new_tab(browser)
    errors = []
    page.on("console", lambda message: errors.append(message.text))
    page.goto(f"{server}/lab/tree/pure-dp.ipynb")
    page.wait_for_selector(".jp-Notebook aside, .jp-Notebook .proof")
    page.wait_for_selector(".jp-Notebook .katex")
    text = page.inner_text(".jp-Notebook")
    assert "Definition 1" in text and "prf:" not in text
    assert not [error for error in errors if "Undefined control sequence" in error]
    page.context.close()
