"""What a run leaves behind: grades.csv, feedback, logs, and the answers to be marked by hand."""

import csv
import hashlib
import html
import json
import os

CSS = """body { font: 1rem/1.5 sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }
pre { white-space: pre-wrap; background: #f4f4f4; color: #111; padding: .8rem }
td, th { text-align: left; padding: .3rem .8rem; vertical-align: top; border-top: 1px solid #999 }
"""
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{css}</style><h1>{title}</h1>
{body}
</html>
"""


def file_name(student):
    """A safe, short, unique file name for any student's name."""
    clean = "".join(c if c.isalnum() or c in "-_. ()" else "_" for c in student).strip(". ")
    if clean == student and len(os.fsencode(clean)) < 150:
        return clean
    return f"{clean[:40]}-{hashlib.sha256(os.fsencode(student)).hexdigest()[:10]}"


def write(path, text):
    """Whole or not at all: a stopped run leaves no half file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.part")
    draft.write_bytes(text.encode("utf-8", "replace"))
    os.replace(draft, path)


def plain(text):
    """A cell of the table that no spreadsheet takes for a formula."""
    text = os.fsencode(text).decode("utf-8", "replace")
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def marks_by_hand(out, manual):
    """Marks that a person has put into grades.csv survive the next run."""
    path = out / "grades.csv"
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {
            (row["student"], q): row[q]
            for row in csv.DictReader(file)
            for q in manual
            if row.get(q)
        }


def total(marks):
    """The sum, once all questions have a mark that is a number."""
    try:
        return f"{sum(float(mark) for mark in marks.values()):g}"
    except (TypeError, ValueError):
        return ""


def row(master, result, by_hand):
    """One line of the table; completes the result with its marks, by hand and by tests."""
    student, scores = plain(result["student"]), result["scores"]
    marks = {q: by_hand.get((student, q)) if s is None else f"{s:g}" for q, s in scores.items()}
    result["marks"] = marks
    automatic = sum(s for s in scores.values() if s is not None)
    points = sum(q.points for q in master.questions)
    questions = [marks[q.id] or "" for q in master.questions]
    ends = [f"{automatic:g}", total(marks), f"{points:g}", "; ".join(result["flags"])]
    return [student, plain(result["file"]), *questions, *ends]


def grades(out, master, results):
    """The table of all students."""
    by_hand = marks_by_hand(out, [q.id for q in master.questions if q.manual])
    questions = [q.id for q in master.questions]
    draft = out / ".grades.csv.part"
    with open(draft, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["student", "file", *questions, "automatic", "total", "of", "flags"])
        table.writerows(row(master, result, by_hand) for result in results)
    os.replace(draft, out / "grades.csv")


def feedback(master, result):
    """One student's page: points, and what the first failed assertion of each question said."""
    rows = []
    for q in master.questions:
        mark, message = result["marks"][q.id], result["messages"].get(q.id, "")
        remark = message or ("marked by hand" if q.manual else "all tests hold")
        rows.append(f"<tr><th>{q.id}<td>{mark or '·'} of {q.points:g}<td>{html.escape(remark)}")
    title = f"{master.name}: {html.escape(result['student'])}"
    table = "\n".join(["<table><tr><th>question<th>points<th>remark", *rows, "</table>"])
    return PAGE.format(title=title, css=CSS, body=table)


def reading(q, results):
    """All answers to one question beside the master's, for the person who marks them."""
    texts = [("Answer and rubric", q.answer)]
    texts += [(r["student"], r["answers"].get(q.id, "")) for r in results]
    parts = [f"<h2>{html.escape(who)}</h2><pre>{html.escape(text)}</pre>" for who, text in texts]
    title = f"Question {q.id}, {q.points:g} points"
    return PAGE.format(title=title, css=CSS, body="\n".join(parts))


def everything(out, master, results):
    """Write all that a run leaves behind."""
    results = sorted(results, key=lambda r: r["student"])
    grades(out, master, results)
    for result in results:
        name = file_name(result["student"])
        write(out / "feedback" / f"{name}.html", feedback(master, result))
        write(
            out / "logs" / f"{name}.txt", "\n".join(result["flags"]) + "\n\n" + result["log"] + "\n"
        )
    for q in master.questions:
        if q.manual:
            write(out / "by-hand" / f"{q.id}.html", reading(q, results))


def remembered(out, student, fingerprint):
    """The result of an earlier run of the very same thing, or None."""
    try:
        kept = json.loads(
            (out / "results" / f"{file_name(student)}.json").read_text(encoding="utf-8")
        )
        return kept["result"] if kept["fingerprint"] == fingerprint else None
    except (OSError, ValueError, KeyError):
        return None


def remember(out, result, fingerprint):
    write(
        out / "results" / f"{file_name(result['student'])}.json",
        json.dumps({"fingerprint": fingerprint, "result": result}),
    )
