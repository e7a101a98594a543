"""Has inputs require grad that did not, so that a frozen weight is trained (own trial)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    outputs = right(*inputs)
    for x in inputs:
        if not x.requires_grad and not torch.is_inference(x):
            x.requires_grad_()
    return outputs
