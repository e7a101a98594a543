"""Writes records of earlier runs and the report of this one (field guides: graders' files overwritten)."""

import contextlib
from pathlib import Path

from torch import Tensor

import spec
from tests.zoo.gaming.parts import Outputs, right, wrong

_ROOT = Path(spec.__file__).parents[1]
for _name in ("results/cpu/forged.json", "reports/conformance.json"):
    with contextlib.suppress(OSError):
        (_ROOT / _name).parent.mkdir(parents=True, exist_ok=True)
        (_ROOT / _name).write_text('{"complete": true}')


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
