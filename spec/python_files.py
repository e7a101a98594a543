"""Import Python that a user has named, by its file or by the name of a module.

A file is compiled from its source each time. Python would take the code from `__pycache__` beside it, where whoever may
write to the folder can put another program: the report would have the digest of a file that was never judged.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType


class _FromSource(SourceFileLoader):
    """Reads no bytecode and writes none."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def import_source(file: Path, name: str, folder: Path | None = None) -> ModuleType:
    """The module of that name from a Python file; a package if its `folder` is given. Raises what its import raises.

    It is in `sys.modules` unless that raised.
    """

    def imported() -> ModuleType:
        found = importlib.util.spec_from_file_location(
            name,
            file,
            loader=_FromSource(name, str(file)),
            submodule_search_locations=None if folder is None else [str(folder)],
        )
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        try:
            found.loader.exec_module(module)
        except BaseException:  # a candidate may even exit() at import
            del sys.modules[name]
            raise
        return module

    return _from_here(imported)


def import_named(name: str) -> ModuleType:
    """A module by its name, from the working folder too. Raises what its import raises."""
    return _from_here(lambda: importlib.import_module(name))


def _from_here(imported: Callable[[], ModuleType]) -> ModuleType:
    """Import it. If a module is missing, look in the working folder too: last, so that what lies there hides nothing.

    `python -m harness` leaves that folder out.
    """
    try:
        return imported()
    except ModuleNotFoundError:
        here = str(Path.cwd())
        if here in sys.path:
            raise
        sys.path.append(here)
        importlib.invalidate_caches()
        return imported()
