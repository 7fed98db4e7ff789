"""A class of more than 100 by program, marked twice: at once, and in two parts in another order.

Honest in forty styles, unlucky, and every hostile one of the tests, with the limits that
`make grade` has.
"""

import json

import pytest

import attacks
import honest
import hostile
import unlucky
from assignments.grader import run, sandbox
from assignments.grader.check import solved

pytestmark = [
    pytest.mark.usefixtures("bubblewrap"),
    pytest.mark.thorough,
    pytest.mark.timeout(4 * 3600),
]


def write(folder, master):
    expected = hostile.write(folder, master, port=9) | attacks.write(folder, master)
    expected |= hostile.notebooks(folder, master, hostile.ENDLESS)
    expected |= attacks.write_endless(folder, master)
    for name in honest.STYLES:
        notebook = solved(master)
        honest.change(notebook, name)
        (folder / f"honest {name}.ipynb").write_text(json.dumps(notebook))
        expected[f"honest {name}"] = (hostile.FULL, ())
    assert unlucky.unlucky.__name__ in expected and len(expected) > 100
    return expected


def complaints(results, expected):
    """What is wrong with the marks of a run."""
    for student in expected.keys() | results.keys():
        points, flags = expected.get(student, ("nobody", ()))
        result = results.get(student, {"scores": {}, "flags": ["no result"]})
        found = sum(score or 0 for score in result["scores"].values())
        if found != points or any(not any(f in g for g in result["flags"]) for f in flags):
            yield f"{student}: {found} points, not {points}, {result['flags']}, not {flags}"


def test_a_wrong_mark_and_a_missing_flag_are_complaints():
    expected = {"A": (20, ()), "B": (0, ("too large",))}
    right = {"A": {"scores": {"1a": 20}, "flags": []}, "B": {"scores": {}, "flags": ["too large"]}}
    assert list(complaints(right, expected)) == []
    for student, change in (
        ("A", {"scores": {"1a": 19}}),
        ("A", {"scores": {"1a": 20, "1b": 1}}),
        ("B", {"flags": []}),
    ):
        wrong = {**right, student: {**right[student], **change}}
        assert len(list(complaints(wrong, expected))) == 1
    assert len(list(complaints({**right, "C": right["A"]}, expected))) == 1
    assert len(list(complaints({"A": right["A"]}, expected))) == 1


def test_every_mark_is_right_twice(master, light, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    expected, tables = write(folder, master), []
    for jobs, parts in ((1, [(1, 1)]), (2, [(2, 2), (1, 2), (1, 1)])):
        out = tmp_path / f"out {jobs}"
        for part in parts:
            options = run.Options(now=0.0, part=part)
            results = run.grade(
                "laplace", folder, out, light, sandbox.Limits(), jobs, options=options
            )
        assert list(complaints(results, expected)) == []
        tables.append((out / "grades.csv").read_bytes())
    assert tables[0] == tables[1]
