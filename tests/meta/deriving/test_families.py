"""Values at kinks: a derived contract asks the gradient there if an activation of PyTorch has the kink, or else not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.deriving.derived import Derived
from harness.judging.judge import judge
from harness.judging.scenario import Scenario, realise
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS

EXAMPLE = (torch.randn(6, 8), torch.randn(8, 5), torch.randn(5))
Layer = Callable[[Tensor, Tensor, Tensor], Tensor]


def layer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(x @ weight + bias)


def by_hand(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """At 0 its derivative is 1/2: how autograd shares the gradient between two equal arguments."""
    z = x @ weight + bias
    return torch.maximum(z, torch.zeros_like(z))


def largest(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Equal elements of a row share the gradient, or the first one has all of it."""
    return (x @ weight + bias).amax(-1)


@cache
def contract(reference: Layer) -> Derived:
    return derive_from(reference, EXAMPLE)


def _verdicts(function: Layer, dtype: torch.dtype) -> set[str]:
    subject = Subject(contract(layer).operator, "it", "cpu", dtype, function)
    return {judge(subject, all_properties()[name]).verdict for name in ("forward-parity", "vjp-parity")}


def selected(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    z = x @ weight + bias
    return torch.where(z <= 0, torch.zeros_like(z), z)


def backwards(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The columns in another order."""
    return selected(x.flip(1), weight.flip(0), bias)


def slope_one(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (x @ weight + bias).clamp(min=0)


def active_at_zero(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    z = x @ weight + bias
    return torch.where(z >= 0, z, torch.zeros_like(z)) + (z == 0)


def dead_near_zero(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    z = x @ weight + bias
    return z * (z > torch.finfo(x.dtype).eps)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", [layer, selected, backwards], ids=lambda f: f.__name__)
def test_right_functions_pass(function: Layer, dtype: torch.dtype) -> None:
    assert _verdicts(function, dtype) == {PASS}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", [slope_one, by_hand, active_at_zero, dead_near_zero], ids=lambda f: f.__name__)
def test_functions_that_are_wrong_at_the_kink_fail(function: Layer, dtype: torch.dtype) -> None:
    assert FAIL in _verdicts(function, dtype)


def test_the_kink_of_an_activation_is_asked() -> None:
    assert "sparse-values" in contract(layer).families


@pytest.mark.parametrize("reference", [by_hand, largest], ids=lambda f: f.__name__)
def test_a_kink_that_no_rule_decides_is_left_out(reference: Layer) -> None:
    found = contract(reference)
    assert "sparse-values" not in found.families
    assert any(reason.startswith("sparse-values: the gradient of the reference jumps") for reason in found.left_out)


def of_elu(x: Tensor) -> Tensor:
    return torch.nn.functional.elu(x - 6)


class _OfResult(torch.autograd.Function):
    """Saves the result in the dtype, as torch's own `elu_` does: below 0 the slope is the result plus 1."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        y = torch.nn.functional.elu(z)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, g, g * (y + 1))


def elu_of_result(x: Tensor) -> Tensor:
    return _OfResult.apply(x - 6)  # type: ignore[no-any-return, no-untyped-call]


class _LessSteep(_OfResult):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:  # type: ignore[override]
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, g, g * (y + 1) * 1.5)


def elu_less_steep(x: Tensor) -> Tensor:
    return _LessSteep.apply(x - 6)  # type: ignore[no-any-return, no-untyped-call]


#: With the last five, one rounding decides the scale of all slopes: values of a thousandth vanish beside the 6.
_SEEDS = 0, 1, 3, 12, 17, 33, 34


def _verdict(function: Callable[..., Tensor], seed: int) -> str:
    """By the contract that is derived from an example: its scale, and with it the values of each family, are drawn."""
    example = torch.randn(6, 8, generator=torch.Generator().manual_seed(seed))
    subject = Subject(derive_from(of_elu, (example,)).operator, "it", "cpu", torch.bfloat16, function)
    return judge(subject, all_properties()["vjp-parity"]).verdict


@pytest.mark.parametrize("seed", _SEEDS)
def test_the_slope_of_elu_may_come_from_the_result(seed: int) -> None:
    """Far below 0 the result plus 1 has few digits."""
    assert _verdict(elu_of_result, seed) == PASS


@pytest.mark.parametrize("seed", _SEEDS)
def test_a_wrong_slope_of_elu_is_found(seed: int) -> None:
    assert _verdict(elu_less_steep, seed) == FAIL


def test_a_length_of_0_is_asked_where_something_is_left() -> None:
    assert "no-x_1" in [case.name for case in contract(layer).operator.cases], "the bias alone"
    assert "no-weight_1" not in [case.name for case in contract(layer).operator.cases], "no output at all"
    assert "no-batch" in [case.name for case in contract(layer).operator.cases], "the last batch of a data loader"


def test_a_relu_in_float32_is_judged_without_rows() -> None:
    """All tensors without elements have one address: a mask must not be taken for what the reference saves."""

    def wide(x: Tensor) -> Tensor:
        return torch.relu(x.float()).to(x.dtype)

    found = derive_from(wide, (torch.randn(6, 8),)).operator
    subject = Subject(found, "it", "cpu", torch.bfloat16, torch.relu)
    assert judge(subject, all_properties()["sizes"]).verdict == PASS


def test_values_at_which_a_repeated_vector_has_no_stable_gradient_are_not_repeated() -> None:
    """A vector that repeats its first element is constant: of huge values with variance 0 each rounding decides."""

    def normalised(x: Tensor, bias: Tensor) -> Tensor:
        centred = x - x.mean()
        return centred * torch.rsqrt((centred * centred).mean() + 1e-5) + bias

    found = derive_from(normalised, (torch.randn(6), torch.randn(6)))
    large, shifted = (found.operator.family(name) for name in ("large-values", "shifted-values"))
    assert (large.repeats, shifted.repeats) == (False, True)
    assert any(reason.startswith("large-values with a tensor whose first element is") for reason in found.left_out)
    scenario = Scenario((("x_0", 5),), values="large-values", layouts=(("x", "expanded"), ("bias", "strided")))
    assert scenario.layouts_in(found.operator) == (("bias", "strided"),)
    assert len(set(realise(found.operator, scenario, torch.float32).inputs[0].tolist())) == 5

    def in_two_passes(x: Tensor, bias: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x, correction=0)
        return (x - mean) * torch.rsqrt(variance + 1e-5) + bias

    subject = Subject(found.operator, "it", "cpu", torch.float32, in_two_passes)
    assert judge(subject, all_properties()["combinations"]).verdict == PASS
