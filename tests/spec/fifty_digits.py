"""Shared by the tests of operators in 50-digit scalar arithmetic: numbers, matrices of them, and the comparison.

An operator's own test writes every step as loops over scalars. Nothing here or there is shared with `spec`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import torch
from torch import Tensor

from spec.contract import Case, Draw, Family, Operator

mp = mpmath.MPContext()
mp.dps = 50

EPS = torch.finfo(torch.float64).eps
TINY = torch.finfo(torch.float64).tiny

#: Roundings by which an element may be off.
ROUNDINGS = 4

Row = list[Any]
Matrix = list[Row]
Vjp = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[Tensor, ...]]
#: Every step, output and gradient (`d_` and the input's name) of a call, in 50 digits.
Exactly = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], dict[str, Matrix]]


def exact(tensor: Tensor) -> Matrix:
    """A matrix of 50-digit numbers with the tensor's values; a vector becomes one row."""
    return [[mp.mpf(value) for value in row] for row in torch.atleast_2d(tensor).tolist()]


def in_float64(
    operator: Operator, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...], vjp: Vjp
) -> dict[str, Tensor]:
    """The same names, from the contract in float64."""
    outputs = zip((arg.name for arg in operator.outputs), operator.forward(*inputs), strict=True)
    gradients = zip((f"d_{arg.name}" for arg in operator.inputs), vjp(inputs, cotangents), strict=True)
    return {**operator.intermediates(*inputs), **dict(outputs), **dict(gradients)}


def disagreements(
    operator: Operator, exactly: Exactly, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...], vjp: Vjp
) -> dict[str, float]:
    """For each name the largest error, in roundings of the tensor's largest element, or of 1 if that is larger."""
    expected = exactly(inputs, cotangents)
    units = {}
    for name, actual in in_float64(operator, inputs, cotangents, vjp).items():
        if actual.numel() == 0:
            continue
        pairs = [
            (x, y) for xs, ys in zip(exact(actual), expected[name], strict=True) for x, y in zip(xs, ys, strict=True)
        ]
        largest = max(1, *(abs(y) for _, y in pairs))
        units[name] = float(max(abs(x - y) for x, y in pairs) / (EPS * largest))
    return units


def drawn(operator: Operator, case: Case, family: Family) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Inputs and cotangents, float64."""
    draw = Draw(0)
    inputs = tuple(family.make(case.sizes, draw, torch.float64).values())
    return inputs, tuple(draw.normal(arg.shape_for(case.sizes)) for arg in operator.outputs)


def agrees(units: dict[str, float]) -> bool:
    """Whether every error is within the allowance; a NaN is not."""
    return all(unit <= ROUNDINGS for unit in units.values())


def finite(operator: Operator) -> list[Family]:
    """The families of finite values."""
    return [operator.family("normal"), *(family for family in operator.families if family.name != "non-finite")]


def small(operator: Operator) -> list[Case]:
    """The cases that loops over scalars can afford."""
    return [case for case in operator.cases if "small" in case.tags]
