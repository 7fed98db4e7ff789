"""The tables of the `status` page: what each page took to run, what is checked, which versions.

Times are from when the page was executed (see `notebooks.py`). Claims and tests come from the
ledger and the tests' evidence, as on the `claims` page.
"""

import json
import platform
import re
import subprocess
import time
from importlib import metadata

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from pages import ledger
from pages.notebook import cells_of
from surroundings import ROOT, build_time

COLUMNS = ("page", "seconds", "cells", "words", "folded words", "claims", "tests")
SILENT = (nodes.math, nodes.math_block, nodes.literal_block, nodes.comment, nodes.raw)


DRAW = {}  # directive -> its nodes, as a function of the application and the page


class Placeholder(nodes.General, nodes.Element):
    """Stands for what can be drawn when all pages have been read."""


class Drawn(SphinxDirective):
    """``{build-status}``, ``{course-map}``, ..."""

    def run(self):
        return [Placeholder(kind=self.name)]


class Draw(SphinxPostTransform):
    """Every page is read and executed by now."""

    default_priority = 8  # before references are resolved

    def run(self, **kwargs):
        for place in list(self.document.findall(Placeholder)):
            place.replace_self(DRAW[place["kind"]](self.app, self.env.docname))


def add_drawings(app, functions):
    """Register the directives of this name and what draws them."""
    DRAW.update(functions)
    for name in functions:
        app.add_directive(name, Drawn)


def words_of(doctree):
    """(words in view, words in folded blocks) of a page's text; code and formulas do not count."""
    seen = folded = 0
    stack = [(doctree, False)]
    while stack:
        node, inside = stack.pop()
        if isinstance(node, nodes.Text):
            count = len(re.findall(r"\w[\w’'-]*", node.astext()))
            seen, folded = seen + count * (not inside), folded + count * inside
        elif not (isinstance(node, SILENT) or node.get("nb_element") == "cell_code"):
            inside = inside or "dropdown" in node.get("classes", ())
            stack += [(child, inside) for child in node.children]
    return seen, folded


def count_checks(pages):
    """(claims, tests) that belong to the pages of these names; each test counts once."""
    claims = [claim["id"] for claim in ledger.finished_claims() if claim["page"] in pages]
    evidence = ledger.evidence()
    tests = {record["test"] for name in claims for record in evidence.get(name, ())}
    return len(claims), len(tests)


def page_rows(env):
    """One row a page in the book's order, then their sum."""
    times, rows = NbMetadataCollector.get_doc_data(env), []
    for name in ledger.chapters():
        docname = f"chapters/{name}"
        if docname not in env.found_docs:
            continue
        doctree = env.get_doctree(docname)
        run = times.get(docname, {}).get("exec_data") or {}
        cells = len(cells_of(doctree)) if run else 0
        facts = (run.get("runtime") or 0, cells, *words_of(doctree), *count_checks([name]))
        rows.append((docname, *facts))
    sums = [sum(column) for column in list(zip(*rows, strict=True))[1:-2]]
    return [*rows, ("", *sums, *count_checks(ledger.chapters()))]


def page_table(app, docname):
    """The table of the pages."""
    body = []
    for page, seconds, *numbers in page_rows(app.env):
        name = nodes.strong(text="all")
        if page:
            title = app.env.titles[page].astext()
            address = app.builder.get_relative_uri(docname, page)
            name = nodes.reference("", title, refuri=address, internal=True)
        counts = [f"{n:,}" if n else "" for n in numbers]
        body.append([name, f"{seconds:.1f}" if seconds else "", *counts])
    return [table(COLUMNS, body, "dpn-counts")]


def commit():
    """The commit that was built, if this is a clone."""
    answer = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True
    )
    return answer.stdout.strip()


def versions():
    """(name, version) of Python, of what `requirements.in` names, and of the scripts' libraries."""
    yield "Python", platform.python_version()
    asked = (ROOT / "requirements.in").read_text(encoding="utf-8").splitlines()
    for name in ("dpnotes", *(re.split("[=<>[]", line)[0] for line in asked if line[:1].isalpha())):
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed"
    for name in json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]:
        package = ROOT / "node_modules" / name / "package.json"
        if package.exists():
            yield f"{name} (npm)", json.loads(package.read_text(encoding="utf-8"))["version"]


def versions_table():
    """When, from which commit, with what."""
    rows = [["built", time.strftime("%Y-%m-%d %H:%M UTC", build_time())]]
    rows += [["commit", commit()]] if commit() else []
    return [table(("what", "version"), rows + [list(pair) for pair in versions()])]


def table(heads, rows, kind="dpn-facts"):
    """A docutils table of this class; a cell is a text or an inline node."""
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in heads), cols=len(heads))
    group += nodes.thead("", row(heads))
    group += nodes.tbody("", *(row(cells) for cells in rows))
    return nodes.table("", group, classes=[kind, "colwidths-auto"])


def row(cells):
    """One line of a table."""
    texts = (nodes.Text(cell) if isinstance(cell, str) else cell for cell in cells)
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", text)) for text in texts))


def setup(app):
    """Register the directive, its place-holder and what fills it."""
    app.add_node(Placeholder)
    app.add_post_transform(Draw)
    add_drawings(app, {"build-status": lambda *here: page_table(*here) + versions_table()})
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
