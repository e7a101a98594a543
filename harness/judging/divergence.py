"""Find where a candidate leaves the reference: the first named step of the contract that it computes wrongly.

A function made of PyTorch's operations shows its intermediate tensors, and a compiled one those that its own operators
return. One more call records them all. Each of the contract's `intermediates` is searched for among them, within an
allowance that is made as for results. If all come out right, the next operation that makes something else is named.
Steps that are fused, or computed in pieces as in a loop over time, are not visible, and nothing is said about them.
"""

from __future__ import annotations

from contextlib import suppress

import torch
from torch import Tensor

from harness.executing.runner import Seen, StepRecorder
from harness.judging.compare import compare
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.subject import CANDIDATE_ERRORS, Subject
from spec.contract import Operator
from spec.envelope import Envelope, envelopes

#: A tensor that is farther from a step than this part of the step's size is something else than this step.
_NEAR = 0.5


def first_divergence(subject: Subject, scenario: Scenario) -> str:
    """A sentence on the steps that come out right and the first that does not; "" if no step is visible."""
    steps = _steps(subject.operator, scenario, subject.dtype)
    results = _results(subject.operator, scenario, subject.dtype)
    found = _seen(subject, scenario, {tuple(envelope.exact.shape) for envelope in steps.values()})
    right: dict[str, set[int]] = {
        name: {k for k, seen in enumerate(found) if _holds(seen.value, envelope)} for name, envelope in steps.items()
    }
    known = set().union(*right.values())
    others = [seen for k, seen in enumerate(found) if k not in known]
    good = [name for name in steps if right[name]]
    words = [f"{', '.join(good)} {'come' if len(good) > 1 else 'comes'} out right"] if good else []
    last = max((list(steps).index(name) for name in good), default=-1)
    for number, name in enumerate(steps):
        if right[name]:
            continue
        attempt = _nearest(others, steps[name], [other.exact for key, other in steps.items() if key != name] + results)
        if attempt:
            distance, operation = attempt
            off = f"off by {distance:.2g} of its size"
            return "; ".join([*words, f"{name} is the first step that comes out wrong: {operation} gives it, {off}"])
        if number > last:  # a step before the last right one was only not visible
            return f"{words[0]}; the error is in {name} or later" if good else ""
    if not good:
        return ""
    last_made = min(right[good[-1]])
    after = (seen for k, seen in enumerate(found) if k > last_made and k not in known and not seen.is_view)
    operation = next((seen.operation for seen in after), "")
    return f"{words[0]}; the error is in what comes after{f', from {operation} on' if operation else ''}"


def _seen(subject: Subject, scenario: Scenario, shapes: set[tuple[int, ...]]) -> list[Seen]:
    """The tensors of these shapes that one more call makes, in order."""
    inputs, remote = subject.realise(scenario).inputs, subject.remote
    found: list[Seen] = []
    with suppress(*CANDIDATE_ERRORS):
        if remote is not None:
            subject.operator.bound(lambda *given, **named: found.extend(remote.steps(given, named, shapes)))(*inputs)
            return found
        with StepRecorder(shapes) as recorder:
            found = recorder.seen
            subject.function(*inputs)
    return found


def _steps(operator: Operator, scenario: Scenario, dtype: torch.dtype) -> dict[str, Envelope]:
    """The contract's intermediates that have elements, each with its allowance."""
    call = realise(operator, scenario, dtype)
    exact = call.to_float64()

    def evaluate(call: Call) -> dict[str, Tensor]:
        with torch.no_grad():
            return operator.intermediates(*call.inputs)

    names = list(evaluate(exact))
    found = envelopes(lambda: tuple(evaluate(exact).values()), tuple(evaluate(call).values()), dtype)
    return {name: envelope for name, envelope in zip(names, found, strict=True) if envelope.exact.numel() > 0}


def _results(operator: Operator, scenario: Scenario, dtype: torch.dtype) -> list[Tensor]:
    """The exact outputs."""
    with torch.no_grad():
        return list(operator.forward(*realise(operator, scenario, dtype).to_float64().inputs))


def _holds(value: Tensor, envelope: Envelope) -> bool:
    return value.shape == envelope.exact.shape and compare(value, envelope).holds


def _nearest(seen: list[Seen], envelope: Envelope, others: list[Tensor]) -> tuple[float, str] | None:
    """The nearest tensor to a step: its distance, relative to the step's size, and the operation; None if none.

    A tensor that is nearer to one of the `others`, which are further steps and results, is no attempt at this step.
    """
    usable, exact = envelope.usable, envelope.exact.masked_fill(~envelope.usable, 0.0)
    size = float(torch.linalg.vector_norm(exact))
    rivals = [other.masked_fill(~usable, 0.0).nan_to_num() for other in others if other.shape == exact.shape]
    found = []
    for one in seen:
        if one.value.shape != exact.shape or one.is_view or not size > 0:
            continue
        value = one.value.masked_fill(~usable, 0.0).nan_to_num(nan=torch.inf)
        distance = float(torch.linalg.vector_norm(value - exact))
        if all(distance <= float(torch.linalg.vector_norm(value - rival)) for rival in rivals):
            found.append((distance / size, one.operation))
    return min((each for each in found if each[0] < _NEAR), default=None)
