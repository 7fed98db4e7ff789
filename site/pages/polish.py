"""What the themes put into a page and this site does not want, corrected in the finished HTML.

The themes and extensions load half a megabyte of icons as a script, a run-in-the-cloud library and
a toggle script, and leave a few accessibility faults that no option reaches. One function mends
one thing; each gets the parsed page and changes it in place.
"""

import logging
import os
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bs4 import BeautifulSoup

from pages import assets

UNWANTED = re.compile(
    r"fontawesome\.js|bootstrap\.js|thebe|togglebutton|toggleHint|toggleOpenOnPrint"
    r"|design-tabs|\.min\.css\.map|proof\.css|exercise\.css"
    r"|searchtools|language_data|searchindex"
)
ASIDE = re.compile(
    r'<!--formula-->(.*?)<!--/formula-->|<figure class="dpn-figure">.*?</figure>|<pre>.*?</pre>',
    re.S,
)
# Scripts of the theme break where a browser denies storage: there they get one that ends with the
# page, and says so (`ends`).
EARLY_MODE = """
for (const name of ["localStorage", "sessionStorage"]) {
  try { window[name].length } catch {
    const kept = new Map();
    const value = {
      ends: true, getItem: (key) => kept.get(key) ?? null, removeItem: (key) => kept.delete(key),
      setItem: (key, text) => kept.set(key, `${text}`),
    };
    Object.defineProperty(window, name, { value });
  }
}
const root = document.documentElement;
root.dataset.mode = localStorage.getItem("mode") || "auto";
root.dataset.theme = root.dataset.mode != "auto" ? root.dataset.mode
  : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
"""
SEARCHING = """<p class="search-summary" role="status"></p>
<script>
if (/[?&]q=[^&]/.test(location.search))
  document.querySelector("#search-results p").textContent = "Searching …";
</script>
"""
FONTS = {
    "KaTeX_Main-Regular": "katex-html",
    "KaTeX_Math-Italic": "mathnormal",
}  # and a word of who has it
START = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Start</title>
<link rel="icon" href="_static/icon.svg">
<meta http-equiv="refresh" content="0; url={0}.html"></head>
<body><main><h1>Start</h1><p><a href="{0}.html">To the first page</a></p></main></body></html>
"""


def drop_unwanted_assets(page):
    """Scripts and style sheets of features that the site does not have."""
    for tag in page.find_all(["script", "link"]):
        if UNWANTED.search(str(tag)) or tag.get("rel") == ["preload"]:
            tag.decompose()
    if not page.select_one('[class*="sd-"]'):
        for tag in page.select('link[href*="sphinx-design"]'):
            tag.decompose()


def drop_print_contents(page):
    """The theme repeats title and contents for print, hidden on screen."""
    for tag in page.select("#jb-print-docs-body"):
        tag.decompose()


def choose_mode_early(page):
    """Light or dark is settled before the first paint; without scripts the style sheets do it."""
    page.html["data-theme"] = "light"
    for script in page.find_all("script", src=False):
        if script.string and "dataset.mode" in script.string:
            script.string = EARLY_MODE


def load_search(page):
    """The search page gets our script (`search.py`), and says at once that it works."""
    for box in page.select("#search-results"):
        page.head.append(page.new_tag("script", type="module", src="_search/search.js"))
        box.append(BeautifulSoup(SEARCHING, "html.parser"))


def load_scripts_late(page):
    """No script holds up the page; only the options that inline scripts write to come first."""
    for tag in page.select("head script[src]"):
        if "documentation_options" not in tag["src"]:
            tag["defer"] = "defer"


def name_controls(page):
    """Buttons and summaries are called what they say, for those who speak to their computer."""
    for control in page.select("details > summary[aria-label], .search-button-field[aria-label]"):
        del control["aria-label"]
    for mark in page.select(".bd-links summary"):  # an arrow without words
        mark["aria-label"] = f"What {words_before(mark)} holds"


def words_before(mark):
    """The link that the folded list of an entry belongs to."""
    return mark.find_parent("li").a.get_text().strip()


def make_sidebar_a_landmark(page):
    """The title of the book in the sidebar stands outside of all landmarks otherwise."""
    for sidebar in page.select("div#pst-primary-sidebar"):
        sidebar["role"] = "complementary"
        sidebar["aria-label"] = "Book"


def say_title_once(page):
    """The first page is called as the book: its title says the name twice."""
    first, _, book = (page.title.string or "").partition(" — ")
    if first == book:
        page.title.string = book


def download_in_place(page):
    """The theme opens header links in a new tab; a file is saved without one."""
    for link in page.select(".article-header-buttons a[href*='downloads/']"):
        del link["target"]
        link["download"] = ""


def mend_bibliography(page):
    """Entries come with a deprecated role, in a list of something else than list items."""
    for tag in page.select(".citation-list[role], .citation[role]"):
        del tag["role"]


def link_at_the_foot(page):
    """Whose the files of the site are, and what the build did, for the few who ask."""
    root = page.html.get("data-content_root", "./")
    built = page.select('.bd-links a[href$="status.html"], .bd-links .current > a[href="#"]')
    places = {"Licences": "licences.txt"} | ({"Build": "chapters/status.html"} if built else {})
    for line in page.select("footer p.copyright"):
        for words, place in places.items():
            link = page.new_tag("a", href=f"{root}{place}")
            link.string = words
            line.extend([link, " "])


def load_runner(page):
    """Pages with cells that can be run get the script that makes their buttons work.

    And a way to them for those who read with the keyboard.
    """
    bar, skip = page.select_one(".run-bar"), page.select_one("#pst-skip-link")
    if bar and skip:
        bar.parent["id"] = bar.parent.get("id", "first-cell")
        link = page.new_tag("a", href=f"#{bar.parent['id']}")
        link.string = "Skip to the first cell"
        further = page.new_tag("div", attrs={"class": skip["class"]})
        further.append(link)
        skip.insert_after(further)
    if page.select_one(".run-bar, .run-cannot"):
        root = page.html.get("data-content_root", "./")
        sheet = page.new_tag("link", rel="stylesheet", href=f"{root}_run/cells.css")
        script = page.new_tag("script", type="module", src=f"{root}_run/cells.js")
        page.head.extend([sheet, script])


def load_fonts_early(page, formulas):
    """Those of the formulas that show: lines would break anew when they come after the text."""
    shown = [one for one in page.select(".math") if not one.find_parent("details")]
    text = "".join(formulas[int(n)] for one in shown for n in re.findall("\ue000(\\d+)", str(one)))
    root = page.html.get("data-content_root", "./")
    for name, word in FONTS.items():
        if word in text:
            place = f"{root}_static/katex/fonts/{name}.woff2"
            kind = {"rel": "preload", "as": "font", "type": "font/woff2", "crossorigin": ""}
            page.head.link.insert_before(page.new_tag("link", href=place, attrs=kind))


STEPS = (
    drop_unwanted_assets,
    drop_print_contents,
    choose_mode_early,
    load_search,
    load_scripts_late,
    name_controls,
    make_sidebar_a_landmark,
    say_title_once,
    download_in_place,
    mend_bibliography,
    link_at_the_foot,
    load_runner,
)


def polish_page(path):
    """Run every step over one file; returns the names of the icons it shows.

    Formulas, drawings and code, nine tenths of a page, are set aside: no step looks into them.
    """
    aside = []

    def set_aside(match):
        aside.append(match[1] or match[0])
        return f"\ue000{len(aside) - 1}\ue001"

    page = BeautifulSoup(ASIDE.sub(set_aside, path.read_text(encoding="utf-8")), "html.parser")
    for step in STEPS:
        step(page)
    load_fonts_early(page, aside)
    html = re.sub("\ue000([0-9]+)\ue001", lambda match: aside[int(match[1])], str(page))
    path.write_text(html, encoding="utf-8")
    icons = page.select('[class*="fa-"]')
    return {name for icon in icons for name in icon["class"] if name.startswith("fa-")}


def say_what_is_missing(app):
    """Whoever runs Jupyter Book itself gets pages, but not the book."""
    if not app.config.whole_build:
        said = "left out: the sheets, Python in the pages, all checks. `make book` builds the book"
        logging.getLogger("sphinx.polish").warning(said)


def use_all_cores(app, env):
    """Pages are written side by side. They are read one by one: handing over takes as long."""
    app.parallel = 1 if app.config.only_this_page else 1 + (os.cpu_count() or 1)


def write_no_other(app, env):
    """A page alone is written without those whose contents name it."""
    if app.config.only_this_page:
        env.files_to_rebuild.clear()


def polish_site(app, exception):
    """After the last page is written."""
    if exception or app.builder.name != "html":
        return
    site = Path(app.outdir)
    if app.config.root_doc != "index":
        (site / "index.html").write_text(START.format(app.config.root_doc), encoding="utf-8")
    pages = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    with ProcessPoolExecutor() as pool:
        icons = set().union(*pool.map(polish_page, set(pages) - {site / "index.html"}))
    if app.config.only_this_page:
        return
    assets.polish(site, icons)


def setup(app):
    """Run after all other extensions have copied their assets."""
    app.add_config_value("only_this_page", False, "", types=[bool])  # the rest is there already
    app.add_config_value("whole_build", False, "", types=[bool])
    app.connect("builder-inited", say_what_is_missing)
    app.connect("env-updated", use_all_cores)
    app.connect("env-check-consistency", write_no_other)
    app.connect("build-finished", polish_site, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
