"""Marks by hand survive spreadsheets, absences, second thoughts and mistakes."""

import json
from types import SimpleNamespace

import pytest

from assignments.grader import marks, report, run, sandbox, summary

Q = [SimpleNamespace(id="2a", points=6.0, manual=True, answer="", rubric=""),
     SimpleNamespace(id="1a", points=2.0, manual=False)]  # fmt: skip
MASTER = SimpleNamespace(name="laplace", questions=Q)
STUDENTS = ["0012345", "ada", "ben", "=cmd"]


def stored(out, marked):
    marks.store(out, MASTER, {"2a": marked}, STUDENTS)
    return out / "by-hand" / "2a.csv"


def read(out):
    return marks.collect(out, MASTER, STUDENTS)["2a"]


def test_what_is_stored_is_read(tmp_path):
    given = {"ada": (5.5, 'nice; but "why"?'), "0012345": (0.0, ""), "=cmd": (6.0, "")}
    stored(tmp_path, given)
    assert {s: m for s, m in read(tmp_path).items() if m != (None, "")} == given


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_spreadsheets_may_save_as_they_like(tmp_path, separator, encoding):
    file = stored(tmp_path, {})
    lines = ["student;points;of;comment", "12345;4;6;gut für dich", 'ada;"5,5";6;']
    text = "\r\n".join(line.replace(";", separator) for line in lines)
    file.write_bytes((text + "\r\n").encode(encoding))
    found = read(tmp_path)
    assert found["0012345"] == (4.0, "gut für dich")
    assert found["ada"] == (5.5, "")


@pytest.mark.parametrize("bad", ["60", "-4", "nan", "inf", "six", "5.5.5"])
def test_impossible_marks_are_refused_by_their_row(tmp_path, bad):
    file = stored(tmp_path, {"ada": (5.0, "")})
    before = file.read_text(encoding="utf-8-sig").replace("ben,,", f"ben,{bad},")
    file.write_text(before)
    with pytest.raises(ValueError, match=r"2a\.csv, row 4, ben, points: .*from 0 to 6"):
        read(tmp_path)
    assert file.read_text() == before


def test_absent_students_keep_their_marks(tmp_path):
    stored(tmp_path, {"ada": (5.0, "well done"), "ben": (2.0, "")})
    marks.store(tmp_path, MASTER, {"2a": read(tmp_path)}, ["ben"])
    assert read(tmp_path)["ada"] == (5.0, "well done")


def test_every_file_that_is_written_over_is_kept(tmp_path):
    file = stored(tmp_path, {"ada": (5.0, "")})
    for mark in (4.0, 3.0):
        stored(tmp_path, {"ada": (mark, "")})
    kept = sorted(p.read_text(encoding="utf-8-sig") for p in (file.parent / "backup").iterdir())
    assert [("ada,5" in text, "ada,4" in text) for text in kept] == [(False, True), (True, False)]
    stored(tmp_path, {"ada": (3.0, "")})
    assert len(list((file.parent / "backup").iterdir())) == 2, "nothing changed, nothing to keep"


def test_marks_in_grades_csv_count_once_and_conflicts_show(tmp_path):
    stored(tmp_path, {"ada": (5.0, "")})
    table = tmp_path / "grades.csv"
    table.write_text("student,2a\nada,5\nben,3\n")
    assert read(tmp_path)["ben"] == (3.0, "")
    table.write_text("student,2a\nada,4\n")
    assert read(tmp_path)["ada"] == (4.0, ""), "a correction in the table"
    own = tmp_path / "by-hand" / "2a.csv"
    own.write_text("student,points,of,comment\nada,6,6,\n")
    with pytest.raises(ValueError, match="2a, ada: 6 in by-hand/2a.csv and 4 in grades.csv"):
        read(tmp_path)


def test_a_folder_of_results_belongs_to_one_assignment(tmp_path):
    report.claim(tmp_path, "laplace")
    report.claim(tmp_path, "laplace")
    with pytest.raises(ValueError, match="OUT .*'laplace', not of 'gaussian'"):
        report.claim(tmp_path, "gaussian")


@pytest.mark.parametrize("text", ["[]", "5", "null", "{", '{"fingerprint": 1}'])
def test_a_spoiled_result_is_made_again(tmp_path, text):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "ada.json").write_text(text)
    assert report.remembered(tmp_path, "ada", "x") is None
    assert report.seconds(tmp_path) == 0


def result(student, **changes):
    return {"student": student, "file": "a.ipynb", "scores": {"2a": None, "1a": 2.0},
            "messages": {}, "answers": {"2a": "$x_1$ <script>"}, "plots": [], "flags": [],
            "log": "", **changes}  # fmt: skip


def test_feedback_summary_and_imports(tmp_path):
    results = [result("ada"), result("ben", scores={"2a": None, "1a": 0.0}, messages={"1a": "log"})]
    collected = {"2a": {"ada": (5.5, "clear & short")}}
    options = run.Options(roster={"ada": "Ada L", "eve": "Eve"}, footer=report.median)
    report.everything(tmp_path, MASTER, results, collected, options)
    ada = (tmp_path / "feedback" / "ada.html").read_text()
    assert "5.5 of 6<td>clear &amp; short" in ada and "7.5 of 8<td>class median 7.5" in ada
    ben = (tmp_path / "feedback" / "ben.html").read_text()
    assert "not marked yet" in ben and "total" not in ben
    text = (tmp_path / "summary.html").read_text()
    assert "Missing (1)" in text and "eve" in text and "Not on the list of students (1)" in text
    assert "1 times: log" in text
    assert (tmp_path / "canvas.csv").read_text().splitlines()[1:] == [
        "Points Possible,,,,,8", "Ada L,,,ada,,7.5",
    ]  # fmt: skip
    assert (tmp_path / "moodle.csv").read_text().splitlines()[1:] == ["ada,7.5,clear & short"]
    page = (tmp_path / "by-hand" / "2a.html").read_text()
    assert "&lt;script&gt;" in page and '<span class="math inline">x_1</span>' in page


def test_histogram_counts_everyone():
    bars = summary.histogram(Q[0], [0, 0, 3, 6, 6, 6])
    assert [line.split()[-1] for line in bars.removeprefix("<pre>").splitlines()][2] == "1"
    assert bars.count("\n") == 4 and bars.endswith("3</pre>")


def test_limits_are_plain_numbers():
    assert json.loads(sandbox.Limits().of_process())["NPROC"] == 16
