"""Under FakeTensorMode, without data, the operator gives the same shapes, dtypes and strides as with data."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from harness.errors import Failure
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import representative, smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.report.levels import PYTORCH


def check(subject: Subject) -> dict[str, Any]:
    """Fake against real results, with contiguous and with transposed inputs."""
    names = [arg.name for arg in subject.operator.inputs]
    scenarios = [
        smallest(subject.operator),
        Scenario.of(representative(subject.operator), layouts=tuple((name, "transposed") for name in names)),
    ]
    for scenario in scenarios:
        where = f"[{scenario.describe(subject.operator)}]"
        call = subject.realise(scenario)
        real = subject.outputs(call, scenario)
        with FakeTensorMode() as mode:
            fakes = [mode.from_tensor(tensor) for tensor in call.inputs]
            try:
                found = subject.function(*fakes)
            except CANDIDATE_ERRORS as error:
                raise Failure(
                    f"raised {one_line(error)} on fake tensors, but should give shapes: register a Meta kernel {where}"
                ) from error
        found = (found,) if isinstance(found, torch.Tensor) else found
        for arg, fake, true in zip(subject.operator.outputs, found, real, strict=True):
            facts = {
                "shape": (fake.shape, true.shape),
                "dtype": (fake.dtype, true.dtype),
                "device": (fake.device, true.device),
                "strides": (fake.stride(), true.stride()),
            }
            for what, (was, should) in facts.items():
                if was != should:
                    raise Failure(
                        f"{what} of {arg.name} was {was} on fake tensors, but is {should} on real ones {where}"
                    )
    return {"scenarios": len(scenarios)}


PROPERTY = Property(
    "fake-tensors", "the Meta kernel gives the shapes that the real one returns", check, view=INTEGRATION, level=PYTORCH
)
