"""One line through the plane for all members of a family: what ``calibrate`` follows to a root."""

from dataclasses import replace
from math import log

from . import contour
from .inversion import GOOD
from .schedule import grouped

__all__ = []


def followed(parts, epsilon):
    """A function of parts like these that finds their log delta(e) on the line of these, at the
    same heights: right up to round-off for parts near them, but without bounds. None where no line
    serves."""
    start = contour.saddle_at(parts, 1, epsilon)
    line = contour.line(parts, 1, start) if start[2] < log(0.5) else None
    if line is None or max(line.sums(epsilon)[2:]) > GOOD:
        return None

    def log_delta(others):
        others = grouped(others)
        shape = sum(k * step.line(line.c, line.y)[0] for step, k in others)
        moved = replace(line, cumulant=contour.total_at(others, line.c), shape=shape)
        return moved.sums(epsilon)[0]

    return log_delta
