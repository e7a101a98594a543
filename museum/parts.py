"""Import one module of a package without running the package's `__init__`, which may need a hundred other packages."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from types import ModuleType


def part(name: str) -> ModuleType:
    """The module of that dotted name, `timm.layers.fast_norm` for example. Its parents get empty modules.

    Raises ModuleNotFoundError if it is not there. What the module itself imports is imported as usual.
    """
    above = name.split(".")[:-1]
    path = None
    for depth in range(1, len(above) + 1):
        parent = ".".join(above[:depth])
        if parent not in sys.modules:
            spec = importlib.machinery.PathFinder.find_spec(parent, path)
            if spec is None or spec.submodule_search_locations is None:
                raise ModuleNotFoundError(f"there is no package {parent}", name=parent)
            made = ModuleType(parent)
            made.__path__ = list(spec.submodule_search_locations)
            made.__spec__ = spec
            sys.modules[parent] = made
        path = list(sys.modules[parent].__path__)
    return importlib.import_module(name)
