"""What pytest is told at the root: nbval compares the executed notebooks, not the pages."""

import pytest

ADVICE = """The pages in chapters/ are text: they hold no results that could be compared.
`make book` executes them. `.venv/bin/python -m tests.due --all notebooks` executes each notebook
in _build/jupyter_execute again, by nbval, and compares all outputs. `make test` does so, too."""


def pytest_addoption(parser):
    """Also where nbval is not loaded, somebody may ask for it."""
    for name in ("--nbval", "--nbval-lax"):
        try:
            parser.addoption(name, action="store_true", help="see CONTRIBUTING.md")
        except ValueError:  # it is loaded
            return


def pytest_configure(config):
    """Say what to type instead."""
    asked = config.getoption("nbval", False) or config.getoption("nbval_lax", False)
    if asked and not config.pluginmanager.hasplugin("nbval"):
        raise pytest.UsageError(ADVICE)
