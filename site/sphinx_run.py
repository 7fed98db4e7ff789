"""One run of Jupyter Book over the whole book, over some pages, or over one page again."""

import contextlib
import functools
import gc
import re
import shutil
import sys
from pathlib import Path

import yaml

import notebooks
from surroundings import files_of

ALWAYS = ("references",)
DANGLING = re.compile(
    r"label '.*' not found|undefined label|unknown document|equation not found|xref_missing"
    r"|term not in glossary|toctree contains reference|could not find bibtex key|No bibliography"
    r"|numfig format|cross-reference target not found"
)


class Tee:
    """A stream that passes text on and remembers it."""

    def __init__(self, stream):
        self.stream, self.text = stream, ""

    def write(self, text):
        self.text += text
        return self.stream.write(text)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def partial_toc(root, toc, pages):
    """The table of contents cut down to the root, `pages` and what every page leans on.

    A page that is not listed yet, but lies in `chapters/`, comes last.
    """

    def cut(part):
        return [{"file": f} for f in files_of(part) if Path(f).name in {*pages, *ALWAYS}]

    parts = [dict(part, chapters=cut(part)) for part in toc.get("parts", []) if cut(part)]
    listed = {Path(file).name for part in parts for file in files_of(part)}
    drafts = sorted(set(pages) - listed - {Path(toc["root"]).name})
    for name in drafts:
        if not (root / "chapters" / f"{name}.md").exists():
            sys.exit(f"no such page: chapters/{name}.md")
    draft = {"caption": "Draft", "chapters": [{"file": f"chapters/{name}"} for name in drafts]}
    parts += [draft] if drafts else []
    return {**toc, "parts": parts} if parts else toc


def start_anew(root, out, pages):
    """An empty folder with a table of contents; returns the path of that and the pages' files."""
    for folder in ("html", ".doctrees", "jupyter_execute"):
        shutil.rmtree(out / folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    used = partial_toc(root, toc, pages) if pages else toc
    toc_path = out / "toc.yml"
    toc_path.write_text(yaml.safe_dump(used), encoding="utf-8")
    return toc_path, [f"{name}.md" for name in files_of(used)]


def run(root, out, toc_path, files, modules, partial=False, again=None):
    """Let Jupyter Book read and write these pages, or `again` one of them.

    `modules` are what the Python in pages can import. Links of a partial book may dangle. Returns
    whether it came to its end, and the faults.
    """
    import pybtex.plugin
    from jupyter_book.sphinx import build_sphinx

    pybtex.plugin.entry_points = functools.cache(pybtex.plugin.entry_points)  # it asks often
    gc.disable()  # the trees of all pages stay to the end, and would be searched again and again
    target = out / ("again" if again else ".")
    errors = Tee(sys.stderr)
    with contextlib.redirect_stderr(errors):
        status = build_sphinx(
            root, target / "html", path_config=root / "_config.yml", noconfig=True,
            doctreedir=out / ".doctrees", freshenv=not again, filenames=again and [root / again],
            confoverrides={
                "external_toc_path": str(toc_path), "latex_individualpages": False,
                "include_patterns": files, "run_modules": list(modules),
                "nb_execution_mode": "cache", "only_this_page": bool(again), "whole_build": True,
                "nb_execution_cache_path": str(out / notebooks.FOLDER),
            },
            warningiserror=not partial, keep_going=True,
        )  # fmt: skip
    if isinstance(status, Exception):
        return False, [f"the build stopped: {status}\n{status.__cause__ or ''}"]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", errors.text)
    lines = [x for x in plain.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", x)]
    faults = [line for line in lines if not (partial and DANGLING.search(line))]
    return True, faults or [f"the build failed: {status}"] * bool(status and not partial)
