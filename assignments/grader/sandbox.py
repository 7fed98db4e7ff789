"""The sandbox that students' code runs in: bubblewrap, its limits, and what is visible inside."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent


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


def mounts(limits, cache_folder):
    """A small /tmp, then (it may lie there) what is visible, read-only, an own /proc and /dev."""
    size = str(limits.file_mb * 2**20)
    arguments = ["--perms", "1777", "--size", size, "--tmpfs", "/tmp"]
    for path, inside in visible(cache_folder):
        parents = [str(parent) for parent in reversed(Path(inside).parents[:-1])]
        for parent in parents if not inside.startswith("/usr") else []:
            arguments += ["--dir", parent]
        arguments += ["--ro-bind", path, inside]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    return arguments + ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]


def bwrap_command(limits, cache_folder):
    """No network, own processes, all read-only but /tmp; no way to more rights."""
    command = ["bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    command += ["--die-with-parent", "--new-session"]
    if os.geteuid() != 0:
        user = ["--unshare-user", "--disable-userns"]
        return command + user + mounts(limits, cache_folder) + ["--"]
    # root takes an own user id, else the limit on processes does not bind;
    # a second bubblewrap then shuts user namespaces and hides its own processes
    user = str(100_000 + os.getpid() % 100_000)
    command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    command += mounts(limits, cache_folder) + ["--", "setpriv", "--reuid", user, "--regid", user]
    command += ["--clear-groups", "--bounding-set=-all", "bwrap", "--unshare-user"]
    return command + ["--disable-userns", "--unshare-pid", "--dev-bind", "/", "/", "--"]


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
            "bubblewrap is missing (Debian, Ubuntu: apt install bubblewrap). "
            "Students' code is not run without it, unless you say --unsafe."
        )
    probe = bwrap_command(Limits(), "/usr") + [sys.executable, "-c", "print('ready')"]
    done = subprocess.run(
        probe, capture_output=True, text=True, env=environment("/grader", "/tmp"), timeout=60
    )
    if done.stdout.strip() != "ready":
        raise SandboxError(
            f"bubblewrap is installed but does not work here: {done.stderr.strip()[-300:]}"
        )


def keep_out(paths):
    """Nothing of the course may lie where students' code can read."""
    for path in paths:
        for root, _ in visible("/grader"):
            if Path(path).resolve().is_relative_to(Path(root).resolve()):
                raise SandboxError(
                    f"{path} lies inside {root}, which students' code can read; move it"
                )
