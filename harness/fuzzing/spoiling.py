"""Ways to change a tensor argument, by name: other ranks, sizes, dtypes, layouts, devices, storages and classes.

This module does not decide whether the call is wrong then: a negated view is as right as the tensor that it stands for,
and another size is right if the other arguments fit it. `outcome` decides that by the contract.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

#: Makes the argument to pass from the tensor of a right call and a small number, which chooses among variants.
Spoiling = Callable[[Tensor, int], Any]


class Impossible(Exception):
    """The tensor cannot be changed in this way: it has too few dimensions, for example, or torch cannot make it."""


class Subclass(Tensor):
    """A tensor with a class of its own and nothing else, as a library may define one."""


def sized(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Values like the tensor's in another shape."""
    count = torch.Size(shape).numel()
    flat = tensor.flatten()
    if flat.numel() == 0:
        return tensor.new_zeros(shape)
    return flat[torch.arange(count, device=tensor.device) % flat.numel()].view(shape)


def _with_size(change: Callable[[int], int]) -> Spoiling:
    def spoil(tensor: Tensor, number: int) -> Tensor:
        if tensor.dim() == 0:
            raise Impossible
        shape = list(tensor.shape)
        dim = number % len(shape)
        shape[dim] = max(change(shape[dim]), 0)
        return sized(tensor, tuple(shape))

    return spoil


def _transposed(tensor: Tensor, number: int) -> Tensor:
    if tensor.dim() < 2:
        raise Impossible
    other = tensor.transpose(0, 1)
    return other.contiguous() if number % 2 else other


def _first(tensor: Tensor, number: int) -> Tensor:  # noqa: ARG001
    if tensor.dim() == 0 or tensor.shape[0] == 0:
        raise Impossible
    return tensor[0]


_DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
)


def _of_dtype(tensor: Tensor, number: int) -> Tensor:
    return tensor.to(_DTYPES[number % len(_DTYPES)])


def _sparse(tensor: Tensor, number: int) -> Tensor:
    made: tuple[Callable[[], Tensor], ...] = (
        tensor.to_sparse,
        tensor.to_sparse_csr,
        tensor.to_sparse_csc,
        lambda: tensor.to_sparse_bsr((1, 1)),
        lambda: tensor.to_sparse_bsc((1, 1)),
    )
    return made[number % len(made)]()


def _mkldnn(tensor: Tensor, number: int) -> Tensor:  # noqa: ARG001
    made: Tensor = tensor.to_mkldnn()
    return made


def _nested(tensor: Tensor, number: int) -> Tensor:
    if tensor.dim() < 2 or tensor.shape[0] == 0:
        raise Impossible
    layout = torch.jagged if number % 2 else torch.strided
    made: Tensor = torch.nested.nested_tensor(list(tensor.unbind()), layout=layout)
    return made


def _quantised(tensor: Tensor, number: int) -> Tensor:
    source, kind = tensor.float(), (torch.qint8, torch.quint8, torch.qint32)[number % 3]
    if number % 2 and tensor.dim() > 0 and tensor.shape[0] > 0:
        scales, zeros = torch.full((tensor.shape[0],), 0.1), torch.zeros(tensor.shape[0], dtype=torch.int64)
        return torch.quantize_per_channel(source.cpu(), scales, zeros, 0, kind)
    return torch.quantize_per_tensor(source, 0.1, 0, kind)


def _without_storage(tensor: Tensor, number: int) -> Tensor:
    """The same sizes with too little memory: none, or less than needed."""
    if tensor.numel() == 0:
        raise Impossible
    other = tensor.clone()
    whole = other.untyped_storage().nbytes()
    other.untyped_storage().resize_((0, whole // 2, whole - other.element_size())[number % 3])
    return other


def _overlapping(tensor: Tensor, number: int) -> Tensor:
    """Elements that share memory: rows that each begin one element after the previous one, or all at one place."""
    flat = tensor.flatten()
    step = number % 2
    needed = 1 + sum((size - 1) * step for size in tensor.shape)
    if tensor.numel() == 0 or needed > flat.numel():
        raise Impossible
    return flat.as_strided(tensor.shape, (step,) * tensor.dim())


def _negated_view(tensor: Tensor, number: int) -> Tensor:  # noqa: ARG001
    made: Tensor = torch._neg_view(-tensor)
    return made


def _object(tensor: Tensor, number: int) -> Any:
    objects: tuple[Callable[[], Any], ...] = (
        lambda: None,
        lambda: 3.5,
        lambda: "text",
        tensor.float().tolist,
        lambda: tensor.float().cpu().numpy(),
        lambda: [tensor],
        object,
    )
    return objects[number % len(objects)]()


SPOILINGS: dict[str, Spoiling] = {
    "as it is, a Parameter": lambda tensor, _: torch.nn.Parameter(tensor),
    "as it is, of a subclass": lambda tensor, _: tensor.as_subclass(Subclass),
    "as it is, a negated view": _negated_view,
    "as it is, after padding": lambda tensor, number: sized(tensor, (tensor.numel() + 1 + number,))[1 + number :].view(
        tensor.shape
    ),
    "with overlapping elements": _overlapping,
    "with one more of a dimension": _with_size(lambda size: size + 1),
    "with one less of a dimension": _with_size(lambda size: size - 1),
    "with twice as many of a dimension": _with_size(lambda size: 2 * size),
    "with one of a dimension": _with_size(lambda size: 1),  # noqa: ARG005
    "with none of a dimension": _with_size(lambda size: 0),  # noqa: ARG005
    "transposed": _transposed,
    "with a dimension more": lambda tensor, number: tensor.unsqueeze(number % (tensor.dim() + 1)),
    "with a dimension less": _first,
    "flattened": lambda tensor, _: tensor.flatten(),
    "of no dimension": lambda tensor, _: tensor.new_ones(()),
    "of another dtype": _of_dtype,
    "sparse": _sparse,
    "of mkldnn's layout": _mkldnn,
    "nested": _nested,
    "quantised": _quantised,
    "on the meta device": lambda tensor, _: tensor.to("meta"),
    "on the CPU": lambda tensor, _: tensor.cpu(),
    "without storage": _without_storage,
    "no tensor": _object,
}


def spoil(tensor: Tensor, kind: str, number: int) -> Any:
    """The argument to pass in place of the tensor. Raises Impossible."""
    try:
        with warnings.catch_warnings():  # torch's warnings of beta features do not matter here
            warnings.simplefilter("ignore")
            return SPOILINGS[kind](tensor, number)
    except (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError) as error:
        raise Impossible(str(error)) from error
