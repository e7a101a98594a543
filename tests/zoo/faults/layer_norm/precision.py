"""LayerNorm, statistics that are less precise than the contract requires."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.layer_norm import Dims, Norm
from tests.zoo.registry import fault


@fault("forward-parity", r"output was", dtype=torch.float16, defects=(25,))
class VarianceInHalf(Norm):
    """The squares are computed and added in float16."""

    def variance(self, x: Tensor, mean: Tensor, dims: Dims) -> Tensor:
        centred = (x - mean).to(torch.float16)
        return centred.square().mean(dims, keepdim=True).to(x.dtype)


@fault("forward-parity", r"values constant-rows|values small-variance", dtype=torch.float16, defects=(26,))
class EpsLostInHalf(Norm):
    """eps is kept in float16, where 1e-12 is 0."""

    def eps(self, eps: float) -> float:
        return float(torch.tensor(eps, dtype=torch.float16))


@fault("forward-parity", r"output was", dtype=torch.bfloat16)
class MeanInBfloat16(Norm):
    """The mean is rounded to bfloat16 before it is subtracted."""

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        return super().mean(x, dims).to(torch.bfloat16).to(x.dtype)


@fault("forward-parity", r"output was", dtype=torch.float64)
class SingleInside(Norm):
    """float64 goes through float32."""

    def wide(self, input: Tensor) -> Tensor:
        return input.to(torch.float32).to(torch.promote_types(input.dtype, torch.float32))
