"""Returns one constant for every input (field guides: constant output)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    return torch.full_like(inputs[3], 0.1), torch.full_like(inputs[4], 0.1)
