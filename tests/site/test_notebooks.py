"""An executed page is kept, until its code or what it runs on is another one; a failure never."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest

import kernels
import notebooks
from machine import ROOT
from pages.notebook import written_out

PAGE = """---
file_format: mystnb
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A page

A sentence.

```{code-cell} ipython3
1 + 1
```
"""


@pytest.fixture(autouse=True, scope="module")
def _no_process_left():
    """The process that kernels are copies of ends with these tests."""
    yield
    if kernels.COPIES:
        kernels.warm_process(os.getpid()).communicate()
        kernels.warm_process.cache_clear()


@pytest.fixture
def book(tmp_path):
    """A book of one page, with a package and what executes it."""
    (tmp_path / "site").mkdir()
    for name in ("notebooks.py", "kernels.py", "surroundings.py"):
        shutil.copy(ROOT / "site" / name, tmp_path / "site")
    (tmp_path / "dpnotes").mkdir()
    (tmp_path / "dpnotes" / "a.py").write_text("x = 1\n")
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path


def executed(book, capsys, **how):
    """How many pages were executed in a build of now; are they there afterwards?

    In a thread of its own: the browser of other tests leaves its loop of events in this one.
    """
    with notebooks.kept(book, book / "kept", **how) as cache, ThreadPoolExecutor(1) as thread:
        capsys.readouterr()
        thread.submit(notebooks.execute_pages, [book / "page.md"], cache).result()
        count = int(capsys.readouterr().out.split()[0])
        text = written_out((book / "page.md").read_text())
        there = notebooks.has_result(cache, notebooks.read_myst_markdown_notebook(text))
    return count, there


def test_page_is_executed_when_its_code_is_another(book, capsys):
    assert executed(book, capsys) == (1, True)
    assert executed(book, capsys) == (0, True)
    for before, after, due in [
        ("A sentence", "Another one, $x$, and one more", 0),
        ("1 + 1", "1 + 2", 1),
        ("1 + 2", "1 + 1", 0),  # as it was a while ago
        ("1 + 1\n", ":tags: [hide-input]\n1 + 1\n", 1),
    ]:
        page = book / "page.md"
        page.write_text(page.read_text().replace(before, after))
        assert executed(book, capsys) == (due, True), after


def test_page_is_executed_when_what_it_runs_on_is_another(book, capsys, monkeypatch):
    assert executed(book, capsys) == (1, True)
    (book / "dpnotes" / "a.py").write_text("x = 2\n")
    assert executed(book, capsys) == (1, True)
    (book / "dpnotes" / "a.py").rename(book / "dpnotes" / "b.py")
    assert executed(book, capsys) == (1, True)
    (book / "site" / "kernels.py").write_text("")
    assert executed(book, capsys) == (1, True)
    monkeypatch.setattr(notebooks, "installed", lambda: "Python 2, numpy 0")
    assert executed(book, capsys) == (1, True)
    assert executed(book, capsys) == (0, True)
    assert executed(book, capsys, anew=True) == (1, True)


def test_failure_is_never_kept(book, capsys):
    (book / "page.md").write_text(PAGE.replace("1 + 1", "1 / 0"))
    for _ in range(2):
        assert executed(book, capsys) == (1, False)


def test_nothing_is_kept_of_a_run_that_did_not_end_well(book, capsys):
    assert executed(book, capsys) == (1, True)
    with pytest.raises(KeyboardInterrupt), notebooks.kept(book, book / "kept"):
        raise KeyboardInterrupt
    assert executed(book, capsys) == (1, True)
    with notebooks.kept(book, book / "kept"):
        (book / "dpnotes" / "a.py").write_text("x = 3\n")
    assert executed(book, capsys) == (1, True)


def test_cell_without_a_result_is_a_fault(book):
    cells = [nbformat.v4.new_code_cell("1 + 1")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    (book / "out").mkdir()
    nbformat.write(notebook, book / "out" / "page.ipynb")
    with notebooks.kept(book, book / "kept") as cache:
        bundle = notebooks.CacheBundleIn(notebook, "page", data={})
        cache.cache_notebook_bundle(bundle, check_validity=False)
        assert notebooks.complete(book / "out", cache) == [
            "page.ipynb: code cells [1] were not executed"
        ]
