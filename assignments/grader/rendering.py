"""Students' text as HTML that neither runs nor loads anything; formulas stay for KaTeX.

It runs in the process of one submission, which has limits on time and memory.
"""

import html
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from .opening import Late, alarm

KATEX = Path(__file__).resolve().parents[2] / "node_modules" / "katex" / "dist"
FORMULA = re.compile(r'<(?:span|div) class="math (inline|block)">(.*?)</(?:span|div)>', re.S)
TO_MATHML = """
const katex = require(process.argv[1]), given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const set = ([kind, text]) => katex.renderToString(text,
  {output: "mathml", displayMode: kind === "block", throwOnError: false});
console.log(JSON.stringify(given.map(set)));
"""
PRICE = re.compile(r"(?<![\\$])\$(?=\d[^$\n]* \$\d)")  # costs $5, not $6
LARGEST = 2_000_000  # characters of HTML
PLAIN = 50_000  # characters that are shown where the text could not be typeset


def markdown(text):
    reader = MarkdownIt("js-default", {"html": False}).use(dollarmath_plugin, double_inline=True)
    return reader.disable(["image", "link", "autolink"]).render(PRICE.sub(r"\\$", text))


def answer(text, question, seconds=5):
    """(HTML, flags); the bare text where it can't be typeset in so much processor time."""
    try:
        with alarm(seconds):
            shown = markdown(text)
        if len(shown) <= LARGEST:
            return shown, []
    except (Late, MemoryError, RecursionError, ValueError, IndexError):
        pass
    bare = f"<pre>{html.escape(text[:PLAIN])}</pre>"
    return bare, [f"answer {question} could not be typeset: look into the notebook"]


def with_formulas(text):
    """HTML with its formulas as MathML, for pages that carry nothing else; as TeX between dollars
    where KaTeX or Node is missing or fails. For our own texts only."""
    formulas = [(kind, html.unescape(tex)) for kind, tex in FORMULA.findall(text)]
    shown = iter(typeset(formulas) or [f"<code>${html.escape(tex)}$</code>" for _, tex in formulas])
    return FORMULA.sub(lambda _: next(shown), text)


def typeset(formulas):
    """MathML of each (kind, tex), or None."""
    beside = Path(sys.executable).with_name("node")  # the pinned one of requirements.txt
    node = str(beside) if beside.exists() else shutil.which("node")
    if not (formulas and node and KATEX.exists()):
        return None
    command = [node, "-e", TO_MATHML, str(KATEX / "katex.min.js")]
    options = {"capture_output": True, "text": True, "check": True, "timeout": 60}
    try:
        return json.loads(subprocess.run(command, input=json.dumps(formulas), **options).stdout)
    except (OSError, subprocess.SubprocessError):
        return None
