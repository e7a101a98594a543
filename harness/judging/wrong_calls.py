"""Calls that an operator must refuse. They are made from its contract; no operator lists them by hand.

Each takes a right call and changes one argument: its rank, one of its sizes, its dtype, its type or its layout.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from harness.judging.subject import Subject
from spec.contract import Operator, Refusal, Shape, Sizes


@dataclass(frozen=True)
class WrongCall:
    """A call with one wrong argument, `value`, or with all of them elsewhere, or a wrong call that the contract lists.

    `kind` says what is wrong: shape, dtype, type, device, layout or attribute.
    """

    what: str
    argument: str
    value: Any
    inputs: tuple[Any, ...]
    kind: str
    refusal: Refusal | None = None

    def within(self, around: float, room: int) -> WrongCall:
        """The same call with each tensor in a larger buffer that holds `around` in `room` elements on both sides."""
        return replace(self, inputs=tuple(_within(value, around, room) for value in self.inputs))

    def make(self, subject: Subject) -> Any:
        """Make the call. It should raise; what it returns is returned."""
        if self.refusal is None:
            return subject.function(*self.inputs)
        return self.refusal.call(subject.raw or subject.function, *self.inputs)


def wrong_calls(operator: Operator, sizes: Sizes, inputs: tuple[Tensor, ...]) -> Iterator[WrongCall]:
    """Every way to make one argument of a right call wrong. All `sizes` should be distinct and above 1."""
    is_among_others = sum(arg.is_floating for arg in operator.inputs) > 1
    for position, (arg, tensor) in enumerate(zip(operator.inputs, inputs, strict=True)):

        def call(what: str, value: Any, kind: str, position: int = position, name: str = arg.name) -> WrongCall:
            spoilt = (*inputs[:position], value, *inputs[position + 1 :])
            return WrongCall(f"{name} {what}", name, value, spoilt, kind)

        for dim, length in enumerate(arg.shape_for(sizes)):
            shape = list(tensor.shape)
            for size in dict.fromkeys((length + 1, length - 1, 1, 0)):
                shape[dim] = size
                # A dimension whose size symbol occurs nowhere else may have any size.
                if size != length and not _is_free(operator, arg.shape[dim], arg.name):
                    yield call(
                        f"with size {size} for {length} in dimension {dim}", _sized(tensor, tuple(shape)), "shape"
                    )
        if not arg.any_rank:
            yield call("with a dimension too many", tensor.unsqueeze(0), "shape")
            yield call("with a dimension too few", tensor[0], "shape")
        is_tied = any(not _is_free(operator, expression, arg.name) for expression in arg.shape[:2])
        if is_tied and tensor.dim() >= 2 and tensor.shape[0] != tensor.shape[1]:
            words = "transposed" if tensor.dim() == 2 else "with its first two dimensions exchanged"
            yield call(words, tensor.transpose(0, 1).contiguous(), "shape")
        other = torch.float64 if tensor.dtype != torch.float64 else torch.float32
        if arg.is_floating and is_among_others:  # a lone tensor of real numbers may have any floating dtype
            yield call(f"of dtype {other}", tensor.to(other), "dtype")
        if len(operator.inputs) > 1:  # a lone tensor may be on any device
            yield call("on the meta device", tensor.to("meta"), "device")
            if tensor.device.type == "cuda":
                yield call("on the CPU", tensor.cpu(), "device")
        if arg.is_floating:
            yield call("of an integer dtype", tensor.to(torch.int64), "dtype")
        else:  # another integer dtype may be right
            yield call("of a floating dtype", tensor.to(torch.float32), "dtype")
        yield call("of a complex dtype", tensor.to(torch.complex64), "dtype")
        if not arg.optional:
            yield call("that is None", None, "type")
        if tensor.dim() == 2:
            yield call("with sparse layout", tensor.to_sparse(), "layout")
    for refusal in operator.refusals:
        yield WrongCall(refusal.what, refusal.argument, None, inputs, "attribute", refusal)


def elsewhere(inputs: tuple[Tensor, ...]) -> Iterator[WrongCall]:
    """The call with all of its tensors on the CPU, if they are on a GPU. An implementation may take it, and be right.

    A kernel that does not look at the device reads the addresses of another memory.
    """
    if inputs and inputs[0].device.type == "cuda":
        moved = tuple(tensor.cpu() for tensor in inputs)
        yield WrongCall("all tensors on the CPU", "", moved[0], moved, "device")


def _within(value: Any, around: float, room: int) -> Any:
    """A copy inside a larger buffer; what has no values in memory one after the other is returned as it is."""
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.device.type == "meta":
        return value
    has_nan = value.is_floating_point() or value.is_complex()
    filling = around if has_nan or not math.isnan(around) else 7
    buffer = torch.full((value.numel() + 2 * room,), filling, dtype=value.dtype, device=value.device)
    view = buffer[room : room + value.numel()].view(value.shape)
    return view.copy_(value)


def _sized(tensor: Tensor, shape: Shape) -> Tensor:
    """Values of `tensor`, repeated or cut to another shape: never uninitialised, never out of its range."""
    count = 1
    for size in shape:
        count *= size
    flat = tensor.flatten()
    return flat[torch.arange(count, device=tensor.device) % max(flat.numel(), 1)].view(shape)


def _is_free(operator: Operator, expression: str, name: str) -> bool:
    """Whether nothing else ties a dimension: no symbol of its expression occurs in another one."""
    words = re.findall(r"[A-Za-z_]\w*", expression) or [expression]
    uses = [
        other.name
        for other in operator.inputs
        for text in other.shape
        for word in words
        if re.search(rf"\b{re.escape(word)}\b", text)
    ]
    return uses == [name]


def message_lacks(operator: Operator, sizes: Sizes, call: WrongCall, message: str) -> list[str]:
    """What the message of a refused call lacks: the argument, what it was, what it should be. Empty if nothing."""
    lacks = []
    if not re.search(rf"\b{re.escape(call.argument)}\b", message):
        lacks.append(f"name the argument {call.argument!r}")
    if call.kind == "shape" and not _tells_shapes(operator, sizes, call, message):
        lacks.append("give the shape that was and the shape that should be")
    if call.refusal is not None:
        lacks += [f"match {pattern!r}" for pattern in call.refusal.tells if not re.search(pattern, message)]
    if call.kind in ("dtype", "device", "layout"):
        words = _words_of(call)
        if not any(re.search(rf"\b{word}\b", message, re.IGNORECASE) for word in words):
            lacks.append(f"say what it was ({words[0]})")
    return lacks


def _tells_shapes(operator: Operator, sizes: Sizes, call: WrongCall, message: str) -> bool:
    """Either argument may be blamed: «old_h is too wide» and «weights is too narrow» are both true."""
    for arg, tensor in zip(operator.inputs, call.inputs, strict=True):
        if not (isinstance(tensor, Tensor) and re.search(rf"\b{re.escape(arg.name)}\b", message)):
            continue
        if arg.name == call.argument and tensor.dim() != len(arg.shape):
            if _in_order(tuple(tensor.shape), message) and re.search(rf"\b{len(arg.shape)}\b", message):
                return True
            continue
        for known in (sizes, _sizes_with(operator, sizes, call)):
            if _in_order(tuple(tensor.shape), message) and _in_order(arg.shape_for(known), message):
                return True
    return False


def _sizes_with(operator: Operator, sizes: Sizes, call: WrongCall) -> Sizes:
    """The sizes if the wrong argument is taken to be right."""
    arg = next(arg for arg in operator.inputs if arg.name == call.argument)
    believed = dict(sizes)
    for expression, size in zip(arg.shape, call.value.shape, strict=False):
        if expression in believed:
            believed[expression] = size
    return believed


def _in_order(numbers: Shape, message: str) -> bool:
    return re.search(r"(?<!\d)" + r"\D{1,3}".join(str(number) for number in numbers) + r"(?!\d)", message) is not None


def _words_of(call: WrongCall) -> tuple[str, ...]:
    if call.kind == "device":
        return (call.value.device.type,)
    if call.kind == "layout":
        return ("sparse_coo", "sparse", "layout")
    name = str(call.value.dtype).removeprefix("torch.")
    spoken = {"float32": "Float", "float64": "Double", "int64": "Long", "complex64": "ComplexFloat"}
    return (name, spoken[name])
