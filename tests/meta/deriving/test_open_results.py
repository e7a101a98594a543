"""What a reference cannot say: truth values kept as real numbers, NaN that its formula makes, calls that it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from spec.contract import Draw, Operator, TensorArg

LABELS = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])


def focal(x: Tensor, t: Tensor) -> Tensor:
    p = torch.sigmoid(x)
    right = p * t + (1 - p) * (1 - t)
    return (1 - right) ** 2 * F.binary_cross_entropy_with_logits(x, t, reduction="none")


def focal_of_truth(x: Tensor, t: Tensor) -> Tensor:
    """For labels of 0 and 1 alone."""
    s = torch.where(t > 0.5, x, -x)
    return torch.sigmoid(-s) ** 2 * F.softplus(-s)


def running_product(x: Tensor) -> Tensor:
    return torch.cumprod(x, -1)


def product_by_columns(x: Tensor) -> Tensor:
    found = [x[:, 0]]
    for column in x.unbind(1)[1:]:
        found.append(found[-1] * column)
    return torch.stack(found, 1)


def cubed(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return (x @ y) @ z


def cubed_from_the_right(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return x @ (y @ z)


def shuffled(x: Tensor) -> Tensor:
    return F.pixel_shuffle(x, 2)


def _cell(contract: Operator, function: Callable[..., Tensor], property: str) -> Cell:
    return judge(Subject(contract, "it", "cpu", torch.float32, function), all_properties()[property])


def test_an_example_of_zeros_and_ones_is_of_truth_values() -> None:
    found = derive_from(focal, (torch.randn(2, 3), LABELS))
    x, t = found.operator.inputs
    assert (x.whole, t.whole, t.differentiable) == (False, True, False)
    assert "t has the values 0 and 1, as in the example, and no gradient" in found.found
    for family in ("large-values", "zero-rows", "positive", "non-finite"):
        values = found.operator.family(family).make({"batch": 9, "x_1": 5}, Draw(1), torch.float32)["t"]
        assert set(values.flatten().tolist()) == {0.0, 1.0}, family


@pytest.mark.parametrize("example", [torch.ones(2, 3), torch.zeros(2, 3), torch.tensor([[0.0, 2.0, 1.0]] * 2)])
def test_other_numbers_are_real_numbers(example: Tensor) -> None:
    assert not derive_from(focal, (torch.randn(2, 3), example)).operator.inputs[1].whole


def test_a_function_of_truth_values_is_judged_by_them() -> None:
    contract = derive_from(focal, (torch.randn(2, 3), LABELS)).operator
    for property in ("forward-parity", "vjp-parity", "combinations"):
        assert _cell(contract, focal_of_truth, property).verdict == PASS
        assert _cell(contract, lambda x, t: focal_of_truth(x, 1 - t), property).verdict == FAIL


def test_a_whole_number_is_uniform_and_has_no_gradient() -> None:
    with pytest.raises(ValueError, match="t was whole, but should be then of real numbers, uniform"):
        TensorArg("t", ("batch",), whole=True)


def test_a_gradient_may_be_finite_where_the_formula_of_the_reference_makes_it_nan() -> None:
    """torch.cumprod divides its result by the input: infinity by infinity. The product of the others is finite."""
    contract = derive_from(running_product, (torch.randn(6, 4),)).operator
    assert any(family.name == "non-finite" for family in contract.families)
    assert _cell(contract, product_by_columns, "vjp-parity").verdict == PASS
    assert _cell(contract, lambda x: product_by_columns(x.nan_to_num()), "forward-parity").verdict == FAIL


def test_a_result_that_overflows_may_be_nan() -> None:
    """The reference itself is NaN in float32, where infinities of two signs meet."""
    contract = derive_from(cubed, (torch.randn(6, 4), torch.randn(4, 5), torch.randn(5, 3))).operator
    for function in (cubed, cubed_from_the_right):
        assert _cell(contract, function, "forward-parity").verdict == PASS
    zeros = _cell(contract, lambda x, y, z: cubed(x, y, z).nan_to_num(0, 0, 0), "forward-parity")
    assert zeros.verdict == FAIL


def test_nan_of_an_infinite_input_may_be_a_number_and_nan_of_nan_may_not() -> None:
    """Binary cross-entropy of infinity is infinity less infinity in PyTorch's formula, and 0 in another."""
    contract = derive_from(focal, (torch.randn(2, 3), LABELS)).operator
    assert _cell(contract, focal_of_truth, "forward-parity").verdict == PASS
    swallows = _cell(contract, lambda x, t: focal_of_truth(x.nan_to_num(0, math.inf, -math.inf), t), "forward-parity")
    assert swallows.verdict == FAIL
    assert "should be nan" in swallows.reason


def test_an_empty_call_is_not_asked_if_the_gradient_of_the_reference_raises() -> None:
    found = derive_from(shuffled, (torch.randn(2, 8, 3, 4),))
    assert all(0 not in case.sizes.values() for case in found.operator.cases)
    assert any("batch=0: the gradient of the reference raised RuntimeError" in each for each in found.left_out)


def test_a_call_that_the_reference_refuses_is_no_error_of_the_harness() -> None:
    def odd(x: Tensor) -> Tensor:
        if x.shape[0] == 7 and x.shape[1] == 7:
            raise ValueError("not seven")
        return torch.exp(x)

    cell = _cell(derive_from(odd, (torch.randn(6, 4),)).operator, torch.exp, "combinations")
    assert cell.verdict == NO_EVIDENCE
    assert "the reference raised ValueError: not seven for batch=7, x_1=7" in cell.reason


def test_a_bound_that_is_a_number_is_none_of_a_size() -> None:
    """Four segments, and four columns of the small sizes: indices below 4 whatever the number of columns is."""

    def summed(x: Tensor, index: Tensor) -> Tensor:
        return torch.zeros(4, x.shape[1], dtype=x.dtype).index_add(0, index, x)

    x, index = derive_from(summed, (torch.randn(9, 3), torch.tensor([0, 1, 2, 3, 3, 2, 1, 0, 0]))).operator.inputs
    assert (index.low, index.high) == ("0", "4")
    assert x.is_floating


def test_a_window_is_found_where_a_longer_one_fits_nowhere() -> None:
    def pooled(x: Tensor, w: Tensor) -> Tensor:
        return F.max_pool1d(F.conv1d(x, w, padding=1), 2)

    found = derive_from(pooled, (torch.randn(2, 3, 8), torch.randn(4, 3, 3)))
    assert "the window w_2 has the length 3" in found.found


def test_laws_that_rounding_hides_are_not_asked_of_a_derived_contract() -> None:
    """1 - p loses most digits of bfloat16 where p is near 1."""

    def near_one(x: Tensor) -> Tensor:
        return (1 - torch.sigmoid(x + 9)) ** 2

    contract = derive_from(near_one, (torch.randn(6, 4),)).operator
    for dtype, verdict in ((torch.float32, PASS), (torch.bfloat16, NOT_RUN)):
        cell = judge(Subject(contract, "it", "cpu", dtype, near_one), all_properties()["invariants"])
        assert cell.verdict == verdict, cell.reason
    assert "a 5% error in one of two ways is within the rounding of the reference in bfloat16" in cell.reason
