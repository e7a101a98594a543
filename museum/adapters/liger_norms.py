"""Liger-Kernel's normalisations."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from torch import Tensor

from museum.interpreter import complete
from museum.parts import part

complete()
if os.environ.get("TRITON_INTERPRET") == "1":
    with suppress(ModuleNotFoundError):  # releases before 0.5.4 have none
        # Without a GPU, 0.5.4 asks torch.hip, which is not there, what the device is.
        utils: Any = part("liger_kernel.utils")
        utils.infer_device = lambda: "cpu"


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Liger normalises one dimension and always scales and shifts: the others are joined, None becomes 1 and 0."""
    features = math.prod(normalized_shape)
    scale = input.new_ones(features) if weight is None else weight.reshape(features)
    shift = input.new_zeros(features) if bias is None else bias.reshape(features)
    function = part("liger_kernel.ops.layer_norm").LigerLayerNormFunction
    return function.apply(input.reshape(-1, features), scale, shift, eps).reshape(input.shape)


def group_norm(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """With one group for each two channels."""
    channels = images.shape[1]
    function = part("liger_kernel.ops.group_norm").LigerGroupNormFunction
    return function.apply(images, weight, bias, channels, channels // 2, 1e-5)
