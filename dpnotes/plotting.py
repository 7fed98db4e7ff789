"""One look for every figure: an inline drawing that follows the page from light to dark.

A figure is made with `figure` and shown with `show`, which asks for a description in words. The
drawing is SVG whose colours are CSS variables with light fallbacks, so the same output is right
on a light page, on a dark page, without JavaScript and in JupyterLab. It is drawn twice, for wide
pages and for phones; the style sheet of the page shows one. Importing this module loads the style
sheet `dpnotes.mplstyle`; nothing else of the package imports matplotlib.
"""

import hashlib
import html
import io
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from matplotlib import style
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import ScaledTranslation

from dpnotes import sentences

style.use(Path(__file__).with_name("dpnotes.mplstyle"))

INK, MUTED, GRID = "#1b1f24", "#5b6570", "#d5dae0"
COLORS = ("#0068a5", "#c2450a", "#00795a", "#a24a86", "#806000", "#5f4bb6", "#5c6670")

NARROW = 4.2  # inches: on a phone of 360 pixels a point of type is a pixel
COARSE = 0.7  # a curve may be simplified by so many points on a phone: half the bytes
SMALLEST = 9  # points of type on a phone
# shows the drawing for wide pages while the one for phones is made
early: Callable[[str], object] | None = None

_VARIABLES = {INK: "--dpn-ink", MUTED: "--dpn-muted", GRID: "--dpn-grid"}
_VARIABLES |= {"#ffffff": "--dpn-paper", "#000000": "--dpn-ink"}
_VARIABLES |= {color: f"--dpn-c{i}" for i, color in enumerate(COLORS)}
_GLYPH = re.compile(r'<path id="(DejaVu[^"]*)"[^>]*/>\n?')
_COMMAND = re.compile(r"([MLQCz])([^MLQCz]*)")


def figure(rows=1, columns=1, *, width=6.4, height=3.6, **subplots):
    """Make a figure of `rows` x `columns` axes, `width` x `height` inches over all.

    Further keywords go to `matplotlib.figure.Figure.subplots` (``sharey=True`` ...).
    Returns ``(figure, axes)`` as `matplotlib.pyplot.subplots` does, without its global state.
    """
    drawn = Figure(figsize=(width, height))
    return drawn, drawn.subplots(rows, columns, **subplots)


def show(drawn, alt):
    """Turn a matplotlib figure into a page figure that is described by the text `alt`.

    Make it the last expression of a cell. `alt` says what the figure shows to someone who
    cannot see it; a missing description is a ValueError. If no axes have a key, all with labels
    get one.
    """
    if not isinstance(alt, str) or len(alt.split()) < 4:
        raise ValueError(f"alt must describe the figure in a few words, got {alt!r}")
    alt = " ".join(alt.split())
    if not drawn.legends and not any(axes.get_legend() for axes in drawn.axes):
        for axes in (each for each in drawn.axes if each.get_legend_handles_labels()[1]):
            axes.legend()
    wide = _add_theme(_svg(drawn))
    mark = hashlib.sha256((alt + wide).encode()).hexdigest()[:8]
    if early:
        early(f'<figure class="dpn-figure">{_frame(wide, "wide", alt, mark, ())}</figure>')
    _make_narrow(drawn)
    narrow = _add_theme(_svg(drawn))
    shared = set(_GLYPH.findall(wide))
    narrow = _GLYPH.sub(lambda glyph: "" if glyph[1] in shared else glyph[0], narrow)
    drawings = _frame(wide, "wide", alt, mark, shared)
    drawings += _frame(narrow, "narrow", alt, mark, shared)
    return Drawing(f'<figure class="dpn-figure">{drawings}</figure>')


def _svg(drawn):
    buffer = io.StringIO()
    canvas = FigureCanvasSVG(drawn)  # savefig would draw everything twice
    canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _make_narrow(drawn):
    """For a phone: panels one below the other, keys below their panels, no type that is too small.

    It changes the figure, which has been drawn before.
    """
    height = _stack(drawn)
    for line in drawn.findobj(Line2D):
        line.get_path().should_simplify = True
        line.get_path().simplify_threshold = COARSE
    for text in drawn.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), SMALLEST))
    for key in drawn.legends:
        key.remove()
        names = [text.get_text() for text in key.get_texts()]
        drawn.legend(key.legend_handles, names, loc="outside lower center", fontsize=SMALLEST)
        height += 0.2 * len(names)
    drawn.set_size_inches(NARROW, height)
    if layout := drawn.get_layout_engine():
        layout.execute(drawn)
    keys = [(axes, axes.get_legend()) for axes in drawn.axes if axes.get_legend()]
    drawn.set_size_inches(NARROW, height + sum(_height(key) for _, key in keys))
    for axes in drawn.axes:
        _break_lines(axes)
    for axes, key in keys:
        _put_below(axes, key)


def _stack(drawn):
    """Panels one below the other, column by column; returns the height in inches."""
    height = drawn.get_size_inches()[1]
    places = {axes: axes.get_subplotspec() for axes in drawn.axes}
    columns = max((place.get_gridspec().ncols for place in places.values() if place), default=1)
    if columns == 1 or None in places.values():
        return height
    at = {axes: (place.colspan.start, place.rowspan.start) for axes, place in places.items()}
    order = sorted(places, key=lambda axes: at[axes])
    rows = len(order) // columns
    grid = GridSpec(len(order), 1, figure=drawn)
    for number, axes in enumerate(order):
        axes.set_subplotspec(grid[number])
        axes.tick_params(labelleft=True, labelbottom=True)
        left, below = order[number % rows], order[number - number % rows + rows - 1]
        if axes.get_shared_y_axes().joined(axes, left):
            axes.set_ylabel(left.get_ylabel())
        if axes.get_shared_x_axes().joined(axes, below):
            axes.set_xlabel(below.get_xlabel())
    return len(order) * max(2.3, 0.8 * height / rows)


def _height(artist):
    return artist.get_window_extent().height / artist.get_figure().dpi


def _put_below(axes, key):
    """The key below the panel, where it covers nothing."""
    key.set_in_layout(False)
    axes.apply_aspect()  # the panel as it will be drawn
    room = axes.get_window_extent().y0 - axes.get_tightbbox().y0
    key.set_in_layout(True)
    shift = ScaledTranslation(0, -room / axes.figure.dpi, axes.figure.dpi_scale_trans)
    key.set_loc("upper left")
    key.set_bbox_to_anchor((0, 0), axes.transAxes + shift)


def _break_lines(axes):
    """A title or a name of an axis that is longer than its panel gets a second line."""
    panel = axes.get_window_extent()
    for text, room in ((axes.yaxis.label, panel.height), (axes.title, panel.width)):
        size = text.get_window_extent()
        length, words = max(size.width, size.height), text.get_text()
        if length > room and "$" not in words:
            text.set_text(textwrap.fill(words, max(8, int(len(words) * room / length))))


def glue(name, value):
    """Show `value`, and keep it under `name` for the page's text.

    The same as ``myst_nb.glue``, which takes three seconds to import; where that is loaded, or the
    page's Python has its own, it is asked.
    """
    if "myst_nb" in sys.modules:
        return sys.modules["myst_nb"].glue(name, value)
    from IPython.core.formatters import format_display_data
    from IPython.display import display

    data, metadata = format_display_data(value)
    kept = {"scrapbook": {"name": name, "mime_prefix": ""}}
    return display(data, raw=True, metadata={**metadata, **kept})


def says(numbers):
    """Check what the page's text has typed, ``{"costs 41 percent": 100 * (sqrt(2) - 1)}``.

    The words stand on the page once (a rule of site/checks); here their number agrees with the
    value to its last digit. Words with several numbers have a tuple of values.
    """
    for words, values in numbers.items():
        typed = sentences.numbers(words)
        values = values if isinstance(values, tuple) else (values,)
        if len(typed) != len(values):
            raise ValueError(f"numbers must be as many as values: {words!r} has {len(typed)}")
        for (number, low, high), value in zip(typed, values, strict=True):
            slack = 1e-9 * max(abs(low), abs(high))
            if not low - slack <= value <= high + slack:
                raise ValueError(f"numbers must hold: {number} is typed and {value!r} comes out")


class Drawing:
    """A finished figure: displays itself as inline SVG in a page or a notebook."""

    def __init__(self, markup):
        self.markup = markup

    def _repr_html_(self):
        return self.markup

    def __repr__(self):
        return "<figure>"


def _add_theme(svg):
    """Colours to CSS variables, coordinates to tenths of a point."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style).*?</\1>\s*|<!--.*?-->", "", svg, flags=re.S)
    svg = re.sub(r'\bd="([^"]*)"', _relative, svg)
    svg = re.sub(r'\b(?:x|y|transform)="[^"]*"', _round, svg)
    svg = re.sub(r"(?<=[:\s\"])#[0-9a-f]{6}\b", _variable, svg)
    return re.sub(r"\s*\n\s*", "\n", svg).strip()


def _frame(svg, size, alt, mark, shared):
    """With its description, and ids that are unique on the page; shapes of letters are shared."""
    width = svg.split('width="')[1].split("pt")[0]
    svg = re.sub(r'\s(width|height)="[\d.]+pt"', "", svg, count=2)

    def rename(found):
        return f"{found[1]}d{mark}{'-' if found[2] in shared else size[0]}{found[2]}"

    svg = re.sub(r'(\bid="|href="#|url\(#)([^")]+)', rename, svg)
    look = f"max-width: {width}pt; stroke-linejoin: round; stroke-linecap: butt"
    look += "; display: none" if size == "narrow" else ""
    label = html.escape(alt, quote=True)
    head = f'<svg role="img" aria-label="{label}" data-size="{size}" style="{look}" '
    return svg.replace("<svg ", head, 1)


def _relative(path):
    """Points as steps from the one before, in whole tenths: half the weight of the same points."""
    parts, here, start, before = [], [0, 0], [0, 0], ""
    for command, numbers in _COMMAND.findall(path[1]):
        if command == "z":  # back to where the last M stands
            parts.append("z")
            here, before = start, "z"
            continue
        ends = [round(10 * float(number)) for number in numbers.split()]
        steps = [end - here[place % 2] for place, end in enumerate(ends)]
        name = "M" if command == "M" else command.lower()
        text = " ".join(f"{step / 10:g}" for step in (ends if name == "M" else steps))
        here = ends[-2:]
        start = here if name == "M" else start
        parts += [" " if name == before else name, text.replace(" -", "-")]
        before = name
    return f'd="{"".join(parts)}"'


def _round(attribute):
    """Tenths are what a screen shows; a scale is smaller than 10 and stays."""
    return re.sub(r"\d{2,}\.\d{2,}", lambda m: f"{float(m[0]):.1f}", attribute[0])


def _variable(color):
    return f"var({_VARIABLES[color[0]]}, {color[0]})" if color[0] in _VARIABLES else color[0]
