"""Whether the largest values that a reference takes need no gradient: those that a softmax subtracts."""

from __future__ import annotations

from dataclasses import replace

import torch

from spec.contract import Draw, Operator, Sizes
from spec.derived import Reference

#: How far the gradient may differ, relative to its norm: what is added in float64, and is 0.
_SAME = 1e-10
_DRAWS = 3


def with_shifts(reference: Reference, operator: Operator, small: Sizes) -> Reference:
    """The reference, marked if its gradient is the same without that of the largest values that it takes."""
    if not operator.has_gradient:
        return reference
    for seed in range(_DRAWS):
        draw = Draw(seed)
        inputs = tuple(arg.cast(arg.ordinary(small, draw), torch.float64) for arg in operator.inputs)
        cotangents = tuple(draw.normal(tuple(y.shape)) for y in reference.forward(*inputs) if y.is_floating_point())
        without = reference.without_shifts(inputs, cotangents)
        if without is None:
            return reference
        for one, other in zip(reference.vjp(inputs, cotangents), without, strict=True):
            if not float((one - other).norm()) <= _SAME * float(one.norm()):
                return reference
    return replace(reference, shifts=True)
