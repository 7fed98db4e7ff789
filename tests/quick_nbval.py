"""nbval as it checks the notebooks, `-p tests.quick_nbval -p nbval`: in kernels like the build's.

It lays every message of a kernel out, with its figures, for a log that nobody keeps.
"""

import sys
from pathlib import Path

import nbval.kernel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "site"))
import kernels
import surroundings

surroundings.enter()
nbval.kernel.pformat = repr
nbval.kernel.KernelManager = kernels.manager
