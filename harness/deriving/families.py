"""The value families that suit a reference: where it is finite, and its gradient does not jump."""

from __future__ import annotations

import torch
from torch import Tensor

from spec.contract import Draw, Operator, Sizes
from spec.derived import FAMILIES

#: How far a gradient may change when all values change by `_STEP`, relative to its norm, where there is no kink.
_SMOOTH, _STEP = 1e-3, 1e-7
#: What is as small as this beside the largest gradient is rounding.
_NOTHING = 1e-9


def families(operator: Operator, small: Sizes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the families that suit the operator, and for each other one why it is left out."""
    kept, left_out = [], []
    has_rows = any(arg.row_dim is not None for arg in operator.inputs)
    sizes = {**small, "batch": max(small["batch"], 4)} if has_rows else small
    for name, family in FAMILIES.items():
        if name == "non-finite" and not has_rows:
            left_out.append(f"{name}: no input has rows that do not depend on each other")
            continue
        try:
            values = family.of(operator)(sizes, Draw(0), torch.float32)
            inputs = tuple(arg.cast(values[arg.name], torch.float64) for arg in operator.inputs)
            if name == "non-finite":  # a result that is not finite, and has no gradient, is what is asked there
                _results(operator, inputs)
                why = ""
            else:
                why = _why_not(operator, inputs)
        except Exception as error:
            why = f"the reference raises {type(error).__name__} there"
        if why:
            left_out.append(f"{name}: {why}")
        else:
            kept.append(name)
    return tuple(kept), tuple(left_out)


def _why_not(operator: Operator, inputs: tuple[Tensor, ...]) -> str:
    results = _results(operator, inputs)
    if not all(bool(result.isfinite().all()) for result in results):
        return "the reference is not finite there"
    largest = max((float(result.norm()) for result in results if result.numel()), default=0.0)
    for step in (_STEP, -_STEP):
        moved = tuple(x + step * (x.abs() + _STEP) if x.is_floating_point() else x for x in inputs)
        for one, other in zip(results, _results(operator, moved), strict=True):
            if not one.numel():
                continue
            allowed = max(_SMOOTH * float(one.norm()), _NOTHING * largest, 1e-300)
            if not float((one - other).norm()) <= allowed:
                return "the gradient of the reference jumps there"
    return ""


def _results(operator: Operator, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    outputs = operator.forward(*inputs)
    draw = Draw(1)  # not ones: they lie in the kernel of a softmax's gradient
    return *outputs, *operator.evaluated(inputs, tuple(draw.normal(tuple(output.shape)) for output in outputs))[1]
