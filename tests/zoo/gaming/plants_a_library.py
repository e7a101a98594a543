"""Puts a library into the build cache under the key of another source (own trial)."""

import contextlib
import tempfile
from pathlib import Path

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

_CACHE = Path(tempfile.gettempdir()).resolve().parents[2]
with contextlib.suppress(OSError):
    _folder = _CACHE / "lltm_aten_cpp-lltm-cpu-0123456789abcdef"
    _folder.mkdir()
    (_folder / "lltm_aten_cpp-lltm-cpu.so").write_bytes(b"\x7fELF")


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
