"""Which changes of the code are worth a run, over mutmut's operators, and which went unnoticed."""

import libcst as cst

PEELED = (
    *("clip", "minimum", "maximum", "min", "max", "abs", "sqrt", "exp", "expm1", "log", "log1p"),
    *("ceil", "floor", "round", "nextafter", "sort", "cumsum", "where", "logsumexp"),
)


def numbers(node):
    """One more; and one less or, for a fraction, half. A tolerance (below 1e-5) only one more."""
    if isinstance(node, cst.Imaginary):
        return
    value = node.evaluated_value
    for other in (value + 1, value - 1 if isinstance(value, int) else value / 2):
        if other != value and (other > value or value > 1e-5 or value == 0) and other >= 0:
            yield node.with_changes(value=repr(other))


def peel(node):
    """``clip(x, 0, 1)`` becomes ``x``: the bound, the root or the logarithm is forgotten."""
    name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
    plain = node.args and not node.args[0].star and not node.args[0].keyword
    if plain and isinstance(name, cst.Name) and name.value in PEELED:
        first = node.args[0].value
        lpar, rpar = [cst.LeftParen(), *first.lpar], [*first.rpar, cst.RightParen()]
        yield first.with_changes(lpar=lpar, rpar=rpar)


def keywords_dropped(node):
    """A keyword argument left to its default."""
    for i, argument in enumerate(node.args):
        if argument.keyword is not None:
            yield node.with_changes(args=[*node.args[:i], *node.args[i + 1 :]])


def guards(node):
    """``if condition:`` never taken."""
    yield node.with_changes(test=cst.Name("False"))


def statements(node):
    """A call made for its effect, as a check of an argument, is left out."""
    if not isinstance(node.value, cst.BaseString | cst.ConcatenatedString | cst.Yield):
        yield node.with_changes(value=cst.Name("None"))


def choose_operators(mutators):
    """Of mutmut's operators those that change a result; texts and plain crashes are left out.

    Left out: strings (messages), ``a = None`` and positional arguments dropped or None (they crash
    wherever they are reached). Added: the functions above.
    """
    left_out = (mutators.operator_string, mutators.operator_assignment, mutators.operator_number)
    left_out += (mutators.operator_arg_removal, mutators.operator_dict_arguments)
    kept = [pair for pair in mutators.mutation_operators if pair[1] not in left_out]
    added = [(cst.BaseNumber, numbers), (cst.Call, peel), (cst.Call, keywords_dropped)]
    mutators.mutation_operators[:] = [*kept, *added, (cst.If, guards), (cst.Expr, statements)]


# ------------------------------------------------------------------------------------ the survivors


def function_of(mutant):
    """``composition.basic_composition`` from mutmut's name of one of its mutants."""
    module, _, name = mutant.partition("__mutmut_")[0].rpartition(".")
    name = name.removeprefix("x_").replace("xǁ", "").replace("ǁ", ".")
    return f"{module.removeprefix('dpnotes.')}.{name}"


def change_of(tool, mutant, path):
    """(line or lines as they are, as they became) of a mutant."""
    diff = tool.get_diff_for_mutant(mutant, path=path).splitlines()[2:]

    def pick(sign):
        return " ".join(line[1:].strip() for line in diff if line.startswith(sign)).strip()

    return pick("-"), pick("+")


def survivors(tool, data):
    """[(function, before, after)] of a room."""
    return [
        (function_of(name), *change_of(tool, name, data.path))
        for name, code in sorted(data.exit_code_by_key.items())
        if code in (0, 5, 33)
    ]


def is_explained(survivor, table):
    """Whether `explained` has an entry for this change."""
    function, before, after = survivor
    return any(
        entry["function"] == function and entry["line"] == before and after in entry["became"]
        for entry in table["explained"]
    )


def report(tool, data, table):
    """The counts of one room, and its unexplained survivors."""
    codes = [code for code in data.exit_code_by_key.values() if code is not None]
    if not codes:
        return None, []
    alive = survivors(tool, data)
    open_ones = [each for each in alive if not is_explained(each, table)]
    row = {"mutants": len(data.exit_code_by_key), "run": len(codes)}
    row |= {"killed": len(codes) - len(alive), "explained": len(alive) - len(open_ones)}
    return row | {"open": len(open_ones)}, open_ones
