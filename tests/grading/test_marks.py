"""Marks by hand survive spreadsheets, absences, second thoughts and mistakes."""

import csv
import io
import zipfile
from types import SimpleNamespace

import nbformat
import pytest

from assignments.grader import files, judge, marks, report, run, summary, words

Q = [SimpleNamespace(id="2a", points=6.0, manual=True, answer="$y^2$", rubric="", given=""),
     SimpleNamespace(id="1a", points=2.0, manual=False, given="x = 1 < 2")]  # fmt: skip
MASTER = SimpleNamespace(name="laplace", questions=Q, words=words.Words())
STUDENTS = ["0012345", "ada", "ben", "=cmd"]


def result(student, **changes):
    known = {"scores": {"2a": None, "1a": 2.0}, "answers": {"2a": "<p>mine</p>"}}
    return judge.make_result(student, [], **{"file": "a.ipynb", **known, **changes})


def run_once(out, students=STUDENTS, options=run.Options(now=0.0), **changes):  # noqa: B008
    """What one run of the command writes; returns what it says: {sentence: count}."""
    collected = marks.collect(out, MASTER, students)
    results = [result(student, **changes) for student in students]
    said = report.write_reports(out, MASTER, results, collected, options)
    return {what: int(count) for what, count in (line.split(": ") for line in said)}


AGAIN = "answers changed after their mark, mark them again"
ASIDE = "rows that could not be used, see by-hand/set-aside.csv"


def read(out, students=STUDENTS):
    return marks.collect(out, MASTER, students).marks["2a"]


def table(out, *lines, name="2a.csv", head="student,points,of,comment"):
    (out / "by-hand").mkdir(exist_ok=True)
    (out / "by-hand" / name).write_text("\n".join([head, *lines, ""]))


def aside(out):
    """{(student, question, points): why} of the rows that could not be used."""
    found = marks.rows(out / "by-hand" / "set-aside.csv")
    return {(row["student"], row["question"], row["points"]): row["why"] for row in found}


def test_what_is_stored_is_read(tmp_path):
    table(tmp_path, 'ada,5.5,6,"nice; but ""why""?"', "0012345,0,6,", "'=cmd,6,6,")
    run_once(tmp_path)
    marked = {"ada": (5.5, 'nice; but "why"?'), "0012345": (0.0, ""), "=cmd": (6.0, "")}
    assert read(tmp_path) == {**marked, "ben": (None, "")}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_spreadsheets_may_save_as_they_like(tmp_path, separator, encoding):
    run_once(tmp_path)
    lines = ["student;points;of;comment", "12345;4;6;gut für dich", 'ada;"5,5";6;']
    text = "\r\n".join(line.replace(";", separator) for line in lines)
    (tmp_path / "by-hand" / "2a.csv").write_bytes((text + "\r\n").encode(encoding))
    found = read(tmp_path)
    assert found["0012345"] == (4.0, "gut für dich")
    assert found["ada"] == (5.5, "")


@pytest.mark.parametrize("bad", ["60", "-4", "nan", "inf", "six", "5.5.5"])
def test_impossible_marks_are_refused_by_their_row(tmp_path, bad):
    table(tmp_path, "ada,5,6,", f"ben,{bad},6,")
    before = (tmp_path / "by-hand" / "2a.csv").read_text()
    with pytest.raises(ValueError, match=r"2a\.csv, row 3, ben, points: .*from 0 to 6"):
        read(tmp_path)
    assert (tmp_path / "by-hand" / "2a.csv").read_text() == before


def test_a_field_without_end_is_a_complaint(tmp_path):
    (tmp_path / "grades.csv").write_text('student,2a,flags\nada,,"' + "x" * 2**25)
    with pytest.raises(ValueError, match=r"grades\.csv can't be read as a table"):
        read(tmp_path)


def test_absent_students_keep_their_marks(tmp_path):
    table(tmp_path, "ada,5,6,well done", "ben,2,6,")
    run_once(tmp_path)
    run_once(tmp_path, ["ben"])
    assert read(tmp_path, ["ben"])["ada"] == (5.0, "well done")


def test_every_file_that_is_written_over_is_kept(tmp_path):
    for mark in (5, 4, 3, 3):
        table(tmp_path, f"ada,{mark},6,")
        run_once(tmp_path)
    kept = [p.read_text(encoding="utf-8-sig") for p in (tmp_path / "by-hand" / "backup").iterdir()]
    assert all(any(f"ada,{mark}," in text for text in kept) for mark in (5, 4, 3))


def test_marks_in_grades_csv_count_once_and_conflicts_show(tmp_path):
    table(tmp_path, "ada,5,6,")
    run_once(tmp_path)
    grades = tmp_path / "grades.csv"
    grades.write_text("student,2a,1a\nada,5,2\nben,3,2\n")
    assert read(tmp_path)["ben"] == (3.0, "")
    grades.write_text("student,2a,1a\nada,4,2\n")
    assert read(tmp_path)["ada"] == (4.0, ""), "a correction in the table"
    table(tmp_path, "ada,6,6,")
    with pytest.raises(ValueError, match="2a, ada: 6 in by-hand/2a.csv and 4 in grades.csv"):
        read(tmp_path)


def test_a_mark_is_deleted_in_both_tables_or_not_at_all(tmp_path):
    table(tmp_path, "ada,5,6,", "ben,3,6,")
    run_once(tmp_path)
    (tmp_path / "grades.csv").write_text("student,2a,1a\nada,,2\nben,3,2\n")
    with pytest.raises(ValueError, match="2a, ada: deleted in grades.csv, 5 in by-hand/2a.csv"):
        read(tmp_path)
    table(tmp_path, "ada,,6,", "ben,3,6,")
    run_once(tmp_path)
    assert read(tmp_path)["ada"] == (None, "") and read(tmp_path)["ben"] == (3.0, "")
    (tmp_path / "grades.csv").write_text("student,1a\nada,2\nben,2\n")
    assert read(tmp_path)["ben"] == (3.0, ""), "a column that is left out deletes nothing"


CHANGES = "student,points,of,comment,before,comment before"


def digest(of):
    return {"digests": {"2a": of}}


def test_a_mark_belongs_to_the_answer_that_was_marked(tmp_path):
    """Handed in again with another answer, it is to be marked again, and everybody is told."""
    run_once(tmp_path, **digest("one"))
    table(tmp_path, "ada,5,6,good")
    waits = {"answers without a mark by hand, see by-hand/2a.html": 3}
    assert run_once(tmp_path, **digest("one")) == waits and read(tmp_path)["ada"] == (5.0, "good")
    said = run_once(tmp_path, **digest("two"))
    assert said[AGAIN] == 1
    page = (tmp_path / "by-hand" / "2a.html").read_text()
    assert "changed after it was marked: 5 points, good." in page
    rows = {row["student"]: row for row in marks.rows(tmp_path / "grades.csv")}
    assert (
        rows["ada"]["2a"] == rows["ada"]["total"] == "" and "mark it again" in rows["ada"]["flags"]
    )
    assert "mark it again" not in rows["ben"]["flags"]
    assert run_once(tmp_path, **digest("two"))[AGAIN] == 1, "it is said until the answer is marked"
    table(tmp_path, "ada,5,6,good")
    assert AGAIN not in run_once(tmp_path, **digest("two"))
    assert read(tmp_path)["ada"] == (5.0, "good")


def test_marks_from_an_old_page_do_not_count_for_a_new_answer(tmp_path):
    run_once(tmp_path, **digest("one"))
    for _ in range(2):
        run_once(tmp_path, **digest("two"))
    head = CHANGES + ",answer"
    table(tmp_path, "ada,6,6,,,,one", "ben,3,6,,,,two", name="2a-kim.csv", head=head)
    said = run_once(tmp_path, **digest("two"))
    assert said[AGAIN] == 1 and read(tmp_path)["ben"] == (3.0, "")
    assert read(tmp_path)["ada"] == (None, ""), "its first answer was on the page"
    assert "6 points, no comment" in (tmp_path / "by-hand" / "2a.html").read_text()


def test_marking_is_split_and_merged(tmp_path):
    """Two people mark, each saves what was touched; where both were, the second is kept apart."""
    table(tmp_path, "ada,4,6,", "ben,2,6,old")
    run_once(tmp_path)
    table(tmp_path, "ada,6,6,good,4,", "0012345,1,6,,,", name="2a-kim.csv", head=CHANGES)
    table(tmp_path, "ada,5,6,,4,", "ben,2,6,new,2,old", "'=cmd,3,6,,,", name="2a-zoe (1).csv",
          head=CHANGES)  # fmt: skip
    said = run_once(tmp_path)
    found = read(tmp_path)
    assert found["ada"] == (6.0, "good") and found["ben"] == (2.0, "new")
    assert found["0012345"] == (1.0, "") and found["=cmd"] == (3.0, "")
    assert "somebody else was there: 6 'good'" in aside(tmp_path)["ada", "2a", "5"]
    assert said[ASIDE] == 1
    assert not list((tmp_path / "by-hand").glob("2a-*.csv")), "merged, and kept in backup"
    run_once(tmp_path)
    assert len(aside(tmp_path)) == 1, "said again, and not lost"
    (tmp_path / "by-hand" / "set-aside.csv").write_text("student,question,points,comment\n")
    assert ASIDE not in run_once(tmp_path) and aside(tmp_path) == {}


def test_rows_of_nobody_and_double_rows_are_kept_apart(tmp_path):
    table(tmp_path, "ada,5,6,", "ben,2,6,")
    run_once(tmp_path)
    table(tmp_path, "aada,4,6,typo", "1.23E+11,3,6,", "ada,5,6,", "ben,1,6,", "ben,6,6,")
    run_once(tmp_path)
    assert read(tmp_path)["ben"] == (2.0, ""), "as it was"
    assert {key: why.split(" (")[0] for key, why in aside(tmp_path).items()} == {
        ("aada", "2a", "4"): "nobody has this name",
        ("1.23E+11", "2a", "3"): "nobody has this name",
        ("ben", "2a", "1"): "2 rows for ben", ("ben", "2a", "6"): "2 rows for ben",
    }  # fmt: skip
    text = (tmp_path / "by-hand" / "set-aside.csv").read_text(encoding="utf-8-sig")
    text = text.replace("aada,", "kim,").replace("ben,2a,1,,2a.csv,2 rows for ben\n", "")
    (tmp_path / "by-hand" / "set-aside.csv").write_text(text.replace("\r", ""))
    run_once(tmp_path, [*STUDENTS, "kim"])
    assert read(tmp_path)["kim"] == (4.0, "typo"), "the name was mended, the row counts"


def test_automatic_points_are_changed_with_a_reason_only(tmp_path):
    run_once(tmp_path)
    grades = tmp_path / "grades.csv"
    grades.write_text(grades.read_text().replace("ada,a.ipynb,,2", "ada,a.ipynb,,1"))
    run_once(tmp_path)
    assert "overrides.csv" in aside(tmp_path)["ada", "1a", "1"]
    (tmp_path / "overrides.csv").write_text("student,question,points,reason\nada,1a,1,\n")
    with pytest.raises(ValueError, match=r"overrides\.csv, row 2: .*a reason"):
        read(tmp_path)
    (tmp_path / "overrides.csv").write_text("student,question,points,reason\nada,1a,1,by luck\n")
    for score in (2.0, 0.0):  # it survives another marking
        run_once(tmp_path, scores={"2a": None, "1a": score})
        rows = {row["student"]: row["1a"] for row in marks.rows(grades)}
        assert rows["ada"] == "1" and rows["ben"] == f"{score:g}"
        assert aside(tmp_path) == {}
    assert "Corrected by hand: by luck" in (tmp_path / "feedback" / "ada.html").read_text()


def test_changed_points_are_listed(tmp_path):
    changed = "points changed since the last run, see changes/"
    assert changed not in run_once(tmp_path)
    assert run_once(tmp_path, scores={"2a": None, "1a": 0.0})[changed] == 4
    (file,) = (tmp_path / "changes").iterdir()
    assert list(marks.rows(file)[0].values()) == ["0012345", "1a", "2", "0"]


@pytest.mark.parametrize("row", ["7123", "007123", "Zoe\u0308", "ZO\u00cb"])
def test_numbers_and_accents_match(row):
    found = files.Names(["007123", "Zo\u00eb", "ada"]).find(row)
    assert found == ("007123" if row.endswith("7123") else "Zo\u00eb")
    assert files.Names(["7", "07"]).find("007") is None, "two could be meant"


def test_names_of_the_list_of_students_match():
    """Moodle's folders have the name in front, not the number."""
    roster = {"0012": "Jane Doe", "13": "Kim Li", "14": "Kim Li", "15": "", "16": "0012"}
    found = files.Names(roster)
    assert [found.find(name) for name in ("jane doe", "12", "13", "Kim Li", "")] == [
        "0012", "0012", "13", None, None,
    ]  # fmt: skip
    results = [result(name) for name in ("Jane Doe", "13")]
    for each in results:
        each["points"], each["total"] = {q.id: 1 for q in Q}, 1
    nothing = SimpleNamespace(aside=[])
    text = "".join(summary.describe(MASTER, results, roster, nothing))
    assert "Missing (3)" in text and "Not on the list of students (0)" in text


def test_canvas_finds_its_students(tmp_path):
    """By its own number (process_student in lib/gradebook_importer.rb), also against its export."""
    export = tmp_path / "export.csv"
    export.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section,Old (7)\n    Points Possible,,,,,10\n"
        '"García, María",101,u1,mg,A,3\n"Student, Test",909,,,A,\n'
    )
    roster = report.read_roster(export)
    assert roster == {"101": "García, María", "909": "Student, Test"}
    table(tmp_path, "garciamaria,5,6,fine", "zoe,6,6,")
    students = ["garciamaria", "zoe"]
    results = [result("garciamaria", number="101"), result("zoe")]
    for known, row in ((roster, '"García, María",101,,,,7'), ({}, "garciamaria,101,,,,7")):
        collected = marks.collect(tmp_path, MASTER, students)
        report.write_reports(tmp_path, MASTER, results, collected, run.Options(known, now=0.0))
        lines = (tmp_path / "canvas.csv").read_text().splitlines()
        assert lines[0] == "Student,ID,SIS User ID,SIS Login ID,Section,laplace"
        assert lines[2:] == [row, "zoe,,,zoe,,8"]
        text = (tmp_path / "summary.html").read_text()
        assert ("Not on the list of students (1)" in text) == bool(known)
    assert "Missing (1)</h2><ul><li>909 Student, Test" not in text


NAMES = [
    "anna;=cmd|'/C calc'!A0",
    "=1",
    "'=1",
    "''=1",
    'x;"=1"',
    "a\t+1",
    "O'Brien",
    "-5",
    "a,-b",
    "@SUM(1)",
]


def test_no_cell_of_a_table_is_a_formula_whatever_separates_cells():
    text = marks.table(["student"], [[files.plain(name), "5", files.plain(name)] for name in NAMES])
    for separator in ",;\t":
        for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            assert not any(cell.strip('"')[:1] in tuple("=+-@") for cell in line if cell), line
    assert [files.bare(files.plain(name)) for name in NAMES] == NAMES
    assert len({files.plain(name) for name in NAMES}) == len(NAMES)


def test_no_two_names_share_a_file():
    odd = ["O'Brien", files.file_name("O'Brien"), "constructor", "__proto__", "n" * 200, "n" * 201]
    assert len({files.file_name(name) for name in odd}) == len(odd)


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


def test_feedback_summary_and_imports(tmp_path):
    table(tmp_path, "ada,5.5,6,clear & short")
    students = ["ada", "ben", "kim"]
    roster = {"ada": "Ada L", "eve": "Eve", "kim": "Kim"}
    options = run.Options(roster=roster, median=True, solutions=True, now=86400 * 365.0)
    results = [
        result("ada", place="ada_1_2_a.ipynb"),
        result("ben", scores={"2a": None, "1a": 0.0}, messages={"1a": "log"}),
    ]
    results.append(run.not_marked("kim", "why") | {"scores": {"1a": None, "2a": None}})
    report.write_reports(
        tmp_path, MASTER, results, marks.collect(tmp_path, MASTER, students), options
    )
    ada = (tmp_path / "feedback" / "ada.html").read_text()
    assert "7.5 of 8 points" in ada and "2a: 5.5 of 6" in ada and "clear &amp; short" in ada
    assert "marked on 1971-01-01: a.ipynb. class median 7.5" in ada and 'name="viewport"' in ada
    assert "<pre>x = 1 &lt; 2</pre>" in ada and "model answer" in ada
    with zipfile.ZipFile(tmp_path / "feedback.zip") as archive:
        assert archive.namelist() == ["ada_1_2_a.ipynb"]  # Canvas shows it as "a.ipynb"
        (cell,) = nbformat.reads(archive.read("ada_1_2_a.ipynb"), as_version=4).cells
        assert cell.source in ada and "7.5 of 8 points" in cell.source
    ben = (tmp_path / "feedback" / "ben.html").read_text()
    assert "not marked yet" in ben and "0 points by tests; the rest is not marked yet" in ben
    kim = (tmp_path / "feedback" / "kim.html").read_text()
    assert "could not be marked" in kim and "all tests hold" not in kim
    text = (tmp_path / "summary.html").read_text()
    assert "Missing (1)" in text and "eve Eve" in text and "Not on the list of students (1)" in text
    assert "1 times: log" in text
    assert (tmp_path / "canvas.csv").read_text().splitlines()[1:] == [
        "Points Possible,,,,,8", "Ada L,,,ada,,7.5",
    ]  # fmt: skip
    assert (tmp_path / "moodle.csv").read_text().splitlines()[1:] == ["ada,7.5,2a: clear & short"]
    assert "<p>mine</p>" in (tmp_path / "by-hand" / "2a.html").read_text()


def test_who_hands_nothing_in_gets_zero_and_a_mark_by_hand_takes_its_place(tmp_path):
    students = ["ada", "ben"]
    results = [result("ada", blank={"2a": True}), result("ben", blank={"2a": True})]
    table(tmp_path, "ben,3,6,it came by mail")
    collected = marks.collect(tmp_path, MASTER, students)
    report.write_reports(tmp_path, MASTER, results, collected, run.Options())
    rows = marks.rows(tmp_path / "grades.csv")
    assert [row["2a"] for row in rows] == ["0", "3"]
    assert words.ANSWERED_NOT in (tmp_path / "feedback" / "ada.html").read_text()


def test_a_corrected_public_test_flags_nobody():
    flags = [["edited test 1a", "late"], *[["edited test 1a"]] * 8, ["edited test 2b"]]
    class_of = [{**result(f"s{n}"), "flags": some} for n, some in enumerate(flags)]
    (said,) = report.without_corrected_tests(class_of)
    assert said.startswith("test 1a is not the master's in 9 of 10 submissions")
    assert [r["flags"] for r in class_of] == [["late"], *[[]] * 8, ["edited test 2b"]]


def test_feedback_has_the_name_that_canvas_takes():
    assert report.returned("ada_1_2_my_linkedin.ipynb", "x")[0] == "ada_1_2_my-linkedin.ipynb"
    assert report.returned("ada/laplace.ipynb", "x")[0] == "ada/laplace.ipynb.html"
    assert report.returned("ada_1_2_a.md", "x")[0] == "ada_1_2_a.md.html"


def test_histogram_counts_everyone():
    bars = summary.histogram(Q[0], [0, 0, 3, 6, 6, 6])
    assert [line.split()[-1] for line in bars.removeprefix("<pre>").splitlines()][2] == "1"
    assert bars.count("\n") == 4 and bars.endswith("3</pre>")
