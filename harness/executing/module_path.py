"""PYTHONPATH of a process that imports this tree, wherever it is started and whether the tree is installed or not."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


def with_this_tree(variables: Mapping[str, str], *after: str) -> str:
    """This tree, what PYTHONPATH is among `variables`, and the folders `after`."""
    return os.pathsep.join([str(ROOT), *filter(None, [variables.get("PYTHONPATH")]), *after])
