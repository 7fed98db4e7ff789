"""Mutants of a master's answers, by rule: are the tests of a question sharp enough?

Each rule changes one place of one answer: a number doubled, halved or off by one, a sign, a factor
turned into a divisor, a term left out, a comparison, another function. A mutant that all tests of
its question accept must stand in `survivors.yml` with the reason.

The masters are trusted: mutants run in plain child processes with limits on memory and CPU time.
"""

import ast
import copy
import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

from . import masters
from .check import MARKERS

MEMORY = 2**30  # bytes that a mutant may add
SWAPS = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult],
    ast.Pow: [ast.Mult], ast.BitOr: [ast.BitAnd], ast.BitAnd: [ast.BitOr],
    ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.GtE], ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq],
    ast.And: [ast.Or], ast.Or: [ast.And],
}  # fmt: skip
TURNS = [
    ("min", "max"), ("minimum", "maximum"), ("mean", "sum"), ("any", "all"), ("zeros", "ones"),
    ("logaddexp", "logaddexp2"), ("sign", "abs"), ("floor", "ceil"),
]  # fmt: skip
NAMES = {"log": "log2", "log1p": "log", "expm1": "exp", "logcdf": "cdf"}
NAMES |= dict(TURNS) | {after: before for before, after in TURNS}
DROPPED = {"abs", "sqrt", "sign", "exp", "log"}
COUNTED = {"range", "arange"}


@dataclass(frozen=True)
class Mutant:
    """One changed answer; `change` names it: the statement before and after."""

    question: str
    change: str
    source: str


def variants(node):
    """What may stand in the place of an expression."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        for value in dict.fromkeys((2 * node.value, node.value / 2, node.value + 1)):
            if value != node.value:
                yield ast.Constant(value)
    elif isinstance(node, ast.BinOp):
        yield from (ast.BinOp(node.left, op(), node.right) for op in SWAPS.get(type(node.op), ()))
        if isinstance(node.op, (ast.Add, ast.Sub)):
            minus = isinstance(node.op, ast.Sub)
            yield from (node.left, ast.UnaryOp(ast.USub(), node.right) if minus else node.right)
        elif isinstance(node.op, (ast.Mult, ast.Div)):
            yield node.left
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for op in SWAPS.get(type(node.ops[0]), ()):
            yield ast.Compare(node.left, [op()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield from (ast.BoolOp(op(), node.values) for op in SWAPS[type(node.op)])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not, ast.Invert)):
        yield node.operand
    elif isinstance(node, ast.Call):
        yield from calls(node)


def calls(node):
    """Another function in a call, or none, or one more step."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in NAMES:
        func = copy.copy(node.func)
        setattr(func, "attr" if isinstance(func, ast.Attribute) else "id", NAMES[name])
        yield ast.Call(func, node.args, node.keywords)
    if name in DROPPED and len(node.args) == 1:
        yield node.args[0]
    if name in COUNTED and len(node.args) == 1:
        more = ast.BinOp(node.args[0], ast.Add(), ast.Constant(1))
        yield ast.Call(node.func, [more], node.keywords)


class Replace(ast.NodeTransformer):
    """Put another expression in the place of one."""

    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def head(statement):
    """A statement on one line, of a compound one its first."""
    return ast.unparse(statement).split("\n")[0]


def of_answer(question, source):
    """All mutants of one answer, each once."""
    tree, seen = ast.parse(source), {ast.unparse(ast.parse(source))}
    for statement in [n for n in ast.walk(tree) if isinstance(n, ast.stmt)]:
        if isinstance(statement, ast.FunctionDef):
            continue
        before = head(statement)
        for expression in own(statement):
            for new in variants(expression):
                changed = Replace(expression, new).visit(copy_but(tree, expression))
                text = ast.unparse(ast.fix_missing_locations(changed))
                if text not in seen:
                    seen.add(text)
                    yield Mutant(question, f"{before} => {after(text, tree, statement)}", text)


def copy_but(tree, kept):
    """A deep copy in which one node is still the very same."""
    return copy.deepcopy(tree, {id(kept): kept})


def after(text, tree, statement):
    """The head of the changed statement: the one in the same place of the changed answer."""
    place = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)].index(statement)
    return head([n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt)][place])


def own(statement):
    """The expressions of a statement, without those of the statements inside it."""
    waiting = [statement]
    while waiting:
        for child in ast.iter_child_nodes(waiting.pop()):
            if not isinstance(child, ast.stmt):
                waiting.append(child)
                if isinstance(child, ast.expr):
                    yield child


def accepted(space, mutant, tests, seconds):
    """Whether the tests accept a mutant, in a forked child with so much CPU time."""
    child = os.fork()
    if not child:
        try:
            tried(space, mutant, tests, seconds)
            os._exit(0)
        finally:  # whatever happens, the child must not go on as if it were its parent
            os._exit(1)
    end = time.monotonic() + 20 * seconds + 10  # by the clock: it may sleep
    while not (done := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            done = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    return os.waitstatus_to_exitcode(done[1]) == 0


def tried(space, mutant, tests, seconds):
    """Run a mutant and its tests, with limits; an exception where a test fails."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # ends the child where it is over
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    for source in (mutant.source, *tests):
        exec(compile(source, "mutant", "exec"), space)


def survivors(path, questions=()):
    """(all mutants, those that the tests of their question accept); `questions` limits them."""
    master, space, everyone, alive = masters.read(path), {}, [], []
    by_id = {q.id: q for q in master.questions if not q.manual}
    for cell in master.notebook.cells:
        if cell.cell_type != "code" or "points" in masters.grading(cell):
            continue
        source, name = MARKERS.sub("", cell.source), masters.grading(cell).get("grade_id")
        if name in by_id and (not questions or name in questions):
            tests = [by_id[name].source, by_id[name].hidden]
            start = time.process_time()
            exec(source, whole := dict(space))
            for test in tests:
                exec(test, whole)
            seconds = 2 + 5 * (time.process_time() - start)
            found = list(of_answer(name, source))
            everyone += found
            alive += [m for m in found if accepted(space, m, tests, seconds)]
        exec(source, space)
    return everyone, alive


def explained(folder, name):
    """{(question, change): reason} of the list beside the masters."""
    file = Path(folder) / "survivors.yml"
    known = yaml.safe_load(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {(s["question"], s["change"]): s["why"] for s in (known or {}).get(name, ())}


def report(folder, name, questions=()):
    """(how many mutants, complaints): survivors without a reason, reasons without a survivor."""
    os.environ["MPLBACKEND"] = "agg"
    everyone, alive = survivors(Path(folder) / f"{name}.md", questions)
    reasons = explained(folder, name)
    keys = {(m.question, m.change) for m in alive}
    complaints = [f"{q}: survives: {change}" for q, change in sorted(keys - set(reasons))]
    asked = {q for q, _ in reasons} if not questions else set(questions)
    complaints += [
        f"{q}: listed, but does not survive: {change}"
        for q, change in sorted(set(reasons) - keys) if q in asked
    ]  # fmt: skip
    return len(everyone), complaints


def main(folder, name, questions=()):
    """Print what the list lacks; an error if it lacks anything."""
    count, complaints = report(folder, name, questions)
    print(f"{name}: {count} mutants, {len(explained(folder, name))} survivors with a reason")
    if complaints:
        sys.exit("\n".join(complaints))
