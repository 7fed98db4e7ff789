"""Folded blocks without JavaScript, and clean markup for numbered blocks.

An admonition, proof, exercise or solution with ``:class: dropdown`` becomes ``<details>``. The
theme's toggle script, which does the same in the reader's browser, is left out of the site.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

SHARED_IDS = (["proof-content"], ["exercise-content"], ["solution-content"])
logger = logging.getLogger(__name__)


class Folded(nodes.General, nodes.Element):
    """A block that the reader opens."""


class Fold(nodes.TextElement):
    """The line of a folded block that is always shown."""


class FoldDropdowns(SphinxPostTransform):
    """Turn blocks of the class ``dropdown`` into ``Folded`` ones, after titles are resolved."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs):
        """Replace each block; its title becomes the line that opens it."""
        for block in list(self.document.findall(is_dropdown)):
            title = block[0]
            if not isinstance(title, nodes.title):
                logger.warning("a folded block needs a title: {admonition} Title", location=block)
                continue
            folded = Folded(
                "", *block.children, ids=block["ids"], classes=block["classes"] + kind(block)
            )
            fold = Fold("", "", *title.children, classes=["admonition-title"])
            title.replace_self(fold)
            block.replace_self(folded)


def is_dropdown(node):
    """A block that asks to be folded."""
    return isinstance(node, nodes.Admonition) and "dropdown" in node["classes"]


def kind(block):
    """The classes that the block's own writer would have added."""
    return ["admonition"] if "admonition" not in block["classes"] else []


def name_inner_sections(app, doctree):
    """sphinx-proof and -exercise give all bodies of a kind the same id; make it the block's own."""
    for section in doctree.findall(nodes.section):
        if section["ids"] in SHARED_IDS and "label" in section.parent:
            section["ids"] = [f"{section.parent['label']}-content"]


def visit_folded(self, node):
    """Open ``<details>``."""
    self.body.append(self.starttag(node, "details"))


def depart_folded(self, node):
    """Close ``<details>``."""
    self.body.append("</details>\n")


def visit_fold(self, node):
    """Open ``<summary>``."""
    self.body.append(self.starttag(node, "summary", ""))


def depart_fold(self, node):
    """Close ``<summary>``."""
    self.body.append("</summary>\n")


def setup(app):
    """Register the transform and its two nodes."""
    app.add_node(Folded, html=(visit_folded, depart_folded))
    app.add_node(Fold, html=(visit_fold, depart_fold))
    app.add_post_transform(FoldDropdowns)
    app.connect("doctree-read", name_inner_sections)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
