"""Calls exit(0) in a call (field guides: exit during the test)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    raise SystemExit(0)
