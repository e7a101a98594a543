"""A backend is checked before it is timed and after it: one with wrong results gets no row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from harness.errors import Failure
from harness.judging.oracle import expected_of
from harness.judging.scenario import Call, Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from spec.contract import BACKWARD, FORWARD, FORWARD_AND_BACKWARD, Case, Operator, TensorArg

#: Above this many operations in products, or bytes in float32, the oracle's seventeen evaluations in float64 take more
#: than some five seconds of a processor, before and after each backend is timed.
_ORACLE_FLOPS = 5 * 10**8
_ORACLE_BYTES = 2**24
#: Without the oracle, the allowed error, as a multiple of the error of the reference in the dtype itself.
_FACTOR = 3.0


def is_small(subject: Subject, case: Case) -> bool:
    """Whether results at that case are judged with the oracle, which computes in float64 whatever their dtype is."""
    cost = subject.operator.cost(FORWARD_AND_BACKWARD, case.sizes, torch.float32.itemsize)
    return cost.flops <= _ORACLE_FLOPS and cost.bytes <= _ORACLE_BYTES


def check(subject: Subject, case: Case) -> None:
    """Check outputs and gradients at that case against the contract. Raises Failure.

    Small cases are judged with the oracle. At large ones the root mean square error must stay within three times that
    of the reference in the same dtype: this detects wrong results, but not slightly inaccurate ones, which the
    conformance suite detects.
    """
    scenario = Scenario.of(case)
    if is_small(subject, case):
        Tally(subject).run(scenario)
        return
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    _against_eager(subject, scenario, call, [*outputs, *subject.gradients(call, outputs, scenario).values()])


def check_results(subject: Subject, case: Case, call: Call, results: Sequence[Tensor | None], phase: str) -> None:
    """As `check`, for what a call of that phase returned. Raises Failure."""
    operator, scenario = subject.operator, Scenario.of(case)
    named = _named(operator)[_part(operator, phase)]
    where = f"[{scenario.describe(operator)}]"
    found = []
    for (name, arg, _), result in zip(named, results, strict=True):
        was = None if result is None else (tuple(result.shape), result.dtype)
        should = (arg.shape_for(case.sizes), arg.dtype_in(subject.dtype))
        if result is None or was != should:
            raise Failure(f"shape and dtype of {name} were {was}, but should be {should} {where}")
        found.append(result)
    if not is_small(subject, case):
        _against_eager(subject, scenario, call, found, phase)
        return
    measure, tally = expected_of(operator, call, subject.dtype), Tally(subject)
    for (_, arg, is_gradient), result in zip(named, found, strict=True):
        tally.hold(scenario, measure, arg, result, is_gradient)


def _named(operator: Operator) -> list[tuple[str, TensorArg, bool]]:
    """(name, tensor, whether it is a gradient) of all outputs, and of the gradients of inputs that have one."""
    outputs = [(arg.name, arg, False) for arg in operator.outputs]
    return [*outputs, *((f"gradient of {arg.name}", arg, True) for arg in operator.inputs if arg.differentiable)]


def _part(operator: Operator, phase: str) -> slice:
    """Which of `_named` a phase returns."""
    outputs = len(operator.outputs)
    return {FORWARD: slice(outputs), BACKWARD: slice(outputs, None)}.get(phase, slice(None))


def results_of(operator: Operator, phase: str) -> int:
    """How many tensors a call of that phase returns."""
    return len(_named(operator)[_part(operator, phase)])


def dtypes_of(operator: Operator, phase: str, dtype: torch.dtype) -> list[torch.dtype]:
    """The dtypes of these tensors, where that of the call is `dtype`."""
    return [arg.dtype_in(dtype) for _, arg, _ in _named(operator)[_part(operator, phase)]]


def _against_eager(
    subject: Subject, scenario: Scenario, call: Call, got: Sequence[Tensor], phase: str = FORWARD_AND_BACKWARD
) -> None:
    operator = subject.operator
    cotangents = tuple(g for g in call.cotangents if g is not None)
    inputs = tuple(tensor.detach() for tensor in call.inputs)
    exact_inputs = tuple(tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs)
    exact = _results(operator, exact_inputs, tuple(g.double() for g in cotangents))
    eager = _results(operator, inputs, cotangents)
    part = _part(operator, phase)
    unit = torch.finfo(subject.dtype).eps / 2
    # A sum of K terms in another order differs by about sqrt(K) roundings; in float64 the reference's own error is 0.
    terms = max(size for tensor in exact for size in tensor.shape) ** 0.5
    for (name, _, _), was, should, reference in zip(_named(operator)[part], got, exact[part], eager[part], strict=True):
        if should.is_floating_point():
            error, usual, size = _rms(was.detach().double() - should), _rms(reference.double() - should), _rms(should)
        else:  # an integer is right or another one: the share of those that differ
            error, usual, size = _share(was != should), _share(reference != should), 1.0
        allowed = _FACTOR * usual + 2 * unit * terms * size
        if not error <= allowed:
            raise Failure(
                f"{name} had {'an rms error' if should.is_floating_point() else 'a share of wrong elements'} of "
                f"{error:.3g}, but should have at most {allowed:.3g} "
                f"[{scenario.describe(operator)}]"
            )


def _results(operator: Operator, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> list[Tensor]:
    """What `_named` lists, by the contract."""
    gradients = operator.vjp(inputs, cotangents) if any(arg.differentiable for arg in operator.inputs) else ()
    kept = [g for arg, g in zip(operator.inputs, gradients, strict=False) if arg.differentiable]
    return [*operator.forward(*inputs), *kept]


def _share(mask: Tensor) -> float:
    return float(mask.double().mean()) if mask.numel() else 0.0


def _rms(tensor: Tensor) -> float:
    return float(tensor.square().mean().sqrt()) if tensor.numel() else 0.0
