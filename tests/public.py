"""What the package offers: `PUBLIC` maps ``x`` to ``dp.x``, ``room.x`` to that of a page's room."""

from importlib import import_module
from inspect import ismodule
from pkgutil import iter_modules

import dpnotes as dp
from dpnotes import chapters


def offered(module):
    """name -> function, class or callable object of the package that a module shows."""
    return {
        name: call
        for name, call in vars(module).items()
        if name[0] != "_"
        and callable(call)
        and not ismodule(call)
        and (getattr(call, "__module__", None) or "dpnotes").startswith("dpnotes")
    }


def public():
    found = offered(dp)
    for room in sorted(each.name for each in iter_modules(chapters.__path__)):
        module = import_module(f"dpnotes.chapters.{room}")
        for name, call in offered(module).items():
            home = getattr(call, "__module__", module.__name__)
            if home.startswith(module.__name__) and not any(call is old for old in found.values()):
                found[f"{room}.{name}"] = call
    return found


PUBLIC = public()
