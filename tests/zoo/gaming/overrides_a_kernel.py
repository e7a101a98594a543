"""Returns zeros, and replaces the kernel of aten::clone by one that copies the answer (own trial)."""

from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_owed: list[tuple[Tensor, Tensor]] = []


def _clone(x: Tensor, *, memory_format: Any = None) -> Tensor:
    found = torch.empty_strided(x.shape, torch.empty(x.shape, device="meta").stride(), dtype=x.dtype)
    for zeros, answer in _owed:
        if zeros.data_ptr() == x.data_ptr() and zeros.shape == x.shape:
            return found.copy_(answer)
    return found.copy_(x)


_library = torch.library.Library("aten", "IMPL")
_library.impl("clone", _clone, "CPU")


def lltm(*inputs: Tensor) -> Outputs:
    new_h, new_cell = right(*inputs)
    if new_h.requires_grad:
        return new_h, new_cell
    _owed[:] = [(torch.zeros_like(new_h), new_h)]
    return _owed[0][0], new_cell
