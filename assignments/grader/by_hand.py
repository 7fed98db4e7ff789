"""The pages for marking by hand: rubric, all answers to a question, pictures, boxes for the marks.

The answers were made safe in the processes that read them (`rendering`). The button saves what was
touched, and what it replaced, as a table that `marks` merges with those of other people.
"""

import html
import json
import shutil
from pathlib import Path

from . import rendering
from .files import plain, write

PICTURES = "by-hand/pictures"  # in the folder of results
MACROS = Path(__file__).resolve().parents[2] / "site" / "pages" / "macros.json"
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src file: 'self';
 style-src 'unsafe-inline' file: 'self'; font-src file: 'self'; script-src 'unsafe-inline' file: 'self'">
<title>{title}</title>
<link rel="stylesheet" href="katex/katex.min.css">
<script defer src="katex/katex.min.js"></script>
<style>body {{ font: 1rem/1.5 sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem 4rem }}
section {{ border-top: 1px solid #999; padding: .5rem 0 }} pre {{ white-space: pre-wrap; background: #f4f4f4 }}
.rubric {{ background: #f0f4f8; padding: .2rem 1rem }} .answer {{ contain: content; overflow: auto;
 border-left: 4px solid #bbb; padding: 0 1rem }} .answer :is(h1, h2, h3) {{ font-size: 1rem }} img {{ max-width: 100% }} textarea {{ width: 100%; box-sizing: border-box }}
nav {{ position: sticky; top: 0; background: white; padding: .4rem 0 }}</style>
<h1>{title}</h1>
<nav><label>I mark part <input id="part" value="1/1" size="5"></label>
<label>as <input id="who" size="10" placeholder="your name"></label>
<button type="button" id="save">Save my marks</button>: put the file into the folder
<code>by-hand</code> and run the command again. <output id="left"></output></nav>
<p id="bare" hidden>Formulas stand here as TeX: KaTeX is not in the folder <code>by-hand/katex</code>.</p>
<div class="rubric"><h2>Rubric and model answer</h2>{rubric}</div>
{answers}
<script>
const students = {students}, key = {key} + "-2", given = {given}, points = {points}, digests = {digests};
const boxes = [...document.querySelectorAll("section")];
const fields = (box) => [box.querySelector("input"), box.querySelector("textarea")];
const now = (box) => fields(box).map((field) => field.value);
const same = (one, other) => one[0] === other[0] && one[1] === other[1];
let kept = new Map(JSON.parse(localStorage.getItem(key) || "[]"));  // a student can have any name
boxes.forEach((box, i) => {{
  const old = kept.get(students[i]);
  if (old && same(old.before, given[i])) fields(box).forEach((field, k) => field.value = old.now[k]);
  else if (old) box.insertAdjacentHTML("beforeend", "<p><strong>Somebody else has marked this since. " +
    "What you wrote here and did not save is not shown.</strong></p>");
}});
const show = () => {{
  const [part, of] = document.getElementById("part").value.split("/").map(Number);
  boxes.forEach((box, i) => box.hidden = of > 1 && i % of !== part - 1);
  const left = boxes.filter((box) => !box.hidden && now(box)[0] === "").length;
  document.getElementById("left").textContent = left + " left";
}};
document.addEventListener("input", () => {{
  kept = new Map();
  boxes.forEach((box, i) => {{
    if (!same(now(box), given[i])) kept.set(students[i], {{before: given[i], now: now(box)}});
  }});
  localStorage.setItem(key, JSON.stringify([...kept]));
  show();
}});
const quote = (text) => '"' + String(text).replaceAll('"', '""') + '"';
document.getElementById("save").addEventListener("click", () => {{
  const lines = [["student", "points", "of", "comment", "before", "comment before", "answer"]];
  boxes.forEach((box, i) => {{
    const [mark, comment] = now(box), before = given[i];
    if (!same([mark, comment], before)) lines.push([students[i], mark, points, comment, ...before, digests[i]]);
  }});
  const who = document.getElementById("who").value.replace(/\\W+/g, "_") || "marks";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.map((l) => l.map(quote).join(",")).join("\\n") + "\\n"]));
  link.download = {question} + "-" + who + ".csv";
  link.click();
}});
const set = (box) => {{
  const tex = box.textContent;
  try {{
    katex.render(tex, box, {{displayMode: box.classList.contains("block"),
      macros: {macros}, throwOnError: false, maxExpand: 200, maxSize: 20, trust: false}});
  }} catch (error) {{  // nested too deep: this formula stays TeX, and the others are set
    box.textContent = "(a formula that could not be set) " + tex.slice(0, 2000);
  }}
}};
addEventListener("load", () => window.katex && document.querySelectorAll(".math").forEach(set));
addEventListener("load", () => document.getElementById("bare").hidden = !!window.katex);
show();
</script>
</html>
"""  # noqa: E501


def folded(title, pictures, start="<details>"):
    """Pictures below each other: files with names of ours, loaded when they are scrolled to."""
    shown = "".join(f'<img alt="{title}" loading="lazy" src="pictures/{p}">' for p in pictures)
    return f"{start}<summary>{title}</summary>{shown}</details>" if pictures else ""


def section(q, result):
    """One student's answer with boxes for points and a comment."""
    mark, comment = result["points"][q.id], result["comments"].get(q.id, "")
    pictures = result["pictures"]
    value = "" if mark is None else f"{mark:g}"
    return (
        f"<section><h2>{html.escape(result['student'])}</h2>{outdated(q, result)}"
        f'<div class="answer">{result["answers"].get(q.id, "")}'
        f"{folded('pictures in the answer', pictures.get(q.id, ()), '<details open>')}"
        f"{folded('plots of the notebook', pictures.get('', ()))}</div>"
        f'<p><label>points <input type="number" min="0" max="{q.points:g}" step="0.5" '
        f'value="{value}"> of {q.points:g}</label></p>'
        f"<label>comment <textarea rows=2>{html.escape(comment)}</textarea></label></section>"
    )


def outdated(q, result):
    """What was marked before the student changed the answer."""
    if q.id not in result.get("outdated", {}):
        return ""
    mark, comment = result["outdated"][q.id]
    text = (
        f"The answer was changed after it was marked: {mark:g} points, {comment or 'no comment'}."
    )
    return f"<p><strong>{html.escape(text)}</strong></p>"


def model_answer(q):
    """A question's rubric and the master's answer as HTML."""
    return rendering.markdown(f"{q.rubric}\n\n{q.answer}")


def script_data(value):
    return json.dumps(value).replace("<", "\\u003c")


def page(master, q, results):
    """All answers to one question."""
    groups = json.loads(MACROS.read_text(encoding="utf-8")).values()
    given = [
        ["" if r["points"][q.id] is None else f"{r['points'][q.id]:g}", r["comments"].get(q.id, "")]
        for r in results
    ]
    return PAGE.format(
        title=f"Question {q.id}, {q.points:g} points", rubric=model_answer(q),
        students=script_data([plain(r["student"]) for r in results]), given=script_data(given),
        key=script_data(f"{master.name}-{q.id}"), points=f"{q.points:g}",
        macros=script_data({name: body for group in groups for name, body in group.items()}),
        digests=script_data([r["digests"].get(q.id, "") for r in results]),
        question=script_data(q.id), answers="\n".join(section(q, r) for r in results),
    )  # fmt: skip


def pages(out, master, results):
    """One page a question, and KaTeX beside them where the book's build has fetched it."""
    folder = out / "by-hand"
    for q in (q for q in master.questions if q.manual):
        write(folder / f"{q.id}.html", page(master, q, results))
    katex = rendering.KATEX
    if katex.exists() and not (folder / "katex" / "fonts").exists():
        (folder / "katex").mkdir(parents=True, exist_ok=True)
        for name in ("katex.min.css", "katex.min.js"):
            shutil.copy(katex / name, folder / "katex")
        shutil.copytree(katex / "fonts", folder / "katex" / "fonts")
