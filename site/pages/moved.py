"""Old addresses lead to where the thing is now: `moved.yml` names both.

A section that moved is found by a script on its old page, a page that is gone leaves a file that
leads on. Without scripts one comes to the page, not to the section.
"""

import json
from functools import cache
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
LEAD = """<script>{{
  const there = {0}[location.hash];
  if (there) location.replace(there);
}}</script>
"""
GONE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Moved</title>
<script>location.replace("{0}" + location.hash)</script>
<meta http-equiv="refresh" content="0; url={0}"></head>
<body><main><h1>Moved</h1><p><a href="{0}">To its new place</a></p></main></body></html>
"""


@cache
def moved():
    """Old address -> new one, both inside `chapters`."""
    return yaml.safe_load((HERE / "moved.yml").read_text(encoding="utf-8"))


def lead_on(app, pagename, templatename, context, doctree):
    """The script of a page that lost a section."""
    page = f"{Path(pagename).name}.html"
    there = {
        f"#{place}": new
        for old, new in moved().items()
        for name, mark, place in [old.partition("#")]
        if mark and name == page
    }
    if there and doctree is not None:
        context["metatags"] += LEAD.format(json.dumps(there))


def leave_files(app, exception):
    """After the site is polished: these are no pages."""
    if not exception and app.builder.name == "html" and not app.config.only_this_page:
        for old, new in moved().items():
            if "#" not in old:
                file = Path(app.outdir) / "chapters" / old
                file.write_text(GONE.format(new), encoding="utf-8")


def setup(app):
    app.connect("html-page-context", lead_on)
    app.connect("build-finished", leave_files, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
