"""Change a number on a page and something notices: each printed output and each glued number is
compared with a new run (here by nbval's own comparison, without the run), and each function that a
page calls is called by a test of the package or of the claims.
"""

import ast
import copy
import re
from functools import cache

import nbval.plugin
import pytest
from _pytest.config.argparsing import Parser
from nbval.plugin import IPyNbFile

import lint
from conftest import ROOT

EXECUTED = sorted((ROOT / "_build" / "jupyter_execute" / "chapters").glob("*.ipynb"))
PAGES = sorted((ROOT / "chapters").glob("*.md"))
DIGIT = re.compile(r"\d(?!.*\d)", re.S)  # the last one
GLUED = re.compile(r"\{glue:text\}`([^`:]+)")


@pytest.fixture
def compared(request):
    """The cells of an executed notebook as `make test` compares them; the plugin itself is loaded
    by those who run notebooks alone."""
    parser = Parser(_ispytest=True)
    nbval.plugin.pytest_addoption(parser)
    for name, value in vars(parser.parse([])).items():
        if not hasattr(request.config.option, name):
            setattr(request.config.option, name, value)

    def read(file):
        return list(IPyNbFile.from_parent(request.session, path=file).collect())

    return read


def changed(text):
    """`text` with its last digit one larger (9 becomes 0); None if it has no digit."""
    found = DIGIT.search(text)
    if found is None:
        return None
    return text[: found.start()] + str((int(found[0]) + 1) % 10) + text[found.end() :]


def planted(outputs):
    """The outputs of a cell, once for each text in them that has a digit, that digit changed."""
    for i, output in enumerate(outputs):
        for kind, text in {**output.get("data", {}), "stream": output.get("text", "")}.items():
            other = changed(text)
            if other is not None:
                copied = copy.deepcopy(outputs)
                if kind == "stream":
                    copied[i]["text"] = other
                else:
                    copied[i]["data"][kind] = other
                yield copied


def test_something_was_built():
    assert EXECUTED, "no executed notebooks: run `make book`"


@pytest.mark.parametrize("file", EXECUTED, ids=lambda file: file.stem)
def test_a_changed_digit_of_any_output_is_noticed(file, compared):
    cells = compared(file)
    count = 0
    for cell in cells:
        assert cell.options["check"] and not cell.options["skip"], cell.name
        assert cell.compare_outputs(cell.cell.outputs, cell.cell.outputs), cell.name
        for outputs in planted(cell.cell.outputs):
            assert not cell.compare_outputs(outputs, cell.cell.outputs), cell.name
            count += 1
    assert count


def test_a_lost_output_is_noticed(compared):
    file = max(EXECUTED, key=lambda file: file.stat().st_size)
    cell = next(cell for cell in compared(file) if cell.cell.outputs)
    assert not cell.compare_outputs(cell.cell.outputs[1:], cell.cell.outputs)


@pytest.mark.parametrize("file", EXECUTED, ids=lambda file: file.stem)
def test_every_number_in_the_text_is_an_output_that_is_compared(file, compared):
    """A glued value that the executed notebook does not hold could change without being seen."""
    held = {
        output["metadata"]["scrapbook"]["name"]
        for cell in compared(file)
        for output in cell.cell.outputs
        if "scrapbook" in output.get("metadata", {})
    }
    page = ROOT / "chapters" / f"{file.stem}.md"
    used = set(GLUED.findall(page.read_text(encoding="utf-8"))) if page.exists() else set()
    assert used <= held


def called(tree):
    """The names of `dpnotes` that a piece of code uses: as ``dp.name``, of a module, imported."""
    owners = {"dp", "dpnotes"}
    for node in ast.walk(tree):
        module = getattr(node, "module", None) or ""
        if isinstance(node, ast.ImportFrom) and module.split(".")[0] == "dpnotes":
            owners |= {each.name for each in node.names} - {"plotting"}  # it has its own tests
            if module != "dpnotes.plotting":
                yield from (each.name for each in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in owners:
                yield node.attr


@cache
def in_tests():
    """What the tests of the package and of the claims use."""
    files = [*(ROOT / "tests" / "claims").glob("*.py"), *(ROOT / "tests" / "package").glob("*.py")]
    return {name for file in files for name in called(ast.parse(file.read_text(encoding="utf-8")))}


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.stem)
def test_every_function_a_page_calls_is_called_by_a_test(file):
    code = [line for _, lines in lint.Page.read(file).cells() for line in lines]
    tree = ast.parse("\n".join(line for line in code if not line.startswith(("%", "!"))))
    assert set(called(tree)) <= in_tests()


def test_a_function_without_a_test_would_be_seen():
    assert not set(called(ast.parse("dp.kl(p, q)\ndp.never_tested(p)"))) <= in_tests()
