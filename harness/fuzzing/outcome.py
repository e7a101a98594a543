"""Judge the result of a hostile call: a clean refusal, a right answer, or a failure.

A refusal is clean if it is an exception of the kinds that a caller expects, names an argument that is wrong, and is no
internal error. If a shape was spoilt, two arguments disagree, and the error may name either. An answer is right if the
arguments, read as plain dense tensors, are a call of the contract, and the outputs keep their allowance. If the
arguments are no call of the contract, any result means that the call was silently accepted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harness.errors import Failure
from harness.fuzzing.calls import HostileCall
from harness.judging.compare import SAME, compare
from harness.judging.oracle import expected_of
from harness.judging.scenario import Call
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from spec.contract import DTYPES, Operator, Sizes

#: The results of a call, as the figures of a cell count them.
REFUSED, RIGHT, UNJUDGED = "refused", "right", "accepted, and nothing to compare with"

_CLEAN = (TypeError, ValueError, RuntimeError, IndexError)  # NotImplementedError is a RuntimeError
_INTERNAL = re.compile(
    r"internal assert|please report a bug|std::|CUDA error|illegal memory access|vector::|unknown exception",
    re.IGNORECASE,
)


def judge_call(subject: Subject, call: HostileCall) -> str:
    """Make the call and return its result. Raises Failure unless it is a clean refusal or a right answer."""
    values = call.values(subject)
    where = f"[{call.describe(subject.operator)}]"
    try:
        results = subject.function(*values)
    except CANDIDATE_ERRORS as error:
        _hold_clean(subject.operator, call, values, error, where)
        return REFUSED
    return _hold_right(subject, values, results, where)


def _hold_clean(operator: Operator, call: HostileCall, values: Sequence[Any], error: BaseException, where: str) -> None:
    was = f"a hostile call raised {one_line(error)}"
    if not isinstance(error, _CLEAN):
        names = ", ".join(kind.__name__ for kind in _CLEAN)
        raise Failure(f"{was}, but should raise one of {names} {where}")
    if _INTERNAL.search(str(error)):
        raise Failure(f"{was}, but should refuse the argument before it comes to an internal error {where}")
    spoilt = [name for name, _, _ in call.spoilt]
    spoilt += sorted(_disagreeing(operator, values, dict(call.sizes)) - set(spoilt))
    if call.arguments is not None:  # no single argument is wrong: their number is, or the first missing one
        spoilt = [*(arg.name for arg in operator.inputs), "argument", "arguments", operator.name]
    if not spoilt:
        raise Failure(f"{was}, but is a right call {where}")
    if not any(re.search(rf"\b{re.escape(name)}\b", str(error)) for name in spoilt):
        raise Failure(f"{was}, but should name the argument {' or '.join(map(repr, spoilt))} {where}")


def _disagreeing(operator: Operator, values: Sequence[Any], sizes: Sizes) -> set[str]:
    """The arguments that share a size with one whose shape is not that of the contract."""
    symbols = {
        arg.name: {symbol for size in arg.shape for symbol in re.findall(r"[a-z_]+", size)} for arg in operator.inputs
    }
    return {
        other.name
        for arg, value in zip(operator.inputs, values, strict=False)
        if isinstance(value, Tensor) and not value.is_nested and tuple(value.shape) != arg.shape_for(sizes)
        for other in operator.inputs
        if symbols[arg.name] & symbols[other.name]
    }


def _hold_right(subject: Subject, values: Sequence[Any], results: Any, where: str) -> str:
    operator = subject.operator
    outputs = tuple(results) if isinstance(results, tuple | list) else (results,)
    if len(values) != len(operator.inputs):
        raise Failure(f"a call with {len(values)} arguments was accepted, but should raise {where}")
    optional = [arg.name for arg, value in zip(operator.inputs, values, strict=True) if value is None and arg.optional]
    if optional or any(arg.any_rank for arg in operator.inputs):
        return UNJUDGED  # this may be a right call of another form, which this form cannot judge
    plain = [_plain(value, subject) for value in values]
    inputs = tuple(tensor for tensor in plain if tensor is not None)
    sizes = _sizes(operator, inputs) if len(inputs) == len(plain) else None
    if sizes is None:
        raise Failure(f"a hostile call returned {_shapes(outputs)}, but should raise: it was silently accepted {where}")
    _hold_shapes(operator, outputs, sizes, inputs[0].dtype, where)
    if any(tensor.numel() == 0 for tensor in (*inputs, *outputs)):
        return UNJUDGED
    given = Call(inputs, tuple(torch.ones_like(y) if y.is_floating_point() else None for y in outputs))
    measure = expected_of(operator, given, inputs[0].dtype)
    for arg, output in zip(operator.outputs, outputs, strict=True):
        found = compare(output.detach(), measure.outputs[arg.name], SAME)
        if not found.holds:
            raise Failure(
                f"{arg.name} of a hostile call was wrong ({found.special or found.worst.name}), but should be right, "
                f"or the call refused {where}"
            )
    return RIGHT


def _plain(value: Any, subject: Subject) -> Tensor | None:
    """The dense tensor of the contract that an argument stands for; None if it stands for none."""
    if not isinstance(value, Tensor) or value.device.type != subject.torch_device.type:
        return None
    if value.layout != torch.strided or value.is_nested or value.is_quantized or value.dtype not in DTYPES:
        return None
    if value.untyped_storage().nbytes() < _needed(value):
        return None
    return value.detach().as_subclass(Tensor).resolve_neg().clone()


def _needed(tensor: Tensor) -> int:
    """Bytes of storage that the tensor's elements need."""
    if tensor.numel() == 0:
        return 0
    last = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return int(last + 1) * tensor.element_size()


def _sizes(operator: Operator, inputs: Sequence[Tensor]) -> Sizes | None:
    """The sizes at which these tensors are a right call; None if there are none."""
    sizes: dict[str, int] = {}
    for arg, tensor in zip(operator.inputs, inputs, strict=True):
        if tensor.dim() != len(arg.shape) or tensor.dtype != inputs[0].dtype:
            return None
        sizes.update({text: n for text, n in zip(arg.shape, tensor.shape, strict=True) if text.isidentifier()})
    fits = (arg.shape_for(sizes) == tuple(tensor.shape) for arg, tensor in zip(operator.inputs, inputs, strict=True))
    return sizes if all(fits) else None


def _hold_shapes(operator: Operator, outputs: Sequence[Any], sizes: Sizes, dtype: torch.dtype, where: str) -> None:
    if len(outputs) != len(operator.outputs) or not all(isinstance(output, Tensor) for output in outputs):
        raise Failure(f"a hostile call returned {_shapes(outputs)}, but should return {operator.signature} {where}")
    for arg, output in zip(operator.outputs, outputs, strict=True):
        was, should = (tuple(output.shape), output.dtype), (arg.shape_for(sizes), arg.dtype_in(dtype))
        if was != should:
            raise Failure(f"{arg.name} of a hostile call was {was}, but should be {should} {where}")


def _shapes(outputs: Sequence[Any]) -> str:
    return "outputs of shape " + ", ".join(str(tuple(getattr(output, "shape", ()))) for output in outputs)
