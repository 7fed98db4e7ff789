"""Marks of a plot, which `draw.js` draws; x and y are numbers, names of tables, or `at`."""


def at(table, *controls):
    """The part of a table that these controls choose, outermost first (`spec.py`)."""
    return " ".join([table, *controls])


def line(x, y, **look):
    """A line; `look` may have color (a number of the style's cycle, "ink" or "muted"), width, dash
    and label, the line's name in the key."""
    return {"kind": "line", "x": x, "y": y, **look}


def area(x, low, high, **look):
    """The area where `high` lies above `low`, up to there."""
    return {"kind": "area", "x": x, "low": low, "high": high, **look}


def dots(x, y, **look):
    """Dots, or one dot; `size` is the radius."""
    return {"kind": "dots", "x": x, "y": y, **look}


def stems(x, y, **look):
    """Lines from zero up or down to each y."""
    return {"kind": "stems", "x": x, "y": y, **look}


def rule(**look):
    """A line across the whole plot, at x=... or at y=..."""
    return {"kind": "rule", **look}


def note(x, y, text, **look):
    """A word in the picture; `anchor` is start, middle or end."""
    return {"kind": "note", "x": x, "y": y, "text": text, **look}
