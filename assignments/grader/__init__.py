"""Build assignments from masters, and mark submissions without trusting them."""

import sys

# jsonschema, which checks notebooks, would build a grammar of web addresses when it is imported:
# more than half of the grader's start, for a check that no notebook needs. Without it, it goes on.
sys.modules.setdefault("rfc3987_syntax", None)
