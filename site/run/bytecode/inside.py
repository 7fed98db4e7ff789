"""Runs inside Pyodide: an archive of Python source becomes one of compiled modules.

The libraries lose their source and their tests. The book's own package keeps its source: the lines
of a traceback come from there.
"""

import importlib.util
import io
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc as with_header
from pathlib import PurePosixPath

LOADER = "pyodide/_package_loader.py"  # it loads all compiled libraries of a package at once
LATER = b"""

def get_dynlibs(archive, suffix, target_dir):
    return []  # each when it is imported: half of SciPy's are not
"""


def compiled(data, name):
    """The archive called `name`, as bytes, with compiled modules."""
    is_library = not name.startswith("dpnotes-")
    home = "/lib/python314.zip/" if name.endswith(".zip") else "/lib/python3.14/site-packages/"
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(bytes(data))) as archive,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as result,
    ):
        for path in archive.namelist():
            if path.endswith("/") or (is_library and is_test(path)):
                continue
            source = archive.read(path)
            source += LATER if path == LOADER else b""
            if not path.endswith(".py") or not is_library:
                result.writestr(zipfile.ZipInfo(path), source, zipfile.ZIP_DEFLATED)
            if path.endswith(".py"):
                code = compile(source, home + path, "exec", dont_inherit=True, optimize=0)
                code = bytes(with_header(code, importlib.util.source_hash(source), False))
                place = path + "c" if is_library else importlib.util.cache_from_source(path)
                result.writestr(zipfile.ZipInfo(place), code, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def is_test(path):
    """Is this a test, or data of one? What `numpy.testing` imports is not."""
    folders = PurePosixPath(path).parts[:-1]
    return "tests" in folders and not path.startswith("numpy/")
