"""The buttons at the top of a page: take it as a notebook or as its MyST source, print it.

The files lie in ``downloads/`` of the site, so the links work offline and without a repository.
The notebook is unexecuted; its first cell defines the book's TeX commands, which JupyterLab
does not know.
"""

import re
import shutil
from pathlib import Path

import jupytext
import nbformat

from pages.notebook import is_executed, macros, written_out
from run import runtime

SOLUTION = re.compile(
    r"^```\{solution\} (\S+)\n(.*?)(?=\n```\{exercise|\n\([\w-]+\)=\n|\n## |\Z)", re.M | re.S
)
GATED = r"```{solution-start} \1\n:class: dropdown\n\2\n```{solution-end}\n```\n"
MOVES = "*Here the book's page has a figure with controls, which a notebook cannot show.*\n"


def tex_commands():
    """The shared macros as TeX definitions, in a cell that shows nothing."""
    lines = []
    for name, body in macros().items():
        arity = max((n for n in range(1, 4) if f"#{n}" in body), default=0)
        head = f"{{{name}}}[{arity}]" if arity else f"{{{name}}}"
        lines.append(rf"\providecommand{head}{{}}\renewcommand{head}{{{body}}}")
    return nbformat.v4.new_markdown_cell("$$\n" + "\n".join(lines) + "\n$$", id="tex-commands")


def without_widgets(text):
    """A page without what the site alone can show: interactive figures (a sentence says so), the
    calculator, how to get what a reader of the notebook has."""
    widget = r"^(`{3,}|:{3,})\{(slider|calculator|get-package)\}.*?^\1\n"
    return re.sub(widget, lambda m: MOVES * (m[2] == "slider"), text, flags=re.S | re.M)


def as_notebook(text):
    """A page's text as a notebook, without widgets; what the site adds to folds is written out."""
    text = SOLUTION.sub(GATED, written_out(text))
    notebook = jupytext.reads(without_widgets(text), fmt="md:myst")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # jupytext draws them at random
    return notebook


def at_home():
    """What a reader needs who opens a page as a notebook, in a cell of its own."""
    text = "To run this notebook you need `matplotlib` and the book's package: `pip install .` in "
    text += (
        "the book's folder, or `pip install` with the file `downloads/dpnotes-0-py3-none-any.whl` "
    )
    text += "of the book's site. Some pages also use `scikit-learn` or `statsmodels`."
    return nbformat.v4.new_markdown_cell(text, id="at-home")


def write_wheel(app, error):
    """The package for readers who have the site alone."""
    if error is None and app.builder.format == "html":
        files = runtime.package_files()
        target = Path(app.outdir) / "downloads" / "dpnotes-0-py3-none-any.whl"
        target.parent.mkdir(exist_ok=True)
        runtime.write_wheel(target, "dpnotes", "0", files)


def write_notebook(source, folder, *first):
    """Put ``<page>.ipynb`` into ``folder``: cells to begin with, the TeX commands, the page."""
    folder.mkdir(parents=True, exist_ok=True)
    notebook = as_notebook(source.read_text(encoding="utf-8"))
    notebook.cells[:0] = [*first, tex_commands()]
    nbformat.write(notebook, folder / f"{source.stem}.ipynb")


def write_downloads(source, folder):
    """Put ``<page>.md`` and ``<page>.ipynb`` into ``folder``."""
    write_notebook(source, folder, at_home())
    text = written_out(source.read_text(encoding="utf-8"))
    (folder / source.name).write_text(text, encoding="utf-8")


def link(url, icon, tooltip):
    """A button of the theme's header."""
    return {"type": "link", "url": url, "icon": f"fas fa-{icon}", "tooltip": tooltip, "label": icon}


PRINT = {
    "type": "javascript", "javascript": "window.print()", "icon": "fas fa-print",
    "tooltip": "Print this page, everything unfolded", "label": "print",
}  # fmt: skip


def offer(app, pagename, templatename, context, doctree):
    """Put the buttons into the header: files for pages that run, print for all that are text."""
    if doctree is None:
        return
    source = Path(app.env.doc2path(pagename))
    folder = Path(app.outdir) / "downloads"
    handout = source.parent / "downloads" / f"{source.stem}.ipynb"
    buttons = [PRINT]
    if is_executed(source):
        write_downloads(source, folder)
        address = context["pathto"](f"downloads/{source.stem}", 1)
        buttons = [
            link(f"{address}.ipynb", "download", "Download this page as a notebook"),
            link(f"{address}.md", "code", "Download its source, MyST Markdown"),
            PRINT,
        ]
    elif handout.exists():
        (folder / "assignments").mkdir(parents=True, exist_ok=True)
        shutil.copy(handout, folder / "assignments")
        address = context["pathto"](f"downloads/assignments/{handout.name}", 1)
        buttons = [link(address, "download", "Download this assignment as a notebook"), PRINT]
    context["header_buttons"] = buttons + context.get("header_buttons", [])


def setup(app):
    """Connect to the moment when a page's text is complete."""
    app.connect("html-page-context", offer, priority=900)
    app.connect("build-finished", write_wheel)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
