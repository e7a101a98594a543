"""References that take few sizes, found by judging problems as KernelBench has them, each by itself."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.discovery import operators
from harness.errors import UsageError
from harness.judging.combinations import VOLUME, combinations_of, most_elements
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.scenarios import elements
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import PASS
from spec.casts import Casts


def dilated(x: Tensor) -> Tensor:
    """At sizes of 2 a window lies in the padding alone. PyTorch's backward then writes outside of the input."""
    return F.max_pool2d(x, 2, 2, padding=1, dilation=3)


def least_of_a_convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """No result shows the depth of the window, which must not be more than that of x."""
    return torch.softmax(F.conv3d(x, weight, bias).amin(2), 1)


def large_rows(x: Tensor) -> Tensor:
    """Rows of 2304 numbers, a length that the reference fixes."""
    return F.layer_norm(x, (16, 12, 12))


def test_a_window_in_the_padding_alone_is_refused() -> None:
    found = derive_from(dilated, (torch.rand(2, 8, 32, 32),))
    assert "a length is x_2 + 2: the reference refuses 1" in found.found
    for name in ("forward-parity", "vjp-parity", "drawn-calls"):
        cell = judge(Subject(found.operator, "it", "cpu", torch.float32, dilated), all_properties()[name])
        assert cell.verdict == PASS, cell.reason


@pytest.mark.parametrize("indices", [False, True])
def test_such_windows_raise_where_the_reference_is_evaluated(indices: bool) -> None:
    with Casts():
        for dilation in (3, (1, 3), [3, 1]):
            with pytest.raises(ValueError, match="lies in the padding alone"):
                F.max_pool2d(torch.rand(1, 1, 2, 2).double(), 2, 2, 1, dilation, return_indices=indices)
        F.max_pool2d(torch.rand(1, 1, 5, 5).double(), 2, 2, 1, 3, return_indices=indices)
        F.max_pool2d(torch.rand(1, 1, 2, 2).double(), 2, 2, 1, return_indices=indices)
        with pytest.raises(ValueError, match="lies in the padding alone"):
            torch.max_pool1d(torch.rand(1, 2).double(), 2, 2, 1, 3)


def test_a_window_that_no_result_shows_has_the_length_of_the_example() -> None:
    """All nine lengths cannot be multiples of the example's at once: such a call would take 97 GB."""
    given = (torch.rand(2, 3, 6, 8, 8), torch.rand(8, 3, 3, 3, 3), torch.rand(8))
    found = derive_from(least_of_a_convolution, given, forward_only=True)
    assert "the window weight_2 has the length 3" in found.found
    assert [arg.shape for arg in found.operator.inputs] == [
        ("batch", "x_1", "x_2 + 2", "x_3 + 2", "x_4 + 2"),
        ("weight_0", "x_1", "3", "3", "3"),
        ("weight_0",),
    ]
    cell = judge(Subject(found.operator, "it", "cpu", torch.float32, least_of_a_convolution), _property("drawn-calls"))
    assert cell.verdict == PASS, cell.reason


def test_fixed_lengths_leave_room_for_ordinary_sizes() -> None:
    operator = derive_from(large_rows, (torch.rand(4, 16, 12, 12),), forward_only=True).operator
    assert most_elements(operator) > VOLUME
    sizes = {dict(call.scenario.sizes)["batch"] for call in combinations_of(operator).calls}
    assert {1, 3, 8, 33} <= sizes
    cell = judge(Subject(operator, "it", "cpu", torch.float32, large_rows), _property("combinations"))
    assert cell.verdict == PASS, cell.reason


def test_the_calls_of_the_contracts_of_the_suite_are_as_large_as_before() -> None:
    for operator in operators().values():
        for form in operator.every_form():
            assert most_elements(form) == VOLUME, form.title
            assert sum(elements(form, dict.fromkeys(form.symbols(), 1))) < VOLUME


def test_random_numbers_are_refused_although_the_result_does_not_show_them() -> None:
    """A softmax of one number is 1, as in a problem of KernelBench with a dropout."""

    def dropped(x: Tensor) -> Tensor:
        return torch.softmax(F.dropout(x).mean(1, keepdim=True), 1)

    with pytest.raises(
        UsageError, match=r"draws random numbers by aten\..*, but should be deterministic: leave it out"
    ):
        derive_from(dropped, (torch.rand(4, 6),))


def _property(name: str) -> Property:
    return all_properties()[name]
