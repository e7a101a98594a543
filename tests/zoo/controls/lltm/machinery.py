"""Right, but by other mechanisms: autograd.Function, compilers, checkpoints, transforms, modules, custom operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Outputs, elementwise, plain, rounded, wide
from tests.zoo.registry import control


class _Recomputed(torch.autograd.Function):
    """Saves its inputs and nothing else. Backward runs forward again and differentiates it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Tensor) -> Outputs:
        return plain(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Outputs) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor, ...]:
        _, pull_back = torch.func.vjp(plain, *ctx.saved_tensors)
        gradients: tuple[Tensor, ...] = pull_back((g_h, g_c))
        return gradients


@control
def recomputed(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """An autograd.Function that saves its inputs only, and recomputes everything in backward."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    new_h, new_cell = _Recomputed.apply(input, weights, bias, old_h, old_cell)
    return new_h, new_cell


@control(gives_up={"functional-transforms": "torch.func does not support the hooks that a checkpoint is made of"})
def checkpointed(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """torch.utils.checkpoint drops the intermediates and recomputes them in backward."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs = checkpoint(plain, input, weights, bias, old_h, old_cell, use_reentrant=False, preserve_rng_state=False)
    new_h, new_cell = outputs
    return new_h, new_cell


@control(
    gives_up={
        "inference-modes": "the graph that torch.jit.script has specialised for training saves its intermediates for "
        "backward wherever it is called, and inference mode forbids that",
        "compile": "torch.compile does not trace what torch.jit.script has compiled",
        "autograd-hooks": "a checkpoint ends its second forward early by an exception, which TorchScript replaces",
    },
    cpu_alone="the interpreter of torch 2.11 raises in a backward in bfloat16 on CUDA where only weights require grad",
)
class Scripted:
    """A function that torch.jit.script compiles at the first call."""

    def __init__(self) -> None:
        self._scripted: Callable[..., Any] | None = None

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
        if self._scripted is None:
            self._scripted = torch.jit.script(_in_script)
        new_h, new_cell = self._scripted(input, weights, bias, old_h, old_cell)
        return new_h, new_cell


def _in_script(
    input: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor, old_h: torch.Tensor, old_cell: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    gates = torch.addmm(bias, torch.cat([old_h, input], dim=1), weights.t()).chunk(3, dim=1)
    new_cell = old_cell + F.elu(gates[2]) * torch.sigmoid(gates[0])
    return torch.tanh(new_cell) * torch.sigmoid(gates[1]), new_cell


@control
class CompiledByDynamo:
    """torch.compile with the backend `eager`: the bytecode is rewritten, the operations are the same."""

    def __init__(self) -> None:
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
        if self._compiled is None:
            self._compiled = torch.compile(plain, backend="eager", dynamic=True)
        new_h, new_cell = self._compiled(input, weights, bias, old_h, old_cell)
        return new_h, new_cell


@control(
    gives_up={
        "compile": "Dynamo reads the size that vmap maps over as a number, and compiles anew for another batch",
        "export": "torch.export reads the size that vmap maps over as a number, and exports for one batch",
    }
)
def one_row_mapped(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The cell of one row, mapped over the batch by torch.func.vmap."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    if input.shape[0] == 0:  # vmap needs at least one row
        return plain(input, weights, bias, old_h, old_cell)
    # Contiguous for the sake of AMX, see products.py.
    weights = weights.contiguous()

    def cell(x: Tensor, h: Tensor, c: Tensor) -> Outputs:
        z_i, z_o, z_k = (weights @ torch.cat([h, x]) + bias).chunk(3)
        return elementwise(z_i, z_o, z_k, c)

    new_h, new_cell = torch.func.vmap(cell)(input, old_h, old_cell)
    return new_h, new_cell


class _Module(nn.Module):
    def __init__(self, width: int, state_size: int) -> None:
        super().__init__()
        # On `meta`: each call supplies the values, so none are drawn.
        self.register_buffer("weights", torch.empty(3 * state_size, width, device="meta"))
        self.register_buffer("bias", torch.empty(3 * state_size, device="meta"))

    def forward(self, input: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        return plain(input, self.weights, self.bias, old_h, old_cell)


@control
def module_behind_it(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """An nn.Module, called with the weights of this call instead of its own."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    module = _Module(weights.shape[1], old_h.shape[1])
    parameters = {"weights": weights, "bias": bias}
    outputs: Outputs = torch.func.functional_call(module, parameters, (input, old_h, old_cell))
    return outputs


@torch.library.custom_op("lltm_controls::lltm", mutates_args=())
def _operator(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    new_h, new_cell = rounded(input.dtype, *plain(*wide(input, weights, bias, old_h, old_cell)))
    # With a transposed old_cell the sum would be transposed too, unlike the result of the fake below.
    return new_h.contiguous(), new_cell.contiguous()


@_operator.register_fake
def _(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    return old_h.new_empty(old_h.shape), old_cell.new_empty(old_cell.shape)


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: Outputs) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor, ...]:
    gradients = OPERATOR.vjp(wide(*ctx.saved_tensors), wide(g_h, g_c))
    return tuple(gradient.to(g_h.dtype) for gradient in gradients)


def _mapped(info: Any, in_dims: tuple[int | None, ...], *inputs: Tensor) -> tuple[Outputs, tuple[int, int]]:
    outputs: Outputs = torch.func.vmap(plain, in_dims=in_dims)(*inputs)
    return outputs, (0, 0)


_operator.register_autograd(_backward, setup_context=_save)
_operator.register_vmap(_mapped)


@control(
    gives_up={"functional-transforms": "what register_autograd makes has no setup_context, which torch.func asks for"}
)
def custom_operator(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """An operator of torch.library.custom_op, with a fake, a derivative and a rule for vmap."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    new_h, new_cell = _operator(input, weights, bias, old_h, old_cell)
    return new_h, new_cell
