"""Kernels that run the book's notebooks: copies of one process that has imported what pages use.

A kernel that starts by itself imports for two seconds before its first cell. And it is told numbers
of ports that are free, which another kernel may take before it does: here sockets are files.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from functools import cache

from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import LocalProvisioner

COPIES = sys.platform == "linux"  # on macOS a copy of a process that has loaded BLAS may hang
IMPORTED = """
    ipykernel.kernelapp IPython.core.completer matplotlib.backends.backend_agg dpnotes
    dpnotes.plotting pandas scipy.integrate scipy.optimize scipy.signal scipy.stats sklearn.datasets
    sklearn.linear_model
""".split()


@cache
def warm_process(pid):
    """The process that is copied, one for each process `pid` that asks."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


class Copy:
    """A copy of the warm process, as `subprocess.Popen` would show it."""

    stdin = stdout = stderr = None

    def __init__(self, **job):
        warm = warm_process(os.getpid())
        warm.stdin.write(json.dumps(job) + "\n")
        warm.stdin.flush()
        self.pid = int(warm.stdout.readline())

    def poll(self):
        """None while it runs. How it ended, nobody asks."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0

    wait = poll  # called when it has ended

    def send_signal(self, number):
        """SIGINT, SIGTERM or SIGKILL."""
        os.kill(self.pid, number)


class CopyProvisioner(LocalProvisioner):
    """Copies the warm process where Jupyter would start a new one."""

    async def launch_kernel(self, cmd, *, env, cwd=None, **_):
        file = self.parent.connection_file
        self.process = Copy(file=file, env=dict(env), cwd=str(cwd or os.getcwd()))
        self.pid = self.pgid = self.process.pid
        return self.connection_info


def manager(kind=KernelManager, **settings):
    """A kernel manager whose kernel is a copy, with a folder of its own for the sockets."""
    folder = tempfile.mkdtemp(prefix="dpn-", dir="/tmp")  # of sockets, a path must be short
    made = kind(transport="ipc", ip=f"{folder}/at", connection_file=f"{folder}/kernel", **settings)
    if COPIES:
        made.provisioner = CopyProvisioner(
            kernel_id=os.path.basename(folder), kernel_spec=made.kernel_spec, parent=made
        )
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    return made


def become_kernel(file, env, cwd):
    """What a copy does."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    from ipykernel.kernelapp import IPKernelApp

    facts = {"IPKernelApp.parent_handle": os.getppid(), "HistoryManager.hist_file": ":memory:"}
    IPKernelApp.launch_instance(
        argv=["-f", file, *(f"--{key}={value}" for key, value in facts.items())]
    )


def serve():
    """Import, then start a copy for each line that comes."""
    sys.path.pop(0)  # the folder of this file
    for name in IMPORTED:
        __import__(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who ends is gone
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                become_kernel(**json.loads(line))
            finally:
                os._exit(1)
        print(pid, flush=True)


if __name__ == "__main__":
    serve()
