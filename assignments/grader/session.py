"""One student's Python in the sandbox, and what can be asked of it.

It can die at any time: the student's code exits, is killed or floods the pipe. It is then started
again, the cells before are replayed without those that killed it, and grading goes on.
"""

import builtins
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from importlib.util import find_spec

import numpy as np
import psutil

from .sandbox import HERE, bwrap_command, environment
from .wire import pack, receive, send, unpack

LOG_BYTES = 20_000


class Gone(Exception):
    """The sandbox ended in the middle of something."""


class Session:
    """`run` cells, `look` up names, `call` functions."""

    def __init__(self, given, limits, cache_folder, unsafe=False, user=None):
        self.given, self.limits, self.cache = given, limits, cache_folder
        self.unsafe, self.user = unsafe, user
        self.end = time.monotonic() + limits.total_seconds
        self.done, self.deadly, self.fatal = (
            [],
            set(),
            {},
        )  # cells run, cells that ended the process, calls that did
        self.starts, self.output, self.process, self.reason = 0, b"", None, "never started"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """A new process in the sandbox, or, unsafely, one in a folder of its own."""
        self.starts += 1
        if self.starts > self.limits.restarts + 1 or time.monotonic() > self.end:
            raise Gone("was stopped: there were too many crashes or no time was left")
        if self.unsafe:
            self.temporary = tempfile.mkdtemp(prefix="unsafe-")
            os.chmod(self.temporary, 0o777)
            command, folder, cache = [], copied(self.temporary), self.cache
        else:
            self.temporary = "/tmp"
            command, folder = bwrap_command(self.limits, self.cache), "/grader"
            cache = "/grader/cache"
        command += [sys.executable, f"{folder}/inside.py", self.limits.of_process(), cache]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            user=self.user,
            cwd="/tmp",
            env=environment(folder, self.temporary),
            start_new_session=True,
        )
        self.reason, self.deadline, self.number = "ended by itself", self.end, 0
        for task in (self.drain, self.watch):
            threading.Thread(target=task, args=[self.process], daemon=True).start()

    def stop(self):
        if self.process is None:
            return
        self.kill(self.process)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass
        if self.unsafe:
            shutil.rmtree(self.temporary, ignore_errors=True)
        self.process = None

    def kill(self, process):
        try:
            os.killpg(process.pid, 9)  # in the sandbox the first process takes all others with it
        except ProcessLookupError:
            pass

    def drain(self, process):
        """Read all that is printed, keep the beginning."""
        while data := process.stderr.read1(65536):
            self.output = (self.output + data)[:LOG_BYTES]
        process.stderr.close()

    def watch(self, process):
        """Kill at the deadline, and when all processes together use too much memory."""
        while process.poll() is None:
            if time.monotonic() > self.deadline:
                self.reason = "took too long"
            elif resident(process.pid) > self.limits.memory_mb * 2**20:
                self.reason = "used too much memory"
            else:
                time.sleep(0.1)
                continue
            self.kill(process)
            return

    def allow(self, seconds):
        """The process is killed unless it is done in time."""
        self.deadline = min(self.end, time.monotonic() + seconds)

    def ask(self, **message):
        """One question, one answer; `Gone` when there is none."""
        self.number += 1
        try:
            send(self.process.stdin, {"id": self.number, **message})
            reply = receive(self.process.stdout)
            if reply["id"] != self.number:
                raise ValueError("an answer out of turn")
            return reply
        except (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError) as error:
            self.stop()
            raise Gone(self.reason) from error

    def alive(self):
        """Start, or start again and replay what ran before."""
        while self.process is None:
            self.start()
            for source in self.given:
                self.ask(do="run", source=source, seconds=self.limits.total_seconds)
            try:
                for index in [i for i in range(len(self.done)) if i not in self.deadly]:
                    self.current = index
                    self.run_now(self.done[index])
            except Gone:
                self.deadly.add(self.current)

    def run_now(self, source):
        seconds = self.limits.cell_seconds
        self.allow(seconds + 3)
        return self.ask(do="run", source=source, seconds=seconds)

    def run(self, source):
        """Execute a cell; returns what went wrong, or an empty string."""
        self.alive()
        self.done.append(source)
        try:
            reply = self.run_now(source)
        except Gone as gone:
            self.deadly.add(len(self.done) - 1)
            return f"the cell {gone}"
        return f"{reply['error']}: {reply.get('message', '')}" if "error" in reply else ""

    def begin_test(self):
        self.alive()
        self.allow(self.limits.cell_seconds)

    def look(self, names):
        return self.ask(do="look", names=sorted(names))["found"]

    def call(self, name, args, kwargs):
        if self.process is None or self.fatal.get(name, 0) > 1:
            raise Gone(self.reason)
        try:
            reply = self.ask(
                do="call", name=name, args=pack(fresh(args)), kwargs=pack(fresh(kwargs))
            )
        except Gone:
            self.fatal[name] = self.fatal.get(name, 0) + 1
            raise
        if "error" in reply:
            raise student_error(str(reply["error"]), str(reply.get("message", "")))
        return unpack(reply["value"])


def copied(folder):
    """What the unsafe way needs, where any user can read it."""
    target = os.path.join(folder, "grader")
    shutil.copytree(os.path.dirname(find_spec("dpnotes").origin), os.path.join(target, "dpnotes"))
    for name in ("inside.py", "wire.py"):
        shutil.copy(HERE / name, target)
    return target


def fresh(values):
    """A generator travels as a copy: spawn a child, so that two calls do not get the same noise."""
    if isinstance(values, np.random.Generator):
        return values.spawn(1)[0]
    if isinstance(values, (list, tuple)):
        return type(values)(fresh(v) for v in values)
    return {k: fresh(v) for k, v in values.items()} if isinstance(values, dict) else values


class StudentError(Exception):
    """An exception that the student's code raised; also of the builtin type of that name."""


def student_error(name, message):
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or issubclass(
        kind, (UnicodeError, ExceptionGroup)
    ):
        kind, name = Exception, "an exception"
    error = type(
        "StudentError", (StudentError,) if kind is Exception else (StudentError, kind), {}
    )(message[:300])
    error.name = name
    return error


def resident(pid):
    """Memory of a process and its children in bytes."""
    total = 0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return 0
    for process in family:
        try:
            total += process.memory_info().rss
        except psutil.Error:
            continue
    return total
