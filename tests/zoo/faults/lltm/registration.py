"""Operators of torch.library that break the rules of registration. Called eagerly, they are right."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Outputs, elementwise, plain
from tests.zoo.registry import fault

_INPUTS = "Tensor input, Tensor weights, Tensor bias, Tensor old_h, Tensor old_cell"
_OUTPUTS = "(Tensor new_h, Tensor new_cell)"
_Vjp = tuple[Tensor, ...]


def _registered(name: str, forward: Any, vjp: Any, fake: Any) -> Any:
    """An operator `lltm_faults::name` with these parts, as torch.library.custom_op would register them."""
    qualified = f"lltm_faults::{name}"
    torch.library.define(qualified, f"({_INPUTS}) -> {_OUTPUTS}")
    torch.library.impl(qualified, "default", forward)
    torch.library.register_fake(qualified, fake)
    torch.library.register_autograd(
        qualified,
        lambda ctx, g_h, g_c: vjp(ctx.saved_tensors, (g_h, g_c)),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return getattr(torch.ops.lltm_faults, name).default


def _forward(*inputs: Tensor) -> Outputs:
    new_h, new_cell = plain(*inputs)
    return new_h.contiguous(), new_cell.contiguous()


def _fake(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    return old_h.new_empty(old_h.shape), old_cell.new_empty(old_cell.shape)


def _fake_of_two_rows(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    return old_h.new_empty(2, old_h.shape[1]), old_cell.new_empty(old_cell.shape)


def _halved(inputs: _Vjp, cotangents: _Vjp) -> _Vjp:
    d_input, d_weights, d_bias, d_old_h, d_old_cell = OPERATOR.vjp(inputs, cotangents)
    return d_input, d_weights, d_bias / 2, d_old_h, d_old_cell


_two_rows = _registered("two_rows", _forward, OPERATOR.vjp, _fake_of_two_rows)
_half_bias = _registered("half_bias", _forward, _halved, _fake)


@torch.library.custom_op("lltm_faults::gates_into", mutates_args=())
def _gates_into(X: Tensor, weights: Tensor, bias: Tensor, scratch: Tensor) -> Tensor:
    scratch.copy_(torch.nn.functional.linear(X, weights, bias))
    return scratch.clone()


@_gates_into.register_fake
def _(X: Tensor, weights: Tensor, bias: Tensor, scratch: Tensor) -> Tensor:
    return X.new_empty(scratch.shape)


_gates_into.register_autograd(
    lambda ctx, g: (g @ ctx.saved_tensors[1], g.t() @ ctx.saved_tensors[0], g.sum(0), None),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[:2]),
)


@fault("opcheck", "test_schema of opcheck failed for lltm_faults.gates_into.*mutable", dtype=torch.float64)
def schema_hides_mutation(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """An operator writes into its scratch argument, but its schema does not say so."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    scratch = input.new_zeros(input.shape[0], weights.shape[0])
    gates = _gates_into(torch.cat([old_h, input], dim=1), weights, bias, scratch)
    return elementwise(*gates.chunk(3, dim=1), old_cell)


@fault(
    "opcheck", "test_(faketensor|aot_dispatch_static) of opcheck failed for lltm_faults.two_rows", dtype=torch.float64
)
def fake_of_fixed_size(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The fake returns two rows, whatever the batch is."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs: Outputs = _two_rows(input, weights, bias, old_h, old_cell)
    return outputs


@fault("opcheck", "gradient of bias was", dtype=torch.float64)
def registered_gradient_halved(
    input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
) -> Outputs:
    """The registered derivative halves the gradient of bias: opcheck passes, because traced and eager results agree."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs: Outputs = _half_bias(input, weights, bias, old_h, old_cell)
    return outputs


class _Detaching(torch.autograd.Function):
    """A kernel for autograd that is registered for the CPU's key, below autograd."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Outputs:
        ctx.save_for_backward(*inputs)
        with torch._C._AutoDispatchBelowAutograd():
            return _forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> _Vjp:
        return OPERATOR.vjp(ctx.saved_tensors, (g_h, g_c))


torch.library.define("lltm_faults::below", f"({_INPUTS}) -> {_OUTPUTS}")
torch.library.impl("lltm_faults::below", "cpu", _Detaching.apply)
torch.library.register_fake("lltm_faults::below", _fake)


@fault("opcheck", "test_autograd_registration of opcheck failed for lltm_faults.below", dtype=torch.float64)
def autograd_below_autograd(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The autograd.Function is the operator's kernel for the CPU; none is registered for its Autograd key."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs: Outputs = torch.ops.lltm_faults.below(input, weights, bias, old_h, old_cell)
    return outputs


@torch.library.custom_op("lltm_faults::gradients", mutates_args=())
def _gradients(inputs: list[Tensor], cotangents: list[Tensor], wanted: list[bool]) -> list[Tensor]:
    found = zip(OPERATOR.vjp(tuple(inputs), tuple(cotangents)), wanted, strict=True)
    return [gradient.clone(memory_format=torch.contiguous_format) for gradient, asked in found if asked]


@_gradients.register_fake
def _(inputs: list[Tensor], cotangents: list[Tensor], wanted: list[bool]) -> list[Tensor]:
    return [tensor.new_empty(tensor.shape) for tensor in inputs]


class _ByOperator(torch.autograd.Function):
    """Backward is an operator, which returns the required gradients."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> Outputs:
        ctx.save_for_backward(*inputs)
        return _forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor | None, ...]:
        wanted = list(ctx.needs_input_grad)
        found = iter(_gradients(list(ctx.saved_tensors), [g_h, g_c], wanted))
        return tuple(next(found) if asked else None for asked in wanted)


@fault("opcheck", "of opcheck failed for lltm_faults.gradients.*where input alone requires grad", dtype=torch.float64)
def fake_of_every_gradient(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The fake of backward returns all gradients, whichever are required."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    outputs: Outputs = _ByOperator.apply(input, weights, bias, old_h, old_cell)
    return outputs
