"""Calls that are compared with the reference in float64 first: they cost little more than what they call.

Expected results need some sixty runs of the reference. One run is enough for a path of its own that leaves something
out or confuses two things. A result that has half of its digits right passes; any other is judged by its expected
result, as every call is. So nothing fails by this comparison, and what is wrong by less is not seen.

A sum over 500 equal steps in bfloat16 stops growing where a term is half a unit of its last place, which one rounding
of a sigmoid more or less decides. So a result that has half of the digits of the reference in the dtype passes too, and
where that reference fails as well, nothing is asked. Nor is it where the reference itself jumps: at a kink, two right
gradients may differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from harness.errors import Ended, Failure
from harness.judging.by_identity import ByIdentity
from harness.judging.oracle import evaluate, said_by_the_reference, values_of, with_zeros
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from spec.contract import NORMAL, Draw, Operator
from spec.roundoff import UNIT_ROUNDOFF

#: By how much all values are moved to see whether the reference jumps, and how far it moves then where it does.
_STEP, _JUMP = 1e-7, 1e-3


def run_near(tally: Tally, scenario: Scenario) -> None:
    """Make the call, and judge it by its expected results if it does not pass. Raises Failure."""
    subject = tally.subject
    try:
        call = subject.realise(scenario)
        outputs = subject.outputs(call, scenario)
        right = passes(subject, scenario, named(subject, outputs, subject.gradients(call, outputs, scenario)))
    except Ended:
        raise
    except Failure:
        right = False
    if right:
        tally.scenarios += 1
    else:
        tally.run(scenario, spared=True)


def named(subject: Subject, outputs: Sequence[Tensor], gradients: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The results of a call by their names: those of outputs, and `gradient of` those of inputs."""
    found = dict(zip((arg.name for arg in subject.operator.outputs), outputs, strict=True))
    return found | {f"gradient of {name}": gradient for name, gradient in gradients.items()}


def half_of_the_digits(dtype: torch.dtype) -> float:
    """By which part of itself a number of the dtype may differ where half of its digits are right."""
    return math.sqrt(UNIT_ROUNDOFF[dtype])


def passes(subject: Subject, scenario: Scenario, found: Mapping[str, Tensor]) -> bool:
    """Whether each result has half of the digits of the reference, exact or in the dtype, or that jumps there."""
    operator, dtype = subject.operator, subject.dtype
    part, exact = half_of_the_digits(dtype), _exact(ByIdentity(operator), values_of(scenario), dtype)
    far = [name for name, got in found.items() if not _agree(got, exact[name], part)]
    if not far:
        return True
    # Where all of it is 0, or nearly, it is measured by what it usually is.
    usual = _exact(ByIdentity(operator), values_of(replace(scenario, values=NORMAL)), dtype)
    sizes = {name: _size(usual[name]) for name in far if not _agree(found[name], exact[name], part, _size(usual[name]))}
    if not sizes:
        return True
    rounded = _rounded(ByIdentity(operator), values_of(scenario), dtype)
    if all(_agree(found[name], rounded[name], part, size) for name, size in sizes.items()):
        return True
    return _jump(operator, scenario, dtype, sizes)


def _jump(operator: Operator, scenario: Scenario, dtype: torch.dtype, sizes: Mapping[str, float]) -> bool:
    """Whether all these results of the reference are others, or not finite, if all values differ a little."""
    call, draw = _complete(operator, scenario, dtype), Draw(2)
    exact = _evaluated(operator, call)
    smooth = {name for name in sizes if bool(exact[name].isfinite().all())}
    for step in (_STEP, -_STEP):
        moved = _evaluated(operator, Call(operator.moved(call.inputs, step, draw), call.cotangents))
        smooth = {name for name in smooth if _agree(moved[name], exact[name], _JUMP, sizes[name])}
    return not smooth


@lru_cache(maxsize=4)
def _exact(key: ByIdentity, scenario: Scenario, dtype: torch.dtype) -> dict[str, Tensor]:
    return _evaluated(key.operator, _complete(key.operator, scenario, dtype))


@lru_cache(maxsize=4)
def _rounded(key: ByIdentity, scenario: Scenario, dtype: torch.dtype) -> dict[str, Tensor]:
    """The results of the reference in the dtype itself."""
    found = _evaluated(key.operator, with_zeros(key.operator, realise(key.operator, scenario, dtype)))
    return {name: made.double() if made.is_floating_point() else made for name, made in found.items()}


def _complete(operator: Operator, scenario: Scenario, dtype: torch.dtype) -> Call:
    return with_zeros(operator, realise(operator, scenario, dtype).to_float64())


def _evaluated(operator: Operator, call: Call) -> dict[str, Tensor]:
    names = [*(arg.name for arg in operator.outputs), *(f"gradient of {arg.name}" for arg in operator.inputs)]
    with said_by_the_reference(operator, call):
        return dict(zip(names, evaluate(operator, call), strict=True))


def _agree(got: Tensor, exact: Tensor, part: float, size: float = 0.0) -> bool:
    """Whether each element is right but for that part of itself and of the tensor's typical element, or of `size`."""
    got = got.detach().cpu()
    if not got.is_floating_point():
        return torch.equal(got, exact)
    error = (got.to(torch.float64) - exact).abs_()
    return bool((error <= part * (exact.abs() + max(_size(exact), size))).all())


def _size(tensor: Tensor) -> float:
    """The typical size of its elements: the root of their mean square."""
    return float(tensor.double().norm()) / math.sqrt(max(tensor.numel(), 1))
