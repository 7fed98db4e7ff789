"""nbval as it checks the notebooks, `-p tests.quick_nbval -p nbval`, without what only takes time.

It lays every message of a kernel out, with its figures, for a log that nobody keeps.
"""

import nbval.kernel

nbval.kernel.pformat = repr
