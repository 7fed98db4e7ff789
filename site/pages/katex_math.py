"""Mathematics rendered at build time.

Registers the Sphinx math renderer ``katex``: every formula goes through npm's KaTeX in one
long-lived Node process and arrives in the page as HTML (for the eye) and MathML (for screen
readers). Pages need no script and make no request; a TeX error is a warning of the build, which
the strict build turns into a failure. Commands of the book are listed in ``macros.json``.
"""

import atexit
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from pages.notebook import macros
from surroundings import ROOT, node_executable

HERE = Path(__file__).resolve().parent
DIST = ROOT / "node_modules" / "katex" / "dist"
NUMBERED = re.compile(r"\\(begin|end)\{(equation|align|gather|alignat|multline)\}")
OPENING, CLOSING = "([“‘", ".,;:!?)]”’-–—"
logger = logging.getLogger(__name__)


@cache
def server(pid):
    """One KaTeX process for each Sphinx process `pid`, so that forks do not share a pipe."""
    process = subprocess.Popen(
        [node_executable(), str(HERE / "katex_server.mjs")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    atexit.register(process.terminate)
    return process


@cache
def render(tex, display):
    """``{"html": ...}`` or ``{"error": ...}`` for one formula."""
    process = server(os.getpid())
    process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise RuntimeError("the KaTeX process ended early: is node_modules complete? (npm ci)")
    return json.loads(answer)


def html_of(node, tex, display):
    """HTML of a formula; an error is a warning at its place and the bare TeX in the page.

    The comments around it are for `polish.py`, which sets formulas aside and drops them.
    """
    answer = render(tex, display)
    if "error" in answer:
        logger.warning(
            "%s in: %s", answer["error"], " ".join(tex.split()), location=node, type="katex"
        )
        return f'<code class="tex-error">{nodes.unescape(tex)}</code>'
    return f"<!--formula-->{answer['html']}<!--/formula-->"


def visit_math(self, node):
    """Inline formula."""
    self.body.append(f'<span class="math">{html_of(node, node.astext(), False)}</span>')
    raise nodes.SkipNode


def join_punctuation(app, doctree, docname):
    """A formula and the punctuation around it are one word: no line begins with a comma."""
    for formula in list(doctree.findall(nodes.math)):
        parent, place = formula.parent, formula.parent.index(formula)
        before, after = text_at(parent, place - 1), text_at(parent, place + 1)
        opening = before[len(before.rstrip(OPENING)) :]
        closing = after[: len(after) - len(after.lstrip(CLOSING))]
        word = nodes.inline("", "", nodes.Text(opening), formula, nodes.Text(closing))
        word["classes"].append("dpn-word")
        if closing:
            parent[place + 1] = nodes.Text(after[len(closing) :])
        if opening:
            parent[place - 1] = nodes.Text(before[: -len(opening)])
        if opening or closing:
            parent[place] = word


def text_at(parent, place):
    """The text that is this child of a node, empty for other children."""
    child = parent.children[place] if 0 <= place < len(parent.children) else None
    return str(child) if isinstance(child, nodes.Text) else ""


def visit_displaymath(self, node):
    """Displayed formula in a box that scrolls sideways; its number stands beside the box.

    Sphinx counts one number for a block, and so references point at blocks: environments that would
    number their rows themselves are rendered in their starred form.
    """
    tex = NUMBERED.sub(r"\\\1{\2*}", node.astext()).strip()
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(f'<div class="math-scroll">{html_of(node, tex, True)}</div>')
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def copy_katex(app, exception):
    """KaTeX's style sheet and its WOFF2 fonts, and nothing else of the package."""
    if exception or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "katex"
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    for font in (DIST / "fonts").glob("*.woff2"):
        shutil.copy(font, target / "fonts")
    shutil.copy(DIST / "katex.min.js", target)  # for previews of homework
    (target / "macros.json").write_text(json.dumps(macros()), encoding="utf-8")
    css = (DIST / "katex.min.css").read_text(encoding="utf-8")
    css = re.sub(r',url\([^)]*\) format\("(?:woff|truetype)"\)', "", css)
    (target / "katex.css").write_text(css, encoding="utf-8")


def setup(app):
    """Register the renderer, its style sheet and the copy of its fonts."""
    app.add_html_math_renderer("katex", (visit_math, None), (visit_displaymath, None))
    app.add_css_file("katex/katex.css")
    app.connect("doctree-resolved", join_punctuation)
    app.connect("build-finished", copy_katex)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
