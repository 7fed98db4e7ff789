"""Changes of a piece of code, by rule, one place at a time.

A number doubled, halved or off by one, a sign, a factor turned into a divisor, a term left out, a
comparison, another function. `tests/mutants.py` asks which of them no test notices.
"""

import ast
import copy
from dataclasses import dataclass

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
        yield from changed_calls(node)


def changed_calls(node):
    """Variants of a call: a related function, its bare argument, its count plus one."""
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


def of_answer(question, source):
    """All mutants of one answer, each once."""
    tree = ast.parse(source)
    before = ast.unparse(tree)
    seen = {before}
    for old in expressions(tree):
        for new in variants(old):
            changed = copy.deepcopy(tree, {id(old): new})
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text not in seen:
                seen.add(text)
                lines = zip(before.splitlines(), text.splitlines(), strict=False)
                change = next(f"{a.strip()} => {b.strip()}" for a, b in lines if a != b)
                yield Mutant(question, change, text)


def expressions(tree):
    """The expressions of all statements; not the parameters and annotations of functions."""
    for statement in ast.walk(tree):
        waiting = [statement] * isinstance(statement, ast.stmt)
        while waiting and not isinstance(statement, ast.FunctionDef):
            for child in ast.iter_child_nodes(waiting.pop()):
                if not isinstance(child, ast.stmt):
                    waiting.append(child)
                    if isinstance(child, ast.expr):
                        yield child
