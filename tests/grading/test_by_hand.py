"""The page for marking by hand, in a browser: what was touched is saved, nothing else."""

import base64
import csv
import json
import os
import shutil
from types import SimpleNamespace

import pytest

from assignments.grader import by_hand, judge, rendering, report, run, sandbox
from assignments.grader.check import solved
from machine import new_tab

Q = SimpleNamespace(id="2a", points=6.0, manual=True, answer="model", rubric="*Rubric.*")
MASTER = SimpleNamespace(name="laplace", questions=[Q])


@pytest.fixture
def tab(browser):
    page = new_tab(browser, accept_downloads=True)
    yield page
    page.context.close()


def opened(tab, folder, marks):
    """The page as one run writes it, in the same browser as before."""
    results = [
        judge.make_result(student, [], points={"2a": mark}, answers={"2a": "<p>proof</p>"},
                     digests={"2a": "seen"}, comments={"2a": comment} if comment else {})
        for student, (mark, comment) in marks.items()
    ]  # fmt: skip
    by_hand.pages(folder, MASTER, results)
    tab.goto(f"file://{folder}/by-hand/2a.html")


def saved(tab, folder):
    with tab.expect_download() as download:
        tab.click("#save")
    download.value.save_as(folder / "saved.csv")
    with open(folder / "saved.csv", newline="", encoding="utf-8") as file:
        return download.value.suggested_filename, list(csv.DictReader(file))


def test_only_what_was_touched_is_saved(tab, tmp_path):
    marks = {"ada": (4.0, "hm"), "ben": (None, ""), "=eve": (2.0, "")}
    opened(tab, tmp_path, marks)
    boxes = tab.locator("section")
    assert tab.text_content("#left") == "1 left"
    boxes.nth(0).locator("input").fill("6")
    boxes.nth(1).locator("textarea").fill('a "comment", two')
    tab.fill("#who", "Kim L.")
    name, rows = saved(tab, tmp_path)
    assert name == "2a-Kim_L_.csv"
    assert [list(row.values()) for row in rows] == [
        ["ada", "6", "6", "hm", "4", "hm", "seen"],
        ["ben", "", "6", 'a "comment", two', "", "", "seen"],
    ]
    # a colleague's marks came in between: what was kept in the browser does not hide them
    opened(tab, tmp_path, {**marks, "ada": (5.0, "good")})
    assert boxes.nth(0).locator("input").input_value() == "5"
    assert "Somebody else has marked this since" in boxes.nth(0).text_content()
    assert boxes.nth(1).locator("textarea").input_value() == 'a "comment", two'
    assert [row["student"] for row in saved(tab, tmp_path)[1]] == ["ben"]


def test_answers_are_split_among_people(tab, tmp_path):
    opened(tab, tmp_path, {f"student {i}": (None, "") for i in range(7)})
    tab.fill("#part", "2/3")
    shown = [box.text_content()[:9] for box in tab.locator("section:visible").all()]
    assert shown == ["student 1", "student 4"]
    assert tab.text_content("#left") == "2 left"


def test_formulas_have_the_books_commands_and_without_katex_the_page_says_so(tab, tmp_path):
    text, flags = rendering.answer(r"$\E X$ costs $5, not $6; let $2 < x$ and $3 < y$", "2a")
    given = judge.make_result("ada", [], points={"2a": None}, answers={"2a": text}, comments={})
    by_hand.pages(tmp_path, MASTER, [given])
    tab.goto(f"file://{tmp_path}/by-hand/2a.html")
    shown = tab.locator("section .answer > p").first
    assert "costs $5, not $6; let" in shown.inner_text() and not flags
    assert shown.locator(".katex").count() == 3 and "cc0000" not in shown.inner_html()
    assert tab.locator("#bare").is_hidden()
    shutil.rmtree(tmp_path / "by-hand" / "katex")
    tab.reload()
    assert tab.locator("#bare").is_visible()


COVER = r"$\rlap{\smash{\raisebox{-16em}{\colorbox{white}{I did not do this one, and so on}}}}$"


def test_one_answer_spoils_no_other(tab, tmp_path):
    """Names of what every object of JavaScript has, a formula that is nested too deep, one that
    would paint over the next answer, a heading like a student's."""
    texts = {"__proto__": "$x$", "constructor": f"${'{' * 30_000}x{'}' * 30_000}$",
             "mallory": f"{COVER}\n\n## nora", "nora": "$y$"}  # fmt: skip
    results = [
        judge.make_result(student, [], points={"2a": None}, comments={},
                     answers={"2a": rendering.answer(text, "2a")[0]})
        for student, text in texts.items()
    ]  # fmt: skip
    by_hand.pages(tmp_path, MASTER, results)
    tab.goto(f"file://{tmp_path}/by-hand/2a.html")
    assert tab.text_content("#left") == "4 left"
    boxes = tab.locator("section")
    assert boxes.nth(0).locator(".katex").count() == boxes.nth(3).locator(".katex").count() == 1
    assert "could not be set" in boxes.nth(1).text_content()
    boxes.nth(0).locator("input").fill("3")
    tab.reload()
    assert boxes.nth(0).locator("input").input_value() == "3"
    boxes.nth(3).scroll_into_view_if_needed()
    covered = """(section) => [...section.querySelectorAll("h2, p, .katex")].filter((part) => {
      const box = part.getBoundingClientRect();
      return [0.02, 0.1, 0.3].some((x) => !section.contains(
        document.elementFromPoint(box.x + x * box.width + 1, box.y + box.height / 2)));
    }).length"""
    assert boxes.nth(3).evaluate(covered) == 0
    sizes = "(box) => [...box.querySelectorAll('h2')].map((h) => getComputedStyle(h).fontSize)"
    own, pretended = boxes.nth(2).evaluate(sizes)
    assert own != pretended


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # noqa: E501


def test_photographs_are_files_beside_the_page(tab, master, tmp_path):
    """Eight large ones in a notebook that lost its ids, so that each question shows them all: the
    result and the page stay small, and the files are there once. Without them it is marked again.
    """
    photos = [base64.b64decode(PIXEL) + os.urandom(4_000_000) for _ in range(8)]
    data = [base64.b64encode(photo).decode() for photo in photos]
    book = solved(master)
    book.cells = [cell for cell in book.cells if cell.cell_type == "markdown"]
    for cell in book.cells:
        cell.metadata = {}
    book.cells[-1].attachments = {f"{i}.png": {"image/png": text} for i, text in enumerate(data)}
    (tmp_path / "ada.ipynb").write_text(json.dumps(book))
    gallery, entry = tmp_path / by_hand.PICTURES, ("ada", tmp_path / "ada.ipynb", [])
    result = judge.grade_submission(master, entry, sandbox.Limits(), None, gallery)
    assert "metadata lost" in result["flags"]
    assert {q: len(result["pictures"][q]) for q in ("2a", "3c")} == {"2a": 8, "3c": 8}
    assert sorted(f.read_bytes() for f in gallery.iterdir()) == sorted(photos)
    assert len(json.dumps(result)) < 20_000 < run.LARGEST
    marked = {"points": {"2a": None, "3c": None}, "comments": {}}
    by_hand.pages(tmp_path, master, [result | marked])
    page = tmp_path / "by-hand" / "2a.html"
    assert page.stat().st_size < 50_000
    tab.goto(f"file://{page}")
    for picture in tab.locator("img").all():
        picture.scroll_into_view_if_needed()
        tab.wait_for_function("(one) => one.naturalWidth === 1", arg=picture.element_handle())
    report.remember(tmp_path, result, "as it was")
    assert report.remembered(tmp_path, "ada", "as it was") == result
    next(gallery.iterdir()).unlink()
    assert report.remembered(tmp_path, "ada", "as it was") is None
