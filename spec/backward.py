"""Gradients by autograd's engine. `torch.autograd.grad` with cotangents would import sympy first: half a second."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

_RUN_BACKWARD = torch.autograd.Variable._execution_engine.run_backward


def gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor], *, retain: bool = False
) -> tuple[Tensor | None, ...]:
    """The gradients of the outputs, weighted by cotangents of their shapes, with respect to the inputs.

    None for an input that the outputs do not depend on. The graph is kept only with `retain`. Raises what a backward
    raises.
    """
    create_graph, allow_unused = False, True
    found: tuple[Tensor | None, ...] = _RUN_BACKWARD(
        tuple(outputs), tuple(cotangents), retain, create_graph, tuple(inputs), allow_unused, accumulate_grad=False
    )
    return found
