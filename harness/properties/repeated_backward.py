"""The result of a call depends on that call only: not on how often backward ran, nor on earlier calls.

Code outside autograd's own machinery easily breaks its rules. A tensor kept on `ctx` or in `.data` escapes the version
counter, so a weight that is updated between forward and backward silently gives the gradient at a point that was never
evaluated. A buffer kept between calls still has the size of an earlier one. Each result is compared with the oracle of
its own values, so a candidate whose bits differ from call to call fails only in `determinism`. What a refused call
leaves behind is a question of `survives_wrong_calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.errors import Failure
from harness.judging.compare import compare
from harness.judging.oracle import expected, expected_of
from harness.judging.property import Property
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import smallest, tagged
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.judging.tally import Tally
from harness.report.levels import SAFE

#: What PyTorch says where a compiled backward has taken over saved tensors, its default: see
#: `torch._functorch.config.donated_buffer`.
_DONATED = "donated buffer"


def check(subject: Subject) -> dict[str, Any]:
    """Twice with the graph, twice without; changes in between and after; calls of other sizes."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    tally.first_plainly(scenario)
    if not subject.operator.has_gradient:
        _after_update(tally, scenario)
        _between_calls(tally, scenario)
        return tally.figures()
    figures: dict[str, Any] = {"second backward without graph": _without_graph(tally, scenario)}
    figures["second backward with the graph"] = _with_graph(tally, scenario)
    figures["changed in between"] = _changed_in_between(tally, scenario)
    _after_update(tally, scenario)
    _between_calls(tally, scenario)
    return {**tally.figures(), **figures}


def _hold(tally: Tally, scenario: Scenario, outputs: Sequence[Tensor], gradients: dict[str, Tensor], when: str) -> None:
    """Compare with the oracle of the scenario; a Failure begins with `when`."""
    tally.scenarios += 1
    try:
        tally.hold_all(scenario, expected(tally.subject.operator, scenario, tally.subject.dtype), outputs, gradients)
    except Failure as failure:
        raise failure.prefixed(f"{when}: ") from failure


def _with_graph(tally: Tally, scenario: Scenario) -> str:
    """Three backwards through one graph are right; only a graph of torch.compile may refuse to be kept."""
    subject = tally.subject
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    for number in ("first", "second", "third"):
        try:
            gradients = subject.gradients(call, outputs, scenario, retain=True)
        except Failure as failure:
            if _DONATED in str(failure):
                return "refused: torch.compile donates the saved tensors to backward"
            raise
        _hold(tally, scenario, outputs, gradients, f"{number} backward through one graph (retain_graph=True)")
    return "right"


def _gradients(subject: Subject, call: Call, outputs: Sequence[Tensor], retain_graph: bool) -> dict[str, Tensor]:
    """As `Subject.gradients`, but an exception of the candidate is passed on."""
    wanted = {
        arg.name: tensor for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True) if arg.differentiable
    }
    if not wanted:
        return {}
    ys, gs = call.used(outputs)
    found = torch.autograd.grad(ys, list(wanted.values()), gs, allow_unused=True, retain_graph=retain_graph)
    return {
        name: torch.zeros_like(tensor) if gradient is None else gradient
        for (name, tensor), gradient in zip(wanted.items(), found, strict=True)
    }


def _without_graph(tally: Tally, scenario: Scenario) -> str:
    """The first backward frees the graph; a second one raises, or is right because nothing had to be kept."""
    subject = tally.subject
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    with subject.in_backward((arg.name for arg in subject.operator.inputs if arg.differentiable), scenario):
        first = _gradients(subject, call, outputs, retain_graph=False)
    _hold(tally, scenario, (), first, "backward without retain_graph")
    try:
        second = _gradients(subject, call, outputs, retain_graph=False)
    except CANDIDATE_ERRORS as error:
        return f"raises ({one_line(error)})"
    _hold(tally, scenario, (), second, "a second backward without retain_graph raised nothing, but should, or be right")
    return "right: it needs nothing that the first one freed"


def _changed_in_between(tally: Tally, scenario: Scenario) -> dict[str, str]:
    """Change each input and each output in place between forward and backward: this is noticed, or has no effect."""
    subject = tally.subject
    operator = subject.operator
    others = subject.realise(replace(scenario, seed=1)).inputs
    outcomes = {}
    for position, arg in enumerate((*operator.inputs, *operator.outputs)):
        call = subject.realise(scenario)
        outputs = subject.outputs(call, scenario)
        with torch.no_grad():
            if position < len(others):
                call.inputs[position].copy_(others[position])
            else:
                output = outputs[position - len(others)]
                output.copy_(~output if output.dtype == torch.bool else output * -2)
        try:
            gradients = _gradients(subject, call, outputs, retain_graph=False)
        except CANDIDATE_ERRORS as error:
            outcomes[arg.name] = f"raises ({type(error).__name__})"
            continue
        when = f"{arg.name} was changed in place between forward and backward, which raised nothing"
        try:
            _hold(tally, scenario, (), gradients, when)
        except Failure as failure:
            if position < len(others) and _fits_now(subject, call, gradients, failure.tensor):
                raise failure.adding(
                    f"it is what the gradient is at the new {arg.name}: backward should raise, as tensors from "
                    "save_for_backward do, or use the values of forward"
                ) from failure
            raise
        outcomes[arg.name] = "of no consequence"
    return outcomes


def _fits_now(subject: Subject, call: Call, gradients: dict[str, Tensor], wrong: str) -> bool:
    """Whether the tensor `wrong`, "gradient of NAME", is the gradient at the current values of the inputs."""
    now = Call(tuple(t.detach() for t in call.inputs), call.cotangents)
    measure = expected_of(subject.operator, Call(tuple(t.cpu() for t in now.inputs), _on_cpu(call)), subject.dtype)
    name = wrong.removeprefix("gradient of ")
    return name in gradients and compare(gradients[name], measure.gradients[name]).holds


def _on_cpu(call: Call) -> tuple[Tensor | None, ...]:
    return tuple(g if g is None else g.cpu() for g in call.cotangents)


def _after_update(tally: Tally, scenario: Scenario) -> None:
    """Write new values into the same tensors, as an optimiser does; the next forward must use them."""
    subject = tally.subject
    writes: dict[str, Callable[[Tensor, Tensor], object]] = {
        "under no_grad": lambda tensor, values: tensor.copy_(values),
        "through .data, which no version counter sees": lambda tensor, values: tensor.data.copy_(values),
    }
    for number, (words, write) in enumerate(writes.items(), start=1):
        call = subject.realise(scenario)
        outputs = subject.outputs(call, scenario)
        subject.gradients(call, outputs, scenario)
        after = replace(scenario, seed=number)
        fresh = subject.realise(after)
        with torch.no_grad():
            for tensor, values in zip(call.inputs, fresh.inputs, strict=True):
                write(tensor, values)
        call = Call(call.inputs, fresh.cotangents)
        outputs = subject.outputs(call, after)
        when = f"after the inputs were updated in place, {words}"
        _hold(tally, after, outputs, subject.gradients(call, outputs, after), when)


def _between_calls(tally: Tally, scenario: Scenario) -> None:
    """A call, calls of other sizes, the first again."""
    subject = tally.subject
    others = [Scenario.of(case) for case in (*tagged(subject.operator, "small")[:1], *_benchmark(subject))]
    for turn in (scenario, *others, scenario):
        call = subject.realise(turn)
        outputs = subject.outputs(call, turn)
        when = "with calls of other sizes before it" if turn is not scenario or tally.scenarios else "in the first call"
        _hold(tally, turn, outputs, subject.gradients(call, outputs, turn), when)


def _benchmark(subject: Subject) -> tuple[Any, ...]:
    return tagged(subject.operator, "benchmark")[:1]


PROPERTY = Property(
    "repeated-backward", "no state between backwards and calls; changes in place are noticed", check, level=SAFE
)
