"""Cross-entropy as quack.cross_entropy: a loss in float32, rounded to the dtype of the logits."""

from __future__ import annotations

from torch import Tensor

from backends._python.unsupported import refused
from backends.base import PythonFunction, check_arguments
from backends.quack import _package
from spec.cross_entropy import IGNORED, OPERATOR


def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Tensor:
    """The loss, without dimensions: the mean over the rows whose label is not `ignore_index`."""
    check_arguments(OPERATOR, logits, labels)
    if label_smoothing:
        raise refused("cross_entropy", "label_smoothing", label_smoothing, "0.0", "quack-kernels")
    loss: Tensor = _package.cross_entropy(logits, labels, ignore_index=ignore_index)
    return loss.to(logits.dtype)


IMPLEMENTATION = PythonFunction(cross_entropy)
