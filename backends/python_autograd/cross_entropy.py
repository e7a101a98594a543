"""Cross entropy in torch operations; autograd derives the gradient.

Half types are computed in float32, and rounded once, at the end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_cross_entropy_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.cross_entropy import OPERATOR


@by_rule(OPERATOR)
def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """The mean cross entropy over the rows whose label is not ignore_index; without a dimension."""
    check_cross_entropy_arguments(logits, labels)
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    shifted = x - x.amax(-1, keepdim=True)
    log_p = shifted - shifted.exp().sum(-1, keepdim=True).log()
    counts = labels != ignore_index
    row = -(1 - label_smoothing) * log_p.gather(-1, torch.where(counts, labels, 0).unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        row = row - label_smoothing * log_p.mean(-1)
    return (torch.where(counts, row, 0.0).sum() / counts.sum()).to(logits.dtype)


IMPLEMENTATION = PythonFunction(cross_entropy)
