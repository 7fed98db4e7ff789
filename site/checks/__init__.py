"""Adds what refuses a book: rules for pages, faults of the finished site, files of nobody."""
