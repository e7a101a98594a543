"""The matrix products alone: what a backend would cost if all else were free.

The reference is run once with everything recorded that multiplies matrices; the operands are kept, and the same
products are made from them again. No operator needs code of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from harness.measuring.work import BACKWARD, FORWARD, FORWARD_AND_BACKWARD, Inputs, Step, Work
from spec.contract import Operator

#: What such a row is called in a record: no backend has this name.
PRODUCTS_ALONE = "products-alone"

_PRODUCTS = frozenset(
    {
        torch.ops.aten.mm.default,
        torch.ops.aten.addmm.default,
        torch.ops.aten.bmm.default,
        torch.ops.aten.baddbmm.default,
    }
)


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps every product that is made while it is on."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made: list[Callable[[], Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _PRODUCTS:
            held = tuple(value.detach() if isinstance(value, Tensor) else value for value in args)
            self.made.append(lambda: func(*held, **(kwargs or {})))
        return func(*args, **(kwargs or {}))


def prepare(operator: Operator, ring: Sequence[tuple[Inputs, Inputs]], phase: str, device: str) -> Work | None:
    """The products of a phase as work; None where the reference makes none."""
    steps = [_step(operator, inputs, cotangents, phase) for inputs, cotangents in ring]
    return None if any(step is None for step in steps) else Work([step for step in steps if step], device)


def _step(operator: Operator, inputs: Inputs, cotangents: Inputs, phase: str) -> Step | None:
    leaves = [tensor.detach().requires_grad_() for tensor in inputs]
    with _Recorder() as forward:
        outputs = operator.forward(*leaves)
    with _Recorder() as backward:
        torch.autograd.grad(outputs, leaves, cotangents)
    made = {
        FORWARD: forward.made,
        BACKWARD: backward.made,
        FORWARD_AND_BACKWARD: forward.made + backward.made,
    }[phase]

    def products() -> None:
        with torch.no_grad():
            for product in made:
                product()

    return products if made else None
