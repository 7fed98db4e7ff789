"""Check a master under the real grader: full marks, none for stubs, and wrong answers that lose their question."""

import copy
import json
import re
import tempfile
from pathlib import Path

import yaml

from . import masters, run

MARKERS = re.compile(r"^[ \t]*### (?:BEGIN|END) SOLUTION\n?", re.M)


def solved(master):
    """The student version with the master's answers in it."""
    notebook = copy.deepcopy(master.student)
    for cell, full in zip(notebook.cells, master.notebook.cells, strict=True):
        if masters.grading(full).get("solution"):
            cell.source = MARKERS.sub("", full.source).rstrip("\n")
    return notebook


def wrong_answers(path):
    """{name: (question, {question: loses too}, find, replace)} of the file beside the masters."""
    file = path.parent / "wrong" / f"{path.stem}.yml"
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else []


def spoiled(master, wrong):
    """A perfect notebook with one mistake in the answer to one question."""
    notebook = solved(master)
    cell = next(c for c in notebook.cells if c.id == wrong["question"])
    if cell.source.count(wrong["right"]) != 1:
        raise ValueError(f"{master.name}: {wrong['why']!r}: its 'right' text must be there once")
    cell.source = cell.source.replace(wrong["right"], wrong["wrong"])
    return notebook


def complaints(path, limits, jobs=2, unsafe=False):
    """Grade the master, the stubs and all wrong answers; say what is not as it must be."""
    master, wrong = masters.read(path), wrong_answers(path)
    automatic = {q.id: q.points for q in master.questions if not q.manual}
    books = {"solved": solved(master), "stubs": master.student}
    books |= {f"wrong {number}": spoiled(master, w) for number, w in enumerate(wrong)}
    with tempfile.TemporaryDirectory() as folder:
        handed_in = Path(folder) / "in"
        handed_in.mkdir()
        for name, book in books.items():
            (handed_in / f"{name}.ipynb").write_text(json.dumps(book), encoding="utf-8")
        results = run.grade(
            path.stem, handed_in, Path(folder) / "out", path.parent, limits, jobs, unsafe
        )
    lost = {
        name: {q for q in automatic if not result["scores"][q]} for name, result in results.items()
    }
    found = [
        f"{path.stem}: the master loses {q}: {results['solved']['messages'][q]}"
        for q in sorted(lost["solved"])
    ]
    found += [f"{path.stem}: the stubs earn {q}" for q in sorted(set(automatic) - lost["stubs"])]
    for number, w in enumerate(wrong):
        allowed = {w["question"], *w.get("also", [])}
        got = lost[f"wrong {number}"]
        if w["question"] not in got or not got <= allowed:
            found.append(
                f"{path.stem}: {w['why']!r} must cost {sorted(allowed)}, it costs {sorted(got)}"
            )
    untried = set(automatic) - {w["question"] for w in wrong}
    return found + [f"{path.stem}: no wrong answer for {q}" for q in sorted(untried)]
