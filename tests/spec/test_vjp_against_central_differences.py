"""The closed-form gradient is the measured slope of `forward`: central differences along random directions.

Ordinary values only: near a kink or an overflow, a difference does not measure the slope.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from spec.contract import Case, Draw, Operator

EPS = torch.finfo(torch.float64).eps

#: Half the distance between the points. Richardson's extrapolation leaves an error of the order of STEP**4, which is
#: below the rounding error EPS / STEP of a difference of two values of order 1.
STEP = 1e-4

#: How many times EPS / STEP the slope may be off. The differenced values are sums of many rounded terms.
ALLOWED = 10.0

Vjp = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[Tensor, ...]]


def slope(loss: Callable[[float], float]) -> float:
    """The derivative of `loss` at 0, by central differences at STEP and 2*STEP, extrapolated."""
    near = (loss(STEP) - loss(-STEP)) / (2 * STEP)
    far = (loss(2 * STEP) - loss(-2 * STEP)) / (4 * STEP)
    return (4 * near - far) / 3


def disagreements(operator: Operator, vjp: Vjp, case: Case) -> dict[str, float]:
    """For each input, how far `vjp` is from the slope along one direction, in units of EPS / STEP."""
    draw = Draw(0)
    inputs = tuple(operator.ordinary(case.sizes, draw).values())
    outputs = operator.forward(*inputs)
    cotangents = tuple(draw.normal(tuple(output.shape)) for output in outputs)
    magnitude = 1.0 + sum(float((g * y).abs().sum()) for g, y in zip(cotangents, outputs, strict=True))

    units = {}
    for index, (arg, gradient) in enumerate(zip(operator.inputs, vjp(inputs, cotangents), strict=True)):
        if arg.differentiable:
            direction = draw.normal(tuple(inputs[index].shape))

            def loss(t: float, index: int = index, direction: Tensor = direction) -> float:
                moved = (*inputs[:index], inputs[index] + t * direction, *inputs[index + 1 :])
                return sum(float((g * y).sum()) for g, y in zip(cotangents, operator.forward(*moved), strict=True))

            error = abs(float((gradient * direction).sum()) - slope(loss))
            units[arg.name] = error / (magnitude * EPS / STEP)
    return units


def agrees(units: dict[str, float]) -> bool:
    """Whether every slope is within the allowance; a NaN is not."""
    return all(unit <= ALLOWED for unit in units.values())


def test_the_closed_form_is_the_slope(operator: Operator, small_case: Case) -> None:
    units = disagreements(operator, operator.vjp, small_case)
    assert agrees(units), units


def test_a_gradient_that_is_off_by_1e_6_is_rejected(operator: Operator) -> None:
    for index, arg in enumerate(operator.inputs):
        if arg.differentiable:

            def wrong(inputs, cotangents, index=index):
                gradients = list(operator.vjp(inputs, cotangents))
                gradients[index] = gradients[index] * (1 + 1e-6)
                return tuple(gradients)

            assert not agrees(disagreements(operator, wrong, operator.case("small"))), arg.name
