"""What the page calculator and ``python -m dpnotes`` share."""

from .questions import QUESTIONS, answer, answers, curve, digits, rows
