"""Open what was handed in, whatever it is: its cells, pictures and plots."""

import base64
import io
import json
import re
import signal
import warnings
import zipfile
from contextlib import contextmanager
from itertools import islice
from pathlib import PurePath

import nbformat

from .files import decoded

LARGEST = 50 * 2**20  # bytes of a notebook
PLOTS, PLOT = 12, 600_000  # plots of a notebook, and characters of one, that are kept
PHOTOS, PHOTO = 8, 6_000_000  # pictures attached to one answer, and characters of one
HEADER = re.compile(r"\A(---\n.*?\n---\n|# ---\n.*?\n# ---\n)", re.S)
QUARTO = re.compile(r"^(```+) *\{python\b[^}\n]*\}", re.M)  # a cell of Quarto or R Markdown
PAGE = "a web page, perhaps that of a login"
KINDS = {
    b"%pdf": "a PDF", b"{\\rtf": "a text document", b"<!doctype html": PAGE, b"<html": PAGE,
    b"\x89png": "a picture", b"\xff\xd8\xff": "a picture",
}  # fmt: skip
TOO_LARGE = "it is larger than 50 MB: clear the outputs, save it again"
ENDINGS = {"image/png": "png", "image/jpeg": "jpg"}
PASTED = re.compile(r"data:(image/(?:png|jpeg));base64,([A-Za-z0-9+/=]+)")  # by Colab


class Late(Exception):
    """Reading or testing took too long on the grader's side."""


@contextmanager
def alarm(seconds):
    """Stop what runs here after so many seconds of this process's own work."""

    def ring(*_):
        raise Late("it took too long")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def contents(path):
    """(data, kind of file) of a submission, also of the only notebook in an archive."""
    if path.stat().st_size > LARGEST:
        raise Unreadable(TOO_LARGE)
    data = path.read_bytes()
    for start, what in KINDS.items():
        if data.lstrip()[:20].lower().startswith(start):
            raise Unreadable(f"it is {what}, and not a notebook")
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return data, path.suffix.lower()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        inside = [
            name for name in archive.namelist() if PurePath(name).suffix in (".ipynb", ".md", ".py")
            and not PurePath(name).name.startswith(".") and "__MACOSX" not in name
        ]  # fmt: skip
        if len(inside) != 1:
            raise Unreadable(f"it is an archive with {len(inside)} notebooks in it")
        with archive.open(inside[0]) as file:
            data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise Unreadable(TOO_LARGE)
    return data, PurePath(inside[0]).suffix.lower()


def parse(path):
    """The cells (kind, source, id, pictures) and plots of a file, however damaged it is."""
    data, kind = contents(path)
    text = decoded(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        notebook = from_text(text, kind) if kind in (".md", ".py") else from_json(text)
    cells = []
    for cell in notebook.cells:
        source = cell.get("source", "")
        source = "".join(source) if isinstance(source, list) else str(source)
        name = str(table(table(cell.get("metadata")).get("nbgrader")).get("grade_id", ""))
        pictures = attached(cell)
        if cell.get("cell_type") == "markdown":
            source = PASTED.sub("picture", source)
        cells.append((cell.get("cell_type"), source, name, pictures))
    return cells, list(islice(plots(notebook), PLOTS))


class Unreadable(ValueError):
    """Why a file can't be read, in words for whoever handed it in."""


def from_text(text, kind):
    """A notebook from a page or a script. What its header says of its format is not asked: some
    formats would start a program of this machine to read them."""
    import jupytext  # slow, and most submissions are notebooks

    if kind == ".py" and re.search(r"^import marimo$", text, re.M):
        raise Unreadable("it is a program of marimo: export it as .ipynb and hand that in")
    text = HEADER.sub("", text, count=1)
    form = "py:percent" if re.search(r"^# ?%%", text, re.M) else "py:light"
    if kind == ".md":
        plain = re.search(r"^```+ *\{?python\b", text, re.M) and "```{code-cell}" not in text
        form = "md" if plain else "md:myst"
        text = QUARTO.sub(r"\1python", text) if plain else text
    notebook = jupytext.reads(text, fmt=form)
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        raise Unreadable("there is no cell of Python code in this text file: hand in the .ipynb")
    return notebook


def from_json(text):
    """A notebook from its own format, also where a cell has no text."""
    try:
        data = json.loads(text)
    except ValueError as error:
        if not text.strip():
            raise Unreadable("it is empty") from error
        if re.search(r"^(<{7}|>{7}) ", text, re.M):
            raise Unreadable(
                "two versions are mixed in it: look for <<<<<<< and >>>>>>>"
            ) from error
        cut_off = text.lstrip().startswith("{") and not text.rstrip().endswith("}")
        raise Unreadable("its end is missing" if cut_off else "it is not a notebook") from error
    if not isinstance(data, dict) or "nbformat" not in data:
        raise Unreadable("it is not a notebook")
    for cell in data["cells"] if isinstance(data.get("cells"), list) else ():
        if isinstance(cell, dict) and not isinstance(cell.get("source"), (str, list)):
            cell["source"] = ""
    major, minor = nbformat.reader.get_version(data)
    if major not in nbformat.versions:
        raise Unreadable(f"its format {major} is not known")
    return nbformat.convert(nbformat.versions[major].to_notebook_json(data, minor=minor), 4)


def table(value):
    """A dictionary, or an empty one where a damaged notebook has something else."""
    return value if isinstance(value, dict) else {}


def picture(kind, data, longest):
    """(ending, bytes) of a picture's file, or None if it is not what it must be."""
    if kind not in ENDINGS or not isinstance(data, str) or not 0 < len(data) <= longest:
        return None
    try:
        return ENDINGS[kind], base64.b64decode("".join(data.split()), validate=True)
    except ValueError:
        return None


def attached(cell):
    """(pictures attached to a text cell, how many were left out)."""
    files = table(cell.get("attachments")).values()
    pasted = PASTED.findall(cell.get("source", "")) if cell.get("cell_type") == "markdown" else []
    given = [*(item for kinds in files for item in table(kinds).items()), *pasted]
    every = [picture(*item, PHOTO) for item in given]
    photos = [shown for shown in every if shown][:PHOTOS]
    return photos, len(every) - len(photos)


def plots(notebook):
    """The PNG outputs of a notebook that look like such."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()) or ():
            png = table(table(output).get("data")).get("image/png")
            if shown := picture("image/png", png, PLOT):
                yield shown
