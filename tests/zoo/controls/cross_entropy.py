"""Cross-entropy, right but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.cross_entropy import IGNORED, OPERATOR
from tests.zoo.honest.cross_entropy import Loss
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Loss):
    """The honest loss, the base of every fault."""


def _wide(logits: Tensor) -> Tensor:
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


@control
def torchs_own(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Tensor:
    """torch.nn.functional.cross_entropy, in float32 for half types, as autocast calls it."""
    check_arguments(OPERATOR, logits, labels)
    loss = F.cross_entropy(_wide(logits), labels, ignore_index=ignore_index, label_smoothing=label_smoothing)
    return loss.to(logits.dtype)


@control
def everything_in_float64(
    logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0
) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_arguments(OPERATOR, logits, labels)
    loss = F.cross_entropy(logits.double(), labels, ignore_index=ignore_index, label_smoothing=label_smoothing)
    return loss.to(logits.dtype)


@control
def log_sum_less_the_logit(
    logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0
) -> Tensor:
    """logsumexp(x) - x_k, and no log-probabilities: one number for each row, as fused kernels keep it."""
    check_arguments(OPERATOR, logits, labels)
    x, kept = _wide(logits), labels != ignore_index
    total = torch.logsumexp(x, -1)
    picked = x.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    row = (total - picked) * (1 - label_smoothing) + (total - x.mean(-1)) * label_smoothing
    return (torch.where(kept, row, torch.zeros_like(row)).sum() / kept.sum()).to(logits.dtype)


@control
def product_with_the_target(
    logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0
) -> Tensor:
    """The log-probabilities, as the dtype stores them, times the smoothed labels, added up over the classes."""
    check_arguments(OPERATOR, logits, labels)
    y = _wide(torch.log_softmax(_wide(logits), -1).to(logits.dtype))
    target = Loss().target(y, labels, label_smoothing)
    row, kept = -(target * y).sum(-1), labels != ignore_index
    return (torch.where(kept, row, torch.zeros_like(row)).sum() / kept.sum()).to(logits.dtype)


@control(gives_up=OLD_STYLE)
class Online(Loss):
    """The maximum and the sum of both halves of a row, merged by rescaling, as one pass over a row does."""

    def total(self, exponentials: Tensor) -> Tensor:
        half = exponentials.shape[-1] // 2
        return exponentials[..., half:].sum(-1, keepdim=True) + exponentials[..., :half].sum(-1, keepdim=True)

    def log_probabilities(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        if not half:
            return super().log_probabilities(x)
        left, right = (self.largest(part) for part in (x[..., :half], x[..., half:]))
        largest = torch.maximum(left, right)
        total = torch.exp(x[..., :half] - left).sum(-1, keepdim=True) * torch.exp(left - largest)
        total = total + torch.exp(x[..., half:] - right).sum(-1, keepdim=True) * torch.exp(right - largest)
        return x - (largest + torch.log(total))


@control(gives_up=OLD_STYLE)
class ByPowersOfTwo(Loss):
    """exp2 and log2 with the factor log2(e), as GPUs compute exp and log."""

    def log_probabilities(self, x: Tensor) -> Tensor:
        shifted = x - self.largest(x)
        factor = torch.tensor(1.4426950408889634, dtype=x.dtype, device=x.device)
        return shifted - torch.log2(torch.exp2(shifted * factor).sum(-1, keepdim=True)) / factor
