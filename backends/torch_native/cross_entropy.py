"""Cross-entropy as F.cross_entropy, which is a log_softmax and a negative log-likelihood."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from spec.cross_entropy import IGNORED, OPERATOR


@by_rule(OPERATOR)
def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Tensor:
    """The loss, without dimensions: the mean over the rows whose label is not `ignore_index`."""
    check_arguments(OPERATOR, logits, labels)
    return F.cross_entropy(logits, labels, ignore_index=ignore_index, label_smoothing=label_smoothing)


IMPLEMENTATION = PythonFunction(cross_entropy)
