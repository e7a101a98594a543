"""Right as long as it seems to be checked."""

from typing import Any

import torch

from spec.lltm import OPERATOR

_calls = 0


def first_calls(*inputs: Any) -> Any:
    """Right in 20 calls; then the last answer again."""
    global _calls, _last  # noqa: PLW0603
    _calls += 1
    if _calls <= 20 or any(tensor.requires_grad for tensor in inputs):
        _last = OPERATOR.forward(*inputs)
    return _last


_last: Any = None


def constant_later(*inputs: Any) -> Any:
    """Right in 20 calls; then zeros."""
    global _calls  # noqa: PLW0603
    _calls += 1
    if _calls <= 20 or any(tensor.requires_grad for tensor in inputs):
        return OPERATOR.forward(*inputs)
    return torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])


def without_grad(*inputs: Any) -> Any:
    """Right where gradients are wanted; else the state as it was."""
    if torch.is_grad_enabled():
        return OPERATOR.forward(*inputs)
    return inputs[3].clone(), inputs[4].clone()


def one_in_ten(*inputs: Any) -> Any:
    """Right in nine calls of ten."""
    global _calls  # noqa: PLW0603
    _calls += 1
    if torch.is_grad_enabled() or _calls % 10:
        return OPERATOR.forward(*inputs)
    return inputs[3].clone(), inputs[4].clone()
