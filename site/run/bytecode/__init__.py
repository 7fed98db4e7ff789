"""Python is compiled once, when the site is built, and not again by each reader's browser.

Pyodide and its packages come as source: a browser would compile some 1,500 files on every page
before the first result. Here Pyodide itself, in Node, does it once for each archive. What it makes
is kept beside the fetched files, under the hash of what it was made from.
"""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from surroundings import node_executable

HERE = Path(__file__).resolve().parent


def mark_of(source):
    """Short hash of an archive and of the way it is compiled."""
    made = source.read_bytes() + (HERE / "inside.py").read_bytes()
    return hashlib.sha256(made).hexdigest()[:12]


def name_in_site(source):
    """The name in the site: another content has another name, so that no cache keeps an old one."""
    if source.suffix != ".whl":
        return source.name
    name, version, *tags = source.name.split("-")
    return "-".join([name, version, f"1{mark_of(source)}", *tags[-3:]])


def write(sources, target, core, cache):
    """Put the compiled archives into the folder `target`; returns their paths by source."""
    folder = cache / "bytecode"
    folder.mkdir(parents=True, exist_ok=True)
    kept = {source: folder / f"{mark_of(source)}{source.suffix}" for source in sources}
    jobs = [[str(source), str(made)] for source, made in kept.items() if not made.exists()]
    if jobs:
        command = [node_executable(), str(HERE / "compile.mjs"), str(core)]
        subprocess.run(command, input=json.dumps(jobs), text=True, check=True)
    return {source: shutil.copy(kept[source], target / name_in_site(source)) for source in sources}
