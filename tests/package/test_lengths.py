"""Files and functions are as short as CONTRIBUTING says; the longer ones are named, to be split."""

import ast
import re
import subprocess

import pytest

from machine import ROOT

FILE, FUNCTION = 300, 40  # lines
LONG_FILES = {
    "site/carry/slides.py",
    "site/course/__init__.py",
}
LONG_FUNCTIONS = {"assignments/grader/run.py:grade"}


def sources():
    """What is kept in this tree, where it is a clone, but for tests."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    names = [name for name in listed.splitlines() if re.search(r"\.(py|js|mjs)$", name)]
    if not names:
        pytest.skip("not a clone: which files are the project's is not known")
    return {name: (ROOT / name).read_text() for name in names if not name.startswith("tests/")}


def long_functions(text):
    """Names of functions of more than so many lines, without their docstrings."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            if node.end_lineno - first.lineno >= FUNCTION:
                yield node.name


def test_files_are_short():
    long = {name for name, text in sources().items() if text.count("\n") > FILE}
    assert long <= LONG_FILES, long - LONG_FILES


def test_functions_are_short():
    found = {
        f"{name}:{function}"
        for name, text in sources().items()
        if name.endswith(".py")
        for function in long_functions(text)
    }
    assert found <= LONG_FUNCTIONS, found - LONG_FUNCTIONS


def test_a_long_function_is_found():
    lines = "    x = 1\n"
    assert list(long_functions("def f():\n" + lines * 41)) == ["f"]
    assert list(long_functions("def f():\n    '''A.\n\n    B.'''\n" + lines * 40)) == []
