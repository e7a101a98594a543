"""Liger-Kernel's losses, each with its default reduction."""

from __future__ import annotations

import torch
from torch import Tensor

from museum.interpreter import complete
from museum.parts import part

complete()


def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """The mean over the labels that are not ignored."""
    function = part("liger_kernel.ops.cross_entropy").LigerCrossEntropyFunction
    return function.apply(logits, labels, None, ignore_index, 0.0, label_smoothing)[0]


def kl_div(log_q: Tensor, labels: Tensor) -> Tensor:
    """The targets are 1 for the label."""
    return _kl_div(log_q, labels, 1.0)


def smoothed_kl_div(log_q: Tensor, labels: Tensor) -> Tensor:
    """The targets are 3/4 for the label, and the rest is shared."""
    return _kl_div(log_q, labels, 0.75)


def total_variation(q: Tensor, labels: Tensor) -> Tensor:
    """The targets are 1 for the label."""
    return part("liger_kernel.ops.tvd").LigerTVDLossFunction.apply(q, _target(q, labels, 1.0))


def _kl_div(log_q: Tensor, labels: Tensor, sure: float) -> Tensor:
    return part("liger_kernel.ops.kl_div").LigerKLDivLossFunction.apply(log_q, _target(log_q, labels, sure))


def _target(like: Tensor, labels: Tensor, sure: float) -> Tensor:
    """The distribution of a label. Liger gives it no gradient, so it is no argument."""
    classes = torch.arange(like.shape[-1], device=like.device)
    return sure * (labels[:, None] == classes).to(like.dtype) + (1 - sure) / like.shape[-1]
