"""nbval as it checks the notebooks, `-p tests.quick_nbval -p nbval`, without what only takes time.

It lays every message of a kernel out, with its figures, for a log that nobody keeps; and it starts
a Python for each notebook, where (on Linux) one copies itself that has imported what they import.
"""

import json
import os
import select
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

sys.modules.setdefault("rfc3987_syntax", None)  # see site/no_grammar.py

import nbval.kernel  # noqa: E402
from jupyter_client.provisioning import local_provisioner  # noqa: E402

nbval.kernel.pformat = repr
STEM = Path(__file__).with_name("warm_kernels.py")


@cache
def stem():
    """The process that becomes a kernel when it is told to; it ends with this one."""
    command, pipe = [sys.executable, str(STEM)], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)


class Copy:
    """A kernel, with what is used of a `subprocess.Popen`."""

    stdin = stdout = stderr = returncode = None

    def __init__(self, pid):
        self.pid, self.handle = pid, os.pidfd_open(pid)

    def wait(self, timeout=None):
        if self.returncode is None and select.select([self.handle], [], [], timeout)[0]:
            os.close(self.handle)
            self.returncode = 0  # its own is known to the stem only, and asked by nobody
        return self.returncode

    def poll(self):
        return self.wait(0)

    def send_signal(self, number):
        if self.poll() is None:
            signal.pidfd_send_signal(self.handle, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


def launch(command, *, cwd=None, env=None, **_):
    """A kernel as `python -m ipykernel_launcher -f FILE` would start it."""
    asked = {"arguments": command[3:], "cwd": str(cwd), "env": env}
    stem().stdin.write(json.dumps(asked) + "\n")
    return Copy(int(stem().stdout.readline()))


if hasattr(os, "pidfd_open"):
    local_provisioner.launch_kernel = launch
