"""Raises an exception whose class has a name of 30 MB: the report would be too large to be read (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    raise type("K" * 30_000_000, (Exception,), {})("x")
