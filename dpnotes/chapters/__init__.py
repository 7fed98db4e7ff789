"""One room a page, of the page's name: ``from dpnotes.chapters import composition``."""
