"""Backward node by node gives what PyTorch's engine gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from harness.judging import graph_walk
from tests.zoo.honest.lltm import Cell, plain


class _Scaled(torch.autograd.Function):
    """With an argument that is no tensor, for which backward returns None."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, factor: float, other: Tensor) -> Tensor:
        ctx.factor, ctx.forgets = factor, other.requires_grad and factor == 0.0
        return tensor * factor + other

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, Tensor | None]:
        return gradient * ctx.factor, None, None if ctx.forgets else gradient


def _walked(outputs: tuple[Tensor, ...], cotangents: list[Tensor], leaves: tuple[Tensor, ...]) -> list[Tensor]:
    found = [torch.zeros_like(leaf) for leaf in leaves]

    def arrived(_: Any, following: Any, number: int, gradient: Tensor) -> None:
        for index, leaf in enumerate(leaves):
            if getattr(following, "variable", None) is leaf:
                shape = following._input_metadata[number].shape
                found[index] += gradient.sum_to_size(shape)

    graph_walk.walk(outputs, cotangents, arrived)
    return found


def _function(x: Tensor, y: Tensor, bias: Tensor) -> tuple[Tensor, ...]:
    """A tensor that is used twice, one that is broadcast, a Function, and a graph of which one output is not used."""
    shared = (x @ y + bias).tanh()
    parts = shared.chunk(2, dim=1)
    return _Scaled.apply(parts[0], 3.0, parts[1]) * shared.sum(), bias.exp()  # type: ignore[no-untyped-call]


def test_it_agrees_with_the_engine() -> None:
    torch.manual_seed(0)
    leaves = tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in [(3, 5), (5, 4), (4,)])
    outputs = _function(*leaves)
    cotangents = [torch.randn_like(output) for output in outputs]
    expected = torch.autograd.grad(outputs, leaves, cotangents, retain_graph=True)
    torch.testing.assert_close(_walked(outputs, cotangents, leaves), list(expected))


@pytest.mark.parametrize("function", [plain, Cell()], ids=["plain", "cell"])
def test_it_agrees_with_the_engine_in_an_operator(function: Any) -> None:
    torch.manual_seed(0)
    shapes = [(3, 4), (15, 9), (15,), (3, 5), (3, 5)]
    leaves = tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
    outputs = function(*leaves)
    cotangents = [torch.randn_like(output) for output in outputs]
    expected = torch.autograd.grad(outputs, leaves, cotangents, retain_graph=True)
    torch.testing.assert_close(_walked(outputs, cotangents, leaves), list(expected))


def test_gradients_that_cannot_be_told_apart_end_the_walk() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    output = _Scaled.apply(x, 0.0, y)  # type: ignore[no-untyped-call]
    with pytest.raises(graph_walk.Unfollowed, match="_ScaledBackward returns gradients that cannot be told apart"):
        _walked((output,), [torch.ones(2)], (x, y))
