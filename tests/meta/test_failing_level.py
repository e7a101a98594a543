"""A property of values that fails because of a gradient alone counts as a failure of gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from backends.base import Declaration
from harness.discovery import operator
from harness.errors import Failure
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import DECLARED, FAIL, PASS, Cell
from harness.report.levels import GRADIENTS, SAFE, VALUES, standings
from harness.report.suite import KnownProperty, Suite
from tests.zoo.honest.lltm import plain, with_gradient

pytestmark = pytest.mark.usefixtures("with_the_store")

#: The properties of values that run on the CPU and compare gradients too.
OF_BOTH = sorted(
    name
    for name, property in all_properties().items()
    if property.level == VALUES
    and name not in ("forward-parity", "imports", "many-elements", "harvested-sizes", "unreached-code")
)


def wrong_gradient(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Any:
    """Outputs are right; the gradient of bias is wrong, and no linear function of the cotangents."""
    return plain(input, weights, with_gradient(bias, lambda gradient: 2 * gradient + 1), old_h, old_cell)


def no_gradient(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Any:
    """Outputs are right; nothing requires grad."""
    return plain(*(tensor.detach() for tensor in (input, weights, bias, old_h, old_cell)))


def wrong_outputs(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Any:
    """Outputs and gradients are wrong."""
    return plain(input, weights, 1.5 * bias + 1, old_h, old_cell)


def wrong_only_with_gradient(*inputs: Tensor) -> Any:
    """Outputs are wrong only where no gradient is wanted; the gradient of bias is always wrong."""
    new_h, new_cell = wrong_gradient(*inputs)
    return (new_h, new_cell) if any(t.requires_grad for t in inputs) else (1.5 * new_h + 1, new_cell)


def cell_of(function: Any, property: str, *declared: Declaration) -> Cell:
    subject = Subject(operator("lltm"), "mine", "cpu", torch.float32, function, declared)
    return judge(subject, all_properties()[property])


@pytest.mark.parametrize("function", [wrong_gradient, no_gradient])
@pytest.mark.parametrize("property", OF_BOTH)
def test_a_wrong_gradient_leaves_the_values_right(property: str, function: Any) -> None:
    found = cell_of(function, property)
    assert (found.verdict, found.level) == (FAIL, GRADIENTS), found.reason
    assert "all outputs are right; only gradients are wrong" in found.reason


@pytest.mark.parametrize("property", [*OF_BOTH, "forward-parity"])
def test_wrong_outputs_are_wrong_values(property: str) -> None:
    found = cell_of(wrong_outputs, property)
    assert (found.verdict, found.level) == (FAIL, ""), found.reason
    assert "all outputs are right" not in found.reason


def test_wrong_outputs_count_where_a_gradient_is_wrong_first() -> None:
    """invariants meets a wrong gradient first; its closed forms, without gradients, are wrong too."""
    assert cell_of(wrong_only_with_gradient, "invariants").level == ""


def test_other_properties_fail_at_their_own_level() -> None:
    assert cell_of(wrong_gradient, "vjp-parity").level == ""
    assert cell_of(wrong_gradient, "repeated-backward").level == ""


def test_a_declared_failure_has_no_level() -> None:
    found = cell_of(wrong_gradient, "sizes", Declaration("sizes", "its gradient is not done yet"))
    assert (found.verdict, found.level) == (DECLARED, "")


def test_outputs_alone_are_checked_once() -> None:
    """The second check is the last one, and only a property of values gets it."""
    asked: list[bool] = []

    def check(subject: Subject) -> dict[str, Any]:
        asked.append(subject.outputs_only)
        if not subject.outputs_only:
            raise Failure("gradient of bias was wrong")
        return {}

    subject = Subject(operator("lltm"), "mine", "cpu", torch.float32, plain)
    found = judge(subject, Property("shine", "it shines", check, level=VALUES))
    assert (found.level, asked) == (GRADIENTS, [False, True])
    asked.clear()
    assert judge(subject, Property("shine", "it shines", check, level=SAFE)).level == ""
    assert asked == [False]


def test_such_a_cell_passes_at_values_and_fails_at_gradients() -> None:
    known = [KnownProperty(name, "", level=level) for name, level in (("sizes", VALUES), ("vjp-parity", GRADIENTS))]
    suite = Suite(properties=tuple(known))
    found = standings([cell_of(wrong_gradient, "sizes"), cell_of(plain, "vjp-parity")], suite)
    by_level = {standing.level: standing for standing in found}
    assert (by_level[VALUES].verdict, by_level[VALUES].passed, by_level[VALUES].tested) == (PASS, 1, 1)
    assert (by_level[GRADIENTS].verdict, by_level[GRADIENTS].passed, by_level[GRADIENTS].tested) == (FAIL, 1, 2)
