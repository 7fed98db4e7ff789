# Run this cell once, before the others: a public test that fails then says what your answer gave.
import ast
import functools
import types


class PublicTests:
    """What a public test says where it fails, and where it cannot use what an answer returned."""

    answers = ()  # names that the sheet's answers define
    last = "The last call was {}; it returned {}."
    forgotten = "The last call was {}; it returned {}. Did you forget `return`?"

    def __init__(self, shell):
        """Watch the tests that are run in a notebook."""
        self.shell, self.source, self.calls, self.watched = shell, "", [], {}
        shell.events.register("pre_run_cell", self.begin)
        shell.events.register("post_run_cell", self.end)
        shell.set_custom_exc((Exception,), self.failed)

    @classmethod
    def wanted(cls, source, line, space):
        """The message of the assertion at a line of a test, or of the next one below; else ""."""
        below = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Assert) and n.msg]
        below = [n for n in below if n.end_lineno >= line]
        if not below:
            return ""
        message = min(below, key=lambda node: node.lineno).msg
        parts = getattr(message, "values", [message])
        said = "".join(cls.part_of_message(part, space) for part in parts)
        before, _, last = said.rpartition(";")
        return before if before and "…" in last else said

    @staticmethod
    def part_of_message(part, space):
        """A text, or a number; "…" for one that could not be computed from what an answer gave."""
        try:
            inside = ast.JoinedStr([part]) if isinstance(part, ast.FormattedValue) else part
            code = ast.fix_missing_locations(ast.Expression(inside))
            return str(eval(compile(code, "message", "eval"), space))
        except Exception:
            return "…"

    @classmethod
    def call_text(cls, name, args, options, value):
        """The last call of an answer in a test, and what it returned."""
        words = [cls.brief(one) for one in args]
        words += [f"{key}={cls.brief(one)}" for key, one in options.items()]
        sentence = cls.forgotten if value is None else cls.last
        return sentence.format(f"{name}({', '.join(words)})", cls.brief(value))

    @staticmethod
    def brief(value):
        """A value in at most 120 characters."""
        if type(value).__name__ == "Generator":
            return "rng"
        if type(value).__name__ == "ndarray" and value.size > 6:
            return f"an array of shape {value.shape}"
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
            value = value.item()
        try:
            return repr(value)[:120]
        except Exception:  # of a class of one's own
            return "something that cannot be shown"

    @classmethod
    def watched_in(cls, space, tree, calls):
        """{name: an answer that a test names, which notes its calls}."""

        def watched(name, function):
            @functools.wraps(function)
            def call(*args, **options):
                value = function(*args, **options)
                calls[:] = [(name, args, options, value)]
                return value

            return call

        named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        made = {name: space[name] for name in named & set(space) & set(cls.answers)}
        functions = {n: made[n] for n in made if isinstance(made[n], types.FunctionType)}
        return {name: watched(name, function) for name, function in functions.items()}

    def begin(self, info):
        """Before a cell runs: of the answers that a test names each call is noted."""
        self.source, self.calls = info.raw_cell, []
        try:
            tree = ast.parse(self.source)
        except (SyntaxError, ValueError):
            return
        if any(isinstance(node, ast.Assert) for node in tree.body):
            self.watched = self.watched_in(self.shell.user_ns, tree, self.calls)
            self.shell.user_ns.update(self.watched)

    def end(self, result):
        for name, made in self.watched.items():
            if self.shell.user_ns.get(name) is made:
                self.shell.user_ns[name] = made.__wrapped__
        self.watched = {}

    def failed(self, shell, kind, error, trace, tb_offset=None):
        """Show a sentence for a test's own error; of an answer's error its traceback."""
        steps, own = [], self.begin.__code__.co_filename
        while trace:
            steps, trace = [*steps, trace], trace.tb_next
        usual = [step for step in steps if step.tb_frame.f_code.co_filename != own]
        top = next((s for s in usual if s.tb_frame.f_globals is shell.user_ns), None)
        if top and self.watched and len(usual) == len(steps):
            message = str(error) if isinstance(error, AssertionError) else ""
            message = message or self.wanted(self.source, top.tb_lineno, shell.user_ns)
            if message:
                told = [message, *(self.call_text(*call) for call in self.calls)]
                kind, error, usual = AssertionError, AssertionError(". ".join(told)), [top]
        for step in reversed(usual):
            trace = types.TracebackType(trace, step.tb_frame, step.tb_lasti, step.tb_lineno)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset if len(usual) > 1 else 0)


if "IPKernelApp" in getattr(globals().get("get_ipython", object)(), "config", {}):
    PublicTests(get_ipython())  # noqa: F821
