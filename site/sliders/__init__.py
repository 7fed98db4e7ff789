"""Interactive figures: the directive ``{slider}``.

    ```{slider} gaussian-profile
    What to look for while you move it.
    ```

draws the figure that the function of this name describes (``gaussian_profile`` in ``noise.py``).
The build computes its numbers, draws it at the start position and writes the numbers to
``_sliders/<name>-<hash>.js``, which a page loads when the figure is about to be seen.
"""

import hashlib
import html
import json
import re
import subprocess
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from surroundings import node_executable

from . import attacks, noise, opening, rounds, training  # noqa: F401  each makes its figures known
from .spec import FIGURES

HERE = Path(__file__).resolve().parent
FOLDER = "_sliders"


class SliderDirective(SphinxDirective):
    """``{slider} name`` with a sentence or two as its content."""

    required_arguments = 1
    has_content = True

    def run(self):
        name = self.arguments[0]
        if name not in FIGURES:
            known = ", ".join(sorted(FIGURES))
            raise self.error(f"no slider {name!r} in site/sliders (there are {known})")
        if not self.content:
            raise self.error(f"say what to look for in the slider {name!r}")
        text = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, text)
        up = "../" * self.env.docname.count("/")
        code = "" if "slider" in self.env.temp_data else load_code(self.env.app.outdir, up)
        self.env.temp_data["slider"] = name  # the page has the code now
        before, after = around(name, self.env.app.outdir, up)
        first, last = (nodes.raw("", part, format="html") for part in (code + before, after))
        return [first, *text.children, last]


@cache
def figure(name):
    """The numbers of a figure as text, and how it looks at the start (once a build)."""
    spec = FIGURES[name]()
    text = spec.json()
    command = [node_executable(), str(HERE / "render.mjs")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return spec, text, json.loads(done.stdout)


def publish(site, stem, suffix, text):
    """Write a file whose name changes with its content, so that no cache keeps an old one."""
    mark = hashlib.sha256(text.encode()).hexdigest()[:10]
    path = Path(site) / FOLDER / f"{stem}-{mark}.{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return f"{FOLDER}/{path.name}"


def publish_code(site):
    """The style sheet and the script that all figures share."""
    script = "".join((HERE / file).read_text(encoding="utf-8") for file in ("draw.js", "slider.js"))
    css = (HERE / "slider.css").read_text(encoding="utf-8")
    return publish(site, "slider", "css", css), publish(site, "slider", "js", script)


def drawing(spec, look):
    """The picture for wide pages and the one for phones; the style sheet shows one."""
    alt = html.escape(spec.alt, quote=True)
    shown = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{alt}"'
        f' data-size="{one["size"]}" viewBox="{one["box"]}">{one["inner"]}</svg>'
        for one in look["drawings"]
    ]
    return f'<figure class="dpn-figure">{"".join(shown)}</figure>'


def key(look):
    """What the lines, areas and dots are called."""
    lines_first = sorted(look["key"], key=lambda mark: mark["kind"] not in ("line", "rule"))
    return f'<ul class="dpn-slider-key">{"".join(map(entry, lines_first))}</ul>'


def entry(mark):
    """One line of the key with a sample of the mark."""
    ink = f"stroke: {mark['color']}; stroke-width: {mark.get('width', 1.8)}"
    dash = f"; stroke-dasharray: {mark['dash']}" if mark.get("dash") else ""
    sample = {
        "area": f'<path d="M0 0H26V12H0Z" style="fill: {mark["color"]};'
        f' fill-opacity: {mark.get("opacity", 0.35)}"/>',
        "dots": f'<circle cx="13" cy="6" r="{mark.get("size", 4.5)}"'
        f' style="fill: {mark["color"]}"/>',
    }.get(mark["kind"], f'<path d="M0 6H26" style="fill: none; {ink}{dash}"/>')
    box = 'viewBox="0 0 26 12" width="26" height="12" aria-hidden="true"'
    drawn = f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{sample}</svg>'
    name = re.sub(r"\^(\w)", r"<sup>\1</sup>", html.escape(mark["label"]))
    name = re.sub(r"_(\w)", r"<sub>\1</sub>", name)
    return f"<li>{drawn}<span>{name}</span></li>"


def controls(name, spec):
    """Native sliders with a name and the value in words."""
    labels = []
    for control in spec.controls:
        words = html.escape(control.values[control.start], quote=True)
        labels.append(
            f"<label><span><span>{html.escape(control.label)}</span>"
            f'<b aria-hidden="true">{words}</b></span><input type="range" name="{control.name}"'
            f' id="slider-{name}-{control.name}" min="0" max="{len(control.values) - 1}" step="1"'
            f' value="{control.start}" aria-valuetext="{words}" autocomplete="off"></label>'
        )
    return f'<div class="dpn-slider-controls">{"".join(labels)}</div>'


def sentence(look):
    """The values in words; screen readers hear it when it changes."""
    longest = html.escape(look["longest"], quote=True)
    return (
        f'<p class="dpn-slider-says" data-longest="{longest}">'
        f'<span aria-live="polite">{html.escape(look["says"])}</span></p>'
    )


def load_code(site, up):
    """What loads the style sheet and the script, once a page."""
    css, script = publish_code(site)
    return f'<link rel="stylesheet" href="{up}{css}"><script defer src="{up}{script}"></script>\n'


def around(name, site, up):
    """What stands before the words of the directive, and after them: picture, key, sliders, and the
    sentence. `up` leads from the page to the root of the site."""
    spec, text, look = figure(name)
    source = publish(site, name, "js", f"dpnSliders.give({json.dumps(name)}, {text});\n")
    title = html.escape(spec.title, quote=True)
    first = (
        f'<div class="dpn-slider" role="group" aria-label="{title}" id="slider-{name}"'
        f' data-slider="{name}" data-source="{up}{source}">\n'
    )
    parts = drawing(spec, look), key(look), controls(name, spec), sentence(look)
    return first, "".join(parts) + "</div>\n"


def setup(app):
    """Register the directive."""
    app.add_directive("slider", SliderDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
