"""Which lengths of an example are one symbol, which are numbers, and what is asked where that cannot be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.errors import UsageError
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import NO_EVIDENCE, NOT_RUN, PASS


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat([-right, left], -1) * sin


def gated(x: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return F.gelu(left) * right


def of_heads(x: Tensor, weight: Tensor, heads: int) -> Tensor:
    return (x @ weight).unflatten(-1, (heads, -1)).square().sum(-1)


def biased(x: Tensor, bias: Tensor) -> Tensor:
    return x + bias


def constant(x: Tensor) -> Tensor:
    return x * torch.arange(7, dtype=x.dtype)


def product(x: Tensor, y: Tensor) -> Tensor:
    return x @ y


def cell(x: Tensor, weights: Tensor, bias: Tensor, h: Tensor) -> Tensor:
    one, other, third = (torch.cat([h, x], 1) @ weights + bias).chunk(3, 1)
    return h * one.sigmoid() + other.sigmoid() * third.tanh()


def with_two_states(h: Tensor, c: Tensor, weights: Tensor) -> Tensor:
    """The formulas take a state that is wider than its cell, which no implementation does."""
    return c + (h @ weights).unflatten(1, (4, -1)).tanh().sum(1)


def of_pairs(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    return (x[:, :, None] * y[:, None, :]).flatten(1) * weight


@pytest.mark.parametrize(
    ("function", "example", "inputs", "outputs"),
    [
        (
            rotary,
            (torch.randn(2, 6, 8), torch.randn(6, 8), torch.randn(6, 8)),
            [("batch", "x_1", "2*x_2"), ("x_1", "2*x_2"), ("x_1", "2*x_2")],
            [("batch", "x_1", "2*x_2")],
        ),
        (gated, (torch.randn(6, 16),), [("batch", "2*x_1")], [("batch", "x_1")]),
        (
            of_heads,
            (torch.randn(6, 12), torch.randn(12, 12), 4),
            [("batch", "x_1"), ("x_1", "4*weight_1")],
            [("batch", "4")],
        ),
        (constant, (torch.randn(6, 7),), [("batch", "7")], [("batch", "7")]),
        # Square matrices: each length may still differ from the others.
        (product, (torch.randn(8, 8), torch.randn(8, 8)), [("batch", "x_1"), ("x_1", "y_1")], [("batch", "y_1")]),
        # Lengths that are made of others.
        (
            cell,
            (torch.randn(3, 4), torch.randn(9, 15), torch.randn(15), torch.randn(3, 5)),
            [("batch", "x_1"), ("x_1 + h_1", "3*h_1"), ("3*h_1",), ("batch", "h_1")],
            [("batch", "h_1")],
        ),
        (
            cell,
            (torch.randn(16, 32), torch.randn(160, 384), torch.randn(384), torch.randn(16, 128)),
            [("batch", "x_1"), ("x_1 + h_1", "3*h_1"), ("3*h_1",), ("batch", "h_1")],
            [("batch", "h_1")],
        ),
        (
            with_two_states,
            (torch.randn(3, 5), torch.randn(3, 5), torch.randn(5, 20)),
            [("batch", "c_1"), ("batch", "c_1"), ("c_1", "4*c_1")],
            [("batch", "c_1")],
        ),
        (  # as many rows as states
            with_two_states,
            (torch.randn(5, 5), torch.randn(5, 5), torch.randn(5, 20)),
            [("batch", "c_1"), ("batch", "c_1"), ("c_1", "4*c_1")],
            [("batch", "c_1")],
        ),
        (
            of_pairs,
            (torch.randn(2, 3), torch.randn(2, 5), torch.randn(15)),
            [("batch", "x_1"), ("batch", "y_1"), ("x_1*y_1",)],
            [("batch", "x_1*y_1")],
        ),
        # A large example is called with shorter lengths.
        (product, (torch.randn(96, 64), torch.randn(64, 512)), [("batch", "x_1"), ("x_1", "y_1")], [("batch", "y_1")]),
        # A length of 1 that broadcasts stays.
        (biased, (torch.randn(6, 8), torch.randn(6, 1)), [("batch", "x_1"), ("batch", "1")], [("batch", "x_1")]),
    ],
)
def test_lengths(function: Callable[..., Any], example: Any, inputs: Any, outputs: Any) -> None:
    found = derive_from(function, example).operator
    assert [arg.shape for arg in found.inputs] == inputs
    assert [arg.shape for arg in found.outputs] == outputs


def test_numbers_are_not_taken_for_lengths_made_of_others() -> None:
    """7 and 14 are a multiple by chance: the reference takes no others."""

    def tables(x: Tensor, y: Tensor) -> Tensor:
        return x * torch.arange(7, dtype=x.dtype) + (y * torch.arange(14, dtype=y.dtype)).sum(-1, keepdim=True)

    found = derive_from(tables, (torch.randn(6, 7), torch.randn(6, 14))).operator
    assert [arg.shape for arg in found.inputs] == [("batch", "7"), ("batch", "14")]


def test_a_large_example_is_called_with_few_elements() -> None:
    called: list[int] = []

    def counted(x: Tensor) -> Tensor:
        called.append(x.numel())
        return x * 2

    derive_from(counted, (torch.randn(4096, 256),))
    assert sum(count > 2**16 for count in called) < 10, "which lengths may differ is asked with shorter ones"


def test_a_reference_of_even_lengths_is_judged_at_even_ones_alone() -> None:
    """Properties choose sizes of their own: the symbol counts halves, so that each size has a meaning."""
    found = derive_from(gated, (torch.randn(6, 16),))
    assert "a length is 2*x_1: the reference refuses 1" in found.found
    lengths: set[int] = set()

    def right(x: Tensor) -> Tensor:
        lengths.add(x.shape[-1])
        half = x.shape[-1] // 2
        # In float64: torch's erf in float32 is off by more than its roundings on a processor with AVX512.
        return (F.gelu(x[..., :half].double()) * x[..., half:]).to(x.dtype)

    subject = Subject(found.operator, "it", "cpu", torch.float32, right)
    for property in ("sizes", "combinations", "drawn-calls", "harvested-sizes"):
        assert judge(subject, all_properties()[property]).verdict in (PASS, NO_EVIDENCE, NOT_RUN)
    assert len(lengths) > 10
    assert all(length % 2 == 0 for length in lengths)


def test_lengths_of_no_multiple_are_refused() -> None:
    def powers(x: Tensor) -> Tensor:
        if x.shape[-1] & (x.shape[-1] - 1):
            raise ValueError("no power of two")
        return x * 2

    powers.__annotations__["x"] = type("_", (), {"dim_str": "batch width", "dtypes": ["float32"]})
    said = "took width=4 and other powers of 2 and refused width=3, but should take every length.*for each length"
    with pytest.raises(UsageError, match=said):
        derive_from(powers)


def test_powers_of_2_are_refused_as_such_by_an_example_too() -> None:
    """Three times a power of 2 is none: it must not look like lengths that belong together."""

    def transformed(x: Tensor) -> Tensor:
        signs = torch.ones(1, 1, dtype=x.dtype)
        while len(signs) < x.shape[-1]:
            signs = torch.cat((torch.cat((signs, signs), 1), torch.cat((signs, -signs), 1)))
        return x @ signs

    with pytest.raises(UsageError, match="took x_1=4 and other powers of 2 and refused x_1=3"):
        derive_from(transformed, (torch.randn(6, 16),), "it")


def test_lengths_that_do_not_change_together_are_asked_about() -> None:
    def one_of_two(x: Tensor, y: Tensor) -> Tensor:
        if x.shape[0] != 4 and y.shape[0] != 5:
            raise ValueError("one of these should be as it is")
        return x.sum() * y.sum()

    says = "takes another length of dimension 0 of x and another of dimension 0 of y, but not both at once"
    with pytest.raises(UsageError, match=says):
        derive_from(one_of_two, (torch.randn(4), torch.randn(5)))


def test_a_length_that_is_no_simple_expression_is_asked_about() -> None:
    def every_pair(x: Tensor) -> Tensor:
        return torch.cat([x, x.repeat(x.shape[0] ** 2, 1)])

    with pytest.raises(UsageError, match="no simple expression of them: annotate what it returns"):
        derive_from(every_pair, (torch.randn(5, 3),))


def test_rows_that_may_agree_by_chance_are_no_batch() -> None:
    """Whether a row depends on the others is a matter of their values."""

    def of_largest(x: Tensor) -> Tensor:
        return x * torch.where(x.abs().amax(0, keepdim=True) > 1, 2.0, 1.0)

    assert derive_from(of_largest, (torch.randn(5, 9),)).operator.inputs[0].shape == ("x_0", "batch")
