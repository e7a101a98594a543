"""All calls return the same memory."""

from typing import Any

import torch

from spec.lltm import OPERATOR

_buffers: list[Any] = []


def one_buffer(*inputs: Any) -> Any:
    """Right until the next call."""
    results = OPERATOR.forward(*inputs)
    if torch.is_grad_enabled():
        return results
    if not _buffers:
        _buffers.extend(torch.empty_like(y) for y in results)
    return tuple(buffer.copy_(y) for buffer, y in zip(_buffers, results, strict=True))
