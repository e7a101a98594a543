"""The properties of an implementation, one file each. Each file sets `PROPERTY = Property(name, claim, check)`."""

from __future__ import annotations

import importlib
import pkgutil

from harness.judging.property import Property


def all_properties() -> dict[str, Property]:
    """Every property by name."""
    modules = [importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    found = [module.PROPERTY for module in modules]
    return {property.name: property for property in found}
