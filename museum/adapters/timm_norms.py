"""timm's RMSNorm as the contract `rms_norm` calls it."""

from __future__ import annotations

from torch import Tensor

from museum.parts import part

fast_norm = part("timm.layers.fast_norm")


def rms_norm(
    input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = 1e-6
) -> Tensor | tuple[Tensor, Tensor]:
    """timm has no residual: it is added here."""
    total = input if residual is None else input + residual
    output = fast_norm.rms_norm(total, list(total.shape[-1:]), weight, eps)
    return output if residual is None else (output, total)
