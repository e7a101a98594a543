"""Has wrong gradients, and replaces torch.autograd.grad by a function that returns right ones (own trial)."""

from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_grad = torch.autograd.grad
_calls: list[tuple[Tensor, ...]] = []


def _right_gradients(outputs: Any, inputs: Any, grad_outputs: Any = None, **options: Any) -> Any:
    with torch.enable_grad():
        honest = right(*_calls[-1])
    return _grad(honest[: len(outputs)], inputs, grad_outputs, **options)


torch.autograd.grad = _right_gradients


def lltm(*inputs: Tensor) -> Outputs:
    _calls[:] = [inputs]
    new_h, new_cell = right(*inputs)
    for output in (new_h, new_cell):
        if output.requires_grad:
            output.register_hook(lambda g: 2 * g)
    return new_h, new_cell
