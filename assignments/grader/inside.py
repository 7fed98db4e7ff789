"""The student's side of the sandbox: runs cells, answers calls. What it says is data, no more."""

import __future__

import json
import os
import resource
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(__file__))
from wire import pack, receive, send, unpack


def limit(limits):
    """Hard limits for this process and all that it starts."""
    for name in ("AS", "CPU", "NPROC", "FSIZE", "NOFILE"):
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limits[name], limits[name]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def channel():
    """Keep the pipe to the grader for ourselves; prints go to stderr, input is empty."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return source, target


def new_shell():
    """An IPython without history, colours or windows: a notebook's magics and displays work."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    class Shell(InteractiveShell):
        def enable_gui(self, gui=None):
            return None

        def enable_matplotlib(self, gui=None):
            return gui, "agg"

    plain = {"colors": "nocolor", "xmode": "Plain"}  # longer tracebacks load what makes them
    quiet = {"HistoryManager": {"enabled": False}, "InteractiveShell": plain}
    shell = Shell.instance(config=Config(quiet))
    # as in the page, whose Python is newer: annotations are not run
    shell.compile.flags |= __future__.annotations.compiler_flag
    return shell


def interrupt(*_):
    raise TimeoutError("this cell ran too long")


def run(shell, message):
    """Execute one cell as Jupyter would; so much work, so much time by the clock."""
    if "matplotlib" in message["source"]:
        without_windows()
    timers = {signal.SIGPROF: (signal.ITIMER_PROF, "work")}
    timers |= {signal.SIGALRM: (signal.ITIMER_REAL, "clock")}
    for number, (timer, seconds) in timers.items():
        signal.signal(number, interrupt)
        signal.setitimer(timer, message[seconds], 1.0)
    try:
        result = shell.run_cell(message["source"], store_history=False)
        error = result.error_before_exec or result.error_in_exec
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
    return {} if error is None else described(error)


def without_windows():
    """A request for a window, which there is not, must not stop the cell that it stands in."""
    import matplotlib

    matplotlib.use = lambda *_, **__: None


def described(error):
    """An exception as data: its name, its builtin class, its text."""
    kind = next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
    try:
        message = str(error)[:300]
    except BaseException:  # a student's own __str__
        message = ""
    return {"error": type(error).__name__, "kind": kind, "message": message}


def look(names, wanted):
    """Which of the wanted names exist: functions by name, everything else by value."""
    values = {}
    for name in (name for name in wanted if name in names):
        try:
            value = names[name]
            values[name] = {"function": True} if callable(value) else {"value": pack(value)}
        except TypeError as error:
            values[name] = {"error": str(error)}
    return {"found": values}


def call(names, message):
    args, kwargs = unpack(message["args"], names), unpack(message["kwargs"], names)
    return {"value": pack(names[message["name"]](*args, **kwargs))}


def lend(names, message):
    """Define some names by a given answer. Its helpers stay its own."""
    space = dict(names)
    exec(message["source"], space)
    names.update({name: space[name] for name in message["names"]})
    return {}


def main():
    limit(json.loads(sys.argv[1]))
    source, target = channel()
    shutil.copytree(sys.argv[2], os.environ["MPLCONFIGDIR"])
    os.cpu_count = lambda: 4  # pools on a large machine would start more than may run here
    sys.path.insert(0, "")  # as in Jupyter: what `%%writefile` wrote can be imported
    shell, own = new_shell(), os.getpid()
    while True:
        try:
            message = receive(source)
        except EOFError:
            return
        names, do = shell.user_ns, message["do"]
        try:
            if do == "run":
                reply = run(shell, message)
            elif do == "look":
                reply = look(names, message["names"])
            else:
                reply = (lend if do == "lend" else call)(names, message)
        except BaseException as error:  # whatever a student's code raises, SystemExit too
            reply = described(error)
        if os.getpid() != own:
            os._exit(0)  # the student's code has forked: one process answers, not all of them
        send(target, {"id": message["id"], **reply})


if __name__ == "__main__":
    main()
