"""Embedding, right rows with a wrong gradient of the table."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.embedding import Table
from tests.zoo.registry import fault

WRONG = r"gradient of weight was .* but should be"


@fault("vjp-parity", WRONG)
class RepeatedEntriesOverwrite(Table):
    """Of several places with one index the last one alone counts: no atomic addition."""

    def added(self, gradient: Tensor, indices: Tensor, g: Tensor) -> Tensor:
        return gradient.index_copy(0, indices, g)


@fault("vjp-parity", WRONG)
class DividedByTheirNumber(Table):
    """The gradient of an entry is the mean over its places, as with scale_grad_by_freq."""

    def added(self, gradient: Tensor, indices: Tensor, g: Tensor) -> Tensor:
        number = torch.zeros_like(gradient[:, :1]).index_add(0, indices, torch.ones_like(g[:, :1]))
        return super().added(gradient, indices, g) / number.clamp(min=1)


@fault("vjp-parity", WRONG)
class FirstEntryIsPadding(Table):
    """Entry 0 has no gradient, as if it were the padding."""

    def added(self, gradient: Tensor, indices: Tensor, g: Tensor) -> Tensor:
        return super().added(gradient, indices, torch.where(indices.unsqueeze(-1) == 0, torch.zeros_like(g), g))


@fault("sizes", r"(frequent|batch-70000)", dtype=torch.bfloat16)
class AddedUpInHalf(Table):
    """Terms of an entry are added up in bfloat16, one after another: the sum stops growing."""

    def added(self, gradient: Tensor, indices: Tensor, g: Tensor) -> Tensor:
        made = gradient.to(torch.bfloat16).index_put((indices,), g.to(torch.bfloat16), accumulate=True)
        return made.to(g.dtype)


@fault("uninitialised-memory", WRONG)
class UnusedEntriesNotCleared(Table):
    """The gradient of entries that no index names is memory that nobody wrote."""

    def added(self, gradient: Tensor, indices: Tensor, g: Tensor) -> Tensor:
        used = torch.zeros_like(gradient[:, 0], dtype=torch.bool)
        used[indices] = True
        return torch.where(used.unsqueeze(-1), super().added(gradient, indices, g), torch.empty_like(gradient))
