"""Right only while torch has one thread (own trial)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if torch.get_num_threads() == 1 else wrong)(*inputs)
