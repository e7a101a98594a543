"""A candidate in Triton: relu and its gradient in a kernel each, matrix products by PyTorch.

On the device cuda they are compiled, on triton-interpreted they are interpreted on the CPU.
"""

import os
import threading
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from backends.autocast import by_rule
from backends.base import check_arguments
from spec.mlp import OPERATOR

# The first call of a custom operator imports this, which sets TORCHINDUCTOR_CACHE_DIR for the whole process.
with patch.dict(os.environ):
    import torch._dynamo

BLOCK = 1024

#: What it does not support, with the reason.
DECLARED = {"functional-transforms": "functorch has no rule for register_autograd: torch.func.grad raises"}

#: Triton's interpreter runs one launch at a time, so threads take turns.
_TURN = threading.Lock()


@triton.jit
def _relu_kernel(z, hidden, elements, BLOCK: tl.constexpr):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < elements
    here = tl.load(z + n, mask=inside, other=0.0)
    tl.store(hidden + n, tl.where(here < 0, 0.0, here), mask=inside)  # keeps a NaN, which is not below 0


@triton.jit
def _gradient_kernel(d_hidden, hidden, d_z, elements, BLOCK: tl.constexpr):
    n = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = n < elements
    is_live = tl.load(hidden + n, mask=inside, other=0.0) > 0
    # A selection, not a product with a mask: where d_hidden has overflowed, inf * 0 would be NaN.
    tl.store(d_z + n, tl.where(is_live, tl.load(d_hidden + n, mask=inside, other=0.0), 0.0), mask=inside)


def _launch(kernel: Any, *tensors: Tensor) -> Tensor:
    """Run the kernel over all elements of the last tensor, which it writes."""
    *read, written = tensors
    if written.numel():
        with _TURN:
            grid = (triton.cdiv(written.numel(), BLOCK),)
            kernel[grid](*(tensor.contiguous() for tensor in read), written, written.numel(), BLOCK=BLOCK)
    return written


@torch.library.custom_op("my_kernels::relu", mutates_args=())
def relu(z: Tensor) -> Tensor:
    return _launch(_relu_kernel, z, z.new_empty(z.shape))


@torch.library.custom_op("my_kernels::relu_gradient", mutates_args=())
def relu_gradient(d_hidden: Tensor, hidden: Tensor) -> Tensor:
    return _launch(_gradient_kernel, d_hidden, hidden, hidden.new_empty(hidden.shape))


@relu.register_fake
def _fake_relu(z: Tensor) -> Tensor:
    return z.new_empty(z.shape)


@relu_gradient.register_fake
def _fake_gradient(_d_hidden: Tensor, hidden: Tensor) -> Tensor:
    return hidden.new_empty(hidden.shape)


def _keep_output(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    del inputs
    ctx.save_for_backward(output)


def _keep_hidden(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    del output
    ctx.save_for_backward(inputs[1])


def _derivative(ctx: Any, d_hidden: Tensor) -> Tensor:
    return relu_gradient(d_hidden, *ctx.saved_tensors)


def _second_derivative(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    """d_z is linear in d_hidden; its derivative with respect to hidden is 0."""
    return relu_gradient(grad, *ctx.saved_tensors), None


relu.register_autograd(_derivative, setup_context=_keep_output)
relu_gradient.register_autograd(_second_derivative, setup_context=_keep_hidden)


@by_rule(OPERATOR)
def mlp(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """The output, (batch, output_size)."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    hidden = relu(F.linear(input, hidden_weights, hidden_bias))
    return F.linear(hidden, output_weights, output_bias)
