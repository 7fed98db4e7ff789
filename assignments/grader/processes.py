"""The processes of one sandbox, seen from outside: what they work, hold and wait for."""

import os
from contextlib import suppress

import psutil

# a folder as a place, whether or not it may be read; elsewhere than on Linux there is no such thing
PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY


def socket_size():
    """Bytes that a socket may hold."""
    with suppress(OSError, ValueError), open("/proc/sys/net/core/wmem_default") as file:
        return int(file.read())
    return 212_992


SOCKET = socket_size()


def ended(process):
    """Whether a process has ended; it stays on the system's list until it is waited for."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # `stop` was faster
        return True


def family(pid):
    """A process and all that it started."""
    with suppress(psutil.Error):
        return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return []


def worked(process):
    """(seconds that a process and its ended children have worked, seconds that it has waited for a
    processor)"""
    with suppress(psutil.Error):
        times = process.cpu_times()
        work = times.user + times.system + times.children_user + times.children_system
        try:
            with open(f"/proc/{process.pid}/schedstat") as file:
                return work, int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return work, 0.0
    return 0.0, 0.0


def held(process):
    """Memory of a process in bytes: what it maps, shared memory included, and what the kernel may
    hold for its sockets (their size can't be changed: see `seccomp`)."""
    size = 0
    with suppress(psutil.Error):
        size = process.memory_info().rss
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{process.pid}/fd"):
            with suppress(OSError):
                size += SOCKET * os.readlink(entry.path).startswith("socket:")
    return size


def files(process):
    """How many files lie in the sandbox's own /tmp and /dev/shm, as this process sees them.

    A folder is opened once and asked twice: while bubblewrap sets up its mounts, the same path can
    lead to the sandbox's at first and then to this machine's, whose files are many.
    """
    count = 0
    for folder in ("tmp", "dev/shm"):
        try:
            inside = os.open(f"/proc/{process.pid}/root/{folder}", PLACE)
        except OSError:
            continue
        try:
            if os.fstat(inside).st_dev != os.stat(f"/{folder}").st_dev:  # not this machine's own
                room = os.fstatvfs(inside)
                count += room.f_files - room.f_ffree
        except OSError:
            continue
        finally:
            os.close(inside)
    return count
