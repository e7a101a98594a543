"""Cross entropy as F.cross_entropy."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends._python.rows import check_cross_entropy_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.cross_entropy import OPERATOR


@by_rule(OPERATOR)
def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """The mean cross entropy over the rows whose label is not ignore_index; without a dimension."""
    check_cross_entropy_arguments(logits, labels)
    return F.cross_entropy(logits, labels, ignore_index=ignore_index, label_smoothing=label_smoothing)


IMPLEMENTATION = PythonFunction(cross_entropy)
