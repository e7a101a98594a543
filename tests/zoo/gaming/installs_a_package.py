"""Puts a file where Python looks for packages at every start (field guides: packages installed)."""

import contextlib
import site
from pathlib import Path

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

with contextlib.suppress(OSError):
    _folder = Path(site.getusersitepackages())
    _folder.mkdir(parents=True, exist_ok=True)
    (_folder / "attack.pth").write_text("import builtins\n")


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
