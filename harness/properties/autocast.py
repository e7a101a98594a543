"""Under torch.autocast the contract's rule holds: values, dtypes, gradients, and a step with torch.amp.GradScaler.

Under autocast a network passes an operator float32 weights together with the half-precision output of the layer before.
A check for equal dtypes refuses such a call. A kernel that does not look at dtypes reads garbage. And if PyTorch casts
the operations inside a backward one by one, it raises there, or computes the statistics of a row in half precision.

So the check passes float32 tensors that hold values of the half type: all of them, or the parameters only. It compares
the results with the allowance of the dtype that the rule names; an implementation may be more accurate and return
float32. Gradients must have the dtypes of their inputs, from a backward outside of autocast and inside. Where autocast
is switched off again, and in float64, the call must behave as without autocast.

GradScaler multiplies the loss, and skips a step whose gradients overflow. Gradients must be right after they are scaled
back, and must not be finite if they overflow.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from harness.errors import Failure, NotApplicable
from harness.judging.oracle import Expected, expected, expected_of
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import representative, smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.judging.tally import Tally
from harness.report.levels import PYTORCH
from spec.contract import FLOAT32

_NARROW = (torch.float16, torch.bfloat16)
#: A power of 2 whose product with a cotangent of ordinary size is finite in both half types.
_SCALE = 2.0**6
#: A power of 2 whose product with 16 times a cotangent overflows in every dtype to which autocast casts.
_TOO_LARGE = 2.0**127


@dataclass(frozen=True)
class _Way:
    """One way to call, in words; data narrower than the parameters, backward inside autocast, autocast switched off."""

    words: str
    narrow: bool = False
    inside: bool = False
    off: bool = False


def check(subject: Subject) -> dict[str, Any]:
    """Half types: every mixture, both places of backward, autocast off inside, GradScaler. float64: nothing is cast."""
    if not subject.operator.autocast:
        raise NotApplicable(f"the contract of {subject.operator.name} has no rule for autocast")
    ways = [
        _Way("with float32 inputs"),
        _Way(f"with {subject.dtype_name} inputs and float32 parameters", narrow=True),
        _Way("with float32 inputs, backward in it,", inside=True),
        _Way("switched off again inside of it", off=True),
    ]
    if subject.dtype == torch.float64:
        ways = [_Way("with float64 inputs")]
    tally = Tally(subject)
    scenarios = [smallest(subject.operator), Scenario.of(representative(subject.operator))]
    for scenario in scenarios:
        narrow, wide = expected(subject.operator, scenario, subject.dtype), _expected_wide(subject, scenario)
        for way in ways:
            keeps = not way.narrow and (way.off or subject.operator.autocast == FLOAT32)
            allowed = {_wide(subject)} if keeps else {_wide(subject), subject.dtype}
            _run(tally, scenario, way, allowed, wide if keeps else narrow)
    if subject.dtype in _NARROW:
        _held_when_scaled(tally, scenarios[0])
        _skipped_when_too_large(tally, scenarios[0])
    return tally.figures()


def _wide(subject: Subject) -> torch.dtype:
    """The dtype of the wide tensors: float32, or float64 if that is judged."""
    return torch.promote_types(subject.dtype, torch.float32)


def _lower(subject: Subject) -> torch.dtype:
    """The dtype to which autocast casts: the half type that is judged, or any if float64 must stay unchanged."""
    return subject.dtype if subject.dtype in _NARROW else torch.bfloat16


def _autocast(subject: Subject, enabled: bool = True) -> AbstractContextManager[Any]:
    return torch.autocast(subject.torch_device.type, dtype=_lower(subject), enabled=enabled)


class _Widened:
    """The subject's function under autocast. It returns outputs in the wide dtype, and stores their own dtypes."""

    def __init__(self, subject: Subject, enabled: bool = True) -> None:
        self._subject, self._enabled = subject, enabled
        self.dtypes: list[torch.dtype] = []

    def __call__(self, *inputs: Tensor) -> Any:
        with _autocast(self._subject, self._enabled):
            results = self._subject.function(*inputs)
        if isinstance(results, Tensor):
            results = (results,)
        if not isinstance(results, tuple | list) or not all(isinstance(result, Tensor) for result in results):
            return results
        self.dtypes = [result.dtype for result in results]
        wide = _wide(self._subject)
        return tuple(result.to(wide) if result.is_floating_point() else result for result in results)


def _call(subject: Subject, scenario: Scenario, narrow: bool = False) -> Call:
    """The scenario's values, exact in the subject's dtype, in the wide dtype; with `narrow`, only the parameters."""
    call = subject.realise(scenario)
    inputs = [
        tensor if narrow and arg.row_dim is not None else arg.cast(tensor.detach(), _wide(subject))
        for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True)
    ]
    for tensor, like in zip(inputs, call.inputs, strict=True):
        tensor.requires_grad_(like.requires_grad)
    return Call(tuple(inputs), tuple(None if g is None else g.to(_wide(subject)) for g in call.cotangents))


def _expected_wide(subject: Subject, scenario: Scenario) -> Expected:
    """The expected results of these values in the wide dtype, for calls in which nothing is narrower."""
    if _wide(subject) == subject.dtype:
        return expected(subject.operator, scenario, subject.dtype)
    call = _call(subject, scenario)
    inputs = tuple(tensor.detach().cpu() for tensor in call.inputs)
    cotangents = tuple(None if g is None else g.cpu() for g in call.cotangents)
    return expected_of(subject.operator, Call(inputs, cotangents), _wide(subject))


def _run(tally: Tally, scenario: Scenario, way: _Way, allowed: set[torch.dtype], measure: Expected) -> None:
    """Make one call and check that outputs have an allowed dtype and all values keep the allowance of `measure`."""
    subject = tally.subject
    call = _call(subject, scenario, way.narrow)
    function = _Widened(subject, enabled=not way.off)
    called = replace(subject, dtype=_wide(subject), function=function)
    where = f"[{scenario.describe(subject.operator)}]"
    try:
        with _autocast(subject) if way.off else nullcontext():
            outputs = called.outputs(call, scenario)
        for arg, dtype in zip(subject.operator.outputs, function.dtypes, strict=True):
            own = {arg.dtype} if arg.dtype is not None else {arg.dtype_in(each) for each in allowed}
            if dtype not in own:
                should = " or ".join(sorted(map(str, own)))
                which = f"dtype of {arg.name}"
                raise Failure(f"{which} was {dtype}, but should be {should} {where}", figures={"tensor": which})
        with _autocast(subject) if way.inside else nullcontext():
            gradients = called.gradients(call, outputs, scenario)
        tally.hold_all(scenario, measure, outputs, gradients)
    except Failure as failure:
        lower = str(_lower(subject)).removeprefix("torch.")
        # No scenario: the script that would reproduce it calls the operator without autocast.
        raise failure.prefixed(f"under torch.autocast({lower}) {way.words}, ") from failure
    tally.scenarios += 1


def _held_when_scaled(tally: Tally, scenario: Scenario) -> None:
    """Gradients of a loss under GradScaler are right after they are scaled back."""
    subject = tally.subject
    leaves, _ = _step(subject, scenario, _SCALE, 1.0)
    found = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
    try:
        tally.hold_all(scenario, expected(subject.operator, scenario, subject.dtype), (), found)
    except Failure as failure:
        raise failure.prefixed("under torch.amp.GradScaler, ") from failure
    tally.scenarios += 1


def _skipped_when_too_large(tally: Tally, scenario: Scenario) -> None:
    """A step whose gradients overflow is skipped."""
    leaves, before = _step(tally.subject, scenario, _TOO_LARGE, 16.0)
    moved = [name for name, leaf in leaves.items() if not torch.equal(leaf.detach(), before[name])]
    if moved:
        raise Failure(
            f"torch.amp.GradScaler made a step on {', '.join(moved)} at a scale of 2^127, but should have skipped "
            f"it: gradients that overflow must not be finite [{scenario.describe(tally.subject.operator)}]"
        )
    tally.scenarios += 1


def _step(
    subject: Subject, scenario: Scenario, scale: float, factor: float
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The inputs that require grad, by name, after a step of SGD under GradScaler, and their values before it."""
    call = _call(subject, scenario)
    pairs = zip(subject.operator.inputs, call.inputs, strict=True)
    leaves = {arg.name: tensor for arg, tensor in pairs if tensor.requires_grad}
    before = {name: leaf.detach().clone() for name, leaf in leaves.items()}
    optimizer = torch.optim.SGD(list(leaves.values()), lr=0.5)
    scaler = torch.amp.GradScaler(subject.torch_device.type, init_scale=scale)
    outputs = replace(subject, dtype=_wide(subject), function=_Widened(subject)).outputs(call, scenario)
    terms = [(y * g).sum() for y, g in zip(outputs, call.cotangents, strict=True) if g is not None]
    try:
        torch.autograd.backward(scaler.scale(factor * torch.stack(terms).sum()))
    except CANDIDATE_ERRORS as error:
        raise Failure(
            f"backward of a loss that torch.amp.GradScaler scaled raised {one_line(error)}, but should give gradients "
            f"[{scenario.describe(subject.operator)}]"
        ) from error
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    return leaves, before


PROPERTY = Property(
    "autocast",
    "under torch.autocast the contract's rule holds, with GradScaler too",
    check,
    view=INTEGRATION,
    level=PYTORCH,
    dtypes=("float64", "float16", "bfloat16"),
    why_only="autocast casts float32 to a half type: the call that has float32 inputs is judged in that type",
)
