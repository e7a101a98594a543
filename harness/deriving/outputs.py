"""In which dtypes a reference returns its outputs: that of the call, float32, integers or truth values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from harness.deriving.wording import name_of
from harness.errors import UsageError
from spec import backward
from spec.contract import Draw, Sizes, TensorArg
from spec.derived import Reference

_HALVES = (torch.float16, torch.bfloat16)


def with_dtypes(
    where: str,
    reference: Reference,
    inputs: tuple[TensorArg, ...],
    outputs: tuple[TensorArg, ...],
    small: Sizes,
    allowed: Sequence[torch.dtype],
) -> tuple[tuple[TensorArg, ...], tuple[TensorArg, ...]]:
    """Inputs and outputs with what follows from the dtypes of the outputs. Raises UsageError if these do not agree.

    An output of integers or truth values is discrete. One that is float32 beside others of a half type is wide; if all
    are float32, they were not cast back. An input of which only discrete outputs are made is not differentiable.
    """
    seen = {dtype: found for dtype in allowed if (found := _dtypes(reference, inputs, small, dtype))}
    exact = _dtypes(reference, inputs, small, torch.float64, exact=True) or ()
    typed = []
    for place, arg in enumerate(outputs):
        kinds = {found[place] for found in (*seen.values(), exact) if place < len(found)}
        discrete = {kind for kind in kinds if not kind.is_floating_point}
        if discrete and len(kinds) > 1:
            names = " and ".join(sorted(map(name_of, kinds)))
            raise UsageError(f"{where} returned {arg.name} in {names}, but should return it in one dtype for all calls")
        if discrete:
            typed.append(replace(arg, dtype=discrete.pop(), differentiable=False))
        else:
            typed.append(replace(arg, wide=any(_is_wide(seen[half], place, half) for half in _HALVES if half in seen)))
    if all(arg.is_floating for arg in typed):
        return inputs, tuple(typed)
    return _with_gradients(reference, inputs, typed, small), tuple(typed)


def _is_wide(found: Sequence[torch.dtype], place: int, half: torch.dtype) -> bool:
    """Whether that output is float32 and another one is not."""
    return found[place] == torch.float32 and any(kind == half or not kind.is_floating_point for kind in found)


def _dtypes(
    reference: Reference, inputs: Sequence[TensorArg], small: Sizes, dtype: torch.dtype, exact: bool = False
) -> tuple[torch.dtype, ...] | None:
    """The dtypes of the outputs of a call; None if it raises. `exact`: as the oracle evaluates the reference."""
    draw = Draw(0)
    given = [arg.cast(arg.ordinary(small, draw), dtype) for arg in inputs]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = reference.forward(*given) if exact else reference.call(reference.function, *given)
    except Exception:
        return None
    return tuple(result.dtype for result in ((results,) if isinstance(results, Tensor) else results))


def _with_gradients(
    reference: Reference, inputs: tuple[TensorArg, ...], outputs: Sequence[TensorArg], small: Sizes
) -> tuple[TensorArg, ...]:
    draw = Draw(0)
    given = [arg.cast(arg.ordinary(small, draw), torch.float64) for arg in inputs]
    leaves = [tensor.requires_grad_(arg.differentiable) for arg, tensor in zip(inputs, given, strict=True)]
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    results = reference.forward(*leaves)
    used = [y for arg, y in zip(outputs, results, strict=True) if arg.is_floating and y.requires_grad]
    found = backward.gradients(used, wanted, [torch.ones_like(y) for y in used]) if used else [None] * len(wanted)
    reached = {id(leaf) for leaf, gradient in zip(wanted, found, strict=True) if gradient is not None}
    pairs = zip(inputs, leaves, strict=True)
    return tuple(replace(arg, differentiable=arg.differentiable and id(leaf) in reached) for arg, leaf in pairs)
