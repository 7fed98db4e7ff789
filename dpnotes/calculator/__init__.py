"""What the page calculator and ``python -m dpnotes`` share."""

from .questions import QUESTIONS, answer, answers, curve, rows, substitution
from .wording import digits
