"""Right, but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm_sequence import OPERATOR
from tests.zoo.honest.lltm_sequence import Outputs, Sequence, Steps
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Sequence):
    """The honest scan, the base of every fault: backward recomputes it from the inputs alone."""


@control(
    gives_up={
        **OLD_STYLE,
        "compile": "its loop runs once for each row, so that a traced graph holds for one number of rows",
    }
)
class OneSumOfAllTerms(Sequence):
    """The weights' gradient is one sequential sum over all rows of all steps, as in a plain kernel."""

    def d_weights(self, d_gates: Steps, X: Steps, states: Steps) -> Tensor:
        return _one_after_another(torch.cat(d_gates), torch.cat(X))

    def d_bias(self, d_gates: Steps) -> Tensor:
        rows = torch.cat(d_gates)
        return _one_after_another(rows, rows.new_ones((len(rows), 1))).squeeze(1)


def _one_after_another(left: Tensor, right: Tensor) -> Tensor:
    """left^T right, added row by row in order; of many thousand rows, a few at a time."""
    wide = torch.promote_types(left.dtype, torch.float32)
    total = torch.zeros((left.shape[1], right.shape[1]), dtype=wide, device=left.device)
    at_a_time = len(left) // 1024 + 1
    for some, others in zip(left.to(wide).split(at_a_time), right.to(wide).split(at_a_time), strict=True):
        total = total + some.t() @ others
    return total.to(left.dtype)


def _step(gates: Tensor, cell: Tensor) -> Outputs:
    z_i, z_o, z_k = gates.chunk(3, dim=1)
    cell = cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(cell) * torch.sigmoid(z_o), cell


def _result(states: list[Tensor], cell: Tensor) -> Outputs:
    """(h, c_T); without steps h is empty."""
    return torch.stack(states) if states else cell.new_zeros((0, *cell.shape)), cell.clone()


@control
def loop_of_cells(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> Outputs:
    """The cell in a loop, one product for each step, and autograd's backward through all of them."""
    check_arguments(OPERATOR, input, weights, bias, h0, c0)
    h, cell, states = h0, c0, []
    for x in input:
        h, cell = _step(F.linear(torch.cat([h, x], dim=1), weights, bias), cell)
        states.append(h)
    return _result(states, cell)


@control
def batched_products(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> Outputs:
    """The input's part of the gates is one product over all steps, rounded before the state's part is added."""
    check_arguments(OPERATOR, input, weights, bias, h0, c0)
    H = h0.shape[1]
    from_input = input.contiguous() @ weights[:, H:].contiguous().t()
    h, cell, states = h0, c0, []
    for z in from_input:
        h, cell = _step(z + h @ weights[:, :H].t() + bias, cell)
        states.append(h)
    return _result(states, cell)


@control
def one_product_for_the_weights(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> Outputs:
    """The weights of every step are a slice of one expanded tensor: autograd sums their gradients in another order."""
    check_arguments(OPERATOR, input, weights, bias, h0, c0)
    h, cell, states = h0, c0, []
    of_step = weights.expand(len(input), *weights.shape)
    for t, x in enumerate(input):
        h, cell = _step(torch.cat([h, x], dim=1) @ of_step[t].t() + bias, cell)
        states.append(h)
    return _result(states, cell)


@control
def states_in_float32(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> Outputs:
    """State and cell stay in float32 between the steps of half types, as a fused kernel keeps them in registers."""
    check_arguments(OPERATOR, input, weights, bias, h0, c0)
    wide = torch.promote_types(input.dtype, torch.float32)
    h, cell, states = h0.to(wide), c0.to(wide), []
    for x in input:
        gates = F.linear(torch.cat([h, x.to(wide)], dim=1), weights.to(wide), bias.to(wide))
        h, cell = _step(gates, cell)
        states.append(h.to(input.dtype))
    return _result(states, cell.to(input.dtype))


@control
def everything_in_float64(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> Outputs:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_arguments(OPERATOR, input, weights, bias, h0, c0)
    inputs = tuple(tensor.double() for tensor in (input, weights, bias, h0, c0))
    h, c_T = loop_of_cells(*inputs)
    return h.to(input.dtype), c_T.to(input.dtype)


@control
def in_two_halves(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> Outputs:
    """Two sequences, one after the other: the second starts from the state of the first, and autograd follows."""
    check_arguments(OPERATOR, input, weights, bias, h0, c0)
    half = len(input) // 2
    first, cell = loop_of_cells(input[:half], weights, bias, h0, c0)
    second, c_T = loop_of_cells(input[half:], weights, bias, first[-1] if half else h0, cell)
    return torch.cat([first, second]), c_T
