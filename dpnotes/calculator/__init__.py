"""What the page calculator and ``python -m dpnotes`` share."""

from .questions import QUESTIONS, answer, answers, curve, rows
from .wording import digits
