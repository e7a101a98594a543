"""Two formulas of one value, of which an implementation may use either.

They are equal in exact arithmetic and round differently: the derivative of elu below 0 is exp(z), and also elu(z) + 1.
A reference states both. It computes by the first; in half of the runs behind an envelope it computes by the second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class _Choice(threading.local):
    """A Boolean tensor without dimensions, True for the second formula; None outside of the runs of an envelope."""

    second: Tensor | None = None


_choice = _Choice()


def either(first: Callable[[], Tensor], second: Callable[[], Tensor]) -> Tensor:
    """The value of `first()`; in a block `with choosing(second)`, the value that `second` chooses."""
    if _choice.second is None:
        return first()
    return torch.where(_choice.second, second(), first())


@contextmanager
def choosing(second: Tensor) -> Iterator[None]:
    """In this block, `either` computes by the second formula where `second` is True: () and Boolean, or vmapped."""
    before, _choice.second = _choice.second, second
    try:
        yield
    finally:
        _choice.second = before
