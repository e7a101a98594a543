"""Softmax, wrong values and gradients, side effects, and wrong calls that are accepted."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.rows import Softmax
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", r"values (shifted|wide-spread|non-finite)")
class NothingIsSubtracted(Softmax):
    """The exponentials overflow, because the largest element is not subtracted."""

    def largest(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x[..., :1])


@fault("forward-parity", r"values shifted")
class LargestOfTheFirstRow(Softmax):
    """The largest element of the first row is subtracted from all rows: their sums underflow or overflow."""

    def largest(self, x: Tensor) -> Tensor:
        own = super().largest(x)
        return own[:1].expand_as(own) if x.dim() > 1 and x.shape[0] else own


@fault("forward-parity", WRONG)
class SumOverTheBatch(Softmax):
    """The sum is taken over the first dimension, not over the last one."""

    def total(self, exponentials: Tensor) -> Tensor:
        return exponentials.sum(0, keepdim=True)


@fault("sizes", r"output was", dtype=torch.bfloat16)
class SumInBfloat16(Softmax):
    """The sum of a row is kept in bfloat16 from one block of 16 elements to the next."""

    def total(self, exponentials: Tensor) -> Tensor:
        total = torch.zeros_like(exponentials[..., :1])
        for block in exponentials.split(16, -1):
            total = (total + super().total(block)).to(torch.bfloat16).to(exponentials.dtype)
        return total


@fault("forward-parity", r"output was", dtype=torch.float64)
class SingleInside(Softmax):
    """float64 goes through float32."""

    def wide(self, input: Tensor) -> Tensor:
        return input.to(torch.float32).to(torch.promote_types(input.dtype, torch.float32))


@fault("sizes", r"features-\d+|llama")
class ForgetsTheTail(Softmax):
    """The sum over more than 8 elements leaves out those behind the last full vector of 8."""

    def total(self, exponentials: Tensor) -> Tensor:
        count = exponentials.shape[-1]
        return super().total(exponentials[..., : count // 8 * 8] if count > 8 else exponentials)


@fault("sizes", r"llama|features-\d+")
class AtMost1024Columns(Softmax):
    """Columns from 1024 on are not in the sum: one block a row, and no loop over blocks."""

    def total(self, exponentials: Tensor) -> Tensor:
        return super().total(exponentials[..., :1024])


@fault("vjp-parity", r"gradient of input was")
class DiagonalAlone(Softmax):
    """The gradient has the diagonal of the Jacobian only: y (1 - y) g."""

    def d_input(self, output: Tensor, g: Tensor) -> Tensor:
        return output * (1 - output) * g


@fault("vjp-parity", r"gradient of input was")
class MeanInPlaceOfTheSum(Softmax):
    """The gradient subtracts the mean of g y, not its sum."""

    def d_input(self, output: Tensor, g: Tensor) -> Tensor:
        return output * (g - (g * output).mean(-1, keepdim=True))


@fault("combinations", r"gradient of input was[^$]*tokens=1,")
class SqueezesASingleToken(Softmax):
    """As entmax 1.0: the sum of a row loses its dimension of 1 and meets all rows."""

    def d_input(self, output: Tensor, g: Tensor) -> Tensor:
        if output.dim() != 3 or output.shape[1] != 1:
            return super().d_input(output, g)
        sums = (g * output).sum(-1).squeeze()
        return (output * (g - sums[..., None])).sum(1, keepdim=True)


@fault("no-side-effects", r"changed .* of input in place|is the same|shares")
class WritesOverTheInput(Softmax):
    """The result is written over the input."""

    def finish(self, output: Tensor, input: Tensor) -> Tensor:
        return input.copy_(output).clone()


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(Softmax):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangent(self, g: Tensor) -> Tensor:
        if g.is_contiguous():
            return g
        storage = torch.as_strided(g, (g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
        return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)


@fault("no-special-treatment", r"output was")
class RemembersTheSum(Softmax):
    """The sum of a shape is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Tensor] = {}

    def total(self, exponentials: Tensor) -> Tensor:
        key = (tuple(exponentials.shape), exponentials.dtype)
        if key not in self._known:
            self._known[key] = super().total(exponentials).detach()
        return self._known[key]
