"""A sheet in another language is whole: its text, its code, what a student reads of the marks."""

import ast
import html
import json
import re
import shutil

import pytest
import yaml

from assignments.grader import (
    check,
    judge,
    late,
    marking,
    marks,
    masters,
    report,
    run,
    sandbox,
    words,
)
from honest import EPS, EST, LAP, RR
from machine import ROOT

GERMAN = ROOT / "assignments" / "examples" / "german"
ENGLISH = re.compile(r"\b(the|your|of|not|and|points|day)\b", re.I)
LIMITS = sandbox.Limits(cell_seconds=60, total_seconds=600)


@pytest.fixture(scope="module")
def german():
    return masters.read(GERMAN / "laplace.md")


def test_the_sheet_says_no_english(german):
    for cell in german.student.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"`[^`]*`|\$[^$]*\$|\(\.\./.*?\)", "", cell.source)
            assert not ENGLISH.search(text), cell.source
    assert all(q.rubric.startswith("*Bewertung.*") for q in german.questions if q.manual)
    assert list(check.sums(german)) == []


def skeleton(source):
    """The code of a cell without its texts."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            node.value = ""
    return ast.unparse(tree)


def test_its_code_is_that_of_the_english_one(german):
    other = masters.read(ROOT / "assignments" / "laplace.md")
    own, theirs = (
        [skeleton(c.source) for c in m.notebook.cells if c.cell_type == "code"]
        for m in (german, other)
    )
    assert own == theirs


def test_the_feedback_is_in_the_language_of_the_sheet(german, bubblewrap, tmp_path):
    answers = {
        "1a": EPS + "    raise ValueError('nein')",
        "1b": RR + "    bits",
        "1c": EST + "    return missing_name",
        "2b": LAP + "    return scale * rng.laplace(size=size) if scale > 1 else np.zeros(size)",
        "2c": "x = 1",
    }
    notebook = check.solved(german)
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    stub = next(c for c in german.student.cells if c.id == "3a")
    next(c for c in notebook.cells if c.id == "3a").source = stub.source
    next(c for c in notebook.cells if c.id == "2a").source = german.words.answer
    file = tmp_path / "ada.ipynb"
    file.write_text(json.dumps(notebook), encoding="utf-8")
    result = judge.grade_submission(german, ("ada", file, []), LIMITS, sandbox.Bubblewrap(LIMITS))
    assert len(result["messages"]) >= 6 and result["blank"] == {"2a": True}
    (tmp_path / late.FILE).write_text("student,days\nada,3\n")
    options = run.Options(median=True, late_rule=late.Rule.read("10/2"), now=0.0)
    report.write_reports(
        tmp_path, german, [result], marks.collect(tmp_path, german, ["ada"]), options
    )
    page = (tmp_path / "feedback" / "ada.html").read_text(encoding="utf-8")
    text = re.sub(r"(?s)<style>.*?</style>|<[^>]*>", " ", page)
    text = re.sub(r"name 'missing_name' is not defined", "", html.unescape(text))  # Python's own
    assert not ENGLISH.search(text), ENGLISH.findall(text)
    assert '<html lang="de">' in page and "Fehlt ein `return`?" in text and "Tage zu spät" in text


def test_what_the_grader_says_is_among_the_sentences():
    """A sentence that is changed there and not here would stay English."""
    said = [marking.SLOW.format(30), marking.NO_TIME.format(240)]
    said += [late.Rule(10, g).cost(3, 9, 30)[1] for g in (0, 2)]
    for text in said:
        assert any(
            words.pattern(s).fullmatch(text) for s in words.FEEDBACK if s != "{}: {} of {}"
        ), text


@pytest.mark.parametrize("change, why", [
    (lambda known: known["feedback"].popitem(), "no sentence for"),
    (lambda known: known["feedback"].update(oops="x"), "'oops' is none of its sentences"),
    (lambda known: known.update(greeting="x"), "'greeting' is none of its sentences"),
])  # fmt: skip
def test_a_file_of_sentences_is_complete(tmp_path, change, why):
    known = yaml.safe_load((GERMAN / words.FILE).read_text(encoding="utf-8"))
    shutil.copy(GERMAN / "laplace.md", tmp_path)
    change(known)
    (tmp_path / words.FILE).write_text(yaml.safe_dump(known, allow_unicode=True), encoding="utf-8")
    with pytest.raises(ValueError, match=why):
        masters.read(tmp_path / "laplace.md")
