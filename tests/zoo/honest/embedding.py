"""Embedding written out in steps, each a method: right as it stands, and wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends._python.embedding import check_embedding_arguments


class Table:
    """The honest embedding: every step as `spec/embedding.py` states it, half types added up in float32."""

    def __call__(self, weight: Tensor, indices: Tensor) -> Tensor:
        check_embedding_arguments(weight, indices)
        return _Function.apply(self, weight, self.places(indices))

    # forward

    def places(self, indices: Tensor) -> Tensor:
        return indices

    def rows(self, weight: Tensor, indices: Tensor) -> Tensor:
        return weight.index_select(0, indices.reshape(-1)).view(*indices.shape, weight.shape[1])

    # backward

    def wide(self, g: Tensor) -> Tensor:
        return g.to(torch.promote_types(g.dtype, torch.float32))

    def empty(self, weight: Tensor, g: Tensor) -> Tensor:
        return torch.zeros(weight.shape, dtype=g.dtype, device=g.device)

    def added(self, gradient: Tensor, indices: Tensor, g: Tensor) -> Tensor:
        return gradient.index_add(0, indices, g)

    def store(self, gradient: Tensor, weight: Tensor) -> Tensor:
        return gradient.to(weight.dtype)


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a table. Backward has a graph."""

    @staticmethod
    def forward(ctx: Any, table: Table, weight: Tensor, indices: Tensor) -> Tensor:
        ctx.table = table
        ctx.save_for_backward(weight, indices)
        return table.rows(weight, indices)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        table: Table = ctx.table
        weight, indices = ctx.saved_tensors
        flat, rows = indices.flatten(), table.wide(g).reshape(indices.numel(), weight.shape[1])
        gradient = table.added(table.empty(weight, rows), flat, rows)
        return None, table.store(gradient, weight), None
