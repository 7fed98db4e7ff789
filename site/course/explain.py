"""References that explain themselves: which links a page's script may show in place.

The first use of each word of the glossary on a page becomes a link to it. Links to statements,
equations, sources and to the glossary are marked; `explain.js` shows what they lead to.
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from course import chapters


class LinkTerms(SphinxPostTransform):
    """The first use of each word of the glossary on a page leads to it."""

    default_priority = 7

    def run(self, **kwargs):
        known = self.env.get_domain("std").objects
        terms = {name.lower(): place for (kind, name), place in known.items() if kind == "term"}
        if not terms or self.env.docname not in chapters(self.env):
            return
        words = "|".join(map(re.escape, sorted(terms, key=len, reverse=True)))
        pattern = re.compile(rf"\b({words})s?\b", re.I)
        for text in list(self.document.findall(nodes.Text)):
            if is_prose(text):
                self.link_first_uses(text, pattern, terms)

    def link_first_uses(self, text, pattern, terms):
        """Replace a text by itself with links; a word that is linked leaves `terms`."""
        parts, end = [], 0
        for match in pattern.finditer(text):
            target = terms.pop(match[1].lower(), None)
            if target:
                page, place = target
                address = self.app.builder.get_relative_uri(self.env.docname, page)
                parts += [nodes.Text(text[end : match.start()])]
                parts += [nodes.reference("", match[0], refuri=f"{address}#{place}", internal=True)]
                end = match.end()
        if parts:
            text.parent.replace(text, [*parts, nodes.Text(text[end:])])


def is_prose(text):
    """Plain words of a paragraph in view: no title, link, code or formula, nothing folded."""
    node = text.parent
    if not isinstance(node, nodes.paragraph):
        return False
    while node is not None:
        if "dropdown" in node.get("classes", ()) or isinstance(node, nodes.literal_block):
            return False
        node = node.parent
    return True


def mark_explained(app, doctree, docname):
    """Links to statements, equations, sources and words of the glossary."""
    statements = getattr(app.env, "proof_list", {})
    for link in doctree.findall(nodes.reference):
        page, _, place = link.get("refuri", "").partition("#")
        place = place or link.get("refid", "")
        short = place.startswith(("term-", "equation-")) or (place and "references" in page)
        if link.get("internal") and (place in statements or short):
            link["classes"].append("explains")


def setup(app):
    """Link words before references are resolved, mark links after."""
    app.add_post_transform(LinkTerms)
    app.connect("doctree-resolved", mark_explained)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
