"""The calculator's place on its page: a form, and the answers of some usual runs.

``{calculator}`` is a directive: a form that ``site/calculator/calculator.js`` brings to life, with
the mechanisms that have a name for the form. Every number comes from ``dpnotes.calculator``: those
of the usual runs when the site is built, all others from the Python of the page. The files lie in
``_calculator/`` of the site and only that page asks for them.
"""

import html
import json
import shutil
from pathlib import Path
from urllib.parse import parse_qsl

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from dpnotes import calculator
from dpnotes.calculator.runs import MECHANISMS

HERE = Path(__file__).resolve().parent
SCRIPTS = "../sliders/draw.js numbers.js chart.js answer.js form.js calculator.js".split()
# what is shown of a run, as in answer.js
SECTIONS = ("attack", "roc", "rows", "curve", "substitution")
USUAL = {  # an address of the form, as the form writes it: what people call this run
    "?question=epsilon&mechanism=gaussian&noise=1.1&rate=256/60000&steps=14100&delta=1e-5":
        "a network trained for sixty epochs on 60,000 images",
    "?question=epsilon&mechanism=gaussian&noise=1&rate=0.01&steps=1000&delta=1e-6":
        "ten epochs with batches of one percent",
    "?question=noise&mechanism=gaussian&rate=0.001&steps=20000&epsilon=8&delta=1e-6":
        "the noise for twenty epochs with ε = 8",
    "?question=noise&mechanism=gaussian&rate=1&steps=1&epsilon=1&delta=1e-6":
        "the Gaussian noise for one release with ε = 1",
    "?question=epsilon&mechanism=laplace&noise=10&rate=1&steps=20&delta=0":
        "twenty counts with Laplace noise of scale 10",
}  # fmt: skip


def query_of(address):
    """The query that the form makes of its address."""
    given = dict(parse_qsl(address.removeprefix("?")))
    numbers = dict(list(given.items())[2:])
    target = {n: numbers.pop(n) for n in ("epsilon", "delta", "rows") if n in numbers}
    known = MECHANISMS[given["mechanism"]]
    part = {known.parameter if name == "noise" else name: x for name, x in numbers.items()}
    part["mechanism"] = given["mechanism"]
    return {"question": given["question"], "parts": [part], **target}


def known_answer(address):
    """All that the page shows of a run."""
    answer = calculator.answer(query_of(address))
    return answer | {name: getattr(calculator, name)(answer) for name in SECTIONS}


def option(name, known):
    """A mechanism as the form offers it."""
    noisy, pure = known.is_noise(), known.epsilon is not None
    return (
        f'<option value="{name}" data-parameter="{known.parameter}" data-noisy="{noisy:d}"'
        f' data-delta="{"0" if pure else "1e-5"}">{known.form}</option>\n'
    )


class Calculator(SphinxDirective):
    """The form and the usual runs; without JavaScript, the latter and how to ask in a shell."""

    def run(self):
        known = {address: known_answer(address) for address in USUAL}
        usual = (
            f'<li><a href="{html.escape(address)}">{USUAL[address]}</a>:'
            f" {'ε' if answer['name'] == 'epsilon' else 'σ'} = {answer['shown']}</li>\n"
            for address, answer in known.items()
        )
        offered = (option(name, one) for name, one in MECHANISMS.items() if one.form)
        form = (HERE / "form.html").read_text(encoding="utf-8")
        form = form.replace("<!--mechanisms-->", "".join(offered))
        form = form.replace("<!--usual-->", "".join(usual))
        form = form.replace("<!--known-->", json.dumps(known).replace("<", r"\u003c"))
        return [nodes.raw("", filled(form, next(iter(known.values()))), format="html")]


def filled(form, answer):
    """The form with the answer to what stands in its fields, so that no script moves the page."""
    remarks = "".join(
        f"<li>{html.escape(text)}</li>" for text in [*answer["warnings"], answer["substitution"]]
    )
    for name in ("shown", "shown_low", "shown_high", "attack", "call"):
        form = form.replace(f"<!--{name}-->", html.escape(answer[name]))
    return form.replace("<!--remarks-->", remarks)


def publish(app, exception):
    """Copy the scripts: only where the page was built."""
    if exception or app.builder.name != "html":
        return
    if not (Path(app.outdir) / "chapters" / "calculator.html").exists():
        return
    folder = Path(app.outdir) / "_calculator"
    folder.mkdir(exist_ok=True)
    shutil.copy(HERE / "calculator.css", folder)
    script = "".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    (folder / "all.js").write_text(script, encoding="utf-8")


def setup(app):
    """Called by Sphinx."""
    app.add_directive("calculator", Calculator)
    app.connect("build-finished", publish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
