"""Raises the exception by which a property says that it does not apply, in backward (own trial)."""

from typing import Any

import torch
from torch import Tensor

from harness.errors import NotApplicable
from tests.zoo.gaming.parts import Outputs, right


class Step(torch.autograd.Function):
    """Has no gradient."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Outputs:
        return right(*inputs)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        raise NotApplicable("nothing to see")


def lltm(*inputs: Tensor) -> Outputs:
    outputs: Outputs = Step.apply(*inputs)  # type: ignore[no-untyped-call]
    return outputs
