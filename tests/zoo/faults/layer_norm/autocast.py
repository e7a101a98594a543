"""Right by itself, and wrong under torch.autocast."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.layer_norm import Dims, Norm
from tests.zoo.registry import fault


@fault("autocast", "with float32 inputs, output was", dtype=torch.bfloat16)
class MeanByAProduct(Norm):
    """A row's mean is a product with ones, which autocast computes in bfloat16: the statistics lose digits."""

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        rows = x.flatten(x.dim() - len(dims))
        total = rows @ torch.ones(rows.shape[-1], 1, dtype=x.dtype, device=x.device)
        return (total / max(rows.shape[-1], 1)).reshape(*rows.shape[:-1], *(1 for _ in dims)).to(x.dtype)


@fault("autocast", "dtype of output was torch.bfloat16, but should be torch.float32", dtype=torch.bfloat16)
class NarrowOutput(Norm):
    """Statistics are in float32, but the output is cast to autocast's dtype, against the rule."""

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        narrow = torch.is_autocast_enabled("cpu") and input.dtype != torch.float64
        return output.to(torch.get_autocast_dtype("cpu") if narrow else input.dtype)
