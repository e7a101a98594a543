"""Cross entropy: torch operations under torch.compile, which fuses them into passes over the rows."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_cross_entropy_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.cross_entropy import OPERATOR


def _forward(logits: Tensor, labels: Tensor, ignore_index: int, label_smoothing: float) -> Tensor:
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    shifted = x - x.amax(-1, keepdim=True)
    log_p = shifted - shifted.exp().sum(-1, keepdim=True).log()
    counts = labels != ignore_index
    row = -(1 - label_smoothing) * log_p.gather(-1, torch.where(counts, labels, 0).unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        row = row - label_smoothing * log_p.mean(-1)
    return (torch.where(counts, row, 0.0).sum() / counts.sum()).to(logits.dtype)


@by_rule(OPERATOR)
def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """The mean cross entropy over the rows whose label is not ignore_index; without a dimension."""
    check_cross_entropy_arguments(logits, labels)
    loss: Tensor = compiled(_forward)(logits, labels, ignore_index, label_smoothing)
    return loss


IMPLEMENTATION = PythonFunction(cross_entropy)
