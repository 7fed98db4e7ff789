"""The page for marking by hand, in a browser: what was touched is saved, nothing else."""

import csv
from types import SimpleNamespace

import pytest

from assignments.grader import by_hand
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
        {"student": student, "points": {"2a": mark}, "comments": {"2a": comment} if comment else {},
         "answers": {"2a": "<p>proof</p>"}}
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
        ["ada", "6", "6", "hm", "4", "hm"],
        ["ben", "", "6", 'a "comment", two', "", ""],
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
