r"""SwiGLU: swiglu(gate, up) -> silu(gate) * up, elementwise, for two tensors of one shape and any rank.

With s = 1 / (1 + exp(-gate)):

    activated = gate s
    output    = activated up

The vector-Jacobian product. Let g be the cotangent of output; ds/dgate = s (1 - s), so

    d_gate = g up (s + gate s (1 - s)) = g up s (1 + gate (1 - s))
    d_up   = g activated

Precision. For float16 and bfloat16, activated and the slope are computed in float32. activated and g up may be rounded
to the dtype; d_gate is rounded once, after its last product.

Source: N. Shazeer, "GLU Variants Improve Transformer" (2020). The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spec.formulas import either
from spec.gated import contract, formulas
from spec.rowwise import case


def activated(gate: Tensor) -> Tensor:
    """silu(gate)."""
    return gate * torch.sigmoid(gate)


def slope(gate: Tensor) -> Tensor:
    """Its derivative, by either of two equal formulas."""
    s = torch.sigmoid(gate)
    return either(lambda: s * (1 + gate * (1 - s)), lambda: s + gate * s * (1 - s))


OPERATOR = contract(
    formulas("swiglu", activated, slope),
    turning=-1.2784645427610738,
    models=(
        case(
            "llama-3-8b",
            {"batch": 4, "features": 14336},
            "Meta-Llama-3-8B/config.json: intermediate_size",
            "size",
            "model",
        ),
        case(
            "qwen2.5-7b", {"batch": 4, "features": 18944}, "Qwen2.5-7B/config.json: intermediate_size", "size", "model"
        ),
        case("large", {"batch": 8192, "features": 14336}, "the longest prompt of Llama 3 8B", "benchmark", "model"),
    ),
    saved=("sigmoid", "activated"),
)
