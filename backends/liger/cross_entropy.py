"""Cross-entropy as liger_cross_entropy, whose forward writes the gradient over the logits."""

from __future__ import annotations

from liger_kernel.transformers.functional import liger_cross_entropy
from torch import Tensor

from backends.base import PythonFunction, check_arguments
from spec.cross_entropy import IGNORED, OPERATOR


def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Tensor:
    """The loss, without dimensions: the mean over the rows whose label is not `ignore_index`."""
    check_arguments(OPERATOR, logits, labels)
    loss: Tensor = liger_cross_entropy(logits, labels, ignore_index=ignore_index, label_smoothing=label_smoothing)
    return loss


IMPLEMENTATION = PythonFunction(cross_entropy)
