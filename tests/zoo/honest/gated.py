"""A gated activation written out in steps, each a method: right as it stands, and wrong when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from backends._python.rows import check_gated_arguments


class GatedActivation(ABC):
    """activated(gate) * up, half types in float32. `operator` is the contract's name."""

    operator: str

    def __call__(self, gate: Tensor, up: Tensor) -> Tensor:
        check_gated_arguments(self.operator, gate, up)
        return _Function.apply(self, gate, up)

    def wide(self, tensor: Tensor) -> Tensor:
        return tensor.to(torch.promote_types(tensor.dtype, torch.float32))

    @abstractmethod
    def activated(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def slope(self, x: Tensor) -> Tensor: ...

    def d_up(self, g: Tensor, x: Tensor) -> Tensor:
        return g * self.activated(x)


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a gated activation."""

    @staticmethod
    def forward(ctx: Any, steps: GatedActivation, gate: Tensor, up: Tensor) -> Tensor:
        ctx.steps = steps
        ctx.save_for_backward(gate, up)
        return (steps.activated(steps.wide(gate)) * steps.wide(up)).to(gate.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        steps: GatedActivation = ctx.steps
        gate, up = ctx.saved_tensors
        g, x, u = (steps.wide(tensor) for tensor in (grad, gate, up))
        return None, (g * u * steps.slope(x)).to(gate.dtype), steps.d_up(g, x).to(up.dtype)
