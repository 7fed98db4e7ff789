"""Late work: one rule, in tables, in feedback, and said to the instructor."""

import pytest

from assignments.grader import late, marks, report, run
from test_marks import MASTER, result

RULE = late.Rule.read("10/2")


def run_once(out, rule, **flags):
    """One run over ada, ben and cy, each with 2 points by test and 6 by hand."""
    students = ["ada", "ben", "cy"]
    (out / "by-hand").mkdir(exist_ok=True)
    (out / "by-hand" / "2a.csv").write_text("student,points\nada,6\nben,6\ncy,6\n")
    results = [{**result(s), "flags": flags.get(s, [])} for s in students]
    collected = marks.collect(out, MASTER, students)
    return report.write_reports(
        out, MASTER, results, collected, run.Options(late_rule=rule, now=0.0)
    )


def totals(out, table="grades.csv", student="student", total="total"):
    return {row[student]: row[total] for row in marks.rows(out / table)}


def test_days_after_the_grace_cost_per_cent_of_the_sheet(tmp_path):
    (tmp_path / late.FILE).write_text("student;days\nada;2\nben;3,5\ncy;90\n")
    run_once(tmp_path, RULE)
    assert totals(tmp_path) == {"ada": "8", "ben": "6.4", "cy": "0"}
    assert totals(tmp_path, total="late") == {"ada": "", "ben": "1.6", "cy": "8"}
    assert totals(tmp_path, "canvas.csv", "SIS Login ID", "laplace")["ben"] == "6.4"
    assert (
        "1.6 points less" in totals(tmp_path, "moodle.csv", "username", "laplace feedback")["ben"]
    )
    said = "Late by 3.5 days: 2 of grace, 10 % of 8 points for each day after, 1.6 points less."
    page = (tmp_path / "feedback" / "ben.html").read_text()
    assert said in page and "6.4 of 8 points" in page
    assert "0 points less" in (tmp_path / "feedback" / "ada.html").read_text()


def test_who_is_late_by_a_flag_is_asked_for(tmp_path):
    said = run_once(tmp_path, RULE, ben=[late.LATE])
    assert f"late without a number of days, see {late.FILE}: 1" in said
    assert marks.rows(tmp_path / late.FILE) == [{"student": "ben", "days": ""}]
    (tmp_path / late.FILE).write_text("student,days\nben,4\n")
    assert not any("late" in line for line in run_once(tmp_path, RULE, ben=[late.LATE]))
    assert totals(tmp_path)["ben"] == "6.4"


def test_without_a_rule_nothing_is_taken_off_and_it_is_said(tmp_path):
    assert not any("late" in line for line in run_once(tmp_path, late.NO_RULE, ben=[late.LATE]))
    (tmp_path / late.FILE).write_text("student,days\nben,4\n")
    assert any("no rule" in line for line in run_once(tmp_path, late.NO_RULE))
    assert totals(tmp_path)["ben"] == "8"


@pytest.mark.parametrize("row", ["zed,3", "ada,-1", "ada,soon", "ada,1\nada,2"])
def test_a_row_that_cannot_be_meant_is_refused(tmp_path, row):
    (tmp_path / late.FILE).write_text(f"student,days\n{row}\n")
    with pytest.raises(ValueError, match=r"late\.csv, row [23]"):
        late.days(tmp_path, ["ada", "ben"])


@pytest.mark.parametrize("rule", ["", "x", "0/2", "101", "10/-1", "10/x", "nan/1"])
def test_a_rule_that_is_none(rule):
    with pytest.raises(ValueError, match="late must be"):
        late.Rule.read(rule)
