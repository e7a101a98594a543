"""MLP: matrix products by PyTorch, bias and relu in one kernel, and the gradient that relu lets through in another.

hidden_bias is (hidden_size,), all other arrays are (batch, hidden_size), and everything is contiguous. A program takes
BLOCK neighbouring elements. All of the arithmetic is in WIDE, float32 for half types.
"""

from typing import Any

import torch
import torch.nn.functional as F
import triton.language as tl
from torch import Tensor

from backends.autocast import by_rule
from backends.base import check_arguments
from backends.triton.fused.launch import Kernel, block_size, blocks, wide
from spec.mlp import OPERATOR


@Kernel
def _forward_kernel(product, hidden_bias, hidden, elements, hidden_size, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    unit = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < elements
    bias = tl.load(hidden_bias + unit % hidden_size, mask=inside, other=0.0).to(WIDE)
    z = tl.load(product + unit, mask=inside, other=0.0).to(WIDE) + bias
    tl.store(hidden + unit, tl.where(z < 0, 0.0, z), mask=inside)  # a NaN is not below 0 and stays a NaN


@Kernel
def _backward_kernel(d_hidden, hidden, d_z, elements, BLOCK: tl.constexpr):
    unit = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = unit < elements
    # It selects: a product with a mask would be inf * 0 = NaN where d_hidden has overflowed.
    is_live = tl.load(hidden + unit, mask=inside, other=0.0) > 0
    tl.store(d_z + unit, tl.where(is_live, tl.load(d_hidden + unit, mask=inside, other=0.0), 0.0), mask=inside)


@torch.library.custom_op("conformance_triton::mlp_forward", mutates_args=())
def _forward(product: Tensor, hidden_bias: Tensor) -> Tensor:
    hidden = product.new_empty(product.shape)
    if hidden.numel():
        size = block_size(product)
        read = product.contiguous(), hidden_bias.contiguous()
        sizes = hidden.numel(), hidden.shape[1]
        _forward_kernel.launch((blocks(sizes[0], size),), read, [hidden], *sizes, WIDE=wide(product), BLOCK=size)
    return hidden


@torch.library.custom_op("conformance_triton::mlp_backward", mutates_args=())
def _backward(d_hidden: Tensor, hidden: Tensor) -> Tensor:
    d_z = hidden.new_empty(hidden.shape)
    if d_z.numel():
        size = block_size(hidden)
        read = d_hidden.contiguous(), hidden.contiguous()
        _backward_kernel.launch((blocks(d_z.numel(), size),), read, [d_z], d_z.numel(), BLOCK=size)
    return d_z


@_forward.register_fake
def _fake_forward(product: Tensor, _hidden_bias: Tensor) -> Tensor:
    return product.new_empty(product.shape)


@_backward.register_fake
def _fake_backward(_d_hidden: Tensor, hidden: Tensor) -> Tensor:
    return hidden.new_empty(hidden.shape)


def _setup_forward(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    del inputs
    ctx.save_for_backward(output)


def _vjp(ctx: Any, d_hidden: Tensor) -> tuple[Tensor, Tensor]:
    d_z = _backward(d_hidden, *ctx.saved_tensors)
    return d_z, d_z.sum(0)


def _setup_backward(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    del output
    ctx.save_for_backward(inputs[1])


def _vjp_of_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return _backward(grad, *ctx.saved_tensors), None  # d_z is linear in d_hidden, and constant in hidden


_forward.register_autograd(_vjp, setup_context=_setup_forward)
_backward.register_autograd(_vjp_of_backward, setup_context=_setup_backward)


@by_rule(OPERATOR)
def mlp(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """The output, (batch, output_size)."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    hidden = _forward(F.linear(input, hidden_weights), hidden_bias)
    return F.linear(hidden, output_weights, output_bias)
