"""Right only while grad mode is enabled, as in a check of gradients (field guides: evaluator mode)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if torch.is_grad_enabled() else wrong)(*inputs)
