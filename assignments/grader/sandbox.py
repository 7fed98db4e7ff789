"""Run a student's code in bubblewrap and talk to it through a pipe.

A `Session` can die at any time (the student's code exits, is killed or floods the pipe). It is then started again,
the cells before are replayed without those that killed it, and grading goes on.
"""

import builtins
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil

from .wire import pack, receive, send, unpack

HERE = Path(__file__).parent
LOG_BYTES = 20_000


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    cell_seconds: float = 30  # wall-clock time of a cell, and of a question's tests
    total_seconds: float = 240
    memory_mb: int = 2048  # of all processes together
    processes: int = 16  # and threads
    file_mb: int = 64  # of one file, and of all of /tmp
    restarts: int = 6

    def of_process(self):
        megabyte = 2**20
        return json.dumps(
            {
                "AS": 2 * self.memory_mb * megabyte,
                "CPU": int(self.total_seconds) + 5,
                "NPROC": self.processes,
                "FSIZE": self.file_mb * megabyte,
                "NOFILE": 256,
            }
        )


class SandboxError(RuntimeError):
    """There is no working sandbox on this machine."""


class Gone(Exception):
    """The sandbox ended in the middle of something."""


def font_cache(folder):
    """Matplotlib's font list, made once: without it each sandbox would search the fonts again."""
    if not any(Path(folder).glob("fontlist*")):
        Path(folder).mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-c", "import matplotlib.font_manager"],
            check=True,
            env={**os.environ, "MPLCONFIGDIR": str(folder)},
            capture_output=True,
        )
    return str(folder)


def visible(cache_folder):
    """What a student's code can read: (path on this machine, path inside)."""
    system = [
        (p, p)
        for p in ("/usr", "/etc/fonts", "/etc/ld.so.cache", "/etc/alternatives")
        if os.path.exists(p)
    ]
    links = [p for p in ("/bin", "/lib", "/lib64", "/sbin") if os.path.exists(p)]
    python = [(p, p) for p in dict.fromkeys([sys.base_prefix, sys.prefix])]
    package = os.path.dirname(find_spec("dpnotes").origin)
    own = [(str(HERE / f), f"/grader/{f}") for f in ("inside.py", "wire.py")]
    return (
        system
        + [(p, p) for p in links]
        + python
        + own
        + [(package, "/grader/dpnotes"), (cache_folder, "/grader/cache")]
    )


def bwrap_command(limits, cache_folder):
    """bubblewrap: no network, own processes, everything read-only but a small /tmp; root is given up."""
    root = os.geteuid() == 0
    command = [
        "bwrap",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
        "--new-session",
    ]
    command += (
        ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        if root
        else ["--unshare-user", "--disable-userns"]
    )
    for path, inside in visible(cache_folder):
        for parent in reversed(Path(inside).parents[:-1]):
            command += ["--dir", str(parent)] if not str(parent).startswith("/usr") else []
        command += ["--ro-bind", path, inside]
    command += [
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "--perms",
        "1777",
        "--size",
        str(limits.file_mb * 2**20),
        "--tmpfs",
        "/tmp",
    ]
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp", "--"]
    if root:  # an own user id, else the limit on processes does not bind; a second bubblewrap shuts user namespaces
        user = str(100_000 + os.getpid() % 100_000)
        command += [
            "setpriv",
            "--reuid",
            user,
            "--regid",
            user,
            "--clear-groups",
            "--bounding-set=-all",
            "bwrap",
            "--unshare-user",
            "--disable-userns",
            "--unshare-pid",
            "--dev-bind",
            "/",
            "/",
            "--",
        ]
    return command


def environment(grader_folder, temporary):
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": temporary,
        "TMPDIR": temporary,
        "IPYTHONDIR": temporary + "/ipython",
        "LANG": "C.UTF-8",
        "MPLCONFIGDIR": temporary + "/matplotlib",
        "MPLBACKEND": "agg",
        "PYTHONPATH": grader_folder,
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "ignore",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


@cache
def check():
    """Refuse early, with the reason, where bubblewrap can't do its work."""
    if shutil.which("bwrap") is None:
        raise SandboxError(
            "bubblewrap is missing (Debian, Ubuntu: apt install bubblewrap). Students' code is not run without it, unless you say --unsafe."
        )
    probe = bwrap_command(Limits(), "/usr") + [sys.executable, "-c", "print('ready')"]
    done = subprocess.run(
        probe, capture_output=True, text=True, env=environment("/grader", "/tmp"), timeout=60
    )
    if done.stdout.strip() != "ready":
        raise SandboxError(
            f"bubblewrap is installed but does not work here: {done.stderr.strip()[-300:]}"
        )


class Session:
    """One student's Python: `run` cells, `look` up names, `call` functions; replays itself after a death."""

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
        self.starts += 1
        if self.starts > self.limits.restarts + 1 or time.monotonic() > self.end:
            raise Gone("there were too many crashes or no time was left")
        self.temporary = f"/tmp/grader-{os.getpid()}-{self.starts}" if self.unsafe else "/tmp"
        command = [] if self.unsafe else bwrap_command(self.limits, self.cache)
        folder = str(HERE) if self.unsafe else "/grader"
        command += [
            sys.executable,
            f"{folder}/inside.py",
            self.limits.of_process(),
            self.cache if self.unsafe else "/grader/cache",
        ]
        if self.unsafe:
            os.makedirs(self.temporary, mode=0o777, exist_ok=True)
            os.chmod(self.temporary, 0o777)
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
        threading.Thread(target=self.drain, args=[self.process], daemon=True).start()
        threading.Thread(target=self.watch, args=[self.process], daemon=True).start()

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


def keep_out(paths):
    """Nothing of the course may lie where students' code can read."""
    for path in paths:
        for root, _ in visible("/grader"):
            if Path(path).resolve().is_relative_to(Path(root).resolve()):
                raise SandboxError(
                    f"{path} lies inside {root}, which students' code can read; move it"
                )
