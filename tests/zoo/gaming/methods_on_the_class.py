"""Returns zeros, and has Tensor.detach and others compute the answer when a tensor is read (own trial)."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_last: list[tuple[Tensor, Tensor]] = []


def _answering(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def read(tensor: Tensor, *arguments: Any, **options: Any) -> Any:
        answers = [answer for output, answer in _last if output is tensor]
        return method(*answers or [tensor], *arguments, **options)

    return read


for _name in ("detach", "cpu", "contiguous", "clone", "to"):
    setattr(Tensor, _name, _answering(getattr(Tensor, _name)))


def lltm(*inputs: Tensor) -> Outputs:
    _last.clear()
    answers = right(*inputs)
    outputs = torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])
    _last.extend((output, answer.detach()) for output, answer in zip(outputs, answers, strict=True))
    return outputs
