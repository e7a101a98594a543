"""A second differentiation, of the gradients, is right or refused. It must not be silently wrong."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harness.errors import Ended, Failure, NoEvidence
from harness.judging.property import GRADCHECK, Property
from harness.judging.remote import RunnerFailure
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.scenarios import smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.report.levels import GRADIENTS

#: Second derivatives have no envelope of their own. Right ones agree far better than this in float64.
RELATIVE = 1e-8

#: What to do where backward has a graph that leads nowhere.
_DETACHED = (
    "no gradient depends on an input or a cotangent, as with once_differentiable, which raises in .backward() alone, "
    "not in torch.autograd.grad: to refuse, raise an error in backward where torch.is_grad_enabled()"
)


def check(subject: Subject) -> dict[str, Any]:
    """The gradient of a fixed combination of all gradients, against that of the reference, in float64."""
    scenario = smallest(subject.operator)
    where = f"[{scenario.describe(subject.operator)}]"
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    leaves = [tensor for tensor in call.inputs if tensor.requires_grad]
    cotangents = [g.clone().requires_grad_() for g in call.cotangents if g is not None]
    try:
        gradients = torch.autograd.grad(call.used(outputs)[0], leaves, cotangents, create_graph=True)
    except CANDIDATE_ERRORS as error:
        return _refused(error, where)
    if not any(gradient.requires_grad for gradient in gradients):
        raise Failure(
            "backward with create_graph=True returned gradients without a graph and raised nothing, but should "
            f"be differentiable or raise: a loss on these gradients would silently lose its own gradient {where}"
        )
    try:
        found = torch.autograd.grad(_mixed(gradients), [*leaves, *cotangents], allow_unused=True)
    except CANDIDATE_ERRORS as error:
        return _refused(error, where)
    exact = _reference(subject, scenario)
    names = [arg.name for arg in subject.operator.inputs if arg.differentiable]
    names += [f"the cotangent of {arg.name}" for arg in subject.operator.real_outputs]
    if not any(bool(y.any()) for y in exact):
        raise NoEvidence("every second derivative is 0 here: a wrong one would pass")
    for name, got, y in zip(names, found, exact, strict=True):
        value = torch.zeros_like(y) if got is None else got.detach().cpu()
        off = float((value - y).norm() / y.norm()) if bool(y.any()) else float(value.norm())
        if not off <= RELATIVE:
            failure = Failure(
                f"second derivative with respect to {name} is off by {off:.2g} of its norm, but should be right or "
                f"refused: double backward is silently wrong {where}"
            )
            raise failure.adding(_DETACHED) if all(one is None for one in found) else failure
    return {"double backward": "supported"}


def _refused(error: BaseException, where: str) -> dict[str, Any]:
    """An exception is a refusal. The end of the candidate's process is none."""
    if isinstance(error, RunnerFailure):
        how = "in a second differentiation, but should be right or raise"
        raise Ended(f"the candidate's process {error} {how} {where}") from error
    return {"double backward": f"raises ({one_line(error)})"}


def _mixed(gradients: tuple[Tensor, ...]) -> Tensor:
    """A scalar in which every element of every gradient has a weight of its own."""
    total = gradients[0].new_zeros(())
    for number, gradient in enumerate(gradients):
        weights = torch.linspace(1, 2 + number, gradient.numel(), dtype=gradient.dtype, device=gradient.device)
        total = total + (gradient.reshape(-1) * weights).sum()
    return total


def _reference(subject: Subject, scenario: Scenario) -> list[Tensor]:
    exact: Call = realise(subject.operator, scenario, subject.dtype).to_float64()
    pairs = zip(subject.operator.inputs, exact.inputs, strict=True)
    inputs = [tensor.requires_grad_() for arg, tensor in pairs if arg.differentiable]
    cotangents = [g.requires_grad_() for g in exact.cotangents if g is not None]
    outputs, _ = exact.used(subject.operator.forward(*exact.inputs))
    gradients = torch.autograd.grad(outputs, inputs, cotangents, create_graph=True)
    found = torch.autograd.grad(_mixed(gradients), [*inputs, *cotangents], allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip([*inputs, *cotangents], found, strict=True)]


PROPERTY = Property(
    "double-backward",
    "the gradient of the gradients is right or raises",
    check,
    view=GRADCHECK,
    level=GRADIENTS,
    outside=True,
    dtypes=("float64",),
    why_only="the second derivative is the same code in every dtype",
)
