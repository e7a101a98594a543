"""SwiGLU: one pass over the elements forward, and one backward, which computes the activation again.

All of the arithmetic is in WIDE, float32 for half types; results are rounded once. Backward is an operator without a
derivative of its own, so a second differentiation raises.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.triton.fused.launch import Kernel, block_size, blocks, wide


@Kernel
def _forward_kernel(gate, up, output, count, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(gate + at, mask=at < count, other=0.0).to(WIDE)
    u = tl.load(up + at, mask=at < count, other=0.0).to(WIDE)
    tl.store(output + at, x / (1.0 + tl.exp(-x)) * u, mask=at < count)


@Kernel
def _backward_kernel(grad, gate, up, d_gate, d_up, count, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(grad + at, mask=at < count, other=0.0).to(WIDE)
    x = tl.load(gate + at, mask=at < count, other=0.0).to(WIDE)
    u = tl.load(up + at, mask=at < count, other=0.0).to(WIDE)
    s = 1.0 / (1.0 + tl.exp(-x))
    tl.store(d_gate + at, g * u * (s * (1.0 + x * (1.0 - s))), mask=at < count)
    tl.store(d_up + at, g * (x * s), mask=at < count)


def _constants(tensor: Tensor) -> dict[str, Any]:
    return {"WIDE": wide(tensor), "BLOCK": min(triton.next_power_of_2(tensor.numel()), block_size(tensor))}


@torch.library.custom_op("conformance_triton::swiglu_forward", mutates_args=())
def _forward(gate: Tensor, up: Tensor) -> Tensor:
    output: Tensor = _fake_forward(gate, up)
    if gate.numel():
        constants = _constants(gate)
        grid = (blocks(gate.numel(), constants["BLOCK"]),)
        _forward_kernel.launch(grid, (gate.contiguous(), up.contiguous()), [output], gate.numel(), **constants)
    return output


@_forward.register_fake
def _fake_forward(gate: Tensor, _up: Tensor) -> Tensor:
    return gate.new_empty(gate.shape)


@torch.library.custom_op("conformance_triton::swiglu_backward", mutates_args=())
def _backward(grad: Tensor, gate: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    gradients: tuple[Tensor, Tensor] = _fake_backward(grad, gate, up)
    if gate.numel():
        constants = _constants(gate)
        grid = (blocks(gate.numel(), constants["BLOCK"]),)
        read = grad.contiguous(), gate.contiguous(), up.contiguous()
        _backward_kernel.launch(grid, read, gradients, gate.numel(), **constants)
    return gradients


@_backward.register_fake
def _fake_backward(_grad: Tensor, gate: Tensor, _up: Tensor) -> tuple[Tensor, Tensor]:
    return gate.new_empty(gate.shape), gate.new_empty(gate.shape)


def _setup(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    del output
    ctx.save_for_backward(*inputs)


def _vjp(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    found = _backward(grad, *ctx.saved_tensors)
    return tuple(each if wanted else None for each, wanted in zip(found, ctx.needs_input_grad, strict=True))


_forward.register_autograd(_vjp, setup_context=_setup)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; of the shape of both."""
    check_gated_arguments("swiglu", gate, up)
    output: Tensor = _forward(gate, up)
    return output
