"""Where a reader can turn: what a page says of the repository, once `_config.yml` names it.

Text in a block `{repository}` is printed only then; an address in it that begins with
`repository:` is one of the repository. Every page ends with a link to report a mistake.
`{get-package}` says how to install the package, with and without a repository. `{kept-by}` says
who answers for this copy and where a mistake is reported, as far as `_config.yml` does.
"""

from urllib.parse import quote

from sphinx.util.docutils import SphinxDirective

LINE = '<p class="turn"><a href="{0}">A mistake on this page? Tell us.</a></p>'


class Repository(SphinxDirective):
    """Text about the repository, or nothing."""

    has_content = True

    def run(self):
        address = self.config.repository.rstrip("/")
        if not address:
            return []
        for place, line in enumerate(self.content):
            self.content[place] = line.replace("](repository:", f"]({address}")
        return self.parse_content_to_nodes()


class KeptBy(SphinxDirective):
    """Who answers for this copy, or nothing."""

    def run(self):
        name, address = self.config.kept_by, self.config.report_to
        said = f"{name} answers for this copy of the book. " * bool(name)
        said += f"A mistake is reported at <{address}>." * bool(address)
        return self.parse_text_to_nodes(said)


INSTALL = """\
To use the package on your own computer, install it {0}; it needs NumPy and SciPy.

```sh
{1}
```
"""


class GetPackage(SphinxDirective):
    """How to get the package: from the repository, or from the folder of the book."""

    def run(self):
        return self.parse_text_to_nodes(install(self.config.repository.rstrip("/")))


def install(address):
    """The words and the command, for a repository at `address`, or for none."""
    if address:
        return INSTALL.format("from its repository", f"pip install git+{address}")
    return INSTALL.format(
        "from the folder of this book, the one with `pyproject.toml`", "pip install ."
    )


def offer(app, pagename, templatename, context, doctree):
    """Put the link below the text of a page."""
    issue = f"{app.config.repository.rstrip('/')}/issues/new?title="
    issue += quote(f"On the page {pagename}")
    address = app.config.report_to or (issue if app.config.repository else "")
    if address and doctree is not None:
        context["body"] += LINE.format(address)


def setup(app):
    """`repository` is an address like https://github.com/owner/name, or empty."""
    app.add_config_value("repository", "", "env", types=[str])
    app.add_directive("repository", Repository)
    app.add_config_value("kept_by", "", "env", types=[str])
    app.add_config_value("report_to", "", "env", types=[str])
    app.add_directive("get-package", GetPackage)
    app.add_directive("kept-by", KeptBy)
    app.connect("html-page-context", offer)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
