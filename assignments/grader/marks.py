"""Marks given by hand: `by-hand/<question>.csv`, one row a student, and `grades.csv`.

Spreadsheets change what they save: the separator, a byte-order mark, decimal commas, leading zeros
of a student's number. All of that is read. What is written over is kept beside it with its date,
and a mark that can't be one is refused by its row before anything is written.
"""

import csv
import io
import json
import math
import time
from pathlib import Path

from .files import plain, write

COLUMNS = ("student", "points", "of", "comment")


def decoded(data):
    """The text of a file as spreadsheets save it."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def rows(path):
    """The rows of a table by column name, whatever separates the columns; none without a file."""
    if not path.exists():
        return []
    text = decoded(path.read_bytes())
    head = text.split("\n", 1)[0]
    separator = max(",;\t", key=head.count)
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))


def number(text, points):
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


class Names:
    """Students by name, also where a spreadsheet took the zeros before a number away."""

    def __init__(self, students):
        self.known = {plain(s): s for s in students}
        short = {}
        for name in self.known:
            short.setdefault(name.lstrip("0"), []).append(name)
        self.short = {s: names[0] for s, names in short.items() if len(names) == 1}

    def find(self, name):
        name = (name or "").strip()
        return self.known.get(name) or self.known.get(self.short.get(name.lstrip("0"))) or name


def of_file(path, points, names, column="points"):
    """({student: (mark or None, comment)}, complaints) of one table."""
    found, complaints = {}, []
    for line, row in enumerate(rows(path), 2):
        student = names.find(row.get("student"))
        try:
            mark = number(row.get(column), points)
        except ValueError as problem:
            complaints.append(f"{path.name}, row {line}, {student}, {column}: {problem}")
            continue
        found[student] = (mark, (row.get("comment") or "").strip() if column == "points" else "")
    return found, complaints


def collect(out, master, students):
    """{question: {student: (mark, comment)}} from both places where marks can be written.

    A mark in `grades.csv` counts if it was put there since the last run; two new marks that differ
    are a complaint. All complaints come as one ValueError.
    """
    names, complaints, collected = Names(students), [], {}
    try:
        known = json.loads((out / "results" / "marks" / "last.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    for q in (q for q in master.questions if q.manual):
        own, wrong = of_file(out / "by-hand" / f"{q.id}.csv", q.points, names)
        table, also_wrong = of_file(out / "grades.csv", q.points, names, q.id)
        complaints += wrong + also_wrong
        for student, (mark, _) in table.items():
            ours, comment = own.get(student, (None, ""))
            before = known.get(q.id, {}).get(student)
            if mark is None or mark in (ours, before):
                continue
            if ours not in (None, before):
                complaints.append(
                    f"{q.id}, {student}: {ours:g} in by-hand/{q.id}.csv and {mark:g} in grades.csv"
                )
            own[student] = (mark, comment)
        collected[q.id] = own
    if complaints:
        raise ValueError("marks by hand can't be read:\n" + "\n".join(complaints))
    return collected


def keep(path, text):
    """Write a table; what stood there before, if it differs, stays in `backup` with its date."""
    data = text.encode("utf-8-sig" if path.name != "grades.csv" else "utf-8", "replace")
    if path.exists() and path.read_bytes() not in (data, b""):
        stamp = time.strftime("%Y-%m-%dT%H%M%S")
        folder = path.parent / "backup"
        folder.mkdir(parents=True, exist_ok=True)
        target, n = folder / f"{path.stem}-{stamp}.csv", 1
        while target.exists():
            n += 1
            target = folder / f"{path.stem}-{stamp}-{n}.csv"
        target.write_bytes(path.read_bytes())
    write(path, data)


def table(columns, lines):
    """CSV text."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(lines)
    return text.getvalue()


def store(out, master, collected, students):
    """Write the tables of all questions: those handed in first, absent students keep their rows."""
    last = {}
    for q in (q for q in master.questions if q.manual):
        marks = collected[q.id]
        absent = sorted(set(marks) - set(students))
        lines = []
        for student in [*students, *absent]:
            mark, comment = marks.get(student, (None, ""))
            points = "" if mark is None else f"{mark:g}"
            lines.append([plain(student), points, f"{q.points:g}", plain(comment)])
        keep(Path(out) / "by-hand" / f"{q.id}.csv", table(COLUMNS, lines))
        last[q.id] = {s: m for s, (m, _) in marks.items() if m is not None}
    write(Path(out) / "results" / "marks" / "last.json", json.dumps(last).encode())
