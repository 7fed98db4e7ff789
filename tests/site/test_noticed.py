"""Change a number on a page and something notices: each printed output and each glued number is
compared with a new run, and each function that a page calls is called by a test of the package or
of the claims.
"""

import ast
import os
import re
import subprocess
import sys
from functools import cache

import nbformat
import pytest

from checks import lint
from machine import ROOT

COMPARED = {"text/plain", "text/html"}
EXECUTED = sorted((ROOT / "_build" / "jupyter_execute" / "chapters").glob("*.ipynb"))
PAGES = sorted((ROOT / "chapters").glob("*.md"))
GLUED = re.compile(r"\{glue:text\}`([^`:]+)")


def code_of(file):
    """The cells of code of a notebook."""
    cells = nbformat.read(file, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]


def test_the_site_was_built_from_executed_notebooks_whose_cells_are_all_compared():
    assert EXECUTED, "no executed notebooks: run `make book`"
    for file in EXECUTED:
        for cell in code_of(file):
            said = f"{cell.source} {cell.metadata.get('tags')}".lower()
            assert cell.execution_count, file
            assert not re.search("nbval|pytest_validate|raises-exception", said), file
            for output in cell.outputs:
                assert set(output.get("data", {})) <= COMPARED, file


def small(file, printed):
    """A notebook whose only cell claims to have printed this."""
    output = nbformat.v4.new_output("stream", text=printed)
    code = nbformat.v4.new_code_cell("print(round(1 / 3, 4))", outputs=[output], execution_count=1)
    spec = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=[code], metadata=spec), file)


def test_nbval_passes_on_a_true_number_and_fails_on_a_changed_one_and_a_changed_figure(tmp_path):
    """Figures are inline SVG, so they are compared too, unlike images."""
    small(tmp_path / "true.ipynb", "0.3333\n")
    small(tmp_path / "changed.ipynb", "0.3334\n")
    figures = [file for file in EXECUTED if "dpn-figure" in file.read_text()]
    file = min(figures, key=lambda file: file.stat().st_size)
    text = file.read_text()
    thinner = re.sub(r"(stroke-width: )0\.8", r"\g<1>0.7", text, count=1)
    assert thinner != text
    (tmp_path / "figure.ipynb").write_text(thinner)
    command = [sys.executable, "-m", "pytest", "-p", "tests.quick_nbval", "-p", "nbval", "--nbval"]
    command += ["--nbval-current-env", "-q", "-rf", "--nbval-kernel-startup-timeout=900"]
    command += ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    failed = set(re.findall(r"^FAILED (\w+)\.ipynb::", done.stdout, re.M))
    assert failed == {"changed", "figure"} and "0.3334" in done.stdout, done.stdout


@pytest.mark.parametrize("file", EXECUTED, ids=lambda file: file.stem)
def test_every_number_in_the_text_is_an_output_that_is_compared(file):
    """A glued value that the executed notebook does not hold could change without being seen."""
    held = {
        output["metadata"]["scrapbook"]["name"]
        for cell in code_of(file)
        for output in cell.outputs
        if "scrapbook" in output.get("metadata", {})
    }
    page = ROOT / "chapters" / f"{file.stem}.md"
    used = set(GLUED.findall(page.read_text(encoding="utf-8"))) if page.exists() else set()
    assert used <= held


def called(tree):
    """The names of `dpnotes` that a piece of code uses: as ``dp.name``, of a module, imported; but
    neither modules nor constants."""
    owners, names = {"dp", "dpnotes"}, set()
    for node in ast.walk(tree):
        module = getattr(node, "module", None) or ""
        if isinstance(node, ast.ImportFrom) and module.split(".")[0] == "dpnotes":
            owners |= {each.asname or each.name for each in node.names}
            if module != "dpnotes.plotting":  # it has its own tests
                folder = ROOT / module.replace(".", "/")
                mine = {each.name for each in node.names}
                names |= {name for name in mine if not (folder / f"{name}.py").exists()}
    for node in ast.walk(tree):
        owner = getattr(node.value, "id", None) if isinstance(node, ast.Attribute) else None
        if owner in owners - {"plotting"}:
            names.add(node.attr)
    return {name for name in names if not name.isupper()}


@cache
def in_tests():
    """What the tests of the package and of the claims use."""
    files = [*(ROOT / "tests" / "claims").glob("*.py"), *(ROOT / "tests" / "package").glob("*.py")]
    return {name for file in files for name in called(ast.parse(file.read_text(encoding="utf-8")))}


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_every_function_a_page_calls_is_called_by_a_test(file):
    code = [line for _, lines in lint.Page.read(file).cells() for line in lines]
    tree = ast.parse("\n".join(line for line in code if not line.startswith(("%", "!"))))
    assert called(tree) <= in_tests()


def test_a_function_without_a_test_would_be_seen():
    assert not called(ast.parse("dp.kl(p, q)\ndp.never_tested(p)")) <= in_tests()
