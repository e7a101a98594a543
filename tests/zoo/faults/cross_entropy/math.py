"""Cross-entropy, wrong losses: another mean, other labels, other smoothing, classes left out."""

from __future__ import annotations

import torch
from torch import Tensor

from spec.cross_entropy import IGNORED
from tests.zoo.honest.cross_entropy import Loss
from tests.zoo.registry import fault

WRONG = r"loss was .* but should be"


@fault("forward-parity", r"loss was .*(one-row-counts|cross_entropy\[ignore-index\])")
class MeanOverAllRows(Loss):
    """The sum of the rows that are not ignored is divided by the number of all rows."""

    def count(self, kept: Tensor) -> Tensor:
        return torch.ones_like(kept).sum()


@fault("forward-parity", WRONG)
class SumOfRows(Loss):
    """The losses of the rows are added up, not averaged."""

    def count(self, kept: Tensor) -> Tensor:
        return torch.ones_like(kept.sum())


@fault("forward-parity", r"cross_entropy\[ignore-index\]")
class IgnoresMinus100Only(Loss):
    """Whatever `ignore_index` is given, -100 is used, and -1 is taken for the first class."""

    def ignored(self, ignore_index: int) -> int:
        return IGNORED


@fault("forward-parity", r"values (large-values|far-below-0)")
class WithoutTheMaximum(Loss):
    """The exponentials are those of the logits themselves, which overflow."""

    def largest(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x[..., :1])


@fault("forward-parity", r"values (large-values|masked-classes|far-below-0)")
class MaximumOfTheAbsoluteValues(Loss):
    """The largest absolute value is subtracted: where it is that of a negative logit, all exponentials are 0."""

    def largest(self, x: Tensor) -> Tensor:
        return x.abs().amax(-1, keepdim=True)


@fault("forward-parity", r"values far-below-0")
class MaximumBeginsAtZero(Loss):
    """The largest logit is looked for from 0 on: where all are far below 0, all exponentials are 0."""

    def largest(self, x: Tensor) -> Tensor:
        return super().largest(x).clamp(min=0)


@fault("forward-parity", r"cross_entropy\[label-smoothing\]")
class SmoothsOverTheOtherClasses(Loss):
    """The smoothing is spread over the classes that are not the label, C - 1 of them."""

    def row(self, y: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        others = (y.sum(-1) - self.picked(y, labels)) / max(y.shape[-1] - 1, 1)
        return -self.picked(y, labels) * (1 - smoothing) - smoothing * others


@fault("sizes", r"classes-\d+|gpt-2")
class ForgetsTheTail(Loss):
    """The sum over more than 8 classes leaves out those behind the last full vector of 8."""

    def total(self, exponentials: Tensor) -> Tensor:
        classes = exponentials.shape[-1]
        return super().total(exponentials if classes <= 8 else exponentials[..., : classes // 8 * 8])
