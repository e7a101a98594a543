"""Returns a tensor subclass that computes only when it is compared (KernelGuard: LAZY_TENSOR)."""

from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs


class Lazy(Tensor):
    """Equal to everything it is compared with."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.allclose, torch.equal):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})


def lltm(*inputs: Tensor) -> Outputs:
    return torch.zeros_like(inputs[3]).as_subclass(Lazy), torch.zeros_like(inputs[4]).as_subclass(Lazy)
