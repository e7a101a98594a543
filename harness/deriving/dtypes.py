"""In which dtypes a reference can judge: where it runs, returns the dtype of its arguments, and loses no digits."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from harness.deriving.wording import first_line, name_of
from harness.errors import UsageError
from spec.contract import Draw, Sizes, TensorArg
from spec.derived import Reference

#: How far the reference in float64 may be from what it computes there without casts to float32, relative to its norm.
_SAME = 1e-11


def dtypes_of(
    where: str,
    reference: Reference,
    inputs: tuple[TensorArg, ...],
    outputs: tuple[TensorArg, ...],
    small: Sizes,
    allowed: Sequence[torch.dtype],
) -> tuple[tuple[torch.dtype, ...], tuple[str, ...]]:
    """The dtypes, and why each other one is left out. Raises UsageError if none is left."""
    kept, left_out = [], []
    for dtype in allowed:
        why = _why_not(reference, inputs, outputs, small, dtype)
        if why:
            left_out.append(f"{name_of(dtype)}: {why}")
        else:
            kept.append(dtype)
    if not kept:
        raise UsageError(
            f"{where} can judge in no dtype. {'; '.join(left_out)}. It should return the dtype it is given"
        )
    return tuple(kept), tuple(left_out)


def _why_not(
    reference: Reference,
    inputs: tuple[TensorArg, ...],
    outputs: tuple[TensorArg, ...],
    small: Sizes,
    dtype: torch.dtype,
) -> str:
    draw = Draw(0)
    given = [arg.cast(arg.ordinary(small, draw), dtype) for arg in inputs]
    if dtype == torch.float64 and any(arg.dtype == torch.float32 for arg in inputs):
        return "some tensors are float32 in every call"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = reference.call(reference.function, *(tensor.clone() for tensor in given))
    except Exception as error:
        return f"the reference raises {first_line(error)}"
    results = (results,) if isinstance(results, torch.Tensor) else tuple(results)
    for arg, result in zip(outputs, results, strict=True):
        if result.dtype != arg.dtype_in(dtype):
            return f"the reference returns {name_of(result.dtype)}; cast back with .to(x.dtype) to judge it"
    if dtype == torch.float64:
        for plain, exact in zip(results, reference.forward(*given), strict=True):
            real = exact.is_floating_point()
            if not (torch.equal(plain, exact) or (real and _distance(plain, exact) <= _SAME)):
                return "the reference computes in float32"
    return ""


def _distance(plain: Tensor, exact: Tensor) -> float:
    """How far two tensors are from each other, relative to the norm of the second."""
    return float((plain - exact).norm() / exact.norm())
