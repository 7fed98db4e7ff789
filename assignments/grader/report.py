"""What a run leaves behind: grades.csv, feedback for students, logs, and the hand-marked answers side by side."""

import csv
import hashlib
import html
import json
import os

STYLE = (
    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>{title}</title>"
    "<style>body{{font:1rem/1.5 sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}}pre{{white-space:pre-wrap;background:#f4f4f4;"
    "color:#111;padding:.8rem}}td,th{{text-align:left;padding:.3rem .8rem;vertical-align:top;border-top:1px solid #999}}</style><h1>{title}</h1>\n"
)


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


def grades(out, master, results):
    """The table, and each result completed with the marks given by hand."""
    manual = [q.id for q in master.questions if q.manual]
    by_hand = marks_by_hand(out, manual)
    columns = [
        "student",
        "file",
        *[q.id for q in master.questions],
        "automatic",
        "total",
        "of",
        "flags",
    ]
    draft = out / ".grades.csv.part"
    with open(draft, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(columns)
        for result in results:
            student = plain(result["student"])
            marks = {
                q: by_hand.get((student, q)) if q in manual else f"{s:g}"
                for q, s in result["scores"].items()
            }
            result["marks"] = marks
            automatic = sum(s for s in result["scores"].values() if s is not None)
            total = "" if None in marks.values() else f"{sum(float(m) for m in marks.values()):g}"
            table.writerow(
                [
                    student,
                    plain(result["file"]),
                    *[marks[q.id] or "" for q in master.questions],
                    f"{automatic:g}",
                    total,
                    f"{sum(q.points for q in master.questions):g}",
                    "; ".join(result["flags"]),
                ]
            )
    os.replace(draft, out / "grades.csv")


def feedback(master, result):
    """One student's page: points, and what the first failed assertion of each question said."""
    rows = []
    for q in master.questions:
        mark, message = result["marks"][q.id], result["messages"].get(q.id, "")
        remark = message or ("marked by hand" if q.manual else "all tests hold")
        rows.append(f"<tr><th>{q.id}<td>{mark or '·'} of {q.points:g}<td>{html.escape(remark)}")
    title = f"{master.name}: {html.escape(result['student'])}"
    return (
        STYLE.format(title=title)
        + "<table><tr><th>question<th>points<th>remark\n"
        + "\n".join(rows)
        + "\n</table></html>\n"
    )


def reading(q, results):
    """All answers to one question beside the master's answer and rubric, for the person who marks them."""
    parts = [
        STYLE.format(title=f"Question {q.id}, {q.points:g} points"),
        f"<h2>Answer and rubric</h2><pre>{html.escape(q.answer)}</pre>",
    ]
    parts += [
        f"<h2>{html.escape(r['student'])}</h2><pre>{html.escape(r['answers'].get(q.id, ''))}</pre>"
        for r in results
    ]
    return "\n".join(parts) + "</html>\n"


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
