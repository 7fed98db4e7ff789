"""What a run leaves behind: grades.csv, tables for other systems, feedback and logs."""

import html
import io
import json
import re
import statistics
import time
import zipfile
from pathlib import PurePath

import nbformat

from . import by_hand, late, marks, rendering, submissions, summary, words
from .files import Names, file_name, plain, write

MOST = 0.5  # a test that more of a class have in other words was corrected, not edited
CSS = """body { font: 1rem/1.5 sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }
pre { white-space: pre-wrap; background: #f4f4f4; color: #111; padding: .8rem }
section { border-top: 1px solid #999 } h2 { font-size: 1.1rem } .sum { font-size: 1.3rem }
p, pre, li { overflow-wrap: anywhere } .solution { overflow-x: auto }
"""
PAGE = """<!doctype html>
<html lang="{language}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{css}</style><h1>{title}</h1>
{body}
</html>
"""


def with_marks(master, result, collected):
    """The result with its marks, by tests and by hand, its comments and its total."""
    student, points, comments = result["student"], dict(result["scores"]), {}
    for q in master.questions:
        if q.manual:
            points[q.id], comments[q.id] = collected.marks[q.id].get(student, (None, ""))
            if points[q.id] is None and result["blank"].get(q.id):
                points[q.id], comments[q.id] = 0, comments[q.id] or words.ANSWERED_NOT
        elif student in collected.overrides.get(q.id, {}):
            points[q.id], comments[q.id] = collected.overrides[q.id][student]
    outdated = {q: marks[student] for q, marks in collected.outdated.items() if student in marks}
    again = [f"answer {q} was changed after it was marked: mark it again" for q in outdated]
    return {
        **result,
        "flags": [*result["flags"], *again],
        "outdated": outdated,
        "points": points,
        "comments": {q: comment for q, comment in comments.items() if comment},
        "automatic": sum(points[q.id] or 0 for q in master.questions if not q.manual),
        "total": None if None in points.values() else sum(points.values()),
    }


def shown(number):
    return "" if number is None else f"{number:g}"


def grades(out, master, results):
    """The table of all students."""
    of = sum(q.points for q in master.questions)
    questions = [q.id for q in master.questions]
    lines = [
        [plain(r["student"]), plain(r["file"]), *(shown(r["points"][q]) for q in questions),
         shown(r["automatic"]), shown(r["deduction"] or None), shown(r["total"]), shown(of),
         "; ".join(r["flags"])]
        for r in results
    ]  # fmt: skip
    columns = ["student", "file", *questions, "automatic", "late", "total", "of", "flags"]
    marks.keep(out / "grades.csv", marks.table(columns, lines))


def imports(out, master, results, roster):
    """The totals as Canvas and Moodle take them in; students without a total are left out. Canvas
    finds a student by its own number, Moodle by the user's name."""
    of, on_list = sum(q.points for q in master.questions), Names(roster)
    canvas, moodle = [["Points Possible", "", "", "", "", shown(of)]], []
    for r in (r for r in results if r["total"] is not None):
        login = on_list.who(r) or r["student"]
        name, total, number = roster.get(login) or login, shown(r["total"]), r.get("number", "")
        canvas.append([plain(name), number, "", "" if number else plain(login), "", total])
        said = [f"{q}: {comment}" for q, comment in r["comments"].items()]
        comments = "; ".join([r["late_remark"]] * bool(r["late_remark"]) + said)
        moodle.append([plain(login), total, plain(comments)])
    columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", master.name]
    write(out / "canvas.csv", marks.table(columns, canvas))
    columns = ["username", master.name, f"{master.name} feedback"]
    write(out / "moodle.csv", marks.table(columns, moodle))


def remark(q, result):
    """What a student reads about one question."""
    comment, mark = result["comments"].get(q.id), result["points"][q.id]
    if mark is None or q.manual:
        return comment or ("" if mark is not None else "not marked yet")
    said = result["messages"].get(q.id) or result["helped"].get(q.id) or "all tests hold"
    return f"{said}\nCorrected by hand: {comment}" if comment else said


def solutions(q, say):
    """The master's answer, folded: as code, or typeset with its rubric."""
    body = f"<pre>{html.escape(q.given)}</pre>"
    if q.manual:
        body = rendering.with_formulas(by_hand.model_answer(q))
    return f'<details class="solution"><summary>{say("model answer")}</summary>{body}</details>'


def feedback(master, result, options, line, answers):
    """One student's page: the sum and the date, then each question with points and a remark."""
    say, of = master.words, sum(q.points for q in master.questions)
    sums = f"{result['automatic']:g} points by tests; the rest is not marked yet"
    if result["total"] is not None:
        sums = f"{result['total']:g} of {of:g} points"
    date = time.strftime("%Y-%m-%d", time.localtime(options.now))
    lost = all(score is None for score in result["scores"].values())
    file = "could not be marked" if lost else f"marked on {date}: {result['file']}"
    file = file if lost or result["file"] else words.NO_NOTEBOOK
    about = [f"{say(file)}.", say(result["late_remark"]), say(line)]
    parts = [
        f'<p class="sum">{say(sums)}</p>',
        f"<p>{html.escape(' '.join(filter(None, about)))}</p>",
    ]
    for q in master.questions:
        points = result["points"][q.id]
        points = say("no mark yet") if points is None else shown(points)
        text = html.escape(say(remark(q, result))).replace("\n", "<br>")
        head = f"<h2>{say(f'{q.id}: {points} of {q.points:g}')}</h2>"
        parts.append(f"<section>{head}<p>{text}</p>{answers.get(q.id, '')}</section>")
    return page(f"{master.name}: {result['student']}", parts, say.language)


def parcel(out, pages):
    """All feedback in one file for Canvas and Moodle, which know a student by the name of what was
    handed in: {its place in SUBMISSIONS: page}."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, text in pages.items():
            archive.writestr(*returned(place, text))
    write(out / "feedback.zip", data.getvalue())


def returned(place, text):
    """(name, data) of one student's feedback. Canvas shows it under the name of what was handed in:
    for a notebook it is a notebook, with the page as its text. It takes no file whose last part
    begins with "link"."""
    canvas = submissions.CANVAS.fullmatch(PurePath(place).stem)
    name = re.sub(r"_(link[^_]*)$", r"-\1", place) if canvas else place
    if canvas and place.lower().endswith(".ipynb"):
        body = text.partition("</style>")[2].rpartition("</html>")[0]
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(body.strip())])
        book.cells[0].id = "feedback"
        return name, nbformat.writes(book).encode("utf-8", "replace")
    return f"{name}.html", text.encode("utf-8", "replace")


def page(title, parts, language="en"):
    """A page of its own, from a plain title and pieces of HTML."""
    body = "\n".join(parts)
    return PAGE.format(title=html.escape(title), css=CSS, body=body, language=language)


def median(results):
    """A sentence with the class median, of those whose marks are complete."""
    totals = [r["total"] for r in results if r["total"] is not None]
    return f"class median {statistics.median(totals):g}" if totals else ""


def changes(out, changed):
    """Whose points are others than after the last run; one more table for each run with changes."""
    if changed:
        name = time.strftime("changes-%Y-%m-%dT%H%M%S.csv")
        lines = [[plain(s), q, shown(before), shown(now)] for s, q, before, now in changed]
        write(out / "changes" / name, marks.table(["student", "question", "before", "now"], lines))


def write_reports(out, master, results, collected, options):
    """Write all that a run leaves behind; returns sentences for whoever started it."""
    corrected = without_corrected_tests(results)
    for q in (q for q in master.questions if q.manual):
        collected.compare(q, results)
    results = sorted((with_marks(master, r, collected) for r in results),
                     key=lambda r: r["student"])  # fmt: skip
    of = sum(q.points for q in master.questions)
    results, lateness = late.deduct(out, results, collected.students, of, options.late_rule)
    changed = marks.store(out, master, collected, results)
    changes(out, changed)
    grades(out, master, results)
    imports(out, master, results, options.roster)
    line = median(results) if options.median else ""
    answers = (
        {q.id: solutions(q, master.words) for q in master.questions} if options.solutions else {}
    )
    pages = {}
    for result in results:
        name = file_name(result["student"])
        text = feedback(master, result, options, line, answers)
        write(out / "feedback" / f"{name}.html", text)
        if result.get("place"):
            pages[result["place"]] = text
        log = "\n".join(result["flags"]) + "\n\n" + result["log"] + "\n"
        write(out / "logs" / f"{name}.txt", log)
    parcel(out, pages)
    by_hand.pages(out, master, results)
    parts = summary.describe(master, results, options.roster, collected)
    write(out / "summary.html", page(f"{master.name}: summary", parts))
    return [*corrected, *lateness, *told(master, results, collected, changed)]


def without_corrected_tests(results):
    """A test that most of a class have in other words was corrected after it was handed out: these
    flags go, and one sentence takes their place."""
    said, read = [], [r for r in results if r["file"]]
    for flag in sorted(
        {flag for r in read for flag in r["flags"] if flag.startswith("edited test")}
    ):
        having = [r for r in read if flag in r["flags"]]
        if len(having) > max(2, MOST * len(read)):
            for result in having:
                result["flags"] = [other for other in result["flags"] if other != flag]
            test = flag.removeprefix("edited ")
            said.append(
                f"{test} is not the master's in {len(having)} of {len(read)} submissions: was it "
                "corrected after the sheet was handed out? They are not flagged for it"
            )
    return said


def told(master, results, collected, changed):
    """Sentences for whoever started the run: what there is to look at."""
    left = {
        f"by-hand/{q.id}.html": sum(r["points"][q.id] is None for r in results)
        for q in master.questions if q.manual
    }  # fmt: skip
    counts = {
        "points changed since the last run, see changes/": len(changed),
        "answers changed after their mark, mark them again": sum(
            len(r["outdated"]) for r in results
        ),
        "rows that could not be used, see by-hand/set-aside.csv": len(collected.aside),
        f"answers without a mark by hand, see {', '.join(p for p in left if left[p])}": sum(
            left.values()
        ),
        "submissions with flags, see summary.html": sum(bool(r["flags"]) for r in results),
    }
    return [f"{what}: {count}" for what, count in counts.items() if count]


def claim(out, name):
    """A folder of results belongs to one assignment; a second one is refused."""
    sign = out / "assignment.txt"
    owner = sign.read_text(encoding="utf-8").strip() if sign.exists() else name
    if owner != name:
        raise ValueError(f"OUT {out} holds the results of {owner!r}, not of {name!r}: take another")
    if not sign.exists():
        write(sign, name + "\n")


def result_file(out, student):
    return out / "results" / f"{file_name(student)}.json"


def kept(file):
    """(fingerprint, result) of an earlier run; two times None if there is none."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        return stored["fingerprint"], stored["result"]
    except (OSError, ValueError, LookupError, TypeError):
        return None, None


def remembered(out, student, fingerprint):
    """The result of an earlier run of the very same thing, with its pictures, or None."""
    known, result = kept(result_file(out, student))
    if known != fingerprint:
        return None
    names = [name for some in result["pictures"].values() for name in some]
    there = all((out / by_hand.PICTURES / name).exists() for name in names)
    return result if there else None


def remember(out, result, fingerprint):
    text = json.dumps({"fingerprint": fingerprint, "result": result})
    write(result_file(out, result["student"]), text)


def read_roster(path):
    """{student: name} of the list of students; of Canvas' own export by Canvas' number."""
    roster = {}
    for line in marks.rows(path) if path else []:
        first, student = next(iter(line)), next(iter(line.values()))
        name = (line.get("name") or "").strip()
        if first == "Student" and "ID" in line:
            student, name = line["ID"], student.strip()  # without one: the points possible, say
        if student and student.strip():
            roster[student.strip()] = name
    if path and not roster:
        raise ValueError(f"roster {path} must be a CSV whose first column holds the students")
    return roster
