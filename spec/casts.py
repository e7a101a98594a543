"""Evaluate in float64 a reference that computes in float32 for half types.

Models write `x.float()` at first and `.to(x.dtype)` at last. Evaluated in float64 as it stands, such a reference would
lose digits. Under `Casts` a cast to float32 changes no digit, but the roundoff: the tensor is *wide*, and so is what is
computed of it, by PyTorch's rules of promotion. What is wide is evaluated in a block `spec.blocks.wide`. A cast back
to the dtype of the call rounds once. What is made in float32, such as `torch.arange(n).float()`, is wide too.

float64 stands for the dtype of the call, which may be a half type: `torch.promote_types(x.dtype, torch.float32)` is
float32 here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from spec.blocks import narrowed, wide

#: The attribute of a wide tensor.
_MARK = "_is_wide"
_DTYPE_OF = Tensor.dtype.__get__  # type: ignore[attr-defined]
_CASTS = frozenset({Tensor.float, Tensor.double, Tensor.to, Tensor.type, Tensor.type_as})
_REAL = frozenset({torch.float32, torch.float64})
_DOUBLE = frozenset({torch.float64, torch.complex128})
#: Poolings whose windows may be dilated.
_POOLS = frozenset(f"max_pool{dims}d{indices}" for dims in (1, 2, 3) for indices in ("", "_with_indices"))
_ASSIGNMENTS = frozenset({Tensor.copy_, Tensor.__setitem__})


class Casts(TorchFunctionMode):
    """In this mode tensors of real numbers are float64; those that would be float32 are wide."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.promote_types and set(args) == {torch.float32, torch.float64}:
            return torch.float32
        if func is _DTYPE_OF:
            return _dtype_of(args[0])
        given = _tensors((args, kwargs))
        if any(leaf.dtype == torch.float32 for leaf in given):
            args, kwargs = tree_map_only(Tensor, _in_float64, (args, kwargs))
            given = _tensors((args, kwargs))
        real = [leaf for leaf in given if _is_number(leaf)]
        asked = _asked(func, args, kwargs)
        if func in _CASTS and asked is not None:
            return _cast(args[0], asked)
        into = _written(func, args)
        if func.__name__ in _POOLS:
            _hold_windows(func, args, kwargs)
        if asked is None and into is None:
            if not real:
                return _made_of_none(func, args, kwargs)
            if not any(map(is_wide, real)):
                return func(*args, **kwargs)
        if func in _ASSIGNMENTS and not is_wide(args[0]):
            args = (*args[:-1], _cast(args[-1], torch.float64) if is_wide(args[-1]) else args[-1])
        if asked is torch.float32:
            args, kwargs = tree_map_only(torch.dtype, _widened, (args, kwargs))
        beyond = is_wide(into) if into is not None else asked is torch.float32 or (asked is None and _promoted(real))
        with wide() if beyond else nullcontext():
            results = func(*args, **kwargs)
        if beyond and into is None:
            for leaf in _tensors(results):
                if _is_number(leaf) and not any(leaf is each for each in given):
                    _marked(leaf)
        return results


def _hold_windows(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise ValueError if a window of a pooling has no element of the input, but padding alone.

    That may be where windows are dilated. The largest element is then the least number, at an index outside of the
    input, and PyTorch's backward writes there.
    """
    dilation = kwargs.get("dilation", args[4] if len(args) > 4 else 1)
    if set(dilation) == {1} if isinstance(dilation, tuple | list) else dilation == 1:
        return
    zeros = tree_map_only(Tensor, lambda tensor: torch.zeros_like(tensor, requires_grad=False), (args, kwargs))
    results = func(*zeros[0], **zeros[1])
    largest = results[0] if isinstance(results, tuple) else results
    if bool(largest.isinf().any()):
        raise ValueError(f"a window of {func.__name__} lies in the padding alone")


def is_wide(value: Any) -> bool:
    """Whether it is a tensor that would be float32 outside of this mode."""
    return isinstance(value, Tensor) and bool(getattr(value, _MARK, False))


def _marked(tensor: Tensor) -> Tensor:
    setattr(tensor, _MARK, True)
    return tensor


def _in_float64(tensor: Tensor) -> Tensor:
    """A float32 tensor from outside, a constant, as a wide one."""
    return _marked(tensor.double()) if tensor.dtype == torch.float32 else tensor


def _widened(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float32 else dtype


def _asked(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
    """float32 or float64 if the call names it, as a dtype or as that of another tensor; else None."""
    if func in (Tensor.float, Tensor.double):
        return torch.float32 if func is Tensor.float else torch.float64
    values = (*args, *kwargs.values())
    if func in _CASTS:
        values = tuple(_dtype_of(value) if isinstance(value, Tensor) else value for value in values[1:])
    return next((value for value in values if isinstance(value, torch.dtype) and value in _REAL), None)


def _dtype_of(tensor: Tensor) -> torch.dtype:
    if not is_wide(tensor):
        return tensor.dtype
    return torch.complex64 if tensor.is_complex() else torch.float32


def _is_number(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor in the dtype of the call (float64), rounded to it once, or a wide one (float32)."""
    if dtype == torch.float32:
        return tensor if is_wide(tensor) else _marked(tensor.double().clone())
    return tensor.double() if tensor.dtype == torch.float64 and not is_wide(tensor) else narrowed(tensor)


def _written(func: Callable[..., Any], args: tuple[Any, ...]) -> Tensor | None:
    """The tensor that the call writes to; None if it makes another."""
    name = getattr(func, "__name__", "")
    in_place = (name.endswith("_") and not name.endswith("__")) or name in ("__setitem__", "__iadd__", "__imul__")
    return args[0] if in_place and args and isinstance(args[0], Tensor) else None


def _tensors(value: Any) -> list[Tensor]:
    """The tensors in tuples, lists and dicts; faster than PyTorch's own walk, since this is done in every call."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, tuple | list):
        return []
    return [leaf for part in value for leaf in _tensors(part)]


def _promoted(real: list[Tensor]) -> bool:
    """Whether what is computed of these is wide: one of them is; one of no dimension only if none has any."""
    return any(is_wide(leaf) for leaf in [leaf for leaf in real if leaf.dim()] or real)


def _made_of_none(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a call of no real tensors returns. PyTorch makes it in its default dtype: it is wide."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with wide():
            results = func(*args, **kwargs)
    finally:
        torch.set_default_dtype(usual)
    return tree_map_only(Tensor, lambda leaf: _marked(leaf) if leaf.dtype in _DOUBLE else leaf, results)
