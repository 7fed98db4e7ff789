"""Folded blocks without JavaScript, cells that fold, and clean markup for numbered blocks.

A block ``{dropdown} Title`` and each solution becomes ``<details>``. The theme's toggle script,
which does the same in the reader's browser, is left out of the site.
"""

from docutils import nodes
from docutils.parsers.rst.directives.admonitions import Admonition
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx_exercise import nodes as exercises
from sphinx_exercise.directive import SolutionDirective

from pages.notebook import written_out

AFTER_SOLUTION = (
    exercises.exercise_node, exercises.exercise_enumerable_node, nodes.section, nodes.target,
)  # fmt: skip
SHARED_IDS = (["proof-content"], ["exercise-content"], ["solution-content"])
logger = logging.getLogger(__name__)


class Dropdown(Admonition):
    """``{dropdown} Title``: a proof, a hint, or a question with its answer."""

    def run(self):
        """The title says whether it is a question."""
        asks = self.arguments[0].startswith("Question")
        self.options["class"] = ["dropdown", "question"] if asks else ["dropdown"]
        return super().run()


class Solution(SolutionDirective):
    """The solution of the exercise ``ex-x`` is called ``sol-x``."""

    def run(self):
        """It folds."""
        name = self.arguments[0].removeprefix("ex-")
        self.options = {"label": f"sol-{name}", "class": ["dropdown"]}
        return super().run()


class FillSolutions(SphinxTransform):
    """A solution is what follows its line, up to the next exercise or section: cells too, which
    cannot stand inside of a directive."""

    default_priority = 11

    def apply(self):
        """Move what follows into its solution."""
        for solution in list(self.document.findall(exercises.solution_node)):
            parent, place = solution.parent, solution.parent.index(solution) + 1
            while place < len(parent) and not isinstance(parent[place], AFTER_SOLUTION):
                solution[-1] += parent.pop(place)


class Folded(nodes.General, nodes.Element):
    """A block that the reader opens."""


class Fold(nodes.TextElement):
    """The line of a folded block that is always shown."""


class FoldDropdowns(SphinxPostTransform):
    """Turn blocks of the class ``dropdown`` into ``Folded`` ones, after titles are resolved."""

    default_priority = 900

    def run(self, **kwargs):
        """Replace each block; its title becomes the line that opens it."""
        for block in list(self.document.findall(nodes.Admonition)):
            title, classes = block[0], block["classes"]
            if "dropdown" not in classes:
                continue
            if not isinstance(title, nodes.title):
                logger.warning("a folded block needs a title: {dropdown} Title", location=block)
                continue
            if "admonition" not in classes:  # the block's own writer would have added it
                classes = [*classes, "admonition"]
            folded = Folded("", *block.children, ids=block["ids"], classes=classes)
            title.replace_self(Fold("", "", *title.children, classes=["admonition-title"]))
            block.replace_self(folded)


def write_out(app, name, source):
    """Before a page is parsed."""
    source[0] = written_out(source[0])


def name_inner_sections(app, doctree):
    """sphinx-proof and -exercise give all bodies of a kind the same id; make it the block's own."""
    for section in doctree.findall(nodes.section):
        if section["ids"] in SHARED_IDS and "label" in section.parent:
            section["ids"] = [f"{section.parent['label']}-content"]


def element(name, end):
    """How a node is written as this element of HTML."""

    def visit(self, node):
        self.body.append(self.starttag(node, name, end))

    def depart(self, node):
        self.body.append(f"</{name}>\n")

    return visit, depart


def setup(app):
    """Register the directives, the transform and its two nodes."""
    for extension in ("sphinx_design", "sphinx_exercise"):  # they have directives of these names
        app.setup_extension(extension)
    app.add_directive("dropdown", Dropdown, override=True)
    app.add_directive("solution", Solution, override=True)
    app.add_transform(FillSolutions)
    app.add_node(Folded, html=element("details", "\n"))
    app.add_node(Fold, html=element("summary", ""))
    app.add_post_transform(FoldDropdowns)
    app.connect("source-read", write_out)
    app.connect("doctree-read", name_inner_sections)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
