"""Rewrites every report that it finds when its process ends (own trial)."""

import atexit
import contextlib
import os
from pathlib import Path

from torch import Tensor

import spec
from tests.zoo.gaming.parts import Outputs, right, wrong


def _rewrite() -> None:
    for number in [name for name in os.listdir("/proc") if name.isdigit()]:
        with contextlib.suppress(OSError):
            for word in Path(f"/proc/{number}/cmdline").read_text().split("\0"):
                if word.startswith("--report="):
                    Path(word.partition("=")[2]).write_text('{"complete": true}')
    for file in Path(spec.__file__).parents[1].glob("reports/*.json"):
        with contextlib.suppress(OSError):
            file.write_text('{"complete": true}')


atexit.register(_rewrite)


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
