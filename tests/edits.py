"""Numbers of a page's visible cells changed in turn, as a reader does with Edit.

    python -m tests.edits chapters/gaussian 20 1      twenty changes drawn with seed 1

All cells of the built page run once, in the order and the way of the page's Python (site/run). At
each number that was drawn a copy of the process goes on with another number in its place. Prints
JSON: what the unchanged cells show, and for each change what became of the cells below.
"""

import ast
import collections
import json
import os
import random
import resource
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "site")]

import surroundings  # noqa: E402

surroundings.enter()  # before NumPy is loaded

from machine import SITE, page_shell  # noqa: E402

LIMIT = 120  # seconds of processor time for the cells below one change
MEMORY = 4 * 2**30  # bytes of address space
shell = page_shell()


def cells_of(page):
    """The cells of a built page that run here, as the page has them."""
    file = SITE / "_run" / "cells" / f"{page}.json"
    return [cell for cell in json.loads(file.read_text(encoding="utf-8")) if not cell["lacks"]]


def numbers(source):
    """Start and end of each number in the code, and the number."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            start = starts[node.lineno - 1] + node.col_offset
            yield start, starts[node.end_lineno - 1] + node.end_col_offset, node.value


def other(number, draw):
    """A number that a reader may try in place of this one."""
    if isinstance(number, int):
        return draw.choice([number + 1, max(number - 1, 0), number // 2 or 3, 2 * number or 1])
    return draw.choice([number / 2, 2 * number, 0.9 * number, number + 0.1])


def changes(cells, count, seed):
    """Up to `count` changes of the visible cells: {place of the cell: [its new source, ...]}."""
    draw = random.Random(seed)
    found = [
        (place, *where)
        for place, cell in enumerate(cells) if "number" in cell
        for where in numbers(cell["source"])
    ]  # fmt: skip
    made = collections.defaultdict(list)
    for place, start, end, number in draw.sample(found, min(count, len(found))):
        source = cells[place]["source"].encode()
        new = source[:start] + f"{other(number, draw)!r}".encode() + source[end:]
        made[place].append(new.decode())
    return made


def run(cell, source):
    """Run one cell; what came of it, or why it failed."""
    waiting = shell.run(source, name_of(cell))
    try:
        waiting.send(None)
    except StopIteration as ended:
        done = json.loads(ended.value)
    return {"number": cell.get("number"), **done}


def name_of(cell):
    return f"cell {cell['number']}" if "number" in cell else "a hidden cell"


def below(cells, place, source):
    """Run the cells from `place` on, that one with another source: how each of them ends."""
    for cell in cells[place:]:
        done = run(cell, source if cell is cells[place] else cell["source"])
        error = done["error"] or {}
        yield [name_of(cell), error.get("name"), error.get("traceback")]


def apart(work):
    """What `work` yields in a copy of this process, until that has taken too long."""
    here, there = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        with os.fdopen(there, "w", encoding="utf-8") as pipe:
            for one in work():
                print(json.dumps(one), file=pipe, flush=True)
        os._exit(0)
    os.close(there)
    with os.fdopen(here, encoding="utf-8") as pipe:
        *told, _cut = pipe.read().split("\n")
    os.waitpid(child, 0)
    return [json.loads(line) for line in told]


def report(page, count, seed):
    """Run the page, and a copy of it from each change on."""
    cells = cells_of(page)
    planned = changes(cells, count, f"{page} {seed}")
    shown, found = [], []
    for place, cell in enumerate(cells):
        for source in planned[place]:
            ended = apart(lambda place=place, source=source: below(cells, place, source))
            found.append({"cell": cell["number"], "source": source, "ended": ended})
        shown.append(run(cell, cell["source"]))
    return {"shown": shown, "changes": found}


if __name__ == "__main__":
    shell.begin()
    page, count, seed = sys.argv[1:]
    told, sys.stdout = sys.stdout, sys.stderr
    json.dump(report(page, int(count), int(seed)), told)
