"""A class of more than 110 by program, marked twice: at once, and in two parts in another order.

Honest in forty styles, sloppy, unlucky, and every hostile one of the tests, with the limits that
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


def sloppy(folder, master):
    """Right answers, handed in as they come; {student: (points, flags that must be there)}."""
    text = json.dumps(solved(master))
    files = [  # student, file, content, flags
        ("doejane", "doejane_LATE_123_4567_laplace.ipynb", text, "late"),
        ("li (124)", "li_124_4568_laplace-1.ipynb", text, "submissions of li"),
        ("li (125)", "li_125_4570_laplace.ipynb", text, "submissions of li"),
        ("Zoë Ü", "Zoë Ü_1235_assignsubmission_file_laplace.ipynb", text),
        ("bbstudent", "Sheet 1_bbstudent_attempt_2026-11-02-18-30-11_laplace.ipynb", text),
        ("utf-16", "utf-16.ipynb", text.encode("utf-16")),
        ("crlf", "crlf.ipynb", text.replace("\n", "\r\n")),
        ("007123", "007123.ipynb", text),
        ("constructor", "constructor.ipynb", text),
        ("O'Brien", "O'Brien.ipynb", text),
        ("O_Brien-e6e624964c", "O_Brien-e6e624964c.ipynb", text),
        ("paper", "paper.pdf", "%PDF-1.4", "renamed file", "a PDF"),
        ("login", "login.ipynb", "<!doctype html>", "a web page"),
    ]
    for _, name, content, *_ in files:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    nothing = ("paper", "login")
    return {s: (0 if s in nothing else hostile.FULL, flags) for s, _, _, *flags in files}


def write(folder, master):
    expected = hostile.write(folder, master, port=9) | attacks.write(folder, master)
    expected |= hostile.notebooks(folder, master, hostile.ENDLESS)
    expected |= attacks.write_endless(folder, master) | sloppy(folder, master)
    for name in honest.STYLES:
        notebook = solved(master)
        honest.change(notebook, name)
        (folder / f"honest {name}.ipynb").write_text(json.dumps(notebook))
        expected[f"honest {name}"] = (hostile.FULL, ())
    assert unlucky.unlucky.__name__ in expected and len(expected) > 110
    return expected


def complaints(results, expected):
    """What is wrong with the marks of a run."""
    for student in expected.keys() | results.keys():
        points, flags = expected.get(student, ("nobody", ()))
        result = results.get(student, {"scores": {}, "flags": ["no result"]})
        found = sum(score or 0 for score in result["scores"].values())
        if found != points or any(not any(f in g for g in result["flags"]) for f in flags):
            yield f"{student}: {found} points, not {points}, {result['flags']}, not {flags}"


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
