"""SciPy's functions, imported at the first call: importing SciPy takes longer than dpnotes does."""

from importlib import import_module


def _later(module, name):
    def function(*arguments, **options):
        return getattr(import_module(module), name)(*arguments, **options)

    function.__name__ = name
    return function


def optimize():
    """The module scipy.optimize."""
    return import_module("scipy.optimize")


def log_binomial(n, k):
    """log of the number of subsets of k among n."""
    gammaln = _later("scipy.special", "gammaln")
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def __getattr__(name):
    """`from ._scipy import ndtr` makes scipy.special.ndtr, or scipy.linalg.cho_factor."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _later("scipy.linalg" if name.startswith("cho_") else "scipy.special", name)
