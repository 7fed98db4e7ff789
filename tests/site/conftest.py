"""One reader with Python in the page for all tests: it starts slowly."""

from types import SimpleNamespace

import pytest
from visits import FIRST, WithWorker

from machine import need_python_in_pages


@pytest.fixture(scope="session")
def server(address):
    """The site, with its Python."""
    need_python_in_pages()
    return SimpleNamespace(address=address)


@pytest.fixture(scope="session")
def reader(browser, server):
    """A reader on the first page, before anything was asked for."""
    watched = WithWorker(browser, server.address)
    yield watched
    watched.context.close()


@pytest.fixture
def first(reader):
    """The reader's tab on the first page, also for a test that is run alone."""
    if not reader.tab.url.endswith(FIRST):
        reader.open(FIRST)
    return reader.tab


@pytest.fixture
def python(reader, first):
    """The reader's tab, in which Python has started; for a test that is run alone it starts now."""
    reader.tab.evaluate("import('../_run/python.js').then((python) => { window.python = python })")
    reader.tab.evaluate("python.start()")
    return reader
