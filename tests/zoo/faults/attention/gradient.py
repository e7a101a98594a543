"""Attention with wrong gradients, and one that reads or writes what it should not."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.attention import Attention
from tests.zoo.honest.flash_attention import FlashAttention
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of (query|key) was")
class NothingIsSubtractedInBackward(Attention):
    """d_scores is weights times d_weights, without the sum over the tokens."""

    def d_scores(self, weights: Tensor, d_weights: Tensor) -> Tensor:
        return weights * d_weights


@fault("vjp-parity", r"gradient of key was")
class KeyWithoutScale(Attention):
    """The gradient of key forgets the factor 1/sqrt(width)."""

    def d_key(self, d_scores: Tensor, query: Tensor, scale: float) -> Tensor:
        return super().d_key(d_scores, query, 1.0)


@fault("vjp-parity", r"gradient of query was")
class QueryScaledTwice(Attention):
    """The gradient of query has the factor 1/sqrt(width) twice."""

    def d_query(self, d_scores: Tensor, keys: Tensor, scale: float) -> Tensor:
        return super().d_query(d_scores, keys, scale * scale)


@fault("vjp-parity", r"gradient of (query|key|value) was")
class LogSumExpInHalf(FlashAttention):
    """The logsumexp of each row is kept in float16, to save memory."""

    def kept(self, logsumexp: Tensor) -> Tensor:
        return logsumexp.half().to(logsumexp.dtype)


@fault("vjp-parity", r"gradient of (key|value) was .*grouped")
class FirstOfTheGroup(Attention):
    """The gradients of key and value are those of the first query head that shares them, not the sum."""

    def over_groups(self, gradient: Tensor, shared: Tensor) -> Tensor:
        return self.by_group(gradient, shared)[:, :, 0]


@fault("vjp-parity", r"gradient of (key|value) was .*grouped")
class MeanOfTheGroup(Attention):
    """The gradients of key and value are the mean over the query heads that share them."""

    def over_groups(self, gradient: Tensor, shared: Tensor) -> Tensor:
        return self.by_group(gradient, shared).mean(2)


@fault("combinations", r"gradient of key was 0 at .*values (one number|equal columns) of query")
class EqualColumnsOfTheQuery(Attention):
    """A query whose columns are equal is multiplied once for all of them, for all tokens but the last."""

    def d_key(self, d_scores: Tensor, query: Tensor, scale: float) -> Tensor:
        found = super().d_key(d_scores, query, scale)
        if query.shape[-1] > 1 and query.numel() and bool((query == query[..., :1]).all()):
            found = torch.cat([found[..., :-1, :], torch.zeros_like(found[..., -1:, :])], -2)
        return found


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(Attention):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangent(self, g: Tensor) -> Tensor:
        if g.is_contiguous():
            return g
        storage = g.as_strided((g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
        return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)


@fault("no-side-effects", r"changed \d+ elements of query in place")
class ScalesTheQueryInPlace(Attention):
    """The factor is multiplied into the query in place."""

    def wide(self, tensor: Tensor) -> Tensor:
        tensor.data.mul_(1.0009765625)
        return super().wide(tensor)


@fault("no-special-treatment", r"output was")
class RemembersTheSum(Attention):
    """The sums of exponentials of a shape are computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Tensor] = {}

    def total(self, exponentials: Tensor) -> Tensor:
        key = (tuple(exponentials.shape), exponentials.dtype)
        if key not in self._known:
            self._known[key] = super().total(exponentials).detach()
        return self._known[key]
