"""A file that keeps what was spent of a budget, for processes that share it and for another day."""

from __future__ import annotations

import os
from contextlib import contextmanager
from fractions import Fraction
from typing import Annotated

from ...checks import instance, refusal

PATIENCE = 60.0  # seconds for which one process waits for the others
File = Annotated[
    str | os.PathLike[str], lambda name, value: instance(name, value, (str, os.PathLike), "a path")
]


class BudgetFile:
    """The rule and what was spent, in a database of SQLite: it lets one process at a time change
    it, and what it has confirmed is on the disk. The file that is there must be of the same rule.
    """

    def __init__(self, path, rule):
        self._path, self._rule = os.path.abspath(path), rule
        with self._locked() as rows:
            rows.execute("CREATE TABLE IF NOT EXISTS budget (rule TEXT, spent TEXT)")
            found = rows.execute("SELECT rule FROM budget").fetchone()
            if found is None:
                rows.execute("INSERT INTO budget VALUES (?, '0')", (rule,))
            elif found[0] != rule:
                raise refusal("file", path, f"a budget of {rule}, it is one of {found[0]}")

    @property
    def spent(self):
        """What was spent so far, by all who share the file."""
        with self._locked() as rows:
            return Fraction(rows.execute("SELECT spent FROM budget").fetchone()[0])

    def spend(self, cost, most):
        """Whether that much may be spent too; if so, it has been."""
        with self._locked() as rows:
            spent = Fraction(rows.execute("SELECT spent FROM budget").fetchone()[0]) + cost
            if spent > most:
                return False
            rows.execute("UPDATE budget SET spent = ?", (str(spent),))
        return True

    @contextmanager
    def _locked(self):
        """The file, which nobody else changes meanwhile; unchanged if an error is raised."""
        import sqlite3  # browsers may not have it

        try:
            rows = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None)
            try:
                rows.execute("BEGIN IMMEDIATE")
                yield rows
                rows.execute("COMMIT")
            finally:
                rows.close()
        except sqlite3.Error as error:
            raise ValueError(f"file must be one that can keep a budget: {error}") from None
