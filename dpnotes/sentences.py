"""Numbers that a page's text has typed, read out of its words, and what they may stand for."""

import re

_SMALL = "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
_SMALL += " sixteen seventeen eighteen nineteen"
WORDS = {word: float(n) for n, word in enumerate(_SMALL.split(), 2)}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_DIGITS = ["one", *_SMALL.split()[:8]]
_BOTH = {f"{t}-{d}": 10.0 * m + n for m, t in enumerate(_TENS, 2) for n, d in enumerate(_DIGITS, 1)}
WORDS = _BOTH | WORDS | {word: 10.0 * n for n, word in enumerate(_TENS, 2)}
PARTS = {"half": 0.5, "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "sixth": 1 / 6}
PARTS |= {"seventh": 1 / 7, "eighth": 1 / 8, "ninth": 1 / 9, "tenth": 0.1, "hundredth": 0.01}
PARTS |= {"thousandth": 1e-3, "millionth": 1e-6, "twice": 2.0}
TIMES = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9}

GROUPED = re.compile(r"(?<=\d)(?:,|\\,|\{,\}|_)(?=\d{3})")  # 10,000 is 10000
NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-−]?)"
    r"(?:(?:(?P<factor>\d+(?:\.\d+)?) ?(?:\\cdot|·) ?)?10\^(?:\{(?P<far>-?\d+)\}|(?P<near>\d))"
    rf"|(?P<digits>\d+(?:\.\d+)?))(?: (?P<times>{'|'.join(TIMES)})\b)?"
    rf"|\b(?P<word>{'|'.join([*WORDS, *TIMES, *PARTS])})s?\b"
    rf"(?:[ -](?P<unit>{'|'.join([*TIMES, *PARTS])})s?\b)?",
    re.I,
)
SIZES = {  # the words before a number: from and to which multiple of it the value may be
    r"more than|over|at least|above|beyond": (1, 2),
    r"less than|fewer than|under|below|at most|up to": (0.5, 1),
    r"about|almost|nearly|around|some": (0.9, 1.1),  # of numbers in words only
}


def numbers(fragment):
    """The numbers in a few words, as (what is written, the least value, the largest value).

    Figures may be off by half of their last digit; zeros at the end of a whole number count in its
    first two places only. Small whole numbers in words may be off by a half, other words by a
    twentieth. "About" adds a tenth; "more than" and "at most" mean it, within a factor of two.
    """
    fragment = GROUPED.sub("", fragment)
    return [(match[0], *_range(match, fragment)) for match in NUMBER.finditer(fragment)]


def _range(match, fragment):
    value, off = _in_words(match) if match["word"] else _in_figures(match)
    low, high = value - off, value + off
    for words, (least, most) in SIZES.items():
        if re.search(rf"\b(?:{words})(?: an?| by| one)? \W*$", fragment[: match.start()], re.I):
            if least < 1 < most and not match["word"]:
                continue
            low, high = (low, high) if least < 1 < most else (value, value)
            low, high = min(low, least * value), max(high, most * value)
    return (-high, -low) if match["sign"] else (low, high)


def _in_words(match):
    word, unit = match["word"].lower(), match["unit"]
    value = {**WORDS, **TIMES, **PARTS}[word] * {**TIMES, **PARTS}.get(unit, 1.0)
    return value, 0.5 if word in WORDS and not unit else value / 20


def _in_figures(match):
    power = match["far"] or match["near"]
    size = (10.0 ** int(power) if power else 1.0) * TIMES.get(match["times"], 1.0)
    digits = (match["factor"] or "1") if power else match["digits"]
    whole, _, decimals = digits.partition(".")
    zeros = min(len(whole) - len(whole.rstrip("0")), max(len(whole) - 2, 0))
    return float(digits) * size, 0.5 * size * 10.0 ** (-len(decimals) if decimals else zeros)
