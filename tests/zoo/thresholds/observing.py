"""What a function does at a witness, and what the reference does: named tensors that can be compared."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from harness.discovery import operator
from harness.judging.scenario import lay_out
from spec.contract import Draw, Operator
from tests.zoo.thresholds.drawn import ALIASING, CALLS, GRAD, INFERENCE, RESULTS, STALE, STATE, Drawn, Expanded, Witness

Results = dict[str, Tensor]
#: What is wrong by less than this part of a value is rounding, not a fault.
A_FAULT = 0.01
_AGREES = {torch.float64: 1e-9, torch.float32: 2e-4, torch.float16: 0.02, torch.bfloat16: 0.1}
#: Enough for a parallel operation of torch, so that each of its threads shows its state.
_ELEMENTS = 1 << 18


def inputs(drawn: Drawn, seed: int = 0) -> dict[str, Tensor]:
    """New inputs of the witness, by name."""
    witness, of = drawn.witness, form_of(drawn)
    tensors = of.family("normal").make(dict(witness.sizes), Draw(seed), drawn.dtype)
    args = {arg.name: arg for arg in of.inputs}
    for name, change, number in witness.values:
        tensors[name] = _changed(tensors[name], change, number, args[name].row_dim or 0)
    return {
        name: lay_out(args[name].cast(tensor, drawn.dtype), witness.layouts.get(name, "contiguous"))
        for name, tensor in tensors.items()
    }


def form_of(drawn: Drawn) -> Operator:
    """The form of the operator in which the witness calls it."""
    of = operator(drawn.operator)
    return of.in_form(drawn.witness.form) if drawn.witness.form else of


def _changed(tensor: Tensor, change: str, number: float, row_dim: int) -> Tensor:
    """`repeat`, `rows`, `columns`: equal to the first; `distinct`, `first-empty`, `one`: of indices and offsets."""
    match change:
        case "times":
            return tensor * number
        case "plus":
            return tensor + number
        case "fill":
            return torch.full_like(tensor, number)
        case "magnitude":
            return tensor.abs() * number
        case "repeat" | "rows" | "columns":
            dim = {"repeat": row_dim, "rows": 0, "columns": -1}[change]
            return tensor.narrow(dim, 0, 1).expand_as(tensor).clone()
        case "sort":
            return tensor.flatten().sort().values.reshape(tensor.shape)
        case "distinct":
            return torch.arange(tensor.numel(), dtype=tensor.dtype).reshape(tensor.shape)
        case "first":
            tensor[..., :1, :] = number
            return tensor
        case "first-empty":
            tensor[1] = tensor[0]
            return tensor
        case "one":
            tensor[1:] = tensor[-1]
            return tensor
    raise ValueError(f"the change of a value was {change!r}, which is none")


def _cotangents(drawn: Drawn) -> list[Tensor]:
    draw, found = Draw(1), []
    for arg in form_of(drawn).outputs:
        dense = draw.normal(arg.shape_for(dict(drawn.witness.sizes))).to(drawn.dtype)
        found.append(_expanded(dense, drawn.witness.cotangents.get(arg.name, Expanded())))
    return found


def _expanded(dense: Tensor, kind: Expanded) -> Tensor:
    if len(kind.dims) == dense.dim():
        return torch.tensor(kind.factor, dtype=dense.dtype).expand(dense.shape)
    kept = dense
    for dim in kind.dims:
        kept = kept.narrow(dim, 0, 1)
    return (kept * kind.factor).clone().expand(dense.shape)


def _wanted(drawn: Drawn) -> tuple[str, ...]:
    witness = drawn.witness
    if witness.mode != GRAD:
        return ()
    every = tuple(arg.name for arg in form_of(drawn).inputs if arg.differentiable)
    return every if witness.wanted is None else witness.wanted


def _mode(witness: Witness) -> AbstractContextManager[Any]:
    if witness.mode == GRAD:
        return nullcontext()
    return torch.inference_mode() if witness.mode == INFERENCE else torch.no_grad()


def _call(drawn: Drawn, function: Callable[..., Any], tensors: Mapping[str, Tensor]) -> tuple[Tensor, ...]:
    for name in _wanted(drawn):
        tensors[name].requires_grad_()
    outputs = form_of(drawn).bound(function)(*tensors.values())
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _results(drawn: Drawn, function: Callable[..., Any], tensors: Mapping[str, Tensor]) -> Results:
    """Copies of the outputs and of the wanted gradients, in float64."""
    outputs, wanted = _call(drawn, function, tensors), _wanted(drawn)
    found = dict(zip((arg.name for arg in form_of(drawn).outputs), outputs, strict=True))
    if wanted:
        gradients = torch.autograd.grad(outputs, [tensors[name] for name in wanted], _cotangents(drawn))
        found |= {f"gradient of {name}": g for name, g in zip(wanted, gradients, strict=True)}
    return {name: tensor.detach().to(torch.float64, copy=True) for name, tensor in found.items()}


def _shared(drawn: Drawn, function: Callable[..., Any], tensors: Mapping[str, Tensor]) -> Results:
    """1 for each output that has memory in common with an input or with itself, else 0."""
    outputs = _call(drawn, function, tensors)
    memory = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}

    def shared(output: Tensor) -> bool:
        overlaps = any(size > 1 and not stride for size, stride in zip(output.shape, output.stride(), strict=True))
        return overlaps or output.untyped_storage().data_ptr() in memory

    names = [arg.name for arg in form_of(drawn).outputs]
    return {name: torch.tensor(float(shared(output))) for name, output in zip(names, outputs, strict=True)}


def _stale(drawn: Drawn, function: Callable[..., Any], tensors: Mapping[str, Tensor]) -> Results:
    """The results of a second call, after new values were written into `changed`."""
    _call(drawn, function, tensors)
    for name in drawn.witness.changed:
        tensors[name].copy_(inputs(drawn, seed=1)[name])
    return _results(drawn, function, tensors)


def _state() -> Results:
    """Denormal numbers in this thread and in those of OpenMP, and the mode of rounding."""
    smallest = torch.finfo(torch.float64).smallest_normal
    here = torch.full((1,), smallest, dtype=torch.float64) / 2
    everywhere = torch.full((_ELEMENTS,), smallest, dtype=torch.float64) / 2
    state = {
        "flushed here": not here.any(),
        "flushed": not everywhere.all(),
        "mode": ctypes.CDLL("libm.so.6").fegetround(),
    }
    return {name: torch.tensor(float(value)) for name, value in state.items()}


def _left(drawn: Drawn, function: Callable[..., Any], tensors: Mapping[str, Tensor]) -> Results:
    """The state that a call leaves. It is called in a thread of its own, whose state ends with it."""
    threads = torch.get_num_threads()

    def work() -> Results:
        torch.set_num_threads(max(threads, 2))  # with one, OpenMP has no thread of its own
        try:
            _call(drawn, function, tensors)
            return _state()
        finally:
            torch.set_num_threads(threads)

    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(work).result()


def observed(drawn: Drawn, function: Callable[..., Any]) -> Results:
    """What the function does at the witness, once."""
    look = {RESULTS: _results, CALLS: _results, ALIASING: _shared, STALE: _stale, STATE: _left}[drawn.witness.sees]
    with _mode(drawn.witness):
        return look(drawn, function, inputs(drawn))


def right(drawn: Drawn) -> Results:
    """What is right at the witness, by the reference in float64."""
    witness, of = drawn.witness, form_of(drawn)
    if witness.sees == ALIASING:
        return {arg.name: torch.tensor(0.0) for arg in of.outputs}
    if witness.sees == STATE:
        return dict.fromkeys(("flushed here", "flushed", "mode"), torch.tensor(0.0))
    tensors = inputs(drawn) | {name: inputs(drawn, seed=1)[name] for name in witness.changed}
    exact = tuple(t.to(torch.float64) if t.is_floating_point() else t for t in tensors.values())
    found = dict(zip((arg.name for arg in of.outputs), of.forward(*exact), strict=True))
    gradients = of.vjp(exact, tuple(g.to(torch.float64) for g in _cotangents(drawn)))
    by_name = dict(zip(tensors, gradients, strict=True))
    return found | {f"gradient of {name}": by_name[name] for name in _wanted(drawn)}


def _error(found: Tensor, wanted: Tensor) -> float:
    """The largest error, in parts of the value or of the tensor's typical value, whichever is larger."""
    if not wanted.numel():
        return 0.0
    found, wanted = found.to(torch.float64), wanted.to(torch.float64)
    typical = wanted.square().mean().sqrt()
    relative = (found - wanted).abs() / torch.maximum(wanted.abs(), typical).clamp(min=1e-300)
    return float(relative.nan_to_num(torch.inf).max())


def _affected(found: Tensor, wanted: Tensor) -> float:
    """The error of the elements that are wrong by more than rounding, in parts of their values."""
    difference = (found - wanted).abs().nan_to_num(torch.inf)
    wrong = difference > A_FAULT * wanted.abs()
    if not bool(wrong.any()):
        return 0.0
    size = wanted[wrong].square().mean().sqrt().clamp(min=1e-300)
    return float(difference[wrong].square().mean().sqrt() / size)


def errors(drawn: Drawn, function: Callable[..., Any]) -> dict[str, float]:
    """What is wrong at the witness by more than the rounding of the dtype: how much, by the name of the result."""
    wanted, found = right(drawn), observed(drawn, function)
    by_name = {name: _error(found[name], wanted[name]) for name in wanted}
    return {name: size for name, size in by_name.items() if size > _AGREES[drawn.dtype]}


def differs(drawn: Drawn, fault: Callable[..., Any], honest: Callable[..., Any]) -> bool:
    """Whether some call of the fault gives another result than its honest twin, by more than rounding."""
    wanted = observed(drawn, honest)
    return any(
        _affected(found[name], wanted[name]) >= A_FAULT
        for found in (observed(drawn, fault) for _ in range(drawn.witness.repeats))
        for name in wanted
    )
