"""A wrong call does no harm, refused or not: it ends no process, reads only its arguments, and leaves no state.

A call that is silently accepted is made again with other values in the memory around its arguments: no result may
change. Results of a call with an argument on the meta device are not compared: it has no values, and PyTorch's own
F.linear returns uninitialised memory for it. A crash ends the process, and whoever started it makes that a failure of
this property. After each wrong call a right one must be right; if it was wrong before any wrong call, other properties
say so, and this is left out.
"""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from backends.base import CUDA
from harness.errors import Failure
from harness.judging import traced
from harness.judging.oracle import expected
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.judging.wrong_calls import WrongCall, elsewhere, wrong_calls
from harness.report.levels import SAFE

#: What memory holds around the arguments. The first filling comes twice: a result that differs between two calls alike
#: shows nothing about the memory.
AROUND = (math.nan, 1.0, math.nan)


def check(subject: Subject) -> dict[str, Any]:
    """Every wrong call of the contract, with and without grad, and a right call after each.

    On a GPU, also a call with all tensors on the CPU.
    """
    scenario = smallest(subject.operator)
    where = f"[{scenario.describe(subject.operator)}]"
    is_right = _is_right(subject, scenario)
    inputs = tuple(tensor.detach() for tensor in subject.realise(scenario).inputs)
    room = sum(tensor.numel() for tensor in inputs)
    counts = {"refused": 0, "accepted": 0}
    for call in (*wrong_calls(subject.operator, dict(scenario.sizes), inputs), *elsewhere(inputs)):
        for grad in (False, True):
            was_accepted = _is_accepted(subject, call, grad, room, where)
            counts["accepted" if was_accepted else "refused"] += 1
            if is_right:
                _hold_right_call(subject, scenario, call, was_accepted)
    return {"wrong calls": counts, "right calls in between": "right" if is_right else "not judged: wrong anyway"}


def _is_right(subject: Subject, scenario: Scenario) -> bool:
    try:
        _run(subject, scenario)
    except Failure:
        return False
    return True


def _run(subject: Subject, scenario: Scenario) -> None:
    """One right call against the oracle. Raises Failure."""
    measure = expected(subject.operator, scenario, subject.dtype)
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    Tally(subject).hold_all(scenario, measure, outputs, subject.gradients(call, outputs, scenario))


def _hold_right_call(subject: Subject, scenario: Scenario, call: WrongCall, was_accepted: bool) -> None:
    try:
        _run(subject, scenario)
    except Failure as failure:
        how = "an accepted" if was_accepted else "a refused"
        raise failure.prefixed(f"after {how} call with {call.what}: ") from failure


def _is_accepted(subject: Subject, call: WrongCall, grad: bool, room: int, where: str) -> bool:
    """Whether the call was accepted. Raises Failure if its results depend on memory outside its arguments."""
    results = []
    traced.write_down(f"a call with {call.what}", "")
    for around in AROUND:
        found = _results(subject, call.within(around, room), grad, where)
        if found is None:
            return False
        if isinstance(call.value, Tensor) and call.value.device.type == "meta":
            return True
        results.append(found)
    one, other, again = results
    for name, value in one.items():
        alike, changed = _differing(value, again.get(name)), _differing(value, other.get(name))
        if changed is not None and alike is None:
            raise Failure(
                f"a call with {call.what} was accepted and read memory outside its arguments: {name} changed{changed} "
                f"when that memory did, but should depend on the arguments alone, or the call should raise {where}"
            )
    return True


def _results(subject: Subject, call: WrongCall, grad: bool, where: str) -> dict[str, Tensor] | None:
    """Outputs, and gradients with `grad`, that have values; None if the call or its backward raised."""
    with torch.set_grad_enabled(grad):
        try:
            found = _named(subject, call, grad)
        except SystemExit as error:
            raise Failure(f"a call with {call.what} ended the process, but should raise {where}") from error
        except Exception:
            found = None
        if torch.is_grad_enabled() is not grad:
            raise Failure(
                f"grad mode was {not grad} after a call with {call.what}, but should be left as it was, {grad} {where}"
            )
    return found


def _named(subject: Subject, call: WrongCall, grad: bool) -> dict[str, Tensor]:
    leaves = {
        arg.name: value.requires_grad_(grad)
        for arg, value in zip(subject.operator.inputs, call.inputs, strict=True)
        if arg.differentiable and isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())
    }
    outputs = [y for y in tree_leaves(call.make(subject)) if isinstance(y, Tensor)]
    names = [arg.name for arg in subject.operator.outputs]
    found = dict(zip(names if len(names) == len(outputs) else map("output {}".format, count(1)), outputs, strict=False))
    ys = [y for y in found.values() if y.requires_grad]
    if ys and leaves:
        gradients = torch.autograd.grad(ys, list(leaves.values()), [torch.ones_like(y) for y in ys], allow_unused=True)
        pairs = zip(leaves, gradients, strict=True)
        found |= {f"gradient of {name}": gradient for name, gradient in pairs if gradient is not None}
    if subject.device == CUDA:
        torch.cuda.synchronize()
    return {name: t.detach() for name, t in found.items() if t.layout == torch.strided and t.device.type != "meta"}


def _differing(one: Tensor, other: Tensor | None) -> str | None:
    """Where two results differ, ` at (0, 3)`, or nothing if one has no such place; None if they are alike."""
    if other is None or one.shape != other.shape or one.dtype != other.dtype:
        return ""
    differs = (one != other) & ~((one != one) & (other != other))
    return f" at {tuple(differs.nonzero()[0].tolist())}" if bool(differs.any()) else None


PROPERTY = Property(
    "survives-wrong-calls", "a wrong call does not end the process, read elsewhere or leave state", check, level=SAFE
)
