"""Returns one of two buffers in turn: a result is overwritten by the call after the next one (own trial)."""

import itertools

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_rings: dict[object, list[Outputs]] = {}
_calls = itertools.count()


def lltm(*inputs: Tensor) -> Outputs:
    outputs = right(*inputs)
    if outputs[0].requires_grad or torch.is_inference_mode_enabled():
        return outputs
    new = [(torch.empty_like(outputs[0]), torch.empty_like(outputs[1])) for _ in range(2)]
    buffers = _rings.setdefault((outputs[0].shape, outputs[0].dtype), new)[next(_calls) % 2]
    for buffer, output in zip(buffers, outputs, strict=True):
        buffer.detach().copy_(output)
    return buffers
