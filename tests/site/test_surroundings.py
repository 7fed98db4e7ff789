"""What else is set on a machine changes no page, and kernels are copies that don't meet."""

import json
import os
import subprocess
import sys

from machine import ROOT

STARTUP = "import numpy; numpy.set_printoptions(precision=2); planted = 1"
CELL = """
import os, sys, matplotlib, numpy
print(matplotlib.rcParams["font.family"], numpy.array([1 / 3]), "planted" in globals())
print("/nowhere" in sys.path, os.environ["LC_ALL"], os.path.exists("set-by-the-other"))
open("set-by-the-other", "w").close()
"""
BUILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
import surroundings
surroundings.enter()
import kernels
from nbclient import NotebookClient
from nbformat import v4
from jupyter_client.manager import AsyncKernelManager
printed, sockets = [], []
for folder in sys.argv[2:]:
    manager = kernels.manager(AsyncKernelManager, kernel_name="python3")
    book = v4.new_notebook(cells=[v4.new_code_cell(sys.stdin.read() if not printed else source)])
    source = book.cells[0].source
    NotebookClient(book, km=manager, resources={"metadata": {"path": folder}}).execute()
    printed.append(book.cells[0].outputs[0].text)
    sockets.append((manager.transport, manager.ip))
print(json.dumps([printed, sockets]))
"""


def test_settings_of_the_user_reach_no_kernel_and_kernels_share_nothing(tmp_path):
    for name, text in (
        ("matplotlibrc", "font.family: serif"),
        (".config/matplotlib/matplotlibrc", "font.family: serif"),
        (".ipython/profile_default/startup/0.py", STARTUP),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    settings = {
        "HOME": str(tmp_path), "MATPLOTLIBRC": str(tmp_path), "MPLBACKEND": "TkAgg",
        "IPYTHONDIR": str(tmp_path / ".ipython"), "JUPYTER_PATH": "/nowhere",
        "LANG": "de_DE.ISO-8859-1", "LC_ALL": "de_DE.ISO-8859-1",
    }  # fmt: skip
    command = [sys.executable, "-c", BUILD, ROOT / "site", *folders]
    done = subprocess.run(
        command, input=CELL, capture_output=True, text=True, env={**os.environ, **settings}
    )
    assert not done.returncode, done.stderr
    printed, sockets = json.loads(done.stdout)
    expected = "['sans-serif'] [0.33333333] False\nFalse C.UTF-8 False\n"
    assert printed == [expected, expected]
    assert len({place for _, place in sockets}) == 2 and {kind for kind, _ in sockets} == {"ipc"}
