"""Compare tensors bit for bit, where close values are not enough."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from harness.errors import Failure
from harness.judging.compare import shown
from harness.judging.scenario import Call, Scenario
from harness.judging.subject import Subject


def bits(tensor: Tensor) -> Tensor:
    """A copy that compares bitwise: NaN equals itself and -0.0 differs from 0.0."""
    integer = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()]
    return tensor.detach().clone(memory_format=torch.contiguous_format).view(integer)


def results(subject: Subject, call: Call, scenario: Scenario) -> dict[str, Tensor]:
    """Outputs and gradients of one call, by the names that failures use."""
    outputs = subject.outputs(call, scenario)
    found = {arg.name: output for arg, output in zip(subject.operator.outputs, outputs, strict=True)}
    gradients = subject.gradients(call, outputs, scenario)
    return {**found, **{f"gradient of {name}": gradient for name, gradient in gradients.items()}}


def hold_bits(got: Mapping[str, Tensor], should: Mapping[str, Tensor], when: str, like: str, where: str) -> None:
    """Raise Failure for the first tensor of `got` that differs from that of `should` in any bit."""
    for name, tensor in got.items():
        differs = bits(tensor) != bits(should[name])
        if bool(differs.any()):
            place = tuple(differs.nonzero()[0].tolist())
            was, value = (shown(each[place].item()) for each in (tensor, should[name]))
            raise Failure(
                f"{name} was {was} at {place} {when}, but should be {value} {like}, bit for bit: "
                f"{int(differs.sum())} of {differs.numel()} elements differ {where}"
            )
