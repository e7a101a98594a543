"""Returns at once; a thread computes between two timed calls (field guides: background thread; pygpubench: thread)."""

import threading

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _compute(outputs: Outputs, inputs: tuple[Tensor, ...]) -> None:
    for output, answer in zip(outputs, right(*inputs), strict=True):
        output.copy_(answer.detach())


def lltm(*inputs: Tensor) -> Outputs:
    outputs = torch.empty_like(inputs[3]), torch.empty_like(inputs[4])
    values = tuple(tensor.detach() for tensor in inputs)
    threading.Thread(target=_compute, args=(outputs, values), daemon=True).start()
    return outputs
