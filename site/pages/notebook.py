"""A page as a notebook: does it run, which of its cells show, the book's TeX commands."""

import json
import re
from pathlib import Path

import yaml
from docutils import nodes

HERE = Path(__file__).resolve().parent


def macros():
    """The book's TeX commands: {name: body}."""
    groups = json.loads((HERE / "macros.json").read_text(encoding="utf-8"))
    return {name: body for group in groups.values() for name, body in group.items()}


def is_executed(source):
    """Does this page run? Assignments (`execution_mode: off`) have a notebook of their own."""
    front = re.match(r"---\n(.*?)\n---\n", source.read_text(encoding="utf-8"), re.S)
    settings = yaml.safe_load(front[1]) if front else {}
    return "kernelspec" in settings and settings.get("mystnb", {}).get("execution_mode") != "off"


def cells_of(doctree):
    """The code cells of a page that show something."""
    return [n for n in doctree.findall(nodes.container) if n.get("nb_element") == "cell_code"]
