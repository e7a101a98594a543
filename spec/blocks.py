"""What a reference says of its parts: blocks in which an implementation may compute in another way.

Each changes how the operations inside it err under `spec.rounding.Rounding`, and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor


class Region(threading.local):
    """How many blocks of each name this thread is in, and the tensor of the last `apart` block."""

    wide = 0
    one_sum = 0
    any_order = 0
    again = 0
    apart = 0
    extreme = 0
    beside: Tensor | None = None
    #: Whether the result of the next operation is the tensor of the `apart` block.
    awaited = False
    #: Whether the next operation rounds a tensor of a `wide` block to the dtype: see `narrowed`.
    narrows = False
    #: Whether this is a run of a half type.
    of_half = False


region = Region()


@contextmanager
def within(block: str) -> Iterator[None]:
    """In this block this thread is in a block of that name."""
    setattr(region, block, getattr(region, block) + 1)
    try:
        yield
    finally:
        setattr(region, block, getattr(region, block) - 1)


@contextmanager
def wide(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """In this block a reference computes in float32 for half types, and in the dtype itself otherwise.

    Yields the tensors in that dtype. Under `Rounding`, operations in the block err by the accumulator's roundoff.
    """
    with within("wide"):
        yield tuple(tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in tensors)


def one_sum() -> AbstractContextManager[None]:
    """In this block a reference adds products to each other; an implementation may add all their terms one by one.

    Under `Rounding`, an addition in the block errs as much as if the terms of the last product or sum were added to its
    result one after another.
    """
    return within("one_sum")


def of_half() -> bool:
    """Whether this is a run under `Rounding` of a half type, whose sums are rounded less than its results."""
    return region.of_half


def inside(block: str) -> bool:
    """Whether this thread is in a block of that name: `wide`, `one_sum` or `apart`."""
    return bool(getattr(region, block))


def any_order() -> AbstractContextManager[None]:
    """In this block an implementation may add what a reference adds in another order.

    Under `Rounding`, an addition in the block errs by the roundoff of its two terms: another order has other partial
    sums. It is for the gradients that autograd adds up where a tensor is used several times.
    """
    return within("any_order")


def again() -> AbstractContextManager[None]:
    """In this block a reference computes what backward may compute again: a softmax, of its logsumexp.

    FlashAttention keeps no weights but the logarithm of their sum, and its backward has exp(score - logsumexp). Where
    the logsumexp is large, that rounds otherwise than exp(score - largest) / sum. So under `Rounding`, what an
    `any_order` block computes of a softmax of this block is computed of such weights in half of the runs.
    """
    return within("again")


@contextmanager
def apart(tensor: Tensor) -> Iterator[None]:
    """In this block elements of equal value have different errors where those of `tensor` differ, in all runs.

    It is for a value that the reference computes once and an implementation may compute again for each element of
    `tensor`, which has the shape of the results in the block. Equal elements may still have equal errors: those of
    equal rows, for example.
    """
    outer = region.beside
    region.awaited = True
    tensor.view_as(tensor)  # under vmap, only the mode sees the elements of all runs
    region.awaited = False
    try:
        with within("apart"):
            yield
    finally:
        region.beside = outer


def one_rounding(tensor: Tensor, beside: Tensor | None = None) -> Tensor:
    """0; under `Rounding`, all that one rounding may change each element by, up or down.

    Equal elements have equal signs in half of the runs; with `beside`, those that are beside equal elements of it.
    """
    with apart(tensor if beside is None else beside), within("extreme"):
        return tensor * 1 - tensor


def stored(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor as `dtype` stores it. It is rounded once, also under `Rounding`; call it outside of `wide` there."""
    return (tensor * 1).to(dtype)


def narrowed(tensor: Tensor) -> Tensor:
    """A tensor of a `wide` block, in float64 and rounded once to the dtype.

    An implementation may save what it returns, in the dtype, where the reference saves the wide tensor. So under
    `Rounding`, what an `any_order` block computes of the wide tensor is computed of this one in half of the runs.
    """
    region.narrows = True
    try:
        return tensor.double() * 1
    finally:
        region.narrows = False
