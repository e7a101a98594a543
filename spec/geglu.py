r"""GEGLU: geglu(gate, up) -> gelu(gate) * up, elementwise, for two tensors of one shape and any rank.

gelu is the one approximated by tanh. With k = sqrt(2/pi), c = 0.044715 and t = tanh(k (gate + c gate^3)):

    activated = gate (1 + t) / 2
    output    = activated up

The vector-Jacobian product. Let g be the cotangent of output; dt/dgate = (1 - t^2) k (1 + 3 c gate^2), so

    d_gate = g up ((1 + t) / 2 + gate (1 - t^2) k (1 + 3 c gate^2) / 2)
    d_up   = g activated

Precision. t may be computed as 1 - 2 / (1 + exp(2 k (gate + c gate^3))). For float16 and bfloat16, activated and the
slope are computed in float32. activated and g up may be rounded to the dtype; d_gate is rounded once, after its last
product.

Source: N. Shazeer, "GLU Variants Improve Transformer" (2020); D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units"
(2016) for the approximation. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spec.formulas import either
from spec.gated import contract, formulas
from spec.rowwise import case

_K, _C = math.sqrt(2 / math.pi), 0.044715


def _tanh(gate: Tensor) -> Tensor:
    inner = _K * (gate + _C * gate * gate * gate)
    return either(lambda: torch.tanh(inner), lambda: 1 - 2 / (1 + torch.exp(2 * inner)))


def activated(gate: Tensor) -> Tensor:
    """gelu(gate), approximated by tanh."""
    return 0.5 * gate * (1 + _tanh(gate))


def slope(gate: Tensor) -> Tensor:
    """Its derivative."""
    t = _tanh(gate)
    return 0.5 * (1 + t) + 0.5 * gate * ((1 - t * t) * (_K * (1 + 3 * _C * gate * gate)))


OPERATOR = contract(
    formulas("geglu", activated, slope),
    turning=-0.7517915,
    models=(
        case("gemma-2b", {"batch": 4, "features": 16384}, "gemma-2b/config.json: intermediate_size", "size", "model"),
        case("gemma-7b", {"batch": 4, "features": 24576}, "gemma-7b/config.json: intermediate_size", "size", "model"),
        case("large", {"batch": 8192, "features": 16384}, "the longest prompt of Gemma 2B", "benchmark", "model"),
    ),
    saved=("square", "cube", "inner", "tanh", "half", "activated"),
)
