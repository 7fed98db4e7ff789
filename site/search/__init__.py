"""Search: the text of every section of the site, for the scripts beside, which rank it.

What people type and the book says in other words stands in `words.yml`.
"""

import json
import re
from html import escape, unescape
from pathlib import Path

import yaml
from lxml import html

from pages.polish import ASIDE
from surroundings import ROOT, copy_scripts

HERE = Path(__file__).resolve().parent
MODULE = ROOT / "node_modules" / "minisearch" / "dist" / "es" / "index.js"
SKIPPED = """
    .//script | .//style | .//nav | .//svg | .//pre | .//*[@class="headerlink"]
    | .//*[@class="run-bar"] | .//details[contains(@class, "hide")]/summary
"""
NAMES = """
    ./div[contains(@class, "proof")]/p[contains(@class, "admonition-title")] | ./dl/dt
    | ./p/strong | ./p/em | ./p/dfn
"""
# what is written about the book, repeats it or goes on comes after the page that explains the thing
BEHIND = {"assignments": 0.3, "for-instructors": 0.5, "intro": 0.5}
BEHIND |= dict.fromkeys(("more-release", "more-sampling", "more-learning"), 0.5)
BEHIND |= dict.fromkeys(("api", "claims", "errata", "status", "references", "notation"), 0.3)
LONGEST_FORMULA = 12


def words(element):
    """The text of an element in one line."""
    return " ".join(element.text_content().split())


def shortened(aside):
    """Of what `polish` sets aside: a short formula as it is read in a line, and no code."""
    mathml = (aside[1] or "").partition("</math>")[0]
    text = unescape(re.sub(r"<annotation.*?</annotation>|<[^>]*>", "", mathml)).strip()
    return escape(text) if len(text) <= LONGEST_FORMULA else "…"


def sections(path, name, others):
    """The sections of a page, each without those inside it."""
    page = ASIDE.sub(shortened, path.read_text(encoding="utf-8"))
    article = html.document_fromstring(page).find_class("bd-article")[0]
    for part in article.xpath(SKIPPED):
        part.drop_tree()
    title = words(article.xpath(".//h1")[0])
    with_title = article.xpath(".//section[@id][h1 or h2 or h3]")
    for section in reversed(with_title):  # inner ones first
        heading = section.xpath("./h1 | ./h2 | ./h3")[0]
        first = heading.tag == "h1"
        names = [words(one) for one in section.xpath(NAMES)]
        heading.drop_tree()
        place = f"{name}.html" if first else f"{name}.html#{section.get('id')}"
        yield {
            "id": place,
            "page": title,
            "heading": "" if first else words(heading),
            "names": "; ".join(names),
            "others": "; ".join(others.pop(place, [])),
            "text": words(section),
        }
        section.drop_tree()


def write_texts(app, exception):
    """Before `polish`, which looks into scripts for the classes they use."""
    if exception or app.builder.name != "html" or app.config.only_this_page:
        return
    site = Path(app.outdir)
    others = yaml.safe_load((HERE / "words.yml").read_text(encoding="utf-8"))
    records = []
    for name in sorted(app.env.found_docs):
        kind = next((part for part in name.split("/") if part in BEHIND), None)
        for section in sections(site / f"{name}.html", name, others):
            records.append(section | ({"weight": BEHIND[kind]} if kind else {}))
    target = site / "_search"
    copy_scripts(HERE, target)
    code = MODULE.read_text(encoding="utf-8")
    code = re.sub(r"//# sourceMappingURL=.*", "", code)
    (target / "minisearch.js").write_text(code, encoding="utf-8")
    (target / "texts.json").write_text(json.dumps(records, ensure_ascii=False), encoding="utf-8")


def leave_out_the_usual_index(app):
    """That of Sphinx ranks by nothing, and it stems every word of the book."""
    app.builder.search = not app.config.only_this_page
    app.builder.index_page = lambda *page: None
    app.builder.dump_search_index = lambda: None


def setup(app):
    """Connect to the start and the end of the build."""
    app.connect("builder-inited", leave_out_the_usual_index)
    app.connect("build-finished", write_texts, priority=850)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
