"""The families that solve for MLP's pre-activations reach them exactly, in every dtype, and dead units are dead."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spec.contract import DTYPES, Draw
from spec.mlp import OPERATOR, forward, intermediates, unspecified, vjp
from spec.rounding import Rounding

#: Enough rows and units that every value is drawn.
CASE = OPERATOR.case("hidden-33")


def inputs_of(family: str, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """The inputs that a candidate of that dtype would see."""
    return tuple(x.to(dtype) for x in OPERATOR.family(family).make(CASE.sizes, Draw(0), dtype).values())


def values(tensor: Tensor) -> set[float]:
    return set(tensor.double().flatten().tolist())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_zero_pre_activations_are_zero(dtype: torch.dtype) -> None:
    assert values(intermediates(*inputs_of("zero-pre-activations", dtype))["pre_activations"]) == {0.0}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tiny_pre_activations_are_what_rounding_loses(dtype: torch.dtype) -> None:
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    found = values(intermediates(*inputs_of("tiny-pre-activations", dtype))["pre_activations"])
    assert found == {-eps / 8, -eps / 2, -eps, -tiny, tiny, eps / 8, 0.0}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_huge_hidden_values_are_finite_and_so_is_what_comes_of_them(dtype: torch.dtype) -> None:
    inputs = inputs_of("huge-hidden", dtype)
    hidden = intermediates(*inputs)["hidden"].double()
    assert hidden.max() == min(torch.finfo(dtype).max / 32, 2.0**500)
    assert bool(forward(*inputs)[0].isfinite().all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dead_units_are_dead_in_every_row(dtype: torch.dtype) -> None:
    dead = (intermediates(*inputs_of("dead-units", dtype))["hidden"] == 0).all(0)
    assert bool(dead[::2].all())
    assert not bool(dead[1::2].all())
    assert values(intermediates(*inputs_of("dead-layer", dtype))["hidden"]) == {0.0}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_denormals_are_below_the_smallest_normal_number(dtype: torch.dtype) -> None:
    tensors = OPERATOR.family("denormals").make(CASE.sizes, Draw(0), dtype)
    for name in ("input", "hidden_bias"):
        found = tensors[name].to(dtype).double().abs()
        assert bool(((found > 0) & (found < torch.finfo(dtype).tiny)).any()), name


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rounding_leaves_a_pre_activation_of_0_at_the_kink(dtype: torch.dtype) -> None:
    inputs = tuple(x.double() for x in inputs_of("zero-pre-activations", dtype))
    cotangent = torch.ones(CASE.sizes["batch"], CASE.sizes["output_size"], dtype=torch.float64)
    with Rounding(dtype, seed=0):
        d_input, *_ = vjp(inputs, (cotangent,))
    assert values(d_input) == {0.0}


def test_only_what_depends_on_a_nan_is_left_open() -> None:
    inputs = inputs_of("non-finite", torch.float64)
    cotangents = (torch.ones(CASE.sizes["batch"], CASE.sizes["output_size"], dtype=torch.float64),)
    stated, marked = vjp(inputs, cotangents), unspecified(inputs, cotangents)
    is_open = [bool((a.isfinite() & b.isnan()).any()) for a, b in zip(stated, marked, strict=True)]
    assert is_open == [True, True, True, False, False]
    assert torch.equal(stated[0][1:], marked[0][1:])  # row 0 holds the NaN
    plain = inputs_of("normal", torch.float64)
    assert all(torch.equal(a, b) for a, b in zip(vjp(plain, cotangents), unspecified(plain, cotangents), strict=True))
