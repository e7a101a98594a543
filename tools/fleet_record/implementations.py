"""Right functions of shipped operators in plain torch, as somebody from outside would write them: sources of mutants.

This file is the text of each candidate, so it imports nothing of this project.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def softmax(input: Tensor) -> Tensor:
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return (powers / powers.sum(-1, keepdim=True)).to(input.dtype)


def log_softmax(input: Tensor) -> Tensor:
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    shifted = x - x.amax(-1, keepdim=True)
    return (shifted - torch.log(torch.exp(shifted).sum(-1, keepdim=True))).to(input.dtype)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    x = gate.to(torch.promote_types(gate.dtype, torch.float32))
    return (x * torch.sigmoid(x) * up).to(gate.dtype)


def rms_norm(
    input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = 1e-6
) -> Tensor | tuple[Tensor, Tensor]:
    total = input if residual is None else input + residual
    x = total.to(torch.promote_types(total.dtype, torch.float32))
    output = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
    if weight is not None:
        output = output * weight
    output = output.to(input.dtype)
    return output if residual is None else (output, total)


def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    shifted = x - x.amax(-1, keepdim=True)
    y = shifted - torch.log(torch.exp(shifted).sum(-1, keepdim=True))
    row = -y.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    row = row * (1 - label_smoothing) - y.mean(-1) * label_smoothing
    kept = labels != ignore_index
    return (torch.where(kept, row, torch.zeros_like(row)).sum() / kept.sum()).to(logits.dtype)


def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    gates = F.linear(torch.cat([old_h, input], dim=1), weights, bias)
    input_gate, output_gate, candidate = gates.chunk(3, dim=1)
    new_cell = old_cell + F.elu(candidate) * torch.sigmoid(input_gate)
    new_h = torch.tanh(new_cell) * torch.sigmoid(output_gate)
    return new_h, new_cell
