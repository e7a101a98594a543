r"""LLTM: one step of the Long-Long-Term-Memory cell of PyTorch's C++/CUDA extension tutorial.

An LSTM cell without a forget gate, with an ELU candidate. With batch B, input_features F, state_size H:

    X            = [old_h, input]                               (B, H+F)
    gates        = X @ weights.T + bias                         (B, 3H), columns [0,H), [H,2H), [2H,3H):
    input_gate   = sigmoid(gates[:, 0:H])                       (B, H)
    output_gate  = sigmoid(gates[:, H:2H])                      (B, H)
    candidate    = elu(gates[:, 2H:3H]), alpha = 1              (B, H)
    new_cell     = old_cell + candidate * input_gate            (B, H)
    new_h        = tanh(new_cell) * output_gate                 (B, H)

The vector-Jacobian product. Let g_h, g_c be the cotangents of new_h and new_cell, and i, o, k the input gate,
output gate and candidate, z_k the candidate's pre-activation. The chain rule, from the outputs inwards:

    d_output_gate  = g_h * tanh(new_cell)
    d_new_cell     = g_h * o * (1 - tanh(new_cell)^2) + g_c
    d_old_cell     = d_new_cell
    d_candidate    = d_new_cell * i
    d_input_gate   = d_new_cell * k
    d_gates        = [d_input_gate * i * (1 - i),  d_output_gate * o * (1 - o),  d_candidate * elu'(z_k)]
    elu'(z)        = 1 where z > 0, exp(z) or elu(z) + 1 elsewhere   (so elu'(0) = 1, as in PyTorch)
    d_weights      = d_gates.T @ X                              (3H, H+F)
    d_bias         = d_gates summed over the batch              (3H,)
    d_X            = d_gates @ weights                          (B, H+F)
    d_old_h        = d_X[:, :H],   d_input = d_X[:, H:]

Source: P. Goldsborough, "Custom C++ and CUDA Extensions", PyTorch tutorials. The derivation is ours; `tests/spec`
checks it against autograd, central differences, 50-digit arithmetic and a symbolic derivation.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from spec.contract import LOWER, Operator, TensorArg
from spec.formulas import either
from spec.sizes import lltm as sizes
from spec.values import lltm as values


def forward(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """(new_h, new_cell), each (batch, state_size)."""
    steps = intermediates(input, weights, bias, old_h, old_cell)
    new_cell = steps["new_cell"]
    return torch.tanh(new_cell) * steps["output_gate"], new_cell


def intermediates(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> dict[str, Tensor]:
    """The steps of `forward` in order: gates (batch, 3*state_size), then four of (batch, state_size)."""
    gates = torch.cat([old_h, input], dim=1) @ weights.t() + bias
    in_gate, out_gate, candidate_gate = gates.chunk(3, dim=1)
    input_gate, output_gate, candidate = torch.sigmoid(in_gate), torch.sigmoid(out_gate), F.elu(candidate_gate)
    steps = {"gates": gates, "input_gate": input_gate, "output_gate": output_gate, "candidate": candidate}
    return {**steps, "new_cell": old_cell + candidate * input_gate}


def vjp(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gradients of input, weights, bias, old_h and old_cell, by the formulae of the module's docstring."""
    _, weights, _, old_h, _ = inputs
    state_size = old_h.shape[1]
    X, d_gates, d_new_cell = d_gates_of(inputs, cotangents)
    d_X = d_gates @ weights
    return d_X[:, state_size:], d_gates.t() @ X, d_gates.sum(0), d_X[:, :state_size], d_new_cell


def d_gates_of(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """(X, d_gates, d_old_cell) of the module's docstring; the other gradients are products of X and d_gates."""
    input, weights, bias, old_h, old_cell = inputs
    g_h, g_c = cotangents

    X = torch.cat([old_h, input], dim=1)
    z_i, z_o, z_k = (X @ weights.t() + bias).chunk(3, dim=1)
    i, o, k = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_k)
    tanh_cell = torch.tanh(old_cell + k * i)

    d_new_cell = g_h * o * (1 - tanh_cell**2) + g_c
    d_z_i = d_new_cell * k * i * (1 - i)
    d_z_o = g_h * tanh_cell * o * (1 - o)
    # exp is evaluated at min(z, 0). Where z > 0 its value is not used, and it must not overflow: inf * 0 would be NaN.
    # An implementation may save k rather than z_k, as torch's elu_ does; then k + 1 errs by the roundoff of k.
    slope = either(lambda: torch.exp(z_k.clamp(max=0)), lambda: k.clamp(max=0) + 1)
    d_z_k = d_new_cell * i * slope
    return X, torch.cat([d_z_i, d_z_o, d_z_k], dim=1), d_new_cell


_WIDTH, _STATE = "state_size + input_features", ("batch", "state_size")
_GATES = (("input_gate", "state_size"), ("output_gate", "state_size"), ("candidate", "state_size"))
_X = (("old_h", "state_size"), ("input", "input_features"))
_INPUTS = (
    TensorArg("input", ("batch", "input_features")),
    TensorArg("weights", ("3*state_size", _WIDTH), scale=f"({_WIDTH} + 1)**-0.5", blocks=(_GATES, _X)),
    TensorArg("bias", ("3*state_size",), scale="0.5", blocks=(_GATES,)),
    TensorArg("old_h", _STATE),
    TensorArg("old_cell", _STATE),
)
OPERATOR = Operator(
    name="lltm",
    inputs=_INPUTS,
    outputs=(TensorArg("new_h", _STATE), TensorArg("new_cell", _STATE)),
    autocast=LOWER,
    forward=forward,
    vjp=vjp,
    intermediates=intermediates,
    cases=sizes.CASES,
    families=values.families(_INPUTS),
    invariants=values.invariants(_INPUTS),
    recurrent=(("new_h", "old_h"), ("new_cell", "old_cell")),
    flops=(f"6*batch*state_size*({_WIDTH})", f"12*batch*state_size*({_WIDTH})"),
    # Forward: three gates and old_cell in, new_h and new_cell out. Backward: those four and two cotangents in, the
    # gradients of the gates and of old_cell out.
    elementwise=("6*batch*state_size", "10*batch*state_size"),
    saved=(
        TensorArg("X", ("batch", _WIDTH)),
        TensorArg("gates", ("batch", "3*state_size")),
        *(TensorArg(name, _STATE) for name in ("input_gate", "output_gate", "candidate", "tanh_of_new_cell")),
    ),
)
