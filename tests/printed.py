"""Run what a page prints as code, statement by statement, and compare numbers in its comments.

    python tests/printed.py < {"setup": what the reader has, "code": what is printed}

A comment behind an expression that begins with numbers, as ``# 10.0: basic``, ``# 1.0 and 2.0`` or
``# 2.9957...``, says what comes out, to its digits. It needs nothing but Python: the libraries that
pages name live in an environment of their own.
"""

import ast
import json
import re
import sys

NUMBERS = re.compile(r"#\s*((?:\d+\.\d+(?:\.\.\.)?(?:\s+and\s+)?)+)")


def wrong(said, value):
    """The numbers of a comment that are not what came out."""
    values = value if isinstance(value, tuple) else (value,)
    found = re.findall(r"\d+\.\d+(?:\.\.\.)?", said)
    assert len(found) == len(values), (said, value)
    for text, number in zip(found, values, strict=True):
        digits = len(text.rstrip(".").split(".")[1])
        slack = (1.0 if text.endswith("...") else 0.5) * 10.0**-digits
        if abs(float(number) - float(text.rstrip("."))) > slack * (1 + 1e-9):
            yield f"{text} is printed and {number!r} comes out"


def run(code, setup=""):
    """The faults of a block, and how many numbers were compared."""
    names, faults, compared = {}, [], 0
    exec(setup, names)
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), "page", "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), "page", "eval"), names)
        said = NUMBERS.match(lines[statement.end_lineno - 1][statement.end_col_offset :].strip())
        if said:
            compared += 1
            faults += wrong(said[1], value)
    return faults, compared


if __name__ == "__main__":
    print(json.dumps(run(**json.load(sys.stdin))))
