"""A reader's visits to pages whose cells run: what is pressed there, and what is seen."""

import re

from test_site import Watched

from machine import FOR_PYTHON, SITE

PAGES = sorted(
    path.relative_to(SITE / "_run" / "cells").with_suffix("").as_posix()
    for path in (SITE / "_run" / "cells").rglob("*.json")
)
FIRST = "chapters/intro.html"


class WithWorker(Watched):
    """A reader whose browser has the service worker."""

    ALONE = ""


def bar(tab, number):
    """The buttons of a cell."""
    return tab.locator(f'.run-bar:has([aria-label="Run cell {number}"])')


def press(tab, number, what):
    bar(tab, number).locator(f'[data-do="{what}"]').click()


def settled(tab, number, says):
    """Wait until the note beside the buttons says this."""
    bar(tab, number).locator(".run-note").filter(has_text=re.compile(says)).wait_for(
        timeout=FOR_PYTHON
    )


def forget_note(tab, number):
    """What is said there from now on is of the next run."""
    bar(tab, number).locator(".run-note").evaluate("(note) => note.replaceChildren()")


def output(tab, number):
    return tab.locator(f'[aria-label="Output of your run of cell {number}"]')


def type_code(tab, number, code):
    edit = bar(tab, number).locator('[data-do="edit"]')
    edit.evaluate("(one) => one.checkVisibility() && one.click()")  # another tab may open it, too
    tab.get_by_label(f"Code of cell {number}").fill(code)


def works(tab, code):
    return tab.evaluate("(code) => python.run(code)", code)["ok"]
