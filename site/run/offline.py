"""The site without network: its service worker, and the whole of it as a zip.

PYTHONPATH=site python -m run.offline SITE ZIP    pack a built site; http.server serves it
"""

import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path

KEPT = set(".html .ipynb .css .js .mjs .json .py .woff .woff2 .svg .png .ico".split())
BUTTONS = {f"_run/{name}.js" for name in "cells editor offline page panel results running".split()}
BUTTONS |= {"_run/cells.css"}
README = """The book, to be read and run without network.

Unpack, open a terminal in this folder, and say

    python -m http.server --bind 127.0.0.1 8000

Then open http://127.0.0.1:8000 in a browser. (Opened as files, without a server, the pages can be
read, but browsers do not let cells run.)
"""


def digest(path):
    """A short hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def hashes(site):
    """A short hash of each file that the service worker may know."""
    return {
        path.relative_to(site).as_posix(): digest(path)
        for path in sorted(site.rglob("*"))
        if path.is_file() and path.name not in {"sw.js", "objects.inv"}
    }


def is_shell(path):
    """Does every page need this file, or the search? What runs cells is loaded when they run."""
    elsewhere = ("chapters/", "downloads/", "_images/", "_run/")
    return not path.startswith(elsewhere) or path in BUTTONS


def write_service_worker(site):
    """Fill ``sw.js`` with the files of the site; its version is the hash of all of them.

    Pages and what runs in them carry the version, so that both can tell whether they are of one.
    """
    version = hashlib.sha256(json.dumps(hashes(site)).encode()).hexdigest()[:16]
    for path in [*site.rglob("*.html"), site / "_run" / "runtime.json"]:
        text = path.read_text(encoding="utf-8")
        text = text.replace("<html", f'<html data-book="{version}"', 1)
        path.write_text(text.replace('"book": ""', f'"book": "{version}"'), encoding="utf-8")
    files = hashes(site)
    python = {path: mark for path, mark in files.items() if path.startswith("_run/pyodide/")}
    python = {path: mark for path, mark in python.items() if not path.endswith(".json")}
    book = {p: files[p] for p in files if p not in python and Path(p).suffix in KEPT}
    shell = [path for path in book if is_shell(path)]
    code = (site / "_run" / "sw.js").read_text(encoding="utf-8").replace("@VERSION@", version)
    for name, value in {"BOOK": book, "SHELL": shell, "PYTHON": python}.items():
        code = re.sub(rf"/\*@{name}@\*/ (\[\]|\{{\}})", lambda _, v=value: json.dumps(v), code)
    (site / "_run" / "sw.js").unlink()
    (site / "sw.js").write_text(code, encoding="utf-8")
    return version


def pack(site, target):
    """The site as a zip, with a word on how to read it."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("dpnotes/README.txt", README)
        for path in sorted(site.rglob("*")):
            if path.is_file() and path.name != ".built":
                archive.write(path, f"dpnotes/{path.relative_to(site).as_posix()}")


if __name__ == "__main__":
    site, target = map(Path, sys.argv[1:])
    if not (site / "sw.js").exists():
        sys.exit(f"there is no finished site in {site}: run `make book` first")
    pack(site, target)
    print(f"{target}: {target.stat().st_size / 1e6:.0f} MB")
