"""Assignments that can be done in the page: what the scripts beside find there.

Each assignment's page carries the notebook that students are given, whole, and its answer and test
cells have the notebook's cell ids. Without JavaScript nothing of this shows.
"""

import hashlib
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

from pages.notebook import cells_of
from surroundings import ROOT, copy_scripts

HERE = Path(__file__).resolve().parent
MODULES = ROOT / "node_modules"
READERS = {  # of previews
    "markdown-it.js": "markdown-it/dist/markdown-it.min.js",
    "dollarmath.js": "markdown-it-dollarmath/dist/index.esm.min.js",
}
HELPER = "public-tests"  # a cell of the notebook that the page does not show
EMPTY = "Your answer here."  # what stands where a text is to be written
HEAD = re.compile(r"</h1>\s*(?:<p>(?:(?!</p>).)*?class=\"[^\"]*download.*?</p>)?", re.S)
# In the page from the start, so that nothing moves; shown only where the scripts can run.
NOTE = """<div class="hw-note" hidden>
<p>You can do this assignment here. What you write stays in this browser, on this device; Check runs
the tests that you see. At the end download the notebook and hand it in: it is the one linked above
with your answers in it.</p>
<p><span id="hw-keys">Tab indents; Escape, then Tab, leaves a box; Shift and Enter check it.</span>
<span id="hw-markdown">Texts are Markdown, formulas between dollar signs (in a list:
indented).</span></p></div>
<script>"noModule" in HTMLScriptElement.prototype &&
  (document.currentScript.previousElementSibling.hidden = false);</script>
"""


def handout(source):
    """The notebook of an assignment's page, or None: its text and its parsed form."""
    path = source.parent / "downloads" / f"{source.stem}.ipynb"
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    return text, json.loads(text)


def text_of_notebook(notebook):
    """The text a notebook has in a file: the same that the scripts in the page write."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def pairs(doctree, notebook):
    """(what the page shows, the notebook's cell) for code cells and for answers in words."""
    shown = cells_of(doctree)
    blank = [
        n
        for n in doctree.findall(nodes.paragraph)
        if n.astext() == EMPTY and isinstance(n[0], nodes.emphasis)
    ]
    code = [c for c in notebook["cells"] if c["cell_type"] == "code" and c["id"] != HELPER]
    words = [c for c in notebook["cells"] if c["cell_type"] == "markdown"]
    words = [c for c in words if c["metadata"].get("nbgrader", {}).get("solution")]
    return zip([*shown, *blank], [*code, *words], strict=True)


def name_cells(app, doctree):
    """Give the code cells and the empty answers of an assignment's page the ids of its notebook."""
    given = handout(Path(doctree["source"]))
    if not given:
        return
    text, notebook = given
    try:
        if text_of_notebook(notebook) != text:
            raise ValueError("is not written as `make assignments` writes it")
        for node, cell in pairs(doctree, notebook):
            code = cell["cell_type"] == "code"
            if code and node.next_node(nodes.literal_block).astext() != "".join(cell["source"]):
                raise ValueError(f"cell {cell['id']} differs")
            node["ids"].append(f"cell-{cell['id']}")
    except ValueError as problem:
        raise ExtensionError(f"{doctree['source']} and its notebook: {problem}") from problem


def embed(text):
    """A notebook inside of a script element: no character of it ends the element."""
    compact = json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    return compact.replace("<", "\\u003c")


def add_scripts(app, pagename, templatename, context, doctree):
    """Put the notebook, its version, the style and the script into an assignment's page."""
    given = handout(Path(app.env.doc2path(pagename))) if doctree is not None else None
    if not given:
        return
    text, name = given[0], Path(pagename).name
    version = hashlib.sha256(text.encode()).hexdigest()[:12]
    folder, run = context["pathto"]("_homework", 1), context["pathto"]("_run", 1)
    context["metatags"] += (
        f'<link rel="stylesheet" href="{run}/cells.css">'
        f'<link rel="stylesheet" href="{folder}/homework.css">'
        f'<script type="module" src="{folder}/homework.js"></script>'
    )
    context["body"] = HEAD.sub(lambda head: head[0] + NOTE, context["body"], count=1) + (
        f'<script type="application/json" id="homework" data-name="{name}" '
        f'data-version="{version}">{embed(text)}</script>'
    )


def publish(app, exception):
    """Before the site is polished, which looks into scripts for the classes they use."""
    if not exception and app.builder.name == "html":
        target = Path(app.outdir) / "_homework"
        copy_scripts(HERE, target, "check.py")
        for name, source in READERS.items():
            code = (MODULES / source).read_text(encoding="utf-8")
            code = re.sub(r"//# sourceMappingURL=.*", "", code)
            (target / name).write_text(code, encoding="utf-8")


def setup(app):
    """Ids for every kind of book, scripts for the site."""
    app.connect("doctree-read", name_cells)
    app.connect("html-page-context", add_scripts)
    app.connect("build-finished", publish, priority=500)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
