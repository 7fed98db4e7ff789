"""What the page calculator and ``python -m dpnotes`` share."""

from .questions import QUESTIONS, answers, curve, digits
