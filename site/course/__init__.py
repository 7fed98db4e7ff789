"""The book as a course: how long a page takes, what comes before and after it, the plan of a term.

Everything is read from the pages: "**You need**" says what comes before, "**Next:**" at the end
what comes after and why, the first question of a page is the question of the link that leads to
it, and a section that begins with "A first reading may skip" is starred. Only the dates of a term
are a table of their own, `plan.yml`, which the slides read too.
"""

import re
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import docname_join, logging
from sphinx.util.docutils import SphinxDirective

from pages import ledger
from pages.status import SILENT, add_drawings, table
from surroundings import ROOT, copy_scripts, files_of

HERE = Path(__file__).resolve().parent
STAR = " ★"
SECOND = "A first reading may skip"
UNCOUNTED = ("Exercises", "In practice", "Further reading")
WORD, SYMBOLS, FORMULA, LINE, PICTURE = 1 / 100, 1 / 15, 3 / 4, 1 / 10, 1  # minutes for one of each
SITTING = 60  # minutes, the longest first reading
logger = logging.getLogger(__name__)


def title_of(section):
    """A section's title without its star."""
    return section[0].astext().removesuffix(STAR).replace("’", "'")


def is_second(node):
    """Is it left out at a first reading?"""
    return isinstance(node, nodes.section) and "second-reading" in node["classes"]


def is_question(block):
    """A question with its folded answer."""
    return "question" in block["classes"]


class StarSections(SphinxTransform):
    """Before titles are collected."""

    default_priority = 500

    def apply(self, **kwargs):
        for section in self.document.findall(nodes.section):
            says = [part for part in section.children[1:2] if isinstance(part, nodes.paragraph)]
            if says and says[0].astext().startswith(SECOND):
                section["classes"].append("second-reading")
                section[0] += nodes.Text(STAR)


def minutes(doctree):
    """(first reading, starred sections) of a page in minutes.

    A minute for 100 words, four seconds for a formula in the text, 45 for a displayed one, a minute
    for what a cell shows, six seconds for a line of code in view. Proofs are opened and read;
    what `UNCOUNTED` names is work, or left for later.
    """
    spent = [0.0, 0.0]
    stack = [(doctree, 0)]
    while stack:
        node, second = stack.pop()
        second = second or int(is_second(node))
        if isinstance(node, nodes.Text):
            spent[second] += WORD * len(node.astext().split())
        elif isinstance(node, nodes.math):
            spent[second] += SYMBOLS
        elif isinstance(node, nodes.math_block):
            spent[second] += FORMULA
        elif node.get("nb_element") == "cell_code":
            spent[second] += of_cell(node)
        elif isinstance(node, nodes.literal_block):
            spent[second] += LINE * len(node.astext().splitlines())
        elif not (isinstance(node, SILENT) or is_uncounted(node)):
            stack += [(child, second) for child in node.children]
    return tuple(round(number) for number in spent)


def is_uncounted(node):
    """A section that is work or a list of books."""
    return isinstance(node, nodes.section) and title_of(node) in UNCOUNTED


def of_cell(cell):
    """Minutes for a cell: its code if it is in view, and what it shows."""
    hidden = {"tag_hide-input", "tag_remove-input"} & set(cell["classes"])
    parts = list(cell.findall(nodes.container))
    code = [] if hidden else [p for p in parts if p.get("nb_element") == "cell_code_source"]
    output = [p for p in parts if p.get("nb_element") == "cell_code_output"]
    return LINE * sum(len(p.astext().splitlines()) for p in code) + PICTURE * len(output)


def lead(doctree):
    """The paragraphs before the first section of a page."""
    page = next(doctree.findall(nodes.section))
    for part in page.children[1:]:
        if isinstance(part, nodes.section):
            return
        if isinstance(part, nodes.paragraph):
            yield part


def paragraph(doctree, start):
    """The first paragraph with a part in bold that begins so, and that part; or None twice."""
    for bold in doctree.findall(nodes.strong):
        if bold.astext().startswith(start) and isinstance(bold.parent, nodes.paragraph):
            return bold.parent, bold
    return None, None


def question(doctree):
    """The first question of a page that needs no formula; empty if it begins without one."""
    for part in lead(doctree):
        for sentence in re.split(r"(?<=[.?!:])\s+", part.astext()):
            if sentence.endswith("?") and not re.search(r"[\\$]", sentence):
                return sentence[0].upper() + sentence[1:]
    return ""


def home(env, reference):
    """The page that a reference leads to."""
    if reference.get("refdomain") == "prf":
        return getattr(env, "proof_list", {}).get(reference["reftarget"], {}).get("docname")
    page = docname_join(reference["refdoc"], reference["reftarget"])
    return page if page in env.found_docs else None


def find_needs(env, docname, doctree):
    """The pages that the sentence "You need ..." of a page names."""
    said, bold = paragraph(doctree, "You need")
    if said is None:
        return []
    pages = {}
    for part in said.children[said.index(bold) :]:
        pages |= dict.fromkeys(home(env, ref) for ref in part.findall(addnodes.pending_xref))
        if isinstance(part, nodes.Text) and re.search(r"\.(\s|$)", part):
            break
    return [page for page in pages if page not in (None, docname)]


@dataclass
class Chapter:
    """What the course knows of a page that teaches."""

    part: str
    numbered: bool  # an appendix has no number, and no first reading
    minutes: tuple
    question: str
    needs: list
    titles: list

    @property
    def time(self):
        """In words."""
        first, second = self.minutes
        return f"{first} minutes" + (f", {second} more for what is starred" if second else "")


@cache
def chapters(env):
    """Page -> chapter, in the book's order; to be asked when all pages are read."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    facts = {}
    for part in toc.get("parts", []):  # a small book has none
        for page in files_of(part):
            tree = env.get_doctree(page) if page in env.found_docs else None
            if tree is not None and paragraph(tree, "You will")[0]:
                titles = [title_of(section) for section in tree.findall(nodes.section)]
                needs = find_needs(env, page, tree)
                numbered = bool(part.get("numbered"))
                facts[page] = Chapter(
                    part["caption"], numbered, minutes(tree), question(tree), needs, titles
                )
    return facts


def link(app, here, page, text=None):
    """A link to a page, by its title."""
    address = app.builder.get_relative_uri(here, page)
    words = text or app.env.titles[page].astext()
    return nodes.reference("", words, refuri=address, internal=True)


class Read(SphinxDirective):
    """``{course-read} pure-dp gaussian``: a route through the book; each line says why."""

    has_content = True

    def run(self):
        box = nodes.container(classes=["course-read"])
        self.state.nested_parse(StringList(self.content), self.content_offset, box)
        return [box]


class DrawCourse(SphinxPostTransform):
    """Every page is read by now."""

    default_priority = 8  # before references are resolved

    def run(self, **kwargs):
        self.say_minutes()
        self.say_time_of_links()
        asked = (box for box in self.document.findall(nodes.admonition) if is_question(box))
        for number, box in enumerate(asked, 1):  # the script keeps answers by these names
            box["ids"].append(f"question-{number}")

    def say_minutes(self):
        """In front of "You will"."""
        said, _ = paragraph(self.document, "You will")
        chapter = chapters(self.env).get(self.env.docname)
        if chapter:
            text = f"Reading this page takes about {chapter.time}, without the exercises. "
            said.insert(0, nodes.inline("", text, classes=["course-minutes"]))

    def say_time_of_links(self):
        """Behind each chapter that a route names."""
        for box in self.document.findall(nodes.container):
            if "course-read" in box["classes"]:
                for target in list(box.findall(addnodes.pending_xref)):
                    whole = target.get("reftype") == "doc"
                    chapter = chapters(self.env).get(home(self.env, target)) if whole else None
                    first = f" ({chapter.minutes[0]} min)" if chapter else ""
                    target.parent.insert(target.parent.index(target) + 1, nodes.Text(first))


def draw_map(app, here):
    """The chapters, part by part: question, minutes, and what each one needs."""
    box, part, known = nodes.container(classes=["course-map"]), None, chapters(app.env)
    for page, chapter in known.items():
        if chapter.part != part:
            part = chapter.part
            items = nodes.bullet_list()
            box += [nodes.rubric(text=part), items]
        before = [name for name in chapter.needs if name in known]
        line = nodes.paragraph("", "", link(app, here, page))
        line += nodes.Text(f" {chapter.question}")
        facts = nodes.paragraph(classes=["course-facts"])
        facts += nodes.Text(f"{chapter.time} · needs ")
        for number, name in enumerate(before):
            facts += [nodes.Text(", " * bool(number)), link(app, here, name)]
        facts += nodes.Text("" if before else "no other chapter")
        items += nodes.list_item("", line, facts)
    return box


def draw_sources(app, here):
    """For each source the pages on which its claims stand, in the order of the source."""
    documents = nodes.definition_list()
    for letter, source in ledger.sources().items():
        told = [claim for claim in ledger.finished_claims() if claim["id"][0] == letter]
        pages = dict.fromkeys(f"chapters/{c['page']}" for c in told)
        pages = [page for page in pages if page in app.env.found_docs]
        way = nodes.paragraph()
        for number, page in enumerate(pages):
            way += [nodes.Text(" → " * bool(number)), link(app, here, page)]
        term = nodes.term(text=f"{source['title']} ({source['kind']})")
        documents += nodes.definition_list_item("", term, nodes.definition("", way))
    return documents


def plan():
    """The dates of the course."""
    return yaml.safe_load((HERE / "plan.yml").read_text(encoding="utf-8"))


def draw_plan(app, here):
    """One row a date."""
    heads = ("date", "shown", "left to read", "exercises in class", "sheet")
    rows = []
    for number, date in enumerate(plan(), 1):
        shown = nodes.inline()
        for place, (page, sections) in enumerate(date["show"].items()):
            shown += nodes.Text(" — " * bool(place))
            docname = f"chapters/{page}"
            shown += link(app, here, docname) if docname in app.env.found_docs else nodes.Text(page)
            shown += nodes.Text(": " + "; ".join(sections))
        words = ["; ".join(date.get(key, ())) for key in ("read", "class")]
        rows.append([f"{number}", shown, *words, date.get("sheet", "")])
    return table(heads, rows, "course-plan")


def check_sitting(app, env):
    """No first reading is longer than one sitting, and the plan names sections that are there."""
    for page, chapter in chapters(env).items():
        if chapter.numbered and chapter.minutes[0] > SITTING:
            logger.warning("a first reading takes %s minutes", chapter.minutes[0], location=page)
    for page, wanted in (part for date in plan() for part in date["show"].items()):
        chapter = chapters(env).get(f"chapters/{page}")
        for title in wanted:
            if chapter and title not in chapter.titles:
                logger.warning("the plan names no section of it: %s", title, location=page)


def ask_on_next(app, pagename, templatename, context, doctree):
    """The link to the next page carries its question; each page loads the scripts."""
    if doctree is not None:
        folder = context["pathto"]("_course", 1)
        for name in ("course.js", "explain.js"):
            context["metatags"] += f'<script type="module" src="{folder}/{name}"></script>'
    chapter = chapters(app.env).get(next_page(app.env, pagename))
    if chapter and chapter.question and context.get("next"):
        asked = f'<span class="next-question">{escape(chapter.question)}</span>'
        context["next"] = {**context["next"], "title": context["next"]["title"] + asked}


def next_page(env, page):
    """The page after this one."""
    return (env.collect_relations().get(page) or (None, None, None))[2]


def publish(app, exception):
    """Before the site is polished, which looks into scripts for the classes they use."""
    if not exception and app.builder.name == "html":
        copy_scripts(HERE, Path(app.outdir) / "_course")


def setup(app):
    """Register the directives and what fills them."""
    drawings = {"course-map": draw_map, "course-sources": draw_sources, "course-plan": draw_plan}
    add_drawings(app, drawings)
    app.add_directive("course-read", Read)
    app.add_transform(StarSections)
    app.add_post_transform(DrawCourse)
    app.connect("env-updated", check_sitting)
    app.connect("html-page-context", ask_on_next)
    app.connect("build-finished", publish, priority=500)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
