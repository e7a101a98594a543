"""torch.autocast for an implementation in Python, by the rule of the contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from spec.contract import FLOAT32, LOWER, Operator

#: Devices for which autocast is queried. For others, meta among them, PyTorch refuses the query.
_DEVICES = ("cpu", "cuda")

Implementation = TypeVar("Implementation", bound=Callable[..., Any])


def by_rule(operator: Operator) -> Callable[[Implementation], Implementation]:
    """Under autocast, cast the arguments as `operator.autocast` says, and call with autocast off.

    With autocast on, it would cast each operation by itself: dtypes would change in the middle, and again in a backward
    that runs inside the region. As in PyTorch, float64 tensors and those of another device stay as they are. The casts
    belong to the graph, so a gradient has the dtype of its argument. Raises ValueError for an operator whose contract
    has no rule.
    """
    if not operator.autocast:
        raise ValueError(
            f"operator {operator.name!r} has no rule for autocast in its contract, so by_rule has none to follow; "
            f"leave it away, or set autocast={LOWER!r} or {FLOAT32!r} in the contract"
        )

    def wrap(function: Implementation) -> Implementation:
        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            device = next((value.device.type for value in arguments if isinstance(value, Tensor)), "cpu")
            if device not in _DEVICES or not torch.is_autocast_enabled(device):
                return function(*arguments, **named)
            dtype = torch.get_autocast_dtype(device) if operator.autocast == LOWER else torch.float32
            cast = [_cast(value, dtype, device) for value in arguments]
            cast_named = {name: _cast(value, dtype, device) for name, value in named.items()}
            with torch.autocast(device, enabled=False):
                return function(*cast, **cast_named)

        return call  # type: ignore[return-value]

    return wrap


def _cast(value: Any, dtype: torch.dtype, device: str) -> Any:
    eligible = isinstance(value, Tensor) and value.is_floating_point() and value.device.type == device
    return value.to(dtype) if eligible and value.dtype != torch.float64 else value
