"""What a run leaves behind: grades.csv, tables for other systems, feedback and logs."""

import html
import json
import statistics

from . import by_hand, marks, summary
from .files import file_name, plain, write

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


def with_marks(master, result, collected):
    """The result with its marks, by tests and by hand, its comments and its total."""
    given = {q.id: collected.get(q.id, {}).get(result["student"], (None, ""))
             for q in master.questions if q.manual}  # fmt: skip
    points = {q: given[q][0] if q in given else s for q, s in result["scores"].items()}
    complete = all(p is not None for p in points.values())
    return {
        **result,
        "points": points,
        "comments": {q: comment for q, (_, comment) in given.items() if comment},
        "automatic": sum(s for s in result["scores"].values() if s is not None),
        "total": sum(points.values()) if complete else None,
    }


def shown(number):
    return "" if number is None else f"{number:g}"


def grades(out, master, results):
    """The table of all students."""
    of = sum(q.points for q in master.questions)
    questions = [q.id for q in master.questions]
    lines = [
        [plain(r["student"]), plain(r["file"]), *(shown(r["points"][q]) for q in questions),
         shown(r["automatic"]), shown(r["total"]), shown(of), "; ".join(r["flags"])]
        for r in results
    ]  # fmt: skip
    columns = ["student", "file", *questions, "automatic", "total", "of", "flags"]
    marks.keep(out / "grades.csv", marks.table(columns, lines))


def imports(out, master, results, roster):
    """The totals as Canvas and Moodle take them in; students without a total are left out."""
    of = sum(q.points for q in master.questions)
    done = [r for r in results if r["total"] is not None]
    named = [(plain(roster.get(r["student"]) or r["student"]), plain(r["student"])) for r in done]
    canvas = [["Points Possible", "", "", "", "", shown(of)]]
    for r, (name, login) in zip(done, named, strict=True):
        canvas.append([name, "", "", login, "", shown(r["total"])])
    columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", master.name]
    write(out / "canvas.csv", marks.table(columns, canvas))
    moodle = [
        [login, shown(r["total"]), plain(" ".join(r["comments"].values()))]
        for r, (_, login) in zip(done, named, strict=True)
    ]
    columns = ["username", master.name, f"{master.name} feedback"]
    write(out / "moodle.csv", marks.table(columns, moodle))


def feedback(master, result, median):
    """One student's page: points, comments, what the first failed assertion of a question said."""
    rows = []
    for q in master.questions:
        mark, message = result["points"][q.id], result["messages"].get(q.id, "")
        if q.manual:
            remark = result["comments"].get(q.id) or ("" if mark is not None else "not marked yet")
        else:
            remark = message or "all tests hold"
        points = "·" if mark is None else f"{mark:g}"
        rows.append(f"<tr><th>{q.id}<td>{points} of {q.points:g}<td>{html.escape(remark)}")
    of = sum(q.points for q in master.questions)
    if result["total"] is not None:
        rows.append(f"<tr><th>total<td>{result['total']:g} of {of:g}<td>{median}")
    title = f"{master.name}: {html.escape(result['student'])}"
    table = "\n".join(["<table><tr><th>question<th>points<th>remark", *rows, "</table>"])
    return PAGE.format(title=title, css=CSS, body=table)


def median(results):
    """A sentence with the class median, of those whose marks are complete."""
    totals = [r["total"] for r in results if r["total"] is not None]
    return f"class median {statistics.median(totals):g}" if totals else ""


def everything(out, master, results, collected, options):
    """Write all that a run leaves behind."""
    results = sorted((with_marks(master, r, collected) for r in results),
                     key=lambda r: r["student"])  # fmt: skip
    marks.store(out, master, collected, [r["student"] for r in results])
    grades(out, master, results)
    imports(out, master, results, options.roster)
    line = options.footer(results)
    for result in results:
        name = file_name(result["student"])
        write(out / "feedback" / f"{name}.html", feedback(master, result, line))
        log = "\n".join(result["flags"]) + "\n\n" + result["log"] + "\n"
        write(out / "logs" / f"{name}.txt", log)
    by_hand.pages(out, master, results)
    write(
        out / "summary.html",
        PAGE.format(
            title=f"{master.name}: summary",
            css=CSS,
            body=summary.body(master, results, options.roster),
        ),
    )


def claim(out, name):
    """A folder of results belongs to one assignment; a second one is refused."""
    sign = out / "assignment.txt"
    owner = sign.read_text(encoding="utf-8").strip() if sign.exists() else name
    if owner != name:
        raise ValueError(f"OUT {out} holds the results of {owner!r}, not of {name!r}: take another")
    if not sign.exists():
        write(sign, name + "\n")


def remembered(out, student, fingerprint):
    """The result of an earlier run of the very same thing, or None."""
    file = out / "results" / f"{file_name(student)}.json"
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return kept["result"] if kept["fingerprint"] == fingerprint else None
    except (OSError, ValueError, LookupError, TypeError):
        return None


def seconds(out):
    """The mean time of the submissions marked in this folder so far, or 0."""
    found = []
    for file in (out / "results").glob("*.json"):
        try:
            found.append(json.loads(file.read_text(encoding="utf-8"))["result"]["seconds"])
        except (OSError, ValueError, LookupError, TypeError):
            continue
    return statistics.fmean(found) if found else 0.0


def remember(out, result, fingerprint):
    write(
        out / "results" / f"{file_name(result['student'])}.json",
        json.dumps({"fingerprint": fingerprint, "result": result}),
    )
