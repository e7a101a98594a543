"""Cross-entropy as fla.modules.fused_cross_entropy.cross_entropy_loss: a loss for each row, in float32.

The mean over the rows is the one of the package's FusedCrossEntropyLoss.
"""

from __future__ import annotations

from torch import Tensor

from backends.base import PythonFunction, check_arguments
from backends.fla import _package
from spec.cross_entropy import IGNORED, OPERATOR


def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Tensor:
    """The loss, without dimensions: the mean over the rows whose label is not `ignore_index`."""
    check_arguments(OPERATOR, logits, labels)
    rows: Tensor = _package.cross_entropy_loss(
        logits, labels, label_smoothing=label_smoothing, ignore_index=ignore_index
    )[0]
    return (rows.sum() / (labels != ignore_index).sum()).to(logits.dtype)


IMPLEMENTATION = PythonFunction(cross_entropy)
