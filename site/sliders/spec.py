"""What an interactive figure is made of, as plain data: controls, panels with marks, and tables.

All numbers are in ``data``, nested lists computed at build. Whoever needs some of them gives a
reference, a string: the table's name, then the controls that choose an entry, outermost first.
``"profile sigma"`` is the row of ``data["profile"]`` at the position of the control sigma. The page
looks up and draws; it computes nothing but places on the screen.
"""

import json
import math
from dataclasses import asdict, dataclass, field

import numpy as np

FIGURES = {}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def figure(function):
    """Make the function that describes a figure known under its name, with hyphens."""
    FIGURES[function.__name__.replace("_", "-")] = function
    return function


@dataclass
class Control:
    """A slider: its name in references, its label, what each position is called."""

    name: str
    label: str
    values: list
    start: int


@dataclass
class Axis:
    """An axis from low to high with (value, text) ticks."""

    label: str
    low: float
    high: float
    ticks: list
    log: bool = False


@dataclass
class Panel:
    """One plot; `share` of the width where panels stand side by side."""

    x: Axis
    y: Axis
    marks: list
    share: float = 1.0


@dataclass
class Slider:
    """An interactive figure. `says` is a sentence with references in braces; a control's own name
    stands for what its position is called."""

    title: str
    alt: str
    controls: list
    panels: list
    says: str
    data: dict = field(default_factory=dict)

    def __post_init__(self):
        both = {control.name for control in self.controls} & set(self.data)
        if both:
            raise ValueError(f"a control and a table must have different names, got {both}")

    def json(self):
        """The text that the page loads."""
        return json.dumps(asdict(self), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def each(function, first, second):
    """The array of function(a, b) for all a of the first and b of the second grid."""
    return np.array([[function(a, b) for b in second] for a in first])


def table(values, digits=4, span=None):
    """Nested lists of an array, rounded to significant digits, or to a thousandth of `span`.

    With `span` = (low, high), what lies outside of the picture is brought near its edge. What is
    not a number becomes None.
    """
    values = np.asarray(values, dtype=float)
    if span is not None:
        low, high = span
        room, places = high - low, 3 - math.floor(math.log10(high - low))
        values = np.round(np.clip(values, low - room / 10, high + room / 10), places)
    return _listed(values, None if span is not None else digits)


def _listed(value, digits):
    if np.ndim(value):
        return [_listed(part, digits) for part in value]
    if not math.isfinite(value):
        return None
    short = float(value) if digits is None else float(f"{value:.{digits}g}")
    return int(short) if short == int(short) and abs(short) < 1e6 else short


def say(value, digits=3, percent=False):
    """A number as one writes it: 0.0123, 12.3, 1,230, 1.23·10⁻⁵."""
    if percent:
        return f"{say(100 * value, digits)} %"
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    if -4 < exponent < 6:
        return f"{rounded:,.{max(0, digits - 1 - exponent)}f}"
    mantissa = f"{value:.{digits - 1}e}".split("e")[0].removesuffix("." + "0" * (digits - 1))
    power = "10" + str(exponent).translate(SUPERSCRIPT)
    return power if mantissa == "1" else f"{mantissa}·{power}"


def says(values, *style, **more):
    """Nested lists of texts."""
    if np.ndim(values):
        return [says(part, *style, **more) for part in values]
    return say(float(values), *style, **more)


def told(**arrays):
    """Each array as a table, and in words as one whose name begins with `say_`."""
    words = {f"say_{name}": says(values) for name, values in arrays.items()}
    return {name: table(values) for name, values in arrays.items()} | words


def decades(low, high, step=1):
    """Ticks at powers of ten, from 10^low to 10^high."""
    return [(float(f"1e{n}"), _decade(n)) for n in range(low, high + 1, step)]


def _decade(n):
    if -2 <= n <= 3:
        return f"{10**n:,g}" if n >= 0 else f"{10.0**n:g}"
    return "10" + str(n).translate(SUPERSCRIPT)


def ticks(*values):
    """Ticks that are called what they are."""
    return [(value, f"{value:g}".replace("-", "−")) for value in values]
