"""Inputs of which the operations of a reference have no gradient: class weights of a loss, means of batch norm."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import torch

from spec import backward
from spec.contract import Draw, Sizes, TensorArg
from spec.derived import Reference


def with_constants(
    reference: Reference, inputs: tuple[TensorArg, ...], small: Sizes
) -> tuple[Reference, tuple[TensorArg, ...]]:
    """The reference and its inputs, with those marked at whose gradient alone it raises an error.

    Where the gradient of the others raises one too, nothing is marked: that is said when the reference is refused.
    """
    wanted = [arg.name for arg in inputs if arg.differentiable]
    if _has_gradient(reference, inputs, small, wanted):
        return reference, inputs
    constants = tuple(name for name in wanted if not _has_gradient(reference, inputs, small, [name]))
    others = [name for name in wanted if name not in constants]
    if not others or not _has_gradient(reference, inputs, small, others):
        return reference, inputs
    return replace(reference, constants=constants), without(inputs, constants)


def without(inputs: tuple[TensorArg, ...], names: Collection[str]) -> tuple[TensorArg, ...]:
    """The inputs, of which these have no gradient."""
    return tuple(replace(arg, differentiable=arg.differentiable and arg.name not in names) for arg in inputs)


def _has_gradient(reference: Reference, inputs: tuple[TensorArg, ...], small: Sizes, wanted: Collection[str]) -> bool:
    """Whether autograd differentiates the reference by these inputs without an error."""
    draw = Draw(0)
    given = [arg.cast(arg.ordinary(small, draw), torch.float64) for arg in inputs]
    leaves = [x.requires_grad_(arg.name in wanted) for arg, x in zip(inputs, given, strict=True)]
    try:
        outputs = [y for y in reference.forward(*leaves) if y.requires_grad]
        if outputs:
            backward.gradients(outputs, [x for x in leaves if x.requires_grad], [torch.ones_like(y) for y in outputs])
    except Exception:
        return False
    return True
