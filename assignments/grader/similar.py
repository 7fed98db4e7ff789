"""Pairs of submissions whose code is much the same, by copydetect's winnowed fingerprints."""

import tempfile
from pathlib import Path

from . import masters, submissions
from .files import file_name


def own_code(path, master):
    """The code of a submission without the cells that everyone was given."""
    cells, _ = submissions.parse(path)
    given = [c.source for c in master.student.cells if c.cell_type == "code"]
    code = [source for kind, source, _ in cells if kind == "code"]
    return "\n\n".join(s for s in code if not any(submissions.same(s, g) for g in given))


def report(given, students):
    """Compare the submissions of these students; write `similar.html`, say how many pairs share at
    least `given.similar` of their code."""
    try:
        from copydetect import CopyDetector
    except ImportError:
        raise ValueError("--similar needs copydetect: .venv/bin/pip install copydetect") from None
    master = masters.read(given.masters / f"{given.name}.md")
    with tempfile.TemporaryDirectory() as place:
        for student, path, _ in submissions.find(given.submissions, given.name):
            if path and student in students:
                try:
                    code = own_code(path, master)
                except Exception:  # not readable: the marking has said so
                    continue
                target = Path(place) / f"{file_name(student)}.py"
                target.write_text(code, encoding="utf-8", errors="replace")
        detector = CopyDetector(
            test_dirs=[place], extensions=["py"], display_t=given.similar, silent=True,
            autoopen=False, out_file=str(given.out / "similar.html"),
        )  # fmt: skip
        detector.run()
        detector.generate_html_report()
        found = detector.get_copied_code_list()
    return f"{len(found)} similar pairs: {given.out / 'similar.html'}"
