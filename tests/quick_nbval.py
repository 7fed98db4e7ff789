"""nbval as it checks the notebooks, `-p tests.quick_nbval -p nbval`, without what only takes time.

It lays every message of a kernel out, with its figures, for a log that nobody keeps.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # see site/no_grammar.py

import nbval.kernel  # noqa: E402

nbval.kernel.pformat = repr
