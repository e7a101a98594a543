"""Liger-Kernel's losses, each with its default reduction."""

from __future__ import annotations

from torch import Tensor

from museum.interpreter import complete
from museum.parts import part

complete()


def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """The mean over the labels that are not ignored."""
    function = part("liger_kernel.ops.cross_entropy").LigerCrossEntropyFunction
    return function.apply(logits, labels, None, ignore_index, 0.0, label_smoothing)[0]


def kl_div(log_q: Tensor, p: Tensor) -> Tensor:
    """The sum over a row, and the mean over the rows."""
    return part("liger_kernel.ops.kl_div").LigerKLDivLossFunction.apply(log_q, p)


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """The sum over a row, and the mean over the rows. q gets no gradient."""
    return part("liger_kernel.ops.tvd").LigerTVDLossFunction.apply(p, q)
