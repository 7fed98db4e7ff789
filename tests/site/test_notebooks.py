"""nbval compares the executed notebooks of the site; here it is seen to catch a changed number."""

import json
import os
import re
import subprocess
import sys

import pytest

from machine import ROOT

EXECUTED = sorted((ROOT / "_build" / "jupyter_execute").rglob("*.ipynb"))


def cells(file):
    return [c for c in json.loads(file.read_text())["cells"] if c["cell_type"] == "code"]


def nbval(folder):
    """The files in a folder, and whether nbval says that a cell of theirs failed."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.quick_nbval", "-p", "nbval", "--nbval"]
    command += ["--nbval-current-env", "-q", "-rf", "--nbval-kernel-startup-timeout=900"]
    command += ["-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    failed = set(re.findall(r"^FAILED (\S+\.ipynb)::", done.stdout, re.M))
    assert done.returncode == bool(failed), done.stdout
    return {file.name: file.name in failed for file in folder.glob("*.ipynb")}, done.stdout


def small(file, output):
    """A two-cell notebook whose second cell claims to have printed `output`."""
    stream = {"output_type": "stream", "name": "stdout", "text": output}
    code = {"cell_type": "code", "metadata": {}}
    notebook = {
        "cells": [
            {**code, "source": "x = 1 / 3", "outputs": [], "execution_count": 1, "id": "a"},
            {
                **code,
                "source": "print(round(x, 4))",
                "outputs": [stream],
                "execution_count": 2,
                "id": "b",
            },
        ],
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    file.write_text(json.dumps(notebook))


def test_the_site_was_built_from_executed_notebooks():
    assert EXECUTED, "no executed notebooks: run `make book`"
    for file in EXECUTED:
        assert all(c["execution_count"] for c in cells(file) if "".join(c["source"]).strip()), file


def test_nbval_passes_on_a_true_number_and_fails_on_a_changed_one_and_a_changed_figure(tmp_path):
    """Figures are inline SVG, so they are compared too, unlike images."""
    small(tmp_path / "true.ipynb", "0.3333\n")
    small(tmp_path / "changed.ipynb", "0.3334\n")
    with_figure = [f for f in EXECUTED if "dpn-figure" in f.read_text()]
    if not with_figure:
        pytest.fail("no page with a figure was built")
    file = min(with_figure, key=lambda f: f.stat().st_size)
    text = file.read_text()
    copy = tmp_path / file.name
    copy.write_text(re.sub(r"(stroke-width: )0\.8", r"\g<1>0.7", text, count=1))
    assert copy.read_text() != text
    failed, said = nbval(tmp_path)
    assert failed == {"true.ipynb": False, "changed.ipynb": True, copy.name: True}
    assert "0.3334" in said
