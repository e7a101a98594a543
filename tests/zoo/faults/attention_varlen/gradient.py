"""Attention over a packed batch with wrong gradients, and one that remembers what it should not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.zoo.honest.attention_varlen import Varlen
from tests.zoo.registry import fault


class _Masked(torch.autograd.Function):
    """The identity; its gradient is 0 for the tokens that are not kept."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, kept: Tensor) -> Tensor:
        ctx.save_for_backward(kept)
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return torch.where(kept[:, None, None], g, torch.zeros_like(g)), None


@fault("vjp-parity", r"gradient of (key|value) was")
class DropsTheLastSequenceInBackward(Varlen):
    """The gradients of key and value are 0 in the last sequence."""

    def in_backward(self, tensor: Tensor, offsets: Tensor) -> Tensor:
        place = torch.arange(len(tensor), device=tensor.device)
        kept: Tensor = _Masked.apply(tensor, place < offsets[-2])
        return kept


@fault("vjp-parity", r"gradient of (key|value) was")
class StopsAtAnEmptySequenceInBackward(Varlen):
    """The gradients of key and value are 0 behind an empty sequence."""

    def in_backward(self, tensor: Tensor, offsets: Tensor) -> Tensor:
        place, ends = torch.arange(len(tensor), device=tensor.device), offsets[1:]
        empty = torch.where(offsets[:-1] == ends, ends, torch.full_like(ends, len(tensor)))
        kept: Tensor = _Masked.apply(tensor, place < empty.amin())
        return kept


@fault("vjp-parity", r"gradient of (query|key) was")
class NothingIsSubtractedInBackward(Varlen):
    """d_scores is weights times d_weights, without the sum over the tokens."""

    def d_scores(self, weights: Tensor, d_weights: Tensor) -> Tensor:
        return weights * d_weights


@fault("vjp-parity", r"gradient of (query|key) was")
class MeanOfAllQueries(Varlen):
    """What d_scores subtracts for a query is the mean of all of them, over the sequences."""

    def d_scores(self, weights: Tensor, d_weights: Tensor) -> Tensor:
        own = (weights * d_weights).sum(-1, keepdim=True)
        return weights * (d_weights - own.mean(-2, keepdim=True))


@fault("vjp-parity", r"gradient of (key|value) was .*grouped")
class FirstOfTheGroup(Varlen):
    """The gradients of key and value are those of the first query head that shares them, not the sum."""

    def over_groups(self, gradient: Tensor, shared: Tensor) -> Tensor:
        return self.by_group(gradient, shared)[:, :, 0]


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(Varlen):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangent(self, g: Tensor) -> Tensor:
        if g.is_contiguous():
            return g
        storage = g.as_strided((g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
        return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)


@fault("no-special-treatment", r"output was|gradient of")
class RemembersTheOffsets(Varlen):
    """The offsets of a shape are kept from its first call, as where a mask is made once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Tensor] = {}

    def sequence_of(self, offsets: Tensor, tokens: int) -> Tensor:
        key = (len(offsets), tokens)
        if key not in self._known:
            self._known[key] = super().sequence_of(offsets, tokens)
        return self._known[key]
