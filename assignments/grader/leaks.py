"""Look for lines of solutions and hidden tests in pages, sources, notebooks and archives."""

import html
import json
import re
import zipfile
from pathlib import Path

from . import masters

SHORTEST = 25  # characters without spaces; shorter lines say nothing
TEXT = {".html", ".md", ".txt", ".ipynb", ".py", ".js", ".json", ".xml", ".tex", ".csv", ".xhtml"}
ARCHIVES = {".zip", ".epub"}


def squeeze(text):
    """Characters alone: the same for a page with highlighting, a notebook's JSON and plain text."""
    text = html.unescape(re.sub(r"<[^<>]{0,300}>", "", text))
    return re.sub(r"[\s\\]", "", text)


def secrets(master):
    """{squeezed line: question} of all that only the master has."""
    public = squeeze("\n".join(c.source for c in master.student.cells))
    private = {}
    for cell in master.notebook.cells:
        for line in cell.source.splitlines():
            short = squeeze(html.escape(line))
            if len(short) >= SHORTEST and short not in public:
                private[short] = masters.grading(cell).get("grade_id", cell.id)
    return private


def texts(path):
    """(where, text) of a file, and of the files in an archive."""
    if path.suffix in ARCHIVES:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if Path(name).suffix in TEXT:
                    yield f"{path}: {name}", archive.read(name).decode("utf-8", "replace")
    elif path.suffix in TEXT:
        yield str(path), path.read_text(encoding="utf-8", errors="replace")


def notebook_text(text):
    """A notebook's cells, which its JSON would hide behind escapes."""
    try:
        return "\n".join("".join(c["source"]) for c in json.loads(text)["cells"])
    except (ValueError, KeyError, TypeError):
        return text


def find(masters_folder, folders):
    """[(file, master, question)] for each line that should not be there."""
    private = {p.stem: secrets(masters.read(p)) for p in sorted(Path(masters_folder).glob("*.md"))}
    files = [
        f
        for folder in folders
        for f in ([folder] if folder.is_file() else sorted(folder.rglob("*")))
        if f.is_file()
    ]
    found = []
    for file in files:
        for where, text in texts(file):
            haystack = squeeze(notebook_text(text)) if where.endswith(".ipynb") else squeeze(text)
            for name, lines in private.items():
                found += [
                    (where, name, question) for line, question in lines.items() if line in haystack
                ]
    return found
