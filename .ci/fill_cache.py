"""For a CI behind a wall: fill the cache of the pages' Python where Pyodide's server is shut out.

A package on PyPI carries the same files; only those that have the hash of Pyodide's lock are taken.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "site"))

import build
import runtime

CARRIER = "open_webui==0.12.4"  # 106 MB; the files lie in its open_webui/frontend/pyodide
CARRIER_HASH = "02e9caba96234db3fa17a92e56163b3f7f2b8ca8227fa886b85c178d696483f6"


def fill(folder, missing):
    """Take the missing wheels out of the carrier."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "download", CARRIER, "--no-deps", "--quiet"]
        command += ["--only-binary", ":all:", "--python-version", "3.12", "--dest", scratch]
        subprocess.run(command, check=True)
        carrier = next(Path(scratch).glob("*.whl"))
        if runtime.sha256(carrier.read_bytes()) != CARRIER_HASH:
            sys.exit(f"{carrier.name} is not the file that is expected")
        with zipfile.ZipFile(carrier) as archive:
            for entry in missing:
                data = archive.read(f"open_webui/frontend/pyodide/{entry['file_name']}")
                if runtime.sha256(data) == entry["sha256"]:
                    (folder / entry["file_name"]).write_bytes(data)


def main():
    """Only if something is missing and the server does not give it."""
    build.install_node_modules(runtime.ROOT)
    lock, folder = runtime.read_lock(), runtime.cache_folder()
    try:
        runtime.fetch(lock, folder)
    except runtime.Unavailable as problem:
        print(f"{problem}; from PyPI instead", file=sys.stderr)
        fill(folder, runtime.missing(lock, folder))


if __name__ == "__main__":
    main()
