"""The environment of a process that imports this tree's packages from another folder."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    """That of this process, with this tree first on the path of modules: it need not be installed."""
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *([before] if before else [])])}
