"""Check a master under the real grader: full marks, none for stubs, wrong answers lose theirs."""

import ast
import copy
import json
import re
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import yaml

from . import judge, masters, run, sandbox, submissions
from .session import Session

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


def marked(path, book, limits, folder):
    """What the failed tests said of a notebook, from a run as an instructor would start it."""
    (folder / "in").mkdir()
    (folder / "in" / "ada.ipynb").write_text(json.dumps(book), encoding="utf-8")
    results = run.grade(path.stem, folder / "in", folder / "out", path.parent, limits, 1)
    return results["ada"]["messages"]


def loaded(source):
    """All names that a piece of code reads, its own too."""
    return {n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)}


def needed(master, tests):
    """The cells that these tests need, by what they define: no plots, for instance."""
    names, sources = set().union(*map(loaded, tests)), []
    for cell in reversed([c for c in master.notebook.cells if c.cell_type == "code"]):
        if "points" not in masters.grading(cell) and masters.bound(cell.source) & names:
            names |= loaded(cell.source)
            sources.append(cell.id)
    return sources


def reached(master, changed):
    """The questions whose tests can notice a change of these answers, also through others."""
    tests = {q.id: f"{q.source}\n{q.hidden}" for q in master.questions if not q.manual}
    dirty = set()
    for cell in (c for c in master.notebook.cells if c.cell_type == "code"):
        if "points" not in masters.grading(cell):
            if cell.id in changed or loaded(cell.source) & dirty:
                dirty |= masters.bound(cell.source)
    return [q for q, source in tests.items() if loaded(source) & dirty]


def together(master, books, limits, folder):
    """[what the failed tests said] of (notebook, questions to test), in one sandbox one by one.

    They are ours: none has to be kept away from the next, and one start serves all.
    """
    limits = replace(limits, total_seconds=limits.total_seconds * (1 + len(books)))
    given, said = judge.namespace(master), []
    sources = {q.id: f"{q.source}\n{q.hidden}" for q in master.questions}
    launcher = sandbox.Bubblewrap(limits, sandbox.font_cache(folder / "out" / "fonts"))
    with warnings.catch_warnings(), Session(master.given, limits, launcher) as session:
        warnings.simplefilter("ignore")
        for book, questions in books:
            kept = needed(master, [sources[q] for q in questions])
            cells = [c for c in book.cells if c.id in kept or c.id.startswith("test-")]
            file = folder / "book.ipynb"
            file.write_text(json.dumps({**book, "cells": cells}), encoding="utf-8")
            steps = submissions.read("ada", file, [], master).steps
            session.forget()
            said.append({q: "not reached" for q in questions})
            judge.follow(session, steps, master, given, said[-1], [])
    return said


def complaints(path, limits):
    """Grade the master, the stubs and all wrong answers; say what is not as it must be."""
    master, wrong = masters.read(path), wrong_answers(path)
    automatic = {q.id for q in master.questions if not q.manual}
    shared = groups(wrong)
    books = [(master.student, sorted(automatic))]
    books += [(spoiled(master, g), reached(master, [w["question"] for w in g])) for g in shared]
    with tempfile.TemporaryDirectory() as name:
        stubs, *lost = map(set, together(master, books, limits, Path(name)))
        messages = marked(path, solved(master), limits, Path(name))
    found = [f"the master loses {q}: {message}" for q, message in messages.items()]
    found += [f"the stubs earn {q}" for q in sorted(automatic - stubs)]
    for group, got in zip(shared, lost, strict=True):
        found += [
            f"{w['why']!r} does not cost {w['question']}" for w in group if w["question"] not in got
        ]
        for q in sorted(got - set().union(*map(costs, group))):
            found.append(f"{' / '.join(w['why'] for w in group)}: must not cost {q}")
    found += [
        f"no wrong answer for {q}" for q in sorted(automatic - {w["question"] for w in wrong})
    ]
    return [f"{path.stem}: {problem}" for problem in found]
