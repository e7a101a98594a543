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

from spec.contract import LOWER, Case, Draw, Family, Invariant, Operator, Sizes, TensorArg
from spec.formulas import either


def forward(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """(new_h, new_cell), each (batch, state_size)."""
    steps = intermediates(input, weights, bias, old_h, old_cell)
    new_cell = steps["new_cell"]
    return torch.tanh(new_cell) * steps["output_gate"], new_cell


def intermediates(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> dict[str, Tensor]:
    """The steps of `forward` in order: gates (batch, 3*state_size), then four of (batch, state_size)."""
    gates = torch.cat([old_h, input], dim=1) @ weights.t() + bias
    in_gate, out_gate, candidate_gate = gates.chunk(3, dim=1)
    input_gate = torch.sigmoid(in_gate)
    output_gate = torch.sigmoid(out_gate)
    candidate = F.elu(candidate_gate)
    new_cell = old_cell + candidate * input_gate
    return {
        "gates": gates,
        "input_gate": input_gate,
        "output_gate": output_gate,
        "candidate": candidate,
        "new_cell": new_cell,
    }


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


def _solved_for(gates: Tensor, sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    """Inputs whose pre-activations are exactly the rows of `gates`, (state_size + input_features, 3*state_size).

    Row b of X is the unit vector b modulo its length, so each product has one term and no rounding. Row b of the batch
    then gets row b (modulo the number of rows) of `gates`.
    """
    batch, state_size, features = sizes["batch"], sizes["state_size"], sizes["input_features"]
    width = state_size + features
    X = torch.eye(width, dtype=torch.float64).repeat(-(-batch // max(width, 1)), 1)[:batch].reshape(batch, width)
    return {
        "input": X[:, state_size:].contiguous(),
        "weights": gates.t().contiguous(),
        "bias": torch.zeros(3 * state_size, dtype=torch.float64),
        "old_h": X[:, :state_size].contiguous(),
        "old_cell": draw.normal((batch, state_size)),
    }


def _chosen(values: tuple[float, ...], sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    shape = (sizes["state_size"] + sizes["input_features"], 3 * sizes["state_size"])
    return _solved_for(draw.choice(shape, values), sizes, draw)


def _zero_gates(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    return _chosen((0.0,), sizes, draw)


def _tiny_gates(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    return _chosen((-eps / 8, -eps / 2, -eps, -tiny, tiny, eps / 8, 0.0, -0.0), sizes, draw)


def _overflowing_exp(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    # The first integer where exp overflows: 89 in float32 and bfloat16, 12 in float16, 710 in float64.
    edge = float(torch.finfo(dtype).max)
    beyond = float(torch.tensor(edge, dtype=torch.float64).log().ceil())
    return _chosen((beyond, 2 * beyond, -beyond, -2 * beyond, 1.0), sizes, draw)


def _denormals(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    quarter = torch.finfo(dtype).tiny / 4
    batch, state_size = sizes["batch"], sizes["state_size"]
    tensors["old_cell"] = draw.choice((batch, state_size), (quarter, -quarter, 0.0))
    tensors["input"] = draw.choice((batch, sizes["input_features"]), (quarter, -quarter, 1.0))
    return tensors


def _huge_cells(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    tensors["old_cell"] = draw.choice((sizes["batch"], sizes["state_size"]), (1e4, -1e4, 30.0, -30.0, 0.0))
    return tensors


def _closed_gate(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    tensors["bias"][: sizes["state_size"]] = -2 * float(torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).log())
    return tensors


def _non_finite(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    """NaN, +inf and -inf in the first rows of old_cell and input; all other rows stay ordinary.

    In bfloat16 the input has no -inf. With AMX, a oneDNN product of more than 16 rows in bfloat16 multiplies the tail
    of each row by 0 in the next one (torch 2.13, 17x34 by 34x9). The row of +inf would become NaN; the row of NaN is
    NaN anyway.
    """
    tensors = OPERATOR.ordinary(sizes, draw)
    for row, value in zip(range(sizes["batch"]), (float("nan"), float("inf"), -float("inf")), strict=False):
        for name in ("old_cell", "input"):
            spared = name == "input" and dtype == torch.bfloat16 and value == -float("inf")
            if tensors[name].shape[1] and not spared:
                tensors[name][row, row % tensors[name].shape[1]] = value
    return tensors


def _zero_parameters(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    return {**tensors, "weights": torch.zeros_like(tensors["weights"]), "bias": torch.zeros_like(tensors["bias"])}


def _cell_kept(*inputs: Tensor) -> dict[str, Tensor]:
    return {"new_cell": inputs[4]}


def _half_tanh_of_cell(*inputs: Tensor) -> dict[str, Tensor]:
    old_cell = inputs[4]
    return {"new_h": torch.tanh(old_cell) / 2, "new_cell": old_cell}


def _case(name: str, batch: int, features: int, state: int, origin: str, *tags: str) -> Case:
    return Case(name, {"batch": batch, "input_features": features, "state_size": state}, origin, frozenset(tags))


_GATES = (("input_gate", "state_size"), ("output_gate", "state_size"), ("candidate", "state_size"))
_X = (("old_h", "state_size"), ("input", "input_features"))
_TAIL_STATES = (3, 4, 5, 7, 9, 31, 32, 33, 255, 256, 257, 1025)
_BLOCK_STATES = (1023, 1024)

OPERATOR = Operator(
    name="lltm",
    inputs=(
        TensorArg("input", ("batch", "input_features")),
        TensorArg(
            "weights",
            ("3*state_size", "state_size + input_features"),
            scale="(state_size + input_features + 1)**-0.5",
            blocks=(_GATES, _X),
        ),
        TensorArg("bias", ("3*state_size",), scale="0.5", blocks=(_GATES,)),
        TensorArg("old_h", ("batch", "state_size")),
        TensorArg("old_cell", ("batch", "state_size")),
    ),
    outputs=(
        TensorArg("new_h", ("batch", "state_size")),
        TensorArg("new_cell", ("batch", "state_size")),
    ),
    autocast=LOWER,
    forward=forward,
    vjp=vjp,
    intermediates=intermediates,
    cases=(
        _case("tutorial", 16, 32, 128, "the sizes of the tutorial's benchmark", "size", "benchmark"),
        _case("middle", 64, 512, 1024, "a usual hidden size", "benchmark"),
        _case("large", 4096, 1024, 1024, "products that fill a GPU", "benchmark"),
        _case("small", 3, 4, 5, "fits gradcheck; every size odd or prime to the vector width", "size", "small"),
        _case("square", 4, 4, 4, "batch, features and state equal, so that a transposed index fits", "size", "small"),
        _case("one-row", 1, 3, 8, "batch 1", "size", "small"),
        _case("one-everything", 1, 1, 1, "the least that is not empty", "size", "small"),
        _case("no-features", 3, 0, 6, "recurrence without an input", "size", "small"),
        _case("no-rows", 0, 3, 4, "the last, empty batch of a data loader", "size"),
        _case("no-rows-no-features", 0, 0, 4, "both empty", "size"),
        *(_case(f"state-{size}", 3, 5, size, "tail of a vector, a warp or a block", "size") for size in _TAIL_STATES),
        *(_case(f"state-{size}", 3, 5, size, "around the largest block", "size", "block") for size in _BLOCK_STATES),
        _case("batch-70000", 70000, 2, 3, "more rows than gridDim.y can hold (65535)", "size", "grid"),
        _case("more-than-2^31", 2**20 + 3, 0, 700, "3*batch*state_size above 2^31 elements", "large"),
    ),
    families=(
        Family("zero-gates", "every pre-activation exactly 0, where elu has its kink", _zero_gates),
        Family("tiny-gates", "pre-activations of -eps/8, smallest normals, negative zero", _tiny_gates),
        Family("overflowing-exp", "pre-activations beyond the overflow of exp", _overflowing_exp),
        Family("denormals", "inputs below the smallest normal number", _denormals),
        Family("huge-cells", "cells of 1e4, where tanh is flat", _huge_cells),
        Family("closed-gate", "an input gate that is 0 to the last bit", _closed_gate),
        Family("non-finite", "inf and NaN in three rows, which must stay in their rows", _non_finite),
    ),
    invariants=(
        Invariant(
            "closed-input-gate",
            "an input gate of 0 leaves the cell as it was",
            _closed_gate,
            _cell_kept,
            bitwise=True,
        ),
        Invariant(
            "zero-parameters",
            "zero weights and bias give new_cell = old_cell and new_h = tanh(old_cell)/2",
            _zero_parameters,
            _half_tanh_of_cell,
        ),
    ),
    recurrent=(("new_h", "old_h"), ("new_cell", "old_cell")),
    flops=("6*batch*state_size*(state_size + input_features)", "12*batch*state_size*(state_size + input_features)"),
    # Forward: three gates and old_cell in, new_h and new_cell out. Backward: those four and two cotangents in, the
    # gradients of the gates and of old_cell out.
    elementwise=("6*batch*state_size", "10*batch*state_size"),
    saved=(
        TensorArg("X", ("batch", "state_size + input_features")),
        TensorArg("gates", ("batch", "3*state_size")),
        *(
            TensorArg(name, ("batch", "state_size"))
            for name in ("input_gate", "output_gate", "candidate", "tanh_of_new_cell")
        ),
    ),
)
