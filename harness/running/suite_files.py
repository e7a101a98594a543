"""The suite's own files before and after foreign code ran: none of them may have changed.

In bubblewrap nothing can change them. Without it, a candidate may write to them with the user's rights; then the run
that judged it says so, and later runs are not fooled unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("spec", "backends", "harness", "modules", "tools", "tests")
#: Files that a run itself may add: Python writes bytecode, and a build puts nothing beside sources.
_MAY_APPEAR = ".pyc"


def digests() -> dict[str, str]:
    """A digest of every file of the packages, bytecode included, and of the Python files beside them."""
    files = [file for name in _PACKAGES for file in (_ROOT / name).rglob("*")]
    files += [file for pattern in ("*.py", "*.pth", "*.toml") for file in _ROOT.glob(pattern)]
    return {
        file.relative_to(_ROOT).as_posix(): hashlib.blake2b(file.read_bytes()).hexdigest()
        for file in sorted(files)
        if file.is_file()
    }


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Files that were changed, removed or added; bytecode may be added."""
    new = [name for name in after if name not in before and not name.endswith(_MAY_APPEAR)]
    return sorted([name for name, digest in before.items() if after.get(name) != digest] + new)
