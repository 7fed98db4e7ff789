"""Each executable page offers itself as a notebook and as its MyST source.

The files lie in ``downloads/`` of the site, so the links work offline and without a repository.
The notebook is unexecuted; its first cell defines the book's TeX commands, which JupyterLab
does not know.
"""

import json
from pathlib import Path

import jupytext
import nbformat

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
        lines.append(rf"\providecommand{{{name}}}{f'[{arity}]' if arity else ''}{{}}"
                     rf"\renewcommand{{{name}}}{f'[{arity}]' if arity else ''}{{{body}}}")  # fmt: skip
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


def offer(app, pagename, templatename, context, doctree):
    """Add the line with the two links below the text of an executable page."""
    metadata = app.env.metadata.get(pagename, {})
    if doctree is None or "kernelspec" not in metadata:
        return
    folder = Path(app.outdir) / "downloads" / Path(pagename).parent.name
    write_downloads(Path(app.env.doc2path(pagename)), folder)
    link = context["pathto"](f"downloads/{Path(pagename).parent.name}/{Path(pagename).name}", 1)
    context["body"] += LINE.format(link)


def setup(app):
    """Connect to the moment when a page's text is complete."""
    app.connect("html-page-context", offer)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
