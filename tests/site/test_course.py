"""The book as a course, in the built site: route, times, hints, plan, marks, explained links."""

import itertools
import pickle
import re

import pytest
import yaml
from docutils import nodes
from lxml import html
from test_site import violations

import course
from assignments.grader.sandbox import Limits
from carry import slides, volume
from carry.volume import has_class, text_of
from dpnotes import plotting
from machine import ROOT, SITE, new_tab
from pages.moved import moved
from surroundings import files_of

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
NUMBERED = [file for part in TOC["parts"] if part.get("numbered") for file in files_of(part)]
BUILT = [name for name in NUMBERED if (SITE / f"{name}.html").exists()]
LONGEST, WHOLE, STARRED = 60, 22 * 60, 532  # minutes of a first reading: a page, all; of stars
DATE, LEAST, SHOWN = 90, 30, 60  # minutes of a date; what is not shown is for exercises, questions
every_chapter = pytest.mark.parametrize("name", BUILT)


def page(name):
    return html.parse(str(SITE / f"{name}.html"), html.HTMLParser(encoding="utf-8")).getroot()


def source(name):
    return (ROOT / f"{name}.md").read_text(encoding="utf-8")


def test_the_sidebar_shows_at_most_25_entries_until_it_is_unfolded():
    folded = "ancestor::details[not(@open)]"
    seen = page("chapters/intro").xpath(f"//nav[{has_class('bd-links')}]//li/a[not({folded})]")
    everything = page("chapters/intro").xpath(f"//nav[{has_class('bd-links')}]//li/a")
    assert 1 < len(seen) <= 25 and len(everything) >= len(BUILT)
    shown = [text_of(link) for link in seen]
    assert not [title for title in shown if re.match("Assignment |Errata|Status|All claims", title)]


def test_an_old_address_leads_to_what_is_there():
    """A section's by a script, a page's by a file; neither hides what is still there."""
    for old, new in moved().items():
        (was, _, gone), (now, _, place) = old.partition("#"), new.partition("#")
        leading = SITE / "chapters" / was
        if not {f"chapters/{name.removesuffix('.html')}" for name in (was, now)} & set(BUILT):
            continue  # a site of some pages
        there = page(f"chapters/{now.removesuffix('.html')}")
        assert not place or there.xpath("//*[@id=$place]", place=place), new
        assert new in leading.read_text(encoding="utf-8")
        assert not gone or not page(f"chapters/{was[:-5]}").xpath("//*[@id=$gone]", gone=gone), old


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("in-practice.html#a-translation-table", "practice.html#a-translation-table"),
        ("more-tails.html#x-chernoff-sharp", "tail-bounds.html#x-chernoff-sharp"),
        ("more-tails.html#more-tails-mills", "tail-bounds.html#tail-bounds-mills"),
    ],
)
def test_a_reader_with_an_old_address_arrives(browser, address, old, new):
    if not (SITE / "chapters" / old.partition("#")[0]).exists():
        pytest.skip("a site of some pages")
    tab = new_tab(browser)
    tab.goto(f"{address}/chapters/{old}", wait_until="commit")
    tab.wait_for_url(f"**/chapters/{new}")
    tab.context.close()


@every_chapter
def test_a_chapter_says_its_minutes_and_no_first_reading_is_longer_than_one_sitting(name):
    assert 0 < minutes_of(name)[0] <= LONGEST


def minutes_of(name):
    """First reading and starred sections, as the page says them."""
    said = text_of(page(name).find_class("course-minutes")[0])
    return [int(number) for number in re.findall(r"(\d+) (?:minutes|more)", said)] + [0]


def test_the_book_is_read_in_22_hours():
    first, starred = map(sum, zip(*(minutes_of(name)[:2] for name in BUILT), strict=True))
    assert 0 < first <= WHOLE and starred <= STARRED
    assert minutes_of(NUMBERED[0])[1] > 10, "starred minutes are read off the page"


@pytest.mark.parametrize(("name", "following"), list(itertools.pairwise(NUMBERED)))
def test_a_chapter_ends_with_the_next_step_and_why(name, following):
    last = source(name).rstrip().splitlines()[-1]
    assert re.match(rf"\*\*Next:\*\* {{doc}}`{following.split('/')[-1]}`, because \w.+\.$", last)
    if {name, following} <= set(BUILT):
        asked = text_of(page(name).find_class("next-question")[0])
        assert asked.endswith("?") and asked in text_of(page(following).find(".//article"))


PAGES = re.findall(r"file: chapters/([\w-]+)$", (ROOT / "_toc.yml").read_text(), re.M)


def references(text):
    """(label or page, in the order of the text) of all claims and pages that a text refers to."""
    return re.findall(r"\{(?:prf:ref|doc)\}`(?:[^`]*?<)?([\w.-]+)>?`", text)


def homes():
    """The page and the section of each label."""
    found = {}
    for name in PAGES:
        for section in re.split(r"^(?=##+ )", source(f"chapters/{name}"), flags=re.M):
            title = section.splitlines()[0].lstrip("# ")
            for label in re.findall(r":label: (\S+)|\{source\}`([\w.-]+)", section):
                found[(label[0] or label[1].replace(".", "-").lower())] = name, title
                found[label[0] or label[1].lower()] = name, title
    return found


def needed(text, home):
    """The pages that the paragraph "You need" of a page names."""
    said = re.search(r"\*\*You need\*\*.*?\n\n", text, re.S)
    named = references(said[0]) if said else []
    return {home.get(name, (name,))[0] for name in named}


def test_you_need_names_every_earlier_page_that_a_page_uses():
    """What a page refers to in a first reading stands on a page that it names, or that one of
    those names, or it comes later and is only announced."""
    home = homes()
    named = {name: needed(source(f"chapters/{name}"), home) for name in PAGES if name != "api"}
    for name in [page.split("/")[-1] for page in NUMBERED]:
        known, added = {name}, {name}
        while added:
            added = set().union(*(named.get(page, set()) for page in added)) - known
            known |= added
        for section in re.split(r"^(?=##+ )", source(f"chapters/{name}"), flags=re.M):
            title = section.splitlines()[0].lstrip("# ")
            if title in course.UNCOUNTED or "A first reading may skip" in section:
                continue
            used = {home.get(label, (label,))[0] for label in references(section)}
            earlier = set(PAGES[: PAGES.index(name)])
            assert not (used & earlier) - known, (name, title)


def test_a_need_that_is_left_out_is_found(monkeypatch):
    def without(name):
        left_out = name == "chapters/auditing"
        return re.sub(
            r"(\*\*You need\*\*).*?\n\n",
            r"\1 none.\n\n" if left_out else r"\g<0>",
            text(name),
            flags=re.S,
        )

    text = source
    monkeypatch.setitem(globals(), "source", without)
    with pytest.raises(AssertionError, match="auditing"):
        test_you_need_names_every_earlier_page_that_a_page_uses()


def test_no_date_asks_for_an_exercise_before_what_it_refers_to():
    home, shown = homes(), set()
    for number, date in enumerate(course.plan(), 1):
        for name, sections in date["show"].items():
            shown |= {(name, title) for title in [*sections, *date.get("read", ())]}
        for name in date["show"]:
            later = {(name, title) for title in headings(name)} - shown
            exercises = source(f"chapters/{name}").split("{exercise")[1:]
            for wanted in date["class"]:
                for exercise in exercises:
                    title, _, body = exercise.split("```{solution}")[0].partition("\n")
                    asked = {home.get(label) for label in references(body)}
                    assert wanted not in title or not asked & later, (number, title)


def test_an_exercise_before_its_proof_is_found(monkeypatch):
    dates = [{**date, "class": list(date["class"])} for date in course.plan()]
    dates[22]["class"].append("A row that counts for nothing")  # proved on date 24
    monkeypatch.setattr(course, "plan", lambda: dates)
    with pytest.raises(AssertionError, match="A row that counts for nothing"):
        test_no_date_asks_for_an_exercise_before_what_it_refers_to()


def test_the_map_shows_every_chapter_with_its_minutes_and_needs():
    chapters = page("chapters/intro").xpath(f"//*[{has_class('course-map')}]//li")
    links = [item.find("./p/a").get("href") for item in chapters]
    assert {f"{name.split('/')[-1]}.html" for name in BUILT} <= set(links)
    for item, link in zip(chapters, links, strict=True):
        question, facts = map(text_of, item.findall("./p"))
        assert "?" in question and re.match(r"\d+ minutes.* · needs ", facts)
        assert not re.search(r"\b(such|now|that (number|training))\b", question)  # it stands alone
        needs = [need.get("href") for need in item.findall("./p")[1].findall("a")]
        assert set(needs) <= set(links[: links.index(link)]), "a need comes earlier in the book"


def headings(name, depth="##"):
    """The titles of the sections of a page, of this depth or more."""
    return re.findall(rf"^{depth} (.+)$", source(f"chapters/{name}"), re.M)


def test_the_plan_shows_every_section_of_every_chapter_or_leaves_it_to_read():
    """Also the sections and the exercises that it names are there."""
    dates = course.plan()
    assert len(dates) == 24
    planned = {}
    for number, date in enumerate(dates, 1):
        read = set(date.get("read", ()))
        there = {title for name in date["show"] for title in headings(name, "###?")}
        assert read <= there | {"the first page of the book"}, number
        for name, sections in date["show"].items():
            assert sections  # the build refuses one that is not there
            planned.setdefault(f"chapters/{name}", set()).update(sections, read)
        text = "".join(source(f"chapters/{name}") for name in date["show"])
        asked = re.findall(r"\{exercise(?:-start)?\} (.+)", text)
        for wanted in date["class"]:
            assert sum(wanted in title for title in asked) == 1, (number, wanted)
    assert set(planned) == set(NUMBERED)
    for name, titles in planned.items():
        left = set(headings(name.split("/")[-1])) - titles - set(course.UNCOUNTED)
        assert not left, (name, left)


@pytest.mark.parametrize("number", range(1, 25))
def test_what_a_date_shows_leaves_time_for_its_exercises(number):
    """By the clock of the pages; a page that was not built counts nothing."""
    told = 0
    for name, wanted in course.plan()[number - 1]["show"].items():
        if f"chapters/{name}" in BUILT:
            stored = SITE.parent / ".doctrees" / "chapters" / f"{name}.doctree"
            sections = pickle.loads(stored.read_bytes()).findall(nodes.section)
            times = {course.title_of(one): course.minutes(one)[0] for one in sections}
            told += sum(times[title] for title in wanted)
    assert LEAST <= told <= SHOWN or not told, told


def tied(text, numbers):
    """Each of these words stands in the text once, and its number agrees with the value."""
    assert [words for words in numbers if text.count(words) != 1] == []
    plotting.says(numbers)


def test_the_numbers_for_instructors_are_those_of_the_plan_and_the_grader():
    text, most = source("chapters/for-instructors"), Limits()
    taken = [
        int(n)
        for n in re.search(r"take the dates ([\d, and]+)\.", text)[1].split(" and ")[0].split(",")
    ]
    rows = re.findall(r"^\| \*[a-z]+\* \| date (\d+) \| date (\d+) \|$", text, re.M)
    sheets = re.findall(
        r"^\| \[.*?\| (\d+) \| (\d+) \| ([\d.]+)(?: to ([\d.]+))? \|",
        source("chapters/assignments"),
        re.M,
    )
    hours = [(float(low) + float(high or low)) / 2 for _, _, low, high in sheets]
    numbers = {
        "A course of 24 dates": len(course.plan()),
        "twelve dates: take": len(taken) + 1,
        "Four sheets are used": len(rows),
        "The ten assignments": len(sheets),
        "each of the ten sheets": len(sheets),
        "about three hours of work": sum(hours) / len(hours),
        "A date has 90 minutes": DATE,
        "between 30 and 60 minutes": (LEAST, SHOWN),
        "`laplace` and 30 points": int(sheets[0][0]) + int(sheets[0][1]),
        "20 seconds for reading, 30 for a cell": (most.read_seconds, most.cell_seconds),
        "240 in all; by the clock it may be three times": (most.total_seconds, most.patience),
        "up to seventeen minutes": most.wall_seconds() / 60,
    }
    tied(text, numbers)
    assert {int(date) for row in rows for date in row} <= {*taken, 21}
    for words, value in numbers.items():
        with pytest.raises(ValueError, match="numbers must hold"):
            plotting.says(
                {words: tuple(1.5 * v for v in value) if isinstance(value, tuple) else 1.5 * value}
            )


def test_a_date_has_a_deck_of_its_sections_and_exercises_only():
    """And a chapter asks its first question at its first date only."""
    pages = {one.name: one for one in volume.read(SITE, ["pure-dp"])}
    date = {"show": {"pure-dp": ["The promise"]}, "class": ["Rounding"]}
    made = slides.of_date(date, pages)
    assert {slide.heading for slide in made} == {"", "The promise", "Exercises"}
    asked = [slide for slide in made if slide.kind == "exercise"]
    (shown,) = [text_of(part) for slide in asked for part in slide.parts]
    assert "Rounding" in shown and "An office publishes" in shown
    assert [text_of(fold[0]) for fold in asked[0].proof] == ["Hint"]
    assert "?" in text_of(made[0].parts[-1])
    again = slides.of_date(date, pages, {"pure-dp"})
    assert text_of(again[0].parts[-1]) == "The promise"


@pytest.fixture
def tab(browser, address):
    context = browser.new_context(viewport={"width": 360, "height": 780}, has_touch=True)
    tab = context.new_page()
    tab.goto(f"{address}/chapters/pure-dp.html")
    yield tab
    context.close()


def count_as_read_after(context, milliseconds):
    """So long an end of a section has to be seen."""
    script = (SITE / "_course" / "course.js").read_text()
    body = script.replace("STAY = 3000", f"STAY = {milliseconds}")
    answer = {"body": body, "content_type": "text/javascript"}
    context.route("**/_course/course.js", lambda route: route.fulfill(**answer))


def test_what_was_read_is_kept_shown_and_forgotten(tab, address):
    tab.locator("#the-promise > :last-child").scroll_into_view_if_needed()
    tab.locator('#the-promise > h2[data-kept="✓"]').wait_for()
    count_as_read_after(tab.context, 10**9)  # no more, however long the rest of this takes
    tab.reload()
    question = tab.locator("details.question").first
    question.locator("summary").click()
    question.get_by_label("I had this right").check()
    solution = tab.locator("details.solution").first
    solution.locator("summary").click()
    tab.reload()
    assert question.get_attribute("data-kept") == "✓"
    assert solution.get_attribute("data-kept") == "opened"
    assert tab.locator("details.solution[data-kept]").count() == 1
    tab.goto(f"{address}/chapters/intro.html")
    entry = tab.locator('.course-map a[href="pure-dp.html"]').first
    assert re.match(r"1/\d+ here last", entry.get_attribute("data-kept"))
    tab.get_by_role("button", name="Forget").click()
    assert entry.get_attribute("data-kept") is None
    assert tab.evaluate("localStorage.getItem('dpnotes-course')") is None


def test_a_sheet_has_no_marks_of_what_was_read(browser, address):
    sheet = "chapters/assignments/gaussian.html"
    earlier = f'{{"pages": {{"{sheet}": {{"read": ["a"], "sections": ["a"]}}}}}}'
    seen = """(end) => new Promise((done) => new IntersectionObserver(
      ([{ isIntersecting }]) => isIntersecting && setTimeout(done, 200)).observe(end))"""
    with browser.new_context() as context:
        count_as_read_after(context, 0)
        context.add_init_script(f"localStorage.setItem('dpnotes-course', '{earlier}')")
        tab = context.new_page()
        for name in ("chapters/pure-dp.html", sheet):
            tab.goto(f"{address}/{name}")
            end = tab.locator(".bd-article > section > section[id] > :last-child").first
            end.scroll_into_view_if_needed()
            end.evaluate(seen)
            marks = tab.locator(".bd-article h2[data-kept], .bd-links [data-kept]").count()
            kept = tab.evaluate("localStorage.getItem('dpnotes-course')")
            assert (marks == 0, kept == earlier) == (name == sheet, name == sheet)


def test_a_reference_shows_its_statement_to_tap_focus_and_hover(tab):
    links = tab.locator("a.explains[href='#t-laplace']")
    link = links.filter(visible=True).last  # others stand in folded proofs
    box = tab.locator(".explanation")
    link.tap()
    box.wait_for()
    assert "Theorem" in box.inner_text() and "Go there" in box.inner_text()
    wide = box.bounding_box()
    assert wide["x"] >= 0 and wide["x"] + wide["width"] <= 360
    tab.keyboard.press("Escape")
    assert not box.count()
    link.hover()
    box.wait_for()
    tab.keyboard.press("Escape")
    before = tab.url
    link.focus()
    tab.keyboard.press("Shift+Tab")
    tab.keyboard.press("Tab")
    box.wait_for()
    tab.mouse.move(5, 5)
    tab.wait_for_timeout(500)
    assert box.count(), "what the keyboard opened stays while the mouse is elsewhere"
    assert tab.url == before and not violations(tab, ".explanation")
    tab.keyboard.press("Tab")
    assert box.evaluate("(box) => box.contains(document.activeElement)")
    tab.keyboard.press("Escape")
    assert not box.count() and link.evaluate("(link) => link === document.activeElement")
    link.tap()
    box.wait_for()
    tab.mouse.wheel(0, 300)
    box.wait_for(state="detached")


@pytest.mark.parametrize("link", ["approximate-dp references.html#", "accounting #equation-"])
def test_a_source_and_an_equation_are_shown_too(browser, address, link):
    page, place = link.split()
    tab = new_tab(browser)
    tab.goto(f"{address}/chapters/{page}.html")
    shown = tab.locator(f".bd-article a.explains[href^='{place}']:visible").first
    shown.hover()
    inside = tab.locator(".explanation .citation, .explanation .math-block")
    inside.wait_for()
    shown.page.context.close()


def test_the_first_use_of_a_word_explains_itself_from_another_page(tab):
    link = tab.locator("a.explains[href^='notation.html#term-']").first
    word = link.inner_text()
    link.tap()
    box = tab.locator(".explanation")
    box.wait_for()
    assert word.lower().startswith(box.locator("dt").inner_text().lower())
    assert not violations(tab, ".explanation")


def test_each_exercise_has_a_hint_before_its_solution():
    for name in [*NUMBERED, "chapters/tail-bounds", "chapters/jumps"]:
        text = source(name)
        kinds = re.findall(r"\{exercise-start\}|\{exercise\}|\{solution\}|\} Hint\n", text)
        bare = ["hint" if "Hint" in kind else kind[1:4] for kind in kinds]
        assert bare == ["exe", "hint", "sol"] * (len(bare) // 3), name


def test_the_book_asks_sixty_questions_and_answers_them():
    asked = [
        block
        for name in NUMBERED
        for block in re.findall(r":{3,}\{dropdown\} Question: (.*?)\n:{3,}\n", source(name), re.S)
    ]
    assert len(asked) >= 60
    for block in asked:
        title, *answer = block.splitlines()
        assert title.endswith("?") and answer, title


def test_a_sheet_is_handed_out_when_the_pages_that_it_needs_were_shown():
    titles, out = set(), set()
    for date in course.plan():
        titles |= {
            re.search(r"^# (.+)$", source(f"chapters/{name}"), re.M)[1] for name in date["show"]
        }
        for sheet in re.findall(r"(\w+) out", date.get("sheet", "")):
            pages = re.search(r"\*\*Pages\*\* \|(.+)\|", source(f"assignments/{sheet}"))[1]
            needed = set(re.findall(r"\[(.+?)\]\(", pages)) - {"Tail bounds"}  # an appendix
            assert needed and needed <= titles, sheet
            out.add(sheet)
    assert out == {path.stem for path in (ROOT / "assignments").glob("*.md")}
