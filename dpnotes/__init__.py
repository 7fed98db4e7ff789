"""dpnotes: every claim of the lecture notes as a function, and an exact privacy accountant.

One idea runs through the package: the privacy loss L = log p(X)/q(X), X ~ p, of a pair of output
laws. (epsilon, delta)-DP is its tail, Renyi DP its moment generating function, composition its
sum, subsampling a mixture inside it. Each module is the room behind one part of the book.

``dpnotes.plotting`` needs matplotlib and is imported by the pages that draw, not here.
"""

from importlib import import_module as _import_module

__version__ = "0.1.0"

_ROOMS = (
    "tails",
    "divergences",
    "losses",
    "accounting",
    "theorems",
    "composition",
    "subsampling",
    "renyi",
    "mechanisms",
    "sgd",
    "convex",
    "erm",
)
__all__ = ["__version__"]
for _room in _ROOMS:
    _module = _import_module(f"{__name__}.{_room}")
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})
    __all__ += _module.__all__
