"""What runs in the page's Python: one question as its notebook would run it, up to its tests."""

import ast
import base64
import contextlib
import io
import linecache
import re
import tokenize
import traceback
import warnings

ANSWERS = ("code", "plot")
LONGEST = 4000  # characters of what is printed
OLDEST, MARKING = (3, 11), "marking runs Python 3.11 to 3.13"  # the page's own is newer
NOT_YET = "this is not Python yet"


def check(cells, goal):
    """Run the cells above `goal` in a new namespace, then `goal` itself: a test, or a plot.

    `cells` are {"id", "kind": "given" | "code" | "plot" | "test", "source"} in the notebook's
    order. The answer has "ok", "message", "printed", "pictures" (PNG, base64) and "needs", the
    answers on which it rests.
    """
    above = cells[: [cell["id"] for cell in cells].index(goal)]
    last = cells[len(above)]
    printed, pictures = io.StringIO(), []
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        message = run(above, last, printed, pictures)
    return {
        "ok": not message,
        "message": message,
        "printed": printed.getvalue()[-LONGEST:],
        "pictures": pictures if last["kind"] == "plot" else [],
        "needs": needs(above, last),
    }


def run(above, last, printed, pictures):
    """An empty string, or what to tell the student; fills what is printed and drawn by `last`."""
    space, failed, own = {"__name__": "__main__"}, {}, last["id"].removeprefix("test-")
    drawn = names(last)[1] if last["kind"] == "plot" else set()
    for cell in above:
        if cell["kind"] == "test" and not names(cell)[0] & drawn:
            continue  # each question alone; but a plot may draw what a test has computed
        with shown(printed if cell["id"] == own else io.StringIO(), None):
            error = execute(cell, space)
        if error is not None and cell["kind"] == "given":
            return f"a cell that everyone is given fails here ({type(error).__name__}: {error})"
        if error is not None and cell["kind"] != "test":
            failed[cell["id"]] = error
    calls, tests = [], space.get("PublicTests")  # of the notebook's first cell
    if tests:
        space.update(tests.watched_in(space, parsed(last), calls))
    with shown(printed, pictures):
        error = failed.pop(own, None) or execute(last, space)
    if error is None:
        return ""
    message = explain_failed_check(error, own, [*above, last], space, calls)
    if isinstance(error, NameError):
        message += "".join(f"; the answer to {q} failed before: {e}" for q, e in failed.items())
    return message


def execute(cell, space):
    """Run one cell; the exception, if it raises one. Lines for Jupyter alone (%, !) do nothing."""
    source, name = cell["source"], f"<{cell['id']}>"
    try:
        try:
            code = compile(source, name, "exec")
        except SyntaxError:
            source = re.sub(r"(?m)^(\s*)[%!].*$", r"\1None", source)
            code = compile(source, name, "exec")
        refuse_new_syntax(source, name)
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(code, space)
    except (Exception, SystemExit) as error:  # an answer can raise anything
        return error
    return None


class TooNew(SyntaxError):
    """What the page's Python reads and that of marking does not."""


def refuse_new_syntax(source, name):
    """Raise `TooNew` where the oldest Python of marking cannot read what this one has compiled."""
    try:
        ast.parse(source, name, feature_version=OLDEST)
        why, line = new_in_text(source)
    except SyntaxError as error:
        why, line = error.msg, error.lineno
    if why:
        raise TooNew(why, (name, line, 1, source.splitlines()[line - 1]))


def new_in_text(source):
    """(what, line) of the first f-string that Python 3.11 cannot read, which takes it for a string
    first: no quote of its own, backslash or comment in its braces. ("", 0) if there is none."""
    parts = ("START", "MIDDLE", "END")
    begin, middle, end = (getattr(tokenize, f"FSTRING_{part}", -1) for part in parts)
    quotes = []  # of the strings around
    for kind, text, (line, _), *_ in tokenize.generate_tokens(io.StringIO(source).readline):
        if quotes and not (len(quotes) == 1 and kind in (middle, end)):
            if len(quotes[0]) == 1 and kind in (tokenize.NL, tokenize.NEWLINE):
                return "a line that ends in the braces of an f-string", line
            if kind == tokenize.COMMENT or "\\" in text:
                return "a backslash or a comment in the braces of an f-string", line
            if quotes[0] in text:
                return f"{quotes[0]} in the braces of an f-string that begins with it", line
        if kind == begin:
            quotes.append(text.lstrip("fFrR"))
        elif kind == end:
            quotes.pop()
    return "", 0


def explain_failed_check(error, own, cells, space, calls):
    """The message of the test that fails, or where the student's own code does."""
    answers = {f"<{cell['id']}>": cell["id"] for cell in cells if cell["kind"] in ANSWERS}
    if isinstance(error, SyntaxError) and error.filename in answers:
        line = (error.text or "").strip()
        said = f"{MARKING}, which cannot read this" if isinstance(error, TooNew) else NOT_YET
        return f"{said}: {error.msg}, in line {error.lineno}: {line}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename in answers]
    if not frames:
        if was_not_called(error, calls):
            told = [f"It could not be called: {error}"]
        else:
            told = [space["PublicTests"].call_text(*call) for call in calls]
        return ". ".join([said_by_test(error, cells[-1], space), *told])
    where = answers[frames[-1].filename]
    if isinstance(error, NotImplementedError):
        return "not answered yet" if where == own else f"this needs {where}, not answered yet"
    place = f"line {frames[-1].lineno}" + (f" of the answer to {where}" if where != own else "")
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"your code raises {said}, in {place}: {frames[-1].line}"


def was_not_called(error, calls):
    """Does an answer take other arguments than the test hands over, or is it no function?

    Then the last step is the helper's that calls it, or, where there is nothing that it could
    watch, the test's own.
    """
    last = traceback.extract_tb(error.__traceback__)[-1].name
    no_function = not calls and re.search("not callable|argument", str(error))
    return isinstance(error, TypeError) and bool(last == "call" or no_function)


def said_by_test(error, test, space):
    """The message of the assertion that fails, or of one that cannot use what an answer gave."""
    if isinstance(error, AssertionError):
        return str(error) or "a test of this question fails"
    frames, tests = traceback.extract_tb(error.__traceback__), space.get("PublicTests")
    lines = [frame.lineno for frame in frames if frame.filename == f"<{test['id']}>"]
    missing = f" ({error})" if isinstance(error, NameError) else ""
    said = tests.wanted(test["source"], lines[0], space) if tests and lines and not missing else ""
    return said or f"the test cannot use what your code gives{missing}"


def parsed(cell):
    """The syntax tree of a cell; an empty one where it is not Python."""
    try:
        return ast.parse(cell["source"])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def names(cell):
    """What a cell defines, and all names in it."""
    tree = parsed(cell)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    defined = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return defined | {n.id for n in nodes if isinstance(n.ctx, ast.Store)}, {n.id for n in nodes}


def needs(above, last):
    """The answers that a test reaches, also through others: when one changes, it counts no more."""
    own, answers = last["id"].removeprefix("test-"), []
    read = names(last)[1]
    for cell in reversed([*above, last] if last["kind"] == "plot" else above):
        made, reads = names(cell)
        if cell["kind"] == "test" or not (made & read or cell["id"] == own):
            continue
        read |= reads
        answers += [cell["id"]] if cell["kind"] in ANSWERS else []
    return answers[::-1]


@contextlib.contextmanager
def shown(printed, pictures):
    """While this lasts, prints go into a text, figures become pictures (with None, nothing)."""
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            import matplotlib
        except ImportError:
            yield
            return
        matplotlib.use("agg")
        from matplotlib import pyplot

        def show(*args, **kwargs):
            for number in pyplot.get_fignums() if pictures is not None else ():
                file = io.BytesIO()
                pyplot.figure(number).savefig(file, format="png", dpi=110, bbox_inches="tight")
                pictures.append(base64.b64encode(file.getvalue()).decode())
            pyplot.close("all")

        usual, pyplot.show = pyplot.show, show
        try:
            yield
            show()
        finally:
            pyplot.show = usual
            pyplot.close("all")
