"""LLTM: matrix products by PyTorch, the element-wise part of the cell forward and backward in one kernel each.

gates and d_gates are (batch, 3*state_size), all other arrays (batch, state_size), and everything is contiguous. A
program takes BLOCK neighbouring elements of the state; element n of row r has its gates at n + r*2*state_size and
state_size and 2*state_size further. All of the arithmetic is in WIDE, float32 for half types.

Backward reads the inputs of forward, which have a history. It is an operator without a derivative of its own, so a
second differentiation raises: every path leads through it.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
import triton.language as tl
from torch import Tensor

from backends.autocast import by_rule
from backends.base import check_arguments
from backends.triton.fused.launch import Function, Kernel, block_size, blocks, wide
from spec.lltm import OPERATOR


@Function
def _sigmoid(z):
    return 1.0 / (1.0 + tl.exp(-z))


@Function
def _expm1(z):
    # For z <= 0 only. Near 0, where exp(z) - 1 cancels, the series z (1 + z/2 (1 + z/3 (...))) is used.
    series = z / 15 + 1.0
    for n in tl.static_range(13):
        series = z / (14 - n) * series + 1.0
    return tl.where(z > -0.5, z * series, tl.exp(z) - 1.0)


@Function
def _tanh(x):
    t = _expm1(-2.0 * tl.abs(x))
    size = -t / (t + 2.0)
    return tl.where(x < 0, -size, size)


@Function
def _elu(z):
    return tl.where(z > 0, z, _expm1(z))


@Kernel
def _forward_kernel(gates, old_cell, new_h, new_cell, elements, state_size, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    state = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = state < elements
    gate = gates + state + state // state_size * 2 * state_size
    i = _sigmoid(tl.load(gate, mask=inside, other=0.0).to(WIDE))
    o = _sigmoid(tl.load(gate + state_size, mask=inside, other=0.0).to(WIDE))
    k = _elu(tl.load(gate + 2 * state_size, mask=inside, other=0.0).to(WIDE))
    c = tl.load(old_cell + state, mask=inside, other=0.0).to(WIDE) + k * i
    tl.store(new_cell + state, c, mask=inside)
    tl.store(new_h + state, _tanh(c) * o, mask=inside)


@Kernel
def _backward_kernel(
    gates,
    old_cell,
    grad_h,
    grad_cell,
    d_gates,
    d_old_cell,
    elements,
    state_size,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    state = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = state < elements
    offset = state + state // state_size * 2 * state_size
    gate = gates + offset
    i = _sigmoid(tl.load(gate, mask=inside, other=0.0).to(WIDE))
    o = _sigmoid(tl.load(gate + state_size, mask=inside, other=0.0).to(WIDE))
    z_k = tl.load(gate + 2 * state_size, mask=inside, other=0.0).to(WIDE)
    k = _elu(z_k)
    t = _tanh(tl.load(old_cell + state, mask=inside, other=0.0).to(WIDE) + k * i)
    g_h = tl.load(grad_h + state, mask=inside, other=0.0).to(WIDE)
    d_cell = g_h * o * (1.0 - t * t) + tl.load(grad_cell + state, mask=inside, other=0.0).to(WIDE)
    d_gate = d_gates + offset
    tl.store(d_gate, d_cell * k * i * (1.0 - i), mask=inside)
    tl.store(d_gate + state_size, g_h * t * o * (1.0 - o), mask=inside)
    # elu' selects by z_k: a product with a mask would be inf * 0 = NaN where exp overflows.
    tl.store(d_gate + 2 * state_size, d_cell * i * tl.where(z_k > 0, 1.0, tl.exp(z_k)), mask=inside)
    tl.store(d_old_cell + state, d_cell, mask=inside)


def _launch(kernel: Kernel, read: Sequence[Tensor], written: Sequence[Tensor]) -> None:
    """`read` begins with gates and old_cell."""
    size, dense = block_size(read[1]), [tensor.contiguous() for tensor in read]
    elements, state_size = read[1].numel(), read[1].shape[1]
    if elements:
        grid = (blocks(elements, size),)
        kernel.launch(grid, dense, written, elements, state_size, WIDE=wide(read[1]), BLOCK=size)


@torch.library.custom_op("conformance_triton::lltm_forward", mutates_args=())
def _forward(gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    new_h, new_cell = _fake_forward(gates, old_cell)
    _launch(_forward_kernel, (gates, old_cell), (new_h, new_cell))
    return new_h, new_cell


@_forward.register_fake
def _fake_forward(_gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    return old_cell.new_empty(old_cell.shape), old_cell.new_empty(old_cell.shape)


@torch.library.custom_op("conformance_triton::lltm_backward", mutates_args=())
def _backward(gates: Tensor, old_cell: Tensor, grad_h: Tensor, grad_cell: Tensor) -> tuple[Tensor, Tensor]:
    d_gates, d_old_cell = _fake_backward(gates, old_cell, grad_h, grad_cell)
    _launch(_backward_kernel, (gates, old_cell, grad_h, grad_cell), (d_gates, d_old_cell))
    return d_gates, d_old_cell


@_backward.register_fake
def _fake_backward(gates: Tensor, old_cell: Tensor, _grad_h: Tensor, _grad_cell: Tensor) -> tuple[Tensor, Tensor]:
    return gates.new_empty(gates.shape), old_cell.new_empty(old_cell.shape)


def _setup(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    del output
    ctx.save_for_backward(*inputs)


def _vjp(ctx: Any, grad_h: Tensor, grad_cell: Tensor) -> tuple[Tensor, Tensor]:
    d_gates, d_old_cell = _backward(*ctx.saved_tensors, grad_h, grad_cell)
    return d_gates, d_old_cell


_forward.register_autograd(_vjp, setup_context=_setup)


@by_rule(OPERATOR)
def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step of the cell: (new_h, new_cell), each (batch, state_size)."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    gates = F.linear(torch.cat([old_h, input], dim=1), weights, bias)  # (batch, 3*state_size)
    new_h, new_cell = _forward(gates, old_cell)
    return new_h, new_cell
