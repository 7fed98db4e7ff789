"""Kernels that need not import anything: this process has, and each is a copy of it.

Started by quick_nbval.py: a line of JSON comes in for each kernel, its process id goes out. Kernels
end at the latest with this process, and this one when nobody can ask any more. Linux only.
"""

import ctypes
import gc
import importlib
import json
import os
import signal
import sys
from contextlib import suppress

# what several pages import; not pyplot, which has to find IPython when it is imported
IMPORTED = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "matplotlib.figure",
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "numpy",
    "scipy.optimize", "scipy.special", "scipy.stats", "pandas", "statsmodels.datasets",
    "sklearn.datasets", "sklearn.linear_model", "sklearn.model_selection", "dpnotes",
)  # fmt: skip
PR_SET_PDEATHSIG = 1


def become(arguments, cwd, env):
    """This process is a kernel from now on, in a session of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.write(1, b"%d\n" % os.getpid())
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["ipykernel_launcher", *arguments]
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance()


def main():
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # as a kernel says
    sys.path.pop(0)  # this folder, which no kernel looks into
    for name in IMPORTED:
        with suppress(ImportError):  # then the page that needs it fails, and says so
            importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no kernel is waited for
    while line := sys.stdin.readline():
        if os.fork() == 0:
            become(**json.loads(line))
            return


if __name__ == "__main__":
    main()
