"""What people of this ecosystem type works, or says what to type: the table of CONTRIBUTING."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from machine import ROOT

SECTION = (ROOT / "CONTRIBUTING.md").read_text().split("## What you may type")[1].split("\n## ")[0]
TABLE = re.findall(r"^\| `([^`]+)` \| ", SECTION, re.M)
BIN = Path(sys.executable).parent
SAYS = {  # here; the others are rows of .ci/machines
    "pytest --nbval chapters": (4, "python -m tests.due --all notebooks"),
    "pytest --collect-only -q tests/package/test_typed.py": (0, "test_command_works"),
    "jupytext --to ipynb chapters/pure-dp.md --output -": (0, '"cell_type": "code"'),
    "jupyter-book build .": (1, "`make book` builds the book"),
    "uv sync": (2, "unmanaged"),
}
BY_HAND = ("jupyter lab", "pip install", "pre-commit run -a")


@pytest.fixture
def small(tmp_path):
    """A book of one page with the settings of this one: `jupyter-book` stops at its warning."""
    for name in ("site", "_config.yml", "node_modules", "ledger", "package.json", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters" / "references.bib").symlink_to(ROOT / "chapters" / "references.bib")
    (tmp_path / "chapters" / "intro.md").write_text("# A page\n")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: chapters/intro\n")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("typed", SAYS)
def test_command_works_or_says_what_to_type(typed, small):
    program, *arguments = typed.split()
    if program == "jupyter-book":
        arguments.append("--warningiserror")
    folder = small if program in ("jupyter-book", "uv") else ROOT
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [BIN / program, *arguments], cwd=folder, env=environment, text=True, capture_output=True
    )
    status, says = SAYS[typed]
    assert says in done.stdout + done.stderr
    assert bool(done.returncode) == bool(status), done.stderr


def test_every_row_is_run_here_or_by_the_matrix():
    assert len(TABLE) == 10
    rows = [row for row in TABLE if not row.startswith(BY_HAND)]
    assert [row for row in rows if not any(asked.startswith(row) for asked in SAYS)] == []
    matrix = (ROOT / ".ci" / "machines").read_text()
    asked = ("install -q -e .", "-r requirements.txt", "-m build", "jupyter lab", "pre-commit run")
    assert [one for one in asked if one not in matrix] == []


def test_hooks_name_programs_that_are_there():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    targets = (ROOT / "Makefile").read_text()
    for program, *arguments in (hook["entry"].split() for hook in hooks):
        made = program == "make" and f"\n{arguments[0]}:" in targets
        assert made or ((ROOT / program).exists() and (ROOT / arguments[-1]).exists())
