"""A candidate in Triton: relu and its gradient in a kernel each, matrix products by PyTorch.

On a GPU they are compiled. With TRITON_INTERPRET=1 in the environment they are interpreted on the CPU.
"""

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from backends.base import check_arguments
from spec.mlp import OPERATOR

BLOCK = 1024


@triton.jit
def _relu_kernel(z, hidden, elements, BLOCK: tl.constexpr):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < elements
    here = tl.load(z + n, mask=inside, other=0.0)
    tl.store(hidden + n, tl.where(here < 0, 0.0, here), mask=inside)  # a NaN is not below 0, and stays


@triton.jit
def _gradient_kernel(d_hidden, hidden, d_z, elements, BLOCK: tl.constexpr):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < elements
    is_live = tl.load(hidden + n, mask=inside, other=0.0) > 0
    # A selection, and no product with a mask: where d_hidden has overflown, inf * 0 would be NaN.
    tl.store(d_z + n, tl.where(is_live, tl.load(d_hidden + n, mask=inside, other=0.0), 0.0), mask=inside)


@torch.library.custom_op("my_kernels::relu", mutates_args=())
def relu(z: Tensor) -> Tensor:
    hidden = torch.empty_like(z)
    if z.numel():
        _relu_kernel[(triton.cdiv(z.numel(), BLOCK),)](z, hidden, z.numel(), BLOCK=BLOCK)
    return hidden


@torch.library.custom_op("my_kernels::relu_gradient", mutates_args=())
def relu_gradient(d_hidden: Tensor, hidden: Tensor) -> Tensor:
    d_z = torch.empty_like(hidden)
    if d_z.numel():
        _gradient_kernel[(triton.cdiv(d_z.numel(), BLOCK),)](
            d_hidden.contiguous(), hidden, d_z, d_z.numel(), BLOCK=BLOCK
        )
    return d_z


relu.register_fake(torch.empty_like)


@relu_gradient.register_fake
def _fake_gradient(_d_hidden: Tensor, hidden: Tensor) -> Tensor:
    return torch.empty_like(hidden)


def _keep_output(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    del inputs
    ctx.save_for_backward(output)


relu.register_autograd(lambda ctx, d_hidden: relu_gradient(d_hidden, *ctx.saved_tensors), setup_context=_keep_output)


def _keep_hidden(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    del output
    ctx.save_for_backward(inputs[1])


# d_z is linear in d_hidden, and does not change with hidden: so a second derivative is this same function.
relu_gradient.register_autograd(
    lambda ctx, grad: (relu_gradient(grad, *ctx.saved_tensors), None), setup_context=_keep_hidden
)


def mlp(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """The output, (batch, output_size)."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    hidden = relu(F.linear(input, hidden_weights, hidden_bias))
    return F.linear(hidden, output_weights, output_bias)
