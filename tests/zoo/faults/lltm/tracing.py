"""Right if called, but wrong or impossible if torch.compile traces it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Cell, Outputs, elementwise, plain
from tests.zoo.registry import fault


@fault("compile", "forward raised .*(D|d)ata-dependent|forward raised .*item")
class LooksAtTheBias(Cell):
    """A bias of zeros is skipped: the branch depends on values, which torch.compile cannot trace."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        if bool((bias == 0).all()):
            bias = torch.zeros_like(bias)
        return super().gates(input, weights, bias, old_h)


@fault("compile", "forward raised Unsupported")
class AsksForTheAddress(Cell):
    """Memory that is not aligned is copied: under torch.compile tensors have no address."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        aligned = old_cell if old_cell.untyped_storage().data_ptr() % 16 == 0 else old_cell.clone()
        return super().new_cell(aligned, candidate, input_gate)


@torch.library.custom_op("lltm_faults::gates", mutates_args=())
def _gates(X: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.linear(X, weights, bias)


@_gates.register_fake
def _(X: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    return X.new_empty(X.shape[0], weights.shape[0])


@torch.library.custom_op("lltm_faults::gates_backward", mutates_args=())
def _gates_backward(g: Tensor, X: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return g @ weights, g.t() @ X, g.sum(0)


@_gates_backward.register_fake
def _(g: Tensor, X: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return X.new_empty(X.shape), weights.new_empty(weights.shape), weights.new_empty(weights.shape[1])


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    X, weights, _ = ctx.saved_tensors
    gradients: tuple[Tensor, Tensor, Tensor] = _gates_backward(g, X, weights)
    return gradients


_gates.register_autograd(_backward, setup_context=_save)


@fault("compile", "Meta kernel says|invalid gradient")
def meta_of_backward_wrong(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The fake of the backward operator returns a bias gradient with the length of the weights' columns."""
    z_i, z_o, z_k = _gates(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    return elementwise(z_i, z_o, z_k, old_cell)


@torch.library.custom_op("lltm_faults::sigmoid", mutates_args=())
def _sigmoid(z: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sigmoid(z), torch.sigmoid(z)


@_sigmoid.register_fake
def _(z: Tensor) -> tuple[Tensor, Tensor]:
    return z.new_empty(z.shape), z.new_empty(z.shape[0])


@torch.library.custom_op("lltm_faults::sigmoid_backward", mutates_args=())
def _sigmoid_backward(g: Tensor, kept: Tensor) -> Tensor:
    return g * kept * (1 - kept)


@_sigmoid_backward.register_fake
def _(g: Tensor, kept: Tensor) -> Tensor:
    return g.new_empty(g.shape)


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])


_sigmoid.register_autograd(lambda ctx, g, _: _sigmoid_backward(g, *ctx.saved_tensors), setup_context=_keep)


@fault("compile", r"result 1 of lltm_faults.sigmoid.* was .*\(3, 5\), but its Meta kernel says .*\(3,\)")
def meta_of_what_is_kept_wrong(
    input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
) -> Outputs:
    """The fake of an operator returns a vector for the matrix that is saved for backward: no value shows it."""
    z_i, z_o, z_k = torch.nn.functional.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    new_cell = old_cell + torch.nn.functional.elu(z_k) * _sigmoid(z_i)[0]
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


_TABLE: dict[int, float] = {}


@fault("compile", r"compiled 4 times for 4 sizes of batch, but should at most 2 times")
def table_by_batch(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Tuning parameters are looked up by the batch size: each size gives another compiled program."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    return plain(input * _TABLE.get(int(input.shape[0]), 1.0), weights, bias, old_h, old_cell)


@fault("export", "torch.export raised .*, but should export the operator for any batch")
def batch_as_a_number(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A Python loop over the rows: an exported program has a fixed number of them."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    if len(input) == 0:
        return plain(input, weights, bias, old_h, old_cell)
    rows = [plain(x[None], weights, bias, h[None], c[None]) for x, h, c in zip(input, old_h, old_cell, strict=True)]
    new_h, new_cell = (torch.cat(parts) for parts in zip(*rows, strict=True))
    return new_h, new_cell


@fault("export", "of the exported program, new_h was")
def constant_of_tracing(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """During export it uses a constant bias, because the caller's has no values."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    if torch.compiler.is_exporting():
        bias = torch.linspace(-0.5, 0.5, 15)
    return plain(input, weights, bias, old_h, old_cell)
