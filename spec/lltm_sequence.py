r"""LLTM over a sequence: the cell of `spec/lltm.py` applied step by step, as recurrent cells are used in practice.

    lltm_sequence(input, weights, bias, h0, c0) -> (h, c_T)

With steps T, batch B, input_features F, state_size H, and input (T, B, F), h0 and c0 (B, H), weights and bias as the
cell has them:

    h_0, c_0  = h0, c0
    h_t, c_t  = lltm(input_t, weights, bias, h_{t-1}, c_{t-1})      for t = 1, ..., T
    h         = [h_1, ..., h_T]                                     (T, B, H), every step
    c_T       = the last cell                                       (B, H), which is c0 where there are no steps

The vector-Jacobian product is full backpropagation through time. Let g_t be the part of h's cotangent that belongs to
step t, and let a and e be what the next step, t+1, passes back. Start from a = 0 and e = the cotangent of c_T:

    d_input_t, dW_t, db_t, a, e  <-  vjp of the cell at (input_t, h_{t-1}, c_{t-1}), cotangents (g_t + a, e)
                                                                    for t = T, ..., 1
    d_weights = sum of dW_t,   d_bias = sum of db_t,   d_h0 = a,   d_c0 = e

Precision. The sums over the steps may be accumulated in the dtype from step to step, or be made in one product over all
steps and rows. The reference does the first inside a block `one_sum()` of `spec.rounding`, so that its allowance covers
both: added term by term, the one product is a longer sum than that of any step.

Source: P. J. Werbos, "Backpropagation through time" (1990), for the scan; the cell is the tutorial's. `tests/spec`
checks it against autograd, central differences and differentiation in 50-digit arithmetic.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spec import lltm
from spec.contract import LOWER, Case, Draw, Family, Invariant, Operator, Sizes, TensorArg
from spec.rounding import one_sum

State = tuple[Tensor, Tensor]


def forward(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, Tensor]:
    """(h, c_T), of shapes (steps, batch, state_size) and (batch, state_size)."""
    _, *after = _states(input, weights, bias, h0, c0)
    c_T = after[-1][1] if after else c0.clone()
    return _stacked([h for h, _ in after], h0), c_T


def intermediates(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> dict[str, Tensor]:
    """The cell's intermediates in each step, by their names: gates (steps, batch, 3*state_size), then four more."""
    before = _states(input, weights, bias, h0, c0)[: len(input)]
    steps = [lltm.intermediates(x, weights, bias, *state) for x, state in zip(input, before, strict=True)]
    empty = lltm.intermediates(input.new_zeros(input.shape[1:]), weights, bias, h0, c0)
    return {name: _stacked([step[name] for step in steps], like) for name, like in empty.items()}


def vjp(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gradients of input, weights, bias, h0 and c0, by the formulae of the module's docstring."""
    input, weights, bias, h0, _ = inputs
    g_h, e = cotangents
    before = _states(*inputs)[: len(input)]
    d_inputs: list[Tensor] = []
    d_weights, d_bias, a = torch.zeros_like(weights), torch.zeros_like(bias), torch.zeros_like(h0)
    for t in reversed(range(len(input))):
        X, d_gates, e = lltm.d_gates_of((input[t], weights, bias, *before[t]), (g_h[t] + a, e))
        d_X = d_gates @ weights
        a = d_X[:, : h0.shape[1]]
        d_inputs.insert(0, d_X[:, h0.shape[1] :])
        with one_sum():
            d_weights = d_weights + d_gates.t() @ X
            d_bias = d_bias + d_gates.sum(0)
    return _stacked(d_inputs, input.new_zeros(input.shape[1:])), d_weights, d_bias, a, e


def _states(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> list[State]:
    """(h_t, c_t) for t = 0, ..., steps."""
    states = [(h0, c0)]
    for t in range(len(input)):
        states.append(lltm.forward(input[t], weights, bias, *states[-1]))
    return states


def _stacked(steps: list[Tensor], like: Tensor) -> Tensor:
    """The steps stacked along a new first dimension; without steps, an empty tensor for steps like `like`."""
    return torch.stack(steps) if steps else like.new_zeros((0, *like.shape))


def _first_step_sees(values: tuple[float, ...], sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    """Inputs with which each pre-activation of the first step is exactly one of `values`.

    h0 and the bias are 0, and row b of the first input is the unit vector b modulo its length, so each product has one
    term and no rounding. From the second step on the input is 0 and the recurrence is an ordinary one.
    """
    tensors = OPERATOR.ordinary(sizes, draw)
    batch, features, state_size = sizes["batch"], sizes["input_features"], sizes["state_size"]
    tensors["input"].zero_()
    if features and sizes["steps"]:
        tensors["input"][0] = torch.eye(features, dtype=torch.float64).repeat(-(-batch // features), 1)[:batch]
    tensors["weights"][:, state_size:] = draw.choice((3 * state_size, features), values)
    tensors["bias"].zero_()
    tensors["h0"].zero_()
    return tensors


def _zero_gates(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    return _first_step_sees((0.0,), sizes, draw)


def _overflowing_exp(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    beyond = float(torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).log().ceil())
    return _first_step_sees((beyond, 2 * beyond, -beyond, -2 * beyond, 1.0), sizes, draw)


def _huge_cells(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    tensors["c0"] = draw.choice((sizes["batch"], sizes["state_size"]), (1e4, -1e4, 30.0, -30.0, 0.0))
    return tensors


def _closed_gate(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    tensors["bias"][: sizes["state_size"]] = -2 * float(torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).log())
    return tensors


def _non_finite(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    """NaN, +inf and -inf in the first rows of c0, and of the input in one step each; the other rows stay ordinary.

    In bfloat16 +inf and -inf are in c0 only, which leaves all gates finite. With AMX, a oneDNN product of more than 16
    rows in bfloat16 multiplies the tail of each row by 0 in the next one (torch 2.13, 20x27 by 27x8), so a NaN would
    spread. Over several steps some ordinary row precedes a row that is not, whichever rows are chosen.
    """
    tensors = OPERATOR.ordinary(sizes, draw)
    for row, value in zip(range(sizes["batch"]), (float("nan"), float("inf"), -float("inf")), strict=False):
        for rows in (tensors["c0"], *tensors["input"][row : row + 1]):
            if dtype == torch.bfloat16 and (rows is not tensors["c0"] or value != value):
                continue
            if rows.shape[1]:
                rows[row, row % rows.shape[1]] = value
    return tensors


def _zero_parameters(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    return {**tensors, "weights": torch.zeros_like(tensors["weights"]), "bias": torch.zeros_like(tensors["bias"])}


def _cell_kept(*inputs: Tensor) -> dict[str, Tensor]:
    return {"c_T": inputs[4]}


def _half_tanh_of_cell(*inputs: Tensor) -> dict[str, Tensor]:
    input, *_, c0 = inputs
    return {"h": (torch.tanh(c0) / 2).expand(len(input), *c0.shape).clone(), "c_T": c0}


def _case(name: str, steps: int, batch: int, features: int, state: int, origin: str, *tags: str) -> Case:
    sizes = {"steps": steps, "batch": batch, "input_features": features, "state_size": state}
    return Case(name, sizes, origin, frozenset(tags))


_GATES = (("input_gate", "state_size"), ("output_gate", "state_size"), ("candidate", "state_size"))
_X = (("h", "state_size"), ("input", "input_features"))
_TAIL_STATES = (4, 7, 31, 32, 33, 129)
_LAYERS = (128, 256, 512, 1024)

OPERATOR = Operator(
    name="lltm_sequence",
    inputs=(
        TensorArg("input", ("steps", "batch", "input_features")),
        TensorArg(
            "weights",
            ("3*state_size", "state_size + input_features"),
            scale="(state_size + input_features + 1)**-0.5",
            blocks=(_GATES, _X),
        ),
        TensorArg("bias", ("3*state_size",), scale="0.5", blocks=(_GATES,)),
        TensorArg("h0", ("batch", "state_size")),
        TensorArg("c0", ("batch", "state_size")),
    ),
    outputs=(
        TensorArg("h", ("steps", "batch", "state_size")),
        TensorArg("c_T", ("batch", "state_size")),
    ),
    autocast=LOWER,
    forward=forward,
    vjp=vjp,
    intermediates=intermediates,
    # The cost is proportional to the steps, and the allowance evaluates each case 17 times: long cases are narrow.
    sequential=("steps",),
    flops=(
        "6*steps*batch*state_size*(state_size + input_features)",
        "12*steps*batch*state_size*(state_size + input_features)",
    ),
    cases=(
        _case("tutorial", 32, 16, 32, 128, "32 steps of the tutorial's benchmark", "benchmark"),
        *(
            _case(f"layer-{size}", 32, 16, size, size, "a layer of a network between layers of its width", "benchmark")
            for size in _LAYERS
        ),
        _case("small", 3, 2, 4, 5, "fits gradcheck; every size another", "size", "small"),
        _case("square", 4, 4, 4, 4, "all sizes equal, so that a transposed index fits", "size", "small"),
        _case("one-step", 1, 3, 4, 5, "the cell itself", "size", "small"),
        _case("one-everything", 1, 1, 1, 1, "the least that is not empty", "size", "small"),
        _case("no-features", 3, 2, 0, 4, "recurrence without an input", "size", "small"),
        _case("no-steps", 0, 3, 4, 5, "an empty sequence: no h, and the cell as it was", "size"),
        _case("no-rows", 3, 0, 4, 5, "the last, empty batch of a data loader", "size"),
        _case("no-steps-no-rows", 0, 0, 4, 5, "both empty", "size"),
        _case("long", 64, 2, 3, 4, "many steps: what is lost between two of them adds up", "size"),
        *(
            _case(f"state-{size}", 2, 3, 5, size, "tail of a vector, a warp or a block", "size")
            for size in _TAIL_STATES
        ),
    ),
    families=(
        Family("zero-gates", "first pre-activations of exactly 0, where elu has its kink", _zero_gates),
        Family("overflowing-exp", "first pre-activations beyond the overflow of exp", _overflowing_exp),
        Family("huge-cells", "cells of 1e4, where tanh is flat", _huge_cells),
        Family("closed-gate", "an input gate that is 0 to the last bit in every step", _closed_gate),
        Family("non-finite", "inf and NaN in three rows, which must stay in their rows", _non_finite),
    ),
    invariants=(
        Invariant(
            "closed-input-gate",
            "an input gate of 0 leaves the cell as it was, however many steps there are",
            _closed_gate,
            _cell_kept,
            bitwise=True,
        ),
        Invariant(
            "zero-parameters",
            "zero weights and bias give c_T = c0 and h = tanh(c0)/2 in every step",
            _zero_parameters,
            _half_tanh_of_cell,
        ),
    ),
    saved=tuple(TensorArg(arg.name, ("steps", *arg.shape)) for arg in lltm.OPERATOR.saved),
)
