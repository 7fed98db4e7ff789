"""Adds to every page: formulas, folded blocks, claims, the API, tables; makes its files small."""
