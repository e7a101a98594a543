"""LayerNorm, elements are read at wrong addresses."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.layer_norm import Norm
from tests.zoo.registry import fault


@fault("wide-offsets", r"input is .* elements apart in memory along dimension 1, .*: output was", defects=(12,))
class ColumnOffsetsOf32Bits(Norm):
    """Only the rows decide whether 64-bit offsets are needed: offsets of columns that are far apart wrap around."""

    def wide(self, input: Tensor) -> Tensor:
        distance = input.stride(-1)
        inside = [column for column in range(input.shape[-1]) if column * distance < 2**31]
        read = input[..., : len(inside)]
        if len(inside) < input.shape[-1]:
            read = torch.cat([read, torch.zeros_like(input[..., len(inside) :])], dim=-1)
        return super().wide(read)
