"""Check a master under the real grader: full marks, none for stubs, wrong answers lose theirs."""

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
    """The plausible mistakes in the folder `wrong` beside the masters."""
    file = path.parent / "wrong" / f"{path.stem}.yml"
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else []


def costs(wrong):
    """The questions that a wrong answer may lose: its own and those that use it."""
    return {wrong["question"], *wrong.get("also", [])}


def groups(wrong):
    """Wrong answers that can share a notebook: none may lose the question of another."""
    shared = []
    for w in wrong:
        apart = [
            g
            for g in shared
            if not any({w["question"]} & costs(v) or {v["question"]} & costs(w) for v in g)
        ]
        if apart:
            apart[0].append(w)
        else:
            shared.append([w])
    return shared


def spoiled(master, group):
    """A perfect notebook with one mistake in the answer to each of some questions."""
    notebook = solved(master)
    for wrong in group:
        cell = next(c for c in notebook.cells if c.id == wrong["question"])
        if cell.source.count(wrong["right"]) != 1:
            raise ValueError(
                f"{master.name}: {wrong['why']!r}: its 'right' text must be there once"
            )
        cell.source = cell.source.replace(wrong["right"], wrong["wrong"])
    return notebook


def grade(path, books, limits, jobs):
    """{name: (lost questions, messages)} of some notebooks under the real grader."""
    with tempfile.TemporaryDirectory() as folder:
        handed_in = Path(folder) / "in"
        handed_in.mkdir()
        for name, book in books.items():
            (handed_in / f"{name}.ipynb").write_text(json.dumps(book), encoding="utf-8")
        results = run.grade(path.stem, handed_in, Path(folder) / "out", path.parent, limits, jobs)
    return {name: (set(r["messages"]), r["messages"]) for name, r in results.items()}


def complaints(path, limits, jobs=2):
    """Grade the master, the stubs and all wrong answers; say what is not as it must be."""
    master, wrong = masters.read(path), wrong_answers(path)
    automatic = {q.id for q in master.questions if not q.manual}
    books = {"solved": solved(master), "stubs": master.student}
    shared = groups(wrong)
    books |= {f"wrong {number}": spoiled(master, group) for number, group in enumerate(shared)}
    lost = grade(path, books, limits, jobs)
    found = [f"the master loses {q}: {message}" for q, message in lost["solved"][1].items()]
    found += [f"the stubs earn {q}" for q in sorted(automatic - lost["stubs"][0])]
    for number, group in enumerate(shared):
        got = lost[f"wrong {number}"][0]
        found += [
            f"{w['why']!r} does not cost {w['question']}" for w in group if w["question"] not in got
        ]
        for q in sorted(got - set().union(*map(costs, group))):
            found.append(f"{' / '.join(w['why'] for w in group)}: must not cost {q}")
    found += [
        f"no wrong answer for {q}" for q in sorted(automatic - {w["question"] for w in wrong})
    ]
    return [f"{path.stem}: {problem}" for problem in found]
