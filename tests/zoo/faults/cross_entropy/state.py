"""Cross-entropy that changes what it is given, or reads it as it is not laid out."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.zoo.honest.cross_entropy import Loss
from tests.zoo.registry import fault


@fault("no-side-effects", r"changed \d+ elements of logits in place")
class GradientInTheMemoryOfTheLogits(Loss):
    """The gradient is written over the logits, which saves memory and destroys them."""

    def store(self, gradient: Tensor, logits: Tensor) -> Tensor:
        with torch.no_grad():
            logits.data.copy_(gradient)
        return super().store(gradient, logits)


@fault("no-side-effects", r"forward under no_grad changed \d+ elements of logits in place")
class MaximumSubtractedInPlace(Loss):
    """The maximum is subtracted from the logits in place: the loss is the same, the logits are not."""

    def wide(self, logits: Tensor) -> Tensor:
        with torch.no_grad():
            logits.data.sub_(logits.data.amax(-1, keepdim=True))
        return super().wide(logits)


@fault("no-side-effects", r"changed \d+ elements of labels in place")
class LabelsClampedInPlace(Loss):
    """Labels that are ignored are set to 0 in place before they are used as an index."""

    def picked(self, y: Tensor, labels: Tensor) -> Tensor:
        picked = super().picked(y, labels)
        labels.data.copy_((labels + 1) % y.shape[-1])
        return picked


@fault("layouts", r"labels (strided|offset|padded|expanded)")
class LabelsReadAsContiguous(Loss):
    """The labels are read one after another, wherever they lie."""

    def __call__(self, logits: Tensor, labels: Tensor, *rest: Any, **named: Any) -> Tensor:
        is_usual = isinstance(labels, Tensor) and labels.layout == torch.strided and labels.dim() == 1
        readable = is_usual and labels.device.type == "cpu" and labels.numel() > 0
        flat = labels.as_strided(labels.shape, (1,)) if readable else labels
        return super().__call__(logits, flat, *rest, **named)
