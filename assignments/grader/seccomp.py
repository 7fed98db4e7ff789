"""System calls that students' code may not make, as a filter that bubblewrap reads.

What is refused, and why, says chapters/for-instructors.md. On other processors than the two below
there is no filter. The list was compared with Flatpak's (`setup_seccomp` in its
common/flatpak-run.c), with Chromium's baseline policy (sandbox/linux/seccomp-bpf-helpers) and with
nsjail, which by itself refuses no call. What they refuse and this list leaves open:
- the calls for mounts, roots and namespaces (both): the second bubblewrap makes some of them; after
  it nobody has the rights that they need, and there can be no new user namespace that gives them
- mbind, get_mempolicy, set_mempolicy (both): numerical libraries place their memory with them
- personality, input of a terminal (Flatpak): a process changes itself only, there is no terminal
- processes, signals, files, timers, inotify, sockets on this machine (Chromium, which lists what
  one program needs instead): Python and what students import use them, within the other limits
"""

import errno
import platform
import struct
import tempfile
from contextlib import contextmanager

CALLS = {  # name: its numbers on x86_64 and on aarch64
    # memory
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "vmsplice": (278, 75),
    # keys
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "move_pages": (279, 239), "migrate_pages": (256, 238),
    # doors into the kernel
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "io_setup": (206, 0), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "quotactl": (179, 60),
    "acct": (163, 89), "syslog": (103, 116), "modify_ldt": (154, None), "uselib": (134, None),
}  # fmt: skip
SOCKET, AF_UNIX = (41, 198), 1  # only sockets of this kind: others reach a network, a virtual
# machine's host or the kernel, or hold memory of the kernel that no limit counts
SETSOCKOPT, SIZES = (54, 208), (7, 8, 32, 33)  # SO_SNDBUF and SO_RCVBUF, and both by force: a
# socket keeps the size that it has, so that counting sockets bounds their memory
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # from linux/audit.h
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
KILL, ALLOW, DENY = 0x80000000, 0x7FFF0000, 0x00050000 | errno.EPERM
X32 = 0x40000000  # a second numbering of the calls on x86_64


def numbers(machine):
    """The numbers of the refused calls on this kind of machine."""
    column = list(AUDIT).index(machine)
    return sorted(n[column] for n in CALLS.values() if n[column] is not None)


def instructions(machine):
    """(code, jump if true, jump if false, constant): wrong machine, kill; listed call, socket or
    size of a socket, EPERM."""
    column = list(AUDIT).index(machine)
    refused, socket, option = numbers(machine), SOCKET[column], SETSOCKOPT[column]
    far = len(SIZES) + len(refused)  # lines between the first size and the last two
    return [
        (LOAD, 0, 0, 4),  # the machine
        (EQUAL, 1, 0, AUDIT[machine]),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, 0),  # the call
        (AT_LEAST, far + 7, 0, X32),
        (EQUAL, 0, 2, socket),
        (LOAD, 0, 0, 16),  # the first argument
        (EQUAL, far + 3, far + 4, AF_UNIX),
        (EQUAL, 0, len(SIZES) + 2, option),
        (LOAD, 0, 0, 32),  # the third argument
        *((EQUAL, far + 1 - i, 0, size) for i, size in enumerate(SIZES)),
        (RETURN, 0, 0, ALLOW),
        *((EQUAL, len(refused) - i, 0, number) for i, number in enumerate(refused)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, DENY),
    ]


@contextmanager
def program():
    """An open file with the filter for this machine, or None."""
    machine = platform.machine()
    if machine not in AUDIT:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(struct.pack("=HBBI", *line) for line in instructions(machine)))
        file.seek(0)
        yield file
