"""The calculator's place on its page, and the table from which it gives its first answer.

``{calculator}`` is a directive: a form that ``site/calculator/calculator.js`` brings to life, with
the sentences of ``dpnotes.calculator.REMARKS`` and the mechanisms that have a name for the form.
The files lie in ``_calculator/`` of the site and only that page asks for them.

``grid.js`` says what the scripts need to know of the mechanisms. Its tables hold log M, the
logarithm of the moment E exp((alpha-1) L) of one step, for whole orders alpha, on a grid of noise
and rate, rounded up. ``table.js`` says how they are read and why what comes out is never below the
exact number.
"""

import html
import json
import shutil
from math import ceil, log
from pathlib import Path

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import dpnotes as dp
from dpnotes.calculator import questions as core
from dpnotes.calculator.runs import MECHANISMS
from dpnotes.chapters import renyi_dp

HERE = Path(__file__).resolve().parent / "calculator"
ORDERS = (*range(2, 11), 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256)
RATES = (
    1e-5, 1e-4, 4e-4, 1e-3, 2e-3, 4e-3, 0.007, 0.01, 0.015, 0.025, 0.04, 0.06, 0.1, 0.15, 0.25,
    0.5, 1.0,
)  # fmt: skip
NOISES = {  # from much noise to little; the power of it in which the table is convex
    "gaussian": (np.geomspace(50, 0.4, 33), -2),
    "laplace": (np.geomspace(100, 0.5, 14), -1),
    "pure": (np.geomspace(0.01, 5, 16), 1),
}
SCALE = 256  # the table holds SCALE log(log M), in whole numbers


def divergences(mechanism, noise, rate):
    """Renyi divergences of one step at ORDERS, the worse direction."""
    orders = np.array(ORDERS)
    if mechanism == "gaussian":
        return renyi_dp.subsampled_gaussian(noise, rate, orders)
    return dp.subsample(MECHANISMS[mechanism].loss(noise), rate).renyi(orders)


def table(mechanism):
    """A table as grid.js has it: whole numbers, each the difference to the order before."""
    (noises, power), steps = NOISES[mechanism], []
    noises = [float(f"{noise:.6g}") for noise in noises]
    for noise in noises:
        for rate in RATES:
            logs = (np.array(ORDERS) - 1) * divergences(mechanism, noise, rate)
            levels = [ceil(SCALE * log(value)) for value in logs]
            steps += np.diff(levels, prepend=0).tolist()
    return {"noise": noises, "power": power, "steps": steps}


def mechanisms():
    """What the scripts know of the mechanisms of the form, and which table serves each."""
    tables = {MECHANISMS[name].loss: name for name in NOISES}
    return {
        name: {
            "parameter": known.parameter, "call": known.call, "noisy": known.is_noise(),
            "table": tables[known.loss],
        }
        for name, known in MECHANISMS.items()
        if known.form
    }  # fmt: skip


def grid():
    """All that grid.js has."""
    return {
        "orders": ORDERS, "rates": RATES, "scale": SCALE, "mechanisms": mechanisms(),
        "tables": {name: table(name) for name in NOISES},
    }  # fmt: skip


class Calculator(SphinxDirective):
    """The form; without JavaScript the sentence that says what to do instead."""

    def run(self):
        form = (HERE / "form.html").read_text(encoding="utf-8")
        remarks = (
            f'<li data-remark="{name}">{html.escape(text)}</li>'
            for name, text in core.REMARKS.items()
        )
        options = (
            f'<option value="{name}">{MECHANISMS[name].form}</option>\n' for name in mechanisms()
        )
        form = form.replace("<!--remarks-->", "".join(remarks))
        form = form.replace("<!--mechanisms-->", "".join(options))
        return [nodes.raw("", form, format="html")]


def publish(app, exception):
    """Copy the scripts, write the table: only where the page was built."""
    if exception or app.builder.name != "html":
        return
    if not (Path(app.outdir) / "chapters" / "calculator.html").exists():
        return
    folder = Path(app.outdir) / "_calculator"
    folder.mkdir(exist_ok=True)
    for name in ("calculator.css", "calculator.js", "table.js"):
        shutil.copy(HERE / name, folder)
    shutil.copy(HERE.parent / "sliders" / "draw.js", folder)
    # a script, so that it loads from a file too
    text = json.dumps(grid(), separators=(",", ":"))
    (folder / "grid.js").write_text(f"globalThis.dpnotesGrid = {text};\n", encoding="utf-8")


def setup(app):
    """Called by Sphinx."""
    app.add_directive("calculator", Calculator)
    app.connect("build-finished", publish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
