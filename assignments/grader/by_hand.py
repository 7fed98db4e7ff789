"""The pages for marking by hand: rubric, all answers to a question, plots, boxes for the marks.

The answers are students' text: Markdown without HTML, links and pictures from elsewhere, formulas
set by KaTeX from a copy beside the pages. The button saves the table that `marks` reads.
"""

import html
import json
import shutil
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from .files import plain, write

KATEX = Path(__file__).resolve().parents[2] / "node_modules" / "katex" / "dist"
MARKS = ("### BEGIN SOLUTION", "### END SOLUTION")
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;
 style-src 'unsafe-inline' file: 'self'; font-src file: 'self'; script-src 'unsafe-inline' file: 'self'">
<title>{title}</title>
<link rel="stylesheet" href="katex/katex.min.css">
<script defer src="katex/katex.min.js"></script>
<style>body {{ font: 1rem/1.5 sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem 4rem }}
section {{ border-top: 1px solid #999; padding: .5rem 0 }} pre {{ white-space: pre-wrap; background: #f4f4f4 }}
.rubric {{ background: #f0f4f8; padding: .2rem 1rem }} img {{ max-width: 100% }} textarea {{ width: 100%; box-sizing: border-box }}
nav {{ position: sticky; top: 0; background: white; padding: .4rem 0 }}</style>
<h1>{title}</h1>
<nav><button type="button" id="save">Save the marks</button> as {file}: put it into the folder
<code>by-hand</code> and run the command again. <output></output></nav>
<div class="rubric"><h2>Rubric and model answer</h2>{rubric}</div>
{answers}
<script>
const students = {students}, key = {key};
const boxes = [...document.querySelectorAll("section")];
const kept = JSON.parse(localStorage.getItem(key) || "{{}}");
boxes.forEach((box, i) => {{
  const old = kept[students[i]];
  if (old) [box.querySelector("input").value, box.querySelector("textarea").value] = old;
}});
document.addEventListener("input", () => {{
  boxes.forEach((box, i) => kept[students[i]] = [box.querySelector("input").value, box.querySelector("textarea").value]);
  localStorage.setItem(key, JSON.stringify(kept));
}});
const quote = (text) => '"' + String(text).replaceAll('"', '""') + '"';
document.getElementById("save").addEventListener("click", () => {{
  const lines = [["student", "points", "of", "comment"], ...boxes.map((box, i) =>
    [students[i], box.querySelector("input").value, {points}, box.querySelector("textarea").value])];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.map((l) => l.map(quote).join(",")).join("\\n") + "\\n"]));
  link.download = {file_json};
  link.click();
  localStorage.removeItem(key);
}});
addEventListener("load", () => document.querySelectorAll(".math").forEach((box) => window.katex &&
  katex.render(box.textContent, box, {{displayMode: box.classList.contains("block"),
    throwOnError: false, maxExpand: 200, maxSize: 20, trust: false}})));
</script>
</html>
"""  # noqa: E501


def markdown(text):
    """Students' Markdown as HTML without anything that runs or loads; formulas stay for KaTeX."""
    reader = MarkdownIt("js-default", {"html": False}).use(dollarmath_plugin, double_inline=True)
    return reader.disable(["image", "link", "autolink"]).render(text)


def section(q, result):
    """One student's answer with boxes for points and a comment."""
    mark, comment = result["points"][q.id], result["comments"].get(q.id, "")
    plots = "".join(f'<img alt="a plot of the notebook" src="data:image/png;base64,{data}">'
                    for data in result.get("plots", []))  # fmt: skip
    folded = f"<details><summary>plots of the notebook</summary>{plots}</details>" if plots else ""
    value = "" if mark is None else f"{mark:g}"
    return (
        f"<section><h2>{html.escape(result['student'])}</h2>"
        f"{markdown(result['answers'].get(q.id, ''))}{folded}"
        f'<p><label>points <input type="number" min="0" max="{q.points:g}" step="0.5" '
        f'value="{value}"> of {q.points:g}</label></p>'
        f"<label>comment <textarea rows=2>{html.escape(comment)}</textarea></label></section>"
    )


def page(master, q, results):
    """All answers to one question."""
    rubric = f"{q.rubric}\n\n{q.answer}"
    for mark in MARKS:
        rubric = rubric.replace(mark, "")
    students = json.dumps([plain(r["student"]) for r in results]).replace("<", "\\u003c")
    file = f"{q.id}.csv"
    return PAGE.format(
        title=f"Question {q.id}, {q.points:g} points",
        file=file, file_json=json.dumps(file), rubric=markdown(rubric), students=students,
        key=json.dumps(f"{master.name}-{q.id}"), points=f"{q.points:g}",
        answers="\n".join(section(q, r) for r in results),
    )  # fmt: skip


def pages(out, master, results):
    """One page a question, and KaTeX beside them where the book's build has fetched it."""
    folder = out / "by-hand"
    for q in (q for q in master.questions if q.manual):
        write(folder / f"{q.id}.html", page(master, q, results))
    if KATEX.exists() and not (folder / "katex" / "fonts").exists():
        (folder / "katex").mkdir(parents=True, exist_ok=True)
        for name in ("katex.min.css", "katex.min.js"):
            shutil.copy(KATEX / name, folder / "katex")
        shutil.copytree(KATEX / "fonts", folder / "katex" / "fonts")
