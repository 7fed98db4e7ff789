"""Where students' code runs: bubblewrap with its limits and what is visible inside, or, unsafely,
a bare process. Both launchers have the same two doors, `start` and `stop`."""

import atexit
import compileall
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from . import seccomp

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    cell_seconds: float = 30  # of all processors together: a cell, and a question's tests
    spare_seconds: float = 3  # more, until what should have ended by itself is killed
    total_seconds: float = 240
    patience: float = 3  # times as long by the clock, for code that waits or has busy neighbours
    memory_mb: int = 2048  # of all processes together
    processes: int = 64  # and threads: pools have some for each processor of this machine
    file_mb: int = 64  # of one file, and of all of /tmp
    files: int = 20_000  # in /tmp and /dev/shm together
    restarts: int = 6
    read_seconds: float = 20  # of processor time, for reading one submission's file
    typeset_seconds: float = 5  # of processor time, for one answer
    grader_mb: int = 1024  # what reading and testing one submission may add to the grader's memory

    def wall_seconds(self):
        """After this time the grader gives up on a submission, whatever it is doing."""
        work = self.total_seconds + 2 * self.cell_seconds
        return self.patience * work + 4 * self.read_seconds + 30

    def of_process(self):
        """For `inside.py`: the limits of each process in the sandbox."""
        caps = {"AS": 2 * self.memory_mb * 2**20, "CPU": int(self.total_seconds) + 5}
        caps |= {"NPROC": self.processes, "FSIZE": self.file_mb * 2**20, "NOFILE": 256}
        return json.dumps(caps)


# what must be readable inside, also where the umask is strict and the user another one
PROBE = """
for name in ("inside.py", "wire.py", "dpnotes/__init__.py"):
    open(f"/grader/{name}").close()
print("ready")
"""


class SandboxError(RuntimeError):
    """There is no working sandbox on this machine."""


@cache
def staged():
    """What students' code sees of ours: a copy in a folder that does not tell where the course lies
    (a process can read where its files come from) and that every user may read. It is compiled, and
    has matplotlib's list of fonts: else each sandbox would compile and search the fonts again."""
    import matplotlib.font_manager  # slow; it makes the list where there is none

    folder = tempfile.mkdtemp(prefix="grader-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(os.path.dirname(find_spec("dpnotes").origin), f"{folder}/dpnotes")
    for name in ("inside.py", "wire.py"):
        shutil.copy(HERE / name, folder)
    compileall.compile_dir(folder, quiet=2)
    os.mkdir(f"{folder}/cache")
    for file in Path(matplotlib.get_cachedir()).glob("fontlist*"):
        shutil.copy(file, f"{folder}/cache")
    for place, _, names in os.walk(folder):  # whatever the umask was
        for name in (".", *names):
            os.chmod(os.path.join(place, name), 0o755)
    return folder


def visible(staged_folder):
    """What a student's code can read: (path on this machine, path inside)."""
    system = ["/usr", "/etc/fonts", "/etc/ld.so.cache", "/etc/alternatives"]
    system += ["/bin", "/lib", "/lib64", "/sbin"]
    system = [path for path in system if os.path.exists(path)]
    mounts = [(path, path) for path in dict.fromkeys([*system, sys.base_prefix, sys.prefix])]
    return [*mounts, (staged_folder, "/grader")]


def mount_options(limits, staged_folder):
    """Options of bubblewrap: a small /tmp, the visible paths read-only, private /proc and /dev.
    /tmp comes first because visible paths may lie under it."""
    size = str(limits.file_mb * 2**20)
    arguments = ["--perms", "1777", "--size", size, "--tmpfs", "/tmp"]
    for path, inside in visible(staged_folder):
        parents = [str(parent) for parent in reversed(Path(inside).parents[:-1])]
        for parent in parents if not inside.startswith("/usr") else []:
            arguments += ["--dir", parent]
        arguments += ["--ro-bind", path, inside]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"]  # for process pools
    return arguments + ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]


def bwrap_command(limits, staged_folder):
    """No network, own processes, all read-only but /tmp; no way to more rights."""
    command = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    command += ["--hostname", "sandbox", "--die-with-parent", "--new-session"]
    if os.geteuid() != 0:
        user = ["--unshare-user", "--disable-userns"]
        return command + user + mount_options(limits, staged_folder) + ["--"]
    # root takes an own user id, else the limit on processes does not bind;
    # a second bubblewrap then shuts user namespaces and hides its own processes
    user = str(100_000 + os.getpid() % 100_000)
    command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    command += [*mount_options(limits, staged_folder), "--", "setpriv", "--reuid", user]
    command += ["--regid", user, "--clear-groups", "--bounding-set=-all", "bwrap"]
    command += ["--unshare-user", "--disable-userns", "--unshare-pid", "--dev-bind", "/", "/"]
    return [*command, "--"]


class Bubblewrap:
    """The sandbox."""

    closed = True  # nothing leaves it but through the grader

    def __init__(self, limits):
        self.limits, self.staged = limits, staged()

    def start(self):
        """A process that answers on its pipes (`inside.py`)."""
        command = bwrap_command(self.limits, self.staged)
        with seccomp.program() as filters:  # the first bubblewrap hands it down to all others
            given = () if filters is None else (filters.fileno(),)
            command[1:1] = ["--seccomp", *map(str, given)] if given else []
            command += [sys.executable, "/grader/inside.py", self.limits.of_process()]
            command += ["/grader/cache"]
            return talk(command, environment("/grader", "/tmp"), pass_fds=given)

    def stop(self):
        """What all sandboxes share goes when the grader ends."""


class Bare:
    """No sandbox: a folder of its own, and another user where there is one."""

    closed = False  # code can write to places that outlive it, and perhaps to the network

    def __init__(self, limits, user=None):
        self.limits, self.staged, self.user, self.folder = limits, staged(), user, None

    def start(self):
        self.stop()
        self.folder = tempfile.mkdtemp(prefix="unsafe-")
        os.chmod(self.folder, 0o777)
        own = shutil.copytree(self.staged, os.path.join(self.folder, "grader"))
        command = [sys.executable, f"{own}/inside.py", self.limits.of_process(), f"{own}/cache"]
        return talk(command, environment(own, self.folder), user=self.user)

    def stop(self):
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def talk(command, env, **options):
    """The process with pipes to it, in a session of its own."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/tmp", env=env,
        start_new_session=True, **options,
    )  # fmt: skip


def environment(grader_folder, temporary):
    """All that a student's process finds in its environment."""
    variables = dict.fromkeys(["HOME", "TMPDIR"], temporary)
    variables |= {"IPYTHONDIR": f"{temporary}/ipython", "MPLCONFIGDIR": f"{temporary}/matplotlib"}
    variables |= {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MPLBACKEND": "agg"}
    variables |= {"PYTHONPATH": grader_folder, "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
    variables |= dict.fromkeys(["PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"], "1")
    # each thread would reserve memory of its own: limits count that
    variables["MALLOC_ARENA_MAX"] = "2"
    return variables | dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1")


@cache
def check():
    """Refuse early, with the reason, where bubblewrap can't do its work."""
    if shutil.which("bwrap") is None:
        raise SandboxError(
            "bubblewrap is missing (Debian, Ubuntu: apt install bubblewrap). "
            "Students' code is not run without it, unless you say --unsafe."
        )
    probe = bwrap_command(Limits(), staged()) + [sys.executable, "-c", PROBE]
    options = {"env": environment("/grader", "/tmp"), "timeout": 60}
    done = subprocess.run(probe, capture_output=True, text=True, **options)
    if done.stdout.strip() != "ready":
        why = done.stderr.strip()[-300:]
        raise SandboxError(f"bubblewrap is installed but does not work here: {why}")


def keep_out(paths):
    """Nothing of the course may lie where students' code can read."""
    for path in map(Path, paths):
        for root, _ in visible("/grader")[:-1]:
            if path.resolve().is_relative_to(Path(root).resolve()):
                raise SandboxError(f"{path} is in {root}, which students' code can read; move it")
