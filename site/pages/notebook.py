"""A page as a notebook: does it run, which of its cells show, the book's TeX commands."""

import json
import re
from pathlib import Path

import yaml
from docutils import nodes

HERE = Path(__file__).resolve().parent
CELL = re.compile(r"^\n?(```\{code-cell\}.*\n)(?!:|---\n)((?:(?!```).*\n)*)", re.M)
CLAIM = re.compile(
    r"^\n?((:{3,})\{prf:\w+\}.*\n)(?!:label:)((?:(?!\2$).*\n)*?.*\{source\}`([\w.-]+))", re.M
)
EXERCISE = re.compile(
    r"^\n?(```\{exercise\}[^\n]*\n)(?!:)((?:(?!^```\{exercise).)*?^```\{solution\} (\S+)$)",
    re.M | re.S,
)
PROOF = re.compile(
    r"^(`{3,}|:{3,})\{dropdown\} Proof(?:(?!\\square|\n\1$).)*?"
    r"\n(?!\1$)((?:(?!\\square)[^\n])+)(?=\n+\1$)",  # the last line
    re.M | re.S,
)


def macros():
    """The book's TeX commands: {name: body}."""
    groups = json.loads((HERE / "macros.json").read_text(encoding="utf-8"))
    return {name: body for group in groups.values() for name, body in group.items()}


def tags_of(code):
    """The code of a figure folds; a cell that writes or checks numbers of the text is hidden."""
    if "glue(" in code or "plotting.says(" in code:
        return ["remove-input", "remove-output"]
    return ["hide-input"] if "plotting.show(" in code else []


def written_out(text):
    """A page's text with what follows from it.

    Cells get tags, a claim the label of its source, an exercise the one that its solution names,
    a proof its square. Options take the place of the empty line before: lines keep their numbers.
    """

    def tagged(cell):
        tags = ", ".join(tags_of(cell[2]))
        return f"{cell[1]}:tags: [{tags}]\n{cell[2]}" if tags else cell[0]

    def labelled(claim):
        return f"{claim[1]}:label: {claim[4].lower()}\n{claim[3]}"

    def ended(proof):
        apart = proof[2].startswith(("$$", "\\end", "```", ":::"))
        return proof[0] + ("\n" if apart else " ") + "$\\square$"

    text = EXERCISE.sub(r"\1:label: \3\n\2", text)
    return CLAIM.sub(labelled, CELL.sub(tagged, PROOF.sub(ended, text)))


def is_executed(source):
    """Does this page run? Assignments (`execution_mode: off`) have a notebook of their own."""
    front = re.match(r"---\n(.*?)\n---\n", source.read_text(encoding="utf-8"), re.S)
    settings = yaml.safe_load(front[1]) if front else {}
    return "kernelspec" in settings and settings.get("mystnb", {}).get("execution_mode") != "off"


def cells_of(doctree):
    """The code cells of a page that show something."""
    return [n for n in doctree.findall(nodes.container) if n.get("nb_element") == "cell_code"]
