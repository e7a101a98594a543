"""Cross-entropy written out in steps, each a method: right as it stands, and wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends.base import check_arguments
from spec.cross_entropy import IGNORED, OPERATOR


class Loss:
    """The honest loss: every step as `spec/cross_entropy.py` states it, half types in float32."""

    def __call__(
        self, logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0
    ) -> Tensor:
        check_arguments(OPERATOR, logits, labels)
        return _Function.apply(self, logits, labels, self.ignored(ignore_index), label_smoothing)

    def ignored(self, ignore_index: int) -> int:
        return ignore_index

    # forward

    def wide(self, logits: Tensor) -> Tensor:
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def largest(self, x: Tensor) -> Tensor:
        return x.amax(-1, keepdim=True)

    def total(self, exponentials: Tensor) -> Tensor:
        return exponentials.sum(-1, keepdim=True)

    def log_probabilities(self, x: Tensor) -> Tensor:
        shifted = x - self.largest(x)
        return shifted - torch.log(self.total(torch.exp(shifted)))

    def picked(self, y: Tensor, labels: Tensor) -> Tensor:
        return y.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)

    def row(self, y: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        return -self.picked(y, labels) * (1 - smoothing) - smoothing * y.mean(-1)

    def count(self, kept: Tensor) -> Tensor:
        return kept.sum()

    def mean(self, row: Tensor, kept: Tensor) -> Tensor:
        return torch.where(kept, row, torch.zeros_like(row)).sum() / self.count(kept)

    # backward

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def target(self, y: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        classes = torch.arange(y.shape[-1], device=y.device)
        even = torch.full_like(y, smoothing / len(classes))
        return torch.where(labels.unsqueeze(-1) == classes, even + 1 - smoothing, even)

    def d_logits(self, y: Tensor, target: Tensor, g: Tensor, kept: Tensor) -> Tensor:
        gradient = (torch.exp(y) - target) * (g / self.count(kept))
        return self.masked(gradient, kept)

    def masked(self, gradient: Tensor, kept: Tensor) -> Tensor:
        return torch.where(kept.unsqueeze(-1), gradient, torch.zeros_like(gradient))

    def store(self, gradient: Tensor, logits: Tensor) -> Tensor:
        return gradient.to(logits.dtype)


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a loss. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(ctx: Any, loss: Loss, logits: Tensor, labels: Tensor, ignored: int, smoothing: float) -> Tensor:
        ctx.loss, ctx.ignored, ctx.smoothing = loss, ignored, smoothing
        ctx.save_for_backward(logits, labels)
        row = loss.row(loss.log_probabilities(loss.wide(logits)), labels, smoothing)
        return loss.mean(row, labels != ignored).to(logits.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        loss: Loss = ctx.loss
        logits, labels = ctx.saved_tensors
        y = loss.log_probabilities(loss.wide(logits))
        target = loss.target(y, labels, ctx.smoothing)
        gradient = loss.d_logits(y, target, loss.cotangent(g).to(y.dtype), labels != ctx.ignored)
        return None, loss.store(gradient, logits), None, None, None
