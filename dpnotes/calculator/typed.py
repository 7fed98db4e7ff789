"""Numbers as people type them: 1e-5, 10^-5, 256/60000, 1%, 60_000.

A number that was typed is shown as it was typed: in the call to copy, beside delta, in an error.
The page's form reads the same texts (``site/calculator/numbers.js``); the two are compared by
`test_numbers_are_read_as_the_package_reads_them`.
"""

import re
from math import isfinite, nan

from ..checks import refusal

PLAIN = r"[+-]?(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:e[+-]?\d+)?"
NUMBER = re.compile(rf"({PLAIN})(?:/({PLAIN}))?", re.IGNORECASE)
POWER = re.compile(r"(?:([\d.]+)[*x·×]|(?<![\d.]))10\^([+-]?\d+)")  # 10^-5, 2*10^-5
RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
ALLOWED = "a number such as 0.01, 1e-5, 10^-5, 256/60000 or 1%"


class Typed(float):
    """A number whose repr is the text that it was made of, a Python expression of its value."""

    text: str

    def __new__(cls, value, text):
        number = super().__new__(cls, value)
        number.text = text
        return number

    def __repr__(self):
        return self.text

    def __reduce__(self):
        return Typed, (float(self), self.text)


def number(name, value):
    """The number that a text stands for, as Typed; what is no text is left as it is.

    Commas are not guessed: the error asks which number is meant.
    """
    if not isinstance(value, str):
        return value
    if "," in value:
        meant = " or ".join(meanings(value))
        raise refusal(name, value, f"written without a comma{meant and f' ({meant}?)'}")
    text = tidied(value)
    parts = NUMBER.fullmatch(text)
    top, bottom = (float(part or 1) for part in parts.groups()) if parts else (nan, 1.0)
    result = top / bottom if bottom else nan
    if not isfinite(result):
        raise refusal(name, value, ALLOWED)
    return Typed(result, text)


def tidied(text):
    """The same as Python writes it, if it is a number: no spaces, 1e-5 for 10^-5, 1/100 for 1%."""
    text = re.sub(r"[\s'’]", "", text).replace("−", "-")
    text = re.sub(r"10([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda found: "10^" + found[1].translate(RAISED), text)
    text = POWER.sub(lambda found: f"{found[1] or '1'}e{found[2]}", text)
    text = re.sub(r"(?<![\d._])0+(?=\d)", "", text)  # 007 is no Python
    return text[:-1] + "/100" if text.endswith("%") and "/" not in text else text


def meanings(text):
    """What a number with a comma may stand for: the comma as a mark of thousands, or as a point."""
    text = re.sub(r"\s", "", text)
    found = [text.replace(",", "")] if re.fullmatch(r"[1-9]\d{0,2}(,\d{3})+(\.\d+)?", text) else []
    return found + ([text.replace(",", ".")] if re.fullmatch(r"\d+,\d+", text) else [])
