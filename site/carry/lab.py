"""The chapters as notebooks in JupyterLab, in copies that are the reader's own.

    PYTHONPATH=site python -m carry.lab FOLDER [options of `jupyter lab`]

FOLDER gets a notebook for each page that runs. jupyterlab-myst draws theorems and folded proofs;
the book's TeX commands stand in the first cell, where it looks for them, and citations are written
out. A copy that is another than the book's stays: the book's lies beside it.
"""

import json
import os
import re
import sys
from pathlib import Path

import nbformat
import yaml
from pybtex.database import parse_file

from carry.downloads import as_notebook
from pages.notebook import is_executed, macros, written_out
from surroundings import ROOT

ROLE = re.compile(r"\{(cite:p|cite:t|doc|prf:ref|ref|glue:text)\}`([^`]+)`")
LABEL = re.compile(r"^:label: (\S+)", re.M)
QUIET = (
    "--LabApp.news_url=",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LanguageServerManager.autodetect=False",  # it would start npm to look for servers
)


def author_year(entry):
    """Who and when, as in "Dwork and Roth 2014"."""
    names = [" ".join(person.last_names) for person in entry.persons["author"]]
    who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return re.sub(r"[{}\\]", "", who), entry.fields["year"]


def cite_in_words(role, keys, library):
    """A citation in words."""
    entries = [author_year(library.entries[key.strip()]) for key in keys.split(",")]
    if role == "cite:t":
        return ", ".join(f"{who} ({year})" for who, year in entries)
    return "(" + "; ".join(f"{who}, {year}" for who, year in entries) + ")"


class Book:
    """What the roles of a page mean: JupyterLab sees one notebook, and no bibliography."""

    def __init__(self):
        self.library = parse_file(ROOT / "chapters" / "references.bib")
        self.pages = sorted((ROOT / "chapters").glob("*.md"))
        self.home = {
            label: page.stem
            for page in self.pages
            for label in LABEL.findall(written_out(page.read_text(encoding="utf-8")))
        }

    def put_in_words(self, page, text):
        """`text` with citations, links to other pages and glued numbers in words."""
        numbers = read_glued_numbers(page)

        def words(match):
            role, content = match.groups()
            target = self.home.get(content)
            if role.startswith("cite"):
                return cite_in_words(role, content, self.library)
            if role == "glue:text":
                return numbers.get(content, "…")
            if role == "doc":
                return f"[{content}]({content}.ipynb)"
            return match[0] if target in (None, page) else f"[{content}]({target}.ipynb)"

        return ROLE.sub(words, text)


def read_glued_numbers(page):
    """The numbers that the page glues into its text, if the book was built here."""
    path = ROOT / "_build" / "jupyter_execute" / "chapters" / f"{page}.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.exists() else []
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return {
        output["metadata"]["scrapbook"]["name"]: "".join(output["data"]["text/plain"]).strip("'")
        for output in outputs
        if "scrapbook" in output.get("metadata", {})
    }


def notebook(source, book):
    """One page as the text of a notebook."""
    made = as_notebook(book.put_in_words(source.stem, source.read_text(encoding="utf-8")))
    front = f"---\n{yaml.safe_dump({'math': macros()})}---\n\n"
    made.cells[0].source = front + made.cells[0].source
    return nbformat.writes(made)


def write(folder):
    """Notebooks of all pages into `folder`; returns the names of those that differ and stay."""
    folder.mkdir(parents=True, exist_ok=True)
    book, kept = Book(), []
    for source in filter(is_executed, book.pages):
        path, text = folder / f"{source.stem}.ipynb", notebook(source, book)
        if path.exists() and path.read_text(encoding="utf-8") != text:
            kept.append(path.name)
            path = folder / f"{source.stem}.new.ipynb"
        path.write_text(text, encoding="utf-8")
    return kept


def main(folder, *options):
    """Write the notebooks and become JupyterLab."""
    for name in write(Path(folder)):
        print(f"{name}: yours is kept, the book's is {Path(name).stem}.new.ipynb")
    if os.name == "posix" and os.geteuid() == 0:
        print("You are root, and so is all that runs in a notebook. In a container that is usual.")
        options = ("--allow-root", *options)
    command = [sys.executable, "-m", "jupyter", "lab", f"--notebook-dir={folder}", *QUIET, *options]
    os.environ.pop("PYTHONPATH", None)  # what finds this module is not for notebooks
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main(*sys.argv[1:])
