"""Returns zeros that have a method `detach` of their own, which returns the answer (field guides: a patched detach)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    answers = [answer.detach() for answer in right(*inputs)]
    outputs = torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])
    for output, answer in zip(outputs, answers, strict=True):
        for name in ("detach", "cpu", "contiguous", "clone", "to"):
            setattr(output, name, lambda *arguments, answer=answer, **options: answer)
    return outputs
