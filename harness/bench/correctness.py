"""A backend is checked before it is timed and after it: one with wrong results gets no row."""

from __future__ import annotations

import torch
from torch import Tensor

from harness.errors import Failure
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from spec.contract import FORWARD_AND_BACKWARD, Case

#: Above this many operations in products, or bytes, the oracle's seventeen evaluations in float64 would take minutes.
_ORACLE_FLOPS = 5 * 10**8
_ORACLE_BYTES = 2**26
#: Without the oracle, the allowed error, as a multiple of the error of the reference in the dtype itself.
_FACTOR = 3.0


def check(subject: Subject, case: Case) -> None:
    """Check outputs and gradients at that case against the contract. Raises Failure.

    Small cases are judged with the oracle. At large ones the root mean square error must stay within three times that
    of the reference in the same dtype: this detects wrong results, but not slightly inaccurate ones, which the
    conformance suite detects.
    """
    scenario = Scenario.of(case)
    cost = subject.operator.cost(FORWARD_AND_BACKWARD, case.sizes, subject.dtype.itemsize)
    if cost.flops <= _ORACLE_FLOPS and cost.bytes <= _ORACLE_BYTES:
        Tally(subject).run(scenario)
    else:
        _against_eager(subject, scenario)


def _against_eager(subject: Subject, scenario: Scenario) -> None:
    operator = subject.operator
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    got = [*outputs, *subject.gradients(call, outputs, scenario).values()]
    cotangents = tuple(g for g in call.cotangents if g is not None)
    inputs = tuple(tensor.detach() for tensor in call.inputs)
    exact_inputs = tuple(tensor.double() for tensor in inputs)
    exact = [*operator.forward(*exact_inputs), *operator.vjp(exact_inputs, tuple(g.double() for g in cotangents))]
    eager = [*operator.forward(*inputs), *operator.vjp(inputs, cotangents)]
    names = [arg.name for arg in operator.outputs] + [f"gradient of {arg.name}" for arg in operator.inputs]
    unit = torch.finfo(subject.dtype).eps / 2
    # A sum of K terms in another order differs by about sqrt(K) roundings; in float64 the reference's own error is 0.
    terms = max(size for tensor in exact for size in tensor.shape) ** 0.5
    for name, was, should, reference in zip(names, got, exact, eager, strict=True):
        error = _rms(was.detach().double() - should)
        allowed = _FACTOR * _rms(reference.double() - should) + 2 * unit * terms * _rms(should)
        if not error <= allowed:
            raise Failure(
                f"{name} had an rms error of {error:.3g}, but should have at most {allowed:.3g} "
                f"[{scenario.describe(operator)}]"
            )


def _rms(tensor: Tensor) -> float:
    return float(tensor.square().mean().sqrt()) if tensor.numel() else 0.0
