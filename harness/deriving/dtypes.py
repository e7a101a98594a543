"""In which dtypes a reference can judge: where it runs, returns the dtype of its arguments, and loses no digits."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch

from harness.deriving.wording import first_line
from harness.errors import UsageError
from spec.contract import Draw, Sizes, TensorArg
from spec.derived import Reference

#: How far the reference in float64 may be from what it computes there without casts to float32, relative to its norm.
_SAME = 1e-11


def dtypes_of(
    where: str,
    reference: Reference,
    inputs: tuple[TensorArg, ...],
    small: Sizes,
    allowed: Sequence[torch.dtype],
) -> tuple[tuple[torch.dtype, ...], tuple[str, ...]]:
    """The dtypes, and why each other one is left out. Raises UsageError if none is left."""
    kept, left_out = [], []
    for dtype in allowed:
        why = _why_not(reference, inputs, small, dtype)
        if why:
            left_out.append(f"{_name(dtype)}: {why}")
        else:
            kept.append(dtype)
    if not kept:
        raise UsageError(
            f"{where} can judge in no dtype. {'; '.join(left_out)}. It should return the dtype it is given"
        )
    return tuple(kept), tuple(left_out)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _why_not(reference: Reference, inputs: tuple[TensorArg, ...], small: Sizes, dtype: torch.dtype) -> str:
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
    for result in results:
        if result.dtype != dtype:
            return f"the reference returns {_name(result.dtype)}; cast back with .to(x.dtype) to judge it"
    if dtype == torch.float64:
        for plain, exact in zip(results, reference.forward(*given), strict=True):
            if not float((plain - exact).norm()) <= _SAME * float(exact.norm()):
                return "the reference computes in float32"
    return ""
