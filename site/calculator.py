"""The calculator's place on its page, and the table from which it gives its first answer.

``{calculator}`` is a directive: a form that ``site/calculator/calculator.js`` brings to life, with
the sentences of ``dpnotes.calculator.REMARKS``. The files lie in ``_calculator/`` of the site and
only that page asks for them.

The table (``grid.js``) holds log M, the logarithm of the moment E exp((alpha-1) L) of one step, for
whole orders alpha, on a grid of noise and rate, rounded up. ``table.js`` says how it is read and
why what it gives is never below the exact number.
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
from dpnotes.chapters import renyi_dp

HERE = Path(__file__).resolve().parent / "calculator"
ORDERS = (*range(2, 11), 12, 14, 16, 18, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 192, 256)
RATES = (
    1e-5,
    1e-4,
    4e-4,
    1e-3,
    2e-3,
    4e-3,
    0.007,
    0.01,
    0.015,
    0.025,
    0.04,
    0.06,
    0.1,
    0.15,
    0.25,
    0.5,
    1.0,
)
NOISES = {  # from much noise to little
    "gaussian": np.geomspace(50, 0.4, 33),
    "laplace": np.geomspace(100, 0.5, 14),
    "pure": np.geomspace(0.01, 5, 16),
}
LAWS = {
    "laplace": lambda scale: dp.laplace(scale),
    "pure": lambda epsilon: dp.randomized_response(epsilon),
}
SCALE = 256  # the table holds SCALE log(log M), in whole numbers


def divergences(mechanism, noise, rate):
    """Renyi divergences of one step at ORDERS, the worse direction."""
    orders = np.array(ORDERS)
    if mechanism == "gaussian":
        return renyi_dp.subsampled_gaussian(noise, rate, orders)
    return dp.subsample(LAWS[mechanism](noise), rate).renyi(orders)


def grid():
    """The table as grid.js has it: whole numbers, each the difference to the order before."""
    tables = {}
    for mechanism, noises in NOISES.items():
        steps = []
        for noise in (float(f"{noise:.6g}") for noise in noises):
            for rate in RATES:
                logs = (np.array(ORDERS) - 1) * divergences(mechanism, noise, rate)
                levels = [ceil(SCALE * log(value)) for value in logs]
                steps += np.diff(levels, prepend=0).tolist()
        tables[mechanism] = {"noise": [float(f"{n:.6g}") for n in noises], "steps": steps}
    return {"orders": list(ORDERS), "rates": list(RATES), "scale": SCALE, "tables": tables}


def write_grid(folder):
    """grid.js, a script, so that it loads from a file too."""
    text = json.dumps(grid(), separators=(",", ":"))
    (folder / "grid.js").write_text(f"globalThis.dpnotesGrid = {text};\n", encoding="utf-8")


class Calculator(SphinxDirective):
    """The form; without JavaScript the sentence that says what to do instead."""

    def run(self):
        form = (HERE / "form.html").read_text(encoding="utf-8")
        remarks = "".join(
            f'<li data-remark="{name}">{html.escape(text)}</li>'
            for name, text in core.REMARKS.items()
        )
        return [nodes.raw("", form.replace("<!--remarks-->", remarks), format="html")]


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
    write_grid(folder)


def setup(app):
    """Called by Sphinx."""
    app.add_directive("calculator", Calculator)
    app.connect("build-finished", publish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
