"""Submissions as they come: from course systems, from Macs, in other formats, several times."""

import json
import os
import zipfile

import jupytext
import nbformat
import pytest

from assignments.grader import reading, rendering, similar, submissions
from assignments.grader.check import solved


@pytest.fixture
def notebook(master):
    return json.dumps(solved(master))


def put(path, text="{}", age=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (10**9 - age, 10**9 - age))


def found(folder):
    """{student: (file, flags)}"""
    return {
        s: (p.name if p else None, flags) for s, p, flags in submissions.find(folder, "laplace")
    }


def test_what_computers_put_beside_files_is_no_submission(tmp_path):
    for name in ("ada/laplace.ipynb", "ada/._laplace.ipynb", "ada/__MACOSX/laplace.ipynb",
                 "__MACOSX/ada/._laplace.ipynb", "desktop.ini", "Thumbs.db", ".DS_Store",
                 "._ben.ipynb", "ben.ipynb"):  # fmt: skip
        put(tmp_path / name)
    assert found(tmp_path) == {"ada": ("laplace.ipynb", []), "ben": ("ben.ipynb", [])}


def test_of_two_copies_the_newest_is_marked_and_said(tmp_path):
    put(tmp_path / "ada" / "laplace.ipynb", age=60)
    put(tmp_path / "ada" / "laplace (1).ipynb")
    put(tmp_path / "ben" / "laplace.ipynb")
    put(tmp_path / "ben" / "laplace (1).ipynb", age=60)
    put(tmp_path / "eve" / "laplace.ipynb")
    put(tmp_path / "eve" / "laplace (2).ipynb")  # unpacked without times: the higher number
    put(tmp_path / "eve" / "laplace (1).ipynb")
    said = found(tmp_path)
    assert [said[s][0] for s in said] == ["laplace (1).ipynb", "laplace.ipynb", "laplace (2).ipynb"]
    assert said["ada"][1] == ["several notebooks: not marked: laplace.ipynb"]
    assert all("not marked" in flags[0] for _, flags in said.values())


def test_names_of_canvas(tmp_path):
    """name_[LATE_]user_attachment_file, as `lib/content_zipper.rb` of canvas-lms writes them."""
    put(tmp_path / "doejane_LATE_123_4567_laplace.ipynb")
    put(tmp_path / "li_124_4568_laplace.ipynb", age=60)
    put(tmp_path / "li_124_4569_laplace-1.ipynb")
    put(tmp_path / "li_125_4570_my_answers.ipynb")
    for name in ("anon_aB3dE_4571_laplace", "ada_2", "ada_lovelace", "12345"):
        put(tmp_path / f"{name}.ipynb")
    said = found(tmp_path)
    assert said["doejane"][1] == ["late, as Canvas says"]
    assert said["li (124)"][0] == "li_124_4569_laplace-1.ipynb"
    assert "several files: not marked: li_124_4568_laplace.ipynb" in said["li (124)"][1]
    assert "2 submissions of li" in said["li (125)"][1]
    for name in ("ada_2", "ada_lovelace", "12345"):
        assert name in said, "it only looks like one of Canvas' names"
    assert len(said) == 7


def test_names_of_moodle(tmp_path):
    """With names and without."""
    put(tmp_path / "Jane Doe_1234_assignsubmission_file_" / "laplace.ipynb")
    put(tmp_path / "Zoë Ü_1235_assignsubmission_file_laplace.ipynb")
    for number in (1236, 1237):
        put(tmp_path / f"Participant_{number}_assignsubmission_file_" / "laplace.ipynb")
    assert found(tmp_path) == {
        "Jane Doe": ("laplace.ipynb", []),
        "Participant 1236": ("laplace.ipynb", []),
        "Participant 1237": ("laplace.ipynb", []),
        "Zoë Ü": ("Zoë Ü_1235_assignsubmission_file_laplace.ipynb", []),
    }


def test_other_formats_are_read(tmp_path, master):
    book = solved(master)
    nbformat.write(nbformat.from_dict(book), tmp_path / "plain.ipynb")
    text = (tmp_path / "plain.ipynb").read_text()
    (tmp_path / "utf-16.ipynb").write_bytes(text.encode("utf-16"))
    jupytext.write(nbformat.from_dict(book), tmp_path / "percent.py", fmt="py:percent")
    jupytext.write(nbformat.from_dict(book), tmp_path / "page.md", fmt="md:myst")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.write(tmp_path / "plain.ipynb", "hw/laplace.ipynb")
        archive.writestr("__MACOSX/hw/._laplace.ipynb", "")
    steps = {}
    for file in tmp_path.iterdir():
        submission = reading.read("ada", file, [], master)
        assert not [flag for flag in submission.flags if "unreadable" in flag], file
        steps[file.name] = submission.steps
    for name in ("utf-16.ipynb", "packed.zip"):
        assert steps[name] == steps["plain.ipynb"]
    for name in ("percent.py", "page.md"):
        assert {b for k, b in steps[name] if k == "test"} == set("1a 1b 1c 2b 2c 3a 3b".split())


def test_archives_that_cannot_be_one_notebook(tmp_path, master):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("one.ipynb", "{}")
        archive.writestr("two.ipynb", "{}")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("laplace.ipynb", b" " * (60 * 2**20))
    for name in ("two.zip", "bomb.zip"):
        assert "unreadable" in reading.read("ada", tmp_path / name, [], master).flags[0]


def test_flags_are_cut():
    flags = reading.cut(["a" * 300_000, *(f"flag {i}" for i in range(100))])
    assert len(flags[0]) < 300 and len(flags) == 41 and flags[-1] == "and 61 more flags"


def test_text_is_shown_safely():
    shown, flags = rendering.answer("$x_1$ <script> ![a](b) [c](http://d)", "2a")
    assert '<span class="math inline">x_1</span>' in shown and "&lt;script&gt;" in shown
    assert "<img" not in shown and "<a " not in shown and flags == []


def test_formulas_of_model_answers_need_nothing_else(monkeypatch, tmp_path):
    shown = rendering.with_formulas(rendering.markdown("so $a < b$ and\n\n$$c_1$$"))
    assert shown.count("<math") == 2 or shown.count("<code>$") == 2
    (tmp_path / "katex.min.js").write_text("throw 'broken'")
    for folder in (tmp_path, tmp_path / "missing"):
        monkeypatch.setattr(rendering, "KATEX", folder)
        shown = rendering.with_formulas(rendering.markdown("so $a < b$"))
        assert shown == "<p>so <code>$a &lt; b$</code></p>\n"


def test_attached_pictures_are_checked():
    cell = {"attachments": {"a": {"image/png": "iVBO"}, "b": {"image/svg+xml": "PHN2Zz4="},
                            "c": {"image/png": '"><script>'}, "d": 5}}  # fmt: skip
    assert reading.attached(cell) == ([("png", b"\x89PN")], 2)


def test_similar_code_is_found_with_other_names():
    one = "def noise(scale, size, rng):\n" + "".join(
        f"    a{i} = scale * np.log(1 - 2 * abs(rng.random(size) - {i}))\n" for i in range(9)
    )
    other = one.replace("scale", "b").replace("size", "n").replace("a1", "result")
    third = (
        "def noise(s, n, rng):\n    u = rng.laplace(0, s, n)\n    return [x for x in u if x > 0]"
    )
    codes = {"ada": one, "ben": "# mine\n" + other, "eve": third}
    assert [pair[1:] for pair in similar.pairs(codes, [], 0.8)] == [("ada", "ben")]
    assert similar.pairs(codes, [one], 0.8) == [], "what everyone was given does not count"
