"""Wrong where a weight is a Parameter, as in every model (own trial)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (wrong if any(isinstance(x, torch.nn.Parameter) for x in inputs) else right)(*inputs)
