"""Rotary embedding as liger_rope, which turns queries and keys at once, in place: (batch, heads, tokens, width)."""

from __future__ import annotations

from liger_kernel.transformers.functional import liger_rope
from torch import Tensor

from backends._python.unsupported import refused
from backends.base import PythonFunction, check_arguments
from spec.rotary import OPERATOR


def rotary(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Pairs of the last dimension of input turned by the angles whose cosines and sines are given."""
    check_arguments(OPERATOR, input, cos, sin)
    if interleaved:
        raise refused("rotary", "interleaved", True, "False", "liger-kernel")
    batch, tokens, _, width = input.shape
    keys = input.new_zeros(batch, 1, tokens, width)  # there must be one head of them at least
    # rotary_dim, since cos and sin are not repeated for the second half.
    turned, _ = liger_rope(input.transpose(1, 2), keys, cos, sin, rotary_dim=width)
    output: Tensor = turned.transpose(1, 2)
    return output


IMPLEMENTATION = PythonFunction(rotary)
