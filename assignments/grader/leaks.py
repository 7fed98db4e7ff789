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
CARRIED = re.compile(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', re.S)


def squeeze(text, markup=False):
    """Characters alone: the same for a page with highlighting, a notebook's JSON and plain text."""
    if markup:
        text = html.unescape(re.sub(r"<[^<>]{0,300}>", "", text))
    return re.sub(r"[\s\\]", "", text)


def secrets(master, public):
    """{squeezed line: question} of all that only the master has."""
    private = {}
    for cell in master.notebook.cells:
        for line in cell.source.splitlines():
            short = squeeze(line)
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
    """A notebook's cells, which its JSON (in a file, or carried by a page) hides behind escapes."""
    try:
        return "\n".join("".join(c["source"]) for c in json.loads(text)["cells"])
    except (ValueError, KeyError, TypeError):
        return text


def sentences(masters_folder, folders):
    return [f"{where}: shows {name}, {q}" for where, name, q in find(masters_folder, folders)]


def find(masters_folder, folders):
    """[(file, master, question)] for each line that should not be there."""
    read = [masters.read(path) for path in sorted(Path(masters_folder).glob("*.md"))]
    public = squeeze("\n".join(c.source for master in read for c in master.student.cells))
    private = {master.name: secrets(master, public) for master in read}
    leaks = []
    for folder in folders:
        for file in [folder] if folder.is_file() else sorted(folder.rglob("*")):
            for where, text in texts(file) if file.is_file() else []:
                text = notebook_text(text) if where.endswith(".ipynb") else text
                haystack = squeeze(text, where.endswith((".html", ".xhtml", ".xml")))
                haystack += "".join(squeeze(notebook_text(t)) for t in CARRIED.findall(text))
                for name, lines in private.items():
                    leaks += [(where, name, q) for line, q in lines.items() if line in haystack]
    return leaks
