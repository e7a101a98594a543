"""Cross-entropy as flag_gems.cross_entropy_loss."""

from __future__ import annotations

from torch import Tensor

from backends.base import PythonFunction, check_arguments
from backends.flag_gems import _package
from spec.cross_entropy import IGNORED, OPERATOR


def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Tensor:
    """The loss, without dimensions: the mean over the rows whose label is not `ignore_index`."""
    check_arguments(OPERATOR, logits, labels)
    loss: Tensor = _package.flag_gems.cross_entropy_loss(
        logits, labels, ignore_index=ignore_index, label_smoothing=label_smoothing
    )
    return loss


IMPLEMENTATION = PythonFunction(cross_entropy)
