"""What stands in the page's Python for parts of Python and of a notebook that it has not."""

import contextlib
import sys
import time
import types

from page_reading import HINTS

STEP = 0.02  # seconds of sleep between two looks whether to stop


class HTML:
    """What `IPython.display.HTML` is for: markup, shown as it is."""

    def __init__(self, data):
        self.data = data

    def _repr_html_(self):
        return self.data


def no_input(prompt=""):
    """In place of `input`."""
    raise RuntimeError(HINTS["input"])


def sleep(seconds, _sleep=time.sleep):
    """`time.sleep`, which can be stopped."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > STEP:
        interruptible()
        _sleep(STEP)
    _sleep(max(left, 0) if seconds >= 0 else seconds)


def interruptible():
    """Look now whether to stop; elsewhere Python looks every few steps."""
    with contextlib.suppress(ImportError):
        from pyodide_js import checkInterrupt

        checkInterrupt()


def install(name, **content):
    """A module of this name, without its library."""
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(content)
