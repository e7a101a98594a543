"""What a reference must be, before anything is judged by it: deterministic, differentiable, right in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from harness.errors import UsageError
from spec.contract import Draw, Operator, Sizes
from spec.rounding import knows


def refuse(where: str, operator: Operator, sizes: Sizes) -> None:
    """Raise UsageError, with what was found and what to do, if the reference cannot judge anything."""
    inputs = _inputs(operator, sizes)
    before = [tensor.clone() for tensor in inputs]
    first = _called(where, operator, inputs)
    for arg, now, was in zip(operator.inputs, inputs, before, strict=True):
        if not torch.equal(now, was):
            raise UsageError(f"{where} changed {arg.name}, but should leave its arguments as they are: copy it first")
    for arg, result in zip(operator.outputs, first, strict=True):
        if result.dtype != torch.float64:
            raise UsageError(
                f"{where} returned {arg.name} in {str(result.dtype).removeprefix('torch.')} for float64 arguments, but "
                "should return float64: cast back to the dtype of the argument, with .to(x.dtype)"
            )
    for _ in range(2):
        for arg, now, was in zip(operator.outputs, _called(where, operator, inputs), first, strict=True):
            if not torch.equal(now.nan_to_num(), was.nan_to_num()):
                raise UsageError(
                    f"{where} returned another {arg.name} for the same arguments, but should be deterministic: pass "
                    "what is random, such as a mask, as an argument"
                )
    _refuse_unknown(where, operator, inputs)
    _refuse_gradient(where, operator, inputs)


def _inputs(operator: Operator, sizes: Sizes) -> tuple[Tensor, ...]:
    draw = Draw(1)
    return tuple(arg.cast(arg.ordinary(sizes, draw), torch.float64) for arg in operator.inputs)


def _called(where: str, operator: Operator, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    try:
        return operator.forward(*inputs)
    except Exception as error:
        raise UsageError(f"{where} raised {type(error).__name__}: {error}, but should return tensors") from error


class _Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The operations whose rounding the model does not know."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.unknown: dict[str, None] = {}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and result.is_floating_point() and not knows(func):
            self.unknown[str(func)] = None
        return result


def _refuse_unknown(where: str, operator: Operator, inputs: tuple[Tensor, ...]) -> None:
    with torch.no_grad(), _Seen() as seen:
        outputs = operator.forward(*inputs)
        operator.vjp(inputs, tuple(torch.ones_like(output) for output in outputs))
    if seen.unknown:
        raise UsageError(
            f"{where} uses {', '.join(seen.unknown)}, whose rounding errors are not modelled: write it with products, "
            "sums and elementwise functions"
        )


def _refuse_gradient(where: str, operator: Operator, inputs: tuple[Tensor, ...]) -> None:
    pairs = zip(operator.inputs, inputs, strict=True)
    leaves = tuple(tensor.clone().requires_grad_(arg.differentiable) for arg, tensor in pairs)
    outputs = operator.forward(*leaves)
    for arg, output in zip(operator.outputs, outputs, strict=True):
        if not output.requires_grad:
            raise UsageError(
                f"{where}: {arg.name} does not depend on its arguments through differentiable operations, so there is "
                "no gradient: remove detach, no_grad, rounding or .item() from the reference"
            )
    try:
        torch.autograd.gradcheck(operator.forward, leaves)
    except RuntimeError as error:
        lines = [line for line in str(error).splitlines() if line.strip()][:3]
        raise UsageError(
            f"{where}: autograd's gradient is not that of finite differences in float64 ({' '.join(lines)}): mend the "
            "backward of the reference"
        ) from error
