"""Libraries that were built ahead of time and are part of the package: `nox -s wheel` makes such a wheel.

`index.json` names each library with the digest of what it was made from: sources, headers, flags, torch and the kind of
processor. A library is used if that digest is the same, whichever compiler there is, or none. Otherwise the backend is
built just in time as usual.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import torch

from backends.base import CUDA, CompiledOperator
from harness.errors import Broken

FOLDER = Path(__file__).with_name("prebuilt")
_INDEX = "index.json"
_ROOT = Path(__file__).parents[2]


def digest(operator: CompiledOperator, device: str, files: Iterable[Path]) -> str:
    """The digest of all that a library depends on except the compiler. It does not depend on the package's folder."""
    facts = [torch.__version__, str(torch.version.git_version), platform.machine(), device, *operator.flags]
    if device == CUDA:
        facts.append(str(torch.cuda.get_device_capability()))
    found = hashlib.sha256("\0".join(facts).encode())
    for file in sorted(files):
        name = file.relative_to(_ROOT) if file.is_relative_to(_ROOT) else Path(file.name)
        found.update(name.as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


@cache
def _index(folder: Path) -> dict[str, str]:
    file = folder / _INDEX
    found: dict[str, str] = json.loads(file.read_text()) if file.is_file() else {}
    return found


def find(name: str, of: Callable[[], str], folder: Path = FOLDER) -> Path | None:
    """The library of that name, if the package has one with the digest that `of` computes. Raises Broken."""
    known = _index(folder).get(name)
    if known is None or known != of():
        return None
    library = folder / f"{name}.so"
    if not library.is_file():
        raise Broken(f"{library} is missing, but {folder / _INDEX} names it: install the wheel again")
    return library


def collect(libraries: Iterable[tuple[str, str, Path]], folder: Path) -> None:
    """Copy each (name, digest, library) into the folder, and write the index."""
    folder.mkdir(parents=True, exist_ok=True)
    index = {}
    for name, key, library in libraries:
        shutil.copy(library, folder / f"{name}.so")
        index[name] = key
    (folder / _INDEX).write_text(json.dumps(index, indent=1, sort_keys=True) + "\n", encoding="utf-8")
