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
TASKS = {
    "Losses, and what they cost": "PrivacyLoss gaussian laplace discrete_gaussian discrete_laplace"
    " randomized_response finite bounded_range subsample subsample_substitution",
    "How much noise": "calibrate gaussian_sigma gaussian_delta",
    "Publish": "safe_sum safe_count safe_mean safe_quantile to_grid clip_rows secure_rng",
    "Mechanisms": "discrete_laplace_mechanism discrete_gaussian_mechanism laplace_mechanism"
    " gaussian_mechanism randomized_response_mechanism randomized_response_estimate",
    "Prove a number": "prove check Proof",
    "From Rényi and concentrated DP": "rdp_to_dp rdp_to_dp_improved rdp_to_dp_optimal zcdp_to_dp"
    " zcdp_to_dp_improved",
    "How far two laws are apart": "tradeoff hockey_stick max_divergence approximate_max_divergence"
    " renyi_divergence kl total_variation density_laws dominating_pair",
}
# what Sphinx writes around each word, for nothing: a third of the page
AROUND = {
    r'<span class="(?:pre|n|o|p|default_value)">([^<]*)</span>': r"\1",
    r'<span class="w">(\s*)</span>': r"\1",
    r' title="Link to this (?:definition|heading)"': "",
    r"docutils literal notranslate": "literal",
}
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
    (_, everything), *others = rooms()
    lines = []
    for task, names in by_task(everything).items():
        lines += [f"## {task}", "", *listed(dp, names)]
    lines += ["## By chapter", "", "`from dpnotes.chapters import composition`, and so on.", ""]
    for room, names in others:
        page = room.__name__.split(".")[-1]
        lines += [f"### {page}", "", f"Page {{doc}}`{page.replace('_', '-')}`.", ""]
        lines += listed(room, names)
    source[0] = source[0].replace(PLACE, "\n".join(lines))


def by_task(everything):
    """{task: {name: object}} of what `dpnotes` itself offers; each name has one task."""
    told = [name for names in TASKS.values() for name in names.split()]
    if sorted(told) != sorted(everything):
        raise ValueError(f"one task for each name: {sorted(set(told) ^ set(everything))}")
    return {
        task: {name: everything[name] for name in names.split()} for task, names in TASKS.items()
    }


def listed(room, names):
    """Links to the names, then what autodoc is to show of each."""
    links = (f'<a href="#{room.__name__}.{name}"><code>{name}</code></a>' for name in names)
    lines = ["```{raw} html", f'<p class="api-names">{" ".join(links)}</p>', "```", ""]
    lines += ["```{eval-rst}"]
    for name, thing in names.items():
        kind = "class" if inspect.isclass(thing) else "function"
        kind = kind if inspect.isclass(thing) or inspect.isroutine(thing) else "data"
        lines += [f".. auto{kind}:: {room.__name__}.{name}"]
        lines += {"class": MEMBERS, "data": ["   :no-value:"], "function": []}[kind] + [""]
    return [*lines, "```", ""]


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


def lighten(app, pagename, templatename, context, doctree):
    """The page without the elements that show nothing."""
    if pagename == PAGE:
        for pattern, inside in AROUND.items():
            context["body"] = re.sub(pattern, inside, context["body"])


def link_cells(app, pagename, templatename, context, doctree):
    if doctree is not None and pagename != PAGE and PAGE in app.env.all_docs:
        context["body"] = link_first_calls(context["body"], context["pathto"](PAGE))


def setup(app):
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("html-page-context", link_cells)
    app.connect("html-page-context", lighten)
    app.connect("source-read", write_list)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-process-docstring", describe)
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("doctree-read", short_names)
    app.add_post_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
