"""The Python that runs in the reader's browser, copied into the site.

The core (Pyodide) comes from npm with the site's other tools; `wheels.py` fetches the packages.
Each file must have the hash that Pyodide's lock file gives, and the lock file the hash that is
written here.

    PYTHONPATH=site python -m run.runtime      compile the packages and keep the result
"""

import ast
import json
import re
import shutil
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from run import bytecode, wheels
from run.wheels import VERSION, Unavailable, cache_folder, sha256
from surroundings import ROOT, copy_scripts

LOCK_HASH = "c963d22858f6bcb8f41586a2142f03905ab370c88ea22a86a2736e95fac2a8f3"
STDLIB = "python_stdlib.zip"
CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", STDLIB)
OFFERED = ("numpy", "scipy", "matplotlib", "pandas", "scikit-learn")
UNUSED = ("fonttools",)  # matplotlib writes PDF and PostScript with it, which no page does
ALWAYS = ("dpnotes",)  # loaded with Python itself, with all that it needs
NOTICE = f"""The folder `pyodide` holds Pyodide {VERSION} and packages for it. Their Python is
compiled and their tests are left out; libraries in WebAssembly are loaded when they are imported.
Nothing else is changed.
Pyodide is under the Mozilla Public License 2.0; its source: https://github.com/pyodide/pyodide
What belongs to whom, and the licences: licences.txt, in the root of the site.
"""
DATA_UTILS = '''"""The table of a data set, without the rest of statsmodels."""

from pathlib import Path
from types import SimpleNamespace

from pandas import read_csv


def load_csv(base_file, csv_name, sep=",", convert_float=False):
    engine = "c" if sep == "," else "python"
    data = read_csv(Path(base_file).with_name(csv_name), sep=sep, engine=engine)
    return data.astype(float) if convert_float else data


def strip_column_names(data):
    return data.rename(columns=lambda name: str(name).strip("'\\""))


def process_pandas(data, endog_idx=0, exog_idx=None, index_idx=None):
    return SimpleNamespace(data=data, names=list(data.columns))
'''


def read_lock(root=ROOT):
    """Pyodide's list of packages, from npm's copy of the core."""
    path = root / "node_modules" / "pyodide" / "pyodide-lock.json"
    if not path.exists():
        raise Unavailable("the npm package `pyodide` is not installed (npm ci)")
    data = path.read_bytes()
    if sha256(data) != LOCK_HASH:
        raise Unavailable(f"{path} is not the lock file of Pyodide {VERSION}")
    return json.loads(data)["packages"]


def closure(lock, names):
    """The packages `names` and all they depend on, but for those that pages don't use, sorted."""
    needed, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name not in needed and name not in UNUSED:
            needed.add(name)
            todo += lock[name]["depends"]
    return sorted(needed)


def write_wheel(path, name, version, files):
    """A wheel of pure Python: the same bytes for the same files."""
    info = f"{name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: dpnotes\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in [*sorted(files), f"{info}/RECORD"])
    files[f"{info}/RECORD"] = record.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(file), data, zipfile.ZIP_DEFLATED)


def package_files(root=ROOT):
    """The package `dpnotes` of this tree, as a dict from path to bytes."""
    folder = root / "dpnotes"
    files = [p for p in folder.rglob("*") if p.suffix in {".py", ".mplstyle", ".csv"}]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def data_files(sets):
    """The data sets that statsmodels ships, without the rest of it."""
    home = Path(find_spec("statsmodels").submodule_search_locations[0]) / "datasets"
    files = {
        "statsmodels/__init__.py": b'"""The data sets of statsmodels, and nothing else of it."""\n',
        "statsmodels/datasets/__init__.py": b"",
        "statsmodels/datasets/utils.py": DATA_UTILS.encode(),
    }
    for name in sets:
        for path in sorted((home / name).glob("*.*")):
            files[f"statsmodels/datasets/{name}/{path.name}"] = path.read_bytes()
    return files


def installed_files(name):
    """A package of pure Python, as it is installed here."""
    home = Path(find_spec(name).submodule_search_locations[0])
    return {p.relative_to(home.parent).as_posix(): p.read_bytes() for p in home.rglob("*.py")}


def data_sets(root=ROOT):
    """Names of the data sets of statsmodels that a page or the package asks for."""
    asked = re.compile(r"from statsmodels\.datasets import (\w+(?:, *\w+)*)")
    paths = [*(root / "chapters").rglob("*.md"), *(root / "dpnotes").rglob("*.py")]
    lists = [name for path in paths for name in asked.findall(path.read_text(encoding="utf-8"))]
    return sorted({name.strip() for names in lists for name in names.split(",")})


def imported(code):
    """Dotted names that Python source imports, anywhere in it; of a wrong source, none."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return set()
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            home = ("dpnotes." if node.level else "") + (node.module or "")
            modules |= {home.strip(".")} | {f"{home}.{a.name}".lstrip(".") for a in node.names}
    return modules


def modules_of(lock, root=ROOT):
    """Which packages must be loaded before a module can be imported: {module: [package, ...]}."""
    modules = {"statsmodels": ["pandas", "statsmodels"], "tqdm": ["tqdm"]}
    for name in closure(lock, OFFERED):
        for module in lock[name]["imports"]:
            modules[module] = [name]
    own = {
        Path(file).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__"): data
        for file, data in package_files(root).items()
        if file.endswith(".py")
    }
    base = [name for name in ("numpy", "scipy") if name in OFFERED]
    for module, data in own.items():
        heads = {name.split(".")[0] for name in imported(data.decode())}
        further = {package for head in heads for package in modules.get(head, [])}
        if module == "dpnotes" or further - set(base):
            modules[module] = sorted({*further, *base, "dpnotes"})
    return modules


def own_wheels(folder, root=ROOT):
    """Write the wheels of this tree; returns {name: entry of the lock, without its file}."""
    own = {
        "dpnotes": (package_files(root), ["numpy", "scipy"]),
        "statsmodels": (data_files(data_sets(root)), ["pandas"]),
        "tqdm": (installed_files("tqdm"), []),
    }
    entries = {}
    for name, (files, depends) in own.items():
        write_wheel(folder / f"{name}-0-py3-none-any.whl", name, "0", files)
        entries[name] = {
            "name": name, "version": "0", "file_name": f"{name}-0-py3-none-any.whl",
            "install_dir": "site", "package_type": "package", "unvendored_tests": False,
            "depends": depends, "imports": [name],
        }  # fmt: skip
    return entries


def prepare(root=ROOT):
    """Fetch what is missing; returns the lock, or raises `Unavailable`."""
    lock = read_lock(root)
    wheels.fetch([lock[name] for name in closure(lock, OFFERED)], cache_folder())
    return lock


def install_python(target, lock, root=ROOT):
    """Write core, wheels, the wheel of `dpnotes` and a small lock; returns what the worker asks."""
    target.mkdir(parents=True)
    core, cache = root / "node_modules" / "pyodide", cache_folder()
    for name in set(CORE) - {STDLIB}:
        shutil.copy(core / name, target)
    with tempfile.TemporaryDirectory() as scratch:
        own = own_wheels(Path(scratch), root)
        packages = {name: dict(lock[name]) for name in closure(lock, OFFERED)}
        places = {name: cache / entry["file_name"] for name, entry in packages.items()}
        places |= {name: Path(scratch) / entry["file_name"] for name, entry in own.items()}
        made = bytecode.write([core / STDLIB, *places.values()], target, core, cache)
    packages |= own
    for name, entry in packages.items():
        file = made[places[name]]
        entry["depends"] = [one for one in entry["depends"] if one not in UNUSED]
        entry |= {"file_name": file.name, "sha256": sha256(file.read_bytes())}
    whole = json.loads((core / "pyodide-lock.json").read_text(encoding="utf-8"))
    small = {**whole, "packages": packages}
    (target / "pyodide-lock.json").write_text(json.dumps(small), encoding="utf-8")
    return {
        "version": VERSION,
        "always": list(ALWAYS),
        "modules": modules_of(lock, root),
        "files": {name: entry["file_name"] for name, entry in packages.items()},
        "depends": {name: entry["depends"] for name, entry in packages.items()},
        "bytes": {path.name: path.stat().st_size for path in sorted(target.iterdir())},
    }


def install(site, lock, root=ROOT):
    """Write ``_run`` of the site: our scripts, and Python itself if there is a `lock`."""
    target = site / "_run"
    for old in ("pyodide", "__pycache__"):
        shutil.rmtree(target / old, ignore_errors=True)
    copy_scripts(root / "site" / "run", target, "reading.py", "standins.py", "shell.py")
    facts = install_python(target / "pyodide", lock, root) if lock else {}
    if lock:
        (target / "NOTICE.txt").write_text(NOTICE, encoding="utf-8")
    facts |= {"available": bool(lock), "book": ""}  # its version is known when all is written
    (target / "runtime.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":  # fill the cache of compiled packages
    with tempfile.TemporaryDirectory() as scratch:
        install_python(Path(scratch) / "pyodide", read_lock())
