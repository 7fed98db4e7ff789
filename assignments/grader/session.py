"""One student's Python in the sandbox, and what can be asked of it.

It can die at any time: the student's code exits, is killed or floods the pipe. It is then started
again, the cells before are replayed without those that killed it, and grading goes on.
"""

import builtins
import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import psutil

from .processes import ended, family, files, held, worked
from .sandbox import SandboxError
from .wire import pack, receive, send, unpack

LOG_BYTES = 20_000
LAST_WORDS = 5  # seconds for what was printed last: without a sandbox a child may hold the pipe
SHARE = 0.3  # of the time by the clock: who waits longer for a processor has busy neighbours
FIRST, SECOND = 0.5, 0.85  # of the time, after which the cells of the two runs are only tried
LEAST = 0.5  # seconds for a cell where no time is left
LONGEST = 300  # characters of a text from the sandbox
FAILURES = (OSError, EOFError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
TEXTS = ("error", "kind", "message")


class SandboxEnded(Exception):
    """The sandbox ended in the middle of something."""


class Session:
    """One student's Python: `run` cells, `look` up names, `call` functions, `lend` answers."""

    def __init__(self, given, limits, launcher):
        self.given, self.limits, self.launcher = given, limits, launcher
        self.end = time.monotonic() + limits.patience * limits.total_seconds
        self.before, self.now = 0.0, (0.0, 0.0)  # (work, waiting) of ended processes, of this one
        self.share = FIRST  # of all time: until then cells may run
        self.late = False  # whether something was lost because others kept the processors busy
        self.works = False  # whether the given cells have run here
        self.done = []  # cells run
        self.deadly, self.fatal = set(), {}  # cells and calls that ended the process
        self.starts, self.output, self.process, self.reason = 0, b"", None, "never started"
        self.ending = threading.Lock()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        """A new process, while there are tries and time left."""
        self.starts += 1
        self.before, self.now = self.before + self.now[0], (0.0, 0.0)
        if self.starts > self.limits.restarts + 1 or self.used_up():
            raise SandboxEnded("was stopped: there were too many crashes or no time was left")
        self.process = self.launcher.start()
        self.reason, self.number = "ended by itself", 0
        self.allow(self.limits.total_seconds)
        threading.Thread(target=self.watch, args=[self.process], daemon=True).start()
        self.drainer = threading.Thread(target=self.drain, args=[self.process], daemon=True)
        self.drainer.start()

    def stop(self):
        if self.process is None:
            return
        self.kill(self.process)
        with self.ending:
            self.process.wait()
        self.drainer.join(LAST_WORDS)
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                pipe.close()
        self.launcher.stop()
        self.process = None

    def kill(self, process):
        """End a process and its group; in the sandbox the first takes all others with it.

        Only `stop` takes a dead process off the system's list, after this: until then no other
        process can get its number, so that nobody else can be hit.
        """
        with self.ending:
            if process.returncode is None:
                # a sandbox that only begins can't take its first process with it yet: none is added
                # while it is stopped, and those that are there are killed
                os.killpg(process.pid, signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                for relative in family(process.pid)[1:]:
                    with suppress(psutil.Error):
                        relative.kill()
                os.killpg(process.pid, signal.SIGKILL)

    def drain(self, process):
        """Read all that is printed, keep the beginning."""
        while data := process.stderr.read1(65536):
            self.output = (self.output + data)[:LOG_BYTES]
        process.stderr.close()

    def watch(self, process):
        """Kill when all processes together use too much of the processors, the clock or memory."""
        while not ended(process):
            relatives = family(process.pid)
            self.now = now = tuple(map(sum, zip((0.0, 0.0), *map(worked, relatives), strict=True)))
            self.first = first = self.first or now
            too_long = now[0] - first[0] > self.seconds
            if too_long or self.before + now[0] > self.limits.total_seconds:
                self.reason = "took too long"
            elif time.monotonic() > self.deadline:
                self.reason = "took too long"
                self.note_neighbours()
            elif sum(map(held, relatives)) > self.limits.memory_mb * 2**20:
                self.reason = "used too much memory"
            elif max(map(files, relatives), default=0) > self.limits.files:
                self.reason = "made too many files"
            else:
                time.sleep(0.05)
                continue
            self.kill(process)
            return

    def allow(self, seconds):
        """The process is killed unless it is done with so much work, or in more time by the clock:
        on a busy machine work takes longer."""
        self.started, self.first, self.seconds = time.monotonic(), None, seconds
        self.deadline = min(self.end, self.started + self.limits.patience * seconds)

    def note_neighbours(self):
        """The clock ran out: was it because others kept the processors busy?"""
        waited = self.now[1] - (self.first or self.now)[1]
        self.late |= waited > SHARE * (time.monotonic() - self.started)

    def ask(self, **message):
        """One question, one answer; `SandboxEnded` when there is none."""
        self.number += 1
        try:
            send(self.process.stdin, {"id": self.number, **message})
            reply = receive(self.process.stdout)
            if reply["id"] != self.number:
                raise ValueError("an answer out of turn")
            return {**reply, **{k: short(reply[k]) for k in TEXTS if k in reply}}
        except FAILURES as error:
            self.stop()
            raise SandboxEnded(self.reason) from error

    def alive(self):
        """Start, or start again and replay what ran before."""
        if self.process and ended(self.process):
            self.stop()  # it was ended between two questions
        while self.process is None:
            self.start()
            self.run_given_cells()
            for index, source in enumerate(self.done):
                try:
                    if index not in self.deadly:
                        self.run_now(source)
                except SandboxEnded:
                    self.deadly.add(index)
                    break

    def run_given_cells(self):
        """Run the cells that everyone is given. Where they have never run, a failure is an error of
        the machine or of the master, and costs nobody points; later the student has used all up."""
        reason = ""
        for source in self.given:
            try:
                reply = self.do(source, self.limits.total_seconds)
                reason = reason or f"{reply.get('error', '')} {reply.get('message', '')}".strip()
            except SandboxEnded as gone:
                if self.works:
                    raise
                reason = f"{gone} {self.output[-LONGEST:].decode('utf-8', 'replace')}".strip()
                break
        if reason and not self.works:
            raise SandboxError(f"the cells that are given don't run in the sandbox: {reason}")
        self.works = True

    def run_now(self, source):
        work = self.cell_seconds()
        self.allow(work + self.limits.spare_seconds)
        reply, seconds = self.do(source, work), time.monotonic() - self.started
        if "error" in reply and seconds >= self.limits.patience * work:
            self.note_neighbours()
        return reply

    def worked(self):
        """Seconds that the processors have worked for this student, in all processes."""
        return self.before + self.now[0]

    def used_up(self):
        return self.worked() > self.limits.total_seconds or time.monotonic() > self.end

    def cell_seconds(self):
        """What the next cell may work: its limit, or a part of what is left for cells, if that is
        less. So there is always something left for the cells and the tests that come."""
        left = self.share * self.limits.total_seconds - self.worked()
        return max(min(self.limits.cell_seconds, left / 4), LEAST)

    def do(self, source, seconds):
        return self.ask(do="run", source=source, work=seconds, clock=self.limits.patience * seconds)

    def run(self, source):
        """Execute a cell; returns what went wrong, or an empty string."""
        self.alive()
        self.done.append(source)
        try:
            reply = self.run_now(source)
        except SandboxEnded as gone:
            self.deadly.add(len(self.done) - 1)
            return f"the cell {gone}"
        return f"{reply['error']}: {reply.get('message', '')}" if "error" in reply else ""

    def forget(self):
        """What ran so far is not run again after a restart: another notebook begins."""
        self.done, self.deadly, self.fatal = [], set(), {}
        self.share = SECOND

    def begin_test(self):
        self.alive()
        self.allow(self.limits.cell_seconds)

    def lend(self, source, names):
        """Define these names by a given answer."""
        self.begin_test()
        self.ask(do="lend", source=source, names=sorted(names))

    def look(self, names):
        """{name: what it is} for those of the names that exist, and for no other."""
        values = self.ask(do="look", names=sorted(names))["found"]
        return {name: values[name] for name in names if name in values}

    def call(self, name, args, kwargs):
        if self.process is None or self.fatal.get(name, 0) > 1:
            raise SandboxEnded(self.reason)
        try:
            args, kwargs = pack(fresh(args)), pack(fresh(kwargs))
            reply = self.ask(do="call", name=name, args=args, kwargs=kwargs)
        except SandboxEnded:
            self.fatal[name] = self.fatal.get(name, 0) + 1
            raise
        if "error" in reply:
            raise student_error(reply.get("kind", reply["error"]), reply.get("message", ""))
        return unpack(reply["value"])


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
    usable = isinstance(kind, type) and issubclass(kind, Exception)
    if not usable or issubclass(kind, (UnicodeError, ExceptionGroup)):
        kind, name = Exception, "an exception"
    bases = (StudentError,) if kind is Exception else (StudentError, kind)
    error = type("StudentError", bases, {})(message)
    error.name = name
    return error


def short(text):
    """A text from the sandbox, cut; anything else than a text says nothing."""
    return text[:LONGEST] if isinstance(text, str) else ""
