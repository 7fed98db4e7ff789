"""Honest students in thirty styles get full marks and no flag."""

import json

import pytest

import honest
from assignments.grader import run as runner
from assignments.grader import sandbox
from assignments.grader.check import solved

pytestmark = pytest.mark.usefixtures("bubblewrap")
PATIENT = sandbox.Limits(cell_seconds=120, total_seconds=900)  # on a busy machine, too


@pytest.fixture(scope="module")
def graded(master, light, tmp_path_factory):
    """{style: (questions that it answers, the result of the notebook that it is in)}"""
    folder, out = tmp_path_factory.mktemp("SUBMISSIONS"), tmp_path_factory.mktemp("honest")
    shared = honest.notebooks()
    for number, names in enumerate(shared):
        notebook = solved(master)
        for name in names:
            honest.change(notebook, name)
        (folder / f"student {number}.ipynb").write_text(json.dumps(notebook))
    results = runner.grade("laplace", folder, out, light, PATIENT, jobs=2)
    return {name: results[f"student {n}"] for n, names in enumerate(shared) for name in names}


@pytest.mark.parametrize("name", honest.STYLES)
def test_honest_styles_get_full_marks(graded, name):
    result = graded[name]
    assert result["messages"] == {}, result["log"]
    allowed = {flag for flags in honest.MENTIONS.values() for flag in flags}
    assert set(result["flags"]) <= allowed


def test_every_style_is_there():
    assert len(honest.STYLES) >= 30
    assert sorted(n for names in honest.notebooks() for n in names) == sorted(honest.STYLES)
