"""Adds what a reader takes along: notebooks, the book as a PDF, slides."""
