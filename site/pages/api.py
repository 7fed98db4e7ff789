"""The page "API": every public name with its plain signature, what its parameters may be, and where
it is proved. All of it is read from the package; names in text and cells of other pages lead to it.
"""

import inspect
import re
import typing
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform

import dpnotes as dp
from pages.ledger import chapters, claims, label

PAGE = "chapters/api"
CALL = re.compile(
    r'<span class="n">(\w+)</span><span class="o">\.</span><span class="n">(\w+)</span>'
)
PLACE = "% every public name"  # in the page: where the list comes
MEMBERS = ["   :members:", "   :inherited-members: tuple"]
WITH_ID = re.compile(r"\b[A-Z]-[\w.-]*\w")
MARKS = re.compile(r"(``.+?``|`.+?`)", re.S)


@cache
def rooms():
    """[(module, {name: object})]: `dpnotes`, then what each page's room offers beside."""
    offered = [(dp, {name: getattr(dp, name) for name in dp.__all__})]
    pages = [name.replace("-", "_") for name in chapters()]
    known = [each.name for each in iter_modules(import_module("dpnotes.chapters").__path__)]
    for name in sorted(known, key=pages.index):
        room = import_module(f"dpnotes.chapters.{name}")
        own = {key: call for key, call in vars(room).items() if _is_offered(call, room, key)}
        offered.append((room, dict(sorted(own.items()))))
    return offered


def _is_offered(call, room, name):
    home = getattr(call, "__module__", room.__name__) or ""
    known = any(call is getattr(dp, each) for each in dp.__all__)
    return name[0] != "_" and callable(call) and home.startswith(room.__name__) and not known


def write_list(app, docname, source):
    """Headings, and what autodoc is to show below each."""
    if docname != PAGE:
        return
    lines = []
    for room, names in rooms():
        page = room.__name__.split(".")[-1].replace("_", "-")
        lines += [f"## {'dp' if room is dp else page.replace('-', '_')}", ""]
        lines += [] if room is dp else [f"Page {{doc}}`{page}`.", ""]
        lines += ["```{eval-rst}"]
        for name, thing in names.items():
            kind = "class" if inspect.isclass(thing) else "function"
            kind = kind if inspect.isclass(thing) or inspect.isroutine(thing) else "data"
            lines += [f".. auto{kind}:: {room.__name__}.{name}"]
            lines += {"class": MEMBERS, "data": ["   :no-value:"], "function": []}[kind] + [""]
        lines += ["```", ""]
    source[0] = source[0].replace(PLACE, "\n".join(lines))


def plain_signature(app, what, name, thing, options, shown, returns):
    """Names and defaults; what a parameter may be stands below."""
    if not callable(thing) or what == "data":
        return None
    try:
        taken = inspect.signature(thing)
    except ValueError:
        return None
    bare = [p.replace(annotation=p.empty) for p in taken.parameters.values() if p.name != "self"]
    returns = taken.return_annotation if inspect.isroutine(thing) else ""
    returns = getattr(returns, "__name__", str(returns)).replace("Array", "array")
    return str(inspect.Signature(bare)), "" if returns == "_empty" else returns


def describe(app, what, name, thing, options, lines):
    """Docstrings are plain text with `code`: nothing else in them is markup."""
    ids = {claim["id"] for claim in claims()}

    def words(text):
        return WITH_ID.sub(
            lambda m: f":prf:ref:`{m[0]} <{label(m[0])}>`" if m[0] in ids else m[0], _escape(text)
        )

    text = "\n".join(lines)
    if what == "data":  # not the docstring of its class
        text = f"A {type(thing).__name__}."
    blocks = re.split(r"(\n\n>>>.*?(?=\n\n|\Z))", f"\n\n{text}", flags=re.S)
    for number in range(0, len(blocks), 2):
        parts = MARKS.split(blocks[number])
        code = [f"\\ ``{part.strip('`')}``\\ " for part in parts[1::2]]
        parts[0::2] = map(words, parts[0::2])
        parts[1::2] = code
        blocks[number] = "".join(parts)
    lines[:] = "".join(blocks).strip().splitlines()
    call = thing.__init__ if inspect.isclass(thing) else thing
    lines += ["", *parameters(call), ""] if hasattr(call, "__wrapped__") else [""]


def parameters(call):
    hints = typing.get_type_hints(inspect.unwrap(call), include_extras=True)
    for name, taken in inspect.signature(call).parameters.items():
        if allowed := _say_what_is_allowed(hints.get(name)):
            given = "" if taken.default is not None else ", or None"
            yield f":param {name}: {_escape(allowed)}{given}"


def _escape(text):
    return re.sub(r"([*_|\\])", r"\\\1", text)


@cache
def _say_what_is_allowed(hint):
    """What a kind of parameter may be, in the words of its own refusal."""
    hint = next((one for one in typing.get_args(hint) if type(None) in typing.get_args(hint)), hint)
    arrays = "Buffer" in str(hint)
    if inspect.isclass(hint):
        return f"a {hint.__name__}"
    for nothing in ([[2.0, 3.5]] if arrays else []) + [float("nan"), object()]:
        for check in getattr(hint, "__metadata__", ()):
            try:
                check("it", nothing)
            except ValueError as error:
                words = re.sub(r"^it must (be|hold) |, got .*$", "", str(error))
                several = arrays and "array" not in words and words.startswith("a ")
                return words + (", or an array of them" if several else "")
    return ""


def skip_aliases(app, what, name, thing, skip, options):
    """Fields of named tuples, of which Python says nothing but their numbers."""
    return True if (inspect.getdoc(thing) or "").startswith("Alias for field") else None


def short_names(app, doctree):
    """``dp.`` and the room alone, as pages call them."""
    if app.env.docname == PAGE:
        for node in doctree.findall(addnodes.desc_addname):
            name = node.astext().replace("dpnotes.chapters.", "").replace("dpnotes.", "dp.")
            node.children = [nodes.Text(name)]


@cache
def places():
    """How text names something public -> its anchor on the page."""
    anchors = {}
    for room, names in rooms():
        short = "dp" if room is dp else room.__name__.split(".")[-1]
        for name, thing in names.items():
            anchor = f"{room.__name__}.{name}"
            home = (getattr(thing, "__module__", None) or short).split(".")
            anchors |= {f"{each}.{name}": anchor for each in (short, "dpnotes", *home[1:])}
    queries = [name for name, each in vars(dp.PrivacyLoss).items() if name[0] != "_"]
    return anchors | {f"PrivacyLoss.{name}": f"dpnotes.PrivacyLoss.{name}" for name in queries}


class LinkNames(SphinxPostTransform):
    """Public names in code within sentences lead to the page."""

    default_priority = 8

    def run(self, **kwargs):
        if PAGE not in self.env.all_docs or self.env.docname == PAGE:
            return
        address = self.app.builder.get_relative_uri(self.env.docname, PAGE)
        for code in list(self.document.findall(nodes.literal)):
            anchor = places().get(code.astext().split("(")[0])
            if anchor and not isinstance(code.parent, nodes.reference | nodes.title):
                link = nodes.reference("", "", refuri=f"{address}#{anchor}", internal=True)
                code.parent.replace(code, link)
                link += code


def link_first_calls(body, address):
    """A page whose cells lead there, at the first use of each public name."""
    left = dict(places())

    def link(call):
        anchor = left.pop(f"{call[1]}.{call[2]}", None)
        return f'<a href="{address}#{anchor}">{call[0]}</a>' if anchor else call[0]

    return CALL.sub(link, body)


def link_cells(app, pagename, templatename, context, doctree):
    if doctree is not None and pagename != PAGE and PAGE in app.env.all_docs:
        context["body"] = link_first_calls(context["body"], context["pathto"](PAGE))


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("html-page-context", link_cells)
    app.connect("source-read", write_list)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-process-docstring", describe)
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("doctree-read", short_names)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
