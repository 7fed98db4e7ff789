"""The Python of the pages is checked, complete, and its absence is said plainly. No network."""

import json
import zipfile
from pathlib import Path
from shutil import copy

import pytest

from run import bytecode, cells, offline, runtime, wheels

LOCK = {
    name: {"name": name, "file_name": f"{name}.whl", "depends": depends, "imports": [name],
           "sha256": wheels.sha256(name.encode())}
    for name, depends in {"numpy": [], "scipy": ["numpy"]}.items()
}  # fmt: skip
ENTRIES = list(LOCK.values())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with both wheels, and no way to fetch any."""
    monkeypatch.setattr(runtime, "OFFERED", ("scipy",))
    monkeypatch.setattr(wheels, "download", unreachable)
    monkeypatch.setattr(wheels, "download_carrier", unreachable)
    for name in LOCK:
        (tmp_path / f"{name}.whl").write_bytes(name.encode())
    return tmp_path


def unreachable(name):
    raise OSError("no network")


def test_complete_cache_needs_no_network(folder):
    assert wheels.fetch(ENTRIES, folder) is None


def test_a_file_comes_from_the_server_or_out_of_the_package_on_pypi(folder, monkeypatch, capsys):
    """The server breaks off after the first file, and sends another than the one asked for."""
    sent = {"numpy.whl": b"numpy", "scipy.whl": b"a page that asks to log in"}
    monkeypatch.setattr(wheels, "download", sent.pop)
    monkeypatch.setattr(wheels, "download_carrier", lambda scratch: folder / "carrier.zip")
    with zipfile.ZipFile(folder / "carrier.zip", "w") as carrier:
        carrier.writestr(wheels.INSIDE + "scipy.whl", b"scipy")
    (folder / "numpy.whl").write_bytes(b"half")
    (folder / "scipy.whl").unlink()
    wheels.fetch(ENTRIES, folder)
    assert wheels.missing(ENTRIES, folder) == [] and not sent
    assert "scipy.whl has another hash" in capsys.readouterr().err


def test_only_files_with_the_hash_of_the_lock_are_kept(folder, monkeypatch):
    (folder / "numpy.whl").write_bytes(b"something else")
    with pytest.raises(
        wheels.Unavailable, match="server: no network; PyPI: no network.*build again"
    ):
        wheels.fetch(ENTRIES, folder)
    monkeypatch.setattr(wheels, "download_carrier", lambda scratch: folder / "carrier.zip")
    with zipfile.ZipFile(folder / "carrier.zip", "w") as carrier:
        carrier.writestr(wheels.INSIDE + "numpy.whl", b"something else again")
    with pytest.raises(wheels.Unavailable, match=r"PyPI: numpy.whl has another hash"):
        wheels.fetch(ENTRIES, folder)
    assert (folder / "numpy.whl").read_bytes() == b"something else"


def test_a_missing_core_and_another_lock_file_are_refused(tmp_path):
    with pytest.raises(wheels.Unavailable, match="npm"):
        runtime.read_lock(tmp_path)
    (tmp_path / "node_modules" / "pyodide").mkdir(parents=True)
    (tmp_path / "node_modules" / "pyodide" / "pyodide-lock.json").write_text("{}")
    with pytest.raises(wheels.Unavailable, match="not the lock file"):
        runtime.read_lock(tmp_path)


def test_wheel_has_the_same_bytes_each_time(tmp_path):
    for name in ("a.whl", "b.whl"):
        runtime.write_wheel(tmp_path / name, "dpnotes", "0", runtime.package_files())
    assert (tmp_path / "a.whl").read_bytes() == (tmp_path / "b.whl").read_bytes()
    names = zipfile.ZipFile(tmp_path / "a.whl").namelist()
    assert {"dpnotes/__init__.py", "dpnotes/dpnotes.mplstyle", "dpnotes-0.dist-info/RECORD"} <= set(
        names
    )


def test_modules_name_what_must_be_loaded_first():
    modules = runtime.modules_of(runtime.read_lock())
    assert modules["dpnotes"] == ["dpnotes", "numpy", "scipy"]
    assert "matplotlib" in modules["dpnotes.plotting"]
    assert "pandas" in modules["dpnotes.chapters.erm.surveys"]
    assert modules["sklearn"] == ["scikit-learn"]


def test_cell_that_cannot_run_is_known_before():
    modules = runtime.modules_of(runtime.read_lock())
    code = "import math, numpy as np\nfrom dpnotes import plotting\nfrom myst_nb import glue\n"
    assert cells.lacking(code, modules) == []
    assert cells.lacking(code + "import opendp.prelude as odp", modules) == ["opendp"]
    assert cells.lacking("import a b", modules) == []


def test_marks_change_with_the_source_alone():
    first = cells.marks(["x = 1", "y = 2", "x = 1"])
    assert len(set(first)) == 3
    assert cells.marks(["new", "x = 1", "y = 2", "x = 1"])[1:] == first


def test_every_package_is_in_the_small_lock(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(runtime, "cache_folder", lambda: folder)
    monkeypatch.setattr(
        bytecode, "write", lambda sources, target, *_: {s: Path(copy(s, target)) for s in sources}
    )
    facts = runtime.install_python(tmp_path / "pyodide", LOCK)
    small = json.loads((tmp_path / "pyodide" / "pyodide-lock.json").read_text())["packages"]
    assert set(small) == {"numpy", "scipy", "dpnotes", "statsmodels", "tqdm"}
    for name, entry in small.items():
        data = (tmp_path / "pyodide" / facts["files"][name]).read_bytes()
        assert entry["sha256"] == runtime.sha256(data)


def test_python_is_compiled_and_the_books_own_keeps_its_source(tmp_path):
    """By Pyodide itself: a browser that gets source compiles 1,500 files on every page."""
    wheels = {
        "libs": tmp_path / "libs-1-py3-none-any.whl",
        "dpnotes": tmp_path / "dpnotes-0-py3-none-any.whl",
    }
    for name, path in wheels.items():
        files = {"one.py": b"x = 1", "tests/test_one.py": b"assert x", "data.txt": b"text"}
        runtime.write_wheel(
            path, name, "1", {f"{name}/{file}": data for file, data in files.items()}
        )
    target, core = tmp_path / "target", runtime.ROOT / "node_modules" / "pyodide"
    target.mkdir()
    made = bytecode.write(list(wheels.values()), target, core, tmp_path)
    inside = {name: set(zipfile.ZipFile(made[path]).namelist()) for name, path in wheels.items()}
    assert {"libs/one.pyc", "libs/data.txt"} <= inside["libs"]
    assert not any(name.endswith(".py") or "tests" in name for name in inside["libs"])
    assert {"dpnotes/one.py", "dpnotes/__pycache__/one.cpython-314.pyc"} <= inside["dpnotes"]
    names = {path: made[path].name for path in wheels.values()}
    assert all(bytecode.mark_of(path) in name for path, name in names.items())


def test_site_without_python_says_so(tmp_path):
    runtime.install(tmp_path, None)
    facts = json.loads((tmp_path / "_run" / "runtime.json").read_text())
    assert facts == {"available": False, "book": ""}
    assert not (tmp_path / "_run" / "pyodide").exists()


def test_what_lies_beside_the_scripts_is_left_out(tmp_path):
    for place in ("site/run", "out/_run"):
        (tmp_path / place / "__pycache__").mkdir(parents=True)
        (tmp_path / place / "__pycache__" / "shell.pyc").touch()
    (tmp_path / "site/run/runtime.py").touch()
    cells = tmp_path / "out" / "_run" / "cells"  # the build has written them before
    cells.mkdir()
    runtime.install(tmp_path / "out", None, tmp_path)
    left = sorted(path.name for path in (tmp_path / "out/_run").iterdir())
    assert left == ["cells", "runtime.json"]


def test_version_of_the_service_worker_is_that_of_the_files(tmp_path):
    versions = []
    for text in ("one", "one", "two"):
        (tmp_path / "_run").mkdir(exist_ok=True)
        for source in (runtime.ROOT / "site" / "run").glob("sw.js"):
            (tmp_path / "_run" / "sw.js").write_text(source.read_text())
        (tmp_path / "_run" / "runtime.json").write_text('{"book": ""}')
        (tmp_path / "page.html").write_text(f"<html>{text}")
        versions.append(offline.write_service_worker(tmp_path))
        code = (tmp_path / "sw.js").read_text()
        assert "@" not in code and versions[-1] in code and '"page.html"' in code
    assert versions[0] == versions[1] != versions[2]
