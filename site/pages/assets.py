"""What the themes put beside the pages: icons, style sheets, scripts, cut to what is used.

The pages themselves are mended in `polish.py`.
"""

import logging
import re
import shutil
from pathlib import Path

from fontTools import subset

from pages.purge import drop_unused

HERE = Path(__file__).resolve().parent
UNUSED_FILES = """
    *.map *.LICENSE.txt fontawesome.js bootstrap.js *thebe* togglebutton* vendor images/logo_*
    locales plus.png minus.png file.png check-solid.svg play-solid.svg copy-button.svg
    design-tabs.js proof.css exercise.css *webpack-macros.html searchtools.js language_data.js
""".split()
OWN_SHEETS = {"dpnotes.css", "katex.css", "pygments.css"}


def subset_icons(static, used):
    """Write the icon font with the used glyphs only, and drop the rules of all others.

    Its licence reserves the name of the font for the whole one: ours is called Icons.
    """
    sheet = static / "styles" / "pydata-sphinx-theme.css"
    css = sheet.read_text(encoding="utf-8")
    rule = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}')
    glyphs = set()

    def keep(match):
        if not used & set(re.findall(r"\.(fa-[a-z0-9-]+):", match[1])):
            return ""
        glyphs.add(int(match[2], 16))
        return match[0]

    css = rule.sub(keep, css)
    css = re.sub(r"@font-face\{[^}]*(?:Brands|font-weight:400)[^}]*fontawesome[^}]*\}", "", css)
    css = re.sub(
        r"src:url\(\.\./vendor/fontawesome[^;}]*", 'src:url(../icons.woff) format("woff")', css
    )
    css = re.sub(r"/\*# sourceMappingURL.*?\*/", "", css)
    sheet.write_text(css, encoding="utf-8")
    for path in (static / "styles").glob("*.css"):
        css = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r'"?Font Awesome(?:\\ | )6 Free"?', "Icons", css), encoding="utf-8")
    logging.getLogger("fontTools.subset").setLevel(logging.WARNING)
    options = subset.Options(
        flavor="woff", desubroutinize=True, notdef_outline=False,
        name_IDs=[0],  # whose it is, without the reserved name
    )  # fmt: skip
    font = subset.load_font(str(static / "vendor/fontawesome/webfonts/fa-solid-900.ttf"), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=glyphs)
    subsetter.subset(font)
    subset.save_font(font, str(static / "icons.woff"), options)


def dark_without_script(static):
    """Repeat every dark rule for readers who prefer dark and have no script to set the theme."""
    rule = re.compile(r"(?<=[{};/])\s*([^{}@;/]*html\[data-theme=\"?dark\"?\][^{}]*)\{([^{}]*)\}")
    for sheet in (
        static / "styles/pydata-sphinx-theme.css",
        static / "pygments.css",
        static / "dpnotes.css",
    ):
        css = sheet.read_text(encoding="utf-8")
        dark = "".join(f"{head.strip()}{{{body}}}" for head, body in rule.findall("}" + css))
        dark = re.sub(r'html\[data-theme="?dark"?\]', 'html[data-theme="light"]', dark)
        query = "screen and (prefers-color-scheme: dark) and (scripting: none)"
        css += f"\n@media {query} {{{dark}}}\n"
        sheet.write_text(css, encoding="utf-8")


def drop_unused_rules(site):
    """Keep of the themes' style sheets the rules for classes that some page or script mentions."""
    used = set()
    for path in [*site.rglob("*.html"), *site.rglob("*.js")]:
        used |= set(re.findall(r"[\w-]+", path.read_text(encoding="utf-8")))
    for sheet in (site / "_static").rglob("*.css"):
        if sheet.name not in OWN_SHEETS:
            sheet.write_text(drop_unused(sheet.read_text(encoding="utf-8"), used), encoding="utf-8")


def change_scripts(static):
    """Some lines of others' scripts. Boxes that scroll are our affair (`dpnotes.js`): the theme
    measures folded ones.
    """
    for name, before, after in (
        ("scripts/pydata-sphinx-theme.js", '["pre",".nboutput > .output_area",', '["#none",'),
        ("scripts/pydata-sphinx-theme.js", '".cell_output > .output",', ""),
        ("scripts/pydata-sphinx-theme.js", '".pst-scrollable-table-container"]', '"#none"]'),
        ("scripts/sphinx-book-theme.js", "(min-width: 992px)", "(min-width: 62em)"),
    ):
        code = (static / name).read_text(encoding="utf-8")
        if code.count(before) != 1:
            raise ValueError(f"{name} has another form than this build knows: {before}")
        (static / name).write_text(code.replace(before, after), encoding="utf-8")


def prune(static):
    """Delete files that no page asks for any more."""
    for pattern in UNUSED_FILES:
        for path in list(static.rglob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for script in static.glob("scripts/*.js"):
        script.write_text(
            re.sub(r"//# sourceMappingURL=.*", "", script.read_text(encoding="utf-8"))
        )


def polish(site, icons):
    """All of them, after the pages, which show these icons."""
    static = site / "_static"
    subset_icons(static, icons)
    dark_without_script(static)
    change_scripts(static)
    shutil.copy(HERE.parent / "carry" / "print.js", static / "dpnotes.print.js")
    prune(static)
    drop_unused_rules(site)
