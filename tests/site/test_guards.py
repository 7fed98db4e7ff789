"""Each guard of the site, and the strict build itself, is seen to refuse a planted fault."""

import shutil
import signal
import subprocess
import sys
import urllib.request

import pytest

import ready
from checks import guards
from machine import ROOT
from pages import katex_math

CLEAN = """<!DOCTYPE html>
<html lang="en"><head><title>Page</title>
<link rel="stylesheet" href="_static/a.css"><script src="_static/a.js"></script></head>
<body><h1 id="top">Title</h1>
<p>A <a href="https://example.org/">link abroad</a>, <a href="#top">one here</a>, a formula
<span class="katex"><annotation>\\frac{1}{2}</annotation></span>, code <code>$HOME</code>.</p>
<figure><svg role="img" aria-label="A curve"><use href="#top"/></svg></figure>
<img src="_static/a.png" alt="A dot"></body></html>"""


@pytest.fixture
def site(tmp_path):
    """A site of one page without a fault."""
    (tmp_path / "_static").mkdir()
    for name, text in {"a.css": "p{color:red}", "a.js": "let a = 1;", "a.png": ""}.items():
        (tmp_path / "_static" / name).write_text(text)
    (tmp_path / "page.html").write_text(CLEAN)
    return tmp_path


def with_planted(site, fault):
    """The faults found after `fault` is put into the page."""
    (site / "page.html").write_text(CLEAN.replace("</h1>", f"</h1>{fault}"))
    return guards.check_site(site)


def test_clean_page_passes(site):
    assert guards.check_site(site) == []


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ('<script src="https://cdn.example/a.js"></script>', "loads https://cdn.example"),
        ('<link rel="stylesheet" href="//fonts.example/a.css">', "loads //fonts.example"),
        ('<link rel="preconnect" href="https://fonts.example">', "loads https://fonts.example"),
        ('<img src="https://cdn.example/a.png" alt="A dot">', "loads https://cdn.example"),
        ('<div style="background: url(https://cdn.example/a.png)"></div>', "loads https://cdn"),
        ("<style>@import 'https://fonts.example/a.css';</style>", "loads https://fonts.example"),
        ("<script>fetch('https://count.example/visit')</script>", "loads https://count.example"),
        ('<iframe src="http://cdn.example/"></iframe>', "loads http://cdn.example"),
        ('<img src="_static/a.png">', "no description: <img"),
        ('<img src="_static/a.png" alt=" ">', "no description: <img"),
        ('<svg role="img"><path d="M0 0"/></svg>', "no description: <svg>"),
        ("<p>so $$x = 1$$</p>", "unrendered '$'"),
        ("<p>so \\(x\\)</p>", "unrendered '\\\\('"),
        ("<p>so \\frac{1}{2}</p>", "unrendered '\\\\frac'"),
        ("<p>as {prf:ref}t-9 says</p>", "unrendered '{prf:ref}'"),
        ('<p><span class="katex-error">x</span></p>', "an error shows in the page"),
        ("<math><msub><mi>s</mi><mi>min</mi><mo></mo></msub></math>", "error shows in the page"),
        ("<pre>&lt;function f at 0x7f787bac&gt;</pre>", "shows '0x7f787bac'"),
        ('<p id="top">again</p>', "id 'top' occurs 2 times"),
        ('<p><a href="none.html">x</a></p>', "none.html leads nowhere"),
        ('<p><a href="page.html#none">x</a></p>', "names a place that does not exist"),
        ("<pre>### BEGIN HIDDEN TESTS</pre>", "contains 'BEGIN HIDDEN TESTS'"),
    ],
)
def test_planted_fault_is_found(site, fault, says):
    assert any(says in found for found in with_planted(site, fault))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("_static/a.css", "@font-face{src:url(https://a.example/a.woff2)}", "loads https://a.ex"),
        ("_static/a.js", 'importScripts("https://a.example/a.js")', "loads https://a.example"),
        ("_static/a.js", 'image.src = "https://a.example/a.png"', "loads https://a.example"),
        ("_static/a.js", "const a = await import('https://a.example/a.mjs')", "loads https://a.ex"),
        ("_static/a.mjs", 'import { a } from "https://a.example/a.mjs"', "loads https://a.example"),
        ("_static/a.js", "new Worker('https://a.example/worker.js')", "loads https://a.example"),
        ("sw.js", "base = 'https://a.example/'", "sw.js: names https://a.example/"),
        ("_run/worker.js", "base = 'https://a.example/'", "_run/worker.js: names https://a.ex"),
        ("_run/shell.py", "base = 'https://a.example/'", "_run/shell.py: names https://a.ex"),
        ("_sources/a.md", "# A page", "publishes raw sources"),
        ("_sources/a.md", "### BEGIN SOLUTION", "a.md: contains 'BEGIN SOLUTION'"),
    ],
)
def test_planted_file_is_found(site, name, text, says):
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).write_text(text)
    assert any(says in found for found in guards.check_site(site))


def test_buttons_without_their_cells_are_found(site):
    (site / "page.html").write_text(CLEAN.replace("</h1>", '</h1><div class="run-bar"></div>'))
    says = "page.html: has cells to run, and _run/cells/page.json is missing"
    assert says in guards.check_site(site)
    (site / "_run" / "cells").mkdir(parents=True)
    (site / "_run" / "cells" / "page.json").write_text("[]")
    assert guards.check_site(site) == []


def test_partial_site_may_have_dangling_links(site):
    (site / "page.html").write_text(CLEAN.replace("</h1>", '</h1><a href="other.html">x</a>'))
    assert guards.check_site(site, partial=True) == []


@pytest.mark.parametrize(
    "tex",
    [r"\frac{1}{", r"\undefinedcommand", r"\begin{align} x", "x_1_2"],
)
def test_bad_tex_is_an_error(tex):
    assert "error" in katex_math.render(tex, True)


def test_good_tex_is_html_and_mathml():
    html = katex_math.render(r"\Pr[\M(x) \in S] \le e^{\eps} \norm{x}", False)["html"]
    assert "<math" in html and 'class="katex-html" aria-hidden="true"' in html


FAILING = """---
file_format: mystnb
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A page

```{code-cell} ipython3
1 / 0
```
"""
FAULTY = """# A page

A formula $\\frac{1}{$ and {eq}`eq-none`, {prf:ref}`t-none`, {cite:t}`nobody`, {term}`nothing`.

:::{prf:theorem} T
:label: t-1
so$$
x
$$
:::

:::{note}
:class: dropdown
A fold without a title.
:::
"""
COMPLAINTS = (
    "KaTeX parse error",
    "equation not found",
    "label 't-none' not found",
    "could not find bibtex key",
    "term not in glossary",
    "unrendered '$'",
    "a folded block needs a title",
)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A book of one page, built by the project's own build."""
    root = tmp_path_factory.mktemp("book")
    for name in ("site", "ledger"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    licences = "LICENSE", "LICENSE-TEXT.md"
    for name in ("_config.yml", "package.json", "package-lock.json", ".npmrc", *licences):
        shutil.copy2(ROOT / name, root / name)
    ready.install_node_modules(ROOT)
    (root / "node_modules").symlink_to(ROOT / "node_modules")
    (root / "_toc.yml").write_text("format: jb-book\nroot: chapters/intro\n")
    (root / "chapters").mkdir()
    shutil.copy(ROOT / "chapters" / "references.bib", root / "chapters")
    return root


def build_page(book, text):
    """Build the book with this page, but not the Python of its cells; returns the process."""
    (book / "chapters" / "intro.md").write_text(text)
    command = [sys.executable, "site/build.py", "--without-python"]
    return subprocess.run(command, cwd=book, capture_output=True, text=True, timeout=900)


def test_build_refuses_what_it_warns_of(book):
    done = build_page(book, FAULTY)
    assert done.returncode == 1
    assert [complaint for complaint in COMPLAINTS if complaint not in done.stderr] == []


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_failing_cell_fails_the_build_and_the_next_one(book, times):
    """The next one, which could take the failed page for finished, once a week."""
    for _ in range(times):
        done = build_page(book, FAILING)
        assert done.returncode == 1
        assert "ZeroDivisionError" in done.stderr


@pytest.fixture
def author(book):
    """Shows the page of the book while it is written: its address, and the lines that it says."""
    (book / "chapters" / "intro.md").write_text(FAILING.replace("1 / 0", "1 + 1"))
    command = [sys.executable, "-u", "site/author.py", "intro", "--port", "0"]
    with subprocess.Popen(command, cwd=book, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("http"):
                break
        yield line.split()[0], process.stdout
        process.send_signal(signal.SIGINT)


def test_a_save_is_shown_and_what_must_be_mended_is_said(book, author):
    address, said = author
    page = book / "chapters" / "intro.md"
    assert "A page" in urllib.request.urlopen(address).read().decode()
    page.write_text(page.read_text().replace("# A page", "# Another page\n\nIn two data sets."))
    assert any(line.startswith("shown after") for line in said)
    assert next(said).startswith("'data sets': the word is 'dataset'")
    page.write_text(page.read_text().replace("1 + 1", "1 / 0"))
    assert any(line.startswith("intro: ZeroDivisionError: division by zero") for line in said)
    assert next(said).startswith("  Mend the cell that begins with `1 / 0`")
    text = urllib.request.urlopen(address).read().decode()
    assert "Another page" in text and 'fetch("/shown/chapters/intro.html")' in text


def test_two_do_not_build_into_one_folder(book):
    out = book / "both"
    (book / "chapters" / "intro.md").write_text(FAILING)
    for program in (["build.py"], ["author.py", "intro", "--port", "0"]):
        with ready.owner_of(out):
            command = [sys.executable, f"site/{program[0]}", *program[1:], "--out", out]
            done = subprocess.run(command, cwd=book, capture_output=True, text=True, timeout=900)
        assert done.returncode == 1 and "Another build writes into" in done.stderr
    assert list(out.iterdir()) == [out / ".lock"]
    with pytest.raises(SystemExit), ready.owner_of(out), ready.owner_of(out):
        pass
