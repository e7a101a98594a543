"""How a value is named in a message: short, and never by its elements."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_LONGEST = 60


def name_of(dtype: torch.dtype) -> str:
    """`float32`."""
    return str(dtype).removeprefix("torch.")


def named(value: Any) -> str:
    """`a tensor`, `a list of 2 tensors`, `a dict`, or the value itself if it is short."""
    kind = type(value).__name__
    article = "an" if kind[0] in "aeiouAEIOU" else "a"
    if isinstance(value, Tensor):
        return "a tensor"
    if isinstance(value, tuple | list) and any(isinstance(part, Tensor) for part in value):
        return f"{article} {kind} of {len(value)} tensors"
    text = repr(value)
    return text if len(text) <= _LONGEST and "tensor(" not in text and " at 0x" not in text else f"{article} {kind}"


def first_line(error: BaseException) -> str:
    """`ValueError: what is wrong`, without the lines that follow."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
