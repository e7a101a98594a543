"""The hooks of autograd work: offloading, checkpoints, hooks on tensors and nodes.

They work only if the implementation uses autograd's own machinery. `saved_tensors_hooks` moves saved tensors elsewhere,
so backward must use what went through the hooks: the check overwrites the inputs after forward, and only the packed
tensors still have the values. A checkpoint runs forward again in backward, and must get the same function. A hook on an
output gets its cotangent, and a hook on an input may replace its gradient; each is called once. The hooks change values
by powers of two only, so the results are compared with the oracle directly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from harness.errors import Failure
from harness.judging.oracle import expected
from harness.judging.property import INTEGRATION, Property, hold_gradient
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.judging.tally import Tally
from harness.report.levels import SAFE

Results = tuple[tuple[Tensor, ...], dict[str, Tensor]]


def check(subject: Subject) -> dict[str, Any]:
    """Each kind of hook: outputs and gradients against the oracle."""
    hold_gradient(subject.operator)
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    measure = expected(subject.operator, scenario, subject.dtype)
    tally.first_plainly(scenario)
    for words, way in _WAYS.items():
        try:
            outputs, gradients = way(subject, scenario)
            tally.hold_all(scenario, measure, outputs, gradients)
        except Failure as failure:  # no scenario: its script would call without hooks
            raise failure.prefixed(f"{words}, ") from failure
        except CANDIDATE_ERRORS as error:
            where = f"[{scenario.describe(subject.operator)}]"
            raise Failure(f"{words}, the call raised {one_line(error)}, but should work {where}") from error
        tally.scenarios += 1
    return {**tally.figures(), "ways": list(_WAYS)}


def _packed(subject: Subject, scenario: Scenario) -> Results:
    """Saved tensors are copied, and the originals are overwritten before backward."""
    call = subject.realise(scenario)
    with saved_tensors_hooks(lambda tensor: tensor.detach().clone(), lambda tensor: tensor):
        outputs = subject.outputs(call, scenario)
    with torch.no_grad():
        for tensor in call.inputs:
            tensor.fill_(float("nan") if tensor.is_floating_point() else 0)
    return outputs, subject.gradients(call, outputs, scenario)


def _on_cpu(subject: Subject, scenario: Scenario) -> Results:
    call = subject.realise(scenario)
    with save_on_cpu():
        outputs = subject.outputs(call, scenario)
    return outputs, subject.gradients(call, outputs, scenario)


def _checkpointed(use_reentrant: bool) -> Callable[[Subject, Scenario], Results]:
    def way(subject: Subject, scenario: Scenario) -> Results:
        call = subject.realise(scenario)
        found = checkpoint(subject.function, *call.inputs, use_reentrant=use_reentrant, preserve_rng_state=False)
        outputs: tuple[Tensor, ...] = (found,) if isinstance(found, Tensor) else tuple(found)
        if not use_reentrant:
            return outputs, subject.gradients(call, outputs, scenario)
        # The older kind supports only .backward().
        torch.autograd.backward(*call.used(outputs))
        pairs = zip(subject.operator.inputs, call.inputs, strict=True)
        named = {arg.name: x for arg, x in pairs if arg.differentiable}
        return outputs, {name: x.grad if x.grad is not None else torch.zeros_like(x) for name, x in named.items()}

    return way


def _hooked(subject: Subject, scenario: Scenario) -> Results:
    """The cotangents are doubled, and hooks on the inputs halve the gradients. Hooks on the outputs only count."""
    leaves = subject.realise(scenario)
    leaves = replace(leaves, cotangents=tuple(g if g is None else 2 * g for g in leaves.cotangents))
    inputs = tuple(tensor * 1 if tensor.requires_grad else tensor for tensor in leaves.inputs)
    called: dict[str, int] = {}

    def hook(name: str, factor: float | None) -> Callable[[Tensor], Tensor | None]:
        def called_with(gradient: Tensor) -> Tensor | None:
            called[name] = called.get(name, 0) + 1
            return None if factor is None else gradient * factor

        return called_with

    operator = subject.operator
    differentiable = tuple(arg for arg in operator.inputs if arg.differentiable)
    for arg, tensor in zip(operator.inputs, inputs, strict=True):
        if arg.differentiable:
            tensor.register_hook(hook(f"input {arg.name}", 0.5))  # type: ignore[no-untyped-call]
    outputs = subject.outputs(Call(inputs, leaves.cotangents), scenario)
    for arg, tensor in zip(operator.outputs, outputs, strict=True):
        if arg.is_floating:
            tensor.register_hook(hook(f"output {arg.name}", None))  # type: ignore[no-untyped-call]
    gradients = subject.gradients(leaves, outputs, scenario)
    for kind, args in (("input", differentiable), ("output", operator.real_outputs)):
        for arg in args:
            times = called.get(f"{kind} {arg.name}", 0)
            if times != 1:
                raise Failure(f"the hook on the {kind} {arg.name} was called {times} times, but should be called once")
    return outputs, gradients


_WAYS: dict[str, Callable[[Subject, Scenario], Results]] = {
    "with what is saved packed by saved_tensors_hooks, and the inputs overwritten": _packed,
    "with what is saved moved by save_on_cpu": _on_cpu,
    "in a checkpoint (use_reentrant=False)": _checkpointed(use_reentrant=False),
    "in a checkpoint (use_reentrant=True)": _checkpointed(use_reentrant=True),
    "with hooks on inputs and outputs": _hooked,
}

PROPERTY = Property(
    "autograd-hooks",
    "saved_tensors_hooks, checkpoints and hooks on tensors work",
    check,
    view=INTEGRATION,
    level=SAFE,
    dtypes=("float32",),
    why_only="hooks are called by the same code in every dtype",
)
