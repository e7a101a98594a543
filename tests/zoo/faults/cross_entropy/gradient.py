"""Cross-entropy, right losses with a wrong gradient of the logits."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.cross_entropy import Loss
from tests.zoo.registry import fault

WRONG = r"gradient of logits was .* but should be"


@fault("vjp-parity", WRONG)
class NotDividedByTheRows(Loss):
    """The gradient is that of the sum of the rows, not of their mean."""

    def d_logits(self, y: Tensor, target: Tensor, g: Tensor, kept: Tensor) -> Tensor:
        return super().d_logits(y, target, g * self.count(kept), kept)


@fault("vjp-parity", WRONG)
class CotangentTakenForOne(Loss):
    """The gradient is computed as if the loss were the last operation: its cotangent is not looked at."""

    def cotangent(self, g: Tensor) -> Tensor:
        return torch.ones_like(g)


@fault("vjp-parity", r"one-row-counts|cross_entropy\[ignore-index\]")
class IgnoredRowsHaveGradients(Loss):
    """Rows that the loss ignores get the gradient of their softmax."""

    def masked(self, gradient: Tensor, kept: Tensor) -> Tensor:
        return gradient


@fault("vjp-parity", r"cross_entropy\[label-smoothing\]")
class GradientWithoutSmoothing(Loss):
    """The gradient is that of the label itself, although the loss is smoothed."""

    def target(self, y: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        return super().target(y, labels, 0.0)


@fault("vjp-parity", WRONG)
class GradientOfTheLabelAlone(Loss):
    """Only the label's logit gets a gradient, as if the sum of exponentials were a constant."""

    def d_logits(self, y: Tensor, target: Tensor, g: Tensor, kept: Tensor) -> Tensor:
        return torch.where(target > 0.5, super().d_logits(y, target, g, kept), torch.zeros_like(y))


@fault("combinations", r"gradient of logits was .*ignore-index.*small: .*cotangent of loss scaled")
class CotangentLimited(Loss):
    """Where a row is ignored, a cotangent beyond 700 is limited to it."""

    def d_logits(self, y: Tensor, target: Tensor, g: Tensor, kept: Tensor) -> Tensor:
        return super().d_logits(y, target, g if bool(kept.all()) else g.clamp(max=700.0), kept)
