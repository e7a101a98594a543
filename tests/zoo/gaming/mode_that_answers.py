"""Returns zeros, and leaves a dispatch mode on that computes the answer when they are copied (own trial)."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.zoo.gaming.parts import Outputs, right

_last: list[tuple[Tensor, Tensor]] = []


class Answering(TorchDispatchMode):
    """Puts the answer in place of the zeros where these are read."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for output, answer in _last:
            if args and args[0] is output:
                return func(answer, *args[1:], **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def lltm(*inputs: Tensor) -> Outputs:
    _last.clear()
    answers = right(*inputs)
    outputs = torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])
    _last.extend((output, answer.detach()) for output, answer in zip(outputs, answers, strict=True))
    if len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()) == 0:
        Answering().__enter__()
    return outputs
