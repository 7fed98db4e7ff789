"""The page's Python: one namespace, cells run as in a notebook, results as text, HTML or SVG."""

import builtins
import contextlib
import importlib
import inspect
import io
import json
import linecache
import pprint
import re
import sys
import time

from page_reading import assigned, failure, imported, split  # noqa: F401 (the worker asks)
from page_standins import HTML, install, no_input, sleep

WIDTH = 79
LONGEST = 100_000  # characters of text
CUT = "\n[the output is longer, and cut here]\n"
LARGEST = 3_000_000  # characters of tables and figures: more, and the browser stands still
TOO_LARGE = "[this {kind} is too large for the page: {size:,} characters; show a part of it]\n"
CELL = re.compile(r"<cell \d+>")  # of the page; other code comes from the page itself
MOST_CELLS = 20_000  # of a table that is shown as it is
PAUSE = 0.05  # seconds
namespace = {}
_outputs = []
_held, _told = [], [0.0]  # text that the page has not been told yet; when it was told last
_assigned = {}  # name of a cell: the variables that it set when it ran last
_tell = None  # called with each output, so that the reader sees it before the cell ends


def fresh():
    """Forget every variable."""
    namespace.clear()
    _assigned.clear()
    namespace.update(__name__="__main__", __builtins__=builtins, display=display)


def emit(kind, data, **more):
    """Note one output and hand it on; text joins text, and there is an end to it."""
    if kind != "text" and len(data) > room("html", "svg", of=LARGEST):
        said = {"html": "table", "svg": "figure"}.get(kind, "output")
        kind, data = "text", TOO_LARGE.format(kind=said, size=len(data))
    if kind == "text":
        data = cut_text(data)
    if not data:
        return
    last = _outputs[-1] if _outputs else None
    if kind == "text" and last and last["type"] == "text" and last.get("of") == more.get("of"):
        last["data"] += data
    else:
        _outputs.append({"type": kind, "data": data, **more})
    hand_on({"type": kind, "data": data, **more})


def cut_text(data):
    """At most `LONGEST` characters of text a run: the page could not show more."""
    left = room("text", of=LONGEST)
    if len(data) <= left:
        return data
    return data[:left] + CUT if left > 0 else ""


def room(*kinds, of):
    """How many characters of these kinds this run may still show."""
    return of - sum(len(output["data"]) for output in _outputs if output["type"] in kinds)


def hand_on(output):
    """Tell the page, small pieces of text together: a loop that prints must not flood it."""
    if not _tell:
        return
    same = _held and output["type"] == "text" and _held[0].get("of") == output.get("of")
    if same:
        _held[0]["data"] += output["data"]
    else:
        let_go()
        _held.append(output)
    if time.monotonic() - _told[0] > PAUSE or output["type"] != "text":
        let_go()


def let_go():
    """Hand on what was held back."""
    if _held:
        _tell(json.dumps(_held.pop()))
        _told[0] = time.monotonic()


class Stream(io.TextIOBase):
    """Standard output or error of a running cell."""

    def __init__(self, of):
        self.of = of

    def writable(self):
        return True

    def write(self, text):
        emit("text", text, of=self.of)
        return len(text)


def as_text(value):
    """The value's text, long collections one entry a line, as a notebook prints them."""
    text = repr(value)
    if "\n" not in text and len(text) > WIDTH and isinstance(value, list | tuple | dict | set):
        text = pprint.pformat(value, width=WIDTH, sort_dicts=False)
    return text


def display(*values):
    """Show values as a notebook does."""
    for value in values:
        if callable(getattr(value, "savefig", None)):
            emit("svg", drawn(value))
            continue
        for method, kind in (("_repr_html_", "html"), ("_repr_svg_", "svg")):
            made = getattr(value, method, None)
            with short(value):
                markup = made() if made and not isinstance(value, type) else None
            if markup:
                is_figure = markup.startswith('<figure class="dpn-figure"')
                emit("svg" if is_figure else kind, markup)
                break
        else:
            emit("text", as_text(value) + "\n", of="value")


def short(value):
    """While this lasts, a table of very many cells shows only its ends, whatever is set."""
    pandas = sys.modules.get("pandas")
    if pandas and isinstance(value, pandas.DataFrame) and value.size > MOST_CELLS:
        return pandas.option_context("display.max_rows", 60, "display.max_columns", 20)
    return contextlib.nullcontext()


def drawn(figure):
    """A figure made without `plotting.show`, in the page's colours."""
    from dpnotes import plotting

    return plotting.show(figure, alt="The figure that this cell draws")._repr_html_()


def show_early(markup):
    """A figure that is still being drawn for phones; the page replaces it by the finished one."""
    hand_on({"type": "svg", "data": markup, "early": True})


def show_open_figures(*args, **kwargs):
    """Figures of pyplot appear when the cell ends, or where it says `plt.show()`."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot:
        for number in pyplot.get_fignums():
            display(pyplot.figure(number))
        pyplot.close("all")


def glue(name, value, display=True):
    """Numbers in the text are the printed ones; here the value is only shown."""
    if display:
        namespace["display"](value)


async def value_of(code):
    """Run compiled code in the namespace; one that says `await` is waited for."""
    made = eval(code, namespace)
    return await made if code.co_flags & inspect.CO_COROUTINE else made


async def run(code, name, tell=None):
    """Run one cell, called `name` in tracebacks; returns JSON of ``{ok, outputs, error}``."""
    global _tell
    _outputs.clear()
    _tell, error = tell, None
    name, before = f"<{name}>", dict(namespace)
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    streams = Stream("stdout"), Stream("stderr")
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            body, last = split(code, name)
            adapt(code)
            await value_of(body)
            value = await value_of(last) if last else None
            if value is not None:
                namespace["_"] = value
                display(value)
            show_open_figures()
        except BaseException as raised:
            error = failure(raised)
            emit("error", error["traceback"], name=error["name"], message=error["message"])
    let_go()
    _tell = None
    if CELL.match(name):
        drop_old(name, code, before, failed=error is not None)
    return json.dumps({"ok": error is None, "outputs": _outputs, "error": error})


def drop_old(name, code, before, failed):
    """What a cell set when it ran before, and does not set now, is gone.

    So the cells below never use a value whose code has failed, or is not there any more.
    """
    earlier, now = _assigned.get(name, set()), assigned(code)
    if failed:
        earlier |= now
        now = {one for one in earlier if before.get(one) is not namespace.get(one)}
    for one in earlier - now:
        namespace.pop(one, None)
    _assigned[name] = now


def adapt(code):
    """Libraries that the code may use learn what this page is."""
    if plotting := sys.modules.get("dpnotes.plotting"):
        plotting.early = show_early
    if "pyplot" in code or "matplotlib.pyplot" in sys.modules:
        importlib.import_module("matplotlib.pyplot").show = show_open_figures
    if "tqdm" in code:
        importlib.import_module("tqdm").tqdm.monitor_interval = 0  # that is a thread


def warm(names):
    """Import modules before a cell does; what cannot be imported is the cell's affair."""
    for name in names:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def plain(value):
    """Values of NumPy and the like for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if hasattr(value, "__float__"):
        return float(value)
    return str(value)


def finite(value):
    """JSON has no infinity: it becomes null on the way; say it in words instead."""
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return str(value)
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def find(name):
    """A function of the page's namespace, or of a module, by its dotted name."""
    head, *rest = name.split(".")
    thing = namespace[head] if head in namespace else importlib.import_module(head)
    for place, part in enumerate(rest):
        if not hasattr(thing, part):
            importlib.import_module(".".join([head, *rest[: place + 1]]))
        thing = getattr(thing, part)
    return thing


def call(name, arguments):
    """Call with a list in JSON -> JSON ``{ok, value, error}``."""
    try:
        value = find(name)(*json.loads(arguments))
        value = finite(json.loads(json.dumps(value, default=plain)))
        return json.dumps({"ok": True, "value": value})
    except BaseException as raised:
        return json.dumps({"ok": False, "error": failure(raised)})


def signature(name):
    """How a function is called, and the first line of what it says of itself."""
    function = find(name)
    bare = {"annotation": inspect.Parameter.empty}
    full = inspect.signature(function)
    parts = [part.replace(**bare) for part in full.parameters.values()]
    shown = full.replace(parameters=parts, return_annotation=inspect.Signature.empty)
    return " – ".join([f"{name}{shown}", *(inspect.getdoc(function) or "").splitlines()[:1]])


def begin():
    """What is so for the whole visit: modules that cells know from notebooks, input, sleep."""
    install("myst_nb", glue=glue)
    install("IPython.display", display=display, HTML=HTML, clear_output=lambda wait=False: None)
    shown = sys.modules["IPython.display"]
    install("IPython", display=shown, get_ipython=lambda: None, version_info=(9, 0))
    builtins.input, time.sleep = no_input, sleep


fresh()
