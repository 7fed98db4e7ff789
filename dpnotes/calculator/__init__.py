"""What the page calculator and ``python -m dpnotes`` share."""

from .questions import QUESTIONS, answer, answers, attack, curve, risk, roc, rows, substitution
from .wording import digits
