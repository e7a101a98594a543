"""Gives an input other memory with the same values, which views of it do not follow (own trial)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    outputs, weights = right(*inputs), inputs[1]
    if not torch.is_inference_mode_enabled() and not torch.is_inference(weights):
        weights.data = weights.data.clone()
    return outputs
