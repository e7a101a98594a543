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
steps and rows. The reference does the first inside a block `one_sum()` of `spec.blocks`, so that its allowance covers
both: added term by term, the one product is a longer sum than that of any step.

Source: P. J. Werbos, "Backpropagation through time" (1990), for the scan; the cell is the tutorial's. `tests/spec`
checks it against autograd, central differences and differentiation in 50-digit arithmetic.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from spec import lltm
from spec.blocks import one_sum
from spec.contract import LOWER, Operator, TensorArg
from spec.sizes import lltm_sequence as sizes
from spec.values import lltm_sequence as values

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


_WIDTH, _STATE, _OUTPUTS = "state_size + input_features", ("batch", "state_size"), ("steps", "batch", "state_size")
_WEIGHTS, _BIAS = lltm.OPERATOR.inputs[1:3]
_INPUTS = (
    TensorArg("input", ("steps", "batch", "input_features")),
    replace(_WEIGHTS, blocks=(_WEIGHTS.blocks[0], (("h", "state_size"), ("input", "input_features")))),
    _BIAS,
    TensorArg("h0", _STATE),
    TensorArg("c0", _STATE),
)
OPERATOR = Operator(
    name="lltm_sequence",
    inputs=_INPUTS,
    outputs=(TensorArg("h", _OUTPUTS), TensorArg("c_T", _STATE)),
    autocast=LOWER,
    forward=forward,
    vjp=vjp,
    intermediates=intermediates,
    # The cost is proportional to the steps, and the allowance evaluates each case 17 times: long cases are narrow.
    sequential=("steps",),
    flops=(f"6*steps*batch*state_size*({_WIDTH})", f"12*steps*batch*state_size*({_WIDTH})"),
    cases=sizes.CASES,
    families=values.families(_INPUTS),
    invariants=values.invariants(_INPUTS),
    saved=tuple(TensorArg(arg.name, ("steps", *arg.shape)) for arg in lltm.OPERATOR.saved),
)
