"""Marks given by hand: `by-hand/<question>.csv`, one row a student, and `grades.csv`.

Spreadsheets change what they save: the separator, a byte-order mark, decimal commas, leading zeros
of a student's number. All of that is read. A mark that can't be one is refused by its row before
anything is written. A row that can't be used (nobody's name, two rows for one student, marks that
differ from what somebody else wrote, changed automatic points) goes to `by-hand/set-aside.csv` with
the reason, and is tried again at the next run. What is written over is kept in `backup/`.
"""

import copy
import csv
import io
import json
import math
import shutil
from datetime import datetime

from .files import Names, bare, decoded, plain, write

EMPTY = {"points": {}, "students": [], "comments": {}, "shown": {}, "marked": {}, "outdated": {}}
COLUMNS = ("student", "points", "of", "comment")
ASIDE = ("student", "question", "points", "comment", "from", "why")
csv.field_size_limit(2**24)


def rows(path):
    """The rows of a table by column name, whatever separates the columns; none without a file."""
    if not path.exists():
        return []
    text = decoded(path.read_bytes(), otherwise="cp1252")
    head = text.split("\n", 1)[0]
    separator = max(",;\t", key=head.count)
    try:
        return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"{path} can't be read as a table: {error}") from None


def number(text, points=math.inf):
    """A mark, or None where there is none; ValueError with the reason if it can't be one."""
    text = (text or "").strip()
    if not text:
        return None
    try:
        mark = float(text.replace(",", "."))
    except ValueError:
        mark = math.nan
    if not 0 <= mark <= points:
        raise ValueError(f"points must be a number from 0 to {points:g}, got {text!r}")
    return mark


def number_or_none(text):
    try:
        return number(text)
    except ValueError:
        return None


def last_run(out):
    """What the last run wrote: {"points": {question: {student: points}}, "students": [...]} and by
    question and student "comments", "shown" (a digest of the answer on the page for marking),
    "marked" (that of the answer that was marked) and "outdated" (marks of answers that were changed
    afterwards). Not in `results`, which may be deleted."""
    try:
        known = json.loads((out / "last.json").read_text(encoding="utf-8"))
        return copy.deepcopy(EMPTY) | {key: known[key] for key in EMPTY if key in known}
    except (OSError, ValueError, TypeError):
        return copy.deepcopy(EMPTY)


class Collected:
    """All that people have written."""

    def __init__(self, out, students):
        last = last_run(out)
        self.out, self.folder = out, out / "by-hand"
        self.students = list(dict.fromkeys([*students, *last["students"]]))  # of all runs here
        self.names = Names(self.students)
        self.before = last["points"]  # question -> {student: points} of the last run
        self.said, self.shown, self.marked, self.outdated = (
            last[name] for name in ("comments", "shown", "marked", "outdated")
        )
        self.marks = {}  # question -> {student: (mark or None, comment)}
        self.seen = {}  # (question, student) -> digest of the answer that was marked, of a page
        self.overrides = {}  # question -> {student: (points, reason)}
        self.files = []  # marks of single people, which are merged now
        self.aside = []  # rows of `set-aside.csv`
        self.complaints = []  # what must be mended before anything is written
        self.waiting = rows(self.folder / "set-aside.csv")  # rows set aside before

    def set_aside(self, row, question, source, why):
        source = row.get("from") or source  # a row that was set aside before says where it is from
        cells = [row.get("student"), question, row.get("points"), row.get("comment"), source, why]
        cells = tuple((value or "").strip() for value in cells)
        self.aside += [cells] * (cells not in self.aside)

    def usable(self, table, q, source, column="points"):
        """{student: (mark, comment, row)} of the known students that have one row each."""
        by_student = {}
        for line, row in enumerate(table, 2):
            row = {**row, "points": row.get(column)}
            try:
                mark = number(row["points"], q.points)
            except ValueError as problem:
                where = f"{source}, row {line}, {row.get('student')}, {column}"
                self.complaints.append(f"{where}: {problem}")
                continue
            comment = bare(row.get("comment"))
            student = self.names.find(row.get("student"))
            if student is not None:
                by_student.setdefault(student, []).append((mark, comment, row))
            elif mark is not None or comment:
                self.set_aside(row, q.id, source, "nobody has this name")
        for student, some in list(by_student.items()):
            if len({(mark, comment) for mark, comment, _ in some}) > 1:
                for *_, row in by_student.pop(student):
                    self.set_aside(row, q.id, source, f"{len(some)} rows for {student}")
        return {student: some[0] for student, some in by_student.items()}

    def merge(self, table, q, source, own):
        """Marks of one person into those of all (`own`), unless somebody else was there."""
        for student, (mark, comment, row) in self.usable(table, q, source).items():
            there = own.get(student, (None, ""))
            before = (number_or_none(row.get("before")), bare(row.get("comment before")))
            if there in ((None, ""), before):
                own[student] = (mark, comment)
                self.seen[q.id, student] = row.get("answer")
            elif there != (mark, comment):
                stands = "no mark" if there[0] is None else f"{there[0]:g}"
                why = f"somebody else was there: {stands} {there[1]!r} stands in {q.id}.csv"
                self.set_aside(row, q.id, source, why)

    def by_hand(self, q):
        """Collect the marks of one question from all places where they can be written."""
        known, source = self.before.get(q.id, {}), f"{q.id}.csv"
        table = rows(self.folder / source)
        own = {s: (m, c) for s, (m, c, _) in self.usable(table, q, source).items()}
        # a row that is missing, or there twice: what was there before stays
        for student, mark in known.items():
            own.setdefault(student, (mark, self.said.get(q.id, {}).get(student, "")))
        changed = self.usable(rows(self.out / "grades.csv"), q, "grades.csv", q.id)
        for student, (mark, _, row) in changed.items():
            ours, comment = own.get(student, (None, ""))
            if mark is None and None not in (ours, known.get(student), row["points"]):
                where = f"deleted in grades.csv, {ours:g} in by-hand/{source}: delete it there, too"
                self.complaints.append(f"{q.id}, {student}: {where}")
            if mark is None or mark in (ours, known.get(student)):
                continue
            if ours not in (None, known.get(student)):
                both = f"{ours:g} in by-hand/{source} and {mark:g} in grades.csv"
                self.complaints.append(f"{q.id}, {student}: {both}")
            own[student] = (mark, comment)
        for file in sorted(self.folder.glob("*.csv")):
            if file.stem.lower().startswith((f"{q.id}-", f"{q.id} ", f"{q.id}_")):
                self.files.append(file)
                self.merge(rows(file), q, file.name, own)
        waiting = [row for row in self.waiting if row.get("question") == q.id]
        self.merge(waiting, q, "set-aside.csv", own)
        self.marks[q.id] = own

    def compare(self, q, results):
        """Take marks back whose answer was changed afterwards; they are shown until it is marked
        again. What was marked is the answer on the last page, not that of today."""
        shown, marked = self.shown.get(q.id, {}), self.marked.setdefault(q.id, {})
        outdated, own = self.outdated.setdefault(q.id, {}), self.marks[q.id]
        for student, digest in ((r["student"], r["digests"].get(q.id)) for r in results):
            mark, comment = own.get(student, (None, ""))
            points, said = (table.get(q.id, {}) for table in (self.before, self.said))
            if (mark, comment) != (points.get(student), said.get(student, "")):
                marked[student] = self.seen.get((q.id, student)) or shown.get(student, digest)
            if mark is None or digest is None:
                continue
            outdated.pop(student, None)
            if marked.setdefault(student, digest) != digest:
                outdated[student] = own[student]
                own[student] = (None, "")
        self.shown[q.id] = shown | {r["student"]: r["digests"].get(q.id) for r in results}

    def automatic(self, q):
        """Set aside points by tests that were changed in `grades.csv`, if not overridden."""
        known, given = self.before.get(q.id, {}), self.overrides.get(q.id, {})
        for row in rows(self.out / "grades.csv"):
            student, text = self.names.find(row.get("student")), row.get(q.id)
            expected = (known.get(student), given.get(student, (None, ""))[0])
            if student is None and text:
                self.set_aside({**row, "points": text}, q.id, "grades.csv", "nobody has this name")
            if student in known and q.id in row and number_or_none(text) not in expected:
                why = "automatic points: write them into overrides.csv, with a reason"
                self.set_aside({**row, "points": text}, q.id, "grades.csv", why)
        for row in self.waiting:
            if row.get("question") == q.id and self.names.find(row.get("student")) not in given:
                self.set_aside(row, q.id, row.get("from"), row.get("why"))

    def read_overrides(self, master):
        """The points of `overrides.csv`, which replace those of tests."""
        points = {q.id: q.points for q in master.questions if not q.manual}
        for line, row in enumerate(rows(self.out / "overrides.csv"), 2):
            if not any(row.values()):
                continue  # the empty last rows of a spreadsheet
            question = (row.get("question") or "").strip()
            reason, student = (row.get("reason") or "").strip(), self.names.find(row.get("student"))
            problem = "a known student, a question marked by tests, points and a reason are needed"
            try:
                mark = number(row.get("points"), points.get(question, 0))
            except ValueError as wrong:
                mark, problem = None, wrong
            if student is None or question not in points or mark is None or not reason:
                self.complaints.append(f"overrides.csv, row {line}: {problem}")
            elif student in self.overrides.setdefault(question, {}):
                self.complaints.append(f"overrides.csv, row {line}: a second row for {student}")
            else:
                self.overrides[question][student] = (mark, reason)


def collect(out, master, students):
    """All that people have written by hand. All complaints come as one ValueError."""
    collected = Collected(out, students)
    collected.read_overrides(master)
    for q in master.questions:
        collected.by_hand(q) if q.manual else collected.automatic(q)
    known = {f"{q.id}.csv" for q in master.questions} | {"set-aside.csv"}
    known |= {file.name for file in collected.files}
    for file in (out / "by-hand").glob("*.csv"):
        if file.name not in known:
            name = f"by-hand/{file.name}: begin its name with the question, as in 2a-kim.csv"
            collected.complaints.append(name)
    for row in collected.waiting:
        if row.get("question") not in {q.id for q in master.questions}:
            collected.set_aside(row, row.get("question"), "", "there is no such question")
    if collected.complaints:
        raise ValueError("marks by hand can't be read:\n" + "\n".join(collected.complaints))
    return collected


def put_away(path):
    """Move a file to `backup`, with its date."""
    (path.parent / "backup").mkdir(parents=True, exist_ok=True)
    stamp = datetime.now().strftime("%Y-%m-%dT%H%M%S.%f")
    shutil.move(path, path.parent / "backup" / f"{path.stem}-{stamp}.csv")


def keep(path, text):
    """Write a table; what stood there before, if it differs, stays in `backup` with its date."""
    data = text.encode("utf-8-sig" if path.name != "grades.csv" else "utf-8", "replace")
    if path.exists() and path.read_bytes() not in (data, b""):
        put_away(path)
    write(path, data)


def table(columns, lines):
    """CSV text."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([columns, *lines])  # `plain` has seen to other separators
    return text.getvalue()


def store(out, master, collected, results):
    """Write the tables of all questions: those handed in first, absent students keep their rows.

    Returns [(student, question, points before, points now)] of what was marked before and changed.
    """
    present, now = [r["student"] for r in results], {}
    for q in master.questions:
        points = {r["student"]: r["points"][q.id] for r in results}
        now[q.id] = {s: mark for s, mark in points.items() if mark is not None}
    for q in (q for q in master.questions if q.manual):
        marks = collected.marks[q.id]
        now[q.id] |= {s: mark for s, (mark, _) in marks.items() if mark is not None}
        absent = sorted(s for s in marks if s not in set(present) and marks[s] != (None, ""))
        lines = []
        for student in [*present, *absent]:
            mark, comment = marks.get(student, (None, ""))
            points = "" if mark is None else f"{mark:g}"
            lines.append([plain(student), points, f"{q.points:g}", plain(comment)])
        keep(out / "by-hand" / f"{q.id}.csv", table(COLUMNS, lines))
    for file in collected.files:
        put_away(file)
    aside = out / "by-hand" / "set-aside.csv"
    if collected.aside or aside.exists():
        keep(aside, table(ASIDE, [map(plain, row) for row in collected.aside]))
    said = {q: {s: comment for s, (_, comment) in m.items()} for q, m in collected.marks.items()}
    last = {"points": now, "students": collected.students, "comments": said}
    last |= {name: getattr(collected, name) for name in ("shown", "marked", "outdated")}
    write(out / "last.json", json.dumps(last))
    return [
        (s, q, before, now[q].get(s))
        for q in now for s, before in collected.before.get(q, {}).items() if now[q].get(s) != before
    ]  # fmt: skip
