"""Adds cells that readers edit and run, by a Python in the page, without network too."""
