"""Style sheets without the rules for what no page has, with breakpoints that follow the text.

A breakpoint in em counts in the reader's text size: where that is twice as large, a page has room
for half as much, and gets the layout of a smaller screen.
"""

import re

import tinycss2

GROUPS = ("media", "supports")


def drop_unused(css, used):
    """The rules of a style sheet that fit a page whose tags, classes and ids are all in `used`."""
    return "".join(used_rules(tinycss2.parse_stylesheet(css, skip_comments=True), used))


def used_rules(rules, used):
    """The rules that stay, as text; what is neither a style nor a group of styles stays."""
    for rule in rules:
        if rule.type == "qualified-rule":
            fitting = [one for one in selectors(rule.prelude) if used.issuperset(names(one))]
            if fitting:
                heads = ",".join(map(tinycss2.serialize, fitting))
                yield f"{heads}{{{tinycss2.serialize(rule.content)}}}"
        elif rule.type == "at-rule" and rule.lower_at_keyword in GROUPS:
            inner = "".join(used_rules(tinycss2.parse_rule_list(rule.content), used))
            if inner.strip():
                yield f"@{rule.at_keyword}{in_em(tinycss2.serialize(rule.prelude))}{{{inner}}}"
        else:
            yield rule.serialize()


def in_em(query):
    """The condition of a group, with lengths in em in place of pixels."""
    return re.sub(r"([\d.]+)px", lambda size: f"{float(size[1]) / 16:g}em", query)


def selectors(prelude):
    """What stands between the commas in front of a rule."""
    parts = [[]]
    for token in prelude:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def names(selector):
    """The tags, classes and ids that it asks for. Conditions in brackets are taken as met."""
    before = None
    for token in selector:
        if token.type == "hash" or (token.type == "ident" and before != ":"):
            yield token.value
        before = token
