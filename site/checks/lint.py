"""What a page's source must keep to: each rule takes a page and returns what is wrong with it."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import jupytext

from dpnotes.sentences import GROUPED
from pages import ledger
from pages.notebook import written_out

LONGEST_CELL, MEDIAN_CELL, EXERCISES = 30, 4, 6
TAGS = {"hide-input", "hide-output", "remove-input", "remove-output"}
BLOCK = re.compile(r"^(`{3,}|:{3,})\{prf:(\w+)\}[^\n]*\n(.*?)^\1\s*$", re.M | re.S)
PROOF = re.compile(
    r"^(`{3,}|:{3,})\{dropdown\} *([^\n]*\bproof\b[^\n]*)\n(.*?)^\1\s*$", re.M | re.S | re.I
)
IMPORT = re.compile(r"import |from \S+ import ")
LABEL = re.compile(r"^:label:\s*(\S+)", re.M)
ALT = re.compile(r"\balt=(.*?)\)$", re.M | re.S)
FENCED = re.compile(r"^(```+)(?:\{code-cell\}|python|sh|\{raw\})[^\n]*\n.*?^\1$", re.M | re.S)
NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)|(?<![\w.^{_/-])\d\d+(?![\w.]*\d)(?!\w)")
OTHER_NUMBERS = (  # versions, units, years, powers of ten; a source is cited, code quoted
    r"\(\d+\.\d+(?: and later)?\)",
    r"(?:OpenDP|Opacus[^\n ]*|[Vv]ersion|[Ss]ection) \(?\d+(?:\.\d+)+",
    r"\b\d+[- ](?:bits?|MB|minutes)\b|\b(?:19|20)\d\d\b|\b10+\b",
    r"\A---\n(?s:.*?)\n---\n|(?m:^.*\{cite.*$|^:\w.*$)|`[^`\n]*`",
)
SIDE = r"\b(?:left|right) (?:panel|column)\b|^On the (?:left|right)\b|\b(?:Left|Right)[:,]"


OTHER_NOTATION = {
    r"\\log\b": "a logarithm is \\ln",
    r"\bdata sets?\b": "the word is 'dataset'",
    r"\bper cents?\b": "the word is 'percent'",
    r"\(\\alpha, *\\eps\)\$?-RDP": "the parameter of RDP is \\xi",
    r"(?<!learning )\brate \$(?:q|p|\\gamma|\\lambda)\b": "a sampling rate is $r$",
    r"\d\\,\d{3}(?!\d)|\b\d{1,3} 000\b": "thousands are marked by a comma: 60,000 or $60{,}000$",
    r"\\blacksquare|\\qed\b|∎": "the end of a proof is set by {dropdown} Proof",
}


@dataclass
class Page:
    """A page's name and source."""

    name: str
    text: str

    @classmethod
    def read(cls, file):
        return cls(Path(file).stem, written_out(Path(file).read_text(encoding="utf8")))

    def cells(self):
        """The code cells as (tags, lines of code)."""
        return [
            (cell.metadata.get("tags", []), [x for x in cell.source.splitlines() if x.strip()])
            for cell in jupytext.reads(self.text, fmt="md:myst").cells
            if cell.cell_type == "code"
        ]

    def blocks(self):
        """The labelled statements as (kind, label or None, body)."""
        return [
            (kind, (LABEL.search(body) or [None, None])[1], body)
            for _, kind, body in BLOCK.findall(self.text)
        ]


def long_cells(page):
    """A cell is read at a glance (imports aside); what is longer belongs into the package."""
    lengths = [len([x for x in code if not IMPORT.match(x)]) for _, code in page.cells()]
    faults = [f"a cell of {n} lines (at most {LONGEST_CELL})" for n in lengths if n > LONGEST_CELL]
    if len(lengths) >= 6 and median(lengths) > MEDIAN_CELL:
        faults.append(f"the median cell has {median(lengths)} lines (at most {MEDIAN_CELL})")
    return faults


def unknown_tags(page):
    """A mistyped tag is silently ignored by the build."""
    tags = [tag for listed, _ in page.cells() for tag in listed]
    return [f"unknown cell tag {tag!r}" for tag in tags if tag not in TAGS]


def unlabelled_claims(page):
    """Every numbered statement can be referred to; proofs fold."""
    faults = [f"a prf:{kind} without a label" for kind, label, _ in page.blocks() if not label]
    if "{prf:proof}" in page.text:
        faults.append("prf:proof cannot fold: use {dropdown} Proof")
    return faults


def strange_labels(page):
    """A statement is the ledger's, or the page's own and named after the page."""
    known = {ledger.label(claim["id"]) for claim in ledger.claims()}
    return [
        f"label {label!r} is neither a claim nor starts with '{page.name}-'"
        for _, label, _ in page.blocks()
        if label and label not in known and not label.startswith(f"{page.name}-")
    ]


def notation(page):
    """One notation in the whole book, the one that the page `notation` lists."""
    return [
        f"{match[0]!r}: {rule}"
        for pattern, rule in OTHER_NOTATION.items()
        for match in re.finditer(pattern, page.text, re.I)
    ]


def unused_labels(page, everywhere):
    """An equation number nobody refers to is noise; `everywhere` is the text of all pages."""
    labels = re.findall(r"^\$\$ *\(([\w.-]+)\)\s*$", page.text, re.M)
    labels += re.findall(r"\$\$ +\(([\w.-]+)\)\s*$", page.text, re.M)
    return [
        f"equation label {label!r} is never referred to"
        for label in sorted(set(labels))
        if f"{{eq}}`{label}`" not in everywhere
    ]


def unseeded_randomness(page):
    """The same page gives the same numbers: generators have seeds, global state is not used."""
    code = "\n".join(line for _, lines in page.cells() for line in lines)
    faults = []
    if re.search(r"default_rng\(\s*\)", code):
        faults.append("a generator without a seed")
    if re.search(r"np\.random\.(?!default_rng|Generator|PCG64)\w+", code):
        faults.append("numpy's global random state")
    if re.search(r"^\s*(import random\b|from random import)", code, re.M):
        faults.append("the module random")
    if re.search(r"\.rvs\((?![^)]*random_state)", code):
        faults.append("rvs without random_state")
    return faults


def glue(page):
    """A hidden glue output is stripped from the executed notebook, so nothing could compare it."""
    code = "\n".join(line for _, lines in page.cells() for line in lines)
    return ["glue with display=False: tag the cell instead"] * ("display=False" in code)


def code_of(page):
    """(the cells without descriptions of figures, those descriptions without what is computed)."""
    code = "\n".join(line for _, lines in page.cells() for line in lines)
    told = "\n".join(re.sub(r"\{[^}\n]*\}", "", alt) for alt in ALT.findall(code))
    return ALT.sub("", code), told


def said(page):
    """(the words that `plotting.says` checks, the cells without checks and comments)."""
    words, code = [], ""
    for lines in (lines for _, lines in page.cells()):
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "plotting.says":
                words += [key.value for key in node.args[0].keys]
            elif not isinstance(node, ast.Assert):
                continue
            for line in range(node.lineno - 1, node.end_lineno):
                lines[line] = ""
        code += re.sub(r"#.*", "", "\n".join(lines)) + "\n"
    return words, ALT.sub("", code)


def typed_numbers(page):
    """A number of the text or of a figure's description is written by `glue`, or stands among the
    words that `plotting.says` compares with a value, or is given: a cell computes with it. Those
    words stand on the page once. Single digits are free. Proofs and statements derive their own,
    and a line that cites a source quotes it."""
    words, code = said(page)
    known = set(re.findall(r"\d+\.\d+|\d+", re.sub(GROUPED, "", code)))
    faults, *parts = untied(words, FENCED.sub("", page.text), code_of(page)[1])
    text, told = (re.sub(GROUPED, "", BLOCK.sub("", PROOF.sub("", part))) for part in parts)
    for part in OTHER_NUMBERS:
        text, told = re.sub(part, "", text), re.sub(part, "", told)
    return faults + [
        f"{n} is typed" for n in NUMBER.findall(text + told) if known and n not in known
    ]


def untied(words, text, told):
    """([what does not stand there once], the text and descriptions without these words)."""
    faults, ends = [], {"text": list(text), "told": list(told)}
    for each in words:
        whole = (r"(?<![\w.,])" if each[0].isalnum() else "") + re.escape(each)
        whole += r"(?!\w|[.,]\d)" if each[-1].isalnum() else ""
        found = [
            (name, place)
            for name, part in (("text", text), ("told", told))
            for place in re.finditer(whole, part)
        ]
        if len(found) != 1:
            faults.append(f"{each!r} stands in the text {len(found)} times, not once")
        for name, place in found:
            ends[name][place.start() : place.end()] = "@" * len(place[0])
    return faults, *("".join(part) for part in ends.values())


def sides(page):
    """Panels stand below each other on a phone: they are named by their titles."""
    text = PROOF.sub("", BLOCK.sub("", FENCED.sub("", page.text)))
    return [f"{said!r} of what?" for said in re.findall(SIDE, text + code_of(page)[1], re.M)]


def exercises(page):
    """Enough exercises, each with a solution."""
    asked = re.findall(r"^```\{exercise\} (.*)\n(?::label: (\S+)$)?", page.text, re.M)
    solved = re.findall(r"^```\{solution\} (\S+)$", page.text, re.M)
    faults = [f"exercise {title!r} has no solution" for title, e in asked if e not in solved]
    if page.name in {c["chapter"] for c in ledger.claims()} and len(asked) < EXERCISES:
        faults.append(f"{len(asked)} exercises (at least {EXERCISES})")
    return faults


RULES = (
    long_cells,
    unknown_tags,
    unlabelled_claims,
    strange_labels,
    notation,
    unseeded_randomness,
    glue,
    typed_numbers,
    sides,
    exercises,
)
