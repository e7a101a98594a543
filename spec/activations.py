"""Activations and their slopes, which contracts share: they are computed in float32 for half types."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from spec.contract import Refusal
from spec.formulas import either

#: Their names, each with the place where the slope changes its sign.
ACTIVATIONS = {"relu": 0.0, "gelu": -0.7517915, "silu": -1.2784645427610738}


def activated(z: Tensor, activation: str) -> Tensor:
    """act(z)."""
    if activation == "relu":
        return F.relu(z)
    # Not F.gelu: on a CPU with AVX512 it is NaN at inf (docs/findings.md).
    return z * distribution(z) if activation == "gelu" else F.silu(z)


def distribution(z: Tensor) -> Tensor:
    """Phi(z), the distribution function of the normal distribution."""
    return 0.5 * (1 + torch.erf(z * math.sqrt(0.5)))


def smooth_slope(z: Tensor, activation: str) -> Tensor:
    """The derivative of gelu or silu."""
    if activation == "gelu":
        density = torch.exp(z * z * -0.5) * (1 / math.sqrt(2 * math.pi))
        return distribution(z) + z * density
    s = torch.sigmoid(z)
    return either(lambda: s * (1 + z * (1 - s)), lambda: s + z * s * (1 - s))


def through_relu(g: Tensor, z: Tensor, again: Tensor) -> Tensor:
    """The gradient of z, where g is that of relu(z): g where z > 0, 0 elsewhere, and g where z is NaN, as in PyTorch.

    relu' jumps at 0: if rounding changes the sign of z, the gradient changes by all of g. Rounding z itself keeps its
    sign. Rounding the product before the bias is added may change it; rounding parts of the product may change it more
    often. Such elements, some in a thousand in bfloat16, need an allowance as wide as the jump, but the 16 runs behind
    the allowance miss an element whose chance is small. So the sign is taken from 2 z - z', where z', `again`, is z
    evaluated once more. Both are the same number, but under `spec.rounding` 2 z - z' is up to three times as far from
    it as one rounding. The allowance of all other elements does not change.
    """
    decided = torch.where(z.isfinite(), z + (z - again), z)  # inf - inf would be NaN
    return torch.where(decided <= 0, torch.zeros_like(g), g)


def unknown_activation(wrong: str, known: str) -> Refusal:
    """A call with an activation that does not exist."""
    return Refusal(
        "an activation that does not exist",
        "activation",
        lambda function, *tensors: function(*tensors, activation=wrong),
        (wrong, known),
    )
