"""Check a master under the real grader: full marks, none for stubs, wrong answers lose theirs."""

import copy
import json
import re
import tempfile
import warnings
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import yaml

from . import marking, masters, nonanswers, reading, run, sandbox
from .session import Session


def solved(master):
    """The student version with the master's answers in it."""
    notebook = copy.deepcopy(master.student)
    for cell, full in zip(notebook.cells, master.notebook.cells, strict=True):
        if masters.grading(full).get("solution"):
            cell.source = masters.solution(full.source)
    return notebook


def wrong_answers(path):
    """The plausible mistakes in the folder `wrong` beside the masters."""
    file = path.parent / "wrong" / f"{path.stem}.yml"
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else []


def groups(wrong):
    """Wrong answers that share a notebook: at most one for each question."""
    shared = []
    for w in wrong:
        free = (g for g in shared if all(w["question"] != v["question"] for v in g))
        group = next(free, None)
        shared += [[]] * (group is None)
        (shared[-1] if group is None else group).append(w)
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
    with redirect_stdout(None):  # nobody marks this by hand
        result = run.grade(path.stem, folder / "in", folder / "out", path.parent, limits, 1)["ada"]
    if run.FAILED in result["flags"]:
        raise sandbox.SandboxError(f"{path.stem}: {'; '.join(result['flags'])}")
    return result["messages"]


def together(master, books, limits, folder):
    """For each of some notebooks {question that failed: whether in its public tests}. They run one
    after another in one sandbox: they are ours, and one start serves all. As in the grader, what
    failed gets the master's answer for what follows.
    """
    limits = replace(limits, total_seconds=limits.total_seconds * (1 + len(books)))
    given, failed = marking.namespace(master), []
    tested = {q.id for q in master.questions if not q.manual}
    session = Session(master.given, limits, sandbox.Bubblewrap(limits))
    with warnings.catch_warnings(), session:
        warnings.simplefilter("ignore")
        for book in books:
            # no plots, for instance
            cells = [c for c in book.cells if c.id.removeprefix("test-") in tested]
            file = folder / "book.ipynb"
            file.write_text(json.dumps({**book, "cells": cells}), encoding="utf-8")
            steps = reading.read("ada", file, [], master).steps
            session.forget()
            tried = marking.Marking(session, steps, master, given)
            tried.second_run()
            failed.append({q: q in tried.refused for q in tried.failed})
    return failed


def sums(master):
    """Where a sheet says other points than its questions have: in its table, or in a heading."""
    by_tests = sum(q.points for q in master.questions if not q.manual)
    points = sum(q.points for q in master.questions)
    text = "\n".join(c.source for c in master.notebook.cells if c.cell_type == "markdown")
    row = re.search(
        r"^\|[^|]*\| *(\d+): (\d+)[^|]*, \d+[^|]*\|$", text, re.M
    )  # 30: 20 by tests, 10
    if row and (int(row[1]), int(row[2])) != (points, by_tests):
        yield f"its table says {row[1]} points, {row[2]} by tests: {points:g} and {by_tests:g} are"
    for number, said in re.findall(r"^## \D*(\d+)\b[^(\n]*\((\d+) ", text, re.M):
        own = sum(q.points for q in master.questions if re.match(rf"{number}\D", q.id))
        if own != int(said):
            yield f"the heading of question {number} says {said} points, its parts have {own:g}"


def complaints(path, limits):
    """Grade the master, the stubs and all wrong answers; say what is not as it must be."""
    master, wrong = masters.read(path), wrong_answers(path)
    automatic = {q.id for q in master.questions if not q.manual}
    shared = groups(wrong)
    books = [master.student, *(spoiled(master, group) for group in shared)]
    with tempfile.TemporaryDirectory() as name:
        messages = marked(path, solved(master), limits, Path(name))
        stubs, *lost = together(master, books, limits, Path(name))
    problems = [f"the master loses {q}: {message}" for q, message in messages.items()]
    problems += [f"the stubs earn {q}" for q in sorted(automatic - set(stubs))]
    for group, got in zip(shared, lost, strict=True):
        asked = {w["question"]: w["why"] for w in group}
        hidden = [w for w in group if w.get("public") and not got.get(w["question"], True)]
        problems += [f"no public test sees {w['why']!r} of {w['question']}" for w in hidden]
        problems += [f"{why!r} does not cost {q}" for q, why in asked.items() if q not in got]
        whys = " / ".join(asked.values())
        problems += [f"{whys}: must not cost {q}" for q in sorted(set(got) - set(asked))]
    problems += [f"{q}: {what}" for q, what in nonanswers.find(master)]
    problems += [f"no rubric for {q.id}" for q in master.questions if q.manual and not q.rubric]
    problems += sums(master)
    missing = automatic - {w["question"] for w in wrong}
    problems += [f"no wrong answer for {q}" for q in sorted(missing)]
    return [f"{path.stem}: {problem}" for problem in problems]
