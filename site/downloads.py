"""Each executable page offers itself as a notebook and as its MyST source.

The files lie in ``downloads/`` of the site, so the links work offline and without a repository.
The notebook is unexecuted; its first cell defines the book's TeX commands, which JupyterLab
does not know.
"""

import json
import re
from pathlib import Path

import jupytext
import nbformat
import yaml

HERE = Path(__file__).resolve().parent
LINE = (
    '<p class="page-source">Take this page with you: <a href="{0}.ipynb" download>notebook</a>'
    ' or <a href="{0}.md" download>MyST source</a>.</p>'
)


def tex_commands():
    """The shared macros as TeX definitions, in a cell that shows nothing."""
    groups = json.loads((HERE / "macros.json").read_text(encoding="utf-8"))
    lines = []
    for name, body in (item for group in groups.values() for item in group.items()):
        arity = max((n for n in range(1, 4) if f"#{n}" in body), default=0)
        head = f"{{{name}}}[{arity}]" if arity else f"{{{name}}}"
        lines.append(rf"\providecommand{head}{{}}\renewcommand{head}{{{body}}}")
    return nbformat.v4.new_markdown_cell("$$\n" + "\n".join(lines) + "\n$$", id="tex-commands")


def write_downloads(source, folder):
    """Put ``<page>.md`` and ``<page>.ipynb`` into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = source.read_text(encoding="utf-8")
    (folder / source.name).write_text(text, encoding="utf-8")
    notebook = jupytext.reads(text, fmt="md:myst")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # jupytext draws them at random
    notebook.cells.insert(0, tex_commands())
    nbformat.write(notebook, folder / f"{source.stem}.ipynb")


def is_executed(source):
    """Does this page run? Assignments (`execution_mode: off`) have a notebook of their own."""
    front = re.match(r"---\n(.*?)\n---\n", source.read_text(encoding="utf-8"), re.S)
    settings = yaml.safe_load(front[1]) if front else {}
    return "kernelspec" in settings and settings.get("mystnb", {}).get("execution_mode") != "off"


def offer(app, pagename, templatename, context, doctree):
    """Add the line with the two links below the text of an executable page."""
    if doctree is None or not is_executed(source := Path(app.env.doc2path(pagename))):
        return
    write_downloads(source, Path(app.outdir) / "downloads")
    context["body"] += LINE.format(context["pathto"](f"downloads/{source.stem}", 1))


def setup(app):
    """Connect to the moment when a page's text is complete."""
    app.connect("html-page-context", offer)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
