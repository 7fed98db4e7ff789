"""Work that came late: one rule for a course, the days of each student, what they cost.

The rule is an option of the command, as 10/2: 10 per cent of the sheet's points for each day that
has begun, after 2 days of grace. The days stand in `OUT/late.csv`, which is the instructor's:
course systems' files say at most that something was late.
"""

import math
from dataclasses import dataclass

from . import marks
from .files import Names, plain

FILE, COLUMNS = "late.csv", ("student", "days")
LATE = "late, as Canvas says"  # a flag


@dataclass(frozen=True)
class Rule:
    """Per cent of the sheet's points for each day after the days of grace."""

    percent: float = 0.0
    grace: int = 0

    @classmethod
    def read(cls, text):
        """The rule "10/2"; "10" has no grace."""
        percent, _, grace = text.partition("/")
        try:
            rule = cls(float(percent), int(grace or 0))
        except ValueError:
            rule = cls(math.nan)
        if not (0 < rule.percent <= 100 and rule.grace >= 0):
            raise ValueError(f"late must be per cent a day/days of grace, as 10/2, got {text!r}")
        return rule

    def cost(self, days, points, of):
        """(points less, what the student reads) for so many days, of what was reached; where that
        is not known yet, it may turn out less."""
        counted = max(0, math.ceil(days) - self.grace)
        less = min(counted * self.percent / 100 * of, of if points is None else points)
        grace = f" {self.grace} of grace," if self.grace else ""
        rule = f"{self.percent:g} % of {of:g} points for each day after,"
        return less, f"Late by {days:g} days:{grace} {rule} {less:g} points less."


NO_RULE = Rule()


def days(out, students):
    """{student: days or None} of the table; a row that can't be meant is one ValueError."""
    names, known = Names(students), {}
    for line, row in enumerate(marks.rows(out / FILE), 2):
        if not any(row.values()):
            continue
        student = names.find(row.get("student"))
        try:
            number = marks.number(row.get("days"))
        except ValueError:
            raise ValueError(f"{FILE}, row {line}: days must be a number from 0") from None
        if student is None or student in known:
            raise ValueError(f"{FILE}, row {line}: a known student, and one row each, are needed")
        known[student] = number
    return known


def deduct(out, results, students, of, rule):
    """(results with `deduction` and `late_remark`, totals less by it, what the run says of it).

    Who is late by a flag and has no row gets one, to be filled in.
    """
    known = days(out, students)
    if not rule.percent:
        unused = [f"{FILE} is there and no rule (--late 10/2): nothing was taken off"]
        return [{**r, "deduction": 0, "late_remark": ""} for r in results], unused * bool(known)
    known |= {
        r["student"]: None for r in results if LATE in r["flags"] and r["student"] not in known
    }
    done = []
    for r in results:
        less, said = 0, ""
        if known.get(r["student"]):
            less, said = rule.cost(known[r["student"]], r["total"], of)
        total = None if r["total"] is None else r["total"] - less
        done.append({**r, "deduction": less, "late_remark": said, "total": total})
    lines = [[plain(s), "" if n is None else f"{n:g}"] for s, n in sorted(known.items())]
    if lines:
        marks.keep(out / FILE, marks.table(COLUMNS, lines))
    missing = sum(n is None for n in known.values())
    return done, [f"late without a number of days, see {FILE}: {missing}"] * bool(missing)
