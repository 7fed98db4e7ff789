"""Pairs of submissions whose code is much the same: shared runs of words, names and numbers apart.

The code was cut out of each submission where it was read. Only its words are compared here, so that
no code, however it is made, can stop the comparison.
"""

import html
import re
from itertools import combinations

from . import masters
from .report import page, write

WORDS = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]")
KEPT = re.compile(r"(def|return|for|while|if|else|elif|in|and|or|not|lambda|with|try|raise)\b")
RUN, MOST = 12, 40_000  # words in a run, and words of a submission that are read


def runs(code):
    """The runs of words of a piece of code; other names, other numbers: the same run."""
    words = []
    for line in code.splitlines():
        for word in WORDS.findall(line.split("#")[0]):
            kind = "n" if word[0].isdigit() else "v" if word[0].isalpha() else word
            words.append(word if KEPT.fullmatch(word) else kind)
    words = words[:MOST]
    return {hash(tuple(words[i : i + RUN])) for i in range(len(words) - RUN + 1)}


def pairs(codes, given, least):
    """[(share, student, student)]: the share of the smaller one's runs that the other has too."""
    public = set().union(*map(runs, given))
    own = {student: runs(code) - public for student, code in codes.items()}
    shares = [
        (len(own[one] & own[other]) / min(len(own[one]), len(own[other])), one, other)
        for one, other in combinations(sorted(own), 2)
        if min(len(own[one]), len(own[other])) >= RUN
    ]
    return sorted((s for s in shares if s[0] >= least), reverse=True)


def report(given, results):
    """Write `similar.html`, and say how many pairs share at least `given.similar` of their code."""
    master = masters.read(given.masters / f"{given.name}.md")
    codes = {student: result["code"] for student, result in results.items()}
    public = [c.source for c in master.student.cells if c.cell_type == "code"]
    alike = pairs(codes, public, given.similar)
    parts = [f"<p>{len(alike)} pairs share at least {given.similar:.0%} of their own code.</p>"]
    for share, *two in alike:
        shown = [f"<h3>{html.escape(s)}</h3><pre>{html.escape(codes[s])}</pre>" for s in two]
        title = f"{share:.0%}: {html.escape(two[0])} and {html.escape(two[1])}"
        parts.append(f"<details><summary>{title}</summary>{''.join(shown)}</details>")
    write(given.out / "similar.html", page("Similar submissions", parts))
    return f"{len(alike)} similar pairs: {given.out / 'similar.html'}"
