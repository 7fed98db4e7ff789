"""What a package index shows and what is installed: one version, a README that stands alone."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from importlib.metadata import entry_points

import pytest

import dpnotes as dp
from machine import ROOT

BUILD = "from flit_core import buildapi as b; b.build_sdist('out'), b.build_wheel('out')"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist and the wheel."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(
        ROOT / "dpnotes", tree / "dpnotes", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, tree)
    (tree / "out").mkdir()
    subprocess.run([sys.executable, "-c", BUILD], cwd=tree, check=True, capture_output=True)
    return tree / "out"


def test_one_version(built):
    version = dp.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert (built / f"dpnotes-{version}-py3-none-any.whl").is_file()
    assert (built / f"dpnotes-{version}.tar.gz").is_file()


def test_the_wheel_has_what_it_needs(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        metadata = message_from_bytes(wheel.read(next(n for n in names if n.endswith("METADATA"))))
    assert {"dpnotes/py.typed", "dpnotes/dpnotes.mplstyle"} < names
    assert {name for name in names if name.endswith(".py")} == {
        str(path.relative_to(ROOT)) for path in ROOT.glob("dpnotes/**/*.py")
    }
    assert metadata["License-Expression"] == "MIT"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    readme = metadata.get_payload()
    assert readme.startswith("# dpnotes") and not re.search(r"\]\((?!https)", readme)


def test_the_source_archive_builds_by_itself(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "LICENSE",
        "dpnotes/README.md",
        "dpnotes/chapters/erm/bench.csv",
    } < names


def test_the_readme_runs(capsys):
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "dpnotes/README.md").read_text(), re.S)
    exec(code, {})
    [shell] = re.findall(r"`dpnotes (epsilon .*?)`", (ROOT / "dpnotes/README.md").read_text())
    [script] = entry_points(group="console_scripts", name="dpnotes")
    script.load()(shell.split())
    assert "epsilon" in capsys.readouterr().out
