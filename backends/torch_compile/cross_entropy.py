"""Cross-entropy: torch operations under torch.compile. Half types in float32, rounded once, at the end."""

from __future__ import annotations

import torch
from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from backends.torch_compile._compiled import compiled
from spec.cross_entropy import IGNORED, OPERATOR


def _forward(logits: Tensor, labels: Tensor, ignore_index: int, label_smoothing: float) -> Tensor:
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    shifted = x - x.detach().amax(-1, keepdim=True)
    y = shifted - torch.log(torch.exp(shifted).sum(-1, keepdim=True))
    row = -y.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        row = row * (1 - label_smoothing) - y.mean(-1) * label_smoothing
    kept = labels != ignore_index
    return (torch.where(kept, row, torch.zeros_like(row)).sum() / kept.sum()).to(logits.dtype)


@by_rule(OPERATOR)
def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Tensor:
    """The loss, without dimensions: the mean over the rows whose label is not `ignore_index`."""
    check_arguments(OPERATOR, logits, labels)
    loss: Tensor = compiled(_forward)(logits, labels, ignore_index, label_smoothing)
    return loss


IMPLEMENTATION = PythonFunction(cross_entropy)
