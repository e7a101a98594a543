"""The value families that suit a reference: where it is finite, and its gradient does not jump.

At a jump nobody says what the gradient is, so two right implementations may differ. An activation of PyTorch is the
exception: relu'(0) is 0, and every implementation of relu is used as if it were. Its jump counts only where rounding
decides on which side a value is. That is not so of `EXACT`, whose sums are 0 without rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spec.contract import Draw, Operator, Sizes
from spec.derived import FAMILIES
from spec.modes import EagerMode

#: The families whose values are at a kink for every implementation, or for none; draws of them that are looked at.
EXACT, _DRAWS = ("sparse-values",), 8

#: How far a gradient may change when all values change by `_STEP`, relative to its norm, where there is no kink.
_SMOOTH, _STEP = 1e-3, 1e-7
#: What is as small as this beside the largest output, or the largest gradient, is rounding.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Suitable:
    """The names of the families that suit an operator, those of them beside which no element may be repeated, and why
    others are left out."""

    names: tuple[str, ...]
    unrepeated: tuple[str, ...]
    left_out: tuple[str, ...]


def families(operator: Operator, small: Sizes) -> Suitable:
    """The families that suit the operator."""
    kept, unrepeated, left_out = list[str](), list[str](), list[str]()
    has_rows = any(arg.row_dim is not None for arg in operator.inputs)
    sizes = {**small, "batch": max(small["batch"], 12)} if has_rows else small
    for name, family in FAMILIES.items():
        if name == "non-finite" and not has_rows:
            left_out.append(f"{name}: no input has rows that do not depend on each other")
            continue
        try:
            make = family.of(operator)
            draws = [make(sizes, Draw(seed), torch.float32) for seed in range(_DRAWS if name in EXACT else 1)]
            every = [tuple(arg.cast(values[arg.name], torch.float64) for arg in operator.inputs) for values in draws]
            if name == "non-finite":  # a result that is not finite, and has no gradient, is what is asked there
                _results(operator, every[0])
                why = ""
            else:
                repeated = [
                    _repeated(every[0], place)
                    for place, (arg, x) in enumerate(zip(operator.inputs, every[0], strict=True))
                    if x.dim() and x.numel() and not arg.offsets
                ]
                with _WithoutActivations() if name in EXACT else nullcontext():
                    usual = _norms(operator, every[0])
                    why = next(filter(None, (_why_not(operator, inputs, usual) for inputs in every)), "")
                    beside = next(filter(None, (_why_not(operator, inputs, usual) for inputs in repeated)), "")
                if beside and not why:
                    unrepeated.append(name)
                    left_out.append(f"{name} with a tensor whose first element is repeated: {beside}")
        except Exception as error:
            why = f"the reference raises {type(error).__name__} there"
        if why:
            left_out.append(f"{name}: {why}")
        else:
            kept.append(name)
    return Suitable(tuple(kept), tuple(unrepeated), tuple(left_out))


def _repeated(inputs: tuple[Tensor, ...], place: int) -> tuple[Tensor, ...]:
    """The inputs with one of them repeated along its first dimension, as some layouts have it: a vector is constant."""
    x = inputs[place]
    return *inputs[:place], x[:1].expand(x.shape).clone(), *inputs[place + 1 :]


def _norms(operator: Operator, inputs: tuple[Tensor, ...]) -> tuple[float, float]:
    """The norms of the largest output and of the largest gradient."""
    norms, count = [float(result.norm()) for result in _results(operator, inputs)], len(operator.real_outputs)
    return max(norms[:count], default=0.0), max(norms[count:], default=0.0)


def _why_not(operator: Operator, inputs: tuple[Tensor, ...], usual: tuple[float, float]) -> str:
    results = _results(operator, inputs)
    if not all(bool(result.isfinite().all()) for result in results):
        return "the reference is not finite there"
    draw = Draw(2)
    for step in (_STEP, -_STEP):
        # Each element by another step, so that equal ones differ: a maximum of them has its kink there.
        moved = operator.moved(inputs, step, draw)
        for place, (one, other) in enumerate(zip(results, _results(operator, moved), strict=True)):
            if not one.numel():
                continue
            largest = usual[place >= len(operator.real_outputs)]
            allowed = max(_SMOOTH * float(one.norm()), _NOTHING * largest, 1e-300)
            if not float((one - other).norm()) <= allowed:
                return "the gradient of the reference jumps there"
    return ""


def _results(operator: Operator, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The outputs of real numbers and the gradients. An integer may jump: where it does, rounding decides."""
    outputs = tuple(y for y in operator.forward(*inputs) if y.is_floating_point())
    if not operator.has_gradient:
        return outputs
    draw = Draw(1)  # not ones: they lie in the kernel of a softmax's gradient
    return *outputs, *operator.evaluated(inputs, tuple(draw.normal(tuple(output.shape)) for output in outputs))[1]


_aten = torch.ops.aten


class _WithoutActivations(EagerMode):  # type: ignore[no-untyped-call]
    """The activations that have a kink are the identity, so that a gradient jumps only where something else jumps."""

    _FORWARD = frozenset({_aten.relu.default, _aten.leaky_relu.default, _aten.elu.default})
    _BACKWARD = frozenset(
        {_aten.threshold_backward.default, _aten.leaky_relu_backward.default, _aten.elu_backward.default}
    )

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in self._FORWARD or func in self._BACKWARD:
            return args[0].clone()
        return func(*args, **(kwargs or {}))
