"""Pairs of submissions whose code is much the same, by copydetect's winnowed fingerprints."""

import tempfile
from pathlib import Path

from . import masters, submissions


def own_code(path, master):
    """The code of a submission without the cells that everyone was given."""
    cells, _ = submissions.parse(path)
    given = [c.source for c in master.student.cells if c.cell_type == "code"]
    return "\n\n".join(
        s
        for kind, s, _ in cells
        if kind == "code" and not any(submissions.same(s, g) for g in given)
    )


def report(name, folder, out, masters_folder, share):
    """Write `similar.html` and say how many pairs share at least that much of their code.

    Reads submissions in this process: ask for it after the marking, which names the unreadable.
    """
    try:
        from copydetect import CopyDetector
    except ImportError:
        raise ValueError("similar needs copydetect: .venv/bin/pip install copydetect") from None
    master = masters.read(Path(masters_folder) / f"{name}.md")
    with tempfile.TemporaryDirectory() as place:
        for student, path, _ in submissions.find(folder, name):
            if path:
                try:
                    code = own_code(path, master)
                except Exception:  # unreadable: the marking says so
                    continue
                target = Path(place) / f"{student.replace('/', '_')}.py"
                target.write_text(code, encoding="utf-8", errors="replace")
        detector = CopyDetector(
            test_dirs=[place], extensions=["py"], display_t=share, silent=True, autoopen=False,
            out_file=str(Path(out) / "similar.html"),
        )  # fmt: skip
        detector.run()
        detector.generate_html_report()
        found = detector.get_copied_code_list()
    return f"{len(found)} similar pairs: {Path(out) / 'similar.html'}"
