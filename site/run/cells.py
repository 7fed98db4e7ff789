"""Which cells of a page the reader can run, and what the scripts beside must know of them.

Each code cell that shows gets a bar of buttons, hidden until a script has taken charge of it, so
nothing moves when it does. The sources of all cells of a page go into a file that is loaded with
the first click; of hidden ones what they define, and not what they check: that is of the book's own
numbers, and the reader may change them. A cell that imports what the page's Python does not have
says so.
"""

import ast
import hashlib
import html
import json
import sys
from collections import Counter
from pathlib import Path

from docutils import nodes
from sphinx.util import logging

from pages.notebook import cells_of, is_executed
from run import runtime

PROVIDED = {"myst_nb"}  # by shell.py
CHECKS = ("plotting.says", "plotting.glue", "glue")  # functions, as hidden cells call them
BAR = """<div class="run-bar" data-cell="{place}" data-mark="{mark}">
<button type="button" data-do="run" aria-label="Run cell {number}">Run</button>
<button type="button" data-do="edit" aria-label="Edit cell {number}">Edit</button>
<button type="button" data-do="above" aria-label="Run all above cell {number}" hidden>Run all above</button>
<button type="button" data-do="restore" aria-label="Restore the original of cell {number}" hidden>Restore the original</button>
<button type="button" data-do="close" aria-label="Close the editor of cell {number}" hidden>Close</button>
<span class="run-note"></span>
</div>"""  # noqa: E501
CANNOT = """<p class="run-cannot">This cell needs {modules}, which Python in the page does not have:
it runs on your own computer only.</p>"""
NO_PYTHON = """<p class="run-cannot">This copy of the book was built without the Python that runs in
pages: cells cannot be run here.</p>"""
logger = logging.getLogger(__name__)


def sources_of(notebook):
    """The code of each code cell of an executed notebook, empty cells left out as MyST-NB does."""
    return {
        place: "".join(cell["source"])
        for place, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code"
    }


def lacking(code, modules):
    """The top-level modules that this code imports and the page's Python does not have."""
    known = {name.split(".")[0] for name in modules} | sys.stdlib_module_names | PROVIDED
    return sorted({name.split(".")[0] for name in runtime.imported(code)} - known)


class WithoutChecks(ast.NodeTransformer):
    """Code that neither asserts nor hands numbers to the text."""

    def visit_Assert(self, node):
        return ast.Pass()

    def visit_Expr(self, node):
        call = node.value
        is_check = isinstance(call, ast.Call) and ast.unparse(call.func) in CHECKS
        return ast.Pass() if is_check else node


def definitions(code):
    """What a hidden cell defines, as code that never fails: what it cannot define is not defined.

    Each statement is tried alone, as one that fails must not keep the others from running.
    """
    whole = WithoutChecks().visit(ast.parse(code))
    left = [one for one in whole.body if not isinstance(one, ast.Pass)]
    whole.body = [tried(one) for one in left]
    return ast.unparse(whole)


def tried(statement):
    """The statement inside a `try`."""
    (block,) = ast.parse("try: pass\nexcept Exception: pass").body
    block.body = [statement]
    return block


def marks(sources):
    """A short name for each source, the same as long as the source is; twins are told apart."""
    seen, names = Counter(), []
    for code in sources:
        seen[code] += 1
        names.append(hashlib.sha256(f"{code}\0{seen[code]}".encode()).hexdigest()[:12])
    return names


def check_source(node, code):
    """The reader must run the code that the page shows."""
    for block in node.findall(nodes.literal_block):
        if block.parent.get("nb_element") == "cell_code_source" and block.astext() != code.rstrip():
            logger.warning("the cell's source is not the one that shows", location=node)


def raw(markup):
    """HTML as it is."""
    return nodes.raw("", markup, format="html")


def add_bars(app, doctree, docname):
    """Give the cells of a page their buttons, and write the file of its sources."""
    shown = cells_of(doctree)
    if app.builder.name != "html" or not shown:
        return
    if not is_executed(Path(app.env.doc2path(docname))):
        return
    if not app.config.run_modules:
        shown[0] += raw(NO_PYTHON)
        return
    executed = Path(app.outdir).parent / "jupyter_execute" / f"{docname}.ipynb"
    sources = sources_of(json.loads(executed.read_text(encoding="utf-8")))
    places, codes = list(sources), list(sources.values())
    cells = [
        {
            "source": code, "mark": mark, "imports": sorted(runtime.imported(code)),
            "lacks": lacking(code, app.config.run_modules),
        }
        for code, mark in zip(codes, marks(codes), strict=True)
    ]  # fmt: skip
    for number, node in enumerate(shown, 1):
        place = places.index(node["cell_index"])
        cell = cells[place]
        cell["number"] = number
        check_source(node, cell["source"])
        missing = " and ".join(f"<code>{html.escape(name)}</code>" for name in cell["lacks"])
        if missing:
            node += raw(CANNOT.format(modules=missing))
        else:
            node += raw(BAR.format(place=place, mark=cell["mark"], number=number))
    for cell in cells:
        if "number" not in cell:
            cell["source"] = definitions(cell["source"])
    target = Path(app.outdir) / "_run" / "cells" / f"{docname}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(cells), encoding="utf-8")


def setup(app):
    """`run_modules` is what the page's Python can import; empty where there is none."""
    app.add_config_value("run_modules", [], "html", types=[list])
    app.connect("doctree-resolved", add_bars, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
