"""The Python of the pages is checked, complete, and its absence is said plainly. No network."""

import json
import zipfile

import pytest

import cells
import offline
import runtime

LOCK = {
    name: {"name": name, "file_name": f"{name}.whl", "depends": depends, "imports": [name],
           "sha256": runtime.sha256(name.encode())}
    for name, depends in {"numpy": [], "scipy": ["numpy"]}.items()
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with both wheels, and no way to fetch any."""
    monkeypatch.setattr(runtime, "OFFERED", ("scipy",))
    for source in ("fetch_from_server", "fetch_from_pypi"):
        monkeypatch.setattr(runtime, source, unreachable)
    for name in LOCK:
        (tmp_path / f"{name}.whl").write_bytes(name.encode())
    return tmp_path


def unreachable(folder, missing):
    raise OSError("no network")


unreachable.__name__ = "unreachable"


def test_complete_cache_needs_no_network(folder):
    assert runtime.fetch(LOCK, folder) is None


def test_file_with_another_hash_is_refused(folder):
    (folder / "numpy.whl").write_bytes(b"something else")
    with pytest.raises(runtime.Unavailable, match="could not fetch numpy .*no network"):
        runtime.fetch(LOCK, folder)


def test_another_lock_file_is_refused(tmp_path):
    (tmp_path / "node_modules" / "pyodide").mkdir(parents=True)
    (tmp_path / "node_modules" / "pyodide" / "pyodide-lock.json").write_text("{}")
    with pytest.raises(runtime.Unavailable, match="not the lock file"):
        runtime.read_lock(tmp_path)


def test_missing_core_is_said(tmp_path):
    with pytest.raises(runtime.Unavailable, match="npm"):
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
    assert "pandas" in modules["dpnotes.surveys"]
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
    facts = runtime.install_python(tmp_path / "pyodide", LOCK)
    small = json.loads((tmp_path / "pyodide" / "pyodide-lock.json").read_text())["packages"]
    assert set(small) == {"numpy", "scipy", "dpnotes", "statsmodels"}
    for name, entry in small.items():
        data = (tmp_path / "pyodide" / facts["files"][name]).read_bytes()
        assert entry["sha256"] == runtime.sha256(data)


def test_site_without_python_says_so(tmp_path):
    runtime.install(tmp_path, None)
    assert json.loads((tmp_path / "_run" / "runtime.json").read_text()) == {"available": False}
    assert not (tmp_path / "_run" / "pyodide").exists()


def test_what_python_keeps_beside_the_scripts_is_left_out(tmp_path):
    for place in ("site/run", "out/_run"):
        (tmp_path / place / "__pycache__").mkdir(parents=True)
        (tmp_path / place / "__pycache__" / "shell.pyc").touch()
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
        (tmp_path / "page.html").write_text(text)
        versions.append(offline.write_service_worker(tmp_path))
        code = (tmp_path / "sw.js").read_text()
        assert "@" not in code and versions[-1] in code and '"page.html"' in code
    assert versions[0] == versions[1] != versions[2]
