"""Under torch.autocast the contract's rule holds: values, dtypes, gradients, and a step with torch.amp.GradScaler.

A network under autocast hands an operator float32 weights and the half-precision output of the layer before. Who checks
that all dtypes are alike refuses that; who reads memory without looking at the dtype reads nonsense; and what PyTorch
casts operation by operation in the middle of a backward raises there, or loses the statistics of a row in half
precision. So float32 tensors that hold values of the half type are passed, all of them or the parameters alone, and
what comes back is held against the allowance of the dtype that the rule names: an implementation may be more accurate,
and return float32. Gradients come back in the dtypes of their inputs, from a backward outside of autocast and inside.
A region where autocast is off again, and float64, are as if there were no autocast.

GradScaler multiplies the loss, and skips a step whose gradients overflow: they must be scaled back to what is right,
and must not be finite where they cannot be.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.errors import Failure, NotApplicable
from harness.judge import Property
from harness.oracle import Expected, expected, expected_of
from harness.parity import Tally
from harness.scenario import Call, Scenario
from harness.scenarios import representative, smallest
from harness.subject import Subject
from spec.contract import FLOAT32

_NARROW = (torch.float16, torch.bfloat16)
#: A power of 2 whose product with a cotangent of ordinary size is finite in either.
_SCALE = 2.0**6
#: One whose product with 16 times a cotangent is finite in no dtype that autocast leads to.
_TOO_LARGE = 2.0**127


def check(subject: Subject) -> dict[str, Any]:
    """Half types: every mixture, both places of backward, autocast off inside, GradScaler. float64: nothing is cast."""
    if not subject.operator.autocast:
        raise NotApplicable(f"the contract of {subject.operator.name} has no rule for autocast")
    if subject.dtype == torch.float32:
        raise NotApplicable("autocast leads from float32 to a half type; it is judged in those")
    tally = Tally(subject)
    scenarios = [smallest(subject.operator), Scenario.of(representative(subject.operator))]
    for scenario in scenarios:
        if subject.dtype == torch.float64:
            _run(tally, scenario, torch.float64, torch.float64, "with float64 inputs")
            continue
        _run(tally, scenario, torch.float32, torch.float32, "with float32 inputs")
        _run(
            tally, scenario, subject.dtype, torch.float32, f"with {_name(subject.dtype)} inputs and float32 parameters"
        )
        _run(tally, scenario, torch.float32, torch.float32, "with float32 inputs, backward in it,", inside=True)
        _run(tally, scenario, torch.float32, torch.float32, "switched off again inside of it", off=True)
    if subject.dtype in _NARROW:
        _scaled(tally, scenarios[0])
    return tally.figures()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


class _Widened:
    """The subject's function in a context; its outputs in float32, or the dtype that is given, and what they were."""

    def __init__(self, subject: Subject, context: AbstractContextManager[Any], to: torch.dtype) -> None:
        self._subject, self._context, self._to = subject, context, to
        self.dtypes: list[torch.dtype] = []

    def __call__(self, *inputs: Tensor) -> Any:
        with self._context:
            results = self._subject.function(*inputs)
        if isinstance(results, Tensor):
            results = (results,)
        if not isinstance(results, tuple | list) or not all(isinstance(result, Tensor) for result in results):
            return results
        self.dtypes = [result.dtype for result in results]
        return tuple(result.to(self._to) for result in results)


def _autocast(subject: Subject, enabled: bool = True) -> AbstractContextManager[Any]:
    dtype = subject.dtype if subject.dtype in _NARROW else torch.bfloat16
    return torch.autocast(subject.torch_device.type, dtype=dtype, enabled=enabled)


def _call(subject: Subject, scenario: Scenario, data: torch.dtype, parameters: torch.dtype) -> Call:
    """The scenario's values in the subject's dtype, as tensors of these dtypes, all of which require grad."""
    call = subject.realise(scenario)
    dtypes = [parameters if arg.row_dim is None else data for arg in subject.operator.inputs]
    inputs = [tensor.detach().to(dtype) for tensor, dtype in zip(call.inputs, dtypes, strict=True)]
    wanted = scenario.wanted_by(subject.operator)
    for arg, tensor in zip(subject.operator.inputs, inputs, strict=True):
        tensor.requires_grad_(arg.name in wanted)
    wide = torch.promote_types(subject.dtype, torch.float32)
    return Call(tuple(inputs), tuple(None if g is None else g.to(wide) for g in call.cotangents))


def _measure(subject: Subject, scenario: Scenario, call: Call, in_float32: bool) -> Expected:
    """What these values owe in float32, where nothing is narrower, or else in the subject's own dtype."""
    if not in_float32:
        return expected(subject.operator, scenario, subject.dtype)
    narrow = [tensor.detach().cpu() for tensor in call.inputs]
    return expected_of(
        subject.operator,
        Call(tuple(narrow), tuple(None if g is None else g.cpu() for g in call.cotangents)),
        torch.float32,
    )


def _run(
    tally: Tally,
    scenario: Scenario,
    data: torch.dtype,
    parameters: torch.dtype,
    how: str,
    inside: bool = False,
    off: bool = False,
) -> None:
    """One call, held."""
    subject = tally.subject
    how = f"under torch.autocast({_name(subject.dtype if subject.dtype in _NARROW else torch.bfloat16)}) {how}"
    call = _call(subject, scenario, data, parameters)
    everything_is_float32 = data == parameters == torch.float32
    in_float32 = everything_is_float32 and (off or subject.operator.autocast == FLOAT32)
    measure = _measure(subject, scenario, call, in_float32)
    wide = torch.promote_types(subject.dtype, torch.float32)
    function = _Widened(subject, _autocast(subject, enabled=False) if off else _autocast(subject), wide)
    called = replace(subject, dtype=wide, function=function)
    where = f"[{scenario.describe(subject.operator)}]"
    try:
        with _autocast(subject) if off else nullcontext():
            outputs = called.outputs(call, scenario)
        allowed = {wide} if in_float32 or data == torch.float64 else {wide, subject.dtype}
        for arg, dtype in zip(subject.operator.outputs, function.dtypes, strict=True):
            if dtype not in allowed:
                should = " or ".join(sorted(map(str, allowed)))
                raise Failure(f"dtype of {arg.name} was {dtype}, but should be {should} {where}")
        with _autocast(subject) if inside else nullcontext():
            gradients = called.gradients(call, outputs, scenario)
        tally.hold_all(scenario, measure, outputs, gradients)
    except Failure as failure:
        # Without its scenario: the script that would reproduce it calls the operator without autocast.
        raise Failure(f"{how}, {failure}") from failure
    tally.scenarios += 1


def _scaled(tally: Tally, scenario: Scenario) -> None:
    """A loss under GradScaler: gradients are scaled back to what is right; where they overflow the step is skipped."""
    subject = tally.subject
    where = f"[{scenario.describe(subject.operator)}]"
    for scale, factor in ((_SCALE, 1.0), (_TOO_LARGE, 16.0)):
        call = _call(subject, scenario, torch.float32, torch.float32)
        measure = _measure(subject, scenario, call, in_float32=False)
        leaves = {
            arg.name: tensor
            for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True)
            if tensor.requires_grad
        }
        before = {name: leaf.detach().clone() for name, leaf in leaves.items()}
        optimizer = torch.optim.SGD(list(leaves.values()), lr=0.5)
        scaler = torch.amp.GradScaler(subject.torch_device.type, init_scale=scale)
        called = replace(subject, dtype=torch.float32, function=_Widened(subject, _autocast(subject), torch.float32))
        outputs = called.outputs(call, scenario)
        terms = [(y * g).sum() for y, g in zip(outputs, call.cotangents, strict=True) if g is not None]
        loss = factor * torch.stack(terms).sum()
        try:
            torch.autograd.backward(scaler.scale(loss))
        except Exception as error:
            raise Failure(f"backward of a loss that torch.amp.GradScaler scaled raised {error} {where}") from error
        scaler.unscale_(optimizer)
        if scale == _SCALE:
            found = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
            try:
                tally.hold_all(scenario, measure, (), found)
            except Failure as failure:
                raise Failure(f"under torch.amp.GradScaler, {failure}") from failure
        scaler.step(optimizer)
        moved = [name for name, leaf in leaves.items() if not torch.equal(leaf.detach(), before[name])]
        if scale == _TOO_LARGE and moved:
            raise Failure(
                f"torch.amp.GradScaler made a step on {', '.join(moved)} at a scale of 2^127, but should have skipped "
                f"it: gradients that overflow must not be finite {where}"
            )
        tally.scenarios += 1


PROPERTY = Property("autocast", "under torch.autocast the contract's rule holds, with GradScaler too", check)
