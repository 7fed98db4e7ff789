"""Submissions as they come: from course systems, from Macs, in other formats, several times."""

import json
import os
import zipfile

import jupytext
import nbformat
import pytest

from assignments.grader import files, opening, reading, rendering, run, similar, submissions
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


def test_an_answer_that_calls_the_package_is_flagged(master, tmp_path):
    book = solved(master)
    (answer,) = [cell for cell in book.cells if cell.id == "1a"]
    answer.source = "def smallest_epsilon(p, q):\n    return dpnotes.finite(p, q).epsilon(0.0)"
    put(tmp_path / "ada.ipynb", json.dumps(book))
    flags = reading.read("ada", tmp_path / "ada.ipynb", [], master).flags
    assert flags == ["calls dpnotes in smallest_epsilon"]


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
    assert said["ada"][1] == ["several files: not marked: laplace.ipynb"]
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
    put(tmp_path / "Zoë Ü_1235_assignsubmission_onlinetext_" / "onlinetext.html")
    put(tmp_path / "Ty Pist_1238_assignsubmission_onlinetext_" / "onlinetext.html")
    put(tmp_path / "Pia_1239_assignsubmission_file_" / "homework.pdf")
    for number in (1236, 1237):
        put(tmp_path / f"Participant_{number}_assignsubmission_file_" / "laplace.ipynb")
    assert found(tmp_path) == {
        "Jane Doe": ("laplace.ipynb", []),
        "Participant 1236": ("laplace.ipynb", []),
        "Participant 1237": ("laplace.ipynb", []),
        "Pia": ("homework.pdf", ["renamed file"]),
        "Ty Pist": (None, [submissions.TEXT]),
        "Zoë Ü": ("Zoë Ü_1235_assignsubmission_file_laplace.ipynb", [submissions.TEXT]),
    }


def test_names_of_blackboard_and_brightspace(tmp_path):
    """As in tools that teachers have published: github.com/kwurst/bb-file-cleanup, for one."""
    for end in ("18-30-11.txt", "18-30-11_laplace.ipynb", "19-00-00.txt", "19-00-00_laplace.ipynb"):
        put(tmp_path / f"Homework 1_bbstudent_attempt_2026-11-02-{end}")
    put(tmp_path / "Homework 1_typist_attempt_2026-11-02-18-30-11.txt")
    for day, minute in ((2, 126), (2, 1100), (1, 1159)):
        put(
            tmp_path
            / f"397063-2557369 - Mary-Ann Smith - Sep {day}, 2026 {minute} PM"
            / "laplace.ipynb"
        )
    put(tmp_path / "index.html")
    said = found(tmp_path)
    assert sorted(said) == ["Mary-Ann Smith", "bbstudent", "typist"]
    assert "2026-11-02-19-00-00_laplace" in said["bbstudent"][0] and len(said["bbstudent"][1]) == 1
    assert said["typist"] == (None, [submissions.TEXT])
    (path,) = [p for s, p, _ in submissions.find(tmp_path, "laplace") if s == "Mary-Ann Smith"]
    assert path.parent.name.endswith("Sep 2, 2026 1100 PM")


def test_canvas_numbers_are_kept_and_texts_are_no_files(tmp_path):
    put(tmp_path / "doejane_LATE_123_4567_laplace.ipynb")
    put(tmp_path / "doejane_LATE_123_text.html")
    put(tmp_path / "li_124_link.html")
    put(tmp_path / "Jane Doe_1234_assignsubmission_file_" / "laplace.ipynb")
    said = {entry[0]: entry[1:] for entry in submissions.numbered(tmp_path, "laplace")}
    assert said["doejane"][0].suffix == ".ipynb" and said["doejane"][2] == "123"
    assert said["li"] == (None, [submissions.TEXT], "124") and said["Jane Doe"][2] == ""


def test_names_that_could_be_taken_for_each_other(tmp_path):
    for name in ("ada", " ada", "ada ", "Ada", "M\udcfcller", "M\udcf6ller", "line\nbreak"):
        put(tmp_path / f"{name}.ipynb")
    said = found(tmp_path)
    assert len(said) == 7 and {"Müller", "Möller", "line_break"} <= set(said)
    assert len({files.folded(name) for name in said}) == 7
    assert sum("3 submissions of ada" in flags for _, flags in said.values()) == 3


@pytest.mark.parametrize("content, why", [
    (b"%PDF-1.4", "a PDF"), (b"\n<!DOCTYPE html><p>Log in", "a web page"), (b"", "empty"),
    (b'{"cells": [', "its end is missing"), (b"{\n<<<<<<< HEAD\n}", "two versions"),
    (b'{"nbformat": 5, "nbformat_minor": 0, "cells": []}', "its format 5"),
    (b" " * (50 * 2**20 + 1), "larger than 50 MB"), (b"[]", "not a notebook"),
])  # fmt: skip
def test_a_file_that_cannot_be_read_says_why(tmp_path, master, content, why):
    (tmp_path / "ada.ipynb").write_bytes(content)
    submission = reading.read("ada", tmp_path / "ada.ipynb", [], master)
    assert why in submission.nothing and why in submission.flags[0]


@pytest.mark.parametrize("reader", ["pandoc", "quarto", "marimo", "nomarker", "bare"])
def test_no_header_chooses_the_reader(tmp_path, master, monkeypatch, reader):
    """jupytext would start some of these, and other programs of the teacher's, to read a file."""

    def start(*command, **_):
        raise AssertionError(f"started: {command}")

    monkeypatch.setattr("subprocess.Popen", start)
    head = (
        f"---\njupyter:\n  jupytext:\n    text_representation:\n      format_name: {reader}\n---\n"
    )
    script = "".join(f"# {line}\n" for line in head.splitlines())
    for name, text in (("page.md", head + "```{code-cell}\nx = 5\n```\n"),
                       ("script.py", script + "\n# %%\nx = 5\n")):  # fmt: skip
        (tmp_path / name).write_text(text)
        submission = reading.read("ada", tmp_path / name, [], master)
        assert ("run", "x = 5") in submission.steps, submission.flags


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
    assert opening.attached(cell) == ([("png", b"\x89PN")], 2)


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


def test_names_as_the_sheet_asks_for_them_and_second_downloads(tmp_path):
    put(tmp_path / "laplace-ada.ipynb")
    put(tmp_path / "laplace-kim.ipynb", age=60)
    put(tmp_path / "laplace-kim (1).ipynb")
    put(tmp_path / "Laplace_ben-2.ipynb")
    for file in ("laplace-eve (1).ipynb", "laplace-bo (1).ipynb", "laplace-bo (2).ipynb"):
        put(tmp_path / file)
    said = found(tmp_path)
    assert set(said) == {"ada", "kim", "ben-2", "eve", "bo (1)", "bo (2)"}
    assert said["kim"][0] == "laplace-kim (1).ipynb"
    assert said["kim"][1] == ["several files: not marked: laplace-kim.ipynb"]


def test_a_folder_around_the_class_and_the_export_of_gradescope(tmp_path):
    export = tmp_path / "assignment_4242_export"
    for number in (1, 2):
        put(export / f"submission_{number}" / "laplace.ipynb")
    assert set(found(tmp_path)) == {"submission_1", "submission_2"}
    (export / "submission_metadata.yml").write_text(
        "submission_1:\n  :submitters:\n  - :name: Ada L\n    :sid: 17\n"
        "submission_2:\n  :submitters:\n  - :name: Ben M\n  - :name: Eve N\n"
    )
    assert set(found(tmp_path)) == {"Ada L", "Ben M and Eve N"}
    assert list(found(export)) == ["Ada L", "Ben M and Eve N"]


def test_two_folders_around_the_class_and_one_around_files(tmp_path):
    for student in ("ada", "ben"):
        put(tmp_path / "one" / "export" / "class" / student / "laplace.ipynb")
        put(tmp_path / "two" / "class" / f"laplace-{student}.ipynb")
        put(tmp_path / "three" / student / "laplace.ipynb")
    put(tmp_path / "four" / "ada" / "laplace.ipynb")
    put(tmp_path / "four" / "ada" / "laplace (1).ipynb")
    for folder in ("one", "two", "three"):
        assert set(found(tmp_path / folder)) == {"ada", "ben"}, folder
    assert set(found(tmp_path / "four")) == {"ada"}


def test_the_name_that_the_sheet_asks_for_is_no_other_one_in_a_folder(tmp_path):
    for file in ("Jane Doe_12_assignsubmission_file_/laplace-jane.ipynb", "ben/other.ipynb"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text("{}")
    found = {student: flags for student, _, flags in submissions.find(tmp_path, "laplace")}
    assert found == {"Jane Doe": [], "ben": ["renamed file"]}


def test_feedback_has_the_place_in_the_zip_that_the_course_system_made(tmp_path):
    for number in (1, 2):
        file = tmp_path / "export" / f"doe_{number}_7_laplace.ipynb"
        file.parent.mkdir(exist_ok=True)
        file.write_text("{}")
    assert run.place(file, tmp_path, "laplace") == file.name
    assert run.place(file, tmp_path / "export", "laplace") == file.name
