"""Gradients by autograd's engine. `torch.autograd.grad` with cotangents would import sympy first: half a second."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.overrides import has_torch_function

_RUN_BACKWARD = torch.autograd.Variable._execution_engine.run_backward


def gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor], *, retain: bool = False
) -> tuple[Tensor | None, ...]:
    """The gradients of the outputs, weighted by cotangents of their shapes, with respect to the inputs.

    None for an input that the outputs do not depend on. The graph is kept only with `retain`. Raises what a backward
    raises.
    """
    if has_torch_function((*outputs, *inputs)):  # a mode or a subclass: `torch.autograd.grad` is what it overrides
        found = torch.autograd.grad(outputs, inputs, cotangents, retain_graph=retain, allow_unused=True)
        return tuple(found)
    create_graph, allow_unused = False, True
    return tuple(
        _RUN_BACKWARD(
            tuple(outputs), tuple(cotangents), retain, create_graph, tuple(inputs), allow_unused, accumulate_grad=False
        )
    )
